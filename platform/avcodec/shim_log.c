#include "shim_log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavutil/avutil.h>
#include <libavutil/log.h>

// libavutil has one log callback for the process and no user pointer, so the
// threshold and the way to the current decoder must be globals.
static _Atomic int threshold = AV_LOG_WARNING;
static _Thread_local ec_log *current;

ec_log *ec_log_enter(ec_log *l)
{
    ec_log *outer = current;
    current = l;
    return outer;
}

void ec_log_leave(ec_log *outer) { current = outer; }

void ec_log_init(ec_log *l)
{
    memset(l, 0, sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
}

void ec_log_destroy(ec_log *l) { pthread_mutex_destroy(&l->lock); }

int ec_log_pending(ec_log *l)
{
    pthread_mutex_lock(&l->lock);
    int n = l->count;
    pthread_mutex_unlock(&l->lock);
    return n;
}

int ec_log_dry(ec_log *l)
{
    pthread_mutex_lock(&l->lock);
    int n = l->dry;
    pthread_mutex_unlock(&l->lock);
    return n;
}

int ec_log_nonsense(ec_log *l)
{
    pthread_mutex_lock(&l->lock);
    int n = l->nonsense;
    pthread_mutex_unlock(&l->lock);
    return n;
}

int ec_log_take(ec_log *l, ec_line *out)
{
    pthread_mutex_lock(&l->lock);
    int n = l->count;
    if (n > 0) {
        *out = l->lines[l->first];
        l->first = (l->first + 1) % EC_LOG_LINES;
        l->count--;
    }
    pthread_mutex_unlock(&l->lock);
    return n > 0;
}

void ec_log_watch(ec_log *l)
{
    pthread_mutex_lock(&l->lock);
    l->watching = 1;
    l->watched[0] = 0;
    pthread_mutex_unlock(&l->lock);
}

void ec_log_watched(ec_log *l, char *out, size_t n)
{
    pthread_mutex_lock(&l->lock);
    snprintf(out, n, "%s", l->watched);
    l->watching = 0;
    pthread_mutex_unlock(&l->lock);
}

static void append(char *to, size_t n, const char *text)
{
    size_t have = strlen(to);
    snprintf(to + have, n - have, "%s", text);
}

// watch notes the first error, and what a line that continues it adds.
static void watch(ec_log *l, int level, const char *text, int continues)
{
    if (!l->watching || level > AV_LOG_ERROR)
        return;
    if (!l->watched[0] || (continues && l->watching == 1))
        append(l->watched, sizeof l->watched, text);
    else
        l->watching = 2; // another line: what continues that one is not ours
}

static void put(ec_log *l, int level, const char *text)
{
    // CUDA's errors come in pieces: "call failed", " -> name: text", "\n".
    int continues = !strncmp(text, " -> ", 4);

    pthread_mutex_lock(&l->lock);
    watch(l, level, text, continues);
    // The code that nvdec.c returns does not come through the H.264 decoder.
    l->dry += !strcmp(text, "No decoder surfaces left");
    // H.265's decoder goes on with 0 in place of a number that cannot be.
    l->nonsense += !strncmp(text, "CABAC_MAX_BIN", 13);
    ec_line *last = &l->lines[(l->first + l->count + EC_LOG_LINES - 1) % EC_LOG_LINES];
    if (continues && l->count > 0 && l->count < EC_LOG_LINES) {
        append(last->text, sizeof last->text, text);
    } else if (l->count == EC_LOG_LINES || (l->count > 0 && !strcmp(last->text, text))) {
        last->repeated++;
    } else {
        ec_line *n = &l->lines[(l->first + l->count) % EC_LOG_LINES];
        n->level = level;
        n->repeated = 0;
        snprintf(n->text, sizeof n->text, "%s", text);
        l->count++;
    }
    pthread_mutex_unlock(&l->lock);
}

// log_for finds the decoder that a line is about: the one that the thread
// works for, or, on libavcodec's own threads, the one whose context speaks.
static ec_log *log_for(void *avcl)
{
    if (current)
        return current;
    if (avcl && *(const AVClass **)avcl == avcodec_get_class())
        return ec_decoder_log(((AVCodecContext *)avcl)->opaque);
    return NULL;
}

// callback runs on any thread, also inside libavcodec's locks: it formats,
// stores and returns.
static void callback(void *avcl, int level, const char *fmt, va_list args)
{
    char text[sizeof((ec_line *)0)->text];
    int prefix = 0;

    level &= 0xff;
    if (level > atomic_load_explicit(&threshold, memory_order_relaxed))
        return;
    ec_log *l = log_for(avcl);
    if (!l)
        return;
    av_log_format_line2(NULL, level, fmt, args, text, sizeof text, &prefix);
    text[strcspn(text, "\r\n")] = 0;
    if (text[0])
        put(l, level, text);
}

void ec_log_install(int level)
{
    atomic_store(&threshold, level);
    av_log_set_callback(callback);
}

void ec_strerror(int err, char *buf, int64_t n) { av_strerror(err, buf, (size_t)n); }

void ec_versions(unsigned *codec_built, unsigned *codec, unsigned *util_built, unsigned *util)
{
    *codec_built = LIBAVCODEC_VERSION_INT;
    *codec = avcodec_version();
    *util_built = LIBAVUTIL_VERSION_INT;
    *util = avutil_version();
}

const char *ec_configuration(void) { return avcodec_configuration(); }

const char *ec_license(void) { return avcodec_license(); }
