// Letterbox: pictures of any format, wherever they lie, to a batch of
// normalised NCHW tensors. One launch for the whole batch; block z is an image,
// x and y a tile of its output. The Go twin is preprocess.CPU.
#include "image.h"

struct Tensor {
  int width, height;
  int tile_w, tile_h; // output samples of a block; tile_w is a power of two
  int half;           // 1 = float16 output, 0 = float32
  int channel[3];     // the tensor's plane of R, G and B
  float mul[3], add[3]; // of R, G and B: value 0..255 to normalised
  float pad[3];       // of the tensor's planes, normalised
};

DEVICE void put(const Tensor *o, u64 out, int channel, int at, float v) {
  long long k = (long long)channel * o->width * o->height + at;
  if (o->half)
    ((u16 *)out)[k] = half_bits(v);
  else
    ((float *)out)[k] = v;
}

DEVICE void put_pixel(const Image *m, const Tensor *o, const Tile *t, int x, int y) {
  int at = y * o->width + x;
  int i = x - m->x - t->tx, j = y - m->y - t->ty;
  if (i < 0 || i >= t->tw || j < 0 || j >= t->th) {
#pragma unroll
    for (int c = 0; c < 3; c++) put(o, m->out, c, at, o->pad[c]);
    return;
  }
  Sample s = sample_at(m, t, i, j);
  float r = fclamp(s.y + s.cr * m->rv, 0.0f, 255.0f);
  float g = fclamp(s.y - s.cb * m->gu - s.cr * m->gv, 0.0f, 255.0f);
  float b = fclamp(s.y + s.cb * m->bu, 0.0f, 255.0f);
  put(o, m->out, o->channel[0], at, r * o->mul[0] + o->add[0]);
  put(o, m->out, o->channel[1], at, g * o->mul[1] + o->add[1]);
  put(o, m->out, o->channel[2], at, b * o->mul[2] + o->add[2]);
}

DEVICE Tile letterbox_tile(const Image *m, const Tensor *o, dim block, u8 *shared) {
  return tile_of(m, block.x * o->tile_w, o->tile_w, block.y * o->tile_h, o->tile_h, shared);
}

DEVICE void letterbox_emit(const Image *m, const Tensor *o, const Tile *t, dim block, int tid, int nthreads) {
  int x0 = block.x * o->tile_w, y0 = block.y * o->tile_h;
  for (int k = tid; k < o->tile_w * o->tile_h; k += nthreads) {
    int j = k / o->tile_w, i = k & (o->tile_w - 1);
    if (x0 + i < o->width && y0 + j < o->height) put_pixel(m, o, t, x0 + i, y0 + j);
  }
}

#ifdef HOST

extern "C" void letterbox_host(const Image *images, const Tensor *o, int n, int nthreads, u8 *shared) {
  dim b;
  for (b.z = 0; b.z < n; b.z++)
    for (b.y = 0; b.y * o->tile_h < o->height; b.y++)
      for (b.x = 0; b.x * o->tile_w < o->width; b.x++) {
        Tile t = letterbox_tile(&images[b.z], o, b, shared);
        for (int tid = 0; tid < nthreads; tid++) fetch_tile(&images[b.z], &t, tid, nthreads);
        for (int tid = 0; tid < nthreads; tid++) letterbox_emit(&images[b.z], o, &t, b, tid, nthreads);
      }
}

extern "C" int image_size() { return sizeof(Image); }
extern "C" int tensor_size() { return sizeof(Tensor); }

#else

extern SHARED __attribute__((aligned(16))) u8 shared[];

DEVICE void letterbox_block(const Image *m, const Tensor *o) {
  dim b = block();
  Tile t = letterbox_tile(m, o, b, shared);
  fetch_tile(m, &t, thread(), threads());
  __syncthreads();
  letterbox_emit(m, o, &t, b, thread(), threads());
}

// letterbox reads the descriptions from device memory.
KERNEL void letterbox(const Image *images, Tensor o) { letterbox_block(&images[block().z], &o); }

// letterbox_small takes up to SMALL descriptions as a kernel parameter, which
// spares the copy of them: that copy costs more than the kernel for one image.
#define SMALL 16
struct Images { Image m[SMALL]; };
KERNEL void letterbox_small(Images images, Tensor o) { letterbox_block(&images.m[block().z], &o); }

#endif
