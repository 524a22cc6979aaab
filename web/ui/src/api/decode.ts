// JSON in, types.ts out. A field that is missing or of another kind becomes
// its empty value: a dashboard that is a version older or newer than the
// server shows less, and never nothing.

import {
  cameraStates,
  type Box,
  type Camera,
  type CameraState,
  type Detection,
  type DetectedObject,
  type Drop,
  type Governor,
  type Gpu,
  type Inference,
  type Jetson,
  type Memory,
  type Platform,
  type Pool,
  type Quantiles,
  type StageAge,
  type Capacity,
  type System,
  type Track,
  type Trouble,
} from './types';

type Fields = Record<string, unknown>;

function fields(v: unknown): Fields {
  return typeof v === 'object' && v !== null && !Array.isArray(v) ? (v as Fields) : {};
}

function text(v: unknown): string {
  return typeof v === 'string' ? v : '';
}

function number(v: unknown): number {
  return typeof v === 'number' && Number.isFinite(v) ? v : 0;
}

function flag(v: unknown): boolean {
  return v === true;
}

function list(v: unknown): unknown[] {
  return Array.isArray(v) ? v : [];
}

function texts(v: unknown): string[] {
  return list(v).filter((x): x is string => typeof x === 'string' && x !== '');
}

/** Milliseconds since 1970; Go's zero time and what is no time are null. */
export function time(v: unknown): number | null {
  const ms = typeof v === 'string' ? Date.parse(v) : NaN;
  return ms > 0 ? ms : null;
}

function quantiles(v: unknown): Quantiles | null {
  const q = fields(v);
  return 'p50' in q ? { p50: number(q['p50']), p95: number(q['p95']), p99: number(q['p99']) } : null;
}

const stageOrder = ['decoded', 'batched', 'inferred', 'published'];

function stages(v: unknown): StageAge[] {
  const given = fields(v);
  const known = stageOrder.filter((stage) => stage in given);
  const others = Object.keys(given).filter((stage) => !stageOrder.includes(stage));
  return [...known, ...others].map((stage) => ({ stage, age: quantiles(given[stage]) }));
}

function pool(v: unknown): Pool | null {
  const p = fields(v);
  if (!('slots' in p)) return null;
  return {
    slots: number(p['slots']),
    inUse: number(p['in_use']),
    highWater: number(p['high_water']),
    exhausted: number(p['exhausted']),
    bytes: number(p['bytes']),
    pinned: flag(p['pinned']),
    hugePages: flag(p['huge_pages']),
  };
}

function track(v: unknown): Track | null {
  const t = fields(v);
  return 'index' in t ? { index: number(t['index']), of: number(t['of']), codec: text(t['codec']) } : null;
}

function trouble(v: unknown): Trouble | null {
  const e = fields(v);
  const reason = text(e['reason']);
  return reason === '' ? null : { at: time(e['at']), reason };
}

function drops(v: unknown): Drop[] {
  return Object.entries(fields(v))
    .map(([reason, count]) => ({ reason, count: number(count) }))
    .filter((d) => d.count > 0)
    .sort((a, b) => b.count - a.count);
}

function state(v: unknown): CameraState {
  return cameraStates.find((s) => s === v) ?? 'connecting';
}

/** The message of an error answer; '' when it is none. */
export function decodeError(body: string): string {
  try {
    return text(fields(fields(JSON.parse(body))['error'])['message']);
  } catch {
    return '';
  }
}

export function decodeCamera(v: unknown): Camera | null {
  const c = fields(v);
  const id = text(c['id']);
  if (id === '') return null;
  return {
    id,
    name: text(c['name']) || id,
    state: state(c['state']),
    reason: text(c['reason']),
    since: time(c['since']),
    retryAt: time(c['next_attempt_at']),
    attempts: number(c['attempts']),
    codec: text(c['codec']),
    width: number(c['width']),
    height: number(c['height']),
    pixelFormat: text(c['pixel_format']),
    fps: number(c['fps']),
    detecting: c['detecting'] !== false,
    inferredFps: number(c['inferred_fps']),
    askedFps: number(fields(c['analysed'])['asked_fps']),
    reducedBecause: text(fields(c['analysed'])['reduced_because']),
    frames: number(c['frames']),
    inferred: number(c['inferred']),
    decoder: text(c['decoder']),
    decoderNote: text(c['decoder_note']),
    memory: text(c['memory']),
    transport: text(c['transport']),
    tls: text(c['tls']),
    track: track(c['track']),
    damaged: number(c['damaged']),
    lastError: trouble(c['last_error']),
    dropped: drops(c['dropped']),
    age: quantiles(c['age_ms']),
    stages: stages(c['stages_ms']),
    pool: pool(c['pool']),
  };
}

