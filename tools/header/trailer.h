/* The name of the capsule that a Python module offers as `__cartwheel__`. */
#define CARTWHEEL_CAPSULE "cartwheel.plugin"

/* The symbol that the host looks for: a plugin defines it. */
#ifdef __cplusplus
extern "C" {
#endif
extern const struct cartwheel_plugin cartwheel_plugin __attribute__((visibility("default")));
#ifdef __cplusplus
}
#endif

/* What follows is help for plugins, none of it required. */

/* Appends bytes to a sink. */
static inline void cartwheel_append(struct cartwheel_sink *sink, const void *bytes, size_t len) {
    if (sink->capacity - sink->len < len) {
        sink->grow(sink, len);
    }
    if (len != 0) {
        memcpy(sink->bytes + sink->len, bytes, len);
    }
    sink->len += len;
}

/* Says why a call failed: `return cartwheel_fail(error, "size is negative");`. */
static inline uint32_t cartwheel_fail(struct cartwheel_sink *error, const char *text) {
    cartwheel_append(error, text, strlen(text));
    return CARTWHEEL_FAILED;
}

/* Compilers have it, ISO C does not. */
__extension__ typedef unsigned __int128 cartwheel_uint128;

/* 64 random bits: the same as `numpy.random.Generator(PCG64(seed))` draws. */
static inline uint64_t cartwheel_next_u64(struct cartwheel_random_stream *stream) {
    const cartwheel_uint128 multiplier =
        ((cartwheel_uint128)0x2360ed051fc65da4u << 64) | 0x4385df649fccf645u;
    cartwheel_uint128 state = ((cartwheel_uint128)stream->state[1] << 64) | stream->state[0];
    cartwheel_uint128 step = ((cartwheel_uint128)stream->increment[1] << 64) | stream->increment[0];
    state = state * multiplier + step;
    stream->state[0] = (uint64_t)state;
    stream->state[1] = (uint64_t)(state >> 64);
    uint64_t folded = stream->state[0] ^ stream->state[1];
    unsigned turn = (unsigned)(stream->state[1] >> 58);
    return (folded >> turn) | (folded << ((64 - turn) & 63));
}

/* A number in [0, 1): `Generator.random()`. */
static inline double cartwheel_random(struct cartwheel_random_stream *stream) {
    return (double)(cartwheel_next_u64(stream) >> 11) * (1.0 / 9007199254740992.0);
}

/* Begins the info of row `row` of a batch, and returns where it begins. */
static inline size_t cartwheel_info_begin(struct cartwheel_batch *batch, size_t row) {
    uint32_t number = batch->info_row + (uint32_t)row;
    unsigned char head[11] = {0};
    size_t at = batch->infos->len;
    memcpy(head + 1, &number, 4);
    cartwheel_append(batch->infos, head, sizeof head);
    return at;
}

/* Writes the key of a value, at most 65535 bytes, and the tag of the value. */
static inline void cartwheel_info_key(struct cartwheel_batch *batch, const char *key,
                                      unsigned char tag) {
    uint16_t len = (uint16_t)strlen(key);
    cartwheel_append(batch->infos, &len, 2);
    cartwheel_append(batch->infos, key, len);
    cartwheel_append(batch->infos, &tag, 1);
}

/* Writes an integer into the info that was begun. */
static inline void cartwheel_info_int(struct cartwheel_batch *batch, const char *key,
                                      int64_t value) {
    cartwheel_info_key(batch, key, 3);
    cartwheel_append(batch->infos, &value, 8);
}

/* Writes a float into the info that was begun. */
static inline void cartwheel_info_float(struct cartwheel_batch *batch, const char *key,
                                        double value) {
    cartwheel_info_key(batch, key, 4);
    cartwheel_append(batch->infos, &value, 8);
}

/* Writes text into the info that was begun. */
static inline void cartwheel_info_text(struct cartwheel_batch *batch, const char *key,
                                       const char *value) {
    uint32_t len = (uint32_t)strlen(value);
    cartwheel_info_key(batch, key, 5);
    cartwheel_append(batch->infos, &len, 4);
    cartwheel_append(batch->infos, value, len);
}

/* Writes an array into the info that was begun, such as a mask of actions: elements of `dtype`, from
   CARTWHEEL_BOOL to CARTWHEEL_FLOAT64, row-major, of at most 63 dimensions. */
static inline void cartwheel_info_array(struct cartwheel_batch *batch, const char *key,
                                        uint32_t dtype, size_t dimensions, const size_t *shape,
                                        const void *elements) {
    static const unsigned char sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8};
    const unsigned char head[] = {(unsigned char)dtype, (unsigned char)dimensions};
    size_t len = sizes[dtype];
    cartwheel_info_key(batch, key, 7);
    cartwheel_append(batch->infos, head, sizeof head);
    for (size_t at = 0; at < dimensions; at++) {
        uint32_t length = (uint32_t)shape[at];
        cartwheel_append(batch->infos, &length, 4);
        len *= length;
    }
    cartwheel_append(batch->infos, elements, len);
}

/* Writes a float as the value of a parameter. */
static inline void cartwheel_value_float(struct cartwheel_sink *value, double number) {
    const unsigned char tag = 4;
    cartwheel_append(value, &tag, 1);
    cartwheel_append(value, &number, 8);
}

/* Reads a parameter that is set to a float, `numpy.float32` too, or an integer; returns 0 for another
   value. */
static inline int cartwheel_read_number(const uint8_t *value, size_t len, double *number) {
    int64_t integer;
    float single;
    if (len == 9 && value[0] == 4) {
        memcpy(number, value + 1, 8);
        return 1;
    }
    if (len == 9 && value[0] == 3) {
        memcpy(&integer, value + 1, 8);
        *number = (double)integer;
        return 1;
    }
    if (len == 6 && value[0] == 6 && value[1] == CARTWHEEL_FLOAT32) {
        memcpy(&single, value + 2, 4);
        *number = single;
        return 1;
    }
    return 0;
}

/* Ends the info that began at `at`. */
static inline void cartwheel_info_end(struct cartwheel_batch *batch, size_t at) {
    uint32_t len = (uint32_t)(batch->infos->len - at - 11);
    memcpy(batch->infos->bytes + at + 7, &len, 4);
}

#ifdef __cplusplus
#include <exception>

namespace cartwheel {

/* Calls `call`, which returns a code, and turns an exception into CARTWHEEL_PANICKED with its text:
   no exception may leave a function of a table.

       extern "C" uint32_t run(void *rows, cartwheel_batch *batch) noexcept {
           return cartwheel::guarded(batch->error, [&] { return run_rows(rows, *batch); });
       } */
template <class Call>
uint32_t guarded(cartwheel_sink *error, Call &&call) noexcept {
    try {
        return call();
    } catch (const std::exception &exception) {
        cartwheel_append(error, exception.what(), strlen(exception.what()));
    } catch (...) {
        cartwheel_fail(error, "an exception that is not a std::exception");
    }
    return CARTWHEEL_PANICKED;
}

/* The same for a call that returns a pointer, null for failure. */
template <class Call>
void *guarded_pointer(cartwheel_sink *error, Call &&call) noexcept {
    void *made = nullptr;
    uint32_t code = guarded(error, [&] {
        made = call();
        return CARTWHEEL_OK;
    });
    return code == CARTWHEEL_OK ? made : nullptr;
}

} // namespace cartwheel
#endif

#endif /* CARTWHEEL_H */
