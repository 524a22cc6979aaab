// A stand-in for the appliance, for work on the dashboard and for the tests of
// its states: the API of openapi.yaml with invented cameras. Needs ffmpeg.
//
//   node dev/mock.mjs [--port 8090] [--scenario two|states|many|empty|gpu]
//
// What it serves can be changed while it runs: see createMock.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { pathToFileURL } from 'node:url';

const here = import.meta.dirname;
const dist = join(here, '../../dist');
const clip = join(here, '../../../internal/sim/pets-s2l1-20s.mp4');

const csp =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/** The clip as JPEGs. */
function loadPictures() {
  const bytes = execFileSync(
    'ffmpeg',
    ['-v', 'error', '-i', clip, '-t', '10', '-q:v', '4', '-f', 'image2pipe', '-c:v', 'mjpeg', '-'],
    { maxBuffer: 1 << 28 },
  );
  const out = [];
  for (let at = bytes.indexOf('ffd8ff', 0, 'hex'); at >= 0; ) {
    const next = bytes.indexOf('ffd8ff', at + 3, 'hex');
    out.push(bytes.subarray(at, next < 0 ? bytes.length : next));
    at = next;
  }
  return out;
}

const live = { state: 'live', reason: '' };

export const scenarios = {
  two: () => [camera('gate', 'Front gate', live), camera('yard', 'Yard', live)],
  empty: () => [],
  gpu: () => [camera('gate', 'Front gate', live)],
  many: () => Array.from({ length: 64 }, (_, i) => camera(`cam-${i + 1}`, `Camera ${i + 1}`, live)),
  states: () => [
    camera('gate', 'Front gate', live),
    camera('yard', 'Yard', { state: 'stalled', reason: 'No picture for 5 s, though the camera still answers.' }),
    camera('dock', 'Loading dock 2, north side above the second ramp', {
      state: 'backoff',
      reason: 'Connecting to 192.0.2.23:554 was refused.',
      next_attempt_at: new Date(Date.now() + 9000).toISOString(),
    }),
    camera('hall', 'Hall', { state: 'auth_failed', reason: 'The camera refused the user name or the password.' }),
    camera('roof', 'Roof', { state: 'unsupported', reason: 'The video has pixel format yuv420p12le, which edgecam does not take.' }),
    camera('lane', 'Lane', { state: 'connecting', reason: 'Waiting for the first key frame.' }),
    camera('old', 'Old cam', { state: 'disabled', reason: 'Switched off in the configuration.' }),
    camera('evil', '<img src=x onerror=alert(1)> \u202Eevil', live),
  ],
};

function camera(id, name, status) {
  const on = status.state === 'live';
  return {
    id,
    name,
    since: new Date(Date.now() - 754_000).toISOString(),
    codec: on || status.state === 'stalled' ? 'h264' : '',
    width: on ? 768 : 0,
    height: on ? 576 : 0,
    fps: on ? 10 : 0,
    decoder: on ? 'h264 (software, 2 threads)' : '',
    pixel_format: on ? 'yuv420p' : '',
    memory: on ? 'pinned' : '',
    transport: on ? 'tcp' : '',
    ...(on ? { track: { index: 1, of: 2, codec: 'h264', control: 'trackID=0' } } : {}),
    attempts: on ? 1 : 7,
    ...(on || status.state === 'disabled' ? {} : { last_error: { at: new Date(Date.now() - 61_000).toISOString(), reason: status.reason }, damaged: 12 }),
    detecting: true,
    inferred_fps: on ? 9.9 : 0,
    analysed: { fps: on ? 9.9 : 0, asked_fps: 10, weight: 1 },
    frames: on ? 18230 : 0,
    inferred: on ? 18110 : 0,
    dropped: on ? { replaced: 112, decode_error: 8 } : {},
    age_ms: null,
    stages_ms: { decoded: null, batched: null, inferred: null, published: null },
    pool: on ? { slots: 12, in_use: 5, high_water: 8, exhausted: 0, bytes: 8 << 20, pinned: true, huge_pages: true } : null,
    ...status,
  };
}

