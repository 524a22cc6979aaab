// A camera's picture with what must be known about it: whether it is the
// present, and if not, why not and since when.

import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useApp, usePrefs, useSnapshot } from '../app';
import type { Camera } from '../api/types';
import { span } from '../format';
import { pictureState, type PictureState } from '../freshness';
import { Screen } from '../live/screen';
import { useStore } from '../store';
import { stateAdvice, stateWord } from '../words';
import { StateIcon } from './icons';
import { useNow } from './now';

export interface PictureProps {
  camera: Camera;
  /** Called with the screen once it is there. */
  onScreen?: (screen: Screen) => void;
}

export function Picture({ camera, onScreen }: PictureProps): JSX.Element {
  const root = useRef<HTMLDivElement>(null);
  const screen = useScreen(root, camera.id, onScreen);
  const app = useApp();
  const { link } = useSnapshot();
  const now = useNow(500);
  const state = pictureState({
    camera,
    online: link.kind !== 'offline',
    receivedAt: screen?.receivedAt ?? 0,
    age: screen && screen.receivedAt ? app.clock.age(screen.capturedAt, now) : 0,
    now,
  });
  return (
    <div
      ref={root}
      class={`picture ${state.fresh ? '' : 'old'}`}
      data-testid="picture"
      data-fresh={String(state.fresh)}
    >
      <canvas class="pixels" data-testid="pixels" role="img" aria-label={pictureLabel(camera, state)} />
      <canvas class="boxes" data-testid="boxes" aria-hidden="true" />
      {state.fresh ? null : <Veil camera={camera} state={state} now={now} />}
    </div>
  );
}

function pictureLabel(camera: Camera, state: PictureState): string {
  return state.fresh ? `Live picture of ${camera.name}` : `No live picture of ${camera.name}`;
}

/** Feeds a screen while the element is in or near view. */
function useScreen(
  root: { current: HTMLDivElement | null },
  camera: string,
  onScreen?: (screen: Screen) => void,
): Screen | null {
  const { hub } = useApp();
  const prefs = usePrefs();
  const [screen, setScreen] = useState<Screen | null>(null);
  useEffect(() => {
    const [pixels, boxes] = root.current!.querySelectorAll('canvas');
    const made = new Screen(root.current!, pixels!, boxes!);
    let stop: (() => void) | null = null;
    const watch = new IntersectionObserver(
      (entries) => {
        if (entries.at(-1)!.isIntersecting) {
          stop ??= hub.show(camera, made);
        } else {
          stop?.();
          stop = null;
        }
      },
      { rootMargin: '160px' },
    );
    watch.observe(root.current!);
    setScreen(made);
    onScreen?.(made);
    return () => {
      watch.disconnect();
      stop?.();
      made.dispose();
    };
  }, [camera]);
  useEffect(() => screen?.setOptions(prefs), [screen, prefs]);
  return screen;
}

function Veil(props: { camera: Camera; state: PictureState; now: number }): JSX.Element {
  const { camera, state, now } = props;
  const { clock, hub } = useApp();
  const problem = useStore(hub.problem);
  const retry = camera.retryAt === null ? 0 : camera.retryAt - clock.now(now);
  return (
    <div class={`veil ${camera.state} ${state.lastAgo === null ? 'blank' : ''}`} data-testid="veil">
      {state.why === 'camera' ? (
        <>
          <p class="veil-state">
            <StateIcon state={camera.state} /> {stateWord(camera.state)}
          </p>
          {camera.reason ? (
            <p class="veil-reason outside" data-testid="reason">
              {camera.reason}
            </p>
          ) : null}
          <p class="veil-advice">
            {stateAdvice(camera.state, camera.reason)}
            {retry > 0 ? <span class="nowrap"> Next try in {span(retry + 999)}.</span> : null}
          </p>
        </>
      ) : (
        <p class="veil-state quiet">
          {problem !== '' && state.why !== 'server' ? `No pictures: ${problem}` : waitingWords[state.why]}
        </p>
      )}
      {state.lastAgo === null ? null : (
        <p class="veil-last" data-testid="last-picture">
          Last picture {span(state.lastAgo)} ago
        </p>
      )}
    </div>
  );
}

const waitingWords = {
  server: 'No connection to edgecam',
  first: 'Waiting for the first picture',
  late: 'Pictures do not arrive',
  behind: 'Pictures arrive late',
} as const;
