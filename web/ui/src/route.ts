import { useEffect, useState } from 'preact/hooks';

export type Route = { page: 'cameras' } | { page: 'camera'; id: string } | { page: 'models' } | { page: 'system' };

/** The route of a location's hash, or of its path; what is not known is the grid. */
export function parseRoute(location: string): Route {
  const path = location.replace(/^#?\/?/, '');
  if (path === 'system') return { page: 'system' };
  if (path === 'models') return { page: 'models' };
  const camera = /^camera\/([a-z0-9_-]{1,64})$/.exec(path);
  return camera ? { page: 'camera', id: camera[1]! } : { page: 'cameras' };
}

export function linkTo(route: Route): string {
  switch (route.page) {
    case 'camera':
      return `#/camera/${route.id}`;
    case 'system':
      return '#/system';
    case 'models':
      return '#/models';
    case 'cameras':
      return '#/';
  }
}

/** An address typed without the hash, such as /system, becomes the one that the links use. */
export function adoptPath(): void {
  if (location.pathname !== '/') history.replaceState(null, '', `/${linkTo(parseRoute(location.pathname))}`);
}

export function go(route: Route): void {
  location.hash = linkTo(route);
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const read = (): void => setRoute(parseRoute(location.hash));
    addEventListener('hashchange', read);
    return () => removeEventListener('hashchange', read);
  }, []);
  return route;
}
