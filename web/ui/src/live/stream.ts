// The pictures of many cameras over one connection: a browser opens six to a
// host, and a wall screen shows more than six cameras.

import { decodeError, time } from '../api/decode';
import { Backoff } from '../backoff';
import { boundaryOf, MultipartParser, type Part } from './multipart';

/** A picture as it came. Times are milliseconds since 1970 by the server's clock. */
export interface Jpeg {
  camera: string;
  seq: number;
  capturedAt: number;
  bytes: Uint8Array<ArrayBuffer>;
}

export interface StreamOptions {
  onPicture: (picture: Jpeg) => void;
  onExpired: () => void;
  /** Why there are no pictures, in the server's words; '' when there are, or when nobody said. */
  onProblem?: (words: string) => void;
  fetch?: typeof fetch;
  random?: () => number;
}

/** The set of cameras follows the eye while it scrolls: only where it rests is asked for. */
export const settleMs = 250;
/** With pictures due, a connection that is silent for so long is dead. */
export const silenceMs = 10_000;

export class PictureStream {
  private cameras: readonly string[] = [];
  private run: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private lastByteAt = 0;
  private readonly backoff: Backoff;

  constructor(private readonly options: StreamOptions) {
    this.backoff = new Backoff(500, 10_000, options.random);
  }

  /** Replaces the set of cameras, once it has settled; none closes the connection at once. */
  watch(cameras: readonly string[]): void {
    this.cameras = cameras;
    clearTimeout(this.timer);
    if (cameras.length === 0) {
      this.run?.abort();
      this.run = null;
      return;
    }
    this.timer = setTimeout(() => this.open(), this.run ? settleMs : 0);
  }

  /** Opens anew when nothing came for too long; to be called now and then while a watched camera is live. */
  checkSilence(): void {
    if (this.run && Date.now() - this.lastByteAt > silenceMs) this.open();
  }

  private open(): void {
    clearTimeout(this.timer);
    // The old connection plays on until the new one answers, so that a tile
    // that stays in view does not freeze while another one scrolls in.
    const old = this.run;
    const run = new AbortController();
    this.run = run;
    this.lastByteAt = Date.now();
    void this.read(run, () => old?.abort());
  }

  private async read(run: AbortController, onAnswer: () => void): Promise<void> {
    try {
      const query = this.cameras.map((c) => `camera=${encodeURIComponent(c)}`).join('&');
      const answer = await (this.options.fetch ?? fetch)(`/api/v1/live?${query}&annotated=0`, {
        signal: run.signal,
        cache: 'no-store',
      });
      onAnswer();
      if (answer.status === 401) this.options.onExpired();
      this.options.onProblem?.(answer.ok ? '' : decodeError(await answer.text()));
      const boundary = boundaryOf(answer.headers.get('Content-Type'));
      if (!answer.ok || !answer.body || boundary === null) throw new Error(`no pictures: answer ${answer.status}`);
      await this.pump(answer.body, boundary);
    } catch {
      // Whatever ended it: what the user needs to know comes from the poller.
    }
    onAnswer();
    run.abort();
    if (this.run !== run) return;
    this.timer = setTimeout(() => this.open(), this.backoff.next());
  }

  private async pump(body: ReadableStream<Uint8Array>, boundary: string): Promise<void> {
    const parser = new MultipartParser(boundary, (part) => this.take(part));
    const reader = body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.lastByteAt = Date.now();
      parser.push(value);
    }
  }

  private take(part: Part): void {
    const camera = part.headers.get('x-camera') ?? '';
    const seq = Number(part.headers.get('x-seq') ?? NaN);
    const capturedAt = time(part.headers.get('x-captured-at'));
    if (camera === '' || !Number.isSafeInteger(seq) || capturedAt === null) return;
    this.backoff.reset();
    this.options.onPicture({ camera, seq, capturedAt, bytes: part.body });
  }
}