const quantiles = (p50, p95, p99) => ({ p50, p95, p99 });

function measured(c) {
  if (c.state !== 'live') return c;
  const wave = 46 + 12 * Math.sin(Date.now() / 9000 + c.id.length) + 6 * Math.random();
  const age = quantiles(wave, wave * 1.6 + 10 * Math.random(), wave * 2.1);
  return {
    ...c,
    fps: 10 + Math.random() * 0.1 - 0.05,
    age_ms: age,
    stages_ms: {
      decoded: quantiles(3.1, 6.4, 9.9),
      batched: quantiles(5.2, 19, 31),
      inferred: quantiles(wave - 1, age.p95 - 1, age.p99 - 1),
      published: age,
    },
  };
}

function system(scenario) {
  const gpu = scenario === 'gpu';
  return {
    version: '0.1.0',
    started_at: new Date(Date.now() - 3_723_000).toISOString(),
    ready: true,
    reason: '',
    login: false,
    platform: {
      kind: gpu ? 'discrete' : 'cpu',
      why: gpu ? 'libcuda reports a GPU on PCIe' : 'no NVIDIA driver is loaded',
      gpu: gpu ? 'NVIDIA RTX 4000 SFF Ada' : '',
      driver: gpu ? '580.65.06' : '',
      cuda: gpu ? '13.0' : '',
      cpu: 'AMD EPYC 9B14',
      cores: 2,
      os: 'Debian GNU/Linux 12',
      arch: 'amd64',
      gpus: gpu ? [{ index: 0, uuid: 'GPU-1', name: 'NVIDIA RTX 4000 SFF Ada', cameras: 4, utilisation: 0.31, state: 'ok', reason: '' }] : [],
      notes: [],
    },
    governor: { reducing: false, reason: '', asked_fps: 40, allowed_fps: 40, cameras: 0 },
    capacity: {
      cameras_more: 3,
      limited_by: gpu ? 'nvdec' : 'cpu',
      kind: { width: 1920, height: 1080, fps: 25, detect_fps: 10, codec: 'h264' },
      shares: { nvdec: gpu ? 0.62 : null, gpu: gpu ? 0.31 : null, cpu: 0.55, memory: 0.12, link: gpu ? 0.01 : null },
      short: [],
    },
    memory: {
      strategy: gpu ? 'mapped' : 'heap',
      pinned_bytes: 16 << 20,
      pool_bytes: 16 << 20,
      limit_bytes: 5.2 * 2 ** 30,
      limit_why: '70 % of the memory of the machine',
      slots: 24,
      in_use: 9,
      high_water: 15,
      huge_pages: true,
      notes: gpu ? [] : ['Locking memory was refused: set LimitMEMLOCK=infinity in the unit.'],
    },
    inference: {
      model: 'builtin:nanodet-g',
      provider: gpu ? 'cuda' : 'cpu',
      precision: gpu ? 'fp16' : 'int8',
      library: '/usr/lib/edgecam/libonnxruntime.so.1',
      library_version: '1.23.2',
      batch: gpu ? 16 : 1,
      threads: 2,
      input_width: 416,
      input_height: 416,
      score_threshold: 0.45,
      probe_ms: 17.4,
      fps: 19.8,
      run_ms: quantiles(17.9, 24.2, 31),
      batch_mean: 1,
      notes: ['int8 took 17.4 ms, fp32 took 36.2 ms: int8 is used.'],
    },
  };
}

const hostile = '<img src=x onerror=alert(1)>';

