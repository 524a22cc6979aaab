// One picture as a kernel sees it, and how its samples are found. The Go side
// (image.go) lays out the same bytes; the tests compare the sizes.
#pragma once
#include "shim.h"

// Interpolation weights are fractions of this, as in the Go twin.
#define WEIGHT_ONE 2048

struct Image {
  u64 plane[3];      // device addresses of the first visible samples
  u64 out;           // device address of this image's part of the output
  int stride[3];     // bytes
  int width, height; // visible luma samples
  int cwidth, cheight; // visible chroma samples, 0 in grey pictures
  int planes;        // 1 grey, 2 semi-planar, 3 planar
  int bytes;         // of a sample, 1 or 2
  int shift;         // of the code in a 2-byte sample
  int x, y, w, h;    // where the picture lies in the output
  float rx, ry;      // luma samples per output sample
  float crx, cry;    // chroma samples per output sample
  float yk, y0;      // luma code to 0..255: yk*code + y0
  float rv, gu, gv, bu; // chroma, centred on zero, to 0..255
  float mid;         // the code of no colour
};

// Tap is the pair of samples that an output sample lies between.
struct Tap { int at, w; };

// tap_of is the half-pixel rule of OpenCV's INTER_LINEAR with the border's
// sample repeated; weights are rounded as in the Go twin, so that a row of
// weight 0 here is one there and need not cross the bus.
DEVICE Tap tap_of(int i, float ratio, int count) {
  float pos = fclamp(((float)i + 0.5f) * ratio - 0.5f, 0.0f, (float)(count - 1));
  Tap t;
  t.at = imin((int)pos, imax(count - 2, 0));
  t.w = (int)rounded((pos - (float)t.at) * WEIGHT_ONE);
  return t;
}

// Window is the part of one plane that a tile of output needs, as it lies in
// shared memory: rows of vecs vectors of 16 bytes, each row starting at the
// 16-byte boundary at or before its first byte.
struct Window {
  const u8 *base;  // of the plane
  int stride;      // of the plane, bytes
  int first, used; // first byte within a row, and how many are needed
  int vecs;        // vectors a row, enough for any alignment of the first byte
  int row0, rows;  // first row, and how many lie in shared memory
  int pairs;       // rows lie in pairs, two for each output row, not as a range
  int ty, th;      // first output row of the tile within the picture, and how many
  float ratio;     // rows per output row
  int count;       // rows of the plane
  u8 *at;          // in shared memory
};

// window_of finds what output columns [tx,tx+tw) and rows [ty,ty+th) of the
// picture need of a plane whose samples are step bytes apart.
DEVICE Window window_of(const Image *m, int p, int tx, int tw, int ty, int th, u8 *at) {
  int chroma = p > 0;
  int step = m->bytes * (m->planes == 2 && chroma ? 2 : 1);
  int cols = chroma ? m->cwidth : m->width;
  float rx = chroma ? m->crx : m->rx;
  Window w;
  w.base = (const u8 *)m->plane[p];
  w.stride = m->stride[p];
  w.ratio = chroma ? m->cry : m->ry;
  w.count = chroma ? m->cheight : m->height;
  int c0 = tap_of(tx, rx, cols).at;
  int c1 = imin(tap_of(tx + tw - 1, rx, cols).at + 1, cols - 1);
  w.first = c0 * step;
  w.used = (c1 - c0 + 1) * step;
  w.vecs = (w.used + 15 + 15) / 16;
  w.ty = ty;
  w.th = th;
  w.pairs = w.ratio > 2.0f;
  w.row0 = tap_of(ty, w.ratio, w.count).at;
  w.rows = w.pairs ? 2 * th : imin(tap_of(ty + th - 1, w.ratio, w.count).at + 1, w.count - 1) - w.row0 + 1;
  w.at = at;
  return w;
}

DEVICE int window_bytes(const Window *w) { return w->rows * w->vecs * 16; }

// source_row is the row of the plane that lies in row r of the window, or -1
// where its weight is 0 and nobody will look at it.
DEVICE int source_row(const Window *w, int r) {
  if (!w->pairs) return w->row0 + r;
  Tap t = tap_of(w->ty + r / 2, w->ratio, w->count);
  if (!(r & 1)) return t.w == WEIGHT_ONE ? -1 : t.at;
  return t.w == 0 ? -1 : imin(t.at + 1, w->count - 1);
}

// address_of is the 16-byte boundary at or before the first byte of a row. The
// up to 15 bytes before and after the needed ones share their 16 bytes with
// them, so reading them cannot leave the memory.
DEVICE const u8 *row_start(const Window *w, int row) { return w->base + (long long)row * w->stride + w->first; }

