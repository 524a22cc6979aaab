// What the kernels need of CUDA, without a CUDA toolkit: clang compiles the .cu
// files for the device with these few lines, and any C++ compiler builds them
// for the host with HOST defined, where a loop stands in for the threads of a
// block. The tests run both against the Go twins. Arithmetic is the same to the
// bit on both: nothing is contracted (-ffp-contract=off) but where madd says so.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef HOST

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE static inline
#define KERNEL static

struct dim { int x, y, z; };
struct vec { u32 w[4]; };

static u8 *shared; // of the block

// Block is the shared memory of a launch on the host. What a kernel writes
// behind it ends the process.
struct Block {
  u8 *memory;
  unsigned size;
  static const int guard = 64;
  Block(unsigned n) : size(n) {
    memory = (u8 *)aligned_alloc(128, (n + guard + 127) & ~127u);
    memset(memory, 0xa5, n + guard);
    shared = memory;
  }
  ~Block() {
    for (int i = 0; i < guard; i++)
      if (memory[size + i] != 0xa5) {
        fprintf(stderr, "kernel wrote behind its %u bytes of shared memory\n", size);
        abort();
      }
    free(memory);
  }
};

DEVICE float rounded(float v) { return rintf(v); }
DEVICE float madd(float a, float b, float c) { return fmaf(a, b, c); }
DEVICE float smaller(float a, float b) { return fminf(a, b); }
DEVICE float larger(float a, float b) { return fmaxf(a, b); }
DEVICE float float_of(u32 bits) { float f; memcpy(&f, &bits, 4); return f; }
DEVICE u32 bits_of(float f) { u32 b; memcpy(&b, &f, 4); return b; }
#ifdef __aarch64__
typedef __fp16 half; // the other name is C++ there since GCC 13 only
#else
typedef _Float16 half;
#endif
DEVICE u16 half_bits(float v) { half h = (half)v; u16 b; memcpy(&b, &h, 2); return b; }
DEVICE float float_of_half(u16 b) { half h; memcpy(&h, &b, 2); return (float)h; }
// real is the memory at a device address: the stand-in for the driver marks them.
DEVICE void *real(u64 p) { return (void *)(p & ~(1ull << 56)); }
DEVICE vec load_vec(u64 p) { vec v; memcpy(&v, real(p), 16); return v; }
DEVICE u8 load_code8(u64 p) { return *(const u8 *)real(p); }
DEVICE u16 load_code16(u64 p) { u16 v; memcpy(&v, real(p), 2); return v; }
DEVICE u32 word(const vec *v, int i) { return v->w[i]; }
DEVICE vec make_vec(u32 a, u32 b, u32 c, u32 d) { vec v = {{a, b, c, d}}; return v; }
template <typename T> DEVICE T load(u64 p) { T v; memcpy(&v, real(p), sizeof v); return v; }
template <typename T> DEVICE void store(u64 p, T v) { memcpy(real(p), &v, sizeof v); }
DEVICE u32 atomic_add(u64 p, u32 n) { u32 v = load<u32>(p); store<u32>(p, v + n); return v; }
DEVICE void atomic_or(u64 p, u32 n) { store<u32>(p, load<u32>(p) | n); }
DEVICE u64 atomic_min(u64 p, u64 n) { u64 v = load<u64>(p); if (n < v) store<u64>(p, n); return v; }

#else

#define DEVICE static __attribute__((device)) __attribute__((always_inline)) inline
#define KERNEL extern "C" __attribute__((global))
#define SHARED __attribute__((shared))
#define GLOBAL __attribute__((address_space(1)))

struct dim { int x, y, z; };
typedef u32 vec __attribute__((ext_vector_type(4)));

extern SHARED __attribute__((aligned(16))) u8 shared[];

DEVICE int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE int threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE dim block() {
  dim d = {__nvvm_read_ptx_sreg_ctaid_x(), __nvvm_read_ptx_sreg_ctaid_y(), __nvvm_read_ptx_sreg_ctaid_z()};
  return d;
}
DEVICE int blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE float rounded(float v) { return __builtin_rintf(v); }
DEVICE float madd(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
DEVICE float smaller(float a, float b) { return __nvvm_fmin_f(a, b); }
DEVICE float larger(float a, float b) { return __nvvm_fmax_f(a, b); }
DEVICE float float_of(u32 bits) { return __builtin_bit_cast(float, bits); }
DEVICE u32 bits_of(float f) { return __builtin_bit_cast(u32, f); }
DEVICE u16 half_bits(float v) {
  u16 h;
  __asm__("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
  return h;
}
DEVICE float float_of_half(u16 b) {
  float f;
  __asm__("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(b));
  return f;
}
// Loads of what nobody writes while the kernel runs: they may go through the
// read-only path.
DEVICE vec load_vec(u64 p) { return __nvvm_ldg_ui4((const vec *)p); }
DEVICE u8 load_code8(u64 p) { return __nvvm_ldg_uc((const u8 *)p); }
DEVICE u16 load_code16(u64 p) { return __nvvm_ldg_us((const u16 *)p); }
DEVICE u32 word(const vec *v, int i) { return (*v)[i]; }
DEVICE vec make_vec(u32 a, u32 b, u32 c, u32 d) { vec v = {a, b, c, d}; return v; }
template <typename T> DEVICE T load(u64 p) { return *(const GLOBAL T *)p; }
template <typename T> DEVICE void store(u64 p, T v) { *(GLOBAL T *)p = v; }
DEVICE u32 atomic_add(u64 p, u32 n) { return __nvvm_atom_add_gen_i((int *)p, n); }
DEVICE void atomic_or(u64 p, u32 n) { __nvvm_atom_or_gen_i((int *)p, n); }
DEVICE u64 atomic_min(u64 p, u64 n) { return __nvvm_atom_min_gen_ull((u64 *)p, n); }
// any_of_block waits for the block's threads and says whether any has v set.
DEVICE bool any_of_block(bool v) { return __nvvm_bar0_or(v); }
// memory_fence orders what this thread has seen and written before what it
// writes next, for the whole device.
DEVICE void memory_fence() { __nvvm_membar_gl(); }

#endif

DEVICE int imin(int a, int b) { return a < b ? a : b; }
DEVICE int imax(int a, int b) { return a > b ? a : b; }
DEVICE float fclamp(float v, float lo, float hi) { return smaller(larger(v, lo), hi); }

// The shared memory of a block is used by offsets from its start.
template <typename T> DEVICE T *in_shared(int at) { return (T *)(shared + at); }
