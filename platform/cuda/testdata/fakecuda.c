/* A stand-in for libcuda that the tests compile, to go through the real loader
 * and the real calling convention. Streams do their work at once, device memory
 * is malloc's, and every argument is checked as far as the driver would.
 *
 * Compile-time shapes: INIT is what cuInit returns; OLD leaves out what drivers
 * before CUDA 6.5 lack; V2 has the newer call for UUIDs; CUDA10 lacks what came
 * with CUDA 11; NO_LAUNCH lacks cuLaunchKernel; FAIL_NAME makes one query fail;
 * COUNT is the number of devices.
 *
 * At run time the fake_... functions of fakestate.h script it. */
#include "fakestate.h"

#ifndef INIT
#define INIT 0
#endif
#ifndef COUNT
#define COUNT 1
#endif

/* ---- queries ---- */

int cuInit(unsigned flags) { return flags == 0 ? INIT : 1; }

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
  BEGIN(0);
  if (ordinal < 0 || ordinal >= COUNT) return leave(101);
  *device = 100 + ordinal;
  return leave(0);
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
  *bytes = memory_total;
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

/* ---- primary context ---- */

static struct context *of(int device) {
  if (device < 100 || device >= 100 + COUNT) return NULL;
  contexts[device - 100].device = device;
  return &contexts[device - 100];
}

static void empty(struct context *c) {
  while (c->objects) destroy(c->objects);
  c->refs = 0, c->poison = 0;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  BEGIN(0);
  struct context *c = of(device);
  if (!c) return leave(101);
  *flags = c->flags, *active = c->refs > 0;
  return leave(0);
}

static int set_flags(struct context *c, unsigned flags) {
  if (!c) return 101;
  if (c->refs) return 708;
  c->flags = flags;
  return 0;
}

static int release(struct context *c) {
  if (!c) return 101;
  if (!c->refs) return 201;
  if (--c->refs == 0) empty(c);
  return 0;
}

static int reset(struct context *c) {
  if (!c) return 101;
  tell_of_reset(c->device - 100);
  empty(c);
  return 0;
}

#ifdef CUDA10
int cuDevicePrimaryCtxSetFlags(int device, unsigned flags) { BEGIN(0); return leave(set_flags(of(device), flags)); }
int cuDevicePrimaryCtxRelease(int device) { BEGIN(0); return leave(release(of(device))); }
int cuDevicePrimaryCtxReset(int device) { BEGIN(0); return leave(reset(of(device))); }
#else
int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) { BEGIN(0); return leave(set_flags(of(device), flags)); }
int cuDevicePrimaryCtxRelease_v2(int device) { BEGIN(0); return leave(release(of(device))); }
int cuDevicePrimaryCtxReset_v2(int device) { BEGIN(0); return leave(reset(of(device))); }
#endif

int cuDevicePrimaryCtxRetain(struct context **out, int device) {
  BEGIN(0);
  struct context *c = of(device);
  if (!c) return leave(101);
  c->refs++;
  *out = c;
  return leave(0);
}

int cuCtxSetCurrent(struct context *c) {
  BEGIN(0);
  if (c && !c->refs) return leave(201);
  current = c;
  return leave(0);
}

int cuCtxSynchronize(void) {
  BEGIN(1);
  return leave(0);
}

/* ---- memory ---- */

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  BEGIN(1);
  *free_bytes = memory_total - used(), *total = memory_total;
  return leave(0);
}

int cuMemAlloc_v2(deviceptr *out, size_t size) {
  BEGIN(1);
  if (!size) return leave(1);
  if (size > memory_total - used()) return leave(2);
  struct object *o = make(DEVICE_MEMORY, size);
  o->host = aligned_alloc(256, (size + 255) & ~(size_t)255);
  memset(o->host, 0xcd, size);
  *out = (uintptr_t)o->host | DEVICE_BIT;
  return leave(0);
}

