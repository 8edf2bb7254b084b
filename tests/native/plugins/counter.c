/* A plugin for tests, in C that is C++ too: environments that count their steps. They break a
   rule of the interface if a definition or an option asks for it.

   Definitions of the compiler (-D) change the table; the option "fault" changes what `run` does. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cartwheel.h"

#ifndef NAME
#define NAME "counter"
#endif
#ifndef ID
#define ID "counter/Counter-v0"
#endif
#ifndef MAJOR
#define MAJOR CARTWHEEL_MAJOR
#endif
#ifndef MINOR
#define MINOR CARTWHEEL_MINOR
#endif
#ifndef NEEDS_MINOR
#define NEEDS_MINOR 0
#endif
#ifndef PLUGIN_SIZE
#define PLUGIN_SIZE sizeof(struct cartwheel_plugin)
#endif
#ifndef ENV_SIZE
#define ENV_SIZE sizeof(struct cartwheel_env)
#endif
#ifndef RUN
#define RUN run
#endif
#ifndef KIND_NEW
#define KIND_NEW kind_new
#endif
#ifndef DEFAULT_OPTIONS
#define DEFAULT_OPTIONS "{}"
#endif
#ifndef OPTIONS
#define OPTIONS "fault\n"
#endif

static const float LIMIT = 3; /* steps of an episode */

struct kind {
    char fault[32];
};

struct rows {
    struct kind kind;
    float *steps; /* of each row */
};

static void option_names(struct cartwheel_sink *names) {
    cartwheel_append(names, OPTIONS, sizeof OPTIONS - 1);
}

static void *kind_new(const uint8_t *options, size_t len, struct cartwheel_sink *error) {
    static const char key[] = "\"fault\":\"";
    struct kind *made = (struct kind *)calloc(1, sizeof *made);
    for (size_t at = 0; at + sizeof key < len; at++) {
        if (memcmp(options + at, key, sizeof key - 1) != 0) continue;
        const uint8_t *value = options + at + sizeof key - 1;
        for (size_t n = 0; value[n] != '"' && n + 1 < sizeof made->fault; n++)
            made->fault[n] = (char)value[n];
    }
    if (strcmp(made->fault, "bad option") == 0) {
        cartwheel_fail(error, "`fault` is bad");
        free(made);
        return NULL;
    }
    return made;
}

static void kind_free(void *of) { free(of); }

static void kind_describe(const void *of, struct cartwheel_description *description) {
    static const size_t shape[] = {1};
    static const float low[] = {0}, high[] = {3};
    static const int64_t first[] = {0}, last[] = {1};
    static const struct cartwheel_space observation = {
        CARTWHEEL_BOX, CARTWHEEL_FLOAT32, NULL, 0, 1, shape, 1, low, high};
    static const struct cartwheel_space action = {
        CARTWHEEL_DISCRETE, CARTWHEEL_INT64, NULL, 0, 0, NULL, 1, first, last};
    static const struct cartwheel_space broken = {
        99, CARTWHEEL_INT64, NULL, 0, 0, NULL, 1, first, last};
    const struct kind *kind_of = (const struct kind *)of;
    description->observation = &observation;
    description->observation_nodes = 1;
    description->action = strcmp(kind_of->fault, "space") == 0 ? &broken : &action;
    description->action_nodes = 1;
    if (strcmp(kind_of->fault, "flat frame") == 0) {
        static const char *const modes[] = {"rgb_array"};
        description->render_modes = modes;
        description->num_render_modes = 1;
    }
}

static void *rows_new(const void *of, size_t count, struct cartwheel_sink *error) {
    (void)error;
    struct rows *made = (struct rows *)malloc(sizeof *made);
    made->kind = *(const struct kind *)of;
    made->steps = (float *)calloc(count, sizeof(float));
    return made;
}

static void rows_free(void *of) {
    free(((struct rows *)of)->steps);
    free(of);
}

static void write_info(struct cartwheel_batch *batch, size_t row, float steps) {
    size_t at = cartwheel_info_begin(batch, row);
    cartwheel_info_int(batch, "steps", (int64_t)steps);
    cartwheel_info_end(batch, at);
}

