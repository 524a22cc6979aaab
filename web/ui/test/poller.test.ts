import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ServerClock } from '../src/api/clock';
import { Poller, pollMs, timeoutMs } from '../src/api/poller';

type Answer = () => Promise<Response>;

const good: Answer = async () => Response.json([{ id: 'gate', state: 'live', age_ms: { p50: 1, p95: 2, p99: 3 } }]);
const status = (code: number): Answer => async () => Response.json({}, { status: code });
const dead: Answer = () => Promise.reject(new TypeError('Failed to fetch'));
const never: Answer = () => new Promise(() => {});

let answer: Answer;
let asked: number;
let expired: number;
let poller: Poller;

beforeEach(() => {
  vi.useFakeTimers();
  answer = good;
  asked = 0;
  expired = 0;
  const fake = (_: unknown, init?: RequestInit): Promise<Response> => {
    asked++;
    return new Promise((resolve, reject) => {
      init?.signal?.addEventListener('abort', () => reject(init.signal!.reason));
      answer().then(resolve, reject);
    });
  };
  poller = new Poller({
    clock: new ServerClock(),
    onExpired: () => expired++,
    fetch: fake as typeof fetch,
    random: () => 1,
  });
});
afterEach(() => {
  poller.pause();
  vi.useRealTimers();
});

const link = () => poller.store.get().link;

describe('Poller', () => {
  it('asks at once and then every two seconds', async () => {
    poller.resume();
    await vi.advanceTimersByTimeAsync(0);
    expect(link().kind).toBe('online');
    expect(poller.store.get().cameras[0]?.id).toBe('gate');
    expect(asked).toBe(2);
    await vi.advanceTimersByTimeAsync(pollMs);
    expect(asked).toBe(4);
    expect(poller.history.of('gate')).toHaveLength(2);
  });

  it('does not ask while it is paused', async () => {
    poller.resume();
    await vi.advanceTimersByTimeAsync(0);
    poller.pause();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toBe(2);
    poller.resume();
    await vi.advanceTimersByTimeAsync(0);
    expect(asked).toBe(4);
  });

  it('waits longer and longer when the server is gone, keeps what it knew, and comes back', async () => {
    poller.resume();
    await vi.advanceTimersByTimeAsync(0);
    answer = dead;
    await vi.advanceTimersByTimeAsync(pollMs);
    const since = Date.now();
    const waits: number[] = [];
    for (let i = 0; i < 6; i++) {
      const l = link();
      if (l.kind !== 'offline') throw new Error('online');
      expect(l).toMatchObject({ since, why: 'the server cannot be reached' });
      waits.push(l.retryAt - Date.now());
      await vi.advanceTimersByTimeAsync(l.retryAt - Date.now());
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 10_000, 10_000]);
    expect(poller.store.get().cameras).toHaveLength(1);
    answer = good;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(link().kind).toBe('online');
  });

  it('takes silence for a dead server', async () => {
    answer = never;
    poller.resume();
    await vi.advanceTimersByTimeAsync(timeoutMs - 1);
    expect(link().kind).toBe('loading');
    await vi.advanceTimersByTimeAsync(1);
    expect(link()).toMatchObject({ kind: 'offline', why: 'no answer in 8 s' });
  });

  it.each([
    [500, 'the server answered 500'],
    [404, 'the server answered 404'],
  ])('says that the server answered %d', async (code, why) => {
    answer = status(code);
    poller.resume();
    await vi.advanceTimersByTimeAsync(0);
    expect(link()).toMatchObject({ kind: 'offline', why });
    expect(expired).toBe(0);
  });

  it('says when the session has ended', async () => {
    answer = status(401);
    poller.resume();
    await vi.advanceTimersByTimeAsync(0);
    expect(expired).toBeGreaterThan(0);
  });

  it('does not take a proxy’s page for an answer', async () => {
    answer = async () => new Response('<html>', { status: 200 });
    poller.resume();
    await vi.advanceTimersByTimeAsync(0);
    expect(link()).toMatchObject({ kind: 'offline', why: 'the answer was not JSON' });
  });

  it('asks now when it is told to', async () => {
    answer = dead;
    poller.resume();
    await vi.advanceTimersByTimeAsync(0);
    answer = good;
    poller.retry();
    await vi.advanceTimersByTimeAsync(0);
    expect(link().kind).toBe('online');
  });
});
