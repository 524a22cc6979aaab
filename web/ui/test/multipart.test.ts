import { describe, expect, it } from 'vitest';
import { boundaryOf, MultipartError, MultipartParser, type Part } from '../src/live/multipart';

const text = new TextEncoder();

/** A small generator with a seed, so that a failing case can be run again. */
function random(seed: number): () => number {
  let s = seed >>> 0;
  return () => {
    s = (Math.imul(s, 1664525) + 1013904223) >>> 0;
    return s / 2 ** 32;
  };
}

function concat(...pieces: (string | Uint8Array)[]): Uint8Array {
  const all = pieces.map((p) => (typeof p === 'string' ? text.encode(p) : p));
  const out = new Uint8Array(all.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of all) {
    out.set(p, at);
    at += p.length;
  }
  return out;
}

function parse(bytes: Uint8Array, cut: (left: number) => number, boundary = 'frame'): Part[] {
  const parts: Part[] = [];
  const parser = new MultipartParser(boundary, (p) => parts.push(p));
  for (let at = 0; at < bytes.length; ) {
    const n = Math.max(1, Math.min(bytes.length - at, cut(bytes.length - at)));
    parser.push(bytes.slice(at, at + n));
    at += n;
  }
  return parts;
}

function onePart(body: Uint8Array, camera: string): Uint8Array {
  return concat(
    `--frame\r\nContent-Type: image/jpeg\r\nContent-Length: ${body.length}\r\nX-Camera: ${camera}\r\n\r\n`,
    body,
    '\r\n',
  );
}

describe('MultipartParser', () => {
  it('gives the same parts however the bytes are cut', () => {
    for (let seed = 1; seed <= 200; seed++) {
      const rnd = random(seed);
      const bodies = Array.from({ length: 1 + Math.floor(rnd() * 6) }, () =>
        // Bodies full of CR, LF and dashes look like boundaries to a careless reader.
        Uint8Array.from({ length: Math.floor(rnd() * 400) }, () => [13, 10, 45, 102, Math.floor(rnd() * 256)][Math.floor(rnd() * 5)]!),
      );
      const bytes = concat(...bodies.map((b, i) => onePart(b, `cam-${i}`)), '--frame--\r\n');
      const most = 1 + Math.floor(rnd() * 60);
      const parts = parse(bytes, () => 1 + Math.floor(rnd() * most));
      expect(parts.map((p) => [p.headers.get('x-camera'), [...p.body]]), `seed ${seed}`).toEqual(
        bodies.map((b, i) => [`cam-${i}`, [...b]]),
      );
    }
  });

  it('does not take a boundary inside a body for an end', () => {
    const body = concat('\r\n--frame\r\nContent-Length: 3\r\n\r\nabc\r\n--frame--\r\n');
    const parts = parse(concat(onePart(body, 'a'), onePart(text.encode('z'), 'b')), () => 1);
    expect(parts).toHaveLength(2);
    expect(parts[0]!.body).toEqual(body);
  });

  it('gives a part as soon as its last byte is there', () => {
    const parts: Part[] = [];
    const parser = new MultipartParser('frame', (p) => parts.push(p));
    const bytes = onePart(text.encode('hello'), 'a');
    parser.push(bytes.slice(0, bytes.length - 3));
    expect(parts).toHaveLength(0);
    parser.push(bytes.slice(bytes.length - 3, bytes.length - 2));
    expect(parts).toHaveLength(1);
  });

  it('reads bare line feeds, a preamble and an empty body', () => {
    const parts = parse(concat('ignore me\n--frame\nContent-Length: 0\n\n\n--frame\nContent-Length: 2\n\nok\n--frame--\n'), () => 7);
    expect(parts.map((p) => p.body.length)).toEqual([0, 2]);
  });

  it('ignores what follows the closing boundary', () => {
    const parts: Part[] = [];
    const parser = new MultipartParser('frame', (p) => parts.push(p));
    parser.push(concat(onePart(text.encode('x'), 'a'), '--frame--\r\n', onePart(text.encode('y'), 'b')));
    expect(parser.ended).toBe(true);
    expect(parts).toHaveLength(1);
  });

  const bad: [string, string, string][] = [
    ['no length', '--frame\r\nContent-Type: image/jpeg\r\n\r\n', 'a part without a Content-Length'],
    ['a negative length', '--frame\r\nContent-Length: -1\r\n\r\n', 'a part without a Content-Length'],
    ['a huge length', '--frame\r\nContent-Length: 999999999\r\n\r\n', 'a part of 999999999 bytes, more than 33554432'],
    ['no header name', '--frame\r\n: x\r\n\r\n', 'a header line without a name'],
    ['a body that goes on', '--frame\r\nContent-Length: 1\r\n\r\nab\r\n', 'a part is longer than its Content-Length'],
    ['an endless line', 'x'.repeat(9000), 'a line of more than 8192 bytes between parts'],
    ['an endless head', `--frame\r\n${'A: b\r\n'.repeat(2000)}`, 'a head of more than 8192 bytes'],
    ['no boundary', `${'x\r\n'.repeat(30000)}`, 'no boundary in 65536 bytes'],
  ];
  it.each(bad)('refuses %s', (_, bytes, message) => {
    expect(() => parse(text.encode(bytes), () => 100)).toThrow(new MultipartError(message));
  });

  it('survives noise: parts or a MultipartError, nothing else', () => {
    for (let seed = 1; seed <= 300; seed++) {
      const rnd = random(seed);
      const words = ['--frame', '--frame--', '\r\n', '\n', 'Content-Length: ', '5', ': ', 'abc', '\0', 'é'];
      const bytes = concat(...Array.from({ length: 60 }, () => words[Math.floor(rnd() * words.length)]!));
      try {
        parse(bytes, () => 1 + Math.floor(rnd() * 9));
      } catch (err) {
        expect(err, `seed ${seed}`).toBeInstanceOf(MultipartError);
      }
    }
  });
});

describe('boundaryOf', () => {
  it.each([
    ['multipart/mixed; boundary=frame', 'frame'],
    ['multipart/x-mixed-replace;boundary="a b"', 'a b'],
    ['Multipart/Mixed; charset=x; Boundary=q', 'q'],
    ['multipart/mixed', null],
    ['text/html; boundary=frame', null],
    [null, null],
  ])('%s → %s', (given, want) => {
    expect(boundaryOf(given)).toBe(want);
  });
});
