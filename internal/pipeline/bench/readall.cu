// Readall: every byte of a buffer once, wherever it lies, to measure what a link
// gives. The sum of its words proves that they were read.
#include "../../../preprocess/kernels/shim.h"

// AHEAD loads a thread are on their way before the first is waited for.
#define AHEAD 8

// sum_of adds up one thread's share of n vectors.
DEVICE u32 sum_of(u64 from, int n, int start, int stride) {
  u32 sum = 0;
  for (int k = start; k < n; k += AHEAD * stride) {
    vec v[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      if (k + i * stride < n) v[i] = load_vec(from + 16 * (u64)(k + i * stride));
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      if (k + i * stride < n) sum += word(&v[i], 0) + word(&v[i], 1) + word(&v[i], 2) + word(&v[i], 3);
  }
  return sum;
}

#ifdef HOST

// launch_host does what the driver does with cuLaunchKernel's arguments; other
// kernels than this one are left undone.
extern "C" int launch_host(const char *kernel, const unsigned *shape, unsigned, void **params) {
  if (strcmp(kernel, "readall")) return 0;
  u64 from = *(u64 *)params[0], to = *(u64 *)params[2];
  int n = *(int *)params[1], threads = (int)(shape[0] * shape[3]);
  for (int tid = 0; tid < threads; tid++) atomic_add(to, sum_of(from, n, tid, threads));
  return 0;
}

#else

KERNEL __attribute__((launch_bounds(256))) void readall(u64 from, int n, u64 to) {
  int tid = thread(), each = threads();
  in_shared<u32>(0)[tid] = sum_of(from, n, block().x * each + tid, blocks() * each);
  __syncthreads();
  if (tid != 0) return;
  u32 sum = 0;
  for (int i = 0; i < each; i++) sum += in_shared<u32>(0)[i];
  atomic_add(to, sum);
}

#endif
