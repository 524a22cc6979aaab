import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Camera } from '../api/types';
import { commonAspect, neighbour } from '../layout';
import { Empty } from './empty';
import { OverlaySwitches } from './switches';
import { Tile } from './tile';

export function Grid(props: { cameras: readonly Camera[]; from: string | null }): JSX.Element {
  const { cameras, from } = props;
  const list = useRef<HTMLUListElement>(null);
  const aspect = commonAspect(cameras);
  useEffect(() => list.current?.style.setProperty('--aspect', String(aspect)), [aspect]);
  // Back from one camera large: the focus returns to its tile.
  useEffect(() => {
    if (from !== null) linkIn(list.current?.querySelector(`[data-camera="${from}"]`))?.focus();
  }, []);
  if (cameras.length === 0) return <Empty />;
  return (
    <>
      <div class="page-head">
        <h1 tabIndex={-1}>Cameras</h1>
        <OverlaySwitches />
      </div>
      <ul ref={list} class="grid" data-count={Math.min(cameras.length, 10)} onKeyDown={moveFocus} data-testid="grid">
        {cameras.map((c) => (
          <Tile key={c.id} camera={c} />
        ))}
      </ul>
    </>
  );
}

function linkIn(tile: Element | null | undefined): HTMLElement | null {
  return tile?.querySelector<HTMLElement>('.tile-link') ?? null;
}

// Tab goes through the tiles one by one; the arrows go where they point.
function moveFocus(e: KeyboardEvent & { currentTarget: HTMLElement }): void {
  if (e.altKey || e.ctrlKey || e.metaKey || e.shiftKey) return;
  const tiles = [...e.currentTarget.children];
  const at = tiles.findIndex((t) => t.contains(document.activeElement));
  const to = at < 0 ? -1 : neighbour(tiles.map((t) => t.getBoundingClientRect()), at, e.key);
  if (to < 0) return;
  e.preventDefault();
  linkIn(tiles[to])?.focus();
  tiles[to]?.scrollIntoView({ block: 'nearest' });
}
