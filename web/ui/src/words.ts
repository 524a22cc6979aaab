// Words for what the API says in short names. A name that is not known here is
// shown as it came, with its underscores opened up.

import type { Camera, CameraState, Track } from './api/types';

/** Unknown: what the page knows is from before the connection was lost. */
export type ShownState = CameraState | 'unknown';

const states: Record<ShownState, string> = {
  connecting: 'Connecting',
  live: 'Live',
  stalled: 'Stalled',
  backoff: 'Retrying',
  auth_failed: 'Wrong password',
  unsupported: 'Unsupported',
  disabled: 'Off',
  unknown: 'Unknown',
};

export function stateWord(state: ShownState): string {
  return states[state];
}

const advice: Record<CameraState, string> = {
  connecting: 'This takes a few seconds.',
  live: '',
  stalled: 'If this lasts, edgecam opens a new session by itself.',
  backoff: 'Check the camera’s power, network and address. edgecam keeps trying.',
  auth_failed: 'Set the right username and password for this camera in the configuration.',
  unsupported: 'Choose another codec or pixel format in the camera’s own settings, or another stream.',
  disabled: 'Remove “enabled: false” from this camera in the configuration to switch it on.',
};

/** What to do about a camera that is not live. A reason that says it itself, behind a colon, is not contradicted. */
export function stateAdvice(state: CameraState, reason: string): string {
  return state === 'backoff' && reason.includes(': ') ? 'edgecam keeps trying.' : advice[state];
}

// Completes "112 skipped: …". A test reads the reasons out of the Go sources.
const dropReasons: Record<string, string> = {
  decode_overflow: 'decoder was behind',
  no_key_frame: 'waited for a key frame',
  decode_error: 'damaged on the way',
  damaged: 'damaged on the way',
  readers_busy: 'viewers were behind',
  pool_exhausted: 'no free slot in the frame pool',
  inference_busy: 'analysis was behind',
  too_old: 'too old to be of use',
  view_too_old: 'too old to be shown',
  model_unhealthy: 'the model gave nonsense',
  inference_error: 'analysis failed',
};

export function dropWords(reason: string): string {
  return Object.hasOwn(dropReasons, reason) ? dropReasons[reason]! : plain(reason);
}

const memoryKinds: Record<string, string> = {
  shared: 'shared DRAM, read in place',
  mapped: 'pinned, read in place over the bus',
  staged: 'pinned, copied ahead by the GPU',
  device: 'GPU memory',
  heap: 'main memory',
  pinned: 'pinned main memory',
};

export function memoryWords(kind: string): string {
  return memoryKinds[kind] ?? plain(kind);
}

const platformKinds: Record<string, string> = {
  jetson: 'NVIDIA Jetson',
  discrete: 'PC with NVIDIA GPU',
  cpu: 'CPU only',
};

export function platformWords(kind: string): string {
  return platformKinds[kind] ?? plain(kind);
}

const providers: Record<string, string> = { cpu: 'CPU', cuda: 'CUDA', tensorrt: 'TensorRT' };

export function providerWords(provider: string): string {
  return providers[provider] ?? plain(provider);
}

const codecs: Record<string, string> = { h264: 'H.264', h265: 'H.265', hevc: 'H.265', mjpeg: 'MJPEG', av1: 'AV1' };

export function codecWords(codec: string): string {
  return codecs[codec.toLowerCase()] ?? codec;
}

/** Which of a camera's videos plays, e.g. "2 of 3 (H.265)". */
export function trackWords(track: Track | null): string {
  return track === null ? '' : `${track.index} of ${track.of} (${codecWords(track.codec)})`;
}

const tlsKinds: Record<string, string> = {
  verified: 'encrypted, certificate checked',
  fingerprint: 'encrypted, known by its fingerprint',
  'not verified': 'encrypted, certificate not checked',
};

export function tlsWords(tls: string): string {
  return tlsKinds[tls] ?? tls;
}

const stageNames: Record<string, string> = {
  received: 'Received',
  decoded: 'Decoded',
  batched: 'Batched',
  inferred: 'Analysed',
  published: 'Published',
};

export function stageWords(stage: string): string {
  return stageNames[stage] ?? plain(stage);
}

function plain(name: string): string {
  return name.replaceAll('_', ' ');
}

/** One sentence about a change, for the live region. */
export function announcement(camera: Camera): string {
  const reason = camera.state === 'live' || camera.reason === '' ? '' : ` ${camera.reason}`;
  return `${camera.name}: ${stateWord(camera.state)}.${reason}`;
}

/** What there is a limited amount of. */
export function resourceWords(resource: string): string {
  const words: Record<string, string> = {
    nvdec: 'Decoders of the GPU',
    gpu: 'GPU',
    cpu: 'Processor',
    memory: 'Frame memory',
    link: 'Link to the GPU',
  };
  return words[resource] ?? resource;
}
