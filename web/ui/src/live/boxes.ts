// Where boxes and their labels go. Pure geometry: screen.ts does the painting.

import type { Detection, DetectedObject } from '../api/types';

export interface Rect {
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface BoxOptions {
  boxes: boolean;
  labels: boolean;
  ids: boolean;
}

export interface DrawnBox extends Rect {
  hue: number;
  /** 0: it has no id yet. */
  track: number;
  /** Empty for no label. */
  text: string;
}

/** The largest rectangle of the picture's shape in the middle of the frame. */
export function fit(frameW: number, frameH: number, pictureW: number, pictureH: number): Rect {
  if (pictureW <= 0 || pictureH <= 0) return { x: 0, y: 0, w: 0, h: 0 };
  const scale = Math.min(frameW / pictureW, frameH / pictureH);
  const w = pictureW * scale;
  const h = pictureH * scale;
  return { x: (frameW - w) / 2, y: (frameH - h) / 2, w, h };
}

/** The boxes of a detection in a picture that lies in rect; the least certain first, so that they lie below. */
export function placeBoxes(detection: Detection, rect: Rect, options: BoxOptions): DrawnBox[] {
  if (!options.boxes) return [];
  const narrow = rect.w < 420;
  return [...detection.objects]
    .sort((a, b) => a.score - b.score)
    .map((o) => ({
      x: rect.x + o.box[0] * rect.w,
      y: rect.y + o.box[1] * rect.h,
      w: (o.box[2] - o.box[0]) * rect.w,
      h: (o.box[3] - o.box[1]) * rect.h,
      hue: hueOf(o.label),
      track: o.track,
      text: caption(o, options, narrow),
    }));
}

/** A box and where the plate with its text lies. */
export interface Label extends Rect {
  box: DrawnBox;
}

/**
 * Where the labels of boxes go in the picture in rect: above the box, else inside at the top, else below, else inside
 * at the bottom, else farther away; the first place that lies in the picture and on no other label, or else the first
 * that lies in the picture. Older ids choose first, so that a label jumps as rarely as can be.
 */
export function placeLabels(boxes: DrawnBox[], rect: Rect, width: (text: string) => number, height: number, line: number): Label[] {
  const placed: Label[] = [];
  const order = boxes.filter((b) => b.text !== '').sort((a, b) => (a.track || Infinity) - (b.track || Infinity) || b.y - a.y);
  for (const box of order) placed.push(placeLabel(box, rect, width(box.text), height, line, placed));
  return placed;
}

function placeLabel(box: DrawnBox, rect: Rect, w: number, h: number, line: number, placed: Label[]): Label {
  const edge = line / 2;
  const top = box.y - edge;
  const bottom = box.y + box.h + edge;
  const right = Math.max(rect.x, rect.x + rect.w - w);
  const places = [
    [-edge, top - h],
    [edge, top + line],
    [-edge, bottom],
    [edge, bottom - line - h],
    [-edge, top - 2 * h],
    [-edge, bottom + h],
    [-edge, top - 3 * h],
    [-edge, bottom + 2 * h],
  ] as const;
  let first: Label | null = null;
  for (const [dx, y] of places) {
    if (y < rect.y || y + h > rect.y + rect.h) continue;
    const label = { x: Math.max(rect.x, Math.min(box.x + dx, right)), y, w, h, box };
    if (!placed.some((other) => meet(label, other))) return label;
    first ??= label;
  }
  return first ?? { x: rect.x, y: rect.y, w, h, box };
}

function meet(a: Rect, b: Rect): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

function caption(o: DetectedObject, options: BoxOptions, narrow: boolean): string {
  const words: string[] = [];
  if (options.labels) words.push(narrow ? o.label : `${o.label} ${o.score.toFixed(2)}`);
  if (options.ids && o.track > 0) words.push(`#${o.track}`);
  return words.join(' ');
}

/** How many colours the boxes have. */
export const hues = 6;

const fixed: Record<string, number> = { person: 0, car: 1, truck: 1, bus: 1, bicycle: 2, motorcycle: 2, dog: 3, cat: 3 };

/** The same label has the same colour on every screen. */
export function hueOf(label: string): number {
  const known = Object.hasOwn(fixed, label) ? fixed[label] : undefined;
  if (known !== undefined) return known;
  let sum = 0;
  for (let i = 0; i < label.length; i++) sum = (sum * 31 + label.charCodeAt(i)) >>> 0;
  return sum % hues;
}
