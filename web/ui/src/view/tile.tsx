import type { JSX } from 'preact';
import { useApp } from '../app';
import type { Camera } from '../api/types';
import { fps, ms } from '../format';
import { linkTo } from '../route';
import { StateChip } from './chip';
import { DropLine } from './drops';
import { Picture } from './picture';
import { Sparkline } from './sparkline';

export function Tile({ camera }: { camera: Camera }): JSX.Element {
  const app = useApp();
  const live = camera.state === 'live';
  return (
    <li class="tile" data-testid="tile" data-camera={camera.id} data-state={camera.state}>
      <Picture camera={camera} />
      <div class="tile-head">
        <h2 class="outside">
          <a class="tile-link" href={linkTo({ page: 'camera', id: camera.id })}>
            {camera.name}
          </a>
        </h2>
        <StateChip state={camera.state} />
      </div>
      <dl class="figures">
        <Figure label="Camera" value={live ? fps(camera.fps) : null} unit="fps" />
        <Figure label="Analysed" value={live ? analysed(camera) : null} unit={camera.detecting ? 'fps' : ''} />
        <Figure label="Age p50" value={live && camera.age ? ms(camera.age.p50) : null} />
        <Figure label="Age p95" value={live && camera.age ? ms(camera.age.p95) : null} />
      </dl>
      <Sparkline samples={app.poller.history.of(camera.id)} now={app.poller.store.get().at} />
      <DropLine camera={camera} />
    </li>
  );
}

function analysed(camera: Camera): string {
  return camera.detecting ? fps(camera.inferredFps) : 'off';
}

function Figure(props: { label: string; value: string | null; unit?: string }): JSX.Element {
  return (
    <div class="figure">
      <dt>{props.label}</dt>
      <dd>
        {props.value === null ? <span class="none">–</span> : props.value}
        {props.value !== null && props.unit ? <small> {props.unit}</small> : null}
      </dd>
    </div>
  );
}
