// What the files of the shim share. Private to the shim.

#ifndef EDGECAM_AVCODEC_SHIM_PRIVATE_H
#define EDGECAM_AVCODEC_SHIM_PRIVATE_H

#include "shim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <libavcodec/avcodec.h>

#include "shim_log.h"

typedef struct ring ring;

// ec_marks say where in a plane the marks of one picture are. See shim_marks.c.
typedef struct ec_marks {
    int block; // side of the coded squares, 0 = no marks
    int width, height, sample_bytes;
    int64_t stride;
    uint64_t pattern;
} ec_marks;

struct ec_private {
    AVCodecContext *ctx;
    AVPacket *pkt;
    AVBufferRef *input;
    AVFrame *frame;
    AVFrame *copy; // scratch of ec_ring_copy
    const AVCodec *codec;
    int threads, strict;
    bool copies; // the decoder writes into memory of its own, and pictures are copied
    uintptr_t handle;
    AVBufferRef *device; // AVHWDeviceContext, NULL = software
    enum AVPixelFormat tried; // the stream's format at the last try to set the GPU up
    pthread_mutex_t lock; // guards ring and format_name: libavcodec's frame threads call get_buffer2 too
    ring *ring;
    _Atomic int64_t exhausted;
    ec_log log;
};

// ec_format_of maps an AVPixelFormat to ours, EC_FORMAT_NONE for the others.
int ec_format_of(int av);

// ec_get_buffer is libavcodec's get_buffer2: the picture's planes become a slot.
int ec_get_buffer(AVCodecContext *c, AVFrame *f, int flags);
// ec_ring_copy moves the picture in p->frame into a slot, and counts the bytes.
int ec_ring_copy(ec_decoder *d, int64_t *copied);
// ec_ring_describe says where in its ring the picture f lies; false = it does not.
bool ec_ring_describe(const AVFrame *f, ec_picture *o);
void ec_ring_unref(ring *r);

void ec_marks_put(const ec_marks *m, uint8_t *luma);
// ec_marks_left counts the squares that nobody wrote into.
int ec_marks_left(const ec_marks *m, const uint8_t *luma);

// ec_cuda_thread comes before the driver is called on a thread: it is then refused
// nothing because of others. While a library captures a CUDA graph in the usual mode,
// on whatever card, calls of other threads fail else.
void ec_cuda_thread(void);
// ec_cuda_configure makes c decode on p->device.
void ec_cuda_configure(ec_decoder *d, AVCodecContext *c);
// ec_cuda_offers says whether the decoder has an accelerator for it.
bool ec_cuda_offers(const AVCodec *codec);
// ec_cuda_describe says where in device memory the picture f lies; false = it was
// never decoded.
bool ec_cuda_describe(const AVFrame *f, ec_picture *o);

#endif
