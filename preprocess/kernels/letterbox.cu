// Letterbox: pictures of any format, wherever they lie, to a batch of
// normalised NCHW tensors. Block z is an image, x and y a tile of its output. The Go twin is preprocess.CPU.
#include "image.h"

struct Tensor {
  int width, height;
  int log_w, log_h;     // a block's tile is 1<<log_w columns by 1<<log_h rows
  int half;             // 1 = float16 output, 0 = float32
  int channel[3];       // the tensor's plane of R, G and B
  float mul[3], add[3]; // of R, G and B: value 0..255 to normalised
  float pad[3];         // of the tensor's planes, normalised
};

// Outputs are the addresses of R, G and B of one output sample.
struct Outputs { u64 at[3]; };

template <int HALF> DEVICE void put(u64 p, float v) {
  if (HALF)
    store<u16>(p, half_bits(v));
  else
    store<float>(p, v);
}

// code_at reads a code in shared memory. 2-byte samples have even addresses.
template <int BYTES> DEVICE int code_at(int at, int shift) {
  if (BYTES == 1) return shared[at];
  return (*in_shared<const u16>(at) >> shift) & 0x3ff;
}

// Column is what the interpolation needs of one output column: bytes from a
// line's start to the first sample, from there to the second, and the weights.
struct Column { int off, next, a, b; };

DEVICE Column column_of(int i, float ratio, int count, int step, int first) {
  Tap x = tap_of(i, ratio, count);
  Column c = {x.at * step - first, count > 1 ? step : 0, WEIGHT_ONE - x.w, x.w};
  return c;
}

// pair blends two samples of a row: a code times WEIGHT_ONE, as a float with
// 2^23 on top. That takes one logical operation, a conversion takes many times
// as long.
template <int BYTES> DEVICE float pair(int at, const Column *c, int shift) {
  int v = code_at<BYTES>(at, shift) * c->a + code_at<BYTES>(at + c->next, shift) * c->b;
  return float_of((u32)v | 0x4b000000u);
}

// blend interpolates one component: a code times WEIGHT_ONE. off is added to
// the column's place.
template <int BYTES> DEVICE float blend(const Line *l, const Column *c, int off, int shift) {
  float top = pair<BYTES>(l->top + c->off + off, c, shift), bottom = pair<BYTES>(l->bottom + c->off + off, c, shift);
  return madd(bottom - top, l->w, top - 8388608.0f);
}

// Colour is what of the image turns codes into colours, kept in registers.
struct Colour { float yk, y0, rv, gu, gv, bu, mid; };

DEVICE Colour colour_of(const Image *m) {
  Colour k = {m->yk, m->y0, m->rv, -m->gu, -m->gv, m->bu, m->mid};
  return k;
}

// line_at reads one output row's line at once.
DEVICE Line line_at(int at) {
  vec v = *in_shared<const vec>(at);
  Line l = {(int)word(&v, 0), (int)word(&v, 1), float_of(word(&v, 2)), 0};
  return l;
}

// Sample is one output pixel's luma and chroma in 0..255 and around 0, the
// latter times WEIGHT_ONE and not scaled to the range yet.
struct Sample { float y, cb, cr; };

template <int BYTES, int PLANES>
DEVICE Sample sample_at(const Colour *k, int shift, int log_h, int j, const Column *luma, const Column *chroma) {
  int at = lines_at(0, log_h) + j * (int)sizeof(Line);
  Line l = line_at(at);
  Sample s = {0.0f, 0.0f, 0.0f};
  s.y = madd(blend<BYTES>(&l, luma, 0, shift), k->yk, k->y0);
  if (PLANES == 1) return s;
  l = line_at(at + ((int)sizeof(Line) << log_h));
  s.cb = blend<BYTES>(&l, chroma, 0, shift) - k->mid;
  if (PLANES == 2) {
    s.cr = blend<BYTES>(&l, chroma, BYTES, shift) - k->mid;
    return s;
  }
  l = line_at(at + (2 * (int)sizeof(Line) << log_h));
  s.cr = blend<BYTES>(&l, chroma, 0, shift) - k->mid;
  return s;
}

