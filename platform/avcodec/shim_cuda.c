// Decoding on an NVIDIA GPU (NVDEC) through FFmpeg's "cuda" accelerator.
//
// One AVHWDeviceContext serves all decoders of a GPU. It stands on the primary
// context, which is also that of our kernels and of ONNX Runtime, so a picture's
// address means the same to all of them and nothing is copied between
// contexts. av_hwdevice_ctx_create with AV_CUDA_USE_PRIMARY_CONTEXT would do
// the same, but refuses where somebody made the primary context with other flags
// first, and leaves the stream to be the legacy default stream. Hence the
// context is retained here and handed to FFmpeg.
//
// Order between decoding and reading. cuvidMapVideoFrame, which FFmpeg calls
// when a picture comes out, waits until the picture is decoded and then queues a
// kernel on the device context's stream that brings it into a surface in NV12.
// So a picture that the caller has is complete once that stream has got there,
// not before. The stream is one for all decoders of the GPU, and does not
// block: the legacy stream would wait for, and hold up, every blocking stream of
// the process, also of libraries. It is urgent, as engines' streams are: behind a
// network's kernels these few microseconds would become milliseconds, in which
// surfaces and decoders stand. Readers wait on the GPU, not here: they
// record an event on the stream (ec_device_stream) after they got their frames
// and make their own stream wait for it. That is two calls of a microsecond
// for a whole batch. Waiting here instead would put a thread to sleep and wake it
// once a picture, 10 to 50 µs each time, for nobody's good.

#include "shim_private.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>

// hwcontext_cuda.h needs two names of <cuda.h>, and asks for that header of the
// CUDA toolkit unless this is defined.
#define CUDA_VERSION 11000
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
#include <libavutil/hwcontext_cuda.h>

// The few calls of the driver that the shim makes itself.
typedef struct driver {
    int (*init)(unsigned);
    int (*device_count)(int *);
    int (*device_get)(int *, int);
    int (*primary_state)(int, unsigned *, int *);
    int (*primary_flags)(int, unsigned);
    int (*primary_retain)(CUcontext *, int);
    int (*primary_release)(int);
    int (*push)(CUcontext);
    int (*pop)(CUcontext *);
    int (*priorities)(int *, int *);
    int (*stream_create)(CUstream *, unsigned, int);
    int (*stream_destroy)(CUstream);
    int (*error_name)(int, const char **);
    int (*error_string)(int, const char **);
} driver;

struct ec_device {
    AVBufferRef *ref;
    CUstream stream;
};

// What belongs to an AVHWDeviceContext of ours, and goes with its last reference.
typedef struct primary {
    driver cu;
    int device;
    CUcontext context;
    CUstream stream;
} primary;

// The decoding surfaces of one geometry, reached by AVHWFramesContext.user_opaque.
typedef struct surfaces {
    _Atomic int held; // pictures that readers have
} surfaces;

struct ec_surface {
    AVFrame *frame;
};

#define SCHED_BLOCKING_SYNC 4 // sleep in waits, do not spin: there are many decoders
#define STREAM_NON_BLOCKING 1
#define PRIMARY_CONTEXT_ACTIVE 708 // somebody made it in between

typedef int (*exchange_call)(int *);
static _Atomic exchange_call exchange_capture_mode;

void ec_cuda_thread(void)
{
    static _Thread_local bool done;
    exchange_call exchange = atomic_load_explicit(&exchange_capture_mode, memory_order_relaxed);

    if (done || !exchange)
        return;
    int mode = 1; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    done = exchange(&mode) == 0;
}

static bool load_driver(driver *cu, char *why, size_t n)
{
    // Never closed: the driver does not bear being unloaded under its threads.
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        snprintf(why, n, "%s", dlerror());
        return false;
    }
    const struct { void *to; const char *name; } wanted[] = {
        {&cu->init, "cuInit"}, {&cu->device_count, "cuDeviceGetCount"}, {&cu->device_get, "cuDeviceGet"},
        {&cu->primary_state, "cuDevicePrimaryCtxGetState"}, {&cu->primary_flags, "cuDevicePrimaryCtxSetFlags"},
        {&cu->primary_retain, "cuDevicePrimaryCtxRetain"}, {&cu->primary_release, "cuDevicePrimaryCtxRelease"},
        {&cu->push, "cuCtxPushCurrent_v2"}, {&cu->pop, "cuCtxPopCurrent_v2"},
        {&cu->priorities, "cuCtxGetStreamPriorityRange"},
        {&cu->stream_create, "cuStreamCreateWithPriority"}, {&cu->stream_destroy, "cuStreamDestroy_v2"},
        {&cu->error_name, "cuGetErrorName"}, {&cu->error_string, "cuGetErrorString"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *f = dlsym(lib, wanted[i].name);
        if (!f) {
            snprintf(why, n, "libcuda.so.1 has no %s", wanted[i].name);
            return false;
        }
        memcpy(wanted[i].to, &f, sizeof f);
    }
    exchange_call exchange;
    void *f = dlsym(lib, "cuThreadExchangeStreamCaptureMode"); // since CUDA 10.1
    memcpy(&exchange, &f, sizeof f);
    atomic_store(&exchange_capture_mode, exchange);
    return true;
}

