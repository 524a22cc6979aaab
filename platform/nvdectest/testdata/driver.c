/* A stand-in for NVIDIA's libcuda and libnvcuvid, as far as FFmpeg's NVDEC
 * decoders go, built twice: with -DLIBCUDA the first, else the second. Device
 * memory is host memory, streams are done at once, and a decoded picture is a
 * pattern of its number. What it is for is the bookkeeping: it counts what is
 * alive and calls a violation what the driver would punish. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 2 }; /* at most: the counter "devices" says how many, 0 = one */

/* A primary context, and a stream. Both are of the context's life: resetting it begins
 * another, and what is of the one before must not be touched any more. */
typedef struct {
  int device, refs, inside; /* calls of the decoders that are on */
  unsigned flags;
  long life;
} fake_context;
typedef struct {
  fake_context *of;
  long life;
} fake_stream;

long fake_get(const char *name);
long fake_add(const char *name, long n);
fake_context *fake_current(void); /* that is current on this thread, if it is retained */
void fake_enter(fake_context *c);
void fake_leave(fake_context *c);
int fake_captures_matter(void);

#define VIOLATION(name) (fake_add("violations", 1), fake_add(name, 1))

#ifdef LIBCUDA

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { char name[48]; long value; } counters[96];
static __thread void *stack[8];
static __thread int depth;
static fake_context contexts[DEVICES] = {{.device = 0}, {.device = 1}};
static fake_stream *streams[64];

static long *counter(const char *name) {
  int i = 0;
  while (counters[i].name[0] && strcmp(counters[i].name, name)) i++;
  strncpy(counters[i].name, name, sizeof counters[i].name - 1);
  return &counters[i].value;
}

long fake_add(const char *name, long n) {
  pthread_mutex_lock(&lock);
  long v = *counter(name) += n;
  pthread_mutex_unlock(&lock);
  return v;
}

long fake_get(const char *name) { return fake_add(name, 0); }

void fake_set(const char *name, long value) { fake_add(name, value - fake_get(name)); }

fake_context *fake_current(void) {
  fake_context *c = depth > 0 ? stack[depth - 1] : NULL;
  return c && c->refs > 0 ? c : NULL;
}

void fake_enter(fake_context *c) {
  pthread_mutex_lock(&lock);
  c->inside++;
  pthread_mutex_unlock(&lock);
}

void fake_leave(fake_context *c) {
  pthread_mutex_lock(&lock);
  c->inside--;
  pthread_mutex_unlock(&lock);
}

/* For the stand-in of the rest of libcuda, which shares the cards with this one. */
void fake_context_reset(int device) {
  if (device < 0 || device >= DEVICES) return;
  fake_context *c = &contexts[device];
  pthread_mutex_lock(&lock);
  int inside = c->inside, refs = c->refs;
  c->refs = 0;
  c->life++;
  *counter("contexts") -= refs;
  *counter("resets") += 1;
  pthread_mutex_unlock(&lock);
  if (inside) VIOLATION("reset with calls inside");
  if (refs) VIOLATION("reset while it was held");
}

int fake_is_stream(void *s) {
  int known = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < 64; i++) known |= s && streams[i] == s && streams[i]->life == streams[i]->of->life;
  pthread_mutex_unlock(&lock);
  return known;
}

static int count(void) { return fake_get("devices") ? (int)fake_get("devices") : 1; }

int cuInit(unsigned f) { return f ? 1 : (int)fake_get("init_fails"); }
int cuDeviceGetCount(int *n) { *n = count(); return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal < count() ? 0 : 101; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = 512;
  return attribute == 14 && device < count() ? 0 : 1;
}
int cuDevicePrimaryCtxGetState(int device, unsigned *f, int *active) {
  *f = contexts[device].flags;
  *active = contexts[device].refs > 0;
  return 0;
}
int cuDevicePrimaryCtxSetFlags(int device, unsigned f) {
  if (contexts[device].refs > 0) return 708;
  contexts[device].flags = f;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  if (fake_get("retain_fails")) return (int)fake_get("retain_fails");
  if (contexts[device].flags != 4) VIOLATION("spinning context");
  *context = &contexts[device];
  pthread_mutex_lock(&lock);
  contexts[device].refs++;
  *counter("contexts") += 1;
  pthread_mutex_unlock(&lock);
  return 0;
}
int cuDevicePrimaryCtxRelease(int device) {
  pthread_mutex_lock(&lock);
  int held = contexts[device].refs > 0;
  contexts[device].refs -= held;
  *counter("contexts") -= held;
  pthread_mutex_unlock(&lock);
  if (!held) VIOLATION("context released twice");
  return 0;
}
int cuCtxPushCurrent_v2(void *context) {
  if (depth == 8) return 1;
  stack[depth++] = context;
  return 0;
}
int cuCtxPopCurrent_v2(void **context) {
  if (depth == 0) { VIOLATION("pop of nothing"); return 1; }
  *context = stack[--depth];
  return 0;
}
int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0, *greatest = -5;
  return 0;
}
/* While another thread captures a graph the driver refuses calls of threads that have
 * not said that they do not mind. */