// fetch brings the window into shared memory with 16-byte loads, neighbouring
// threads reading neighbouring vectors. Over PCIe the access pattern is the
// cost: whole rows of a tile travel in long requests, each byte once, and four
// loads a thread are on their way before the first is waited for.
DEVICE void fetch(const Window *w, int tid, int nthreads) {
  int total = w->rows * w->vecs;
  for (int k = tid; k < total; k += 4 * nthreads) {
    vec v[4];
    int used[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int n = k + i * nthreads;
      used[i] = 0;
      if (n < total) {
        int r = n / w->vecs;
        int row = source_row(w, r);
        if (row >= 0) {
          const u8 *start = row_start(w, row);
          const u8 *p = (const u8 *)((u64)start & ~15ull) + (n - r * w->vecs) * 16;
          used[i] = p < start + w->used; // the last vector may lie behind the row's last needed byte
          if (used[i]) v[i] = load_vec(p);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (used[i]) store_vec(w->at + (u64)(k + i * nthreads) * 16, v[i]);
  }
}

// sample reads the code at byte offset off (from the first byte of the window)
// of a row that starts at p in shared memory.
DEVICE int code_at(const u8 *p, int off, int bytes, int shift) {
  if (bytes == 1) return p[off];
  return ((p[off] | p[off + 1] << 8) >> shift) & 0x3ff;
}

// Rows are the two rows of a window that an output row lies between.
struct Rows { const u8 *top, *bottom; int w; };

DEVICE Rows rows_of(const Window *w, int i) {
  Tap t = tap_of(w->ty + i, w->ratio, w->count);
  int below = imin(t.at + 1, w->count - 1);
  int r0 = w->pairs ? 2 * i : t.at - w->row0;
  int r1 = w->pairs ? 2 * i + 1 : below - w->row0;
  Rows r;
  r.w = t.w;
  r.top = w->at + r0 * w->vecs * 16 + (int)((u64)row_start(w, t.at) & 15);
  r.bottom = w->at + r1 * w->vecs * 16 + (int)((u64)row_start(w, below) & 15);
  // A row of weight 0 was not fetched: let the other stand in.
  if (w->pairs && t.w == 0) r.bottom = r.top;
  if (w->pairs && t.w == WEIGHT_ONE) r.top = r.bottom;
  return r;
}

// blend interpolates one component, in codes. off counts bytes from the
// window's first; next is the distance of the second tap, 0 in a plane one
// sample wide.
DEVICE float blend(const Rows *r, int off, int next, int wx, const Image *m) {
  int a = code_at(r->top, off, m->bytes, m->shift), b = code_at(r->top, off + next, m->bytes, m->shift);
  int c = code_at(r->bottom, off, m->bytes, m->shift), d = code_at(r->bottom, off + next, m->bytes, m->shift);
  float top = (float)(a * WEIGHT_ONE + (b - a) * wx);
  float bottom = (float)(c * WEIGHT_ONE + (d - c) * wx);
  return (top + (bottom - top) * ((float)r->w * (1.0f / WEIGHT_ONE))) * (1.0f / WEIGHT_ONE);
}

// Tile is a block's part of the output with the windows that it reads.
struct Tile {
  int tx, tw, ty, th; // within the picture; tw or th 0 where the tile is padding only
  Window plane[3];
};

// tile_of lays the windows of output columns [x,x+w) and rows [y,y+h) out in
// shared memory.
DEVICE Tile tile_of(const Image *m, int x, int w, int y, int h, u8 *shared) {
  Tile t;
  int x0 = imax(x, m->x), x1 = imin(x + w, m->x + m->w);
  int y0 = imax(y, m->y), y1 = imin(y + h, m->y + m->h);
  t.tx = x0 - m->x;
  t.ty = y0 - m->y;
  t.tw = imax(x1 - x0, 0);
  t.th = imax(y1 - y0, 0);
  if (t.tw == 0 || t.th == 0) {
    t.tw = t.th = 0;
    return t;
  }
#pragma unroll
  for (int p = 0; p < 3; p++) {
    if (p >= m->planes) break;
    t.plane[p] = window_of(m, p, t.tx, t.tw, t.ty, t.th, shared);
    shared += window_bytes(&t.plane[p]);
  }
  return t;
}

DEVICE void fetch_tile(const Image *m, const Tile *t, int tid, int nthreads) {
  if (t->tw == 0) return;
#pragma unroll
  for (int p = 0; p < 3; p++)
    if (p < m->planes) fetch(&t->plane[p], tid, nthreads);
}

// Sample is one output pixel's luma and chroma in 0..255 (chroma centred on 0).
struct Sample { float y, cb, cr; };

// sample_at interpolates the picture at column i, row j of the tile.
DEVICE Sample sample_at(const Image *m, const Tile *t, int i, int j) {
  Sample s;
  const Window *w = &t->plane[0];
  Tap x = tap_of(t->tx + i, m->rx, m->width);
  Rows r = rows_of(w, j);
  s.y = blend(&r, x.at * m->bytes - w->first, m->width > 1 ? m->bytes : 0, x.w, m) * m->yk + m->y0;
  s.cb = s.cr = 0.0f;
  if (m->planes == 1) return s;
  w = &t->plane[1];
  x = tap_of(t->tx + i, m->crx, m->cwidth);
  r = rows_of(w, j);
  int step = m->planes == 2 ? 2 * m->bytes : m->bytes;
  int off = x.at * step - w->first, next = m->cwidth > 1 ? step : 0;
  s.cb = blend(&r, off, next, x.w, m) - m->mid;
  if (m->planes == 2) {
    s.cr = blend(&r, off + m->bytes, next, x.w, m) - m->mid;
    return s;
  }
  w = &t->plane[2];
  r = rows_of(w, j);
  s.cr = blend(&r, off, next, x.w, m) - m->mid;
  return s;
}
