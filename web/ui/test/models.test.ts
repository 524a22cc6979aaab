import { describe, expect, test } from 'vitest';
import { decodeModels, decodeReport, previewPath } from '../src/api/models';

describe('models', () => {
  test('what is missing or of another kind becomes empty', () => {
    const [m] = decodeModels([{ id: 'default', labels: null, ms_per_image: 'fast', rejected: { file: 'a.onnx' } }]);
    expect(m).toMatchObject({ id: 'default', state: '', labels: [], cameras: [], msPerImage: 0, rejected: null });
    expect(decodeModels({})).toEqual([]);
    expect(decodeReport(null).findings).toEqual([]);
  });

  test('a rejected model comes with its reason', () => {
    const [m] = decodeModels([{ id: 'a', rejected: { file: 'b.onnx', reason: 'not finite' } }]);
    expect(m?.rejected).toEqual({ file: 'b.onnx', reason: 'not finite' });
  });

  test('the report names the input with its free sides', () => {
    const r = decodeReport({ spec: { input: { name: 'images', type: 'float32', shape: [-1, 3, 640, 640], layout: 'NCHW' } }, params: 2_630_000 });
    expect(r.facts).toContainEqual(['Input', 'images, float32, free × 3 × 640 × 640, NCHW']);
    expect(r.facts).toContainEqual(['Parameters', '2.63 million']);
  });

  test('a preview asks for the overlap only where the model does not suppress by itself', () => {
    expect(previewPath('default', 'gate', 0.3, 0.5)).toBe('/api/v1/models/default/preview.jpg?camera=gate&threshold=0.30&iou=0.5');
    expect(previewPath('default', 'gate', 0.3, null)).not.toContain('iou');
  });
});
