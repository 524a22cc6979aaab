// What the views compute, without a page.

import { describe, expect, it } from 'vitest';
import { ServerClock } from '../src/api/clock';
import { History, historyMs } from '../src/api/history';
import type { Camera } from '../src/api/types';
import { decodeCamera } from '../src/api/decode';
import { Backoff } from '../src/backoff';
import { ChangeTeller } from '../src/changes';
import { bytes, count, ms, span } from '../src/format';
import { pictureState, type PictureFacts } from '../src/freshness';
import { commonAspect, neighbour } from '../src/layout';
import { fit, hueOf, hues, placeBoxes, placeLabels, type DrawnBox, type Rect } from '../src/live/boxes';
import { band, ceiling, line } from '../src/plot';
import { parsePrefs, PrefStore } from '../src/prefs';
import { linkTo, parseRoute } from '../src/route';
import { dropWords } from '../src/words';

const camera = (part: Record<string, unknown> = {}): Camera => decodeCamera({ id: 'a', state: 'live', fps: 10, ...part })!;

describe('pictureState', () => {
  const facts: PictureFacts = { camera: camera(), online: true, receivedAt: 10_000, age: 60, now: 10_060 };
  const cases: [string, Partial<PictureFacts>, boolean, string | null, number | null][] = [
    ['a new picture', {}, true, null, 60],
    ['a camera that is not live, though the picture is new', { camera: camera({ state: 'stalled' }) }, false, 'camera', 60],
    ['no picture yet', { receivedAt: 0, age: 0 }, false, 'first', null],
    ['no picture and no server', { receivedAt: 0, age: 0, online: false }, false, 'server', null],
    ['the last moment of patience', { now: 12_000, age: 2000 }, true, null, 2000],
    ['a picture that stays', { now: 12_001, age: 2001 }, false, 'late', 2001],
    ['a picture that stays because the server is gone', { now: 12_001, age: 0, online: false }, false, 'server', 2001],
    ['a slow camera', { camera: camera({ fps: 1 }), now: 13_900, age: 3900 }, true, null, 3900],
    ['a picture that was old when it came', { age: 8060 }, false, 'behind', 8060],
  ];
  it.each(cases)('%s', (_, part, fresh, why, lastAgo) => {
    const state = pictureState({ ...facts, ...part });
    expect(state.fresh).toBe(fresh);
    if (why !== null) expect(state.why).toBe(why);
    expect(state.lastAgo).toBe(lastAgo);
  });
});

describe('ServerClock', () => {
  const http = (t: number): string => new Date(t).toUTCString();

  it('says nothing before it knows anything', () => {
    expect(new ServerClock().age(0, 1e12)).toBe(0);
    const c = new ServerClock();
    c.learn(null, 0, 1);
    c.learn('soon', 0, 1);
    expect(c.age(0, 1e12)).toBe(0);
  });

  it('finds the offset from a few answers, and never says older than true', () => {
    for (const offset of [-3_600_000, -1700, 0, 123, 90_500]) {
      const c = new ServerClock();
      const start = Date.UTC(2026, 0, 1);
      let local = start;
      for (let i = 0; i < 30; i++) {
        local = start + i * 2137;
        c.learn(http(local + 15 + offset), local, local + 30);
      }
      const took = local + offset - 5000;
      const age = c.age(took, local);
      expect(age, `offset ${offset}`).toBeLessThanOrEqual(5000);
      expect(age, `offset ${offset}`).toBeGreaterThan(4700);
    }
  });

  it('begins anew when a clock is set', () => {
    const c = new ServerClock();
    c.learn(http(1_000_000_000), 1_000_000_000, 1_000_000_010);
    c.learn(http(1_500_000_000), 1_000_002_000, 1_000_002_010);
    expect(Math.abs(c.now(1_000_002_010) - 1_500_000_500)).toBeLessThan(1000);
  });
});