int cuMemFree_v2(deviceptr p) {
  BEGIN(1);
  struct object *o = p & DEVICE_BIT ? memory_at((char *)(uintptr_t)(p & ~DEVICE_BIT), DEVICE_MEMORY) : NULL;
  if (!o) return leave(1);
  destroy(o);
  return leave(0);
}

int cuMemHostAlloc(void **out, size_t size, unsigned flags) {
  BEGIN(1);
  if (!size || flags != 3) return leave(1);
  struct object *o = make(HOST_MEMORY, size);
  o->host = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
  memset(o->host, 0xce, size);
  *out = o->host;
  return leave(0);
}

int cuMemFreeHost(void *p) {
  BEGIN(1);
  struct object *o = memory_at(p, HOST_MEMORY);
  if (!o) return leave(1);
  destroy(o);
  return leave(0);
}

int cuMemHostRegister_v2(void *p, size_t size, unsigned flags) {
  BEGIN(1);
  if (!p || !size || flags != 3) return leave(1);
  if (register_limit >= 0 && size > (size_t)register_limit) return leave(801);
  for (struct object *o = current->objects; o; o = o->next)
    if (o->kind == REGISTERED && (char *)p < o->host + o->size && o->host < (char *)p + size) return leave(712);
  make(REGISTERED, size)->host = p;
  return leave(0);
}

int cuMemHostUnregister(void *p) {
  BEGIN(1);
  struct object *o = memory_at(p, REGISTERED);
  if (!o) return leave(713);
  destroy(o);
  return leave(0);
}

int cuMemHostGetDevicePointer_v2(deviceptr *out, void *p, unsigned flags) {
  BEGIN(1);
  deviceptr d = (uintptr_t)p | DEVICE_BIT;
  if (flags || !reach(d, 1)) return leave(1);
  *out = d;
  return leave(0);
}

static int copy(char *dst, const char *src, size_t size) {
  if (!dst || !src || (uintptr_t)dst & DEVICE_BIT || (uintptr_t)src & DEVICE_BIT) return 1;
  memmove(dst, src, size);
  return 0;
}

int cuMemcpyHtoD_v2(deviceptr dst, const void *src, size_t size) {
  BEGIN(1);
  return leave(copy(reach(dst, size), src, size));
}

int cuMemcpyDtoH_v2(void *dst, deviceptr src, size_t size) {
  BEGIN(1);
  return leave(copy(dst, reach(src, size), size));
}

int cuMemcpyHtoDAsync_v2(deviceptr dst, const void *src, size_t size, void *stream) {
  BEGIN(1);
  return leave(good_stream(stream) ? copy(reach(dst, size), src, size) : 400);
}

int cuMemcpyDtoHAsync_v2(void *dst, deviceptr src, size_t size, void *stream) {
  BEGIN(1);
  return leave(good_stream(stream) ? copy(dst, reach(src, size), size) : 400);
}

int cuMemcpyDtoDAsync_v2(deviceptr dst, deviceptr src, size_t size, void *stream) {
  BEGIN(1);
  return leave(good_stream(stream) ? copy(reach(dst, size), reach(src, size), size) : 400);
}

int cuMemsetD8Async(deviceptr dst, unsigned char value, size_t size, void *stream) {
  BEGIN(1);
  if (!good_stream(stream)) return leave(400);
  char *host = reach(dst, size);
  if (!host) return leave(1);
  memset(host, value, size);
  return leave(0);
}

/* ---- streams and events ---- */

int cuStreamCreate(void **out, unsigned flags) {
  BEGIN(1);
  if (flags > 1) return leave(1);
  *out = make(STREAM, 0);
  return leave(0);
}

int cuThreadExchangeStreamCaptureMode(int *mode) {
  BEGIN(0);
  int before = capture_mode;
  capture_mode = *mode, *mode = before;
  return leave(0);
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  BEGIN(1);
  *least = 0, *greatest = -5;
  return leave(0);
}

int cuStreamCreateWithPriority(void **out, unsigned flags, int priority) {
  BEGIN(1);
  if (flags > 1 || priority > 0 || priority < -5) return leave(1);
  last_priority = priority;
  *out = make(STREAM, 0);
  return leave(0);
}

