// One camera large, with everything that is known about it.

import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useApp, useSnapshot } from '../app';
import type { Camera, Detection, Trouble } from '../api/types';
import { bytes, count, fps, ms, span } from '../format';
import { lateMs } from '../freshness';
import { hueOf } from '../live/boxes';
import type { Screen } from '../live/screen';
import { go, linkTo } from '../route';
import { codecWords, memoryWords, stageWords, tlsWords, trackWords } from '../words';
import { StateChip, useShownState } from './chip';
import { DropTable, ReducedLine } from './drops';
import { Facts } from './facts';
import { Arrow, Close } from './icons';
import { useNow } from './now';
import { Picture } from './picture';
import { Sparkline } from './sparkline';
import { OverlaySwitches } from './switches';

interface CameraPageProps {
  id: string;
  camera: Camera | undefined;
  cameras: readonly Camera[];
}

export function CameraPage({ id, camera, cameras }: CameraPageProps): JSX.Element {
  useKeys(id, cameras);
  const [screen, setScreen] = useState<Screen | null>(null);
  const state = useShownState(camera?.state ?? 'connecting');
  if (!camera) return <NoSuchCamera id={id} />;
  return (
    <article class="large" data-testid="large" data-camera={camera.id} data-state={state}>
      <div class="page-head">
        <h1 class="outside" tabIndex={-1}>
          {camera.name}
        </h1>
        <StateChip state={camera.state} />
        <OverlaySwitches />
        <Walk id={id} cameras={cameras} />
      </div>
      <div class="large-picture">
        <Picture camera={camera} onScreen={setScreen} />
      </div>
      <div class="side">
        <AgePanel camera={camera} />
        <SeenPanel screen={screen} camera={camera} />
        <Panel title="Skipped pictures">
          <DropTable camera={camera} />
        </Panel>
        <StreamPanel camera={camera} />
      </div>
    </article>
  );
}

function NoSuchCamera({ id }: { id: string }): JSX.Element {
  return (
    <section class="empty" data-testid="no-camera">
      <h1 tabIndex={-1}>No camera “{id}”</h1>
      <p>It is not, or no longer, in the configuration.</p>
      <p>
        <a class="button" href={linkTo({ page: 'cameras' })}>
          All cameras
        </a>
      </p>
    </section>
  );
}

function beside(id: string, cameras: readonly Camera[], step: number): string | null {
  const at = cameras.findIndex((c) => c.id === id);
  if (at < 0 || cameras.length < 2) return null;
  return cameras[(at + step + cameras.length) % cameras.length]!.id;
}

