import type { JSX } from 'preact';

/** Labels and their values; what is empty is left out. */
export function Facts(props: { facts: readonly (readonly [string, string])[] }): JSX.Element {
  return (
    <dl class="facts">
      {props.facts.map(([label, value]) =>
        value === '' ? null : (
          <div key={label}>
            <dt>{label}</dt>
            <dd class="outside">{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}