template <int HALF> DEVICE void put_pixel(const Colour *k, const Tensor *o, Sample s, const Outputs *p, u32 off) {
  float r = fclamp(madd(s.cr, k->rv, s.y), 0.0f, 255.0f);
  float g = fclamp(madd(s.cb, k->gu, madd(s.cr, k->gv, s.y)), 0.0f, 255.0f);
  float b = fclamp(madd(s.cb, k->bu, s.y), 0.0f, 255.0f);
  put<HALF>(p->at[0] + off, madd(r, o->mul[0], o->add[0]));
  put<HALF>(p->at[1] + off, madd(g, o->mul[1], o->add[1]));
  put<HALF>(p->at[2] + off, madd(b, o->mul[2], o->add[2]));
}

// emit_column writes every step-th row of one column of the tile, from row j on.
template <int BYTES, int PLANES, int HALF>
DEVICE void emit_column(const Image *m, const Tensor *o, const Tile *t, int x, int j, int step) {
  int size = HALF ? 2 : 4;
  u64 plane = (u64)(o->width * o->height) * size;
  Outputs p;
#pragma unroll
  for (int c = 0; c < 3; c++) p.at[c] = m->out + o->channel[c] * plane + (u64)x * size;
  int rows = imin(1 << o->log_h, o->height - t->y);
  int skip = m->y + t->ty - t->y; // rows of padding above the picture's part
  int i = x - m->x;
  bool inside = i >= t->tx && i < t->tx + t->tw;
  Column luma = {0, 0, 0, 0}, chroma = {0, 0, 0, 0};
  if (inside) {
    const Window *w = windows();
    luma = column_of(i, m->rx, m->width, BYTES, w[0].first);
    if (PLANES > 1) chroma = column_of(i, m->crx, m->cwidth, PLANES == 2 ? 2 * BYTES : BYTES, w[1].first);
  }
  Colour k = colour_of(m);
  int shift = m->shift;
  for (; j < rows; j += step) {
    u32 off = (u32)((t->y + j) * o->width) * size;
    if (inside && j >= skip && j < skip + t->th) {
      put_pixel<HALF>(&k, o, sample_at<BYTES, PLANES>(&k, shift, o->log_h, j - skip, &luma, &chroma), &p, off);
      continue;
    }
#pragma unroll
    for (int c = 0; c < 3; c++) put<HALF>(p.at[c] + off, o->pad[o->channel[c]]);
  }
}

// Rows are the two rows of a plane that an output row lies between, and the
// weight of the second.
struct Rows { u64 top, bottom; float w; };

DEVICE Rows rows_of(u64 plane, int stride, int i, float ratio, int count) {
  Tap y = tap_of(i, ratio, count);
  u64 first = plane + (long long)y.at * stride, second = plane + (long long)imin(y.at + 1, count - 1) * stride;
  Rows r = {y.w == WEIGHT_ONE ? second : first, y.w == 0 ? first : second, (float)y.w * (1.0f / WEIGHT_ONE)};
  return r;
}

template <int BYTES> DEVICE int code_in(u64 p, int shift) {
  if (BYTES == 1) return load_code8(p);
  return (load_code16(p) >> shift) & 0x3ff;
}

// pair_in and blend_in are pair and blend of what lies in the planes.
template <int BYTES> DEVICE float pair_in(u64 p, const Column *c, int shift) {
  int v = code_in<BYTES>(p, shift) * c->a + code_in<BYTES>(p + c->next, shift) * c->b;
  return float_of((u32)v | 0x4b000000u);
}

template <int BYTES> DEVICE float blend_in(const Rows *r, const Column *c, int off, int shift) {
  float top = pair_in<BYTES>(r->top + (c->off + off), c, shift), bottom = pair_in<BYTES>(r->bottom + (c->off + off), c, shift);
  return madd(bottom - top, r->w, top - 8388608.0f);
}

// sample_in reads one output pixel's samples straight from the planes.
template <int BYTES, int PLANES>
DEVICE Sample sample_in(const Image *m, const Colour *k, int i, const Column *luma, const Column *chroma) {
  Rows r = rows_of(m->plane[0], m->stride[0], i, m->ry, m->height);
  Sample s = {0.0f, 0.0f, 0.0f};
  s.y = madd(blend_in<BYTES>(&r, luma, 0, m->shift), k->yk, k->y0);
  if (PLANES == 1) return s;
  r = rows_of(m->plane[1], m->stride[1], i, m->cry, m->cheight);
  s.cb = blend_in<BYTES>(&r, chroma, 0, m->shift) - k->mid;
  if (PLANES == 3) r = rows_of(m->plane[2], m->stride[2], i, m->cry, m->cheight);
  s.cr = blend_in<BYTES>(&r, chroma, PLANES == 2 ? BYTES : 0, m->shift) - k->mid;
  return s;
}

