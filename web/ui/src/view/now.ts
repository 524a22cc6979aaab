import { useEffect, useState } from 'preact/hooks';

/** Those who want to know the time, by how often: one timer for all of them, as a page has dozens of tiles. */
class Clock {
  private readonly readers = new Set<(now: number) => void>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly every: number) {}

  join(reader: (now: number) => void): () => void {
    this.readers.add(reader);
    this.timer ??= setInterval(() => {
      const now = Date.now();
      for (const tell of this.readers) tell(now);
    }, this.every);
    return () => {
      this.readers.delete(reader);
      if (this.readers.size > 0) return;
      clearInterval(this.timer);
      this.timer = undefined;
    };
  }
}

const clocks = new Map<number, Clock>();

function clockOf(every: number): Clock {
  const clock = clocks.get(every) ?? new Clock(every);
  clocks.set(every, clock);
  return clock;
}

/** The local wall clock, read anew every so many milliseconds. */
export function useNow(every = 1000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => clockOf(every).join(setNow), [every]);
  return now;
}
