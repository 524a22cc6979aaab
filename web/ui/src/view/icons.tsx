// Drawn on a grid of 16. Icons are for the eye: the words beside them are what
// a screen reader reads.

import type { ComponentChildren, JSX } from 'preact';
import type { ShownState } from '../words';

function Icon(props: { class?: string; children: ComponentChildren }): JSX.Element {
  return (
    <svg class={`icon ${props.class ?? ''}`} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      {props.children}
    </svg>
  );
}

export function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d="M3 8V3h5M16 3h5v5M21 16v5h-5M8 21H3v-5" />
      <circle cx="12" cy="12" r="4" />
    </svg>
  );
}

const states: Record<ShownState, JSX.Element> = {
  live: <circle class="fill" cx="8" cy="8" r="4" />,
  connecting: <path d="M8 2.5a5.5 5.5 0 1 1-5.5 5.5" />,
  stalled: <path d="M5.5 3.5v9M10.5 3.5v9" />,
  backoff: <path d="M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3" />,
  auth_failed: <path d="M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5" />,
  unsupported: <path d="M8 2l6.5 11.5h-13zM8 6.5v3.2M8 11.2v.6" />,
  disabled: <path d="M8 2v5M4.6 4.4a5 5 0 1 0 6.8 0" />,
  unknown: <path d="M5.5 6a2.5 2.5 0 1 1 3.6 2.2c-.7.4-1.1.8-1.1 1.6M8 12.4v.4" />,
};

export function StateIcon(props: { state: ShownState }): JSX.Element {
  return <Icon class={`state-icon ${props.state}`}>{states[props.state]}</Icon>;
}

export function Arrow(props: { to: 'left' | 'right' }): JSX.Element {
  return <Icon>{props.to === 'left' ? <path d="M10 3L5 8l5 5" /> : <path d="M6 3l5 5-5 5" />}</Icon>;
}

export function Close(): JSX.Element {
  return (
    <Icon>
      <path d="M3.5 3.5l9 9M12.5 3.5l-9 9" />
    </Icon>
  );
}

export function Warning(): JSX.Element {
  return <Icon>{states.unsupported}</Icon>;
}

export function Note(): JSX.Element {
  return (
    <Icon class="note">
      <circle cx="8" cy="8" r="6" />
      <path d="M8 7.5V11M8 5v.2" />
    </Icon>
  );
}

export function ThemeIcon(props: { theme: 'auto' | 'light' | 'dark' }): JSX.Element {
  if (props.theme === 'light') {
    return (
      <Icon>
        <circle cx="8" cy="8" r="3" />
        <path d="M8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.2 1.2M11.8 11.8L13 13M13 3l-1.2 1.2M4.2 11.8L3 13" />
      </Icon>
    );
  }
  if (props.theme === 'dark') {
    return (
      <Icon>
        <path d="M13.5 9.6A6 6 0 1 1 6.4 2.5a5 5 0 0 0 7.1 7.1z" />
      </Icon>
    );
  }
  return (
    <Icon>
      <circle cx="8" cy="8" r="5.5" />
      <path class="fill" d="M8 2.5a5.5 5.5 0 0 1 0 11z" />
    </Icon>
  );
}
