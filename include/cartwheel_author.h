/* For authors of environments in C11 or C++20: errors, random numbers, infos and values of
   parameters, in a few inline functions over the tables of cartwheel.h.

   Nothing here is needed: a plugin may write the bytes itself. Numbers are written as the machine
   stores them, and the format is little-endian: other machines are refused below. */
#ifndef CARTWHEEL_AUTHOR_H
#define CARTWHEEL_AUTHOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cartwheel.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "cartwheel_author.h needs a little-endian machine, and gcc, clang or a compiler like them"
#endif

/* Defines the table of a library, for the host to find: `CARTWHEEL_PLUGIN = { … };`. */
#ifdef __cplusplus
#define CARTWHEEL_PLUGIN                                        \
    extern "C" __attribute__((visibility("default")))           \
    const struct cartwheel_plugin cartwheel_plugin
#else
#define CARTWHEEL_PLUGIN                       \
    __attribute__((visibility("default")))     \
    const struct cartwheel_plugin cartwheel_plugin
#endif

/* Appends `len` bytes to a sink. */
static inline void cartwheel_write(struct cartwheel_sink *sink, const void *bytes, size_t len) {
    if (sink->capacity - sink->len < len) sink->grow(sink, len);
    memcpy(sink->bytes + sink->len, bytes, len);
    sink->len += len;
}

/* Appends text that ends with a zero byte, without that byte. */
static inline void cartwheel_write_text(struct cartwheel_sink *sink, const char *text) {
    cartwheel_write(sink, text, strlen(text));
}

/* The next 64 bits of a random stream: those of NumPy's PCG64, after M. O'Neill, "PCG: A family of
   simple fast space-efficient statistically good algorithms for random number generation" (2014). */
static inline uint64_t cartwheel_random_bits(struct cartwheel_random_stream *stream) {
    __extension__ typedef unsigned __int128 wide;
    const wide multiplier = ((wide)2549297995355413924u << 64) | 4865540595714422341u;
    const wide increment = ((wide)stream->increment[1] << 64) | stream->increment[0];
    wide state = ((wide)stream->state[1] << 64) | stream->state[0];
    state = state * multiplier + increment;
    stream->state[0] = (uint64_t)state;
    stream->state[1] = (uint64_t)(state >> 64);
    const uint64_t folded = stream->state[0] ^ stream->state[1];
    const unsigned turn = (unsigned)(stream->state[1] >> 58);
    return (folded >> turn) | (folded << ((64 - turn) & 63));
}

/* A number of [0, 1), as `Generator.random()` of NumPy draws it. */
static inline double cartwheel_random(struct cartwheel_random_stream *stream) {
    return (double)(cartwheel_random_bits(stream) >> 11) * (1.0 / 9007199254740992.0);
}

/* Begins the info of row `row` of the batch; returns its place, for `cartwheel_info_end`. */
static inline size_t cartwheel_info_begin(const struct cartwheel_batch *batch, size_t row) {
    struct cartwheel_sink *sink = batch->infos;
    const size_t place = sink->len;
    const uint8_t kind = 0;
    const uint32_t number = batch->info_row + (uint32_t)row, bytes = 0;
    const uint16_t leaf = 0;
    cartwheel_write(sink, &kind, 1);
    cartwheel_write(sink, &number, 4);
    cartwheel_write(sink, &leaf, 2);
    cartwheel_write(sink, &bytes, 4);
    return place;
}

/* Ends the info that began at `place`. */
static inline void cartwheel_info_end(const struct cartwheel_batch *batch, size_t place) {
    struct cartwheel_sink *sink = batch->infos;
    const uint32_t bytes = (uint32_t)(sink->len - place - 11);
    memcpy(sink->bytes + place + 7, &bytes, 4);
}

/* The key of the next value of an info: at most 65535 bytes. */
static inline void cartwheel_key(struct cartwheel_sink *sink, const char *key) {
    const uint16_t len = (uint16_t)strlen(key);
    cartwheel_write(sink, &len, 2);
    cartwheel_write(sink, key, len);
}

/* A value: an integer of Python. */
static inline void cartwheel_int(struct cartwheel_sink *sink, int64_t value) {
    const uint8_t tag = 3;
    cartwheel_write(sink, &tag, 1);
    cartwheel_write(sink, &value, 8);
}

/* A value: a float of Python. */
static inline void cartwheel_float(struct cartwheel_sink *sink, double value) {
    const uint8_t tag = 4;
    cartwheel_write(sink, &tag, 1);
    cartwheel_write(sink, &value, 8);
}

/* Reads a value that is a float or an integer of Python; 0 if it is neither. */
static inline int cartwheel_read_number(const uint8_t *value, size_t len, double *number) {
    int64_t integer;
    if (len != 9 || (value[0] != 3 && value[0] != 4)) return 0;
    memcpy(value[0] == 3 ? (void *)&integer : (void *)number, value + 1, 8);
    if (value[0] == 3) *number = (double)integer;
    return 1;
}

#endif
