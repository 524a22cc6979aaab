import type { Camera } from './types';

/** Frame age at one moment, milliseconds. */
export interface Sample {
  at: number;
  p50: number;
  p95: number;
}

/** How far back the sparklines go. */
export const historyMs = 120_000;

/** Frame ages of the last two minutes, by camera. Kept in the page alone. */
export class History {
  private samples = new Map<string, Sample[]>();

  /** Notes the ages of the cameras that are live; a camera that is gone is forgotten. */
  note(cameras: readonly Camera[], at: number): void {
    const next = new Map<string, Sample[]>();
    for (const c of cameras) {
      const kept = (this.samples.get(c.id) ?? []).filter((s) => s.at > at - historyMs);
      if (c.state === 'live' && c.age) kept.push({ at, p50: c.age.p50, p95: c.age.p95 });
      next.set(c.id, kept);
    }
    this.samples = next;
  }

  of(camera: string): readonly Sample[] {
    return this.samples.get(camera) ?? [];
  }
}
