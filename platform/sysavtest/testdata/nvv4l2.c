// A libavcodec whose *_nvv4l2dec decoders have the manners of NVIDIA's. All else
// is the installed libavcodec, which this library needs: the loader finds there
// what is not here.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavutil/opt.h>

#define SLOTS 64

// One decoder that is alive.
typedef struct nv {
    AVCodecContext *ctx;
    AVFrame *held[SLOTS];
    int count;
    int width, height; // of the first picture: the memory has that size for ever
    bool parameters;   // the stream has had some
} nv;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static nv all[SLOTS];
static int delay = 2, hang, silent, fail, version, squeeze, odd_times, refuse, hidden;
static int opened, hanging, overflows;

static int *number(const char *name)
{
    static const struct { const char *name; int *at; } numbers[] = {
        {"delay", &delay}, {"hang", &hang}, {"silent", &silent}, {"fail", &fail}, {"version", &version},
        {"squeeze", &squeeze}, {"odd_times", &odd_times}, {"refuse", &refuse}, {"hidden", &hidden},
        {"opened", &opened}, {"hanging", &hanging}, {"overflows", &overflows},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!strcmp(numbers[i].name, name))
            return numbers[i].at;
    abort();
}

void nv_set(const char *name, int value)
{
    pthread_mutex_lock(&lock);
    *number(name) = value;
    pthread_cond_broadcast(&turn);
    pthread_mutex_unlock(&lock);
}

int nv_get(const char *name)
{
    int n = 0;
    pthread_mutex_lock(&lock);
    if (strcmp(name, "alive"))
        n = *number(name);
    else
        for (int i = 0; i < SLOTS; i++)
            n += all[i].ctx != NULL;
    pthread_mutex_unlock(&lock);
    return n;
}

// What a call hangs in, as bits of "hang".
enum { HANG_OPEN = 1, HANG_SEND = 2, HANG_RECEIVE = 4, HANG_CLOSE = 8 };

static void wait_at(int where)
{
    pthread_mutex_lock(&lock);
    hanging++;
    while (hang & where)
        pthread_cond_wait(&turn, &lock);
    hanging--;
    pthread_mutex_unlock(&lock);
}

static nv *find(const AVCodecContext *c)
{
    nv *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SLOTS && !found; i++)
        if (all[i].ctx == c)
            found = &all[i];
    pthread_mutex_unlock(&lock);
    return found;
}

// next is the real function, found in the libraries behind this one.
static void *next(const char *name)
{
    static void *real;
    if (!real)
        real = dlopen(REAL_CODEC, RTLD_NOW | RTLD_LOCAL);
    return dlsym(real, name);
}
#define NEXT(name) ((__typeof__(&name))next(#name))

unsigned avcodec_version(void)
{
    unsigned v = NEXT(avcodec_version)();
    return version ? (unsigned)version << 16 | (v & 0xffff) : v;
}

static AVCodec decoders[2];

static void fill(int i, const char *name, const char *real)
{
    const AVCodec *c = NEXT(avcodec_find_decoder_by_name)(real);
    decoders[i] = *c;
    decoders[i].name = name;
    decoders[i].capabilities = AV_CODEC_CAP_DELAY | AV_CODEC_CAP_AVOID_PROBING | AV_CODEC_CAP_HARDWARE;
}

const AVCodec *avcodec_find_decoder_by_name(const char *name)
{
    if (!strcmp(name, "h264_nvv4l2dec"))
        return &decoders[0];
    if (!strcmp(name, "hevc_nvv4l2dec"))
        return &decoders[1];
    return NEXT(avcodec_find_decoder_by_name)(name);
}

const AVCodec *av_codec_iterate(void **state)
{
    if (!decoders[0].name) {
        fill(0, "h264_nvv4l2dec", "h264");
        fill(1, "hevc_nvv4l2dec", "hevc");
    }
    uintptr_t n = (uintptr_t)*state;
    if (n < 2 && !hidden) {
        *state = (void *)(n + 1);
        return &decoders[n];
    }
    // The real one counts from 0, and steps through all of its own.
    void *real = n < 2 ? NULL : (void *)(n - 2);
    const AVCodec *c = NEXT(av_codec_iterate)(&real);
    *state = (void *)((uintptr_t)real + 2);
    return c;
}

static bool ours(const AVCodec *c) { return c == &decoders[0] || c == &decoders[1]; }

int av_codec_is_decoder(const AVCodec *c) { return ours(c) || NEXT(av_codec_is_decoder)(c); }

static const AVCodec *real_of(const AVCodec *c)
{
    return NEXT(avcodec_find_decoder_by_name)(c == &decoders[0] ? "h264" : "hevc");
}

AVCodecContext *avcodec_alloc_context3(const AVCodec *c)
{
    AVCodecContext *ctx = NEXT(avcodec_alloc_context3)(ours(c) ? real_of(c) : c);
    if (!ctx || !ours(c))
        return ctx;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SLOTS; i++)
        if (!all[i].ctx) {
            all[i] = (nv){.ctx = ctx};
            break;
        }
    pthread_mutex_unlock(&lock);
    return ctx;
}

