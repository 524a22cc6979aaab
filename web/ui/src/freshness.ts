// Whether a picture on the page may pass for the present.

import type { Camera } from './api/types';

export interface PictureFacts {
  camera: Camera;
  /** The server answers. */
  online: boolean;
  /** Local wall clock of the arrival of the picture that is shown; 0 for none. */
  receivedAt: number;
  /** Its least age by the server's clock, milliseconds. */
  age: number;
  now: number;
}

export interface PictureState {
  fresh: boolean;
  /** Why it is not: the camera's own state, no server, none yet, none for too long, or too old on arrival. */
  why: 'camera' | 'server' | 'first' | 'late' | 'behind';
  /** How long ago the picture that is shown was taken, milliseconds; null without one. */
  lastAgo: number | null;
}

/** Without a picture for so long one is missing. Slow cameras get four of their intervals. */
export const lateMs = 2000;
/** A picture that is older than this when it arrives is not the present. */
export const behindMs = 3000;

export function pictureState(f: PictureFacts): PictureState {
  const since = f.receivedAt ? f.now - f.receivedAt : 0;
  const lastAgo = f.receivedAt ? Math.max(since, f.age) : null;
  const old = (why: PictureState['why']): PictureState => ({ fresh: false, why, lastAgo });
  if (f.camera.state !== 'live') return old('camera');
  if (!f.receivedAt) return old(f.online ? 'first' : 'server');
  const patience = Math.max(lateMs, f.camera.fps > 0 ? 4000 / f.camera.fps : 0);
  if (since > patience) return old(f.online ? 'late' : 'server');
  if (f.age - since > behindMs) return old('behind');
  return { fresh: true, why: 'late', lastAgo };
}
