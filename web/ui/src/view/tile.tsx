import type { JSX } from 'preact';
import { useApp, useSnapshot } from '../app';
import type { Camera } from '../api/types';
import { count, fps, ms, span } from '../format';
import { linkTo } from '../route';
import { StateChip, useShownState } from './chip';
import { DropLine, ReducedLine } from './drops';
import { Picture } from './picture';
import { Sparkline } from './sparkline';

export function Tile({ camera }: { camera: Camera }): JSX.Element {
  const state = useShownState(camera.state);
  return (
    <li class="tile" data-testid="tile" data-camera={camera.id} data-state={state}>
      <Picture camera={camera} />
      <div class="tile-body">
        <div class="tile-head">
          <h2 class="outside">
            <a class="tile-link" href={linkTo({ page: 'camera', id: camera.id })}>
              {camera.name}
            </a>
          </h2>
          <StateChip state={camera.state} />
        </div>
        {camera.state === 'live' ? <LiveFigures camera={camera} known={state !== 'unknown'} /> : <Standing camera={camera} />}
        <ReducedLine camera={camera} />
        <DropLine camera={camera} />
      </div>
    </li>
  );
}

function LiveFigures({ camera, known }: { camera: Camera; known: boolean }): JSX.Element {
  const { poller } = useApp();
  const { at } = useSnapshot();
  const age = known ? camera.age : null;
  return (
    <div class="measures">
      <dl class="figures">
        <Figure label="Camera" value={known ? fps(camera.fps) : ''} unit="fps" />
        {camera.detecting ? (
          <Figure label="Analysed" value={known ? fps(camera.inferredFps) : ''} unit="fps" />
        ) : (
          <Figure label="Analysed" value="off" />
        )}
        <Figure label="Age p50" value={age ? ms(age.p50) : ''} />
        <Figure label="Age p95" value={age ? ms(age.p95) : ''} />
      </dl>
      <Sparkline samples={poller.history.of(camera.id)} now={at} />
    </div>
  );
}

/** What can be said of a camera that gives no pictures. */
function Standing({ camera }: { camera: Camera }): JSX.Element {
  const { clock } = useApp();
  const { at } = useSnapshot();
  return (
    <dl class="figures">
      <Figure label="For" value={camera.since === null ? '' : span(clock.now(at) - camera.since)} />
      <Figure label="Tries" value={camera.attempts > 0 ? count(camera.attempts) : ''} />
      <Figure label="Pictures" value={camera.frames > 0 ? count(camera.frames) : ''} />
      <Figure label="Damaged" value={camera.damaged > 0 ? count(camera.damaged) : ''} />
    </dl>
  );
}

function Figure(props: { label: string; value: string; unit?: string }): JSX.Element {
  return (
    <div class="figure">
      <dt>{props.label}</dt>
      <dd>
        {props.value === '' ? <span class="none">–</span> : props.value}
        {props.value !== '' && props.unit ? <small> {props.unit}</small> : null}
      </dd>
    </div>
  );
}
