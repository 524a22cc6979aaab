import { describe, expect, it } from 'vitest';
import { decodeCamera, decodeCameras, decodeDetection, decodeSystem, time } from '../src/api/decode';

const event = {
  camera: 'gate',
  seq: 41,
  captured_at: '2026-03-01T10:00:00.123456789Z',
  age_ms: 40.5,
  rtp_time: 9,
  width: 768,
  height: 576,
  objects: [{ track: 3, label: 'person', score: 0.8, box: [0.1, 0.2, 0.3, 0.4] }],
};

describe('decodeDetection', () => {
  it('reads an event', () => {
    expect(decodeDetection(JSON.stringify(event))).toEqual({
      camera: 'gate',
      seq: 41,
      capturedAt: Date.UTC(2026, 2, 1, 10, 0, 0, 123),
      ageMs: 40.5,
      width: 768,
      height: 576,
      objects: [{ track: 3, label: 'person', score: 0.8, box: [0.1, 0.2, 0.3, 0.4] }],
    });
  });

  it.each([
    ['no JSON', '{'],
    ['a number', '4'],
    ['null', 'null'],
    ['no camera', JSON.stringify({ ...event, camera: '' })],
    ['no time', JSON.stringify({ ...event, captured_at: 'soon' })],
  ])('refuses %s', (_, data) => {
    expect(decodeDetection(data)).toBeNull();
  });

  it.each([
    ['turned over', [0.5, 0.5, 0.4, 0.6]],
    ['empty', [0.5, 0.5, 0.5, 0.6]],
    ['of three numbers', [0, 0, 1]],
    ['of words', ['0', '0', '1', '1']],
    ['not there', undefined],
    ['outside', [1.2, 0, 1.5, 1]],
  ])('leaves out a box that is %s', (_, box) => {
    expect(decodeDetection(JSON.stringify({ ...event, objects: [{ ...event.objects[0], box }] }))?.objects).toEqual([]);
  });

  it('cuts a box at the edge of the picture', () => {
    const d = decodeDetection(JSON.stringify({ ...event, objects: [{ ...event.objects[0], box: [-0.1, 0.5, 0.5, 1.3] }] }));
    expect(d?.objects[0]?.box).toEqual([0, 0.5, 0.5, 1]);
  });
});

describe('decodeCamera', () => {
  it('reads what is there and empties what is not', () => {
    const c = decodeCamera({
      id: 'gate',
      state: 'live',
      fps: 10,
      dropped: { replaced: 3, decode_error: 0, no_key_frame: 9 },
      age_ms: { p50: 40, p95: 80, p99: 90 },
      stages_ms: { published: null, later: null, decoded: { p50: 1, p95: 2, p99: 3 } },
      pool: { slots: 12, in_use: 4, high_water: 6, exhausted: 0, bytes: 99, pinned: true, huge_pages: false },
      tls: 'fingerprint',
      track: { index: 2, of: 3, codec: 'h265', control: 'trackID=4' },
      damaged: 5,
      last_error: { at: '2026-01-01T00:00:00Z', reason: 'The camera closed the session' },
      next_attempt_at: '2026-01-01T00:00:09Z',
      since: '0001-01-01T00:00:00Z',
    })!;
    expect(c.name).toBe('gate');
    expect(c.dropped).toEqual([
      { reason: 'no_key_frame', count: 9 },
      { reason: 'replaced', count: 3 },
    ]);
    expect(c.stages.map((s) => [s.stage, s.age?.p50])).toEqual([['decoded', 1], ['published', undefined], ['later', undefined]]);
    expect(c).toMatchObject({ tls: 'fingerprint', track: { index: 2, of: 3, codec: 'h265' }, damaged: 5, retryAt: Date.UTC(2026, 0, 1, 0, 0, 9) });
    expect(c.lastError).toEqual({ at: Date.UTC(2026, 0, 1), reason: 'The camera closed the session' });
    expect(decodeCamera({ id: 'a' })).toMatchObject({ tls: '', track: null, damaged: 0, lastError: null, retryAt: null });
    expect(c).toMatchObject({ since: null, codec: '', detecting: true, pool: { slots: 12, hugePages: false } });
  });

  it('does not take a state that it does not know for live', () => {
    expect(decodeCamera({ id: 'a', state: 'dreaming' })?.state).toBe('connecting');
  });

  it('leaves out what has no id', () => {
    expect(decodeCameras([{ id: '' }, null, 7, { id: 'b' }]).map((c) => c.id)).toEqual(['b']);
    expect(decodeCameras({ error: {} })).toEqual([]);
  });
});

