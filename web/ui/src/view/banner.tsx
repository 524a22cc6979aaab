import type { JSX } from 'preact';
import { useApp, useSnapshot } from '../app';
import type { Link } from '../api/poller';
import { span } from '../format';
import { resourceWords } from '../words';
import { Warning } from './icons';
import { useNow } from './now';

/** What concerns the whole page: the server is gone, or makes no detections. */
export function Notices(): JSX.Element {
  const { link, system } = useSnapshot();
  return (
    <div role="alert" class="notices">
      {link.kind === 'offline' ? <Offline link={link} /> : null}
      {link.kind === 'online' && system && !system.ready ? (
        <p class="banner warn" data-testid="not-ready">
          <Warning />
          <span class="outside">Nothing is being detected{system.reason ? `: ${system.reason}` : '.'}</span>
        </p>
      ) : null}
      {link.kind === 'online' && system && system.capacity.short.length > 0 ? (
        <p class="banner warn" data-testid="short">
          <Warning />
          <span>
            This machine is nearly full: {system.capacity.short.map(resourceWords).join(', ')}. Frames get old before the rest is
            used; lower the analysed rates or take cameras away.
          </span>
        </p>
      ) : null}
    </div>
  );
}

function Offline({ link }: { link: Link & { kind: 'offline' } }): JSX.Element {
  const { poller } = useApp();
  const now = useNow();
  const wait = Math.ceil((link.retryAt - now) / 1000);
  return (
    <p class="banner bad" data-testid="offline">
      <Warning />
      <span>
        <strong>{link.answers ? 'edgecam gives no answer to use.' : 'No connection to edgecam.'}</strong> {sentence(link.why)}
        {/* The count-down is for the eye: read aloud, it would never end. */}
        <span aria-hidden="true">
          {' '}
          For {span(now - link.since)}; {wait > 0 ? `next try in ${wait} s` : 'trying now'}.
        </span>
      </span>
      <button type="button" class="button" onClick={() => poller.retry()}>
        Try now
      </button>
    </p>
  );
}

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}