function useKeys(id: string, cameras: readonly Camera[]): void {
  useEffect(() => {
    const press = (e: KeyboardEvent): void => {
      if (e.altKey || e.ctrlKey || e.metaKey || e.shiftKey || e.defaultPrevented) return;
      const to = e.key === 'ArrowLeft' ? beside(id, cameras, -1) : e.key === 'ArrowRight' ? beside(id, cameras, 1) : null;
      if (to !== null) go({ page: 'camera', id: to });
      else if (e.key === 'Escape') go({ page: 'cameras' });
      else return;
      e.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [id, cameras]);
}

function Walk({ id, cameras }: { id: string; cameras: readonly Camera[] }): JSX.Element {
  const before = beside(id, cameras, -1);
  const after = beside(id, cameras, 1);
  return (
    <nav class="walk" aria-label="Other cameras">
      {before !== null ? (
        <a class="icon-button" href={linkTo({ page: 'camera', id: before })} aria-label="Previous camera" title="Previous camera (←)">
          <Arrow to="left" />
        </a>
      ) : null}
      {after !== null ? (
        <a class="icon-button" href={linkTo({ page: 'camera', id: after })} aria-label="Next camera" title="Next camera (→)">
          <Arrow to="right" />
        </a>
      ) : null}
      <a class="icon-button" href={linkTo({ page: 'cameras' })} aria-label="All cameras" title="All cameras (Esc)" data-testid="close">
        <Close />
      </a>
    </nav>
  );
}

function Panel(props: { title: string; note?: string; children: preact.ComponentChildren }): JSX.Element {
  return (
    <section class="panel">
      <h2>
        {props.title}
        {props.note ? <small>{props.note}</small> : null}
      </h2>
      {props.children}
    </section>
  );
}

function AgePanel({ camera }: { camera: Camera }): JSX.Element {
  const { poller } = useApp();
  const { at } = useSnapshot();
  const live = useShownState(camera.state) === 'live';
  return (
    <Panel title="Frame age" note="from the last packet of a picture to its detections">
      <div class="hero">
        <Hero label="p50" value={live && camera.age ? ms(camera.age.p50) : '–'} />
        <Hero label="p95" value={live && camera.age ? ms(camera.age.p95) : '–'} />
        <Hero label="Camera" value={live ? `${fps(camera.fps)} fps` : '–'} />
        <Hero label="Analysed" value={!live ? '–' : camera.detecting ? `${fps(camera.inferredFps)} fps` : 'off'} />
      </div>
      <ReducedLine camera={camera} />
      <Sparkline samples={poller.history.of(camera.id)} now={at} />
      <StageTable camera={camera} />
    </Panel>
  );
}

function Hero(props: { label: string; value: string }): JSX.Element {
  return (
    <div>
      <span class="hero-label">{props.label}</span>
      <span class="hero-value">{props.value}</span>
    </div>
  );
}

function StageTable({ camera }: { camera: Camera }): JSX.Element | null {
  if (!camera.stages.some((s) => s.age)) return null;
  return (
    <table class="table" data-testid="stages">
      <thead>
        <tr>
          <th scope="col">Age when</th>
          <th scope="col">p50</th>
          <th scope="col">p95</th>
          <th scope="col">p99</th>
        </tr>
      </thead>
      <tbody>
        {camera.stages.map(({ stage, age }) => (
          <tr key={stage}>
            <th scope="row">{stageWords(stage)}</th>
            <td>{age ? ms(age.p50) : '–'}</td>
            <td>{age ? ms(age.p95) : '–'}</td>
            <td>{age ? ms(age.p99) : '–'}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// Four times a second is as fast as a list can be read.
function SeenPanel(props: { screen: Screen | null; camera: Camera }): JSX.Element {
  const now = useNow(250);
  const { screen } = props;
  const current = useShownState(props.camera.state) === 'live' && screen !== null && now - screen.receivedAt < lateMs;
  const seen: Detection | null = current ? screen.detection : null;
  const objects = [...(seen?.objects ?? [])].sort((a, b) => a.label.localeCompare(b.label) || a.track - b.track);
  const note = objects.length === 1 ? '1 object' : `${objects.length} objects`;
  return (
    <Panel title="In the picture" note={seen ? note : ''}>
      {objects.length === 0 ? (
        <p class="hint">{seen ? 'Nothing that the model knows.' : 'No detections at the moment.'}</p>
      ) : (
        <ul class="seen" data-testid="seen">
          {objects.map((o, i) => (
            <li key={o.track > 0 ? o.track : `n${i}`}>
              <span class={`swatch hue-${hueOf(o.label)}`} />
              <span class="outside">{o.label}</span>
              <span class="seen-id">{o.track > 0 ? `#${o.track}` : ''}</span>
              <span class="num">{o.score.toFixed(2)}</span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function lastTrouble(trouble: Trouble | null, now: number): string {
  if (trouble === null) return '';
  return trouble.at === null ? trouble.reason : `${span(now - trouble.at)} ago: ${trouble.reason}`;
}

function StreamPanel({ camera: c }: { camera: Camera }): JSX.Element {
  const { clock } = useApp();
  const now = useNow();
  const size = c.width > 0 ? `${c.width} × ${c.height}` : '';
  const pool = c.pool ? `${c.pool.inUse} of ${c.pool.slots} slots, at most ${c.pool.highWater}; ${bytes(c.pool.bytes)}` : '';
  return (
    <Panel title="Stream">
      <Facts
        facts={[
          ['State since', c.since === null ? '' : span(clock.now(now) - c.since)],
          ['Video', [codecWords(c.codec), size, c.pixelFormat].filter(Boolean).join(', ')],
          ['Track', trackWords(c.track)],
          ['Transport', [c.transport.toUpperCase(), tlsWords(c.tls)].filter(Boolean).join(', ')],
          ['Decoder', [c.decoder, c.decoderNote].filter(Boolean).join(', ')],
          ['Memory', memoryWords(c.memory)],
          ['Frame pool', pool],
          ['No free slot', c.pool && c.pool.exhausted > 0 ? `${count(c.pool.exhausted)} times` : ''],
          ['Decoded', `${count(c.frames)} pictures`],
          ['Analysed', c.detecting ? `${count(c.inferred)} pictures` : 'off for this camera'],
          ['Damaged', c.damaged > 0 ? `${count(c.damaged)} pictures, not shown` : ''],
          ['Attempts', c.attempts > 0 ? count(c.attempts) : ''],
          ['Last trouble', lastTrouble(c.lastError, clock.now(now))],
          ['Id', c.id],
        ]}
      />
    </Panel>
  );
}
