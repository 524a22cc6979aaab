// FFmpeg's log, sorted by decoder. Private to the shim.

#ifndef EDGECAM_AVCODEC_SHIM_LOG_H
#define EDGECAM_AVCODEC_SHIM_LOG_H

#include "shim.h"

#include <pthread.h>

#define EC_LOG_LINES 16

// The last lines about one decoder, until Go takes them. A full ring counts
// what it turns away in the last line's repeated.
typedef struct ec_log {
    pthread_mutex_t lock;
    ec_line lines[EC_LOG_LINES];
    int first, count;
    int nonsense; // lines that say that coded values make no sense
    int dry; // lines that say that the GPU's decoder had no free surface
    int watching;
    char watched[sizeof((ec_line *)0)->text]; // the first error since ec_log_watch
} ec_log;

void ec_log_init(ec_log *l);
void ec_log_destroy(ec_log *l);
int ec_log_pending(ec_log *l);
int ec_log_dry(ec_log *l);
int ec_log_nonsense(ec_log *l);
int ec_log_take(ec_log *l, ec_line *out);

// ec_log_watch starts to look for an error. ec_log_watched gives the first one
// since then, "" for none, and ends the looking.
void ec_log_watch(ec_log *l);
void ec_log_watched(ec_log *l, char *out, size_t n);

// ec_decoder_log finds the log of a decoder by its AVCodecContext's opaque.
ec_log *ec_decoder_log(void *opaque);

// ec_log_enter makes l the place for lines of the calling thread until
// ec_log_leave puts back what was there before.
ec_log *ec_log_enter(ec_log *l);
void ec_log_leave(ec_log *outer);

#endif
