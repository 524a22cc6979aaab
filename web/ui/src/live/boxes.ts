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
      text: caption(o, options, narrow),
    }));
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
