import { Store } from './store';

export type Theme = 'auto' | 'light' | 'dark';

/** What the user chose in this browser. */
export interface Prefs {
  boxes: boolean;
  labels: boolean;
  ids: boolean;
  theme: Theme;
}

const key = 'edgecam';
const defaults: Prefs = { boxes: true, labels: true, ids: true, theme: 'auto' };

/** What is stored, field by field: it may be of another version, or of another hand. */
export function parsePrefs(stored: string | null): Prefs {
  let v: Partial<Record<keyof Prefs, unknown>> = {};
  try {
    const parsed: unknown = JSON.parse(stored ?? '{}');
    if (typeof parsed === 'object' && parsed !== null) v = parsed;
  } catch {
    // Not ours: the defaults stand.
  }
  const flag = (name: 'boxes' | 'labels' | 'ids'): boolean => {
    const x = v[name];
    return typeof x === 'boolean' ? x : defaults[name];
  };
  const theme = v.theme === 'light' || v.theme === 'dark' ? v.theme : 'auto';
  return { boxes: flag('boxes'), labels: flag('labels'), ids: flag('ids'), theme };
}

/** Storage may be forbidden or full: the choice then lasts as long as the page. */
export class PrefStore extends Store<Prefs> {
  constructor(private readonly storage: () => Storage) {
    super(parsePrefs(read(storage)));
  }

  change(part: Partial<Prefs>): void {
    const next = { ...this.get(), ...part };
    this.set(next);
    try {
      this.storage().setItem(key, JSON.stringify(next));
    } catch {
      // See above.
    }
  }
}

function read(storage: () => Storage): string | null {
  try {
    return storage().getItem(key);
  } catch {
    return null;
  }
}
