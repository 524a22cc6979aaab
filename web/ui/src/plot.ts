// Paths of the sparkline.

import type { Sample } from './api/history';

export interface Frame {
  /** The span of time, milliseconds. */
  from: number;
  to: number;
  /** The value at the upper edge. */
  top: number;
  width: number;
  height: number;
}

/** Samples further apart than this are not joined: nobody looked in between. */
export const gapMs = 7000;

/** The upper edge of a scale that holds the values: 1, 2 or 5 times a power of ten, at least 50. */
export function ceiling(values: readonly number[]): number {
  const most = Math.max(50, ...values);
  const step = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((m) => m * step).find((t) => t >= most)!;
}

function runs(samples: readonly Sample[]): Sample[][] {
  const out: Sample[][] = [];
  for (const s of samples) {
    const run = out.at(-1);
    const last = run?.at(-1);
    if (run && last && s.at - last.at <= gapMs) run.push(s);
    else out.push([s]);
  }
  return out;
}

function point(at: number, value: number, f: Frame): string {
  const x = ((at - f.from) / (f.to - f.from)) * f.width;
  const y = f.height - Math.min(1, value / f.top) * (f.height - 1);
  return `${x.toFixed(1)} ${y.toFixed(1)}`;
}

/** A broken line through one of the values. */
export function line(samples: readonly Sample[], value: 'p50' | 'p95', f: Frame): string {
  return runs(samples)
    .map((run) => `M${run.map((s) => point(s.at, s[value], f)).join('L')}`)
    .join('');
}

/** The area between both values. */
export function band(samples: readonly Sample[], f: Frame): string {
  return runs(samples)
    .filter((run) => run.length > 1)
    .map((run) => {
      const upper = run.map((s) => point(s.at, s.p95, f));
      const lower = run.map((s) => point(s.at, s.p50, f)).reverse();
      return `M${[...upper, ...lower].join('L')}Z`;
    })
    .join('');
}
