import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useApp, usePrefs, useSnapshot } from '../app';
import type { Camera } from '../api/types';
import type { Theme } from '../prefs';
import { linkTo, useRoute, type Route } from '../route';
import { useStore } from '../store';
import { Notices } from './banner';
import { CameraPage } from './camera';
import { Grid } from './grid';
import { Mark, ThemeIcon } from './icons';
import { Loading } from './loading';
import { ModelsPage } from './models';
import { SystemPage } from './system';

export function Shell(): JSX.Element {
  const route = useRoute();
  const { cameras, system } = useSnapshot();
  const news = useStore(useApp().news);
  const main = useRef<HTMLElement>(null);
  const from = useRef<string | null>(null);
  usePageChange(route, main.current, from);
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => skipTo(e, main.current)}>
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href={linkTo({ page: 'cameras' })}>
          <Mark />
          <span>edgecam</span>
        </a>
        <nav aria-label="Pages">
          <NavLink to={{ page: 'cameras' }} active={route.page === 'cameras' || route.page === 'camera'} text="Cameras" />
          <NavLink to={{ page: 'models' }} active={route.page === 'models'} text="Models" />
          <NavLink to={{ page: 'system' }} active={route.page === 'system'} text="System" />
        </nav>
        <Tally cameras={cameras} />
        <ThemeButton />
        {system?.login ? (
          <form method="post" action="/logout" class="logout">
            <button type="submit" class="button">
              Log out
            </button>
          </form>
        ) : null}
      </header>
      <Notices />
      <main id="main" ref={main} tabIndex={-1}>
        <Page route={route} from={from.current} />
      </main>
      <div class="sr" role="status" aria-live="polite" data-testid="news">
        {news}
      </div>
    </>
  );
}

function Page(props: { route: Route; from: string | null }): JSX.Element {
  const { route } = props;
  const { cameras, system, at } = useSnapshot();
  if (at === 0) return <Loading />;
  if (route.page === 'system' && system) return <SystemPage system={system} />;
  if (route.page === 'models') return <ModelsPage cameras={cameras} />;
  if (route.page === 'camera') {
    return <CameraPage key={route.id} id={route.id} camera={cameras.find((c) => c.id === route.id)} cameras={cameras} />;
  }
  return <Grid cameras={cameras} from={props.from} />;
}

// The title follows the page, and the focus goes to the new page's heading,
// which is where a screen reader then reads on.
function usePageChange(route: Route, main: HTMLElement | null, from: { current: string | null }): void {
  const first = useRef(true);
  const { cameras } = useSnapshot();
  const id = route.page === 'camera' ? route.id : null;
  const name = cameras.find((c) => c.id === id)?.name ?? id;
  const title = route.page === 'system' ? 'System' : route.page === 'models' ? 'Models' : name;
  useEffect(() => void (document.title = title ? `${title} · edgecam` : 'edgecam'), [title]);
  useEffect(() => {
    if (!first.current) {
      scrollTo(0, 0);
      if (!main?.contains(document.activeElement)) main?.querySelector<HTMLElement>('h1')?.focus();
    }
    first.current = false;
    from.current = id;
  }, [route.page, id]);
}

function skipTo(e: Event, main: HTMLElement | null): void {
  e.preventDefault();
  main?.focus();
}

function NavLink(props: { to: Route; active: boolean; text: string }): JSX.Element {
  return (
    <a href={linkTo(props.to)} aria-current={props.active ? 'page' : undefined}>
      {props.text}
    </a>
  );
}

function Tally({ cameras }: { cameras: readonly Camera[] }): JSX.Element {
  const wanted = cameras.filter((c) => c.state !== 'disabled');
  const live = wanted.filter((c) => c.state === 'live').length;
  const { link } = useSnapshot();
  if (wanted.length === 0 || link.kind === 'offline') return <p class="tally" />;
  return (
    <p class={`tally ${live === wanted.length ? 'all' : 'some'}`} data-testid="tally">
      <span class="num">
        {live} of {wanted.length}
      </span>
      <span class="word"> live</span>
    </p>
  );
}

const following: Record<Theme, Theme> = { auto: 'light', light: 'dark', dark: 'auto' };
const themeWords: Record<Theme, string> = { auto: 'as the system', light: 'light', dark: 'dark' };

function ThemeButton(): JSX.Element {
  const { prefs } = useApp();
  const { theme } = usePrefs();
  const words = `Theme: ${themeWords[theme]}`;
  return (
    <button
      type="button"
      class="icon-button theme"
      title={words}
      aria-label={words}
      data-testid="theme"
      onClick={() => prefs.change({ theme: following[theme] })}
    >
      <ThemeIcon theme={theme} />
    </button>
  );
}
