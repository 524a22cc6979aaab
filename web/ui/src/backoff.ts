/** Waits between attempts: doubling from first to most, with jitter so that many screens do not come back as one. */
export class Backoff {
  private tries = 0;
  constructor(
    private readonly first: number,
    private readonly most: number,
    private readonly random: () => number = Math.random,
  ) {}

  /** Milliseconds until the next attempt: 75 to 100 % of the step. */
  next(): number {
    const step = Math.min(this.most, this.first * 2 ** this.tries);
    this.tries = Math.min(this.tries + 1, 30);
    return Math.round(step * (0.75 + 0.25 * this.random()));
  }

  reset(): void {
    this.tries = 0;
  }
}
