// Numbers as the dashboard writes them. Digits are of one width (see the
// stylesheet), and none of these jumps between zero and one decimal.

/** Frames a second: one decimal, which also tells 29.97 from 30 apart no more than an eye would. */
export function fps(n: number): string {
  return n.toFixed(1);
}

/** Milliseconds: whole ones, and seconds from one second up, which also keeps four columns in a narrow tile. */
export function ms(n: number): string {
  return n < 999.5 ? `${Math.round(n)} ms` : `${(n / 1000).toFixed(1)} s`;
}

export function bytes(n: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export function count(n: number): string {
  return grouped.format(n);
}

export function percent(fraction: number): string {
  return `${Math.round(fraction * 100)} %`;
}

/** A span for people: its two largest units, never more exact than that. */
export function span(milliseconds: number): string {
  const s = Math.max(0, Math.floor(milliseconds / 1000));
  if (s < 60) return `${s} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return s % 60 && m < 10 ? `${m} min ${s % 60} s` : `${m} min`;
  const h = Math.floor(m / 60);
  if (h < 48) return m % 60 ? `${h} h ${m % 60} min` : `${h} h`;
  return `${Math.floor(h / 24)} days`;
}
