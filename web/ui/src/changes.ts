import type { Camera, CameraState } from './api/types';
import { announcement } from './words';

const most = 3;

/** Says what changed since the last call, in words for a live region; '' for nothing. */
export class ChangeTeller {
  private states: Map<string, CameraState> | null = null;

  tell(cameras: readonly Camera[]): string {
    const before = this.states;
    this.states = new Map(cameras.map((c) => [c.id, c.state]));
    if (!before) return '';
    const changed = cameras.filter((c) => before.has(c.id) && before.get(c.id) !== c.state);
    const words = changed.slice(0, most).map(announcement);
    if (changed.length > most) words.push(`And ${changed.length - most} more cameras changed.`);
    return words.join(' ');
  }
}
