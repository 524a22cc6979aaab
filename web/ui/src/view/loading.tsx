import type { JSX } from 'preact';

/** Before the first answer. Fades in late: on a fast link nobody sees it. */
export function Loading(): JSX.Element {
  return (
    <div class="loading" data-testid="loading">
      <p class="sr">Loading the cameras</p>
      <div class="grid" data-count="2" aria-hidden="true">
        <div class="tile ghost" />
        <div class="tile ghost" />
      </div>
    </div>
  );
}