function models() {
  const base = {
    family: 'yolov8', state: 'ready', reason: '', provider: 'cpu', precision: 'as in the file', ms_per_image: 41.3, score_threshold: 0.45, nms_iou: 0.6,
    labels: ['person', 'car'], cameras: [],
  };
  return [
    { ...base, id: 'default', file: 'yard.onnx', cameras: ['gate'], rejected: { file: 'yard.onnx', reason: 'every score is exactly 0', at: new Date().toISOString() } },
    { ...base, id: 'night', file: 'night.onnx', state: 'unhealthy', reason: 'the model is unhealthy: value 3 is NaN: not finite', labels: [hostile] },
    { ...base, id: 'plates', file: 'plates.onnx', state: 'refused', reason: 'is a web page', provider: '', nms_iou: 0, labels: [] },
  ];
}

const report = (m) => ({
  file: m.file, sha256: 'ab12', producer: 'pytorch 2.4', opset: 17, params: 3.2e6, gflops: 8.9,
  spec: { family: m.family, input: { name: 'images', type: 'float32', layout: 'NCHW', shape: [-1, 3, 640, 640] } },
  findings: [
    { about: 'family', value: m.family, evidence: `output0 of ${m.file}`, certainty: 'shape' },
    { about: 'labels', value: m.labels.join(', '), evidence: 'metadata names', certainty: 'stated' },
  ],
  notes: ['YOLOv8, 9, 11 and 12 are read alike'],
});

// Walkers on invented paths: the boxes move as people do, over whatever is there.
function objects(seq) {
  return Array.from({ length: 5 }, (_, i) => {
    const t = seq * 0.012 * (1 + i * 0.3) + i;
    const x = 0.08 + 0.36 * (1 + Math.sin(t)) + i * 0.02;
    const y = 0.15 + 0.25 * (1 + Math.sin(t * 0.7 + i));
    const h = 0.12 + 0.1 * y;
    const label = i === 4 ? 'car' : 'person';
    return { track: i + 3, label, score: 0.5 + 0.08 * i, box: [x, y, x + h * 0.4, y + h] };
  });
}

const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.woff2': 'font/woff2' };

/**
 * Starts a server. In what it returns, `cameras` and `system` may be changed at
 * any time, and so may `models`; `silent` stops pictures and detections, `status` makes the API
 * answer with that status, `delayed` makes pictures so many milliseconds old,
 * `detectEvery` infers every n-th picture only.
 */
