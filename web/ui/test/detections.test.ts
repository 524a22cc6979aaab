import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DetectionFeed } from '../src/live/detections';
import { silenceMs } from '../src/live/stream';

class FakeSource {
  static readonly CLOSED = 2;
  static all: FakeSource[] = [];
  readyState = 0;
  onopen: (() => void) | null = null;
  onmessage: ((e: { data: string }) => void) | null = null;
  onerror: (() => void) | null = null;
  constructor(readonly url: string) {
    FakeSource.all.push(this);
  }
  close(): void {
    this.readyState = FakeSource.CLOSED;
  }
  say(camera: string): void {
    this.onmessage?.({ data: JSON.stringify({ camera, seq: 1, captured_at: '2026-01-01T00:00:00Z', objects: [] }) });
  }
  /** The browser gives up, as after an answer that is no event stream. */
  fail(): void {
    this.readyState = FakeSource.CLOSED;
    this.onerror?.();
  }
}

let got: string[];
let feed: DetectionFeed;

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, 'random').mockReturnValue(1);
  FakeSource.all = [];
  vi.stubGlobal('EventSource', FakeSource);
  got = [];
  feed = new DetectionFeed((d) => got.push(d.camera));
});
afterEach(() => {
  feed.watch([]);
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const newest = (): FakeSource => FakeSource.all.at(-1)!;

describe('DetectionFeed', () => {
  it('asks for the cameras and hands on their detections', () => {
    feed.watch(['a', 'b']);
    expect(newest().url).toBe('/api/v1/detections?camera=a&camera=b');
    newest().say('b');
    newest().onmessage?.({ data: 'nonsense' });
    expect(got).toEqual(['b']);
  });

  it('closes the old connection for a new set, and all of them for none', () => {
    feed.watch(['a']);
    feed.watch(['b']);
    expect(FakeSource.all.map((s) => s.readyState)).toEqual([FakeSource.CLOSED, 0]);
    feed.watch([]);
    expect(newest().readyState).toBe(FakeSource.CLOSED);
  });

  it('leaves it to the browser to come back, unless that gives up', () => {
    feed.watch(['a']);
    newest().onerror?.();
    vi.advanceTimersByTime(60_000);
    expect(FakeSource.all).toHaveLength(1);
    newest().fail();
    vi.advanceTimersByTime(999);
    expect(FakeSource.all).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(FakeSource.all).toHaveLength(2);
    newest().fail();
    vi.advanceTimersByTime(2000);
    expect(FakeSource.all).toHaveLength(3);
    newest().onopen?.();
    newest().fail();
    vi.advanceTimersByTime(1000);
    expect(FakeSource.all).toHaveLength(4);
  });

  it('does not come back for a set that was replaced', () => {
    feed.watch(['a']);
    const old = newest();
    feed.watch(['b']);
    old.fail();
    vi.advanceTimersByTime(60_000);
    expect(FakeSource.all).toHaveLength(2);
  });

  it('gives up a connection that is silent, and only such a one', () => {
    feed.watch(['a']);
    vi.advanceTimersByTime(silenceMs - 1);
    newest().say('a');
    vi.advanceTimersByTime(silenceMs);
    feed.checkSilence();
    expect(FakeSource.all).toHaveLength(1);
    vi.advanceTimersByTime(1);
    feed.checkSilence();
    expect(FakeSource.all).toHaveLength(2);
  });
});
