import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PictureStream, settleMs, silenceMs, type Jpeg } from '../src/live/stream';

/** One request of the stream, in the hands of the test. */
class Call {
  cameras: string[];
  body!: ReadableStreamDefaultController<Uint8Array>;
  aborted = false;
  private answer!: (r: Response) => void;
  readonly promise: Promise<Response>;

  constructor(url: string, signal: AbortSignal) {
    this.cameras = new URL(url, 'http://x').searchParams.getAll('camera');
    this.promise = new Promise((resolve, reject) => {
      this.answer = resolve;
      signal.addEventListener('abort', () => {
        this.aborted = true;
        reject(new Error('aborted'));
        try {
          this.body.error(new Error('aborted'));
        } catch {
          // There is none, or it had ended already.
        }
      });
    });
  }

  refuse(status: number, body: string): void {
    this.answer(new Response(body, { status }));
  }

  accept(type = 'multipart/mixed; boundary=b'): void {
    const stream = new ReadableStream<Uint8Array>({ start: (c) => void (this.body = c) });
    this.answer(new Response(stream, { headers: { 'Content-Type': type } }));
  }

  picture(camera: string, seq: number | string, at = '2026-01-01T00:00:00.5Z'): void {
    const head = `--b\r\nContent-Length: 2\r\nX-Camera: ${camera}\r\nX-Seq: ${seq}\r\nX-Captured-At: ${at}\r\n\r\nhi\r\n`;
    this.body.enqueue(new TextEncoder().encode(head));
  }
}

let calls: Call[];
let got: Jpeg[];
let expired: number;
let problem: string;
let stream: PictureStream;

beforeEach(() => {
  vi.useFakeTimers();
  calls = [];
  got = [];
  expired = 0;
  problem = '';
  const fake = (url: string, init: RequestInit): Promise<Response> => {
    const call = new Call(url, init.signal!);
    calls.push(call);
    return call.promise;
  };
  stream = new PictureStream({
    onPicture: (p) => got.push(p),
    onExpired: () => expired++,
    onProblem: (words) => (problem = words),
    fetch: fake as typeof fetch,
    random: () => 1,
  });
});
afterEach(() => {
  stream.watch([]);
  vi.useRealTimers();
});

const turn = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

async function opened(...cameras: string[]): Promise<Call> {
  stream.watch(cameras);
  await turn();
  calls[0]!.accept();
  await turn();
  return calls[0]!;
}

describe('PictureStream', () => {
  it('asks for the cameras and hands on their pictures', async () => {
    const call = await opened('a', 'b');
    expect(call.cameras).toEqual(['a', 'b']);
    call.picture('b', 7);
    await turn();
    expect(got).toMatchObject([{ camera: 'b', seq: 7, capturedAt: Date.UTC(2026, 0, 1, 0, 0, 0, 500) }]);
    expect([...got[0]!.bytes]).toEqual([104, 105]);
  });

  it('leaves out pictures without a name, a count or a time', async () => {
    const call = await opened('a');
    call.picture('', 1);
    call.picture('a', 'x');
    call.picture('a', 1, 'yesterday');
    call.picture('a', 2);
    await turn();
    expect(got.map((p) => p.seq)).toEqual([2]);
  });

  it('opens once for many changes, and plays on until the new one answers', async () => {
    const old = await opened('a');
    stream.watch(['a', 'b']);
    await turn(settleMs - 1);
    stream.watch(['b', 'c']);
    await turn(settleMs - 1);
    expect(calls).toHaveLength(1);
    await turn(1);
    expect(calls).toHaveLength(2);
    expect(calls[1]!.cameras).toEqual(['b', 'c']);
    old.picture('a', 8);
    await turn();
    expect(got.map((p) => p.seq)).toEqual([8]);
    calls[1]!.accept();
    await turn();
    expect(old.aborted).toBe(true);
    expect(calls[1]!.aborted).toBe(false);
  });

  it('closes at once when nothing is watched', async () => {
    const call = await opened('a');
    stream.watch([]);
    expect(call.aborted).toBe(true);
    await turn(60_000);
    expect(calls).toHaveLength(1);
  });

  it('opens again after an end, later each time, and soon after pictures came', async () => {
    stream.watch(['a']);
    await turn();
    for (const wait of [500, 1000, 2000]) {
      const n = calls.length;
      calls.at(-1)!.accept('text/html');
      await turn(wait - 1);
      expect(calls).toHaveLength(n);
      await turn(1);
      expect(calls).toHaveLength(n + 1);
    }
    const call = calls.at(-1)!;
    call.accept();
    await turn();
    call.picture('a', 1);
    await turn();
    call.body.close();
    await turn(500);
    expect(calls).toHaveLength(5);
  });

  it('opens again after bytes that are no parts', async () => {
    const call = await opened('a');
    call.body.enqueue(new TextEncoder().encode('--b\r\nnonsense\r\n\r\n'));
    await turn(500);
    expect(call.aborted).toBe(true);
    expect(calls).toHaveLength(2);
  });

  it('gives up a connection that is silent, and only such a one', async () => {
    const call = await opened('a');
    await turn(silenceMs - 100);
    call.picture('a', 1);
    await turn(silenceMs);
    stream.checkSilence();
    expect(calls).toHaveLength(1);
    await turn(1);
    stream.checkSilence();
    expect(calls).toHaveLength(2);
  });

  it('hands on why there are no pictures, until there are', async () => {
    stream.watch(['a']);
    await turn();
    calls[0]!.refuse(503, '{"error":{"code":"busy","message":"too many viewers"}}');
    await turn();
    expect(problem).toBe('too many viewers');
    await turn(500);
    calls[1]!.refuse(502, '<html>');
    await turn();
    expect(problem).toBe('');
    await turn(1000);
    calls[2]!.refuse(503, '{"error":{"message":"too many viewers"}}');
    await turn(2000);
    calls[3]!.accept();
    await turn();
    expect(problem).toBe('');
  });

  it('says when the session has ended', async () => {
    stream.watch(['a']);
    await turn();
    calls[0]!.refuse(401, '{}');
    await turn();
    expect(expired).toBe(1);
  });
});
