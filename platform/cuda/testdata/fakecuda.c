/* A stand-in for libcuda that the tests compile in several shapes, to go
 * through the real loader and the real calling convention. INIT is what cuInit
 * returns; OLD leaves out what drivers before CUDA 6.5 lack; FAIL_NAME makes one
 * query fail; COUNT is the number of devices. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef INIT
#define INIT 0
#endif
#ifndef COUNT
#define COUNT 1
#endif

int cuInit(unsigned int flags) { return flags == 0 ? INIT : 1; }

int cuDriverGetVersion(int *version) {
  *version = 12040;
  return 0;
}

int cuDeviceGetCount(int *count) {
  *count = COUNT;
  return 0;
}

/* Handles need not equal ordinals: 100 up. */
int cuDeviceGet(int *device, int ordinal) {
  if (ordinal < 0 || ordinal >= COUNT) return 101;
  *device = 100 + ordinal;
  return 0;
}

int cuDeviceGetName(char *name, int length, int device) {
#ifdef FAIL_NAME
  return 46;
#endif
  strncpy(name, device == 100 ? "NVIDIA GeForce RTX 4070" : "NVIDIA H200 MIG 1g.18gb", length);
  return 0;
}

#ifndef OLD
static int uuid(char *out, int device) {
  for (int i = 0; i < 16; i++) out[i] = (char)(0xa0 + i);
  out[15] = (char)device;
  return 0;
}
int cuDeviceGetUuid(char *out, int device) { return uuid(out, device); }
#ifdef V2
int cuDeviceGetUuid_v2(char *out, int device) {
  uuid(out, device);
  out[0] = 0x02;
  return 0;
}
#endif
#endif

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  *bytes = (size_t)12 << 30;
  return device >= 100 ? 0 : 101;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
  case 16: *value = 46; return 0;  /* multiprocessors */
  case 18: *value = 0; return 0;   /* integrated */
  case 19: *value = 1; return 0;   /* can map host memory */
  case 33: *value = 0x17 + device - 100; return 0; /* bus */
  case 34: *value = 2; return 0;   /* device */
  case 40: *value = 2; return 0;   /* copy engines */
  case 41: *value = 1; return 0;   /* unified addressing */
  case 50: *value = 0x10000; return 0; /* domain */
  case 75: *value = 8; return 0;
  case 76: *value = 9; return 0;
  case 91: *value = 1; return 0;   /* same host pointer */
  }
  *value = 77; /* must not be taken */
  return 1;    /* host register (99): unknown to this driver */
}

int cuGetErrorName(int code, const char **text) {
  switch (code) {
  case 46: *text = "CUDA_ERROR_DEVICE_UNAVAILABLE"; return 0;
  case 100: *text = "CUDA_ERROR_NO_DEVICE"; return 0;
  case 803: *text = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; return 0;
  case 999: *text = "CUDA_ERROR_UNKNOWN"; return 0;
  }
  *text = NULL;
  return 1;
}

int cuGetErrorString(int code, const char **text) {
  switch (code) {
  case 46: *text = "CUDA-capable device(s) is/are busy or unavailable"; return 0;
  case 100: *text = "no CUDA-capable device is detected"; return 0;
  case 803: *text = "system has unsupported display driver / cuda driver combination"; return 0;
  case 999: *text = "unknown error"; return 0;
  }
  *text = NULL;
  return 1;
}
