// What the kernels need of CUDA, without a CUDA toolkit: clang compiles the .cu
// files for the device with these few lines, and any C++ compiler builds them
// for the host with HOST defined, where a loop stands in for the threads of a
// block. The tests run both against the Go twins.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef HOST

#include <math.h>
#include <string.h>

#define DEVICE static inline
#define KERNEL static
#define SHARED_ALIGN 16

struct dim { int x, y, z; };
struct vec { u32 w[4]; };

DEVICE float rounded(float v) { return rintf(v); }
DEVICE u16 half_bits(float v) { _Float16 h = (_Float16)v; u16 b; memcpy(&b, &h, 2); return b; }
DEVICE vec load_vec(const u8 *p) { vec v; memcpy(&v, p, 16); return v; }
DEVICE void store_vec(u8 *p, vec v) { memcpy(p, &v, 16); }
DEVICE u32 take_ticket(u32 *counter) { return (*counter)++; }

#else

#define DEVICE static __attribute__((device)) __attribute__((always_inline)) inline
#define KERNEL extern "C" __attribute__((global))
#define SHARED __attribute__((shared))

struct dim { int x, y, z; };
typedef u32 vec __attribute__((ext_vector_type(4)));

DEVICE int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE int threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE dim block() {
  dim d = {__nvvm_read_ptx_sreg_ctaid_x(), __nvvm_read_ptx_sreg_ctaid_y(), __nvvm_read_ptx_sreg_ctaid_z()};
  return d;
}
DEVICE float rounded(float v) { return __builtin_rintf(v); }
DEVICE u16 half_bits(float v) {
  u16 h;
  __asm__("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
  return h;
}
DEVICE vec load_vec(const u8 *p) { return *(const vec *)p; }
DEVICE void store_vec(u8 *p, vec v) { *(vec *)p = v; }
DEVICE u32 take_ticket(u32 *counter) { return __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED); }

#endif

DEVICE int imin(int a, int b) { return a < b ? a : b; }
DEVICE int imax(int a, int b) { return a > b ? a : b; }
DEVICE float fclamp(float v, float lo, float hi) { return v < lo ? lo : v > hi ? hi : v; }
