// What the models are and find: asked for only while the page of models is open.

export interface Finding {
  about: string;
  value: string;
  evidence: string;
  certainty: string;
}

export interface Model {
  id: string;
  file: string;
  family: string;
  state: string;
  reason: string;
  provider: string;
  precision: string;
  msPerImage: number;
  scoreThreshold: number;
  nmsIou: number;
  labels: string[];
  cameras: string[];
  rejected: { file: string; reason: string } | null;
}

export interface ModelReport {
  findings: Finding[];
  notes: string[];
  facts: [string, string][];
}

type Fields = Record<string, unknown>;

const fields = (v: unknown): Fields => (typeof v === 'object' && v !== null && !Array.isArray(v) ? (v as Fields) : {});
const text = (v: unknown): string => (typeof v === 'string' ? v : '');
const number = (v: unknown): number => (typeof v === 'number' && Number.isFinite(v) ? v : 0);
const list = (v: unknown): unknown[] => (Array.isArray(v) ? v : []);
const texts = (v: unknown): string[] => list(v).map(text).filter(Boolean);

export function decodeModels(v: unknown): Model[] {
  return list(v).map((item) => {
    const m = fields(item);
    const r = fields(m.rejected);
    return {
      id: text(m.id),
      file: text(m.file),
      family: text(m.family),
      state: text(m.state),
      reason: text(m.reason),
      provider: text(m.provider),
      precision: text(m.precision),
      msPerImage: number(m.ms_per_image),
      scoreThreshold: number(m.score_threshold),
      nmsIou: number(m.nms_iou),
      labels: texts(m.labels),
      cameras: texts(m.cameras),
      rejected: text(r.reason) === '' ? null : { file: text(r.file), reason: text(r.reason) },
    };
  });
}

export function decodeReport(v: unknown): ModelReport {
  const r = fields(v);
  const spec = fields(r.spec);
  const input = fields(spec.input);
  const shape = list(input.shape).map((n) => (number(n) < 0 ? 'free' : String(number(n))));
  const million = number(r.params) / 1e6;
  return {
    findings: list(r.findings).map((item) => {
      const f = fields(item);
      return { about: text(f.about), value: text(f.value), evidence: text(f.evidence), certainty: text(f.certainty) };
    }),
    notes: texts(r.notes),
    facts: [
      ['Producer', text(r.producer)],
      ['Input', [text(input.name), text(input.type), shape.join(' × '), text(input.layout)].filter(Boolean).join(', ')],
      ['Parameters', million > 0 ? `${million.toFixed(2)} million` : ''],
      ['Cost', number(r.gflops) > 0 ? `${number(r.gflops).toFixed(2)} GFLOPs a picture` : ''],
      ['Opset', number(r.opset) > 0 ? String(number(r.opset)) : ''],
      ['SHA-256', text(r.sha256)],
    ],
  };
}

export function previewPath(model: string, camera: string, threshold: number, iou: number | null): string {
  const q = new URLSearchParams({ camera, threshold: threshold.toFixed(2) });
  if (iou !== null) q.set('iou', String(iou));
  return `/api/v1/models/${encodeURIComponent(model)}/preview.jpg?${q.toString()}`;
}
