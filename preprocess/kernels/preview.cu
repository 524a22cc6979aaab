// Preview: a picture of any format, wherever it lies, to a small one for a JPEG
// encoder: I420, 8 bit, full range, BT.601, written to host memory across the
// bus, so that a picture in device memory is never fetched whole. Pictures shrink
// by averaging areas. The Go twin is overlay.Renderer, whose steps and roundings
// these are: 10-bit samples to 8, rows, columns, then range and matrix.
#include "shim.h"

struct Preview {
  u64 plane[3];        // device addresses of the first visible samples
  u64 out[3];          // of Y, Cb and Cr
  int stride[3];       // bytes
  int ystride, cstride; // of the output, multiples of 4 and 2
  int width, height;   // visible luma samples
  int cwidth, cheight; // visible chroma samples
  int planes;          // 1 grey, 2 semi-planar, 3 planar
  int bytes;           // of a sample, 1 or 2
  int shift;           // bits of a 2-byte sample below the 8 that are kept
  int cols, rows;      // of the output, both even
  float step_x, step_y;   // luma samples per output sample
  float cstep_x, cstep_y; // chroma samples per output chroma sample
  int log_w, log_h;    // a block's tile is 1<<log_w columns by 1<<log_h rows of luma, at least 4 by 2
  int cross;           // the matrix changes
  int cb_y, cr_y, cb_cb, cr_cb, cb_cr, cr_cr; // then: codes to codes, in 1/65536
  float black, luma_k; // luma code to full range: (code - black) * luma_k
  float chroma_k;      // chroma code to full range, around 128
};

// Reach is the run of samples that an output sample covers, and its exact ends.
struct Reach { int at, n; float from, to; };

DEVICE Reach reach_of(int i, int count, float step) {
  const float dust = 1e-3f; // of rounding, not worth a sample
  Reach r;
  r.from = (float)i * step;
  r.to = (float)(i + 1) * step;
  if (r.from > (float)(count - 1)) r.from = (float)(count - 1);
  if (r.to < r.from) r.to = r.from;
  if (r.to > (float)count) r.to = (float)count;
  r.at = (int)(r.from + dust);
  int end = (int)(r.to - dust);
  if ((float)end < r.to - dust) end++;
  r.n = imax(end - r.at, 1);
  return r;
}

// Area is the part of one plane that a tile needs. Its rows are averaged into
// shared memory, one row of bytes for each output row.
struct __attribute__((aligned(16))) Area {
  u64 base;      // address of the first sample needed of row 0
  int stride;    // of the plane, bytes
  int used;      // bytes needed of a row
  int lead;      // bytes from the 16-byte boundary before base to base
  int vecs;      // vectors of 16 bytes a row
  int at, pitch; // of the averaged rows in shared memory
  int first;     // sample of the plane that base is at
  int step;      // bytes from a sample of the component to the next, averaged
  int count;     // rows of the plane
  float step_y;
  int row0, rows; // output rows of the tile in this plane
  int items;     // rows * vecs
  float inverse; // of vecs
};

#define AREAS_AT 192
DEVICE const Preview *preview_of() { return in_shared<const Preview>(0); }
DEVICE const Area *areas() { return in_shared<const Area>(AREAS_AT); }
DEVICE int means_at() { return AREAS_AT + 3 * (int)sizeof(Area); }

// place_preview is the first step of a block, see place_image.
DEVICE void place_preview(const Preview *m, int tid) {
  if (tid < (int)sizeof(Preview) / 4) in_shared<u32>(0)[tid] = ((const u32 *)m)[tid];
}

DEVICE Area area_of(const Preview *m, int p, int x, int y) {
  int log_w = m->log_w, log_h = m->log_h, cols = m->width;
  float step_x = m->step_x;
  Area a;
  a.step = 1;
  a.count = m->height;
  a.step_y = m->step_y;
  if (p > 0) {
    log_w--;
    log_h--;
    cols = m->cwidth;
    step_x = m->cstep_x;
    a.count = m->cheight;
    a.step_y = m->cstep_y;
    if (m->planes == 2) a.step = 2;
  }
  Reach l = reach_of(x << log_w, cols, step_x), r = reach_of(((x + 1) << log_w) - 1, cols, step_x);
  a.first = l.at;
  a.stride = m->stride[p];
  a.used = (r.at + r.n - l.at) * a.step * m->bytes;
  a.base = m->plane[p] + l.at * a.step * m->bytes;
  a.lead = (int)(a.base & 15);
  a.vecs = (a.used + 30) / 16;
  a.inverse = 1.0f / (float)a.vecs;
  a.pitch = a.vecs * 16 / m->bytes;
  a.row0 = y << log_h;
  a.rows = imin(1 << log_h, (p > 0 ? m->rows / 2 : m->rows) - a.row0);
  a.items = a.rows * a.vecs;
  a.at = 0;
  return a;
}

