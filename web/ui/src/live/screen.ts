// One picture on the page: a canvas for the picture, one above it for the
// boxes, painted in the same turn so that they never show different moments.

import type { Detection } from '../api/types';
import { fit, placeBoxes, placeLabels, type BoxOptions, type DrawnBox, type Label, type Rect } from './boxes';
import type { BoxKind, Picture, Shown } from './sync';

/** A decoded picture. */
export interface Frame extends Picture {
  bitmap: ImageBitmap;
  /** Local wall clock, milliseconds. */
  receivedAt: number;
}

// Bright enough for dark pictures; the dark line around them is for bright ones.
const colours = ['#5ef0c4', '#ffd166', '#7cc4ff', '#ff9f7a', '#d6a8ff', '#c4f06a'];
const ink = '#0b0f10';

export class Screen {
  /** Local wall clock of the arrival of what is shown; 0 while nothing is. */
  receivedAt = 0;
  /** The server's wall clock of the moment that is shown. */
  capturedAt = 0;
  /** The newest moment's detection, whether its boxes are drawn or not. */
  detection: Detection | null = null;

  private kind: BoxKind = 'none';
  private seq = -1;
  private options: BoxOptions = { boxes: true, labels: true, ids: true };
  private readonly picture: CanvasRenderingContext2D | null;
  private readonly overlay: CanvasRenderingContext2D | null;
  private readonly resize: ResizeObserver;

  /** The canvases fill root; root carries what is shown in data attributes. */
  constructor(
    private readonly root: HTMLElement,
    private readonly pictureCanvas: HTMLCanvasElement,
    private readonly overlayCanvas: HTMLCanvasElement,
  ) {
    this.picture = pictureCanvas.getContext('2d', { alpha: false });
    this.overlay = overlayCanvas.getContext('2d');
    this.resize = new ResizeObserver(() => this.paintBoxes());
    this.resize.observe(root);
  }

  dispose(): void {
    this.resize.disconnect();
  }

  setOptions(options: BoxOptions): void {
    this.options = options;
    this.paintBoxes();
  }

  /** Paints the frame in shown, which stays the caller's. */
  show(shown: Shown<Frame>): void {
    if (shown.picture) this.paintPicture(shown.picture);
    this.seq = shown.seq;
    this.capturedAt = shown.capturedAt;
    this.detection = shown.boxes;
    this.kind = shown.kind;
    this.paintBoxes();
  }

  private paintPicture(frame: Frame): void {
    const { width, height } = frame.bitmap;
    const canvas = this.pictureCanvas;
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    this.picture?.drawImage(frame.bitmap, 0, 0);
    this.receivedAt = frame.receivedAt;
  }

  private paintBoxes(): void {
    const g = this.overlay;
    if (!g) return;
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    const width = this.root.clientWidth;
    const height = this.root.clientHeight;
    const canvas = this.overlayCanvas;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    const rect = fit(width, height, this.pictureCanvas.width, this.pictureCanvas.height);
    const boxes = this.receivedAt && this.detection ? placeBoxes(this.detection, rect, this.options) : [];
    this.describe(boxes.length);
    if (boxes.length > 0) paint(g, boxes, rect, this.kind === 'carried');
  }

  private describe(boxes: number): void {
    const data = this.root.dataset;
    data['seq'] = String(this.seq);
    data['boxes'] = String(boxes);
    data['boxKind'] = this.kind;
    data['boxSeq'] = this.detection ? String(this.detection.seq) : '';
  }
}

function paint(g: CanvasRenderingContext2D, boxes: DrawnBox[], rect: Rect, carried: boolean): void {
  // The root's type size, which grows with the screen, carries the labels along.
  const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 || 1;
  const size = (rect.w < 420 * scale ? 11 : rect.w < 900 * scale ? 12.5 : 15) * scale;
  const line = (rect.w < 420 * scale ? 1.5 : 2) * scale;
  g.font = `600 ${size}px Geist, system-ui, sans-serif`;
  g.textBaseline = 'middle';
  g.globalAlpha = carried ? 0.6 : 1;
  for (const b of boxes) {
    g.setLineDash([]);
    g.strokeStyle = 'rgba(0, 0, 0, 0.55)';
    g.lineWidth = line + 2;
    g.strokeRect(b.x, b.y, b.w, b.h);
    g.setLineDash(carried ? [6, 4] : []);
    g.strokeStyle = colours[b.hue]!;
    g.lineWidth = line;
    g.strokeRect(b.x, b.y, b.w, b.h);
  }
  g.setLineDash([]);
  const pad = size * 0.4;
  const width = (text: string): number => Math.ceil(g.measureText(text).width + 2 * pad);
  for (const label of placeLabels(boxes, rect, width, Math.round(size * 1.5), line)) paintLabel(g, label, pad);
  g.globalAlpha = 1;
}

function paintLabel(g: CanvasRenderingContext2D, { x, y, w, h, box }: Label, pad: number): void {
  g.fillStyle = colours[box.hue]!;
  g.fillRect(x, y, w, h);
  g.fillStyle = ink;
  g.fillText(box.text, x + pad, y + h / 2 + 0.5);
}