// failed puts a failed call into words.
static bool failed(const driver *cu, int code, const char *call, char *why, size_t n)
{
    const char *name = NULL, *text = NULL;

    if (code == 0)
        return false;
    cu->error_name(code, &name);
    cu->error_string(code, &text);
    snprintf(why, n, "%s: %s (%d): %s", call, name ? name : "error", code, text ? text : "unknown");
    return true;
}

// find_gpu initialises the driver and finds the GPU of a number.
static int find_gpu(primary *g, int ordinal, int *count, char *why, size_t n)
{
    const driver *cu = &g->cu;

    if (failed(cu, cu->init(0), "cuInit", why, n) ||
        failed(cu, cu->device_count(count), "cuDeviceGetCount", why, n))
        return EC_DEVICE_CALL;
    if (ordinal < 0 || ordinal >= *count)
        return EC_DEVICE_ORDINAL;
    return failed(cu, cu->device_get(&g->device, ordinal), "cuDeviceGet", why, n) ? EC_DEVICE_CALL : 0;
}

// retain_primary takes a reference of the primary context and makes the stream.
static int retain_primary(primary *g, char *why, size_t n)
{
    const driver *cu = &g->cu;
    unsigned flags = 0;
    int active = 0;

    if (failed(cu, cu->primary_state(g->device, &flags, &active), "cuDevicePrimaryCtxGetState", why, n))
        return EC_DEVICE_CALL;
    // A context that exists keeps its flags: then whoever made it chose.
    int code = active ? 0 : cu->primary_flags(g->device, SCHED_BLOCKING_SYNC);
    if (code != PRIMARY_CONTEXT_ACTIVE && failed(cu, code, "cuDevicePrimaryCtxSetFlags", why, n))
        return EC_DEVICE_CALL;
    if (failed(cu, cu->primary_retain(&g->context, g->device), "cuDevicePrimaryCtxRetain", why, n)) {
        g->context = NULL;
        return EC_DEVICE_CALL;
    }
    CUcontext dummy;
    if (failed(cu, cu->push(g->context), "cuCtxPushCurrent", why, n))
        return EC_DEVICE_CALL;
    int least = 0, greatest = 0; // both 0 where there is one priority
    bool bad = failed(cu, cu->priorities(&least, &greatest), "cuCtxGetStreamPriorityRange", why, n) ||
               failed(cu, cu->stream_create(&g->stream, STREAM_NON_BLOCKING, greatest), "cuStreamCreateWithPriority", why, n);
    if (bad)
        g->stream = NULL;
    cu->pop(&dummy);
    return bad ? EC_DEVICE_CALL : 0;
}

static void free_primary(primary *g)
{
    CUcontext dummy;

    if (g->stream && g->cu.push(g->context) == 0) {
        g->cu.stream_destroy(g->stream);
        g->cu.pop(&dummy);
    }
    if (g->context)
        g->cu.primary_release(g->device);
    free(g);
}

// device_freed comes when the last decoder and the last picture are gone.
static void device_freed(AVHWDeviceContext *c) { free_primary(c->user_opaque); }

static int open_primary(primary *g, int ordinal, int *count, char *why, size_t n)
{
    if (!load_driver(&g->cu, why, n))
        return EC_DEVICE_DRIVER;
    // FFmpeg opens it anew for every decoder. Held open it is loaded once, and a
    // container without the driver's video part is told now.
    if (!dlopen("libnvcuvid.so.1", RTLD_LAZY | RTLD_LOCAL)) {
        snprintf(why, n, "%s", dlerror());
        return EC_DEVICE_NVCUVID;
    }
    ec_cuda_thread();
    int err = find_gpu(g, ordinal, count, why, n);
    return err ? err : retain_primary(g, why, n);
}