describe('boxes', () => {
  it.each([
    ['wide frame', [200, 100, 100, 100], { x: 50, y: 0, w: 100, h: 100 }],
    ['tall frame', [100, 200, 200, 100], { x: 0, y: 75, w: 100, h: 50 }],
    ['no picture', [100, 100, 0, 0], { x: 0, y: 0, w: 0, h: 0 }],
  ] as const)('fit: %s', (_, [fw, fh, pw, ph], want) => {
    expect(fit(fw, fh, pw, ph)).toEqual(want);
  });

  const detection = {
    camera: 'a',
    seq: 1,
    capturedAt: 1,
    ageMs: 1,
    width: 4,
    height: 3,
    objects: [
      { track: 7, label: 'person', score: 0.912, box: [0.5, 0.25, 0.75, 1] as const },
      { track: 0, label: 'car', score: 0.5, box: [0, 0, 0.1, 0.1] as const },
    ],
  };
  const all = { boxes: true, labels: true, ids: true };

  it('places them in the picture, the most certain on top', () => {
    const rect = { x: 100, y: 10, w: 800, h: 400 };
    const [under, over] = placeBoxes(detection, rect, all);
    expect(over).toMatchObject({ x: 500, y: 110, w: 200, h: 300, text: 'person 0.91 #7' });
    expect(under).toMatchObject({ text: 'car 0.50' });
  });

  it.each([
    [{ ...all, labels: false }, ['', '#7']],
    [{ ...all, ids: false }, ['car 0.50', 'person 0.91']],
    [{ ...all, boxes: false }, []],
  ])('labels them as asked: %o', (options, want) => {
    expect(placeBoxes(detection, { x: 0, y: 0, w: 800, h: 400 }, options).map((b) => b.text)).toEqual(want);
  });

  const box = (track: number, x: number, y: number, w = 40, h = 90): DrawnBox => ({ x, y, w, h, hue: 0, track, text: `person #${track}` });
  const labels = (boxes: DrawnBox[], rect: Rect = { x: 0, y: 0, w: 640, h: 480 }) => placeLabels(boxes, rect, () => 80, 16, 2);

  it.each([
    ['above', box(1, 100, 100), [99, 83]],
    ['inside at the top edge', box(1, 100, 5), [101, 6]],
    ['in the picture at the right edge', box(1, 620, 100), [560, 83]],
    ['below a box that is too low for it', box(1, 100, 2, 40, 10), [101, 3]],
    ['in the corner where there is no place', box(1, 0, 0, 640, 480), [1, 1]],
  ])('puts a label %s', (_, b, [x, y]) => {
    const [l] = labels([b]);
    expect([l!.x, l!.y]).toEqual([x, y]);
  });

  it('lays no label on another one while there is room', () => {
    const crowd = Array.from({ length: 8 }, (_, i) => box(i, 100 + i * 25, 200 + (i % 3) * 10));
    const found = labels(crowd);
    expect(found).toHaveLength(8);
    for (const a of found) {
      for (const b of found) {
        const meet = a !== b && a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
        expect(meet, `${a.box.text} and ${b.box.text}`).toBe(false);
      }
    }
    const last = found.at(-1)!;
    expect(last.box.track, 'who has no id yet chooses last').toBe(0);
  });

  it('keeps all labels in a picture that is too small for them', () => {
    const rect = { x: 10, y: 10, w: 60, h: 30 };
    for (const l of labels([box(1, 10, 10, 60, 30), box(2, 12, 12, 40, 20)], rect)) {
      expect([l.x >= rect.x, l.y >= rect.y, l.y + l.h <= rect.y + rect.h]).toEqual([true, true, true]);
    }
  });

  it('gives a label the same colour always', () => {
    for (const label of ['person', 'zebra', '', 'constructor', '__proto__']) {
      expect(hueOf(label)).toBe(hueOf(label));
      expect(hueOf(label)).toBeGreaterThanOrEqual(0);
      expect(hueOf(label)).toBeLessThan(hues);
    }
  });
});

describe('plot', () => {
  const frame = { from: 0, to: 100_000, top: 100, width: 100, height: 11 };
  const sample = (at: number, p50: number, p95: number) => ({ at, p50, p95 });

  it('draws a line and a band, and breaks them at a gap', () => {
    const samples = [sample(0, 0, 100), sample(2000, 50, 100), sample(50_000, 20, 30)];
    expect(line(samples, 'p50', frame)).toBe('M0.0 11.0L2.0 6.0M50.0 9.0');
    expect(band(samples, frame)).toBe('M0.0 1.0L2.0 1.0L2.0 6.0L0.0 11.0Z');
    expect(line([], 'p95', frame)).toBe('');
  });

  it.each([
    [[], 50],
    [[3], 50],
    [[51], 100],
    [[100], 100],
    [[101, 20], 200],
    [[2100], 5000],
    [[5001], 10_000],
  ])('scale of %j is %d', (values, want) => {
    expect(ceiling(values)).toBe(want);
  });
});

describe('History', () => {
  it('keeps two minutes of live cameras and forgets those that are gone', () => {
    const h = new History();
    const age = { age_ms: { p50: 1, p95: 2, p99: 3 } };
    h.note([camera(age), camera({ id: 'b', ...age })], 0);
    h.note([camera({ ...age, state: 'stalled' })], 1000);
    expect(h.of('a')).toEqual([{ at: 0, p50: 1, p95: 2 }]);
    expect(h.of('b')).toEqual([]);
    h.note([camera(age)], historyMs);
    expect(h.of('a').map((s) => s.at)).toEqual([historyMs]);
  });
});

