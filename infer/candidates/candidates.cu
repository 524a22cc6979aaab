// Candidates: a detector's outputs, boxes [n][rows][4] and scores
// [n][rows][classes], to what of each image reaches its thresholds, in host
// memory: only that crosses the bus. Block y is an image; its blocks share the
// scores, and the last one to end writes the image's head. The Go twin is the
// scan of infer.Decoder: the same scores are found, and the same first number
// that cannot be.
#include "../../preprocess/kernels/shim.h"

#define MOST_IMAGES 128

struct Filter {
  u64 boxes, scores;  // in device memory, aligned to 16 bytes
  u64 thresholds;     // [n][classes], float32
  u64 states;         // [n] State, in device memory
  u64 heads, entries; // [n] Head and [n][capacity] Entry, in host memory
  int rows, classes;
  int capacity;
  u32 stamp;          // of this launch: a head that bears it is of this launch
  u32 lowest[MOST_IMAGES]; // bits of each image's lowest threshold: of a float32,
                           // or of the least float16 that is not below it
};

// State is an image's count while its blocks work. Between launches it is as
// Go made it: all zero, but the worst values all ones.
struct State {
  u32 count, seen;
  u64 bad_box, bad_score; // index in the image's output << 32 | bits of the value as float32
  u32 done, unused;
};

struct Head {
  u32 count, seen; // candidates found, which may be more than fit; whether any score is not 0
  u64 bad_box, bad_score; // the first of each, or all ones
  u32 stamp, unused;
};

struct Entry { u32 row, class_; float score, object; float box[4]; };

// Strides find number v of row r of an image's part of a tensor at at + r*row + v*value.
struct Strides { int at, row, value; };

// LayoutFilter is Filter for outputs of other forms, whose boxes, objectness and
// scores are handed on as they are; f.lowest then is the least objectness, as
// float32, and f.classes counts columns of scores.
struct LayoutFilter {
  Filter f;
  int box_values, score_values; // numbers of an image in its tensor
  Strides box, object, score;
  int has_object;
  float least, most;            // beyond these a score or objectness cannot be
};

DEVICE u64 state_at(const Filter *f, int image) { return f->states + (u64)image * sizeof(State); }
#define FIELD(type, field) ((u64)__builtin_offsetof(type, field))

template <int HALF> DEVICE float value_at(u64 base, u64 i) {
  if (HALF) return float_of_half(load<u16>(base + 2 * i));
  return load<float>(base + 4 * i);
}

// part loads vector v of an output, counted from the tensor's start. What lies
// outside of elements [from,to) counts as 0; it is the neighbour image's, or
// nobody's memory.
template <int HALF> DEVICE vec part(u64 base, u64 v, u64 from, u64 to) {
  const int each = HALF ? 8 : 4;
  u64 e = v * each;
  if (e >= from && e + each <= to) return load_vec(base + 16 * v);
  u32 w[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < each; i++)
    if (e + i >= from && e + i < to) {
      if (HALF)
        w[i / 2] |= (u32)load<u16>(base + 2 * (e + i)) << (i % 2 * 16);
      else
        w[i] = load<u32>(base + 4 * (e + i));
    }
  return make_vec(w[0], w[1], w[2], w[3]);
}

DEVICE void note_first(u64 at, u64 index, float v) { atomic_min(at, index << 32 | bits_of(v)); }

template <int HALF> DEVICE void add_entry(const Filter *f, int image, u32 row, u32 cls, float score) {
  u32 slot = atomic_add(state_at(f, image) + FIELD(State, count), 1);
  if (slot >= (u32)f->capacity) return;
  u64 at = f->entries + ((u64)image * f->capacity + slot) * sizeof(Entry);
  u64 box = ((u64)image * f->rows + row) * 4;
  store<vec>(at, make_vec(row, cls, bits_of(score), 0));
  store<vec>(at + 16, make_vec(bits_of(value_at<HALF>(f->boxes, box)), bits_of(value_at<HALF>(f->boxes, box + 1)),
                               bits_of(value_at<HALF>(f->boxes, box + 2)), bits_of(value_at<HALF>(f->boxes, box + 3))));
}

