// One picture as a kernel sees it, and how the samples that a tile of output
// needs come into shared memory. The Go side (gpu_image.go) lays out the same
// bytes; the tests compare the sizes.
#pragma once
#include "shim.h"

// Interpolation weights are fractions of this, as in the Go twin.
#define WEIGHT_ONE 2048

// LINE is what a GPU asks of memory at once: requests of whole, aligned lines
// make the fullest packets on PCIe.
#define LINE 128

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
  float yk, y0;      // luma code times WEIGHT_ONE to 0..255: yk*code + y0
  float rv, gu, gv, bu; // chroma times WEIGHT_ONE, centred on zero, to 0..255
  float mid;         // the code of no colour, times WEIGHT_ONE
};

// Tap is the pair of samples that an output sample lies between.
struct Tap { int at, w; };

// tap_of is the half-pixel rule of OpenCV's INTER_LINEAR with the border's
// sample repeated; weights are rounded as in the Go twin, so that a row of
// weight 0 here is one there and need not cross the bus.
DEVICE Tap tap_of(int i, float ratio, int count) {
  float pos = fclamp(madd((float)i + 0.5f, ratio, -0.5f), 0.0f, (float)(count - 1));
  Tap t;
  t.at = imin((int)pos, imax(count - 2, 0));
  t.w = (int)rounded((pos - (float)t.at) * WEIGHT_ONE);
  return t;
}

// Tile is a block's part of the output: columns [x,x+w) and rows [y,y+h) of it,
// of which the picture fills columns [tx,tx+tw) and rows [ty,ty+th), counted
// from its own corner. tw and th are 0 where there is padding only.
struct Tile { int x, y, tx, tw, ty, th; };

DEVICE Tile tile_of(const Image *m, int x, int w, int y, int h) {
  Tile t = {x, y, 0, 0, 0, 0};
  int x0 = imax(x, m->x), x1 = imin(x + w, m->x + m->w);
  int y0 = imax(y, m->y), y1 = imin(y + h, m->y + m->h);
  if (x0 >= x1 || y0 >= y1) return t;
  t.tx = x0 - m->x;
  t.tw = x1 - x0;
  t.ty = y0 - m->y;
  t.th = y1 - y0;
  return t;
}

// Window is the part of one plane that a tile needs, as it lies in shared
// memory: rows of whole lines, so that a byte keeps its place within its line
// and neighbouring threads fetch a line in one request.
struct __attribute__((aligned(16))) Window {
  u64 base;        // address of the first byte needed of row 0
  int stride;      // of the plane, bytes
  int first;       // byte within a row that base is at
  int used;        // bytes needed of a row
  int vecs;        // vectors of 16 bytes a row, enough for every row's place in its lines
  int row0, rows;  // first row, and how many lie in shared memory
  int pairs;       // rows lie in pairs, two for each output row, not as a range
  int count;       // rows of the plane
  float ratio;     // rows per output row
  float inverse;   // of vecs
  int slots;       // rows * vecs
  int at;          // of the first row in shared memory
};

// Line is one output row as the interpolation sees it: where in shared memory
// the two rows that it lies between have their first byte, and the weight of
// the second, 0..1.
struct __attribute__((aligned(16))) Line { int top, bottom; float w; int unused; };

// A block's shared memory holds the image, three windows, tile_h lines and 4*tile_h
// addresses of rows for each of three planes, then the windows' bytes. The Go
// side counts the same.
#define IMAGE_AT 0
#define WINDOWS_AT 144
DEVICE const Image *image() { return in_shared<const Image>(IMAGE_AT); }
DEVICE const Window *windows() { return in_shared<const Window>(WINDOWS_AT); }
DEVICE int lines_at(int p, int log_h) { return WINDOWS_AT + 3 * (int)sizeof(Window) + ((p << log_h) * (int)sizeof(Line)); }
DEVICE int rows_at(int p, int log_h) { return lines_at(3, log_h) + ((p << (log_h + 2)) * 8); }
DEVICE int bytes_at(int log_h) { return (rows_at(3, log_h) + LINE - 1) & -LINE; }

DEVICE Window window_of(const Image *m, int p, const Tile *t) {
  Window w;
  int step = m->bytes, cols = m->width;
  float rx = m->rx;
  w.ratio = m->ry;
  w.count = m->height;
  if (p > 0) {
    if (m->planes == 2) step *= 2;
    cols = m->cwidth;
    rx = m->crx;
    w.ratio = m->cry;
    w.count = m->cheight;
  }
  w.stride = m->stride[p];
  int c0 = tap_of(t->tx, rx, cols).at;
  int c1 = imin(tap_of(t->tx + t->tw - 1, rx, cols).at + 1, cols - 1);
  w.first = c0 * step;
  w.base = m->plane[p] + w.first;
  w.used = (c1 - c0 + 1) * step;
  // Rows that are whole lines apart begin at the same place of a line.
  int lead = (w.stride & (LINE - 1)) == 0 ? (int)(w.base & (LINE - 1)) : LINE - 1;
  w.vecs = (lead + w.used + LINE - 1) / LINE * (LINE / 16);
  w.inverse = 1.0f / (float)w.vecs;
  w.pairs = w.ratio > 2.0f;
  w.row0 = tap_of(t->ty, w.ratio, w.count).at;
  w.rows = w.pairs ? 2 * t->th : imin(tap_of(t->ty + t->th - 1, w.ratio, w.count).at + 1, w.count - 1) - w.row0 + 1;
  w.slots = w.rows * w.vecs;
  w.at = 0;
  return w;
}