static __thread int capture_mode;
int cuThreadExchangeStreamCaptureMode(int *mode) {
  int before = capture_mode;
  capture_mode = *mode, *mode = before;
  return 0;
}
int fake_captures_matter(void) { return capture_mode == 0; }
int cuStreamCreateWithPriority(void **stream, unsigned f, int priority) {
  fake_context *c = fake_current();
  if (!c) { VIOLATION("no context"); return 201; }
  if (priority != -5) VIOLATION("stream that is not urgent");
  if (f != 1) VIOLATION("blocking stream");
  fake_stream *s = malloc(sizeof *s);
  s->of = c;
  pthread_mutex_lock(&lock);
  s->life = c->life;
  for (int i = 0, put = 0; i < 64 && !put; i++)
    if (!streams[i]) streams[i] = s, put = 1;
  pthread_mutex_unlock(&lock);
  *stream = s;
  fake_add("streams", 1);
  return 0;
}
int cuStreamDestroy_v2(void *stream) {
  fake_stream *s = stream;
  if (s->life != s->of->life) { VIOLATION("called after its context was reset"); return 709; }
  if (fake_current() != s->of) VIOLATION("stream destroyed elsewhere");
  pthread_mutex_lock(&lock);
  for (int i = 0; i < 64; i++)
    if (streams[i] == s) streams[i] = NULL;
  pthread_mutex_unlock(&lock);
  free(s);
  fake_add("streams", -1);
  return 0;
}
int cuGetErrorName(int code, const char **name) {
  *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 100 ? "CUDA_ERROR_NO_DEVICE" :
          code == 709 ? "CUDA_ERROR_CONTEXT_IS_DESTROYED" : code == 719 ? "CUDA_ERROR_LAUNCH_FAILED" :
          code == 999 ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR_OTHER";
  return 0;
}
int cuGetErrorString(int code, const char **text) {
  *text = code == 2 ? "out of memory" : code == 100 ? "no CUDA-capable device is detected" :
          code == 709 ? "context is destroyed" : code == 719 ? "unspecified launch failure" :
          code == 999 ? "unknown error" : "other error";
  return 0;
}

/* FFmpeg's loader wants these to exist. */
#define NEVER(name) int name(void) { VIOLATION(#name); return 801; }
NEVER(cuDeviceGetName) NEVER(cuDeviceComputeCapability) NEVER(cuCtxCreate_v2) NEVER(cuCtxSetLimit)
NEVER(cuCtxDestroy_v2) NEVER(cuMemAlloc_v2) NEVER(cuMemAllocPitch_v2) NEVER(cuMemAllocManaged)
NEVER(cuMemsetD8Async) NEVER(cuMemFree_v2) NEVER(cuMemcpy) NEVER(cuMemcpyAsync) NEVER(cuMemcpy2D_v2)
NEVER(cuMemcpy2DAsync_v2) NEVER(cuMemcpyHtoD_v2) NEVER(cuMemcpyHtoDAsync_v2) NEVER(cuMemcpyDtoH_v2)
NEVER(cuMemcpyDtoHAsync_v2) NEVER(cuMemcpyDtoD_v2) NEVER(cuMemcpyDtoDAsync_v2) NEVER(cuCtxGetDevice)
NEVER(cuCtxGetCurrent) NEVER(cuDevicePrimaryCtxReset) NEVER(cuStreamQuery) NEVER(cuStreamSynchronize)
NEVER(cuStreamCreate) NEVER(cuStreamAddCallback) NEVER(cuStreamWaitEvent) NEVER(cuEventCreate) NEVER(cuEventDestroy_v2)
NEVER(cuEventSynchronize) NEVER(cuEventQuery) NEVER(cuEventRecord) NEVER(cuLaunchKernel) NEVER(cuLinkCreate)
NEVER(cuLinkAddData) NEVER(cuLinkComplete) NEVER(cuLinkDestroy) NEVER(cuModuleLoadData) NEVER(cuModuleUnload)
NEVER(cuModuleGetFunction) NEVER(cuModuleGetGlobal) NEVER(cuTexObjectCreate) NEVER(cuTexObjectDestroy)
NEVER(cuGLGetDevices_v2) NEVER(cuGraphicsGLRegisterImage) NEVER(cuGraphicsUnregisterResource)
NEVER(cuGraphicsMapResources) NEVER(cuGraphicsUnmapResources) NEVER(cuGraphicsSubResourceGetMappedArray)
NEVER(cuGraphicsResourceGetMappedPointer_v2) NEVER(cuArrayCreate_v2) NEVER(cuArray3DCreate_v2) NEVER(cuArrayDestroy)
NEVER(cuDeviceGetUuid) NEVER(cuMipmappedArrayGetLevel)

