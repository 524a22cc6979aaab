import type { PrefStore } from './prefs';

/** Keeps the page in the theme of the preferences, or of the system where they say auto. */
export function followTheme(prefs: PrefStore): void {
  const light = matchMedia('(prefers-color-scheme: light)');
  const apply = (): void => {
    const { theme } = prefs.get();
    document.documentElement.dataset['theme'] = theme === 'auto' ? (light.matches ? 'light' : 'dark') : theme;
  };
  light.addEventListener('change', apply);
  prefs.subscribe(apply);
  apply();
}
