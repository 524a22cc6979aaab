import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

const snippet = `cameras:
  gate:
    name: Front gate
    url: rtsp://192.0.2.21/stream1
    username: viewer
    password: "its password"
`;

/** No camera is configured yet: how to add the first. */
export function Empty(): JSX.Element {
  const [copied, setCopied] = useState(false);
  const copy = (): void => void navigator.clipboard.writeText(snippet).then(() => setCopied(true));
  return (
    <section class="empty" data-testid="empty">
      <h1 tabIndex={-1}>No cameras yet</h1>
      <p>
        Add the first one below <code>cameras:</code> in the configuration, on an installed box{' '}
        <code>/etc/edgecam/edgecam.yaml</code>, and have it read again: <code>systemctl reload edgecam</code>. It appears
        here by itself.
      </p>
      <div class="snippet">
        <pre tabIndex={0} aria-label="Example configuration">
          <code>{snippet}</code>
        </pre>
        {navigator.clipboard ? (
          <button type="button" class="button" onClick={copy}>
            {copied ? 'Copied' : 'Copy'}
          </button>
        ) : null}
      </div>
      <p class="hint">
        <code>edgecam check FILE</code> tells every mistake in the file at once. <code>edgecam demo</code> shows two
        simulated cameras.
      </p>
    </section>
  );
}
