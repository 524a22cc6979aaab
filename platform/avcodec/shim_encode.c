#include "shim.h"

#include <errno.h>
#include <stdlib.h>

#include <libavcodec/avcodec.h>
#include <libavutil/imgutils.h>

#include "shim_log.h"

static void configure(AVCodecContext *c, int width, int height, int qscale)
{
    c->width = width;
    c->height = height;
    c->time_base = (AVRational){1, 25};
    c->pix_fmt = AV_PIX_FMT_YUVJ420P;
    c->color_range = AVCOL_RANGE_JPEG;
    c->colorspace = AVCOL_SPC_BT470BG; // JFIF is BT.601
    c->sample_aspect_ratio = (AVRational){1, 1}; // without one the encoder writes no JFIF header
    c->flags |= AV_CODEC_FLAG_QSCALE;
    c->flags |= AV_CODEC_FLAG_BITEXACT; // no "Lavc…" comment in every picture
    c->global_quality = qscale * FF_QP2LAMBDA;
    c->qmin = 1;
    c->thread_count = 1;
}

static int open_encoder(ec_encoder *e, const AVCodec *codec, int width, int height, int qscale)
{
    AVDictionary *opts = NULL;

    e->ctx = avcodec_alloc_context3(codec);
    e->frame = av_frame_alloc();
    e->pkt = av_packet_alloc();
    if (!e->ctx || !e->frame || !e->pkt)
        return AVERROR(ENOMEM);
    configure(e->ctx, width, height, qscale);
    // A pass of its own for optimal Huffman tables costs more time than the few
    // per cent of bytes are worth to a live view.
    av_dict_set(&opts, "huffman", "default", 0);
    int err = avcodec_open2(e->ctx, codec, &opts);
    av_dict_free(&opts);
    if (err < 0)
        return err;
    e->frame->format = AV_PIX_FMT_YUVJ420P;
    e->frame->width = width;
    e->frame->height = height;
    e->frame->color_range = AVCOL_RANGE_JPEG;
    return av_frame_get_buffer(e->frame, 0);
}

int ec_encoder_open(ec_encoder **out, int width, int height, int qscale)
{
    const AVCodec *codec = avcodec_find_encoder(AV_CODEC_ID_MJPEG);
    if (!codec)
        return AVERROR_ENCODER_NOT_FOUND;
    ec_encoder *e = calloc(1, sizeof *e);
    if (!e)
        return AVERROR(ENOMEM);
    int err = open_encoder(e, codec, width, height, qscale);
    if (err < 0) {
        ec_encoder_close(e);
        return err;
    }
    *out = e;
    return 0;
}

void ec_encoder_close(ec_encoder *e)
{
    if (!e)
        return;
    av_packet_free(&e->pkt);
    av_frame_free(&e->frame);
    avcodec_free_context(&e->ctx);
    free(e);
}

// The picture is copied into a frame of our own: the planes are the caller's
// (Go memory), and libavcodec may keep a frame longer than the call.
int ec_encoder_encode(ec_encoder *e, const uint8_t *y, const uint8_t *cb, const uint8_t *cr,
                      int64_t y_stride, int64_t cb_stride, int64_t cr_stride, int qscale)
{
    const uint8_t *src[3] = {y, cb, cr};
    const int64_t stride[3] = {y_stride, cb_stride, cr_stride};
    AVFrame *f = e->frame;

    int err = av_frame_make_writable(f);
    if (err < 0)
        return err;
    for (int i = 0; i < 3; i++) {
        int w = i ? AV_CEIL_RSHIFT(f->width, 1) : f->width;
        int h = i ? AV_CEIL_RSHIFT(f->height, 1) : f->height;
        av_image_copy_plane(f->data[i], f->linesize[i], src[i], (int)stride[i], w, h);
    }
    f->pts = e->count++;
    f->quality = qscale * FF_QP2LAMBDA;
    av_packet_unref(e->pkt);
    err = avcodec_send_frame(e->ctx, f);
    if (err < 0 || (err = avcodec_receive_packet(e->ctx, e->pkt)) < 0)
        return err;
    e->data = e->pkt->data;
    e->size = e->pkt->size;
    return 0;
}
