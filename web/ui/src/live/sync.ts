// Which picture to show, and with which boxes. Pictures and detections come on
// two connections and in any relation to each other; boxes of one moment must
// never lie over a picture of another as if they belonged to it.

import type { Detection } from '../api/types';

/** How boxes relate to their picture: of the same picture, or carried over from an earlier one. */
export type BoxKind = 'exact' | 'carried' | 'none';

/** What the matcher needs of a picture; close is called on every picture that it drops. */
export interface Picture {
  seq: number;
  /** Wall clock of the server, milliseconds since 1970. */
  capturedAt: number;
  close(): void;
}

export interface Shown<P extends Picture> {
  /** Null when the picture on the screen stays and only its boxes change. */
  picture: P | null;
  seq: number;
  capturedAt: number;
  boxes: Detection | null;
  kind: BoxKind;
}

/** The longest that a picture waits for the detection of its own seq. */
export const holdMs = 150;
/** How much older than the picture a carried detection may be. */
export const carryMs = 1000;
/** Without a detection for this long the camera is not being inferred: nothing to wait for. */
export const quietMs = 2000;

const maxHeld = 8;
const maxKept = 16;
/** Pictures ready at the same time: so many are played one after another, more are a backlog. */
const maxReady = 3;

interface Held<P> {
  picture: P;
  deadline: number;
}

/** One camera's matcher. Times named `now` are of one monotonic clock. */
export class Matcher<P extends Picture> {
  private held: Held<P>[] = [];
  private kept: Detection[] = [];
  private lastDetectionAt = -Infinity;
  private lastPictureAt = -Infinity;
  private arrivals = new Map<number, number>();
  // How long after a picture its detection comes. Where only every third
  // picture is inferred the others cannot know that theirs will not come: they
  // wait as long as a detection usually takes, which keeps the pace of the
  // camera, and not the full hold.
  private lag = holdMs;
  private shown: Shown<P> | null = null;

  /** Takes ownership of the picture. */
  addPicture(picture: P, now: number): void {
    if (this.isOld(picture, now)) {
      picture.close();
      return;
    }
    this.lastPictureAt = now;
    this.noteArrival(picture.seq, now);
    const wait = now - this.lastDetectionAt < quietMs ? Math.min(holdMs, this.lag * 1.25 + 10) : 0;
    this.held.push({ picture, deadline: now + wait });
    if (this.held.length > maxHeld) this.held.shift()!.picture.close();
  }

  addDetection(detection: Detection, now: number): void {
    this.lastDetectionAt = now;
    const arrived = this.arrivals.get(detection.seq);
    if (arrived !== undefined) this.learnLag(Math.max(0, now - arrived));
    const last = this.kept.at(-1);
    if (last && detection.capturedAt <= last.capturedAt) {
      if (detection.seq <= last.seq) return;
      // The server's clock was set back: what is kept is of another time.
      this.kept = [];
    }
    this.kept.push(detection);
    if (this.kept.length > maxKept) this.kept.shift();
  }

  /**
   * What to put on the screen now, or null for no change. The picture then
   * belongs to the caller, who asks again at the next repaint.
   */
  next(now: number): Shown<P> | null {
    const ready = this.readyCount(now);
    if (ready === 0) return this.upgrade();
    const late = ready > maxReady ? ready - 1 : 0;
    for (const old of this.held.splice(0, late)) old.picture.close();
    const { picture } = this.held.shift()!;
    this.shown = { picture, seq: picture.seq, capturedAt: picture.capturedAt, ...this.boxesFor(picture) };
    return this.shown;
  }

  /** When next must be called again though nothing arrives, or null. */
  deadline(): number | null {
    return this.held[0]?.deadline ?? null;
  }

  /** Drops everything that is held, e.g. because the camera left the screen. */
  clear(): void {
    for (const { picture } of this.held) picture.close();
    this.held = [];
    this.kept = [];
    this.shown = null;
  }

  // Two connections overlap while the set of cameras changes: the same picture,
  // or an older one, may come a second time. A count that began anew and a
  // clock that was set back look alike, but go on: after a second they are believed.
  private isOld(picture: P, now: number): boolean {
    const newest = this.held.at(-1)?.picture ?? this.shown;
    if (!newest || now - this.lastPictureAt > carryMs) return false;
    return picture.seq <= newest.seq && picture.capturedAt <= newest.capturedAt;
  }

  private noteArrival(seq: number, now: number): void {
    this.arrivals.delete(seq);
    this.arrivals.set(seq, now);
    if (this.arrivals.size > maxKept) this.arrivals.delete(this.arrivals.keys().next().value!);
  }

  // Rises at once and falls slowly: a wait that is too short costs a flicker
  // of dashed boxes, one that is too long only a few milliseconds.
  private learnLag(sample: number): void {
    this.lag = sample > this.lag ? Math.min(sample, holdMs) : this.lag + (sample - this.lag) * 0.1;
  }

  // A picture is ready with its own detection, at its deadline, or once a
  // detection of a later picture says that its own will not come. Everything
  // before the newest ready one is ready too: time does not run backwards.
  private readyCount(now: number): number {
    const newest = this.kept.at(-1)?.capturedAt ?? -Infinity;
    for (let i = this.held.length - 1; i >= 0; i--) {
      const { picture, deadline } = this.held[i]!;
      if (deadline <= now || newest > picture.capturedAt || this.exact(picture)) return i + 1;
    }
    return 0;
  }

  private upgrade(): Shown<P> | null {
    if (!this.shown || this.shown.kind === 'exact') return null;
    const boxes = this.boxesFor(this.shown);
    if (boxes.kind !== 'exact') return null;
    this.shown = { ...this.shown, ...boxes, picture: null };
    return this.shown;
  }

  private boxesFor(p: { seq: number; capturedAt: number }): { boxes: Detection | null; kind: BoxKind } {
    const exact = this.exact(p);
    if (exact) return { boxes: exact, kind: 'exact' };
    const carried = this.kept.findLast(
      (d) => d.seq <= p.seq && d.capturedAt <= p.capturedAt && p.capturedAt - d.capturedAt < carryMs,
    );
    return carried ? { boxes: carried, kind: 'carried' } : { boxes: null, kind: 'none' };
  }

  // A camera that reconnects may count from the start again: the same seq alone
  // does not make two moments one.
  private exact(p: { seq: number; capturedAt: number }): Detection | undefined {
    return this.kept.findLast((d) => d.seq === p.seq && Math.abs(d.capturedAt - p.capturedAt) < carryMs);
  }
}
