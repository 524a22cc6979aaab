// Asks the server how it is, over and over, and says what is known and whether
// it still holds.

import { Backoff } from '../backoff';
import { Store } from '../store';
import type { ServerClock } from './clock';
import { decodeCameras, decodeSystem } from './decode';
import { History } from './history';
import type { Camera, System } from './types';

export type Link =
  | { kind: 'loading' }
  | { kind: 'online' }
  /** Times are of the local wall clock. answers: somebody is there, but gives no good answer. */
  | { kind: 'offline'; since: number; retryAt: number; why: string; answers: boolean };

export interface Snapshot {
  link: Link;
  system: System | null;
  cameras: readonly Camera[];
  /** Local wall clock of the last good answer; 0 before it. */
  at: number;
}

export interface PollerOptions {
  clock: ServerClock;
  /** The session has ended: the user must log in again. */
  onExpired: () => void;
  fetch?: typeof fetch;
  random?: () => number;
}

export const pollMs = 2000;
export const timeoutMs = 8000;

class HttpError extends Error {
  constructor(readonly status: number) {
    super(`the server answered ${status}`);
  }
}

export class Poller {
  readonly store = new Store<Snapshot>({ link: { kind: 'loading' }, system: null, cameras: [], at: 0 });
  readonly history = new History();
  private readonly backoff: Backoff;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private running: AbortController | null = null;
  private paused = true;

  constructor(private readonly options: PollerOptions) {
    this.backoff = new Backoff(1000, 10_000, options.random);
  }

  /** Starts, or goes on after pause; asks at once. */
  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    void this.ask();
  }

  /** Stops asking, e.g. because nobody looks. */
  pause(): void {
    this.paused = true;
    clearTimeout(this.timer);
    this.running?.abort();
    this.running = null;
  }

  /** Asks now instead of at the end of a wait. */
  retry(): void {
    if (this.paused || this.running) return;
    clearTimeout(this.timer);
    void this.ask();
  }

  private async ask(): Promise<void> {
    const run = new AbortController();
    this.running = run;
    const timeout = setTimeout(() => run.abort(new Error(`no answer in ${timeoutMs / 1000} s`)), timeoutMs);
    let wait = pollMs;
    try {
      const [system, cameras] = await Promise.all([
        this.get('/api/v1/system', run.signal),
        this.get('/api/v1/cameras', run.signal),
      ]);
      if (this.running !== run) return;
      this.succeed(decodeSystem(system), decodeCameras(cameras));
    } catch (err) {
      const mine = this.running === run;
      run.abort();
      if (!mine) return;
      wait = this.fail(err);
    } finally {
      clearTimeout(timeout);
    }
    this.running = null;
    this.timer = setTimeout(() => void this.ask(), wait);
  }

  private async get(path: string, signal: AbortSignal): Promise<unknown> {
    const asked = Date.now();
    const answer = await (this.options.fetch ?? fetch)(path, {
      signal,
      headers: { Accept: 'application/json' },
      cache: 'no-store',
    });
    this.options.clock.learn(answer.headers.get('Date'), asked, Date.now());
    if (answer.status === 401) this.options.onExpired();
    if (!answer.ok) throw new HttpError(answer.status);
    return answer.json();
  }

  private succeed(system: System, cameras: Camera[]): void {
    const at = Date.now();
    this.backoff.reset();
    this.history.note(cameras, at);
    this.store.set({ link: { kind: 'online' }, system, cameras, at });
  }

  private fail(err: unknown): number {
    const wait = this.backoff.next();
    const last = this.store.get();
    const now = Date.now();
    const since = last.link.kind === 'offline' ? last.link.since : now;
    this.store.set({ ...last, link: { kind: 'offline', since, retryAt: now + wait, why: reason(err), answers: answers(err) } });
    return wait;
  }
}

function answers(err: unknown): boolean {
  return err instanceof HttpError || err instanceof SyntaxError;
}

// The browser's own words for a failed fetch ("Failed to fetch") say nothing.
function reason(err: unknown): string {
  if (err instanceof HttpError) return err.message;
  if (err instanceof SyntaxError) return 'the answer was not JSON';
  if (err instanceof Error && err.message.startsWith('no answer')) return err.message;
  return 'the server cannot be reached';
}
