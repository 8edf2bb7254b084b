/* A thermostat, in C that is C++ too: keep a room at 21 degrees while the weather changes.

   Observation: the temperatures inside and outside, in degrees Celsius. Action: 1 heats for a
   minute, 0 does not. Info: the energy of the episode, in kilowatt-hours. Parameter: the `power` of
   the heater, in kilowatts. The episode ends when the pipes freeze. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cartwheel.h"

#define LOWEST (-40)
#define HIGHEST 120
#define MINUTE (1.0 / 60) /* hours */

struct room {
    double inside, outside, power, energy;
};

/* The kind: an environment with its options. This one has none, and needs no memory either. */
static char the_kind;

static void *kind_new(const uint8_t *options, size_t len, struct cartwheel_sink *error) {
    if (len <= 2) return &the_kind; /* "{}" */
    cartwheel_fail(error, "a thermostat has no options, got ");
    cartwheel_append(error, options, len);
    return NULL;
}

static void kind_free(void *kind) { (void)kind; }

static void kind_describe(const void *kind, struct cartwheel_description *description) {
    static const size_t shape[] = {2};
    static const float low[] = {LOWEST}, high[] = {HIGHEST};
    static const int64_t off[] = {0}, on[] = {1};
    static const struct cartwheel_space observation = {
        CARTWHEEL_BOX, CARTWHEEL_FLOAT32, NULL, 0, 1, shape, 1, low, high};
    static const struct cartwheel_space action = {
        CARTWHEEL_DISCRETE, CARTWHEEL_INT64, NULL, 0, 0, NULL, 1, off, on};
    static const char *const parameters[] = {"power"}, *const modes[] = {"ansi"};
    (void)kind;
    description->observation = &observation;
    description->action = &action;
    description->observation_nodes = description->action_nodes = 1;
    description->parameters = parameters;
    description->render_modes = modes;
    description->num_parameters = description->num_render_modes = 1;
}

static void *rows_new(const void *kind, size_t count, struct cartwheel_sink *error) {
    struct room *rooms = (struct room *)calloc(count, sizeof *rooms);
    (void)kind;
    if (rooms == NULL) cartwheel_fail(error, "no memory for so many rooms");
    for (size_t row = 0; rooms != NULL && row < count; row++) rooms[row].power = 6;
    return rooms;
}

static double step(struct room *room, int64_t heat, struct cartwheel_random_stream *stream) {
    const double used = heat ? room->power * MINUTE : 0;
    room->outside += cartwheel_random(stream) - 0.5;
    room->outside = fmax(-20, fmin(20, room->outside));
    room->inside += 4 * used + MINUTE * (room->outside - room->inside); /* 4 degrees per kWh */
    room->energy += used;
    return -fabs(room->inside - 21) / 10 - used;
}

static uint32_t run(void *rows, struct cartwheel_batch *batch) {
    float *observations = (float *)batch->observations[0];
    for (; batch->next < batch->rows; batch->next++) {
        const size_t row = batch->next;
        const uint8_t command = batch->commands[row];
        struct room *room = (struct room *)rows + batch->first + row;
        if (command == CARTWHEEL_LEAVE) continue;
        if (command == CARTWHEEL_RESET) {
            room->inside = 15 + 10 * cartwheel_random(&batch->streams[row]);
            room->outside = -10 + 20 * cartwheel_random(&batch->streams[row]);
            room->energy = 0;
            batch->rewards[row] = batch->terminations[row] = batch->truncations[row] = 0;
        } else if (command == CARTWHEEL_STEP) {
            const int64_t heat = ((const int64_t *)batch->actions[0])[row];
            batch->rewards[row] = step(room, heat, &batch->streams[row]);
            batch->terminations[row] = room->inside < 0;
            batch->truncations[row] = 0;
        }
        observations[2 * row] = (float)room->inside;
        observations[2 * row + 1] = (float)room->outside;
        if (command == CARTWHEEL_SHOW) continue;
        const size_t place = cartwheel_info_begin(batch, row);
        cartwheel_info_float(batch, "energy", room->energy);
        cartwheel_info_end(batch, place);
    }
    return CARTWHEEL_OK;
}

static uint32_t parameter_get(void *rows, size_t row, size_t parameter,
                              struct cartwheel_sink *value, struct cartwheel_sink *error) {
    (void)parameter, (void)error;
    cartwheel_value_float(value, ((struct room *)rows)[row].power);
    return CARTWHEEL_OK;
}

static uint32_t parameter_set(void *rows, size_t row, size_t parameter, const uint8_t *value,
                              size_t len, struct cartwheel_sink *error) {
    double power;
    (void)parameter;
    if (!cartwheel_read_number(value, len, &power) || !(power >= 0 && power <= 20))
        return cartwheel_fail(error, "must be a number from 0 to 20");
    ((struct room *)rows)[row].power = power;
    return CARTWHEEL_OK;
}

static uint32_t row_render(void *rows, size_t row, size_t mode, struct cartwheel_frame *frame,
                           struct cartwheel_sink *error) {
    const struct room *room = (struct room *)rows + row;
    char text[80];
    (void)mode, (void)error;
    snprintf(text, sizeof text, "inside %.1f, outside %.1f degrees\n", room->inside, room->outside);
    cartwheel_append(frame->bytes, text, strlen(text));
    return CARTWHEEL_OK;
}

static const struct cartwheel_env envs[] = {{
    .struct_size = sizeof(struct cartwheel_env),
    .id = "c_env/Thermostat-v0",
    .default_options = "{}",
    .max_episode_steps = 240,
    .block = 1,
    .reward_threshold = NAN,
    .kind_new = kind_new,
    .kind_free = kind_free,
    .kind_describe = kind_describe,
    .rows_new = rows_new,
    .rows_free = free,
    .run = run,
    .parameter_get = parameter_get,
    .parameter_set = parameter_set,
    .row_render = row_render,
}};

const struct cartwheel_plugin cartwheel_plugin = {
    .struct_size = sizeof(struct cartwheel_plugin),
    .major = CARTWHEEL_MAJOR,
    .minor = CARTWHEEL_MINOR,
    .name = "c_env",
    .version = "0.1.0",
    .needs_minor = 0,
    .env_size = sizeof(struct cartwheel_env),
    .envs = envs,
    .num_envs = 1,
};
