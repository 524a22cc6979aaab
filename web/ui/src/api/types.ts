// The dashboard's own picture of the HTTP API: decode.ts makes these values out
// of JSON, so that everything behind it can rely on them.

export const cameraStates = [
  'connecting',
  'live',
  'stalled',
  'backoff',
  'auth_failed',
  'unsupported',
  'disabled',
] as const;

export type CameraState = (typeof cameraStates)[number];

/** Milliseconds. */
export interface Quantiles {
  p50: number;
  p95: number;
  p99: number;
}

/** The age of a frame as it leaves a stage; null where nothing passed lately. */
export interface StageAge {
  stage: string;
  age: Quantiles | null;
}

export interface Pool {
  slots: number;
  inUse: number;
  highWater: number;
  exhausted: number;
  bytes: number;
  pinned: boolean;
  hugePages: boolean;
}

export interface Drop {
  reason: string;
  count: number;
}

/** Which of a camera's videos plays. */
export interface Track {
  index: number;
  of: number;
  codec: string;
}

export interface Trouble {
  at: number | null;
  reason: string;
}

export interface Camera {
  id: string;
  name: string;
  state: CameraState;
  reason: string;
  /** Milliseconds since 1970 by the server's clock; null when unknown. */
  since: number | null;
  retryAt: number | null;
  attempts: number;
  codec: string;
  width: number;
  height: number;
  pixelFormat: string;
  fps: number;
  /** False where the configuration turns detection off. */
  detecting: boolean;
  inferredFps: number;
  /** What is asked of this camera, 0 = not known. */
  askedFps: number;
  /** Why less is analysed than asked; '' where it is not. */
  reducedBecause: string;
  frames: number;
  inferred: number;
  decoder: string;
  /** Why it is not the decoder wished for first; empty where it is. */
  decoderNote: string;
  memory: string;
  transport: string;
  /** How the camera was known; empty where the way is not encrypted. */
  tls: string;
  track: Track | null;
  /** Pictures that came damaged and were not shown. */
  damaged: number;
  /** The last failure, also when it is over. */
  lastError: Trouble | null;
  /** The most frequent first. */
  dropped: Drop[];
  /** Null while nothing was published lately. */
  age: Quantiles | null;
  stages: StageAge[];
  pool: Pool | null;
}

export interface Platform {
  kind: string;
  why: string;
  gpu: string;
  driver: string;
  cuda: string;
  cpu: string;
  cores: number;
  os: string;
  arch: string;
  gpus: Gpu[];
  /** null on what is no Jetson. */
  jetson: Jetson | null;
  notes: string[];
}

export interface Jetson {
  model: string;
  l4t: string;
  jetpack: string;
  powerMode: string;
}

/** A card that serves, or was meant to. */
export interface Gpu {
  index: number;
  name: string;
  cameras: number;
  /** 0 to 1 */
  utilisation: number;
  /** ok, lost or unused */
  state: string;
  reason: string;
}

/** What keeps pictures young when more is asked than can be done. */
export interface Governor {
  reducing: boolean;
  reason: string;
  since: number | null;
  askedFps: number;
  allowedFps: number;
  cameras: number;
}

export interface Memory {
  strategy: string;
  pinnedBytes: number;
  poolBytes: number;
  /** 0 = no limit. */
  limitBytes: number;
  limitWhy: string;
  slots: number;
  inUse: number;
  highWater: number;
  hugePages: boolean;
  notes: string[];
}

export interface Inference {
  model: string;
  provider: string;
  precision: string;
  library: string;
  libraryVersion: string;
  batch: number;
  batchMean: number;
  threads: number;
  inputWidth: number;
  inputHeight: number;
  scoreThreshold: number;
  probeMs: number;
  fps: number;
  run: Quantiles | null;
  notes: string[];
}

export interface System {
  version: string;
  startedAt: number | null;
  ready: boolean;
  /** Why not ready. */
  reason: string;
  /** There is a session to end. */
  login: boolean;
  platform: Platform;
  memory: Memory;
  inference: Inference;
  governor: Governor;
  capacity: Capacity;
}

/** What of the box is in use, and how many more cameras it takes. */
export interface Capacity {
  /** Of the cameras' mean kind; null while that is not known. */
  more: number | null;
  limitedBy: string;
  /** Parts in use, 0 to 1, by resource; what the box lacks is left out. */
  shares: Record<string, number>;
  /** Resources that have been nearly used up for a while. */
  short: string[];
}

/** x1, y1, x2, y2 in fractions of the picture. */
export type Box = readonly [number, number, number, number];

export interface DetectedObject {
  track: number;
  label: string;
  score: number;
  box: Box;
}

export interface Detection {
  camera: string;
  seq: number;
  /** Milliseconds since 1970 by the server's clock. */
  capturedAt: number;
  ageMs: number;
  width: number;
  height: number;
  objects: DetectedObject[];
}
