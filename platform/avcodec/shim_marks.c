// Marks in pictures that are about to be decoded, and the look for them after.
//
// FFmpeg's H.265 decoder conceals nothing and tells nothing: where a slice ends
// too early, because its bytes are wrong or the next slice is missing, the rest of
// the picture keeps what the memory held before. So each coded square gets a few
// samples of a pattern that no video has, before it is decoded. A square that
// still has them afterwards was never decoded.

#include "shim_private.h"

#include <string.h>

#define MARK_BYTES 8

// place is the offset of the mark within a side of n samples from at on: the
// middle, out of reach of the filters that work across edges.
static int place(int at, int side, int n, int bytes)
{
    int end = at + side < n ? at + side : n;
    int samples = MARK_BYTES / bytes;
    int middle = (at + end - samples) / 2;
    return middle < at ? at : middle;
}

static bool next_mark(const ec_marks *m, int *x, int *y, int64_t *offset)
{
    int bytes = m->sample_bytes;
    if (m->block <= 0 || *y >= m->height)
        return false;
    int row = place(*y, m->block, m->height, MARK_BYTES);
    int column = place(*x, m->block, m->width, bytes);
    *offset = row * m->stride + (int64_t)column * bytes;
    if ((*x += m->block) >= m->width) {
        *x = 0;
        *y += m->block;
    }
    return true;
}

void ec_marks_put(const ec_marks *m, uint8_t *luma)
{
    int64_t at;
    for (int x = 0, y = 0; next_mark(m, &x, &y, &at);)
        memcpy(luma + at, &m->pattern, MARK_BYTES);
}

int ec_marks_left(const ec_marks *m, const uint8_t *luma)
{
    int64_t at;
    int n = 0;
    for (int x = 0, y = 0; next_mark(m, &x, &y, &at);)
        n += !memcmp(luma + at, &m->pattern, MARK_BYTES);
    return n;
}
