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
    EC_NV12,
    EC_P010,
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

// A picture lies in a slot of a ring, or, if device is set, in GPU memory at the
// addresses in plane.
typedef struct ec_picture {
    uint64_t ring;
    int slot;
    uint32_t gen;
    int readers; // slots of the ring, or surfaces of the pool, that somebody besides libavcodec holds
    int device;
    uintptr_t plane[3]; // device address of the first visible sample
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
    int missing;     // coded squares that were never decoded
    int64_t pts;
    int64_t copied; // bytes that were copied from the decoder's own memory into the slot
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
    int nonsense;           // lines that say that coded values make no sense, which is no error to libavcodec
    int block;              // side of the squares that the stream is coded in, 0 = not known: set by the caller
    int send_error;         // what avcodec_send_packet said of the last packet, 0 = taken
    char format_name[32];   // the pixel format that was refused, "" = none
    char refused[240];      // why the hardware does not take the stream, "" = it does
    char failed[240];       // the first error logged since ec_decoder_decode, of hardware alone
    ec_private *p;
} ec_decoder;

typedef struct ec_decoder_options {
    const char *name;
    const uint8_t *extradata;
    int extradata_size;
    int threads;
    uintptr_t handle;        // passed back to edgecamAllocate and edgecamSurfaces
    struct ec_device *device; // decode there; NULL = software
    int copies;              // copy pictures even where the decoder can write into slots
} ec_decoder_options;

enum { EC_OPEN_UNKNOWN = 1, EC_OPEN_CODEC, EC_OPEN_HARDWARE };

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

// Supplied by Go: how many surfaces the GPU shall have for pictures of this
// format and coded size, of which libavcodec itself thinks it needs hold.
// 0 or negative: refused.
extern int edgecamSurfaces(uintptr_t handle, int format, int width, int height, int hold);

// A GPU for decoding. See shim_cuda.c.
typedef struct ec_device ec_device;

enum { EC_DEVICE_BUILD = 1, EC_DEVICE_DRIVER, EC_DEVICE_NVCUVID, EC_DEVICE_CALL, EC_DEVICE_ORDINAL };

// ec_device_open: 0, or an EC_DEVICE code with more words in why. In case of
// EC_DEVICE_ORDINAL *count is the number of GPUs that there are.
int ec_device_open(ec_device **out, int ordinal, int *count, char *why, int64_t n);
void *ec_device_ref(const ec_device *dev); // its AVBufferRef
uintptr_t ec_device_stream(const ec_device *dev);
// ec_device_close gives the caller's reference back. Decoders and pictures
// have their own.
void ec_device_close(ec_device *dev);

// ec_surface is a picture in device memory that outlives the decoder.
typedef struct ec_surface ec_surface;

// ec_decoder_keep takes the last picture from the decoder, NULL = no memory.
ec_surface *ec_decoder_keep(ec_decoder *d);
// ec_surface_release gives the surface back to the GPU's decoder. Any thread.
void ec_surface_release(ec_surface *s);

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
// Has the C library give pieces of memory from so many bytes on back to the system when they are freed.
void ec_heap_install(int64_t least);
void ec_strerror(int err, char *buf, int64_t n);
// ec_versions: of the headers that this was built with and of the libraries
// that are loaded.
void ec_versions(unsigned *codec_built, unsigned *codec, unsigned *util_built, unsigned *util);
const char *ec_configuration(void);
const char *ec_license(void);

#endif
