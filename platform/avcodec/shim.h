// The C side of package avcodec: libavcodec decoding into slots of a ring that
// somebody else owns, and JPEG encoding. Plain C11, FFmpeg 4.4 to 7.

#ifndef EDGECAM_AVCODEC_SHIM_H
#define EDGECAM_AVCODEC_SHIM_H

#include <stdint.h>

// Pixel formats that the shim hands on. The order is that of the Go constants.
enum {
    EC_FORMAT_NONE,
    EC_YUV420P,
    EC_YUVJ420P,
    EC_YUV422P,
    EC_YUVJ422P,
    EC_YUV444P,
    EC_YUVJ444P,
    EC_GRAY,
    EC_YUV420P10,
    EC_YUV422P10,
    EC_YUV444P10,
    EC_GRAY10,
};

// What a slot must look like for the pictures to come. Bytes, but for width
// and height (samples of plane 0, as libavcodec aligns them).
typedef struct ec_request {
    int format;
    int width, height;
    int64_t offset[3];
    int64_t stride[3];
    int64_t size;
} ec_request;

// A ring of slots outside the Go heap. words: one 64-bit atomic a slot, low
// 32 bits references, high 32 bits generation.
typedef struct ec_ring_desc {
    uint64_t id;
    uintptr_t words;
    uintptr_t base;
    int64_t word_stride;
    int64_t slot_stride;
    int slots;
} ec_ring_desc;

typedef struct ec_picture {
    uint64_t ring;
    int slot;
    uint32_t gen;
    int readers; // slots of the ring that somebody besides libavcodec holds
    int format;
    int width, height; // visible
    int64_t offset[3]; // of the first visible sample
    int64_t stride[3];
    int full_range;
    int matrix;     // AVColorSpace
    int key;        // AV_FRAME_FLAG_KEY
    int intra;      // picture type I
    int corrupt;    // AV_FRAME_FLAG_CORRUPT
    int error_flags; // decode_error_flags
    int64_t pts;
} ec_picture;

typedef struct ec_line {
    int level;
    int repeated; // how often the same line came again right after
    char text[240];
} ec_line;

typedef struct ec_private ec_private;

// A decoder. The fields are written by the thread that calls the functions
// below and may be read between the calls.
typedef struct ec_decoder {
    ec_picture picture;     // the last picture received, valid until the next call
    uint8_t *buf;           // where the next packet goes
    int64_t cap;            // bytes usable at buf, without libavcodec's padding
    int64_t exhausted;      // pictures refused because no slot was free
    int64_t foreign;        // pictures that did not lie in a slot
    int lines;              // log lines waiting
    int send_error;         // what avcodec_send_packet said of the last packet, 0 = taken
    char format_name[32];   // the pixel format that was refused, "" = none
    ec_private *p;
} ec_decoder;

typedef struct ec_decoder_options {
    const char *name;
    const uint8_t *extradata;
    int extradata_size;
    int threads;
    uintptr_t handle; // passed back to edgecamAllocate
} ec_decoder_options;

enum { EC_OPEN_UNKNOWN = 1, EC_OPEN_CODEC, EC_OPEN_DIRECT };

// ec_decoder_open: 0, an EC_OPEN code, or a negative AVERROR. codec is the
// AVCodecID name that the decoder must serve, "" = any.
int ec_decoder_open(ec_decoder **out, const ec_decoder_options *o, const char *codec);
// ec_decoder_reserve makes room for n bytes at buf.
int ec_decoder_reserve(ec_decoder *d, int64_t n);
// ec_decoder_decode sends n bytes at buf and receives: 1 a picture, 0 none
// yet, negative AVERROR. n = 0 drains.
int ec_decoder_decode(ec_decoder *d, int64_t n, int64_t pts);
// ec_decoder_receive gives libavcodec's reference to the last picture back
// and receives the next one; results as above.
int ec_decoder_receive(ec_decoder *d);
void ec_decoder_flush(ec_decoder *d);
// ec_decoder_reopen starts libavcodec's decoder anew on the same ring. After
// an error only ec_decoder_close may follow.
int ec_decoder_reopen(ec_decoder *d, const uint8_t *extradata, int size);
void ec_decoder_strict(ec_decoder *d, int on);
int ec_decoder_take_line(ec_decoder *d, ec_line *out);
void ec_decoder_close(ec_decoder *d);

// Supplied by Go. 0 or negative: no ring.
extern int edgecamAllocate(uintptr_t handle, ec_request *req, ec_ring_desc *out);

typedef struct ec_encoder {
    const uint8_t *data; // the last file, valid until the next call
    int64_t size;
    struct AVCodecContext *ctx;
    struct AVFrame *frame;
    struct AVPacket *pkt;
    int64_t count;
} ec_encoder;

int ec_encoder_open(ec_encoder **out, int width, int height, int qscale);
int ec_encoder_encode(ec_encoder *e, const uint8_t *y, const uint8_t *cb, const uint8_t *cr,
                      int64_t y_stride, int64_t cb_stride, int64_t cr_stride, int qscale);
void ec_encoder_close(ec_encoder *e);

typedef struct ec_codec {
    const char *name, *long_name, *codec;
    int hardware, direct;
} ec_codec;

// ec_codec_next lists the video decoders for h264, hevc and mjpeg; *state
// starts at NULL, 0 ends the list.
int ec_codec_next(void **state, ec_codec *out);

void ec_log_install(int level);
void ec_strerror(int err, char *buf, int64_t n);
// ec_versions: of the headers that this was built with and of the libraries
// that are loaded.
void ec_versions(unsigned *codec_built, unsigned *codec, unsigned *util_built, unsigned *util);
const char *ec_configuration(void);
const char *ec_license(void);

#endif