// make_device hands the context to FFmpeg. It consumes g, also if it fails.
static AVBufferRef *make_device(primary *g)
{
    AVBufferRef *ref = av_hwdevice_ctx_alloc(AV_HWDEVICE_TYPE_CUDA);
    if (!ref) {
        free_primary(g);
        return NULL;
    }
    AVHWDeviceContext *c = (AVHWDeviceContext *)ref->data;
    AVCUDADeviceContext *cuda = c->hwctx;
    cuda->cuda_ctx = g->context;
    cuda->stream = g->stream;
    c->user_opaque = g;
    c->free = device_freed;
    if (av_hwdevice_ctx_init(ref) < 0)
        av_buffer_unref(&ref); // calls device_freed
    return ref;
}

int ec_device_open(ec_device **out, int ordinal, int *count, char *why, int64_t n)
{
    enum AVHWDeviceType t = AV_HWDEVICE_TYPE_NONE;

    while ((t = av_hwdevice_iterate_types(t)) != AV_HWDEVICE_TYPE_CUDA)
        if (t == AV_HWDEVICE_TYPE_NONE)
            return EC_DEVICE_BUILD;
    primary *g = calloc(1, sizeof *g);
    ec_device *dev = calloc(1, sizeof *dev);
    int err = g && dev ? open_primary(g, ordinal, count, why, (size_t)n) : EC_DEVICE_CALL;
    if (err) {
        if (g)
            free_primary(g);
        free(dev);
        return err;
    }
    dev->stream = g->stream;
    dev->ref = make_device(g);
    if (!dev->ref) {
        snprintf(why, (size_t)n, "libavutil could not initialise its CUDA device");
        free(dev);
        return EC_DEVICE_CALL;
    }
    *out = dev;
    return 0;
}

void *ec_device_ref(const ec_device *dev) { return dev->ref; }

uintptr_t ec_device_stream(const ec_device *dev) { return (uintptr_t)dev->stream; }

void ec_device_close(ec_device *dev)
{
    ec_cuda_thread();
    av_buffer_unref(&dev->ref);
    free(dev);
}

bool ec_cuda_offers(const AVCodec *codec)
{
    const AVCodecHWConfig *c;

    for (int i = 0; (c = avcodec_get_hw_config(codec, i)); i++)
        if (c->pix_fmt == AV_PIX_FMT_CUDA && c->methods & AV_CODEC_HW_CONFIG_METHOD_HW_FRAMES_CTX)
            return true;
    return false;
}

static void surfaces_freed(AVHWFramesContext *c)
{
    av_buffer_pool_uninit(&c->pool);
    free(c->user_opaque);
}

// The frames of the pool have no memory: nvdec.c puts the address of the mapped
// surface in. This is what it does itself if nobody gives it a pool.
#if LIBAVUTIL_VERSION_MAJOR < 57
static AVBufferRef *no_memory(int size)
#else
static AVBufferRef *no_memory(size_t size)
#endif
{
    (void)size;
    return av_buffer_create(NULL, 0, NULL, NULL, 0);
}

// device_format is our name of what NVDEC makes of a stream in this format.
static int device_format(enum AVPixelFormat sw)
{
    switch (sw) {
    case AV_PIX_FMT_YUV420P:
    case AV_PIX_FMT_YUVJ420P: return EC_NV12;
    case AV_PIX_FMT_YUV420P10LE: return EC_P010;
    default: return EC_FORMAT_NONE;
    }
}

// make_surfaces sizes the decoder's surfaces. FFmpeg would take its own
// estimate, which takes the worst case of the level for the reordering and knows
// nothing of our readers; each surface is there twice, decoded and mapped.
static int make_surfaces(ec_decoder *d, AVCodecContext *c)
{
    AVBufferRef *ref = NULL;
    int format = device_format(c->sw_pix_fmt);

    int err = avcodec_get_hw_frames_parameters(c, d->p->device, AV_PIX_FMT_CUDA, &ref);
    if (err < 0)
        return err;
    AVHWFramesContext *f = (AVHWFramesContext *)ref->data;
    int n = edgecamSurfaces(d->p->handle, format, c->coded_width, c->coded_height, f->initial_pool_size);
    f->free = surfaces_freed;
    f->user_opaque = calloc(1, sizeof(surfaces));
    f->pool = av_buffer_pool_init(0, no_memory);
    f->initial_pool_size = n;
    if (n <= 0)
        err = AVERROR(ENOSYS);
    else if (!f->user_opaque || !f->pool)
        err = AVERROR(ENOMEM);
    else if (ec_format_of(f->sw_format) != format)
        err = AVERROR(ENOSYS);
    else
        err = av_hwframe_ctx_init(ref);
    if (err < 0) {
        av_buffer_unref(&ref);
        return err;
    }
    c->hw_frames_ctx = ref;
    return 0;
}

