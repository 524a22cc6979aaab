/* What the calls of fakecuda.c share: codes, objects, the script that the tests
 * write with the fake_... functions, and the frame of each call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 4          /* at most */
#define DEVICE_BIT (1ull << 56) /* device addresses have it: no host address does */

typedef uint64_t deviceptr;

/* ---- codes ---- */

static const struct {
  int code;
  const char *name, *text;
} codes[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "cannot set while device is active in this process"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int text_of(int code, const char **out, int name) {
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    if (codes[i].code != code) continue;
    *out = name ? codes[i].name : codes[i].text;
    return 0;
  }
  *out = NULL;
  return 1;
}

int cuGetErrorName(int code, const char **text) { return text_of(code, text, 1); }
int cuGetErrorString(int code, const char **text) { return text_of(code, text, 0); }

/* ---- state, all under one lock ---- */

enum kind { DEVICE_MEMORY, HOST_MEMORY, REGISTERED, STREAM, EVENT, MODULE };

struct function {
  char name[64];
  int params, size[32];
  int shared; /* allowed dynamic shared memory */
  struct function *next;
};

struct object {
  enum kind kind;
  struct context *owner;
  char *host; /* of memory */
  size_t size;
  int timing, tick; /* of events; 0 = never recorded */
  struct function *functions;
  struct object *next;
};

struct context {
  int device, refs;
  unsigned flags;
  int poison; /* the code that every call gives */
  struct object *objects;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* blocked */
static struct context contexts[DEVICES];
static __thread struct context *current;
static int ticks;
static __thread int capture_mode; /* 0 = calls are refused while another thread captures */
static int capturing;
static int dead; /* the code that the whole driver gives */

/* ---- the script ---- */

static char fail_call[64], block_call[64];
static int fail_code, fail_after, blocked, pending, last_priority;
static long register_limit = -1;
static size_t memory_total = (size_t)12 << 30;
static struct { char name[64]; int n; } counts[64];
static char launches[256][512];
static int launched;

/* The call fails with code after so many good ones; "*" is any that needs a
 * context. A code after which the driver serves no more stays. */
void fake_fail(const char *call, int code, int after) {
  pthread_mutex_lock(&lock);
  snprintf(fail_call, sizeof fail_call, "%s", call);
  fail_code = code, fail_after = after;
  pthread_mutex_unlock(&lock);
}

/* From now on the driver gives code to everything, as after a fault that only a new
 * process gets over; 0 = it is well again. */
void fake_die(int code) {
  pthread_mutex_lock(&lock);
  dead = code;
  pthread_mutex_unlock(&lock);
}

/* The next such call does not return until fake_release. */
void fake_block(const char *call) {
  pthread_mutex_lock(&lock);
  snprintf(block_call, sizeof block_call, "%s", call);
  pthread_mutex_unlock(&lock);
}

/* Returns when a call is blocked. */
void fake_await_block(void) {
  pthread_mutex_lock(&lock);
  while (!blocked) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

void fake_release(void) {
  pthread_mutex_lock(&lock);
  blocked = 0, block_call[0] = 0;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* Another thread captures a graph, or does not. */
void fake_capture(int on) { capturing = on; }

/* Host memory of more bytes cannot be registered; 0 = none, -1 = any can. */
void fake_register_limit(long bytes) { register_limit = bytes; }

void fake_memory(size_t bytes) { memory_total = bytes; }

/* So many queries of events say "not ready". */
void fake_pending(int queries) { pending = queries; }

/* Of the last stream that was made with one. */
int fake_priority(void) { return last_priority; }

/* Another library holds the primary context, with these flags. */
void fake_retain(int device, unsigned flags) {
  contexts[device].flags = flags;
  contexts[device].refs++;
}

unsigned fake_flags(int device) { return contexts[device].flags; }
int fake_refs(int device) { return contexts[device].refs; }

int fake_calls(const char *call) {
  int n = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < 64 && counts[i].name[0]; i++)
    if (!strcmp(counts[i].name, call)) n = counts[i].n;
  pthread_mutex_unlock(&lock);
  return n;
}

/* Objects that were made and not given back. */
int fake_live(void) {
  int n = 0;
  pthread_mutex_lock(&lock);
  for (int d = 0; d < DEVICES; d++)
    for (struct object *o = contexts[d].objects; o; o = o->next) n++;
  pthread_mutex_unlock(&lock);
  return n;
}

/* Other kernels than fill are carried out by run: kernels that were built for the
 * processor (launch_host of the .cu files). shape is grid and block. */
static int (*run_kernel)(const char *name, const unsigned shape[6], unsigned shared, void **params);
void fake_kernels(int (*run)(const char *, const unsigned *, unsigned, void **)) { run_kernel = run; }

/* Launch number i in words, NULL = there was none. */
const char *fake_launch(int i) { return i < launched ? launches[i] : NULL; }

/* ---- the frame of each call ---- */

static int lasting(int code) {
  return code == 214 || code == 700 || code == 719 || code == 999;
}

static int enter(const char *call, int needs_context) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < 64; i++) {
    if (!counts[i].name[0]) snprintf(counts[i].name, sizeof counts[i].name, "%s", call);
    if (strcmp(counts[i].name, call)) continue;
    counts[i].n++;
    break;
  }
  if (!strcmp(block_call, call)) {
    block_call[0] = 0, blocked = 1;
    pthread_cond_broadcast(&changed);
    while (blocked) pthread_cond_wait(&changed, &lock);
  }
  if (dead) return dead;
  if (needs_context && (!current || !current->refs)) return 201;
  if (needs_context && current->poison) return current->poison;
  if (needs_context && capturing && capture_mode == 0) return 900;
  if (fail_code && (!strcmp(fail_call, call) || (needs_context && !strcmp(fail_call, "*"))) && fail_after-- <= 0) {
    int code = fail_code;
    fail_code = 0;
    if (needs_context && lasting(code)) current->poison = code;
    return code;
  }
  return 0;
}