// direct_column is emit_column without shared memory: where pixels lie in the
// card's own memory its caches serve as well, and nobody waits for the slowest of
// a block. ROWS rows are on their way before the first is waited for.
#define ROWS 2
template <int BYTES, int PLANES, int HALF>
DEVICE void direct_column(const Image *m, const Tensor *o, const Tile *t, int x, int j, int step) {
  int size = HALF ? 2 : 4;
  u64 plane = (u64)(o->width * o->height) * size;
  Outputs p;
#pragma unroll
  for (int c = 0; c < 3; c++) p.at[c] = m->out + o->channel[c] * plane + (u64)x * size;
  int rows = imin(1 << o->log_h, o->height - t->y);
  int skip = m->y + t->ty - t->y; // rows of padding above the picture's part
  int i = x - m->x;
  bool inside = i >= t->tx && i < t->tx + t->tw;
  Column luma = {0, 0, 0, 0}, chroma = {0, 0, 0, 0};
  if (inside) {
    luma = column_of(i, m->rx, m->width, BYTES, 0);
    if (PLANES > 1) chroma = column_of(i, m->crx, m->cwidth, PLANES == 2 ? 2 * BYTES : BYTES, 0);
  }
  Colour k = colour_of(m);
  for (; j < rows; j += ROWS * step) {
    Sample s[ROWS];
    if (inside) {
#pragma unroll
      for (int r = 0; r < ROWS; r++) // rows of padding read the nearest one
        s[r] = sample_in<BYTES, PLANES>(m, &k, imax(0, imin(t->ty + j + r * step - skip, m->h - 1)), &luma, &chroma);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      int row = j + r * step;
      u32 off = (u32)((t->y + row) * o->width) * size;
      if (row >= rows) break;
      if (inside && row >= skip && row < skip + t->th) {
        put_pixel<HALF>(&k, o, s[r], &p, off);
        continue;
      }
#pragma unroll
      for (int c = 0; c < 3; c++) put<HALF>(p.at[c] + off, o->pad[o->channel[c]]);
    }
  }
}

// columns_as writes the columns of a tile, by way of shared memory or DIRECT from
// the planes: every sample is interpolated, converted and written, neighbouring
// threads writing neighbouring samples.
template <int DIRECT, int BYTES, int PLANES, int HALF> DEVICE void columns_as(const Image *m, const Tensor *o, const Tile *t, int tid, int nthreads) {
  int cols = imin(1 << o->log_w, nthreads); // both powers of two
  int step = nthreads / cols;
  for (int i = tid & (cols - 1); i < 1 << o->log_w && t->x + i < o->width; i += cols)
    if (DIRECT)
      direct_column<BYTES, PLANES, HALF>(m, o, t, t->x + i, tid / cols, step);
    else
      emit_column<BYTES, PLANES, HALF>(m, o, t, t->x + i, tid / cols, step);
}

template <int DIRECT, int HALF> DEVICE void columns_to(const Image *m, const Tensor *o, const Tile *t, int tid, int nthreads) {
  switch (m->bytes * 4 + m->planes) {
    case 5: columns_as<DIRECT, 1, 1, HALF>(m, o, t, tid, nthreads); break;
    case 6: columns_as<DIRECT, 1, 2, HALF>(m, o, t, tid, nthreads); break;
    case 7: columns_as<DIRECT, 1, 3, HALF>(m, o, t, tid, nthreads); break;
    case 9: columns_as<DIRECT, 2, 1, HALF>(m, o, t, tid, nthreads); break;
    case 10: columns_as<DIRECT, 2, 2, HALF>(m, o, t, tid, nthreads); break;
    case 11: columns_as<DIRECT, 2, 3, HALF>(m, o, t, tid, nthreads); break;
  }
}

