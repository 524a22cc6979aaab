#include "shim_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <libavutil/buffer.h>
#include <libavutil/pixdesc.h>

// A decoder has some megabytes of tables, a piece for each picture, also where the GPU
// decodes. glibc raises the size from which on it asks the system for memory of its
// own to that of the largest such piece that was freed; from then on the tables of
// decoders that come and go lie among other things, and much of them stays.
void ec_heap_install(int64_t least)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, (int)least);
#else
    (void)least;
#endif
}

// enter comes before libavcodec is called, which may call the GPU's driver on this
// thread. The log is given back with ec_log_leave.
static ec_log *enter(ec_private *p)
{
    if (p->device)
        ec_cuda_thread();
    return ec_log_enter(&p->log);
}

static int new_input(ec_private *p, int64_t n)
{
    if (n > INT32_MAX - AV_INPUT_BUFFER_PADDING_SIZE)
        return AVERROR(EINVAL);
    av_buffer_unref(&p->input);
    p->input = av_buffer_allocz(n + AV_INPUT_BUFFER_PADDING_SIZE);
    return p->input ? 0 : AVERROR(ENOMEM);
}

static void publish(ec_decoder *d)
{
    d->buf = d->p->input ? d->p->input->data : NULL;
    d->cap = d->p->input ? (int64_t)d->p->input->size - AV_INPUT_BUFFER_PADDING_SIZE : 0;
    d->exhausted = atomic_load(&d->p->exhausted) + ec_log_dry(&d->p->log);
    d->lines = ec_log_pending(&d->p->log);
    d->nonsense = ec_log_nonsense(&d->p->log);
}

int ec_decoder_reserve(ec_decoder *d, int64_t n)
{
    int err = n > d->cap || !d->buf ? new_input(d->p, n + n / 2) : 0;
    publish(d);
    return err;
}

static const char *codec_word(enum AVCodecID id)
{
    switch (id) {
    case AV_CODEC_ID_H264: return "h264";
    case AV_CODEC_ID_HEVC: return "hevc";
    case AV_CODEC_ID_MJPEG: return "mjpeg";
    default: return "";
    }
}

static int set_extradata(AVCodecContext *c, const uint8_t *data, int size)
{
    if (size <= 0)
        return 0;
    c->extradata = av_mallocz((size_t)size + AV_INPUT_BUFFER_PADDING_SIZE);
    if (!c->extradata)
        return AVERROR(ENOMEM);
    memcpy(c->extradata, data, (size_t)size);
    c->extradata_size = size;
    return 0;
}

static void configure(ec_decoder *d, AVCodecContext *c)
{
    c->opaque = d;
    if (!d->p->copies)
        c->get_buffer2 = ec_get_buffer;
    // Crop to the sample, even where the first one is then not aligned.
    c->flags |= AV_CODEC_FLAG_UNALIGNED;
    // Hand damaged pictures on, flagged, instead of dropping them unseen: the
    // caller counts and drops them.
    c->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
    // Frame threads would hold one picture a thread back; slices do not.
    c->thread_type = FF_THREAD_SLICE;
    c->thread_count = d->p->threads > 0 ? d->p->threads : 1;
    c->pkt_timebase = (AVRational){1, 1000000};
    if (d->p->device)
        ec_cuda_configure(d, c);
}

static void set_strict(ec_private *p)
{
    // EXPLODE makes libavcodec report a broken slice, a missing reference or a
    // truncated picture as the access unit's error. Without it the HEVC decoder
    // in particular shows such pictures without any flag.
    int strict = AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_EXPLODE;
    p->ctx->err_recognition = p->strict ? strict : 0;
}

// open_context makes a new context in place of the one before. Ring and log
// stay. It opens tolerantly: parameter sets of session descriptions are often
// broken, and those in the stream may be right.
static int open_context(ec_decoder *d, const uint8_t *extradata, int size)
{
    ec_private *p = d->p;

    avcodec_free_context(&p->ctx);
    p->ctx = avcodec_alloc_context3(p->codec);
    if (!p->ctx)
        return AVERROR(ENOMEM);
    configure(d, p->ctx);
    int err = set_extradata(p->ctx, extradata, size);
    if (err < 0 || (err = avcodec_open2(p->ctx, p->codec, NULL)) < 0)
        return err;
    set_strict(p);
    return 0;
}