// judge looks at one score, which the scan found worth it.
template <int HALF> DEVICE void judge(const Filter *f, int image, u32 index, float v) {
  if (!(v >= 0.0f && v <= 1.001f)) { // as infer.Decoder says
    note_first(state_at(f, image) + FIELD(State, bad_score), index, v);
    return;
  }
  u32 row = index / (u32)f->classes, cls = index - row * (u32)f->classes;
  if (v >= load<float>(f->thresholds + ((u64)image * f->classes + cls) * 4)) add_entry<HALF>(f, image, row, cls, v);
}

// lift is what carries a score of at least lowest into the sign bit. For floats
// from 0 on the order of the bits is the order of the values; NaN, infinite,
// negative and too large values all have bits above those of 1.
template <int HALF> DEVICE u32 lift_of(u32 lowest) { return (HALF ? 0x8000u : 0x80000000u) - lowest; }

// reaches says whether a word of scores has one to be judged.
template <int HALF> DEVICE u32 reaches(u32 w, u32 lift) {
  if (!HALF) return (w + lift) | w;
  u32 lo = w & 0xffff, hi = w >> 16;
  return ((lo + lift) | lo | (hi + lift) | hi) << 16;
}

// judge_vec reads the scores of a vector again, one by one: it is called for few.
template <int HALF> DEVICE void judge_vec(const Filter *f, int image, u64 v, u64 from, u64 to, u32 lift) {
  const int each = HALF ? 8 : 4;
#pragma unroll 1
  for (u64 e = v * each; e < (v + 1) * each; e++) {
    if (e < from || e >= to) continue;
    u32 bits = HALF ? load<u16>(f->scores + 2 * e) : load<u32>(f->scores + 4 * e);
    if (reaches<HALF>(bits, lift) >> 31) judge<HALF>(f, image, (u32)(e - from), value_at<HALF>(f->scores, e));
  }
}

// scan_scores looks at one thread's share of an image's scores and says whether
// any of them is not 0. AHEAD loads are on their way before the first is waited for.
#define AHEAD 4
template <int HALF> DEVICE bool scan_scores(const Filter *f, int image, int start, int stride) {
  const int each = HALF ? 8 : 4;
  u64 from = (u64)image * f->rows * f->classes, to = from + (u64)f->rows * f->classes;
  u64 v0 = from / each;
  int total = (int)((to + each - 1) / each - v0);
  u32 lift = lift_of<HALF>(f->lowest[image]);
  u32 seen = 0;
  for (int n = start; n < total; n += AHEAD * stride) {
    vec v[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      if (n + i * stride < total) v[i] = part<HALF>(f->scores, v0 + n + i * stride, from, to);
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
      if (n + i * stride >= total) break;
      u32 a = word(&v[i], 0), b = word(&v[i], 1), c = word(&v[i], 2), d = word(&v[i], 3);
      seen |= a | b | c | d;
      u32 any = reaches<HALF>(a, lift) | reaches<HALF>(b, lift) | reaches<HALF>(c, lift) | reaches<HALF>(d, lift);
      if (any >> 31) judge_vec<HALF>(f, image, v0 + n + i * stride, from, to, lift);
    }
  }
  return (seen & (HALF ? 0x7fff7fffu : 0x7fffffffu)) != 0;
}

// not_finite gives a word whose sign bit says that a number in w is infinite or
// none: its exponent is all ones, and one more carries.
template <int HALF> DEVICE u32 not_finite(u32 w) {
  if (!HALF) return (w & 0x7fffffff) + 0x00800000;
  return (((w & 0x7fff) + 0x0400) | ((w >> 16 & 0x7fff) + 0x0400)) << 16;
}

// scan_boxes notes the first coordinate that is not finite.
template <int HALF> DEVICE void scan_boxes(const Filter *f, int image, int start, int stride) {
  const int each = HALF ? 8 : 4;
  u64 from = (u64)image * f->rows * 4, to = from + (u64)f->rows * 4;
  u64 v0 = from / each;
  int total = (int)((to + each - 1) / each - v0);
  for (int n = start; n < total; n += stride) {
    vec v = part<HALF>(f->boxes, v0 + n, from, to);
    u32 any = not_finite<HALF>(word(&v, 0)) | not_finite<HALF>(word(&v, 1)) | not_finite<HALF>(word(&v, 2)) | not_finite<HALF>(word(&v, 3));
    if (!(any >> 31)) continue;
#pragma unroll 1
    for (u64 e = (v0 + n) * each; e < (v0 + n + 1) * each; e++) {
      if (e < from || e >= to) continue;
      float x = value_at<HALF>(f->boxes, e);
      if ((bits_of(x) & 0x7f800000) == 0x7f800000) note_first(state_at(f, image) + FIELD(State, bad_box), e - from, x);
    }
  }
}