// place_areas is the second step: thread p makes plane p's area.
DEVICE void place_areas(const Preview *m, int x, int y, int tid) {
  if (tid >= m->planes) return;
  Area a = area_of(m, tid, x, y);
  int at = means_at();
  if (tid > 0) {
    Area luma = area_of(m, 0, x, y);
    at += luma.rows * luma.pitch;
  }
  if (tid > 1) at += a.rows * a.pitch; // the other chroma plane's area is as large
  a.at = at;
  in_shared<Area>(AREAS_AT)[tid] = a;
}

// load_part loads 16 bytes at p of a row that begins at start. Where rows are
// no multiple of 16 apart they are taken one by one, and those that nobody needs
// are left: they may lie outside of the memory.
DEVICE vec load_part(u64 p, u64 start, int used) {
  if ((p & 15) == 0) return load_vec(p);
  u32 w[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 16; i++)
    if (p + i >= start && p + i < start + used) w[i / 4] |= (u32)load<u8>(p + i) << (i % 4 * 8);
  return make_vec(w[0], w[1], w[2], w[3]);
}

// narrow rounds two 2-byte samples to 8 bits each, in the same places.
DEVICE u32 narrow(u32 v, int shift) {
  int half = 1 << shift >> 1;
  int lo = imin(((int)(v & 0xffff) + half) >> shift, 255), hi = imin(((int)(v >> 16) + half) >> shift, 255);
  return (u32)lo | (u32)hi << 16;
}

// Sums are sums of rows: two 16-bit lanes a word. With 1-byte samples words 2i
// and 2i+1 hold the even and odd samples of word i; with 2-byte samples word i
// holds those of word i. Weights of a column of rows add up to 256, so that the
// lanes cannot overflow.
struct Sums { u32 w[8]; };

DEVICE void add_row(Sums *s, const vec *v, u32 weight, int bytes, int shift) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    u32 x = word(v, i);
    if (bytes == 2) {
      s->w[i] += narrow(x, shift) * weight;
    } else {
      s->w[2 * i] += (x & 0x00ff00ff) * weight;
      s->w[2 * i + 1] += (x >> 8 & 0x00ff00ff) * weight;
    }
  }
}

DEVICE void put_means(const Sums *s, int to, int bytes) {
  const u32 half = 0x00800080, low = 0x00ff00ff;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (bytes == 2) {
      u32 m = (s->w[i] + half) >> 8 & low;
      in_shared<u16>(to)[i] = (u16)(m | m >> 8);
    } else {
      in_shared<u32>(to)[i] = ((s->w[2 * i] + half) >> 8 & low) | ((s->w[2 * i + 1] + half) & ~low);
    }
  }
}

// average_rows makes 16 bytes of an output row's averages. BATCH loads are on
// their way before the first is waited for.
#define BATCH 4
DEVICE void average_rows(const Preview *m, const Area *a, int j, int k) {
  Reach y = reach_of(a->row0 + j, a->count, a->step_y);
  Sums s = {{0, 0, 0, 0, 0, 0, 0, 0}};
  float scale = 256.0f / (y.to - y.from);
  int sum = 0;
  for (int r = 0; r < y.n; r += BATCH) {
    vec v[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; i++)
      if (r + i < y.n) {
        u64 start = a->base + (long long)(y.at + r + i) * a->stride;
        v[i] = load_part(start - a->lead + 16 * k, start, a->used);
      }
#pragma unroll
    for (int i = 0; i < BATCH; i++)
      if (r + i < y.n) {
        float end = (float)(y.at + r + i + 1);
        int next = r + i + 1 == y.n ? 256 : (int)((fclamp(end, y.from, y.to) - y.from) * scale + 0.5f);
        add_row(&s, &v[i], (u32)(next - sum), m->bytes, m->shift);
        sum = next;
      }
  }
  put_means(&s, a->at + j * a->pitch + k * 16 / m->bytes, m->bytes);
}

// average is the third step: all rows of the tile.
DEVICE void average(const Preview *m, int tid, int nthreads) {
  const Area *a = areas();
#pragma unroll
  for (int p = 0; p < 3; p++) {
    if (p >= m->planes) break;
    for (int n = tid; n < a[p].items; n += nthreads) {
      int j = (int)(((float)n + 0.5f) * a[p].inverse); // exact for n below 2^21
      average_rows(m, &a[p], j, n - j * a[p].vecs);
    }
  }
}

// Span is a run of averaged samples: the inner ones have one weight, the first
// and last what is covered of them. Weights add up to 65536.
struct Span { int at, n; u32 first, inner, last; };

DEVICE Span span_of(int i, int count, float step) {
  Reach r = reach_of(i, count, step);
  Span s = {r.at, r.n, 65536, 0, 0};
  if (r.n > 1) {
    float unit = 65536.0f / (r.to - r.from);
    s.inner = (u32)unit;
    s.first = (u32)(unit * ((float)(r.at + 1) - r.from) + 0.5f);
    s.last = 65536 - s.first - s.inner * (u32)(r.n - 2);
  }
  return s;
}