// place_image is the first step of a block: the description comes into shared
// memory, whether it is a parameter or lies in memory.
DEVICE void place_image(const Image *m, int tid) {
  if (tid < (int)sizeof(Image) / 4) in_shared<u32>(IMAGE_AT)[tid] = ((const u32 *)m)[tid];
}

// place_windows is the second step: thread p makes plane p's window.
DEVICE void place_windows(const Image *m, const Tile *t, int log_h, int tid) {
  if (tid >= m->planes || t->tw == 0) return;
  Window w = window_of(m, tid, t);
  int at = bytes_at(log_h);
  if (tid > 0) at += window_of(m, 0, t).slots * 16;
  if (tid > 1) at += window_of(m, 1, t).slots * 16;
  w.at = at;
  in_shared<Window>(WINDOWS_AT)[tid] = w;
}

// row_start is the address of the first byte that is needed of a row.
DEVICE u64 row_start(const Window *w, int row) { return w->base + (long long)row * w->stride; }

// in_row is where that byte lies in row r of the window.
DEVICE int in_row(const Window *w, int r, int row) { return w->at + r * w->vecs * 16 + (int)(row_start(w, row) & (LINE - 1)); }

DEVICE Line line_of(const Window *w, const Tile *t, int j) {
  Tap y = tap_of(t->ty + j, w->ratio, w->count);
  int below = imin(y.at + 1, w->count - 1);
  Line l;
  l.top = in_row(w, w->pairs ? 2 * j : y.at - w->row0, y.at);
  l.bottom = in_row(w, w->pairs ? 2 * j + 1 : below - w->row0, below);
  l.w = (float)y.w * (1.0f / WEIGHT_ONE);
  l.unused = 0;
  // A row of weight 0 is not fetched: let the other stand in.
  if (w->pairs && y.w == 0) l.bottom = l.top;
  if (w->pairs && y.w == WEIGHT_ONE) l.top = l.bottom;
  return l;
}

// source_of is the address of what lies in row r of the window, or 0 where the
// row's weight is 0 and nobody will look at it.
DEVICE u64 source_of(const Window *w, const Tile *t, int r) {
  if (!w->pairs) return row_start(w, w->row0 + r);
  Tap y = tap_of(t->ty + r / 2, w->ratio, w->count);
  if (!(r & 1)) return y.w == WEIGHT_ONE ? 0 : row_start(w, y.at);
  return y.w == 0 ? 0 : row_start(w, imin(y.at + 1, w->count - 1));
}

// place_rows is the third step: what depends on the row alone.
DEVICE void place_rows(const Image *m, const Tile *t, int log_h, int tid, int nthreads) {
  if (t->tw == 0) return;
  const Window *w = windows();
  for (int k = tid; k < m->planes << log_h; k += nthreads) {
    int p = k >> log_h, j = k & ((1 << log_h) - 1);
    if (j < t->th) in_shared<Line>(lines_at(0, log_h))[k] = line_of(&w[p], t, j);
  }
  for (int k = tid; k < m->planes << (log_h + 2); k += nthreads) {
    int p = k >> (log_h + 2), r = k & ((4 << log_h) - 1);
    if (r < w[p].rows) in_shared<u64>(rows_at(0, log_h))[k] = source_of(&w[p], t, r);
  }
}

// Slot is a vector to be fetched: from an address, 0 for none, to shared memory.
struct Slot { u64 from; int to; };

// slot_of finds vector n of the tile, counted through all its windows. Vectors
// of a line that hold nothing needed are left out: the up to 15 bytes before and
// after the needed ones share their 16 bytes with them, so that reading them
// cannot leave the memory.
DEVICE Slot slot_of(int planes, int log_h, int n) {
  const Window *w = windows();
  Slot s = {0, 0};
  int p = 0;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    if (p == i && i + 1 < planes && n >= w[i].slots) {
      n -= w[i].slots;
      p++;
    }
  }
  w += p;
  if (n >= w->slots) return s;
  int r = (int)(((float)n + 0.5f) * w->inverse); // exact for n below 2^21
  int v = n - r * w->vecs;
  u64 start = in_shared<u64>(rows_at(p, log_h))[r];
  u64 from = (start & ~(u64)(LINE - 1)) + 16 * v;
  s.to = w->at + 16 * n;
  if (start != 0 && from + 16 > start && from < start + w->used) s.from = from;
  return s;
}

// fetch is the fourth step: the windows come into shared memory with 16-byte
// loads. Over PCIe the access pattern is the cost: eight threads ask for a line,
// each byte is asked for once, and AHEAD loads a thread, of whichever planes, are
// on their way before the first is waited for.
#define AHEAD 4
DEVICE void fetch(const Image *m, const Tile *t, int log_h, int tid, int nthreads) {
  if (t->tw == 0) return;
  const Window *w = windows();
  int planes = m->planes;
  int total = w[0].slots + (planes > 1 ? w[1].slots : 0) + (planes > 2 ? w[2].slots : 0);
  for (int n = tid; n < total; n += AHEAD * nthreads) {
    vec v[AHEAD];
    Slot s[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
      s[i] = slot_of(planes, log_h, n + i * nthreads);
      if (s[i].from) v[i] = load_vec(s[i].from);
    }
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      if (s[i].from) *in_shared<vec>(s[i].to) = v[i];
  }
}
