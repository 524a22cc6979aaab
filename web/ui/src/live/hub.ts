// Brings pictures and detections of the cameras in view to their screens.

import type { Camera, Detection } from '../api/types';
import { Store } from '../store';
import { DetectionFeed } from './detections';
import type { Frame, Screen } from './screen';
import { PictureStream, settleMs, type Jpeg } from './stream';
import { Matcher } from './sync';

/** One camera in view. */
class Channel {
  readonly screens = new Set<Screen>();
  readonly matcher = new Matcher<Frame>();
  private waiting: Jpeg | null = null;
  private decoding = false;
  private closed = false;

  constructor(private readonly onFrame: () => void) {}

  /** Decodes one picture at a time; of those that come meanwhile only the newest is kept. */
  push(jpeg: Jpeg): void {
    this.waiting = jpeg;
    if (!this.decoding) void this.decode();
  }

  close(): void {
    this.closed = true;
    this.waiting = null;
    this.matcher.clear();
  }

  private async decode(): Promise<void> {
    this.decoding = true;
    for (let jpeg = this.waiting; jpeg; jpeg = this.waiting) {
      this.waiting = null;
      const receivedAt = Date.now();
      const bitmap = await createImageBitmap(new Blob([jpeg.bytes], { type: 'image/jpeg' })).catch(() => null);
      if (!bitmap) continue;
      if (this.closed) {
        bitmap.close();
        continue;
      }
      const frame = { ...jpeg, bitmap, receivedAt, close: () => bitmap.close() };
      this.matcher.addPicture(frame, performance.now());
      this.onFrame();
    }
    this.decoding = false;
  }
}

export class LiveHub {
  /** Why no pictures come, in the server's words; mostly ''. */
  readonly problem = new Store('');
  private readonly channels = new Map<string, Channel>();
  private readonly stream: PictureStream;
  private readonly feed: DetectionFeed;
  private paused = true;
  private painting = false;
  private settling: ReturnType<typeof setTimeout> | undefined;

  constructor(onExpired: () => void) {
    this.stream = new PictureStream({
      onPicture: (p) => this.channels.get(p.camera)?.push(p),
      onProblem: (words) => this.problem.set(words),
      onExpired,
    });
    this.feed = new DetectionFeed((d) => this.detected(d));
  }

  /** Begins to feed a screen; the function that it returns ends that. */
  show(camera: string, screen: Screen): () => void {
    const channel = this.channels.get(camera) ?? new Channel(() => this.paintSoon());
    this.channels.set(camera, channel);
    channel.screens.add(screen);
    this.changed();
    return () => {
      channel.screens.delete(screen);
      if (channel.screens.size > 0 || this.channels.get(camera) !== channel) return;
      channel.close();
      this.channels.delete(camera);
      this.changed();
    };
  }

  /** Closes the connections, e.g. because nobody looks. */
  pause(): void {
    this.paused = true;
    this.changed();
  }

  resume(): void {
    this.paused = false;
    this.changed();
  }

  /** To be called after every answer of the server: what is due and does not come is asked for anew. */
  check(cameras: readonly Camera[]): void {
    const live = cameras.filter((c) => c.state === 'live' && this.channels.has(c.id));
    if (live.length > 0) this.stream.checkSilence();
    if (live.some((c) => c.detecting && c.inferredFps > 0)) this.feed.checkSilence();
  }

  private changed(): void {
    const cameras = this.paused ? [] : [...this.channels.keys()].sort();
    this.stream.watch(cameras);
    clearTimeout(this.settling);
    if (cameras.length === 0) this.feed.watch([]);
    else this.settling = setTimeout(() => this.feed.watch(cameras), settleMs);
  }

  private detected(d: Detection): void {
    const channel = this.channels.get(d.camera);
    if (!channel) return;
    channel.matcher.addDetection(d, performance.now());
    this.paintSoon();
  }

  private paintSoon(): void {
    if (this.painting) return;
    this.painting = true;
    requestAnimationFrame(() => this.paint());
  }

  private paint(): void {
    this.painting = false;
    const now = performance.now();
    for (const channel of this.channels.values()) {
      const shown = channel.matcher.next(now);
      if (shown) for (const screen of channel.screens) screen.show(shown);
      shown?.picture?.close();
      if (channel.matcher.deadline() !== null) this.paintSoon();
    }
  }
}
