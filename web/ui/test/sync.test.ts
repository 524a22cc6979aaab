import { describe, expect, it } from 'vitest';
import type { Detection } from '../src/api/types';
import { Matcher, type Picture } from '../src/live/sync';

class Fake implements Picture {
  closed = 0;
  constructor(
    readonly seq: number,
    readonly capturedAt: number,
  ) {}
  close(): void {
    this.closed++;
  }
}

function detection(seq: number, capturedAt: number): Detection {
  return { camera: 'a', seq, capturedAt, ageMs: 40, width: 4, height: 3, objects: [] };
}

/** Pictures 100 ms apart: seq n is captured at n*100. */
const pic = (seq: number): Fake => new Fake(seq, seq * 100);
const det = (seq: number): Detection => detection(seq, seq * 100);

function inferred(): Matcher<Fake> {
  const m = new Matcher<Fake>();
  m.addDetection(det(1), 0);
  return m;
}

describe('Matcher', () => {
  it('shows a picture at once when its detection is there', () => {
    const m = inferred();
    m.addDetection(det(2), 10);
    m.addPicture(pic(2), 20);
    expect(m.next(20)).toMatchObject({ seq: 2, kind: 'exact', boxes: { seq: 2 } });
  });

  it('holds a picture for its detection', () => {
    const m = inferred();
    m.addPicture(pic(2), 0);
    expect(m.next(100)).toBeNull();
    expect(m.deadline()).toBe(150);
    m.addDetection(det(2), 120);
    expect(m.next(120)).toMatchObject({ seq: 2, kind: 'exact' });
    expect(m.deadline()).toBeNull();
  });

  it('shows it without, marked as carried, when the wait is over', () => {
    const m = inferred();
    m.addPicture(pic(2), 0);
    expect(m.next(149)).toBeNull();
    expect(m.next(150)).toMatchObject({ seq: 2, kind: 'carried', boxes: { seq: 1 } });
  });

  it('does not wait when the camera is not inferred', () => {
    const m = new Matcher<Fake>();
    m.addPicture(pic(5), 0);
    expect(m.next(0)).toMatchObject({ seq: 5, kind: 'none', boxes: null });
    m.addDetection(det(5), 10);
    m.next(10);
    m.addPicture(pic(60), 5000);
    expect(m.next(5000)).toMatchObject({ seq: 60, kind: 'none', boxes: null });
  });

  it('makes carried boxes exact when the detection comes late', () => {
    const m = inferred();
    m.addPicture(pic(2), 0);
    m.next(150);
    m.addDetection(det(2), 200);
    expect(m.next(200)).toMatchObject({ picture: null, seq: 2, kind: 'exact' });
    expect(m.next(200)).toBeNull();
  });

  it('never draws boxes of a later picture', () => {
    const m = new Matcher<Fake>();
    m.addDetection(det(9), 0);
    m.addPicture(pic(8), 0);
    expect(m.next(0)).toMatchObject({ seq: 8, kind: 'none', boxes: null });
  });

  it('never carries boxes over a second', () => {
    const m = new Matcher<Fake>();
    m.addDetection(det(1), 1500);
    m.addPicture(pic(11), 1600);
    expect(m.next(1750)).toMatchObject({ kind: 'none', boxes: null });
    const n = new Matcher<Fake>();
    n.addDetection(det(1), 1500);
    n.addPicture(pic(10), 1600);
    expect(n.next(1750)).toMatchObject({ kind: 'carried', boxes: { seq: 1 } });
  });

  it('gives up waiting once a later picture was inferred, and keeps the order', () => {
    const m = inferred();
    m.addPicture(pic(2), 0);
    m.addPicture(pic(3), 10);
    m.addDetection(det(3), 20);
    expect(m.next(20)).toMatchObject({ seq: 2, kind: 'carried', boxes: { seq: 1 } });
    expect(m.next(36)).toMatchObject({ seq: 3, kind: 'exact' });
    expect(m.next(52)).toBeNull();
  });

  it('jumps over a backlog', () => {
    const m = inferred();
    const all = [2, 3, 4, 5].map(pic);
    for (const p of all) m.addPicture(p, 0);
    m.addDetection(det(5), 20);
    expect(m.next(20)).toMatchObject({ seq: 5, kind: 'exact' });
    expect(all.map((p) => p.closed)).toEqual([1, 1, 1, 0]);
  });

  it('learns how long detections take and waits no longer', () => {
    const m = inferred();
    let now = 0;
    for (let seq = 2; seq < 60; seq++) {
      m.addPicture(pic(seq), (now += 100));
      m.addDetection(det(seq), now + 40);
      m.next(now + 40);
    }
    m.addPicture(pic(60), (now += 100));
    const wait = m.deadline()! - now;
    expect(wait).toBeGreaterThan(50);
    expect(wait).toBeLessThan(75);
  });

  it('does not mistake a restarted count for the same moment', () => {
    const m = new Matcher<Fake>();
    m.addDetection(detection(1, 1000), 0);
    m.addPicture(new Fake(1, 60_000), 10);
    expect(m.next(160)).toMatchObject({ seq: 1, kind: 'none', boxes: null });
    m.addDetection(detection(1, 60_000), 200);
    expect(m.next(200)).toMatchObject({ seq: 1, kind: 'exact' });
  });

  it('drops a picture that comes twice and one that comes too late', () => {
    const m = new Matcher<Fake>();
    m.addPicture(pic(5), 0);
    m.next(0);
    const again = pic(5);
    const older = pic(4);
    m.addPicture(again, 1);
    m.addPicture(older, 2);
    expect(m.next(3)).toBeNull();
    expect([again.closed, older.closed]).toEqual([1, 1]);
  });

  it('goes on when the clock of the server is set back', () => {
    const m = new Matcher<Fake>();
    m.addDetection(detection(7, 50_000), 0);
    m.addPicture(new Fake(7, 50_000), 0);
    m.next(0);
    m.addDetection(detection(8, 20_100), 100);
    m.addPicture(new Fake(8, 20_100), 100);
    expect(m.next(100)).toMatchObject({ seq: 8, kind: 'exact', boxes: { seq: 8 } });
  });

  it('goes on when clock and count both begin anew', () => {
    const m = new Matcher<Fake>();
    m.addPicture(new Fake(900, 50_000), 0);
    m.next(0);
    m.addPicture(new Fake(1, 20_000), 500);
    expect(m.next(500)).toBeNull();
    m.addPicture(new Fake(2, 20_100), 1100);
    expect(m.next(1100)).toMatchObject({ seq: 2 });
  });

  it('holds a bounded number and closes everything exactly once', () => {
    const m = inferred();
    const all = Array.from({ length: 30 }, (_, i) => pic(i + 2));
    for (const p of all) m.addPicture(p, 0);
    const shown = m.next(150)!;
    expect(shown.seq).toBe(31);
    m.clear();
    const shownPicture = all.at(-1)!;
    expect(shown.picture).toBe(shownPicture);
    expect(shownPicture.closed).toBe(0);
    expect(all.slice(0, -1).every((p) => p.closed === 1)).toBe(true);
  });

  it('closes what it holds when it is cleared', () => {
    const m = inferred();
    const p = pic(2);
    m.addPicture(p, 0);
    m.clear();
    expect(p.closed).toBe(1);
    expect(m.next(1000)).toBeNull();
  });
});