static int leave(int code) {
  pthread_mutex_unlock(&lock);
  return code;
}

#define BEGIN(needs_context)                  \
  int code_ = enter(__func__, needs_context); \
  if (code_) return leave(code_)

/* ---- objects ---- */

static struct object *make(enum kind kind, size_t size) {
  struct object *o = calloc(1, sizeof *o);
  o->kind = kind, o->owner = current, o->size = size, o->next = current->objects;
  return current->objects = o;
}

static void destroy(struct object *o) {
  for (struct object **p = &o->owner->objects; *p; p = &(*p)->next)
    if (*p == o) {
      *p = o->next;
      break;
    }
  if (o->kind == DEVICE_MEMORY || o->kind == HOST_MEMORY) free(o->host);
  while (o->functions) {
    struct function *f = o->functions;
    o->functions = f->next;
    free(f);
  }
  free(o);
}

static struct object *handle(void *h, enum kind kind) {
  for (struct object *o = current->objects; o; o = o->next)
    if (o == h && o->kind == kind) return o;
  return NULL;
}

static struct object *memory_at(char *host, enum kind kind) {
  for (struct object *o = current->objects; o; o = o->next)
    if (o->kind == kind && o->host == host) return o;
  return NULL;
}

/* Where the n bytes at a device address lie; NULL = not all in one piece. */
static char *reach(deviceptr p, size_t n) {
  if (!(p & DEVICE_BIT)) return NULL;
  char *host = (char *)(uintptr_t)(p & ~DEVICE_BIT);
  for (struct object *o = current->objects; o; o = o->next)
    if (o->kind <= REGISTERED && host >= o->host && n <= o->size && host - o->host <= (ptrdiff_t)(o->size - n)) return host;
  return NULL;
}

/* The stand-in for the decoders' library, where the process has it, shares the cards:
 * it knows of streams, and is told of contexts that are reset. */
static int foreign_stream(void *s) {
  int (*known)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "fake_is_stream");
  return known && known(s);
}

static void tell_of_reset(int device) {
  void (*told)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "fake_context_reset");
  if (told) told(device);
}

static int good_stream(void *s) { return !s || handle(s, STREAM) || foreign_stream(s); }

static size_t used(void) {
  size_t n = 0;
  for (struct object *o = current->objects; o; o = o->next)
    if (o->kind == DEVICE_MEMORY) n += o->size;
  return n;
}
