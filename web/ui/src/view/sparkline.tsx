import type { JSX } from 'preact';
import { historyMs, type Sample } from '../api/history';
import { ms } from '../format';
import { band, line, ceiling } from '../plot';

const width = 240;
const height = 44;

/** Frame age over the last two minutes: the middle as a line, up to p95 as a band. */
export function Sparkline(props: { samples: readonly Sample[]; now: number }): JSX.Element {
  const { samples, now } = props;
  const top = ceiling(samples.map((s) => s.p95));
  const frame = { from: now - historyMs, to: now, top, width, height };
  const last = samples.at(-1);
  const highest = Math.max(0, ...samples.map((s) => s.p95));
  const words = last
    ? `Frame age over two minutes: now ${ms(last.p50)}, 95 of 100 under ${ms(last.p95)}, highest ${ms(highest)}`
    : 'Frame age: nothing measured yet';
  return (
    <figure class="spark" role="img" aria-label={words} title={words}>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
        <path class="spark-base" d={`M0 ${height - 0.5}H${width}`} />
        <path class="spark-band" d={band(samples, frame)} />
        <path class="spark-p95" d={line(samples, 'p95', frame)} />
        <path class="spark-p50" d={line(samples, 'p50', frame)} />
      </svg>
      <figcaption aria-hidden="true">{samples.length > 0 ? ms(top) : ''}</figcaption>
    </figure>
  );
}