int cuStreamDestroy_v2(void *s) {
  BEGIN(1);
  struct object *o = handle(s, STREAM);
  if (!o) return leave(400);
  destroy(o);
  return leave(0);
}

int cuStreamSynchronize(void *s) {
  BEGIN(1);
  return leave(good_stream(s) ? 0 : 400);
}

int cuStreamWaitEvent(void *s, void *e, unsigned flags) {
  BEGIN(1);
  return leave(good_stream(s) && handle(e, EVENT) ? (flags ? 1 : 0) : 400);
}

/* Work is done as it is queued here, so nothing waits; a gate that is open when it is
 * asked for, or no word, is a mistake. */
#ifndef NO_WAIT_VALUE
int cuStreamWaitValue32_v2(void *s, deviceptr at, unsigned value, unsigned flags) {
  BEGIN(1);
  if (!good_stream(s)) return leave(400);
  const unsigned *word = reach(at, 4);
  if (!word || at % 4 || flags) return leave(1);
  return leave((int)(*word - value) < 0 ? 0 : 1);
}
#endif

int cuEventCreate(void **out, unsigned flags) {
  BEGIN(1);
  if (flags > 3) return leave(1);
  struct object *o = make(EVENT, 0);
  o->timing = !(flags & 2);
  *out = o;
  return leave(0);
}

int cuEventDestroy_v2(void *e) {
  BEGIN(1);
  struct object *o = handle(e, EVENT);
  if (!o) return leave(400);
  destroy(o);
  return leave(0);
}

int cuEventRecord(void *e, void *s) {
  BEGIN(1);
  struct object *o = handle(e, EVENT);
  if (!o || !good_stream(s)) return leave(400);
  o->tick = ++ticks;
  return leave(0);
}

int cuEventQuery(void *e) {
  BEGIN(1);
  if (!handle(e, EVENT)) return leave(400);
  if (pending > 0) return pending--, leave(600);
  return leave(0);
}

int cuEventSynchronize(void *e) {
  BEGIN(1);
  return leave(handle(e, EVENT) ? 0 : 400);
}

/* A quarter of a millisecond passes between any two recordings. */
int cuEventElapsedTime(float *out, void *from, void *to) {
  BEGIN(1);
  struct object *a = handle(from, EVENT), *b = handle(to, EVENT);
  if (!a || !b || !a->timing || !b->timing || !a->tick || !b->tick) return leave(400);
  *out = 0.25f * (float)(b->tick - a->tick);
  return leave(0);
}

/* ---- kernels ---- */

static int size_of(const char *type) {
  static const struct { const char *name; int size; } types[] = {
      {".u8", 1}, {".b8", 1}, {".u16", 2}, {".b16", 2}, {".u32", 4}, {".b32", 4},
      {".f32", 4}, {".s32", 4}, {".u64", 8}, {".b64", 8}, {".f64", 8}, {".s64", 8},
  };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (!strncmp(type, types[i].name, strlen(types[i].name))) return types[i].size;
  return 0;
}

/* One parameter: ".param .align 8 .b8 name[24]" or ".param .u32 name". */
static int parameter(const char *p, const char *end) {
  int size = 0, n = 1;
  for (; p < end; p++) {
    if (*p == '.' && size_of(p)) size = size_of(p);
    if (*p == '[') n = atoi(p + 1);
  }
  return size * n;
}

static void entry(struct object *module, const char *p) {
  struct function *f = calloc(1, sizeof *f);
  f->next = module->functions, module->functions = f;
  f->shared = 48 << 10;
  sscanf(p, " %63[A-Za-z0-9_$]", f->name);
  const char *open = strchr(p, '('), *brace = strchr(p, '{'), *close = strchr(p, ')');
  if (!open || !close || (brace && brace < open)) return;
  while ((p = strstr(open, ".param")) && p < close && f->params < 32) {
    const char *end = strchr(p, ',');
    if (!end || end > close) end = close;
    f->size[f->params++] = parameter(p + strlen(".param"), end);
    open = end;
  }
}