int avcodec_open2(AVCodecContext *ctx, const AVCodec *c, AVDictionary **options)
{
    if (!ours(c))
        return NEXT(avcodec_open2)(ctx, c, options);
    wait_at(HANG_OPEN);
    pthread_mutex_lock(&lock);
    opened++;
    pthread_mutex_unlock(&lock);
    if (refuse) {
        av_log(ctx, AV_LOG_ERROR, "Could not open device\n");
        return AVERROR_UNKNOWN;
    }
    return NEXT(avcodec_open2)(ctx, real_of(c), options);
}

// has_parameters looks for an SPS among the NAL units of a packet.
static bool has_parameters(const AVCodecContext *ctx, const AVPacket *p)
{
    for (int i = 0; i + 3 < p->size; i++)
        if (!p->data[i] && !p->data[i + 1] && p->data[i + 2] == 1) {
            int b = p->data[i + 3];
            if (ctx->codec_id == AV_CODEC_ID_H264 ? (b & 31) == 7 : (b >> 1 & 63) == 33)
                return true;
        }
    return false;
}

// squeezed turns full range into the other one, as a converter behind the decoder
// that takes everything for limited range might.
static void squeezed(AVFrame *f)
{
    if (!squeeze || av_frame_make_writable(f) < 0)
        return;
    for (int i = 0; i < 3; i++)
        for (int y = 0; y < (i ? f->height / 2 : f->height); y++)
            for (int x = 0; x < (i ? f->width / 2 : f->width); x++) {
                uint8_t *s = f->data[i] + y * f->linesize[i] + x;
                *s = i ? 128 + (*s - 128) * 224 / 255 : 16 + *s * 219 / 255;
            }
}

// take moves what the real decoder has into the queue.
static int take(nv *v)
{
    for (;;) {
        AVFrame *f = av_frame_alloc();
        int err = NEXT(avcodec_receive_frame)(v->ctx, f);
        if (err < 0 || v->count == SLOTS) {
            av_frame_free(&f);
            return err == AVERROR(EAGAIN) || err == AVERROR_EOF ? 0 : err;
        }
        if (!v->width) {
            v->width = f->width;
            v->height = f->height;
        }
        if (f->width > v->width || f->height > v->height) {
            pthread_mutex_lock(&lock);
            overflows++; // NVIDIA's writes behind its memory
            pthread_mutex_unlock(&lock);
        }
        squeezed(f);
        f->color_range = AVCOL_RANGE_UNSPECIFIED;
        f->colorspace = AVCOL_SPC_UNSPECIFIED;
        f->format = AV_PIX_FMT_YUV420P;
        f->key_frame = 1;
        f->pict_type = AV_PICTURE_TYPE_NONE;
        f->flags = 0;
        f->decode_error_flags = 0;
        f->pts %= 1000000; // the microseconds of a timeval
        if (odd_times)
            f->pts = 0;
        v->held[v->count++] = f;
    }
}

int avcodec_send_packet(AVCodecContext *ctx, const AVPacket *p)
{
    nv *v = find(ctx);
    if (!v)
        return NEXT(avcodec_send_packet)(ctx, p);
    wait_at(HANG_SEND);
    if (!p || !p->size)
        return 0; // what was not asked for is gone
    if (fail) {
        av_log(ctx, AV_LOG_ERROR, "Error Qing buffer at output plane\n");
        return fail;
    }
    // The real decoder fills these in when it has seen a picture; NVIDIA's needs them
    // to get memory for its first one.
    if (!v->parameters && (ctx->width <= 0 || ctx->height <= 0 || ctx->pix_fmt != AV_PIX_FMT_YUV420P)) {
        av_log(ctx, AV_LOG_ERROR, "video_get_buffer: image parameters invalid\n");
        return AVERROR(ENOMEM);
    }
    if (!v->parameters && !(v->parameters = has_parameters(ctx, p)))
        return 0; // the hardware waits
    int err = NEXT(avcodec_send_packet)(ctx, p);
    if (err >= 0)
        take(v);
    return 0; // and says nothing
}

int avcodec_receive_frame(AVCodecContext *ctx, AVFrame *f)
{
    nv *v = find(ctx);
    if (!v)
        return NEXT(avcodec_receive_frame)(ctx, f);
    wait_at(HANG_RECEIVE);
    if (silent || v->count <= delay)
        return AVERROR(EAGAIN);
    av_frame_unref(f);
    av_frame_move_ref(f, v->held[0]);
    av_frame_free(&v->held[0]);
    memmove(v->held, v->held + 1, (size_t)--v->count * sizeof v->held[0]);
    return 0;
}

void avcodec_free_context(AVCodecContext **ctx)
{
    nv *v = *ctx ? find(*ctx) : NULL;
    if (v) {
        wait_at(HANG_CLOSE);
        for (int i = 0; i < v->count; i++)
            av_frame_free(&v->held[i]);
        pthread_mutex_lock(&lock);
        v->count = 0;
        v->ctx = NULL;
        pthread_mutex_unlock(&lock);
    }
    NEXT(avcodec_free_context)(ctx);
}
