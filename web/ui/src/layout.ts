// How the grid lies.

import type { Camera } from './api/types';

/** The shape that most of the cameras have, so that most tiles have no bars. */
export function commonAspect(cameras: readonly Camera[]): number {
  const votes = new Map<number, number>();
  for (const c of cameras) {
    if (c.width <= 0 || c.height <= 0) continue;
    const aspect = Math.round((Math.min(2.4, Math.max(1, c.width / c.height)) * 100)) / 100;
    votes.set(aspect, (votes.get(aspect) ?? 0) + 1);
  }
  const best = [...votes].sort((a, b) => b[1] - a[1])[0];
  return best ? best[0] : 1.78;
}

interface Place {
  left: number;
  top: number;
}

/** The tile that an arrow key leads to from tile at, or -1. Left and right run on over the ends of rows. */
export function neighbour(places: readonly Place[], at: number, key: string): number {
  const here = places[at];
  if (!here) return -1;
  switch (key) {
    case 'ArrowLeft':
      return at - 1;
    case 'ArrowRight':
      return at + 1 < places.length ? at + 1 : -1;
    case 'ArrowUp':
    case 'ArrowDown':
      return vertical(places, here, key === 'ArrowDown');
    case 'Home':
      return 0;
    case 'End':
      return places.length - 1;
    default:
      return -1;
  }
}

function vertical(places: readonly Place[], here: Place, down: boolean): number {
  let best = -1;
  let least = Infinity;
  places.forEach((p, i) => {
    const dy = down ? p.top - here.top : here.top - p.top;
    if (dy < 2) return;
    const cost = dy * 10 + Math.abs(p.left - here.left);
    if (cost < least) [least, best] = [cost, i];
  });
  return best;
}
