import type { JSX } from 'preact';
import { useSnapshot } from '../app';
import type { CameraState } from '../api/types';
import { stateWord, type ShownState } from '../words';
import { StateIcon } from './icons';

/** The state to show: the camera's own, as long as somebody says so. */
export function useShownState(state: CameraState): ShownState {
  const { link } = useSnapshot();
  return link.kind === 'offline' ? 'unknown' : state;
}

export function StateChip(props: { state: CameraState }): JSX.Element {
  const state = useShownState(props.state);
  return (
    <span class={`chip ${state}`} data-testid="state">
      <StateIcon state={state} />
      {stateWord(state)}
    </span>
  );
}