export function decodeCameras(v: unknown): Camera[] {
  return list(v).flatMap((c) => decodeCamera(c) ?? []);
}

function gpu(v: unknown): Gpu {
  const g = fields(v);
  return {
    index: number(g['index']),
    name: text(g['name']),
    cameras: number(g['cameras']),
    utilisation: number(g['utilisation']),
    state: text(g['state']),
    reason: text(g['reason']),
  };
}

function governor(v: unknown): Governor {
  const g = fields(v);
  return {
    reducing: flag(g['reducing']),
    reason: text(g['reason']),
    since: time(g['since']),
    askedFps: number(g['asked_fps']),
    allowedFps: number(g['allowed_fps']),
    cameras: number(g['cameras']),
  };
}

function platform(v: unknown): Platform {
  const p = fields(v);
  return {
    kind: text(p['kind']),
    why: text(p['why']),
    gpu: text(p['gpu']),
    driver: text(p['driver']),
    cuda: text(p['cuda']),
    cpu: text(p['cpu']),
    cores: number(p['cores']),
    os: text(p['os']),
    arch: text(p['arch']),
    gpus: list(p['gpus']).map(gpu),
    jetson: p['jetson'] == null ? null : jetson(p['jetson']),
    notes: texts(p['notes']),
  };
}

function jetson(v: unknown): Jetson {
  const j = fields(v);
  return { model: text(j['model']), l4t: text(j['l4t']), jetpack: text(j['jetpack']), powerMode: text(j['power_mode']) };
}

function memory(v: unknown): Memory {
  const m = fields(v);
  return {
    strategy: text(m['strategy']),
    pinnedBytes: number(m['pinned_bytes']),
    poolBytes: number(m['pool_bytes']),
    limitBytes: number(m['limit_bytes']),
    limitWhy: text(m['limit_why']),
    slots: number(m['slots']),
    inUse: number(m['in_use']),
    highWater: number(m['high_water']),
    hugePages: flag(m['huge_pages']),
    notes: texts(m['notes']),
  };
}

function inference(v: unknown): Inference {
  const i = fields(v);
  return {
    model: text(i['model']),
    provider: text(i['provider']),
    precision: text(i['precision']),
    library: text(i['library']),
    libraryVersion: text(i['library_version']),
    batch: number(i['batch']),
    batchMean: number(i['batch_mean']),
    threads: number(i['threads']),
    inputWidth: number(i['input_width']),
    inputHeight: number(i['input_height']),
    scoreThreshold: number(i['score_threshold']),
    probeMs: number(i['probe_ms']),
    fps: number(i['fps']),
    run: quantiles(i['run_ms']),
    notes: texts(i['notes']),
  };
}

export function decodeSystem(v: unknown): System {
  const s = fields(v);
  return {
    version: text(s['version']),
    startedAt: time(s['started_at']),
    ready: s['ready'] !== false,
    reason: text(s['reason']),
    login: flag(s['login']),
    platform: platform(s['platform']),
    memory: memory(s['memory']),
    inference: inference(s['inference']),
    governor: governor(s['governor']),
    capacity: capacity(s['capacity']),
  };
}

function capacity(v: unknown): Capacity {
  const c = fields(v);
  const shares: Record<string, number> = {};
  for (const [resource, share] of Object.entries(fields(c['shares']))) {
    if (typeof share === 'number' && Number.isFinite(share)) shares[resource] = share;
  }
  const more = c['cameras_more'];
  return {
    more: typeof more === 'number' && Number.isFinite(more) ? more : null,
    limitedBy: text(c['limited_by']),
    shares,
    short: texts(c['short']),
  };
}

function box(v: unknown): Box | null {
  const b = list(v);
  if (b.length !== 4 || !b.every((n) => typeof n === 'number' && Number.isFinite(n))) return null;
  const [x1, y1, x2, y2] = (b as number[]).map((n) => Math.min(1, Math.max(0, n))) as [number, number, number, number];
  return x2 > x1 && y2 > y1 ? [x1, y1, x2, y2] : null;
}

function object(v: unknown): DetectedObject[] {
  const o = fields(v);
  const found = box(o['box']);
  return found
    ? [{ track: number(o['track']), label: text(o['label']), score: number(o['score']), box: found }]
    : [];
}

/** The data of one detection event, or null when it is none. */
export function decodeDetection(data: string): Detection | null {
  let v: unknown;
  try {
    v = JSON.parse(data);
  } catch {
    return null;
  }
  const d = fields(v);
  const capturedAt = time(d['captured_at']);
  if (text(d['camera']) === '' || capturedAt === null) return null;
  return {
    camera: text(d['camera']),
    seq: number(d['seq']),
    capturedAt,
    ageMs: number(d['age_ms']),
    width: number(d['width']),
    height: number(d['height']),
    objects: list(d['objects']).flatMap(object),
  };
}