describe('ChangeTeller', () => {
  it('tells changes once, not what was so from the start, and not too many', () => {
    const t = new ChangeTeller();
    const down = (id: string) => camera({ id, name: id.toUpperCase(), state: 'backoff', reason: 'Refused.' });
    expect(t.tell([down('a')])).toBe('');
    expect(t.tell([camera()])).toBe('a: Live.');
    expect(t.tell([camera(), down('b')])).toBe('');
    expect(t.tell([down('a'), down('b')])).toBe('A: Retrying. Refused.');
    const ids = ['a', 'b', 'c', 'd', 'e'];
    t.tell(ids.map(down));
    expect(t.tell(ids.map((id) => camera({ id })))).toBe('a: Live. b: Live. c: Live. And 2 more cameras changed.');
  });
});

describe('layout', () => {
  it.each([
    ['none known', [], 1.78],
    ['the most frequent', [[768, 576], [768, 576], [1920, 1080]], 1.33],
    ['a tower', [[600, 1200]], 1],
    ['a ribbon', [[4000, 500]], 2.4],
  ] as const)('aspect: %s', (_, sizes, want) => {
    expect(commonAspect(sizes.map(([width, height]) => camera({ width, height })))).toBe(want);
  });

  const grid = Array.from({ length: 8 }, (_, i) => ({ left: (i % 3) * 100, top: Math.floor(i / 3) * 100 }));
  it.each([
    [0, 'ArrowLeft', -1],
    [2, 'ArrowRight', 3],
    [7, 'ArrowRight', -1],
    [1, 'ArrowDown', 4],
    [5, 'ArrowDown', 7],
    [7, 'ArrowDown', -1],
    [7, 'ArrowUp', 4],
    [1, 'ArrowUp', -1],
    [4, 'Home', 0],
    [4, 'End', 7],
    [4, 'x', -1],
    [-1, 'ArrowRight', -1],
  ])('from %d with %s to %d', (at, key, want) => {
    expect(neighbour(grid, at, key)).toBe(want);
  });
});

describe('routes', () => {
  it.each([
    ['', { page: 'cameras' }],
    ['#/', { page: 'cameras' }],
    ['#/system', { page: 'system' }],
    ['/system', { page: 'system' }],
    ['#/camera/front-gate_2', { page: 'camera', id: 'front-gate_2' }],
    ['/camera/a', { page: 'camera', id: 'a' }],
    ['#/camera/../x', { page: 'cameras' }],
    ['#/camera/<b>', { page: 'cameras' }],
  ])('%s', (hash, want) => {
    expect(parseRoute(hash)).toEqual(want);
  });

  it('reads the links that it makes', () => {
    for (const r of [{ page: 'cameras' }, { page: 'system' }, { page: 'camera', id: 'a-1' }] as const) {
      expect(parseRoute(linkTo(r))).toEqual(r);
    }
  });
});

describe('prefs', () => {
  const defaults = { boxes: true, labels: true, ids: true, theme: 'auto' };
  it.each([
    [null, defaults],
    ['not json', defaults],
    ['null', defaults],
    ['{"boxes":"no","theme":"pink","ids":false}', { ...defaults, ids: false }],
    ['{"theme":"dark","labels":false}', { ...defaults, labels: false, theme: 'dark' }],
  ])('%s', (stored, want) => {
    expect(parsePrefs(stored)).toEqual(want);
  });

  it('works where storage is forbidden', () => {
    const p = new PrefStore(() => {
      throw new DOMException('denied');
    });
    p.change({ boxes: false });
    expect(p.get().boxes).toBe(false);
  });
});

describe('words and numbers', () => {
  it.each([
    [0, '0 s'],
    [59_999, '59 s'],
    [61_000, '1 min 1 s'],
    [754_000, '12 min'],
    [3_600_000, '1 h'],
    [3_723_000, '1 h 2 min'],
    [200 * 3_600_000, '8 days'],
    [-5, '0 s'],
  ])('span of %d', (n, want) => {
    expect(span(n)).toBe(want);
  });

  it.each([
    [bytes(0), '0 B'],
    [bytes(1536), '1.5 KiB'],
    [bytes(200 * 2 ** 20), '200 MiB'],
    [bytes(5.2 * 2 ** 30), '5.2 GiB'],
    [ms(41.6), '42 ms'],
    [ms(999.4), '999 ms'],
    [ms(999.6), '1.0 s'],
    [ms(1322), '1.3 s'],
    [ms(12_340), '12.3 s'],
    [count(1234567), '1,234,567'],
    [dropWords('no_key_frame'), 'waited for a key frame'],
    [dropWords('brand_new'), 'brand new'],
  ])('%s', (got, want) => {
    expect(got).toBe(want);
  });

  it('backs off with jitter up to a limit', () => {
    const b = new Backoff(100, 1000, () => 0);
    expect([b.next(), b.next(), b.next(), b.next(), b.next()]).toEqual([75, 150, 300, 600, 750]);
    b.reset();
    expect(b.next()).toBe(75);
    const c = new Backoff(100, 1000, () => 1);
    expect([c.next(), c.next()]).toEqual([100, 200]);
  });
});