template <int HALF> DEVICE bool scan(const Filter *f, int image, int start, int stride) {
  scan_boxes<HALF>(f, image, start, stride);
  return scan_scores<HALF>(f, image, start, stride);
}

// finish writes an image's head and makes its state ready for the next launch.
// Only the last block of the image gets here; the counts are read as the others
// wrote them, by operations that change nothing.
DEVICE void finish(const Filter *f, int image) {
  u64 s = state_at(f, image), h = f->heads + (u64)image * sizeof(Head);
  u32 count = atomic_add(s + FIELD(State, count), 0), seen = atomic_add(s + FIELD(State, seen), 0);
  u64 box = atomic_min(s + FIELD(State, bad_box), ~0ull), score = atomic_min(s + FIELD(State, bad_score), ~0ull);
  store<vec>(h, make_vec(count, seen, (u32)box, (u32)(box >> 32)));
  store<vec>(h + 16, make_vec((u32)score, (u32)(score >> 32), f->stamp, 0));
  store<vec>(s, make_vec(0, 0, ~0u, ~0u));
  store<vec>(s + 16, make_vec(~0u, ~0u, 0, 0));
}

DEVICE u64 place(const Strides *s, u32 row, int value) { return (u64)s->at + (u64)row * s->row + (u64)value * s->value; }

// fitting says whether a raw score or objectness can be; NaN cannot.
DEVICE bool fitting(const LayoutFilter *l, float v) { return v >= l->least && v <= l->most; }

template <int HALF> DEVICE void add_raw(const LayoutFilter *l, int image, u32 row, int column, float score, float object) {
  const Filter *f = &l->f;
  u32 slot = atomic_add(state_at(f, image) + FIELD(State, count), 1);
  if (slot >= (u32)f->capacity) return;
  u64 at = f->entries + ((u64)image * f->capacity + slot) * sizeof(Entry);
  u64 from = (u64)image * l->box_values;
  u32 b[4];
#pragma unroll
  for (int i = 0; i < 4; i++) b[i] = bits_of(value_at<HALF>(f->boxes, from + place(&l->box, row, i)));
  store<vec>(at, make_vec(row, column, bits_of(score), bits_of(object)));
  store<vec>(at + 16, make_vec(b[0], b[1], b[2], b[3]));
}

// scan_row looks at one row and says what of it is not 0: bit 0 a score, bit 1 the
// objectness, which counts as such where there is none. Neighbouring threads have
// neighbouring rows: in outputs [values][rows] they read whole lines.
#define TOGETHER 8 // loads that are on their way before the first is waited for
template <int HALF> DEVICE u32 scan_row(const LayoutFilter *l, int image, u32 row) {
  const Filter *f = &l->f;
  u64 state = state_at(f, image), boxes = (u64)image * l->box_values, scores = (u64)image * l->score_values;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    u64 at = place(&l->box, row, i);
    float v = value_at<HALF>(f->boxes, boxes + at);
    if ((bits_of(v) & 0x7f800000) == 0x7f800000) note_first(state + FIELD(State, bad_box), at, v);
  }
  float object = 1;
  u32 seen = 2;
  if (l->has_object) {
    u64 at = place(&l->object, row, 0);
    object = value_at<HALF>(f->scores, scores + at);
    if (!fitting(l, object)) note_first(state + FIELD(State, bad_score), at, object);
    seen = object != 0 ? 2 : 0;
  }
  bool live = object >= float_of(f->lowest[image]) || !l->has_object;
  u64 least = f->thresholds + (u64)image * f->classes * 4;
  for (int from = 0; from < f->classes; from += TOGETHER) {
    float v[TOGETHER];
#pragma unroll
    for (int i = 0; i < TOGETHER; i++)
      if (from + i < f->classes) v[i] = value_at<HALF>(f->scores, scores + place(&l->score, row, from + i));
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) {
      int c = from + i;
      if (c >= f->classes) break;
      seen |= v[i] != 0;
      if (!fitting(l, v[i]))
        note_first(state + FIELD(State, bad_score), place(&l->score, row, c), v[i]);
      else if (live && v[i] >= load<float>(least + 4 * c))
        add_raw<HALF>(l, image, row, c, v[i], object);
    }
  }
  return seen;
}

