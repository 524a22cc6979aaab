#include "shim.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavutil/buffer.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>

#include "shim_log.h"

// Rows start at multiples of a cache line (the pool's promise to its readers),
// which is also the widest vector that libavcodec uses (AVX-512).
#define ROW_ALIGN 64
// libavcodec's own buffers carry 16 + the vector size behind every plane for
// loads that run past the last row.
#define PLANE_SLACK 128

typedef struct ring ring;

typedef struct slot {
    ring *ring;
    uint32_t gen;
    int index;
    _Atomic int held; // a libavcodec buffer refers to the slot
} slot;

// A ring outlives the decoder by as long as libavcodec buffers refer to it:
// one reference for the decoder, one for every buffer.
struct ring {
    _Atomic int refs;
    ec_ring_desc desc;
    ec_request geometry;
    int cursor;
    slot slots[];
};

struct ec_private {
    AVCodecContext *ctx;
    AVPacket *pkt;
    AVBufferRef *input;
    AVFrame *frame;
    const AVCodec *codec;
    int threads, strict;
    uintptr_t handle;
    pthread_mutex_t lock; // guards ring and format_name: libavcodec's frame threads call get_buffer2 too
    ring *ring;
    _Atomic int64_t exhausted;
    ec_log log;
};

static _Atomic uint64_t *word(const ring *r, int i)
{
    return (_Atomic uint64_t *)(r->desc.words + (uintptr_t)i * (uintptr_t)r->desc.word_stride);
}

static void ring_unref(ring *r)
{
    if (r && atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1)
        free(r);
}

// slot_free is what libavcodec calls when its last reference to a slot ends,
// on whichever thread that happens. The subtraction is the last touch of the
// word: after it the region may be unmapped.
static void slot_free(void *opaque, uint8_t *data)
{
    slot *s = opaque;
    ring *r = s->ring;
    (void)data;
    atomic_store_explicit(&s->held, 0, memory_order_relaxed);
    atomic_fetch_sub_explicit(word(r, s->index), 1, memory_order_release);
    ring_unref(r);
}

