import type { JSX } from 'preact';
import type { CameraState } from '../api/types';
import { stateWord } from '../words';
import { StateIcon } from './icons';

export function StateChip(props: { state: CameraState }): JSX.Element {
  return (
    <span class={`chip ${props.state}`} data-testid="state">
      <StateIcon state={props.state} />
      {stateWord(props.state)}
    </span>
  );
}
