// Detections of a set of cameras over Server-Sent Events. EventSource comes
// back by itself after a lost connection, and gives up after an answer that is
// no event stream: that case is ours.

import { decodeDetection } from '../api/decode';
import type { Detection } from '../api/types';
import { Backoff } from '../backoff';
import { silenceMs } from './stream';

export class DetectionFeed {
  private source: EventSource | null = null;
  private cameras: readonly string[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private lastAt = 0;
  private readonly backoff = new Backoff(1000, 10_000);

  constructor(private readonly onDetection: (d: Detection) => void) {}

  /** Replaces the set of cameras; none closes the connection. */
  watch(cameras: readonly string[]): void {
    this.cameras = cameras;
    this.open();
  }

  /** Opens anew when nothing came for too long; to be called now and then while a watched camera is analysed. */
  checkSilence(): void {
    if (this.source && Date.now() - this.lastAt > silenceMs) this.open();
  }

  private open(): void {
    clearTimeout(this.timer);
    const old = this.source;
    this.source = null;
    old?.close();
    if (this.cameras.length === 0) return;
    const query = this.cameras.map((c) => `camera=${encodeURIComponent(c)}`).join('&');
    const source = new EventSource(`/api/v1/detections?${query}`);
    this.source = source;
    this.lastAt = Date.now();
    const take = (e: MessageEvent): void => {
      this.lastAt = Date.now();
      const found = decodeDetection(String(e.data));
      if (found) this.onDetection(found);
    };
    source.onopen = () => this.backoff.reset();
    source.onmessage = take;
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED || this.source !== source) return;
      this.timer = setTimeout(() => this.open(), this.backoff.next());
    };
  }
}
