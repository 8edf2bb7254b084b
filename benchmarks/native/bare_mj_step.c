/* The ceiling of benchmarks/native/mujoco_envs.py: the bare loop of mj_step over the rows of one thread.
 *
 * It has no interface: no observations, no rewards, no infos. What stays is what every vector
 * environment has to do for a step: the controls, mj_step for each frame, mj_rnePostConstraint, and
 * resets of episodes that are over, which count as a step, as in autoreset mode NEXT_STEP. It needs
 * no header of MuJoCo: the functions and the arrays of a row come as addresses.
 */
#define _POSIX_C_SOURCE 199309L
#include <string.h>
#include <time.h>

typedef void simulate(const void *model, void *data);

/* What all rows share. */
struct task {
    simulate *step, *reset, *forward, *forces;
    const void *model;
    long frame_skip, nq, nv, nu, limit; /* limit: steps of an episode */
    const double *low, *high;           /* (nq + nv): beyond these bounds an episode is over */
    const float *actions;               /* (batches, rows, nu) */
    long batches, rows;
    const double *starts;               /* (num_starts, nq + nv): states to begin episodes with */
    long num_starts;
};

struct row {
    void *data;
    double *qpos, *qvel, *ctrl;
    long steps, starts; /* of its episode; episodes that it has begun */
    int over;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int inside(const double *values, const double *low, const double *high, long count)
{
    for (long index = 0; index < count; index++)
        if (!(low[index] <= values[index] && values[index] <= high[index]))
            return 0;
    return 1;
}

static void begin(const struct task *task, struct row *row, long number)
{
    const long start = (number + row->starts++ * task->rows) % task->num_starts;
    const double *state = task->starts + start * (task->nq + task->nv);
    task->reset(task->model, row->data);
    memcpy(row->qpos, state, (size_t)task->nq * sizeof *state);
    memcpy(row->qvel, state + task->nq, (size_t)task->nv * sizeof *state);
    task->forward(task->model, row->data);
    row->steps = 0;
    row->over = 0;
}

static void step(const struct task *task, struct row *row, const float *action)
{
    for (long index = 0; index < task->nu; index++)
        row->ctrl[index] = action[index];
    for (long frame = 0; frame < task->frame_skip; frame++)
        task->step(task->model, row->data);
    task->forces(task->model, row->data);
    row->over = ++row->steps == task->limit || !inside(row->qpos, task->low, task->high, task->nq) ||
                !inside(row->qvel, task->low + task->nq, task->high + task->nq, task->nv);
}

/* Steps the rows `first` to `last` in turn for `seconds`, at least once; returns steps per second.
 */
double bare_loop(const struct task *task, struct row *rows, long first, long last, double seconds)
{
    long turns = 0;
    const double start = now();
    double elapsed = 0;
    do {
        const float *batch = task->actions + turns % task->batches * task->rows * task->nu;
        for (long row = first; row < last; row++) {
            if (rows[row].over)
                begin(task, &rows[row], row);
            else
                step(task, &rows[row], batch + row * task->nu);
        }
        turns++;
        elapsed = now() - start;
    } while (elapsed < seconds);
    return (double)(turns * (last - first)) / elapsed;
}
