import type { JSX } from 'preact';
import { useApp, usePrefs } from '../app';

const switches = [
  ['boxes', 'Boxes'],
  ['labels', 'Labels'],
  ['ids', 'IDs'],
] as const;

/** What is drawn over the pictures. */
export function OverlaySwitches(): JSX.Element {
  const { prefs } = useApp();
  const now = usePrefs();
  return (
    <div class="switches" role="group" aria-label="Drawn over the pictures">
      {switches.map(([name, word]) => (
        <button
          key={name}
          type="button"
          class="switch"
          aria-pressed={now[name]}
          disabled={name !== 'boxes' && !now.boxes}
          data-testid={`switch-${name}`}
          onClick={() => prefs.change({ [name]: !now[name] })}
        >
          {word}
        </button>
      ))}
    </div>
  );
}
