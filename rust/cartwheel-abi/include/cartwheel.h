#ifndef CARTWHEEL_H
#define CARTWHEEL_H

/* Made by cbindgen of rust/cartwheel-abi/src/lib.rs, which explains every rule. Do not edit. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Changes when a table changes in a way that older programs cannot read.
#define CARTWHEEL_MAJOR 2

// Counts the fields, commands and codes that were appended.
#define CARTWHEEL_MINOR 3

// The call succeeded.
#define CARTWHEEL_OK 0

// The call failed; the error sink says why.
#define CARTWHEEL_FAILED 1

// The author's code panicked; the error sink has the message.
#define CARTWHEEL_PANICKED 2

// Step the row: write reward, flags, observation and info.
#define CARTWHEEL_STEP 0

// Reset the row: write observation and info, reward 0 and cleared flags.
#define CARTWHEEL_RESET 1

// Leave the row alone, and write nothing.
#define CARTWHEEL_LEAVE 2

// Write the observation of the present state, and nothing else.
#define CARTWHEEL_SHOW 3

// `Box`: an array between bounds.
#define CARTWHEEL_BOX 0

// `Discrete`: one `int64` of `low[0] ..= high[0]`.
#define CARTWHEEL_DISCRETE 1

// `MultiDiscrete`: an array of `int64`, each of `low ..= high`.
#define CARTWHEEL_MULTI_DISCRETE 2

// `MultiBinary`: an array of `int8`, zeros and ones.
#define CARTWHEEL_MULTI_BINARY 3

// `Tuple`: the next [`Space::children`] spaces.
#define CARTWHEEL_TUPLE 4

// `Dict`: the next [`Space::children`] spaces, sorted by [`Space::key`].
#define CARTWHEEL_DICT 5

// `Text`, only in observations. A row is an array of `uint8`: the number of bytes as a native
// `uint32`, then that many bytes of UTF-8, then zeros. Since minor version 1.
#define CARTWHEEL_TEXT 6

// `bool`, one byte: 0 or 1.
#define CARTWHEEL_BOOL 0

// `int8`.
#define CARTWHEEL_INT8 1

// `int16`.
#define CARTWHEEL_INT16 2

// `int32`.
#define CARTWHEEL_INT32 3

// `int64`.
#define CARTWHEEL_INT64 4

// `uint8`.
#define CARTWHEEL_UINT8 5

// `uint16`.
#define CARTWHEEL_UINT16 6

// `uint32`.
#define CARTWHEEL_UINT32 7

// `uint64`.
#define CARTWHEEL_UINT64 8

// `float32`. The number 9 is `float16`, which environments do not use.
#define CARTWHEEL_FLOAT32 10

// `float64`.
#define CARTWHEEL_FLOAT64 11

// Bytes that a plugin writes and the host owns: the info stream, the text of an error, a saved
// state.
//
// A plugin appends at `bytes + len` and adds to `len`. Where `len` would exceed `capacity`, it
// first calls `grow`, which may move the bytes.
struct cartwheel_sink {
    // `sizeof` of this struct in the host's version.
    size_t struct_size;
    // The first byte.
    uint8_t *bytes;
    // Bytes that are written.
    size_t len;
    // Bytes that have room.
    size_t capacity;
    // Makes room for `additional` further bytes. Never fails: a host without memory ends.
    void (*grow)(struct cartwheel_sink *sink, size_t additional);
};

// A random stream: the state of NumPy's `PCG64`. The host seeds it; a plugin that draws from it
// leaves the advanced state.
struct cartwheel_random_stream {
    // The state: low and high 64 bits.
    uint64_t state[2];
    // The increment: low and high 64 bits.
    uint64_t increment[2];
    // The kept half of a 64-bit draw, see `has_half`.
    uint32_t half;
    // 1 if `half` is the next 32-bit draw, else 0.
    uint32_t has_half;
};

// One node of a space, in preorder: a `Tuple` or `Dict` comes before the spaces in it.
//
// Every node but a `Tuple` or `Dict` is a *leaf*: an array of `dtype` and `shape` for each row.
struct cartwheel_space {
    // [`BOX`] to [`TEXT`].
    uint32_t kind;
    // [`BOOL`] to [`FLOAT64`]; `INT64` for `DISCRETE` and `MULTI_DISCRETE`, `INT8` for
    // `MULTI_BINARY`, `UINT8` for `TEXT`.
    uint32_t dtype;
    // The key in the `Dict` that the node is directly in, else null. Ends with a zero byte.
    const char *key;
    // Number of spaces directly in a `TUPLE` or `DICT`, else 0.
    size_t children;
    // Number of dimensions of a leaf; 0 for a number.
    size_t dimensions;
    // The length of each dimension.
    const size_t *shape;
    // Number of bounds: 1 for all elements together, or one for each element, row-major; 0 for
    // `MULTI_BINARY`; for `TEXT` the number of bytes of the charset.
    size_t bounds;
    // Smallest values, as elements of `dtype`; for `TEXT` the charset in UTF-8.
    const void *low;
    // Largest values, as elements of `dtype`; for `TEXT` two `size_t`: the fewest and the most
    // characters.
    const void *high;
};

// The description of a kind. Valid until the kind is freed.
struct cartwheel_description {
    // `sizeof` of this struct in the host's version; the host sets it. A plugin that can do with an
    // older host than one with a field compares before it sets that field.
    size_t struct_size;
    // The nodes of the observation space.
    const struct cartwheel_space *observation;
    // Number of these nodes.
    size_t observation_nodes;
    // The nodes of the action space.
    const struct cartwheel_space *action;
    // Number of these nodes.
    size_t action_nodes;
    // The names of the parameters, each ended by a zero byte. A parameter's number is its place.
    const char *const *parameters;
    // Number of parameters.
    size_t num_parameters;
    // The render modes, as Gymnasium names them, each ended by a zero byte: `rgb_array`, `ansi`.
    // A mode's number is its place.
    const char *const *render_modes;
    // Number of render modes.
    size_t num_render_modes;
    // Since minor version 1, optional. One byte for each leaf of the action space: 1 where the
    // plugin takes [`FLOAT32`] and [`FLOAT64`] alike, which the space of such a leaf must have.
    // [`Batch::action_dtypes`] says which of the two a batch has: the one that the caller passed.
    const uint8_t *action_floats;
    // Since minor version 2, optional. The names of the agents of an environment of several, each
    // ended by a zero byte, in the order of their dimension. The observation space of such an
    // environment is a `DICT` with `agents`, the agents' observations, whose leaves have the agents
    // as their first dimension; `flags`, a `MULTI_BINARY` of the shape `(5, num_agents)`; and
    // `rewards`, a `BOX` of `FLOAT64` and the shape `(num_agents,)`. It may have other keys. The
    // leaves of the action space have the agents as their first dimension. The action space, and
    // `agents`, may be a `DICT` with their names as keys instead.
    //
    // The rows of `flags` are, for each agent: terminated by the step; truncated by it; observed, so
    // that `agents` has an observation of it; stepped; alive after the step. A flag that is not 0 is
    // true. After a reset no agent was stepped, and rewards are zeros. Agents that are alive when the
    // row is terminated or truncated end with it.
    const char *const *agents;
    // Number of agents; 0 for an environment of one.
    size_t num_agents;
    // Since minor version 3, optional. Frames per second of videos and windows; 0 for the host's
    // choice.
    size_t render_fps;
};

// One task on consecutive rows.
//
// Arrays have one entry for each row of the batch, `0 .. rows`. Leaves are in the order of their
// spaces; each is an array `[rows, *shape]`, row-major, aligned to its elements.
struct cartwheel_batch {
    // `sizeof` of this struct in the host's version.
    size_t struct_size;
    // The first of the rows, counted from the first row of the `rows` object.
    size_t first;
    // Number of rows.
    size_t rows;
    // In: the row to begin with. Out: `rows` after [`OK`], else the row that failed or panicked.
    // A call that continues one in which a row failed begins behind that row and has as many
    // `rows`, with only resets and shows of single rows in between. So a plugin that steps rows in
    // blocks may keep the rest of a block for it. The rows of one step may be divided among several
    // calls, so the first call of a step need not begin with 0.
    size_t next;
    // The command of each row: [`STEP`], [`RESET`], [`LEAVE`], [`SHOW`].
    const uint8_t *commands;
    // One pointer for each leaf of the action space; only rows that step have actions. Null where
    // no row steps.
    const void *const *actions;
    // One pointer for each leaf of the observation space. A row that shows an observation writes
    // every byte of it.
    void *const *observations;
    // Rewards.
    double *rewards;
    // 1 where the step ended the episode, else 0.
    uint8_t *terminations;
    // 1 where the step cut the episode short, else 0. The host adds its time limit.
    uint8_t *truncations;
    // Random streams.
    struct cartwheel_random_stream *streams;
    // Options for the rows that reset, made by [`Env::reset_options_new`]; null for the defaults.
    const void *reset_options;
    // The number of the batch's first row in the records of infos.
    uint32_t info_row;
    // Infos: one record for each row that stepped or reset and has an info, in the order of rows.
    // The format is described in `cartwheel_core::info`; kinds 0 and 1, tags 0 to 10.
    struct cartwheel_sink *infos;
    // The reason of a failure, as text.
    struct cartwheel_sink *error;
    // The dtype of each leaf of the actions: that of its space, except where
    // [`Description::action_floats`] allows another one. Null where no row steps.
    const uint32_t *action_dtypes;
};

// The properties of a frame.
struct cartwheel_frame {
    // `sizeof` of this struct in the host's version.
    size_t struct_size;
    // Out, for `rgb_array`: rows of pixels.
    size_t height;
    // Out, for `rgb_array`: pixels in a row.
    size_t width;
    // `rgb_array`: `height * width * 3` bytes, row-major. `ansi`: text.
    struct cartwheel_sink *bytes;
};

// An environment that a plugin offers.
//
// A function with an error sink returns null or [`FAILED`] or [`PANICKED`] after it wrote the
// reason there. A function that is marked as optional may be null.
struct cartwheel_env {
    // `sizeof` of this struct in the plugin's version.
    size_t struct_size;
    // The id, as in Gymnasium's registry: `my_game/Maze-v0`. Ends with a zero byte.
    const char *id;
    // Options that the id passes where the caller passes none: a JSON object. Ends with a zero
    // byte.
    const char *default_options;
    // Steps after which the host truncates an episode; 0 for no limit.
    uint32_t max_episode_steps;
    // Rows that `run` steps together; 1 where it steps each by itself. The host deals rows in
    // multiples of it where it can.
    uint32_t block;
    // The return at which the task counts as solved; NaN for none.
    double reward_threshold;
    // Optional. Writes the names of the options, each followed by a newline. An empty name says
    // that there are others, which are not listed. A name may be followed by a tab, its default as
    // JSON or nothing, another tab, and a text in one line: documentation for listings.
    void (*option_names)(struct cartwheel_sink *names);
    // Makes a kind from options: a JSON object of `len` bytes, which holds the default options
    // too.
    void *(*kind_new)(const uint8_t *options, size_t len, struct cartwheel_sink *error);
    // Frees a kind; its rows are freed already.
    void (*kind_free)(void *kind);
    // Fills a description of the kind.
    void (*kind_describe)(const void *kind, struct cartwheel_description *description);
    // Makes `count` environments, not yet reset.
    void *(*rows_new)(const void *kind, size_t count, struct cartwheel_sink *error);
    // Frees environments.
    void (*rows_free)(void *rows);
    // Steps, resets and shows rows: [`OK`], [`FAILED`] or [`PANICKED`].
    uint32_t (*run)(void *rows, struct cartwheel_batch *batch);
    // Optional. Parses options of a reset: a JSON object of `len` bytes. Without it, a reset has
    // no options.
    void *(*reset_options_new)(const void *kind,
                               const uint8_t *options,
                               size_t len,
                               struct cartwheel_sink *error);
    // Frees options of a reset. Not null where `reset_options_new` is not.
    void (*reset_options_free)(void *options);
    // Optional. Replaces the environment of a row by a new one, not yet reset.
    uint32_t (*row_replace)(void *rows, size_t row, struct cartwheel_sink *error);
    // Optional. Writes a parameter of a row: one value of the info format.
    uint32_t (*parameter_get)(void *rows,
                              size_t row,
                              size_t parameter,
                              struct cartwheel_sink *value,
                              struct cartwheel_sink *error);
    // Optional. Sets a parameter of a row to one value of the info format, `len` bytes. After a
    // failure the parameter has its old value.
    uint32_t (*parameter_set)(void *rows,
                              size_t row,
                              size_t parameter,
                              const uint8_t *value,
                              size_t len,
                              struct cartwheel_sink *error);
    // Optional. Writes the state of a row, such that `row_load` continues as the row does.
    uint32_t (*row_save)(void *rows,
                         size_t row,
                         struct cartwheel_sink *state,
                         struct cartwheel_sink *error);
    // Optional. Continues a row from a state that `row_save` of the same kind wrote, in this version
    // of the plugin or in one that Semantic Versioning calls compatible with it: the host refuses
    // the states of others. After a failure the row has its old state.
    uint32_t (*row_load)(void *rows,
                         size_t row,
                         const uint8_t *state,
                         size_t len,
                         struct cartwheel_sink *error);
    // Optional. Draws a row in the render mode of this number.
    uint32_t (*row_render)(void *rows,
                           size_t row,
                           size_t mode,
                           struct cartwheel_frame *frame,
                           struct cartwheel_sink *error);
    // Optional. Writes the names of the options of a reset, as `option_names`.
    void (*reset_option_names)(struct cartwheel_sink *names);
};

// A library with environments.
struct cartwheel_plugin {
    // `sizeof` of this struct in the plugin's version.
    size_t struct_size;
    // [`MAJOR`] of the plugin's version.
    uint32_t major;
    // [`MINOR`] of the plugin's version.
    uint32_t minor;
    // The plugin's name, ended by a zero byte.
    const char *name;
    // The plugin's version, ended by a zero byte.
    const char *version;
    // The oldest minor version of a host that the plugin can do with.
    uint32_t needs_minor;
    // `sizeof` of [`Env`] in the plugin's version: the distance of one table from the next.
    uint32_t env_size;
    // The environments.
    const struct cartwheel_env *envs;
    // Number of environments.
    size_t num_envs;
};

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