/* Options are the error log's buffer (5) and its size (6). */
int cuModuleLoadDataEx(void **out, const void *image, unsigned n, const int *options, void **values) {
  BEGIN(1);
  const char *text = image;
  int code = 0;
  if (!strstr(text, ".version ")) code = 218;
  else if (strstr(text, ".version 99.")) code = 222;
  else if (strstr(text, ".target sm_999")) code = 209;
  if (code) {
    char *log = NULL;
    size_t room = 0;
    for (unsigned i = 0; i < n; i++) {
      if (options[i] == 5) log = values[i];
      if (options[i] == 6) room = (uint32_t)(uintptr_t)values[i];
    }
    if (log && code == 218) snprintf(log, room, "ptxas application ptx input, line 1; fatal   : Missing .version directive\nptxas fatal   : Ptx assembly aborted due to errors\n");
    return leave(code);
  }
  struct object *m = make(MODULE, 0);
  for (const char *p = text; (p = strstr(p, ".entry "));) entry(m, p += strlen(".entry "));
  *out = m;
  return leave(0);
}

int cuModuleUnload(void *module) {
  BEGIN(1);
  struct object *m = handle(module, MODULE);
  if (!m) return leave(400);
  destroy(m);
  return leave(0);
}

int cuModuleGetFunction(void **out, void *module, const char *name) {
  BEGIN(1);
  struct object *m = handle(module, MODULE);
  if (!m) return leave(400);
  for (struct function *f = m->functions; f; f = f->next)
    if (!strcmp(f->name, name)) {
      *out = f;
      return leave(0);
    }
  return leave(500);
}

static struct function *kernel(void *h) {
  for (struct object *o = current->objects; o; o = o->next)
    for (struct function *f = o->functions; f; f = f->next)
      if (f == h) return f;
  return NULL;
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
  BEGIN(1);
  struct function *f = kernel(function);
  if (!f) return leave(400);
  if (attribute != 8 || value < 0 || value > 227 << 10) return leave(1);
  f->shared = value;
  return leave(0);
}

/* The one kernel that is carried out: set n bytes at dst to v. */
static void fill(void **params) {
  deviceptr dst;
  uint32_t n;
  memcpy(&dst, params[0], sizeof dst);
  memcpy(&n, params[1], sizeof n);
  char *host = reach(dst, n);
  if (!host) {
    current->poison = 700; /* the launch itself succeeds: the next call says it */
    return;
  }
  memset(host, *(uint8_t *)params[2], n);
}

static int launch(struct function *f, const unsigned d[6], unsigned shared, void *stream, void **params) {
  if (!f || !good_stream(stream)) return 400;
  for (int i = 0; i < 6; i++)
    if (!d[i]) return 1;
  if ((uint64_t)d[3] * d[4] * d[5] > 1024 || shared > (unsigned)f->shared || (f->params && !params)) return 1;
  if (launched < 256) {
    char *line = launches[launched++];
    int at = snprintf(line, 512, "%s grid %u,%u,%u block %u,%u,%u shared %u", f->name, d[0], d[1], d[2], d[3], d[4], d[5], shared);
    for (int i = 0; i < f->params; i++) {
      at += snprintf(line + at, 512 - at, i ? " " : " params ");
      for (int b = 0; b < f->size[i] && at < 500; b++) at += snprintf(line + at, 512 - at, "%02x", ((uint8_t *)params[i])[b]);
    }
  }
  if (!strcmp(f->name, "fill")) fill(params);
  else if (!strcmp(f->name, "trap")) current->poison = 719; /* as above: the next call says it */
  else if (run_kernel) return run_kernel(f->name, d, shared, params);
  return 0;
}

#ifndef NO_LAUNCH
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) {
  BEGIN(1);
  if (extra) return leave(1);
  return leave(launch(kernel(f), (unsigned[]){gx, gy, gz, bx, by, bz}, shared, stream, params));
}
#endif
