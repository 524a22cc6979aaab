// The values that live as long as the page, made once in main.tsx and handed
// to the views through the context.

import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { ServerClock } from './api/clock';
import { Poller, type Snapshot } from './api/poller';
import { ChangeTeller } from './changes';
import { LiveHub } from './live/hub';
import { PrefStore, type Prefs } from './prefs';
import { Store, useStore } from './store';

export class App {
  readonly clock = new ServerClock();
  readonly prefs = new PrefStore(() => localStorage);
  readonly poller: Poller;
  readonly hub: LiveHub;
  /** What the live region says. */
  readonly news = new Store('');

  constructor() {
    const onExpired = (): void => this.toLogin();
    this.poller = new Poller({ clock: this.clock, onExpired });
    this.hub = new LiveHub(onExpired);
    const teller = new ChangeTeller();
    this.poller.store.subscribe(() => {
      const { link, cameras } = this.poller.store.get();
      if (link.kind !== 'online') return;
      const words = teller.tell(cameras);
      if (words !== '') this.news.set(words);
      this.hub.check(cameras);
    });
  }

  /** Works only while somebody can see it. */
  start(): void {
    const follow = (): void => {
      const work = document.visibilityState === 'visible' ? ('resume' as const) : ('pause' as const);
      this.poller[work]();
      this.hub[work]();
    };
    document.addEventListener('visibilitychange', follow);
    addEventListener('online', () => this.poller.retry());
    follow();
  }

  private toLogin(): void {
    this.poller.pause();
    this.hub.pause();
    location.replace(`/login?next=${encodeURIComponent(location.pathname + location.hash)}`);
  }
}

const Context = createContext<App | null>(null);
export const AppProvider = Context.Provider;

export function useApp(): App {
  const app = useContext(Context);
  if (!app) throw new Error('a view outside of the app');
  return app;
}

export function useSnapshot(): Snapshot {
  return useStore(useApp().poller.store);
}

export function usePrefs(): Prefs {
  return useStore(useApp().prefs);
}