template <int DIRECT> DEVICE void columns(const Image *m, const Tensor *o, const Tile *t, int tid, int nthreads) {
  if (o->half)
    columns_to<DIRECT, 1>(m, o, t, tid, nthreads);
  else
    columns_to<DIRECT, 0>(m, o, t, tid, nthreads);
}

DEVICE Tile letterbox_tile(const Image *m, const Tensor *o, int x, int y) {
  return tile_of(m, x << o->log_w, 1 << o->log_w, y << o->log_h, 1 << o->log_h);
}

// emit is the last step of a tile whose rows are in shared memory.
DEVICE void emit(const Image *m, const Tensor *o, const Tile *t, int tid, int nthreads) { columns<0>(m, o, t, tid, nthreads); }

// direct_tile is all that there is to do for a tile of a picture that is read
// straight.
DEVICE void direct_tile(const Image *m, const Tensor *o, int x, int y, int tid, int nthreads) {
  Tile t = letterbox_tile(m, o, x, y);
  columns<1>(m, o, &t, tid, nthreads);
}

#ifdef HOST

static void letterbox_host(const Image *images, const Tensor *o, const unsigned *shape, unsigned bytes) {
  Block memory(bytes);
  int nthreads = shape[3];
  for (unsigned z = 0; z < shape[2]; z++)
    for (unsigned y = 0; y < shape[1]; y++)
      for (unsigned x = 0; x < shape[0]; x++) {
        for (int tid = 0; tid < nthreads; tid++) place_image(&images[z], tid);
        const Image *m = image();
        Tile t = letterbox_tile(m, o, x, y);
        for (int tid = 0; tid < nthreads; tid++) place_windows(m, &t, o->log_h, tid);
        for (int tid = 0; tid < nthreads; tid++) place_rows(m, &t, o->log_h, tid, nthreads);
        for (int tid = 0; tid < nthreads; tid++) fetch(m, &t, o->log_h, tid, nthreads);
        for (int tid = 0; tid < nthreads; tid++) emit(m, o, &t, tid, nthreads);
      }
}

static void direct_host(const Image *images, const Tensor *o, const unsigned *shape) {
  for (unsigned z = 0; z < shape[2]; z++)
    for (unsigned y = 0; y < shape[1]; y++)
      for (unsigned x = 0; x < shape[0]; x++)
        for (unsigned tid = 0; tid < shape[3]; tid++) direct_tile(&images[z], o, x, y, tid, shape[3]);
}

// launch_host does what the driver does with cuLaunchKernel's arguments; shape
// is grid and block.
extern "C" int launch_host(const char *kernel, const unsigned *shape, unsigned bytes, void **params) {
  const Image *images = (const Image *)params[0];
  if (strstr(kernel, "_direct"))
    direct_host(images, (const Tensor *)params[1], shape);
  else
    letterbox_host(images, (const Tensor *)params[1], shape, bytes);
  return 0;
}

extern "C" int image_size() { return sizeof(Image); }
extern "C" int tensor_size() { return sizeof(Tensor); }
extern "C" int letterbox_header(int log_h) { return bytes_at(log_h); }

#else

DEVICE void letterbox_block(const Image *from, const Tensor *o) {
  dim b = block();
  int tid = thread(), n = threads();
  place_image(from, tid);
  __syncthreads();
  const Image *m = image();
  Tile t = letterbox_tile(m, o, b.x, b.y);
  if (t.tw) { // the same for all threads of the block
    place_windows(m, &t, o->log_h, tid);
    __syncthreads();
    place_rows(m, &t, o->log_h, tid, n);
    __syncthreads();
    fetch(m, &t, o->log_h, tid, n);
    __syncthreads();
  }
  emit(m, o, &t, tid, n);
}

#define BOUNDS __attribute__((launch_bounds(MOST_THREADS, 1024 / MOST_THREADS)))
#define MOST_THREADS 512

// MOST descriptions fit into what a launch passes, 4096 bytes. Every thread reads
// them from there faster than from memory.
#define MOST 28
struct Images { Image m[MOST]; };
KERNEL BOUNDS void letterbox(Images images, Tensor o) { letterbox_block(&images.m[block().z], &o); }

// letterbox_direct is the same for pictures that all lie in the card's own memory.
KERNEL BOUNDS void letterbox_direct(Images images, Tensor o) {
  direct_tile(&images.m[block().z], &o, block().x, block().y, thread(), threads());
}

#endif