// slot_acquire takes a free slot, (gen, 0) to (gen+1, 1), or returns NULL.
// Slots are taken in turn, so that one that was just given back stays cold as
// long as possible and a stale generation shows.
static slot *slot_acquire(ring *r)
{
    for (int k = 0; k < r->desc.slots; k++) {
        int i = (r->cursor + k) % r->desc.slots;
        _Atomic uint64_t *w = word(r, i);
        uint64_t old = atomic_load_explicit(w, memory_order_relaxed);
        while ((uint32_t)old == 0) {
            uint32_t gen = (uint32_t)(old >> 32) + 1;
            if (!atomic_compare_exchange_weak_explicit(w, &old, (uint64_t)gen << 32 | 1,
                                                       memory_order_acquire, memory_order_relaxed))
                continue;
            r->cursor = (i + 1) % r->desc.slots;
            slot *s = &r->slots[i];
            s->gen = gen;
            atomic_store_explicit(&s->held, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
            return s;
        }
    }
    return NULL;
}

// ring_readers counts the slots that others refer to. A closed ring's owner
// marks free slots with references of 2^31 and more: nobody reads those.
static int ring_readers(const ring *r)
{
    int n = 0;
    for (int i = 0; i < r->desc.slots; i++) {
        uint32_t refs = (uint32_t)atomic_load_explicit(word(r, i), memory_order_relaxed);
        uint32_t held = (uint32_t)atomic_load_explicit(&r->slots[i].held, memory_order_relaxed);
        n += refs > held && refs < UINT32_C(1) << 31;
    }
    return n;
}

static int format_of(int av)
{
    switch (av) {
    case AV_PIX_FMT_YUV420P: return EC_YUV420P;
    case AV_PIX_FMT_YUVJ420P: return EC_YUVJ420P;
    case AV_PIX_FMT_YUV422P: return EC_YUV422P;
    case AV_PIX_FMT_YUVJ422P: return EC_YUVJ422P;
    case AV_PIX_FMT_YUV444P: return EC_YUV444P;
    case AV_PIX_FMT_YUVJ444P: return EC_YUVJ444P;
    case AV_PIX_FMT_GRAY8: return EC_GRAY;
    case AV_PIX_FMT_YUV420P10LE: return EC_YUV420P10;
    case AV_PIX_FMT_YUV422P10LE: return EC_YUV422P10;
    case AV_PIX_FMT_YUV444P10LE: return EC_YUV444P10;
    case AV_PIX_FMT_GRAY10LE: return EC_GRAY10;
    default: return EC_FORMAT_NONE;
    }
}

// same_layout: the J formats differ from the others in range only.
static bool same_layout(int a, int b)
{
    if (a == EC_YUVJ420P || a == EC_YUVJ422P || a == EC_YUVJ444P) a--;
    if (b == EC_YUVJ420P || b == EC_YUVJ422P || b == EC_YUVJ444P) b--;
    return a == b;
}

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// lay_out fills in what libavcodec needs for pictures like f: dimensions as
// avcodec_align_dimensions2 wants them, rows at cache lines, slack behind every
// plane.
static int lay_out(AVCodecContext *c, const AVFrame *f, ec_request *q)
{
    int w = f->width, h = f->height, align[AV_NUM_DATA_POINTERS] = {0}, line[4];
    const AVPixFmtDescriptor *desc = av_pix_fmt_desc_get(f->format);

    memset(q, 0, sizeof *q);
    q->format = format_of(f->format);
    if (!desc || q->format == EC_FORMAT_NONE)
        return AVERROR(ENOSYS);
    avcodec_align_dimensions2(c, &w, &h, align);
    int err = av_image_check_size2(w, h, INT64_MAX, f->format, 0, NULL);
    if (err < 0 || (err = av_image_fill_linesizes(line, f->format, w)) < 0)
        return err;
    q->width = w;
    q->height = h;
    for (int i = 0; i < 3 && i < av_pix_fmt_count_planes(f->format); i++) {
        int rows = i ? AV_CEIL_RSHIFT(h, desc->log2_chroma_h) : h;
        q->offset[i] = q->size;
        q->stride[i] = round_up(round_up(line[i], ROW_ALIGN), align[i] > 0 ? align[i] : 1);
        q->size += round_up(q->stride[i] * rows + PLANE_SLACK, ROW_ALIGN);
    }
    return 0;
}

static bool same_geometry(const ec_request *a, const ec_request *b)
{
    return same_layout(a->format, b->format) && a->width == b->width && a->height == b->height &&
           !memcmp(a->stride, b->stride, sizeof a->stride) && a->size == b->size;
}

// ring_change asks Go for a ring of another geometry. The old ring is let go
// first: whatever the answer, no slot of it is taken again.
static int ring_change(ec_private *p, ec_request *q)
{
    ec_ring_desc desc = {0};

    ring_unref(p->ring);
    p->ring = NULL;
    int err = edgecamAllocate(p->handle, q, &desc);
    if (err < 0)
        return AVERROR_EXTERNAL;
    if (desc.slots <= 0 || desc.slot_stride < q->size || !desc.base || !desc.words)
        return AVERROR_BUG;
    ring *r = calloc(1, sizeof *r + (size_t)desc.slots * sizeof r->slots[0]);
    if (!r)
        return AVERROR(ENOMEM);
    atomic_init(&r->refs, 1);
    r->desc = desc;
    r->geometry = *q;
    for (int i = 0; i < desc.slots; i++) {
        r->slots[i].ring = r;
        r->slots[i].index = i;
    }
    p->ring = r;
    return 0;
}

static int take_slot(ec_decoder *d, ec_request *q, slot **out)
{
    ec_private *p = d->p;
    int err = 0;

    pthread_mutex_lock(&p->lock);
    if (!p->ring || !same_geometry(&p->ring->geometry, q))
        err = ring_change(p, q);
    if (!err && !(*out = slot_acquire(p->ring))) {
        atomic_fetch_add(&p->exhausted, 1);
        err = AVERROR(ENOMEM);
    }
    pthread_mutex_unlock(&p->lock);
    return err;
}

// get_buffer is libavcodec's get_buffer2: the picture's planes become a slot.
static int get_buffer(AVCodecContext *c, AVFrame *f, int flags)
{
    ec_decoder *d = c->opaque;
    ec_request q;
    slot *s = NULL;
    (void)flags;

    int err = lay_out(c, f, &q);
    if (err == AVERROR(ENOSYS)) {
        const char *name = av_get_pix_fmt_name(f->format);
        pthread_mutex_lock(&d->p->lock);
        strncpy(d->format_name, name ? name : "unknown", sizeof d->format_name - 1);
        pthread_mutex_unlock(&d->p->lock);
    }
    if (err < 0 || (err = take_slot(d, &q, &s)) < 0)
        return err;
    uint8_t *base = (uint8_t *)s->ring->desc.base + (size_t)s->index * (size_t)s->ring->desc.slot_stride;
    f->buf[0] = av_buffer_create(base, q.size, slot_free, s, 0);
    if (!f->buf[0]) {
        slot_free(s, base);
        return AVERROR(ENOMEM);
    }
    for (int i = 0; i < 3 && q.stride[i]; i++) {
        f->data[i] = base + q.offset[i];
        f->linesize[i] = (int)q.stride[i];
    }
    f->extended_data = f->data;
    // The way back from a picture to its slot; libavcodec carries it along.
    f->opaque = s;
    return 0;
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
    d->exhausted = atomic_load(&d->p->exhausted);
    d->lines = ec_log_pending(&d->p->log);
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
    c->get_buffer2 = get_buffer;
    // Crop to the sample, even where the first one is then not aligned.
    c->flags |= AV_CODEC_FLAG_UNALIGNED;
    // Hand damaged pictures on, flagged, instead of dropping them unseen: the
    // caller counts and drops them.
    c->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
    // Frame threads would hold one picture a thread back; slices do not.
    c->thread_type = FF_THREAD_SLICE;
    c->thread_count = d->p->threads > 0 ? d->p->threads : 1;
    c->pkt_timebase = (AVRational){1, 1000000};
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
    p->pkt = av_packet_alloc();
    p->frame = av_frame_alloc();
    if (!p->pkt || !p->frame)
        return AVERROR(ENOMEM);
    int err = new_input(p, 64 << 10);
    if (err < 0)
        return err;
    ec_log *outer = ec_log_enter(&p->log);
    err = open_context(d, o->extradata, o->extradata_size);
    ec_log_leave(outer);
    publish(d);
    return err;
}

int ec_decoder_reopen(ec_decoder *d, const uint8_t *extradata, int size)
{
    ec_log *outer = ec_log_enter(&d->p->log);
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
    if (!(codec->capabilities & AV_CODEC_CAP_DR1))
        return EC_OPEN_DIRECT;
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
    ec_log *outer = ec_log_enter(&p->log);
    av_frame_free(&p->frame);
    av_packet_free(&p->pkt);
    avcodec_free_context(&p->ctx);
    av_buffer_unref(&p->input);
    ec_log_leave(outer);
    ring_unref(p->ring);
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
    ec_log *outer = ec_log_enter(&d->p->log);
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
    const slot *s = f->opaque;

    memset(o, 0, sizeof *o);
    if (!s || !f->buf[0] || av_buffer_get_opaque(f->buf[0]) != s) {
        d->foreign++;
        return AVERROR_BUG;
    }
    const ring *r = s->ring;
    const uint8_t *base = (const uint8_t *)r->desc.base + (size_t)s->index * (size_t)r->desc.slot_stride;
    o->ring = r->desc.id;
    o->slot = s->index;
    o->gen = s->gen;
    o->readers = ring_readers(r);
    o->format = format_of(f->format);
    o->width = f->width;
    o->height = f->height;
    for (int i = 0; i < 3 && f->data[i]; i++) {
        o->offset[i] = f->data[i] - base;
        o->stride[i] = f->linesize[i];
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

int ec_decoder_decode(ec_decoder *d, int64_t n, int64_t pts)
{
    ec_log *outer = ec_log_enter(&d->p->log);
    av_frame_unref(d->p->frame);
    d->format_name[0] = 0;
    d->send_error = send(d->p, n, pts);
    int got = receive(d);
    ec_log_leave(outer);
    publish(d);
    return got;
}

int ec_decoder_receive(ec_decoder *d)
{
    ec_log *outer = ec_log_enter(&d->p->log);
    int got = receive(d);
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