// refuse says why the stream is not decoded on the GPU: in the words of the
// first error that FFmpeg logged since the try, if there was one.
static enum AVPixelFormat refuse(ec_decoder *d, AVCodecContext *c, bool tried)
{
    const char *name = av_get_pix_fmt_name(c->sw_pix_fmt);

    d->refused[0] = 0;
    if (tried)
        ec_log_watched(&d->p->log, d->refused, sizeof d->refused);
    if (!d->refused[0] && tried)
        snprintf(d->refused, sizeof d->refused, "libavcodec could not set the GPU up");
    if (!d->refused[0])
        snprintf(d->refused, sizeof d->refused, "pixel format %s is not supported", name ? name : "unknown");
    d->p->tried = AV_PIX_FMT_NONE;
    return AV_PIX_FMT_NONE;
}

// choose_format is libavcodec's get_format, called when the geometry becomes
// known or changes. It is called again, without the accelerator in the list,
// when that could not be set up.
static enum AVPixelFormat choose_format(AVCodecContext *c, const enum AVPixelFormat *list)
{
    ec_decoder *d = c->opaque;
    bool offered = false;

    for (; *list != AV_PIX_FMT_NONE; list++)
        offered |= *list == AV_PIX_FMT_CUDA;
    if (!offered)
        return refuse(d, c, d->p->tried == c->sw_pix_fmt);
    if (device_format(c->sw_pix_fmt) == EC_FORMAT_NONE)
        return refuse(d, c, false);
    ec_log_watch(&d->p->log);
    d->p->tried = c->sw_pix_fmt;
    return make_surfaces(d, c) < 0 ? refuse(d, c, true) : AV_PIX_FMT_CUDA;
}

void ec_cuda_configure(ec_decoder *d, AVCodecContext *c)
{
    d->p->tried = AV_PIX_FMT_NONE;
    c->hw_device_ctx = av_buffer_ref(d->p->device);
    c->get_format = choose_format;
    c->thread_count = 1; // the GPU has the work
#ifdef AV_HWACCEL_FLAG_UNSAFE_OUTPUT
    // From 6.1 on FFmpeg copies every picture out of its surface unless it is
    // told that the surfaces suffice. They do: see make_surfaces.
    c->hwaccel_flags |= AV_HWACCEL_FLAG_UNSAFE_OUTPUT;
#endif
}

static surfaces *surfaces_of(const AVFrame *f)
{
    return ((AVHWFramesContext *)f->hw_frames_ctx->data)->user_opaque;
}

bool ec_cuda_describe(const AVFrame *f, ec_picture *o)
{
    // A picture that found no surface, or that stands for one that never came, goes
    // through the decoder like any other and comes out without memory.
    if (!f->data[0] || !f->hw_frames_ctx)
        return false;
    const AVHWFramesContext *c = (const AVHWFramesContext *)f->hw_frames_ctx->data;
    // libavcodec crops hardware pictures at the right and at the bottom only.
    size_t left = f->crop_left, top = f->crop_top;

    o->device = 1;
    o->readers = atomic_load_explicit(&surfaces_of(f)->held, memory_order_acquire);
    o->format = ec_format_of(c->sw_format);
    o->width = f->width - (int)left;
    o->height = f->height - (int)top;
    size_t sample = o->format == EC_P010 ? 2 : 1;
    o->plane[0] = (uintptr_t)f->data[0] + top * (size_t)f->linesize[0] + left * sample;
    o->plane[1] = (uintptr_t)f->data[1] + top / 2 * (size_t)f->linesize[1] + left / 2 * 2 * sample;
    o->stride[0] = f->linesize[0];
    o->stride[1] = f->linesize[1];
    return true;
}

ec_surface *ec_decoder_keep(ec_decoder *d)
{
    ec_surface *s = calloc(1, sizeof *s);
    AVFrame *f = av_frame_alloc();
    if (!s || !f) {
        free(s);
        av_frame_free(&f);
        return NULL;
    }
    av_frame_move_ref(f, d->p->frame);
    atomic_fetch_add_explicit(&surfaces_of(f)->held, 1, memory_order_relaxed);
    s->frame = f;
    return s;
}

void ec_surface_release(ec_surface *s)
{
    ec_cuda_thread();
    // Counted down only when the surface is free again: the decoder takes the
    // count as surfaces that it may use. The pool's reference keeps the counter.
    AVBufferRef *pool = s->frame->hw_frames_ctx;
    surfaces *of = surfaces_of(s->frame);

    s->frame->hw_frames_ctx = NULL;
    av_frame_free(&s->frame);
    atomic_fetch_sub_explicit(&of->held, 1, memory_order_release);
    av_buffer_unref(&pool);
    free(s);
}
