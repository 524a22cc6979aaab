// An incremental reader of multipart/mixed: bytes go in as the network cuts
// them, whole parts come out. It is fed with what a server sends, so it bounds
// everything: the head of a part, the size of a body, the text between parts.

/** One part. The keys of headers are in lower case; body belongs to the receiver. */
export interface Part {
  headers: Map<string, string>;
  body: Uint8Array<ArrayBuffer>;
}

export class MultipartError extends Error {
  override readonly name = 'MultipartError';
}

const maxHead = 8 << 10;
const maxBody = 32 << 20;
const maxPreamble = 64 << 10;

const CR = 13;
const LF = 10;

type State = 'preamble' | 'head' | 'body' | 'after-body' | 'end';

export class MultipartParser {
  private state: State = 'preamble';
  private line: number[] = [];
  private skipped = 0;
  private headSize = 0;
  private headers = new Map<string, string>();
  private body = new Uint8Array(0);
  private filled = 0;
  private readonly open: string;
  private readonly close: string;

  constructor(
    boundary: string,
    private readonly emit: (part: Part) => void,
  ) {
    this.open = `--${boundary}`;
    this.close = `--${boundary}--`;
  }

  /** True once the closing boundary has been read; later bytes are ignored. */
  get ended(): boolean {
    return this.state === 'end';
  }

  /** Reads a chunk of any size. Throws MultipartError; the parser is of no use after that. */
  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length && this.state !== 'end') {
      at = this.state === 'body' ? this.readBody(chunk, at) : this.readLine(chunk, at);
    }
  }

  private readBody(chunk: Uint8Array, at: number): number {
    const n = Math.min(this.body.length - this.filled, chunk.length - at);
    this.body.set(chunk.subarray(at, at + n), this.filled);
    this.filled += n;
    if (this.filled === this.body.length) this.finishPart();
    return at + n;
  }

  private finishPart(): void {
    const part = { headers: this.headers, body: this.body };
    this.headers = new Map();
    this.body = new Uint8Array(0);
    this.state = 'after-body';
    this.skipped = 0;
    this.emit(part);
  }

  private readLine(chunk: Uint8Array, at: number): number {
    const lf = chunk.indexOf(LF, at);
    const stop = lf < 0 ? chunk.length : lf;
    if (this.line.length + stop - at > maxHead) {
      throw new MultipartError(`a line of more than ${maxHead} bytes between parts`);
    }
    for (let i = at; i < stop; i++) this.line.push(chunk[i]!);
    if (lf < 0) return chunk.length;
    if (this.line.at(-1) === CR) this.line.pop();
    const text = String.fromCharCode(...this.line);
    this.line = [];
    this.takeLine(text);
    return lf + 1;
  }

  private takeLine(text: string): void {
    if (this.state === 'head') {
      this.takeHeader(text);
      return;
    }
    const bare = text.trimEnd();
    if (bare === this.close) {
      this.state = 'end';
    } else if (bare === this.open) {
      this.state = 'head';
      this.headSize = 0;
    } else if (this.state === 'after-body' && text !== '') {
      throw new MultipartError('a part is longer than its Content-Length');
    } else if ((this.skipped += text.length + 2) > maxPreamble) {
      throw new MultipartError(`no boundary in ${maxPreamble} bytes`);
    }
  }

  private takeHeader(text: string): void {
    this.headSize += text.length + 2;
    if (this.headSize > maxHead) throw new MultipartError(`a head of more than ${maxHead} bytes`);
    if (text === '') {
      this.beginBody();
      return;
    }
    const colon = text.indexOf(':');
    if (colon <= 0) throw new MultipartError('a header line without a name');
    this.headers.set(text.slice(0, colon).trim().toLowerCase(), text.slice(colon + 1).trim());
  }

  private beginBody(): void {
    const given = this.headers.get('content-length') ?? '';
    if (!/^\d{1,9}$/.test(given)) throw new MultipartError('a part without a Content-Length');
    const size = Number(given);
    if (size > maxBody) throw new MultipartError(`a part of ${size} bytes, more than ${maxBody}`);
    this.body = new Uint8Array(size);
    this.filled = 0;
    this.state = 'body';
    if (size === 0) this.finishPart();
  }
}

/** The boundary named by a Content-Type header, or null when it names none. */
export function boundaryOf(contentType: string | null): string | null {
  if (!contentType || !/^\s*multipart\//i.test(contentType)) return null;
  const found = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType);
  return found?.[1] ?? found?.[2] ?? null;
}