export async function createMock({ port = 0, scenario = 'two' } = {}) {
  const pictures = loadPictures();
  const mock = {
    cameras: scenarios[scenario](),
    system: system(scenario),
    models: models(),
    /** The previews that were asked for. */
    previews: [],
    silent: false,
    status: 200,
    delayed: 0,
    detectEvery: 1,
    /** The sets of cameras that pictures were asked for. */
    asked: [],
    url: '',
    close: () => {},
  };
  const viewers = new Set();
  const readers = new Set();
  let seq = 0;

  const tick = setInterval(() => {
    seq++;
    if (mock.silent) return;
    const at = new Date(Date.now() - mock.delayed).toISOString();
    const on = mock.cameras.filter((c) => c.state === 'live').map((c) => c.id);
    for (const v of viewers) {
      for (const id of on) if (v.wants(id)) v.send(id, seq, at, pictures[(seq + id.length * 20) % pictures.length]);
    }
    const n = seq;
    if (n % mock.detectEvery === 0) setTimeout(() => on.forEach((id) => publish(id, n, at)), 45);
  }, 100);

  function publish(id, n, at) {
    const d = { camera: id, seq: n, captured_at: at, age_ms: 46.2, rtp_time: n * 9000, width: 768, height: 576, objects: objects(n) };
    for (const r of readers) if (r.wants(id)) r.send(`id: ${id}:${n}\ndata: ${JSON.stringify(d)}\n\n`);
  }

  function json(res, value, status = 200) {
    res.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
    res.end(JSON.stringify(value));
  }

  function follow(set, req, res, viewer) {
    set.add(viewer);
    req.on('close', () => set.delete(viewer));
    res.on('error', () => set.delete(viewer));
  }

  function streamPictures(req, res, names) {
    mock.asked.push(names);
    res.writeHead(200, { 'Content-Type': 'multipart/mixed; boundary=edgecam', 'Cache-Control': 'no-store' });
    res.flushHeaders();
    const send = (id, n, at, jpeg) => {
      if (res.writableLength > 1 << 23) return;
      res.write(
        `--edgecam\r\nContent-Type: image/jpeg\r\nContent-Length: ${jpeg.length}\r\nX-Camera: ${id}\r\nX-Seq: ${n}\r\nX-Captured-At: ${at}\r\n\r\n`,
      );
      res.write(jpeg);
      res.write('\r\n');
    };
    follow(viewers, req, res, { wants: (id) => names.length === 0 || names.includes(id), send });
  }

  function streamDetections(req, res, names) {
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    res.write(': hello\n\n');
    follow(readers, req, res, { wants: (id) => names.length === 0 || names.includes(id), send: (s) => res.write(s) });
  }

  function aboutModels(url, res) {
    const [id, preview] = url.pathname.split('/').slice(4);
    const m = mock.models.find((x) => x.id === id);
    if (id === undefined) json(res, mock.models);
    else if (m === undefined || m.state === 'refused') json(res, { error: { code: 'not_found', message: 'nothing is known of it' } }, 404);
    else if (preview === undefined) json(res, report(m));
    else {
      mock.previews.push(Object.fromEntries(url.searchParams));
      if (m.state === 'unhealthy') json(res, { error: { code: 'no_picture', message: m.reason } }, 503);
      else {
        res.writeHead(200, { 'Content-Type': 'image/jpeg', 'Cache-Control': 'no-store', 'X-Objects': Number(url.searchParams.get('threshold')) > 0.9 ? '0' : '3' });
        res.end(pictures[0]);
      }
    }
  }

  function file(res, path) {
    const full = join(dist, normalize(extname(path) === '' ? '/index.html' : path));
    if (!full.startsWith(dist) || !existsSync(full)) {
      res.writeHead(404);
      res.end();
      return;
    }
    res.writeHead(200, { 'Content-Type': types[extname(full)] ?? 'application/octet-stream', 'Content-Security-Policy': csp });
    res.end(readFileSync(full));
  }

  const server = createServer((req, res) => {
    const url = new URL(req.url, 'http://mock');
    const names = url.searchParams.getAll('camera');
    if (url.pathname === '/login') {
      res.writeHead(200, { 'Content-Type': 'text/html', 'Content-Security-Policy': csp });
      res.end('<!doctype html><html lang="en"><title>Log in</title><h1>Log in</h1>');
    } else if (!url.pathname.startsWith('/api/')) file(res, url.pathname);
    else if (mock.status !== 200) json(res, { error: { code: 'mock', message: 'as asked' } }, mock.status);
    else if (url.pathname === '/api/v1/system') json(res, mock.system);
    else if (url.pathname === '/api/v1/cameras') json(res, mock.cameras.map(measured));
    else if (url.pathname.startsWith('/api/v1/models')) aboutModels(url, res);
    else if (url.pathname === '/api/v1/live') streamPictures(req, res, names);
    else if (url.pathname === '/api/v1/detections') streamDetections(req, res, names);
    else json(res, { error: { code: 'not_found', message: 'no such route' } }, 404);
  });
  await new Promise((done) => server.listen(port, '127.0.0.1', done));
  mock.url = `http://127.0.0.1:${server.address().port}`;
  mock.close = () => {
    clearInterval(tick);
    server.closeAllConnections();
    return new Promise((done) => server.close(done));
  };
  return mock;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const option = (name, otherwise) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? otherwise : process.argv[at + 1];
  };
  const mock = await createMock({ port: Number(option('port', '8090')), scenario: option('scenario', 'two') });
  console.log(mock.url);
}