static void break_a_rule(const char *fault, struct cartwheel_batch *batch) {
    if (strcmp(fault, "malformed infos") == 0) cartwheel_append(batch->infos, "garbage", 7);
    if (strcmp(fault, "malformed value") == 0) {
        size_t at = cartwheel_info_begin(batch, batch->rows - 1);
        cartwheel_info_key(batch, "steps", 99); /* an unknown tag */
        cartwheel_info_end(batch, at);
    }
    if (strcmp(fault, "pickled value") == 0) {
        size_t at = cartwheel_info_begin(batch, batch->rows - 1);
        cartwheel_info_key(batch, "steps", 11);
        cartwheel_append(batch->infos, "\2\0\0\0N.", 6); /* the pickled None */
        cartwheel_info_end(batch, at);
    }
    if (strcmp(fault, "deep value") == 0) { /* of a batch it has 65, and NumPy 64 */
        size_t ones[64];
        size_t at = cartwheel_info_begin(batch, batch->rows - 1);
        for (size_t n = 0; n < 64; n++) ones[n] = 1;
        cartwheel_info_array(batch, "steps", CARTWHEEL_INT8, 64, ones, "\1");
        cartwheel_info_end(batch, at);
    }
    if (strcmp(fault, "foreign row") == 0) write_info(batch, batch->rows, 1);
    if (strcmp(fault, "doubled row") == 0) write_info(batch, 0, 1);
    if (strcmp(fault, "next") == 0) batch->next = batch->rows + 1;
    if (strcmp(fault, "reward") == 0) batch->rewards[batch->rows] = 7;
    if (strcmp(fault, "observation") == 0) ((float *)batch->observations[0])[batch->rows] = 7;
    if (strcmp(fault, "room") == 0) batch->infos->grow(batch->infos, 1); /* may be there */
    if (strcmp(fault, "flag") == 0) batch->terminations[0] = 2;
}

static uint32_t run(void *of, struct cartwheel_batch *batch) {
    struct rows *rows_of = (struct rows *)of;
    const char *fault = rows_of->kind.fault;
    const int64_t *actions =
        batch->actions == NULL ? NULL : (const int64_t *)batch->actions[0];
    float *observations = (float *)batch->observations[0];
    for (; batch->next < batch->rows; batch->next++) {
        const size_t row = batch->next, own = batch->first + row;
        const uint8_t command = batch->commands[row];
        if (command == CARTWHEEL_LEAVE) continue;
        if (command == CARTWHEEL_STEP) {
            if (strcmp(fault, "failure") == 0 && actions[row] == 1)
                return cartwheel_fail(batch->error, "the counter is stuck");
            rows_of->steps[own] += 1;
            batch->rewards[row] = (double)actions[row];
            batch->terminations[row] = rows_of->steps[own] >= LIMIT;
            batch->truncations[row] = 0;
        }
        if (command == CARTWHEEL_RESET) {
            rows_of->steps[own] = 0;
            batch->rewards[row] = 0;
            batch->terminations[row] = batch->truncations[row] = 0;
        }
        observations[row] = rows_of->steps[own];
        if (command != CARTWHEEL_SHOW && strstr(fault, " value") == NULL)
            write_info(batch, row, rows_of->steps[own]);
    }
    if (actions != NULL && batch->commands[0] == CARTWHEEL_STEP) break_a_rule(fault, batch);
    return strcmp(fault, "status") == 0 ? 77 : CARTWHEEL_OK;
}

static uint32_t row_render(void *of, size_t row, size_t mode, struct cartwheel_frame *frame,
                           struct cartwheel_sink *error) {
    (void)of, (void)row, (void)mode, (void)error;
    frame->width = SIZE_MAX / 2; /* and no height */
    return CARTWHEEL_OK;
}

static const struct cartwheel_env envs[] = {{
    .struct_size = ENV_SIZE,
    .id = ID,
    .default_options = DEFAULT_OPTIONS,
    .max_episode_steps = 0,
    .block = 1,
    .reward_threshold = NAN,
    .option_names = option_names,
    .kind_new = KIND_NEW,
    .kind_free = kind_free,
    .kind_describe = kind_describe,
    .rows_new = rows_new,
    .rows_free = rows_free,
    .run = RUN,
    .row_render = row_render,
}};

const struct cartwheel_plugin cartwheel_plugin = {
    .struct_size = PLUGIN_SIZE,
    .major = MAJOR,
    .minor = MINOR,
    .name = NAME,
    .version = "1.2.3",
    .needs_minor = NEEDS_MINOR,
    .env_size = sizeof(struct cartwheel_env),
    .envs = envs,
    .num_envs = 1,
};
