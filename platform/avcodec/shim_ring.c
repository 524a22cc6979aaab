// Rings: slots in memory that somebody else owns, lent to libavcodec.

#include "shim_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libavutil/buffer.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>

// Rows start at multiples of a cache line (the pool's promise to its readers),
// which is also the widest vector that libavcodec uses (AVX-512).
#define ROW_ALIGN 64
// libavcodec's own buffers carry 16 + the vector size behind every plane for
// loads that run past the last row.
#define PLANE_SLACK 128

typedef struct slot {
    ring *ring;
    uint32_t gen;
    int index;
    ec_marks marks; // in the picture that it holds
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

static _Atomic uint64_t *word(const ring *r, int i)
{
    return (_Atomic uint64_t *)(r->desc.words + (uintptr_t)i * (uintptr_t)r->desc.word_stride);
}

void ec_ring_unref(ring *r)
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
    ec_ring_unref(r);
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

int ec_format_of(int av)
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
    case AV_PIX_FMT_NV12: return EC_NV12;
    case AV_PIX_FMT_P010LE: return EC_P010;
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
    q->format = ec_format_of(f->format);
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

    ec_ring_unref(p->ring);
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

static void refuse_format(ec_decoder *d, const AVFrame *f)
{
    const char *name = av_get_pix_fmt_name(f->format);
    pthread_mutex_lock(&d->p->lock);
    strncpy(d->format_name, name ? name : "unknown", sizeof d->format_name - 1);
    pthread_mutex_unlock(&d->p->lock);
}

// mark puts marks into the slot, where the caller says what the stream's squares
// are: 8 bytes of at least 16 by 16 samples, so that the picture costs no more.
static void mark(const ec_decoder *d, slot *s, const AVFrame *f, const ec_request *q, uint8_t *base)
{
    const AVPixFmtDescriptor *desc = av_pix_fmt_desc_get(f->format);

    s->marks.block = d->p->copies || d->block < 16 ? 0 : d->block;
    if (!s->marks.block || f->width < 8)
        return;
    s->marks.width = f->width;
    s->marks.height = f->height;
    s->marks.stride = q->stride[0];
    s->marks.sample_bytes = desc && desc->comp[0].depth > 8 ? 2 : 1;
    s->marks.pattern = UINT64_C(0x0ff101fe03fc55a9) ^ (uint64_t)s->gen << 24;
    ec_marks_put(&s->marks, base + q->offset[0]);
}

// put_in_slot makes a slot the memory of f.
static int put_in_slot(ec_decoder *d, AVCodecContext *c, AVFrame *f)
{
    ec_request q;
    slot *s = NULL;

    int err = lay_out(c, f, &q);
    if (err == AVERROR(ENOSYS))
        refuse_format(d, f);
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
    mark(d, s, f, &q, base);
    // The way back from a picture to its slot; libavcodec carries it along.
    f->opaque = s;
    return 0;
}

int ec_get_buffer(AVCodecContext *c, AVFrame *f, int flags)
{
    if (f->format == AV_PIX_FMT_CUDA)
        return avcodec_default_get_buffer2(c, f, flags);
    return put_in_slot(c->opaque, c, f);
}

static int64_t visible_bytes(const AVFrame *f)
{
    int n = av_image_get_buffer_size(f->format, f->width, f->height, 1);
    return n > 0 ? n : 0;
}

int ec_ring_copy(ec_decoder *d, int64_t *copied)
{
    ec_private *p = d->p;
    AVFrame *from = p->frame, *to = p->copy;

    av_frame_unref(to);
    int err = av_frame_copy_props(to, from);
    if (err < 0)
        return err;
    to->format = from->format;
    to->width = from->width;
    to->height = from->height;
    if ((err = put_in_slot(d, p->ctx, to)) < 0)
        return err;
    av_image_copy(to->data, to->linesize, (const uint8_t **)from->data, from->linesize, from->format,
                  from->width, from->height);
    *copied = visible_bytes(from);
    av_frame_unref(from); // also gives the decoder's buffer back to it
    av_frame_move_ref(from, to);
    return 0;
}

bool ec_ring_describe(const AVFrame *f, ec_picture *o)
{
    const slot *s = f->opaque;

    if (!s || !f->buf[0] || av_buffer_get_opaque(f->buf[0]) != s)
        return false;
    const ring *r = s->ring;
    const uint8_t *base = (const uint8_t *)r->desc.base + (size_t)s->index * (size_t)r->desc.slot_stride;
    o->ring = r->desc.id;
    o->slot = s->index;
    o->gen = s->gen;
    o->readers = ring_readers(r);
    o->missing = ec_marks_left(&s->marks, base + r->geometry.offset[0]);
    o->format = ec_format_of(f->format);
    o->width = f->width;
    o->height = f->height;
    for (int i = 0; i < 3 && f->data[i]; i++) {
        o->offset[i] = f->data[i] - base;
        o->stride[i] = f->linesize[i];
    }
    return true;
}
