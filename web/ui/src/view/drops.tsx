import type { JSX } from 'preact';
import type { Camera } from '../api/types';
import { count, percent } from '../format';
import { dropWords } from '../words';

/** Pictures that were decoded and not analysed, the most frequent reason first. */
export function DropLine({ camera }: { camera: Camera }): JSX.Element {
  const total = camera.dropped.reduce((n, d) => n + d.count, 0);
  const first = camera.dropped[0];
  return (
    <p class="drops" data-testid="drops">
      {first ? (
        <>
          <span class="num">{count(total)}</span> skipped{share(total, camera.frames)}: {dropWords(first.reason)}
          {camera.dropped.length > 1 ? `, ${camera.dropped.length - 1} more` : ''}
        </>
      ) : (
        'No pictures skipped'
      )}
    </p>
  );
}

function share(n: number, of: number): string {
  return of >= n && of > 0 ? ` (${n / of < 0.005 ? 'under 1 %' : percent(n / of)})` : '';
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