static int open_codec(ec_decoder *d, const ec_decoder_options *o)
{
    ec_private *p = d->p;

    p->handle = o->handle;
    p->threads = o->threads;
    p->copies = o->copies || !(p->codec->capabilities & AV_CODEC_CAP_DR1);
    p->pkt = av_packet_alloc();
    p->frame = av_frame_alloc();
    p->copy = av_frame_alloc();
    if (!p->pkt || !p->frame || !p->copy)
        return AVERROR(ENOMEM);
    if (o->device && !(p->device = av_buffer_ref(ec_device_ref(o->device))))
        return AVERROR(ENOMEM);
    int err = new_input(p, 64 << 10);
    if (err < 0)
        return err;
    ec_log *outer = enter(p);
    err = open_context(d, o->extradata, o->extradata_size);
    ec_log_leave(outer);
    publish(d);
    return err;
}

int ec_decoder_reopen(ec_decoder *d, const uint8_t *extradata, int size)
{
    ec_log *outer = enter(d->p);
    av_frame_unref(d->p->frame);
    int err = open_context(d, extradata, size);
    ec_log_leave(outer);
    publish(d);
    return err;
}

int ec_decoder_open(ec_decoder **out, const ec_decoder_options *o, const char *want)
{
    const AVCodec *codec = avcodec_find_decoder_by_name(o->name);
    if (!codec)
        return EC_OPEN_UNKNOWN;
    if (want[0] && strcmp(codec_word(codec->id), want))
        return EC_OPEN_CODEC;
    if (o->device && !ec_cuda_offers(codec))
        return EC_OPEN_HARDWARE;
    ec_decoder *d = calloc(1, sizeof *d);
    if (!d)
        return AVERROR(ENOMEM);
    d->p = calloc(1, sizeof *d->p);
    if (!d->p) {
        free(d);
        return AVERROR(ENOMEM);
    }
    pthread_mutex_init(&d->p->lock, NULL);
    ec_log_init(&d->p->log);
    d->p->codec = codec;
    int err = open_codec(d, o);
    if (err < 0) {
        ec_decoder_close(d);
        return err;
    }
    *out = d;
    return 0;
}

void ec_decoder_close(ec_decoder *d)
{
    if (!d)
        return;
    ec_private *p = d->p;
    ec_log *outer = enter(p);
    av_frame_free(&p->frame);
    av_frame_free(&p->copy);
    av_packet_free(&p->pkt);
    avcodec_free_context(&p->ctx);
    av_buffer_unref(&p->input);
    av_buffer_unref(&p->device);
    ec_log_leave(outer);
    ec_ring_unref(p->ring);
    ec_log_destroy(&p->log);
    pthread_mutex_destroy(&p->lock);
    free(p);
    free(d);
}

void ec_decoder_strict(ec_decoder *d, int on)
{
    d->p->strict = on;
    set_strict(d->p);
}

void ec_decoder_flush(ec_decoder *d)
{
    ec_log *outer = enter(d->p);
    av_frame_unref(d->p->frame);
    avcodec_flush_buffers(d->p->ctx);
    ec_log_leave(outer);
    publish(d);
}

// send gives the packet to libavcodec. The buffer is counted, so libavcodec
// refers to it instead of copying; if it still does afterwards, the next packet
// gets another buffer.
static int send(ec_private *p, int64_t n, int64_t pts)
{
    if (n == 0)
        return avcodec_send_packet(p->ctx, NULL);
    memset(p->input->data + n, 0, AV_INPUT_BUFFER_PADDING_SIZE);
    p->pkt->buf = av_buffer_ref(p->input);
    if (!p->pkt->buf)
        return AVERROR(ENOMEM);
    p->pkt->data = p->input->data;
    p->pkt->size = (int)n;
    p->pkt->pts = p->pkt->dts = pts;
    int err = avcodec_send_packet(p->ctx, p->pkt);
    av_packet_unref(p->pkt);
    if (av_buffer_get_ref_count(p->input) > 1) {
        int fresh = new_input(p, (int64_t)p->input->size - AV_INPUT_BUFFER_PADDING_SIZE);
        err = err < 0 ? err : fresh;
    }
    return err;
}