#else /* libnvcuvid */

#include <unistd.h>

/* A GPU that does not answer: its number from 1 is the value of what. */
static void hang(const fake_context *c, const char *what) {
  if (fake_get(what) != c->device + 1) return;
  fake_add("hanging", 1);
  while (fake_get(what) == c->device + 1) usleep(1000);
  fake_add("hanging", -1);
}

enum { SURFACES = 64, PITCH_ALIGN = 512 };

/* The beginnings of the driver's structures, up to what is used here. */
typedef struct {
  int codec, chroma;
  unsigned depth_minus8, reserved1[3];
  unsigned char supported, engines;
  unsigned short output_formats;
  unsigned max_width, max_height, max_blocks;
  unsigned short min_width, min_height;
} caps;

typedef struct {
  unsigned long width, height, surfaces;
  int codec, chroma;
  unsigned long creation_flags, depth_minus8, intra_only, max_width, max_height, reserved1;
  short display_area[4];
  int output_format, deinterlace;
  unsigned long target_width, target_height, outputs;
} create_info;

typedef struct {
  int width_blocks, height_blocks, index, field, bottom, second_field;
  unsigned length;
  const unsigned char *data;
  unsigned slices;
} picture_info;

typedef struct {
  int progressive, second_field, top_first, unpaired;
  unsigned reserved[2];
  unsigned long long raw_input;
  unsigned raw_input_pitch, raw_input_format;
  unsigned long long raw_output;
  unsigned raw_output_pitch, reserved1;
  void *stream;
} map_info;

typedef struct {
  fake_context *of;
  long life;
  pthread_mutex_t lock;
  create_info info;
  int pitch, sample;
  long pictures;
  long number[SURFACES];        /* of the picture in each decoding surface */
  unsigned char *output[SURFACES];
  int mapped[SURFACES];         /* by output: index of the decoding surface + 1 */
} decoder;

/* Every call on a decoder begins with it: 0, or what the driver says where it does not
 * crash. The context is current, its own, and the one that it was made in. */
static int begin(const decoder *d) {
  fake_add("calls", 1);
  if (d->life != d->of->life) { VIOLATION("called after its context was reset"); return 709; }
  if (fake_current() != d->of) VIOLATION("no context");
  if (fake_captures_matter()) VIOLATION("call that another thread's capture makes fail");
  if (fake_get("gone") == d->of->device + 1) {
    if (fake_add("told", 1) > fake_get("tells")) VIOLATION("called after its context was gone");
    return 709;
  }
  fake_enter(d->of);
  return 0;
}

static int end(const decoder *d, int code) {
  fake_leave(d->of);
  return code;
}

/* What holds the driver's locks: setting up and closing. */
static void lock_driver(void) {
  if (fake_add("locking", 1) > 1) VIOLATION("decoders set up or closed side by side");
  usleep((unsigned)fake_get("lock_us"));
  fake_add("locking", -1);
}

int cuvidGetDecoderCaps(caps *c) {
  /* The rest of libcuda may be another stand-in, whose contexts are not known here. */
  if (!fake_current() && !fake_get("devices")) VIOLATION("no context");
  c->supported = !fake_get("unsupported") && c->chroma == 1;
  c->max_width = c->max_height = 4096;
  c->max_blocks = (unsigned)(fake_get("max_blocks") ? fake_get("max_blocks") : 65536);
  c->min_width = c->min_height = 48;
  return 0;
}

int cuvidCreateDecoder(decoder **out, const create_info *i) {
  fake_context *c = fake_current();
  if (!c) { VIOLATION("no context"); return 201; }
  if (fake_captures_matter()) VIOLATION("call that another thread's capture makes fail");
  if (fake_get("strict")) lock_driver();
  hang(c, "create_hangs");
  if (fake_get("create_fails")) return (int)fake_get("create_fails");
  if (fake_get("sessions") && fake_get("decoders") >= fake_get("sessions")) return 2;
  if (i->surfaces > 32 || i->surfaces != i->outputs || i->surfaces < 1) return 1;
  decoder *d = calloc(1, sizeof *d);
  d->of = c;
  d->life = c->life;
  pthread_mutex_init(&d->lock, NULL);
  d->info = *i;
  d->sample = i->depth_minus8 ? 2 : 1;
  d->pitch = ((int)i->target_width * d->sample + PITCH_ALIGN - 1) / PITCH_ALIGN * PITCH_ALIGN;
  for (unsigned long k = 0; k < i->outputs; k++)
    d->output[k] = malloc((size_t)d->pitch * (i->target_height * 3 / 2));
  fake_add("decoders", 1);
  fake_add("created", 1);
  fake_add("last_surfaces", (long)i->surfaces - fake_get("last_surfaces"));
  *out = d;
  return 0;
}

