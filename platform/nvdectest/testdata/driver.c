/* A stand-in for NVIDIA's libcuda and libnvcuvid, as far as FFmpeg's NVDEC
 * decoders go, built twice: with -DLIBCUDA the first, else the second. Device
 * memory is host memory, streams are done at once, and a decoded picture is a
 * pattern of its number. What it is for is the bookkeeping: it counts what is
 * alive and calls a violation what the driver would punish. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

long fake_get(const char *name);
long fake_add(const char *name, long n);
int fake_current(void); /* the primary context is current on this thread */
void *fake_stream(void);

#define VIOLATION(name) (fake_add("violations", 1), fake_add(name, 1))

#ifdef LIBCUDA

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { char name[32]; long value; } counters[64];
static __thread void *stack[8];
static __thread int depth;
static int context_object, stream_object;
static unsigned flags;

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

int fake_current(void) { return depth > 0 && stack[depth - 1] == &context_object && fake_get("contexts") > 0; }

void *fake_stream(void) { return &stream_object; }

int cuInit(unsigned f) { return f ? 1 : (int)fake_get("init_fails"); }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = 0; return ordinal ? 101 : 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = 512;
  return attribute == 14 && device == 0 ? 0 : 1;
}
int cuDevicePrimaryCtxGetState(int device, unsigned *f, int *active) {
  (void)device;
  *f = flags;
  *active = fake_get("contexts") > 0;
  return 0;
}
int cuDevicePrimaryCtxSetFlags(int device, unsigned f) {
  (void)device;
  if (fake_get("contexts") > 0) return 708;
  flags = f;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  (void)device;
  if (fake_get("retain_fails")) return (int)fake_get("retain_fails");
  if (flags != 4) VIOLATION("spinning context");
  *context = &context_object;
  fake_add("contexts", 1);
  return 0;
}
int cuDevicePrimaryCtxRelease(int device) {
  (void)device;
  if (fake_add("contexts", -1) < 0) VIOLATION("context released twice");
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
int cuStreamCreate(void **stream, unsigned f) {
  if (!fake_current()) VIOLATION("no context");
  if (f != 1) VIOLATION("blocking stream");
  *stream = &stream_object;
  fake_add("streams", 1);
  return 0;
}
int cuStreamDestroy_v2(void *stream) {
  if (!fake_current() || stream != &stream_object) VIOLATION("stream destroyed elsewhere");
  fake_add("streams", -1);
  return 0;
}
int cuGetErrorName(int code, const char **name) {
  *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 100 ? "CUDA_ERROR_NO_DEVICE" :
          code == 999 ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR_OTHER";
  return 0;
}
int cuGetErrorString(int code, const char **text) {
  *text = code == 2 ? "out of memory" : code == 100 ? "no CUDA-capable device is detected" :
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
NEVER(cuStreamAddCallback) NEVER(cuStreamWaitEvent) NEVER(cuEventCreate) NEVER(cuEventDestroy_v2)
NEVER(cuEventSynchronize) NEVER(cuEventQuery) NEVER(cuEventRecord) NEVER(cuLaunchKernel) NEVER(cuLinkCreate)
NEVER(cuLinkAddData) NEVER(cuLinkComplete) NEVER(cuLinkDestroy) NEVER(cuModuleLoadData) NEVER(cuModuleUnload)
NEVER(cuModuleGetFunction) NEVER(cuModuleGetGlobal) NEVER(cuTexObjectCreate) NEVER(cuTexObjectDestroy)
NEVER(cuGLGetDevices_v2) NEVER(cuGraphicsGLRegisterImage) NEVER(cuGraphicsUnregisterResource)
NEVER(cuGraphicsMapResources) NEVER(cuGraphicsUnmapResources) NEVER(cuGraphicsSubResourceGetMappedArray)
NEVER(cuGraphicsResourceGetMappedPointer_v2) NEVER(cuArrayCreate_v2) NEVER(cuArray3DCreate_v2) NEVER(cuArrayDestroy)
NEVER(cuDeviceGetUuid) NEVER(cuMipmappedArrayGetLevel)

#else /* libnvcuvid */

#include <unistd.h>

/* A GPU that does not answer. */
static void hang(void) {
  fake_add("hanging", 1);
  while (fake_get("hangs")) usleep(1000);
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
  pthread_mutex_t lock;
  create_info info;
  int pitch, sample;
  long pictures;
  long number[SURFACES];        /* of the picture in each decoding surface */
  unsigned char *output[SURFACES];
  int mapped[SURFACES];         /* by output: index of the decoding surface + 1 */
} decoder;

static void check_context(void) {
  if (!fake_current()) VIOLATION("no context");
}

int cuvidGetDecoderCaps(caps *c) {
  check_context();
  c->supported = !fake_get("unsupported") && c->chroma == 1;
  c->max_width = c->max_height = 4096;
  c->max_blocks = (unsigned)(fake_get("max_blocks") ? fake_get("max_blocks") : 65536);
  c->min_width = c->min_height = 48;
  return 0;
}

int cuvidCreateDecoder(decoder **out, const create_info *i) {
  check_context();
  if (fake_get("create_fails")) return (int)fake_get("create_fails");
  if (fake_get("sessions") && fake_get("decoders") >= fake_get("sessions")) return 2;
  if (i->surfaces > 32 || i->surfaces != i->outputs || i->surfaces < 1) return 1;
  decoder *d = calloc(1, sizeof *d);
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
  check_context();
  hang();
  for (unsigned long k = 0; k < d->info.outputs; k++) {
    if (d->mapped[k]) VIOLATION("destroyed with mapped surfaces");
    free(d->output[k]);
  }
  free(d);
  fake_add("decoders", -1);
  return 0;
}

int cuvidDecodePicture(decoder *d, const picture_info *p) {
  check_context();
  long fails = fake_get("decode_fails");
  if (fails) return (int)fails;
  if (p->index < 0 || p->index >= (int)d->info.surfaces || !p->length || !p->slices) return 1;
  pthread_mutex_lock(&d->lock);
  for (unsigned long k = 0; k < d->info.outputs; k++)
    if (d->mapped[k] == p->index + 1) VIOLATION("decoded into a surface that is read");
  d->number[p->index] = d->pictures;
  d->pictures += !p->second_field;
  pthread_mutex_unlock(&d->lock);
  return 0;
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
  check_context();
  if (m->stream != fake_stream()) VIOLATION("mapped on another stream");
  long fails = fake_get("map_fails");
  if (fails) return (int)fails;
  pthread_mutex_lock(&d->lock);
  unsigned long k = 0;
  while (k < d->info.outputs && d->mapped[k]) k++;
  if (k == d->info.outputs) { pthread_mutex_unlock(&d->lock); return 2; }
  d->mapped[k] = index + 1;
  draw(d, d->output[k], d->number[index]);
  pthread_mutex_unlock(&d->lock);
  *address = (unsigned long long)(uintptr_t)d->output[k];
  *pitch = (unsigned)d->pitch;
  fake_add("mapped", 1);
  return 0;
}

int cuvidUnmapVideoFrame64(decoder *d, unsigned long long address) {
  check_context();
  hang();
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
  return 0;
}

#define NEVER(name) int name(void) { VIOLATION(#name); return 801; }
NEVER(cuvidGetDecodeStatus) NEVER(cuvidReconfigureDecoder) NEVER(cuvidMapVideoFrame) NEVER(cuvidUnmapVideoFrame)
NEVER(cuvidCtxLockCreate) NEVER(cuvidCtxLockDestroy) NEVER(cuvidCtxLock) NEVER(cuvidCtxUnlock)
NEVER(cuvidCreateVideoSource) NEVER(cuvidCreateVideoSourceW) NEVER(cuvidDestroyVideoSource)
NEVER(cuvidSetVideoSourceState) NEVER(cuvidGetVideoSourceState) NEVER(cuvidGetSourceVideoFormat)
NEVER(cuvidGetSourceAudioFormat) NEVER(cuvidCreateVideoParser) NEVER(cuvidParseVideoData)
NEVER(cuvidDestroyVideoParser)

#endif