// mean is the average of a span in output row j. second chooses Cr of pairs.
DEVICE int mean(const Preview *m, const Area *a, const Span *s, int j, int second) {
  int at = a->at + j * a->pitch + a->lead / m->bytes + (s->at - a->first) * a->step + second;
  u32 sum = shared[at] * s->first;
  for (int k = 1; k < s->n - 1; k++) sum += shared[at + k * a->step] * s->inner;
  if (s->n > 1) sum += shared[at + (s->n - 1) * a->step] * s->last;
  return imin((int)((sum + 32768) >> 16), 255);
}

DEVICE u32 tone_luma(const Preview *m, int v) {
  return (u32)fclamp(((float)v - m->black) * m->luma_k + 0.5f, 0.0f, 255.0f);
}

// Chroma is a converted sample and what it adds to its luma.
struct Chroma { u32 cb, cr; int shift; };

DEVICE u32 code_of(int v) { return (u32)imin(imax(v >> 16, 0), 255); }

DEVICE Chroma tone_chroma(const Preview *m, int cb, int cr) {
  Chroma c;
  cb -= 128;
  cr -= 128;
  c.shift = 0;
  if (m->cross) {
    const int middle = 128 * 65536 + 32768;
    c.cb = code_of(cb * m->cb_cb + cr * m->cr_cb + middle);
    c.cr = code_of(cb * m->cb_cr + cr * m->cr_cr + middle);
    c.shift = (cb * m->cb_y + cr * m->cr_y + 32768) >> 16;
    return c;
  }
  c.cb = (u32)fclamp((float)cb * m->chroma_k + 128.5f, 0.0f, 255.0f);
  c.cr = (u32)fclamp((float)cr * m->chroma_k + 128.5f, 0.0f, 255.0f);
  return c;
}

DEVICE Chroma chroma_at(const Preview *m, int cx, int j) {
  Chroma grey = {128, 128, 0};
  if (m->planes == 1) return grey;
  const Area *cb = areas() + 1, *cr = areas() + m->planes - 1;
  Span s = span_of(cx, m->cwidth, m->cstep_x);
  return tone_chroma(m, mean(m, cb, &s, j, 0), mean(m, cr, &s, j, m->planes == 2));
}

// emit_quad writes four columns of two rows of luma and their chroma, so that a
// warp writes whole lines across the bus. Columns beyond the picture's last
// repeat it and lie in the rows' padding.
DEVICE void emit_quad(const Preview *m, int x, int y, int cj) {
  const Area *a = areas();
  Chroma c[2];
  u32 rows[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < 2; i++) c[i] = chroma_at(m, x / 2 + i, cj);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    Span s = span_of(x + i, m->width, m->step_x);
#pragma unroll
    for (int k = 0; k < 2; k++) rows[k] |= tone_luma(m, mean(m, a, &s, 2 * cj + k, 0) + c[i / 2].shift) << (8 * i);
  }
#pragma unroll
  for (int k = 0; k < 2; k++) store<u32>(m->out[0] + (u64)((y + k) * m->ystride + x), rows[k]);
  u64 at = (u64)(y / 2 * m->cstride + x / 2);
  store<u16>(m->out[1] + at, (u16)(c[0].cb | c[1].cb << 8));
  store<u16>(m->out[2] + at, (u16)(c[0].cr | c[1].cr << 8));
}

// emit_preview is the last step.
DEVICE void emit_preview(const Preview *m, int x, int y, int tid, int nthreads) {
  int log_q = m->log_w - 2; // quads of a row
  int x0 = x << m->log_w, y0 = y << m->log_h;
  for (int k = tid; k < 1 << (log_q + m->log_h - 1); k += nthreads) {
    int qx = x0 + 4 * (k & ((1 << log_q) - 1)), cj = k >> log_q;
    if (qx < m->cols && y0 + 2 * cj < m->rows) emit_quad(m, qx, y0 + 2 * cj, cj);
  }
}

#ifdef HOST

// launch_host does what the driver does with cuLaunchKernel's arguments; shape
// is grid and block.
extern "C" int launch_host(const char *, const unsigned *shape, unsigned bytes, void **params) {
  Block memory(bytes);
  int nthreads = shape[3];
  for (unsigned y = 0; y < shape[1]; y++)
    for (unsigned x = 0; x < shape[0]; x++) {
      for (int tid = 0; tid < nthreads; tid++) place_preview((const Preview *)params[0], tid);
      for (int tid = 0; tid < nthreads; tid++) place_areas(preview_of(), x, y, tid);
      for (int tid = 0; tid < nthreads; tid++) average(preview_of(), tid, nthreads);
      for (int tid = 0; tid < nthreads; tid++) emit_preview(preview_of(), x, y, tid, nthreads);
    }
  return 0;
}

extern "C" int preview_size() { return sizeof(Preview); }
extern "C" int preview_header() { return means_at(); }

#else

KERNEL __attribute__((launch_bounds(256, 4))) void preview(Preview from) {
  dim b = block();
  int tid = thread(), n = threads();
  place_preview(&from, tid);
  __syncthreads();
  place_areas(preview_of(), b.x, b.y, tid);
  __syncthreads();
  average(preview_of(), tid, n);
  __syncthreads();
  emit_preview(preview_of(), b.x, b.y, tid, n);
}

#endif