static int is_key(const AVFrame *f)
{
#ifdef AV_FRAME_FLAG_KEY
    return !!(f->flags & AV_FRAME_FLAG_KEY);
#else
    return f->key_frame;
#endif
}

static int is_full(const AVFrame *f, int format)
{
    return f->color_range == AVCOL_RANGE_JPEG || format == EC_YUVJ420P || format == EC_YUVJ422P ||
           format == EC_YUVJ444P;
}

static int describe(ec_decoder *d)
{
    const AVFrame *f = d->p->frame;
    ec_picture *o = &d->picture;

    memset(o, 0, sizeof *o);
    if (f->format == AV_PIX_FMT_CUDA) {
        if (!ec_cuda_describe(f, o))
            return AVERROR_INVALIDDATA;
    } else {
        int64_t copied = 0;
        int err = d->p->copies ? ec_ring_copy(d, &copied) : 0;
        if (err < 0)
            return err;
        if (!ec_ring_describe(f, o)) {
            d->foreign++;
            return AVERROR_BUG;
        }
        o->copied = copied;
    }
    o->full_range = is_full(f, o->format);
    o->matrix = f->colorspace;
    o->key = is_key(f);
    o->intra = f->pict_type == AV_PICTURE_TYPE_I;
    o->corrupt = !!(f->flags & AV_FRAME_FLAG_CORRUPT);
    o->error_flags = f->decode_error_flags;
    o->pts = f->pts;
    return 1;
}

static int receive(ec_decoder *d)
{
    av_frame_unref(d->p->frame);
    int err = avcodec_receive_frame(d->p->ctx, d->p->frame);
    if (err == AVERROR(EAGAIN) || err == AVERROR_EOF)
        return 0;
    return err < 0 ? err : describe(d);
}

// watch begins to look for what the GPU's driver says, watched keeps the first error.
// libavcodec has but one code for all of it, and H.264's decoder not even that.
static void watch(ec_decoder *d)
{
    if (d->p->device)
        ec_log_watch(&d->p->log);
}

static void watched(ec_decoder *d)
{
    if (d->p->device && !d->failed[0])
        ec_log_watched(&d->p->log, d->failed, sizeof d->failed);
}

int ec_decoder_decode(ec_decoder *d, int64_t n, int64_t pts)
{
    ec_log *outer = enter(d->p);
    av_frame_unref(d->p->frame);
    d->format_name[0] = 0;
    d->refused[0] = 0;
    d->failed[0] = 0;
    watch(d);
    d->send_error = send(d->p, n, pts);
    int got = receive(d);
    watched(d);
    ec_log_leave(outer);
    publish(d);
    return got;
}

int ec_decoder_receive(ec_decoder *d)
{
    ec_log *outer = enter(d->p);
    watch(d);
    int got = receive(d);
    watched(d);
    ec_log_leave(outer);
    publish(d);
    return got;
}

ec_log *ec_decoder_log(void *opaque) { return opaque ? &((ec_decoder *)opaque)->p->log : NULL; }

int ec_decoder_take_line(ec_decoder *d, ec_line *out) { return ec_log_take(&d->p->log, out); }

int ec_codec_next(void **state, ec_codec *out)
{
    const AVCodec *c;
    while ((c = av_codec_iterate(state))) {
        if (!av_codec_is_decoder(c) || !codec_word(c->id)[0])
            continue;
        out->name = c->name;
        out->long_name = c->long_name ? c->long_name : "";
        out->codec = codec_word(c->id);
        out->hardware = !!(c->capabilities & (AV_CODEC_CAP_HARDWARE | AV_CODEC_CAP_HYBRID));
        out->direct = !!(c->capabilities & AV_CODEC_CAP_DR1);
        return 1;
    }
    return 0;
}