describe('decodeSystem', () => {
  it('reads what is reduced and which cards there are', () => {
    const s = decodeSystem({
      platform: { gpus: [{ index: 1, name: 'L4', cameras: 3, utilisation: 0.5, state: 'lost', reason: 'gone' }, 7] },
      governor: { reducing: true, reason: 'too much', since: '2026-01-01T00:00:00Z', asked_fps: 40, allowed_fps: 30, cameras: 2 },
    });
    expect(s.platform.gpus.map((g) => [g.index, g.state, g.reason])).toEqual([[1, 'lost', 'gone'], [0, '', '']]);
    expect(s.governor).toEqual({ reducing: true, reason: 'too much', since: Date.UTC(2026, 0, 1), askedFps: 40, allowedFps: 30, cameras: 2 });
    const c = decodeCamera({ id: 'a', analysed: { fps: 3, asked_fps: 10, weight: 1, reduced_because: 'too much' } });
    expect(c).toMatchObject({ askedFps: 10, reducedBecause: 'too much' });
    expect(decodeCamera({ id: 'a' })).toMatchObject({ askedFps: 0, reducedBecause: '' });
  });

  it('reads the board of a Jetson, and none elsewhere', () => {
    const jetson = (v: unknown) => decodeSystem({ platform: { kind: 'jetson', jetson: v } }).platform.jetson;
    expect(jetson({ model: 'NVIDIA Jetson AGX Orin', soc: 'tegra234', l4t: '36.4.3', jetpack: '6.2', power_mode: 'MAXN' })).toEqual({
      model: 'NVIDIA Jetson AGX Orin',
      l4t: '36.4.3',
      jetpack: '6.2',
      powerMode: 'MAXN',
    });
    expect(jetson({ model: 7 })).toEqual({ model: '', l4t: '', jetpack: '', powerMode: '' });
    expect(jetson(undefined)).toBeNull();
    expect(jetson(null)).toBeNull();
  });

  it('leaves out what a machine lacks', () => {
    const capacity = (v: unknown) => decodeSystem({ capacity: v }).capacity;
    expect(capacity({ cameras_more: 3, limited_by: 'cpu', shares: { cpu: 0.5, gpu: null, nvdec: 'x' }, short: ['cpu', 7] })).toEqual({
      more: 3,
      limitedBy: 'cpu',
      shares: { cpu: 0.5 },
      short: ['cpu'],
    });
    expect(capacity(undefined)).toEqual({ more: null, limitedBy: '', shares: {}, short: [] });
    expect(capacity({ cameras_more: 0 }).more).toBe(0);
  });
  it('gives an empty system for anything', () => {
    for (const v of [null, 3, 'x', [], {}, { platform: 4, memory: [], inference: null }]) {
      expect(decodeSystem(v)).toMatchObject({ version: '', ready: true, platform: { kind: '' }, memory: { slots: 0 }, inference: { notes: [] } });
    }
  });
});

describe('time', () => {
  it.each([
    ['2026-01-01T00:00:00Z', Date.UTC(2026, 0, 1)],
    ['0001-01-01T00:00:00Z', null],
    ['', null],
    [17, null],
  ])('%s → %s', (v, want) => {
    expect(time(v)).toBe(want);
  });
});