int cuvidDestroyDecoder(decoder *d) {
  int code = begin(d);
  if (code) return code;
  if (fake_get("strict")) lock_driver();
  hang(d->of, "hangs");
  end(d, 0);
  for (unsigned long k = 0; k < d->info.outputs; k++) {
    if (d->mapped[k]) VIOLATION("destroyed with mapped surfaces");
    free(d->output[k]);
  }
  free(d);
  fake_add("decoders", -1);
  return 0;
}

int cuvidDecodePicture(decoder *d, const picture_info *p) {
  int code = begin(d);
  if (code) return code;
  hang(d->of, "decode_hangs");
  long fails = fake_get("decode_fails");
  if (fails) return end(d, (int)fails);
  if (p->index < 0 || p->index >= (int)d->info.surfaces || !p->length || !p->slices) return end(d, 1);
  pthread_mutex_lock(&d->lock);
  for (unsigned long k = 0; k < d->info.outputs; k++)
    if (d->mapped[k] == p->index + 1) VIOLATION("decoded into a surface that is read");
  d->number[p->index] = d->pictures;
  d->pictures += !p->second_field;
  pthread_mutex_unlock(&d->lock);
  return end(d, 0);
}

static void draw(const decoder *d, unsigned char *to, long number) {
  int h = (int)d->info.target_height, w = (int)d->info.target_width;
  for (int y = 0; y < h * 3 / 2; y++)
    for (int x = 0; x < w; x++) {
      unsigned v = (unsigned)(number * 7 + x + 3 * y);
      unsigned char *row = to + (size_t)y * d->pitch;
      if (d->sample == 2) ((uint16_t *)row)[x] = (uint16_t)((v & 1023) << 6);
      else row[x] = (unsigned char)v;
    }
}

int cuvidMapVideoFrame64(decoder *d, int index, unsigned long long *address, unsigned *pitch, const map_info *m) {
  int code = begin(d);
  if (code) return code;
  const fake_stream *s = m->stream;
  if (!s || s->of != d->of || s->life != d->life) VIOLATION("mapped on another stream");
  long fails = fake_get("map_fails");
  if (fails) return end(d, (int)fails);
  pthread_mutex_lock(&d->lock);
  unsigned long k = 0;
  while (k < d->info.outputs && d->mapped[k]) k++;
  if (k == d->info.outputs) { pthread_mutex_unlock(&d->lock); return end(d, 2); }
  d->mapped[k] = index + 1;
  draw(d, d->output[k], d->number[index]);
  pthread_mutex_unlock(&d->lock);
  *address = (unsigned long long)(uintptr_t)d->output[k];
  *pitch = (unsigned)d->pitch;
  fake_add("mapped", 1);
  return end(d, 0);
}

int cuvidUnmapVideoFrame64(decoder *d, unsigned long long address) {
  int code = begin(d);
  if (code) return code;
  hang(d->of, "hangs");
  pthread_mutex_lock(&d->lock);
  unsigned long k = 0;
  while (k < d->info.outputs && (uintptr_t)d->output[k] != address) k++;
  if (k == d->info.outputs || !d->mapped[k]) VIOLATION("unmapped twice");
  else {
    d->mapped[k] = 0;
    memset(d->output[k], 0xdb, (size_t)d->pitch * (d->info.target_height * 3 / 2));
    fake_add("mapped", -1);
  }
  pthread_mutex_unlock(&d->lock);
  return end(d, 0);
}

#define NEVER(name) int name(void) { VIOLATION(#name); return 801; }
NEVER(cuvidGetDecodeStatus) NEVER(cuvidReconfigureDecoder) NEVER(cuvidMapVideoFrame) NEVER(cuvidUnmapVideoFrame)
NEVER(cuvidCtxLockCreate) NEVER(cuvidCtxLockDestroy) NEVER(cuvidCtxLock) NEVER(cuvidCtxUnlock)
NEVER(cuvidCreateVideoSource) NEVER(cuvidCreateVideoSourceW) NEVER(cuvidDestroyVideoSource)
NEVER(cuvidSetVideoSourceState) NEVER(cuvidGetVideoSourceState) NEVER(cuvidGetSourceVideoFormat)
NEVER(cuvidGetSourceAudioFormat) NEVER(cuvidCreateVideoParser) NEVER(cuvidParseVideoData)
NEVER(cuvidDestroyVideoParser)

#endif
