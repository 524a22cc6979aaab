// The age of a picture is a difference of two clocks: the server's, which
// stamped it, and the browser's. Their offset is learnt from the Date header of
// the answers that are fetched anyway. That header is cut to seconds, so each
// answer says only that the offset lies in an interval a little wider than a
// second; the intervals of a few answers together leave a narrow one.

/** How fast the clocks may drift apart, milliseconds per millisecond. */
const drift = 0.0005;

export class ServerClock {
  private low = -Infinity;
  private high = Infinity;
  private at = 0;

  /** Learns from an answer: its Date header, and the local wall clock when it was asked for and when it came. */
  learn(date: string | null, asked: number, came: number): void {
    const stamp = date === null ? NaN : Date.parse(date);
    if (!Number.isFinite(stamp) || came < asked) return;
    this.widen(came);
    const low = stamp - came;
    const high = stamp + 1000 - asked;
    this.low = Math.max(this.low, low);
    this.high = Math.min(this.high, high);
    if (this.low > this.high) {
      // One of the clocks was set: what was known before is void.
      this.low = low;
      this.high = high;
    }
  }

  /** The least age in milliseconds that a moment of the server's clock can have at local time now; 0 while nothing is known. */
  age(moment: number, now: number): number {
    if (this.low === -Infinity) return 0;
    const slack = Math.max(0, now - this.at) * drift;
    return Math.max(0, now + this.low - slack - moment);
  }

  /** The server's clock at local time now; the local one while nothing is known. */
  now(now: number): number {
    return this.low === -Infinity ? now : now + (this.low + this.high) / 2;
  }

  private widen(now: number): void {
    const slack = Math.max(0, now - this.at) * drift;
    this.low -= slack;
    this.high += slack;
    this.at = now;
  }
}