template <int HALF> DEVICE u32 scan_rows(const LayoutFilter *l, int image, int start, int stride) {
  u32 seen = 0;
  for (int row = start; row < l->f.rows; row += stride) seen |= scan_row<HALF>(l, image, row);
  return seen;
}

#ifdef HOST

template <int HALF> static void run_layout(const LayoutFilter *l, int n, int nblocks, int nthreads) {
  const Filter *f = &l->f;
  for (int image = 0; image < n; image++)
    for (int b = nblocks - 1; b >= 0; b--) {
      u32 seen = 0;
      for (int tid = nthreads - 1; tid >= 0; tid--) seen |= scan_rows<HALF>(l, image, b * nthreads + tid, nblocks * nthreads);
      u64 s = state_at(f, image);
      atomic_or(s + FIELD(State, seen), seen);
      if (atomic_add(s + FIELD(State, done), 1) == (u32)nblocks - 1) finish(f, image);
    }
}

template <int HALF> static void run_host(const Filter *f, int n, int nblocks, int nthreads) {
  for (int image = 0; image < n; image++)
    for (int b = nblocks - 1; b >= 0; b--) {
      bool seen = false;
      for (int tid = nthreads - 1; tid >= 0; tid--) seen |= scan<HALF>(f, image, b * nthreads + tid, nblocks * nthreads);
      u64 s = state_at(f, image);
      if (seen) atomic_or(s + FIELD(State, seen), 1);
      if (atomic_add(s + FIELD(State, done), 1) == (u32)nblocks - 1) finish(f, image);
    }
}

// launch_host does what the driver does with cuLaunchKernel's arguments; shape
// is grid and block. Blocks and threads run in falling order, which a card is
// free to choose.
extern "C" int launch_host(const char *kernel, const unsigned *shape, unsigned, void **params) {
  const Filter *f = (const Filter *)params[0];
  if (!strcmp(kernel, "candidates_layout_half"))
    run_layout<1>((const LayoutFilter *)params[0], shape[1], shape[0], shape[3]);
  else if (!strcmp(kernel, "candidates_layout_float"))
    run_layout<0>((const LayoutFilter *)params[0], shape[1], shape[0], shape[3]);
  else if (!strcmp(kernel, "candidates_half"))
    run_host<1>(f, shape[1], shape[0], shape[3]);
  else
    run_host<0>(f, shape[1], shape[0], shape[3]);
  return 0;
}

extern "C" int filter_size() { return sizeof(Filter); }
extern "C" int layout_filter_size() { return sizeof(LayoutFilter); }
extern "C" int state_size() { return sizeof(State); }
extern "C" int head_size() { return sizeof(Head); }
extern "C" int entry_size() { return sizeof(Entry); }

#else

// end_block tells what a block has seen; the image's last one ends it.
DEVICE void end_block(const Filter *f, int image, u32 seen) {
  u64 s = state_at(f, image);
  if (seen) atomic_or(s + FIELD(State, seen), seen);
  memory_fence();
  if (atomic_add(s + FIELD(State, done), 1) != (u32)blocks() - 1) return;
  memory_fence();
  finish(f, image);
}

template <int HALF> DEVICE void candidates_block(const Filter *f) {
  dim b = block();
  int image = b.y, n = threads(), nblocks = blocks();
  bool mine = scan<HALF>(f, image, b.x * n + thread(), nblocks * n);
  bool seen = any_of_block(mine); // and every thread of the block is done
  if (thread() == 0) end_block(f, image, seen);
}

template <int HALF> DEVICE void layout_block(const LayoutFilter *l) {
  dim b = block();
  int image = b.y, n = threads();
  u32 mine = scan_rows<HALF>(l, image, b.x * n + thread(), blocks() * n);
  u32 seen = any_of_block(mine & 1);
  seen |= any_of_block(mine & 2) ? 2 : 0; // and every thread of the block is done
  if (thread() == 0) end_block(&l->f, image, seen);
}

KERNEL __attribute__((launch_bounds(256))) void candidates_float(Filter f) { candidates_block<0>(&f); }
KERNEL __attribute__((launch_bounds(256))) void candidates_half(Filter f) { candidates_block<1>(&f); }
KERNEL __attribute__((launch_bounds(256))) void candidates_layout_float(LayoutFilter l) { layout_block<0>(&l); }
KERNEL __attribute__((launch_bounds(256))) void candidates_layout_half(LayoutFilter l) { layout_block<1>(&l); }

#endif
