import type { JSX } from 'preact';
import type { Camera } from '../api/types';
import { count, fps } from '../format';
import { dropWords } from '../words';

const most = 2;

/** Pictures that came and were not analysed, the most frequent reason first. */
export function DropLine({ camera }: { camera: Camera }): JSX.Element {
  const shown = camera.dropped.slice(0, most).map((d) => `${count(d.count)} ${dropWords(d.reason)}`);
  const rest = camera.dropped.length - shown.length;
  if (rest > 0) shown.push(`${rest} more`);
  return (
    <p class="drops" data-testid="drops">
      {shown.length > 0 ? `Skipped: ${shown.join(' · ')}` : 'No pictures skipped'}
    </p>
  );
}

/** Why less is analysed than the camera is set to; nothing where it is not. */
export function ReducedLine({ camera }: { camera: Camera }): JSX.Element | null {
  if (camera.reducedBecause === '') return null;
  return (
    <p class="drops" data-testid="reduced">
      Reduced from {fps(camera.askedFps)} fps: {camera.reducedBecause}
    </p>
  );
}

export function DropTable({ camera }: { camera: Camera }): JSX.Element {
  if (camera.dropped.length === 0) return <p class="hint">No pictures skipped since start.</p>;
  return (
    <table class="table" data-testid="drops">
      <thead class="sr">
        <tr>
          <th scope="col">Reason</th>
          <th scope="col">Pictures</th>
        </tr>
      </thead>
      <tbody>
        {camera.dropped.map((d) => (
          <tr key={d.reason}>
            <th scope="row">{dropWords(d.reason)}</th>
            <td>{count(d.count)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
