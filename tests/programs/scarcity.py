"""Programs with too little memory, address space, shared memory, descriptors, threads or time."""

import contextlib
import gc
import os
import random
import resource
import signal
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import numpy as np
from gymnasium.spaces import Box

import cartwheel
from cartwheel.workers.process import lifeline
from cartwheel.workers.stderr import nameless_file
from tests.programs.registry import program, tell
from tests.support.comparison import assert_identical
from tests.support.environments import LargeEnv
from tests.support.faulty import FaultyEnv
from tests.support.processes import left_behind, residue

NUM_ENVS = 4


def build(executor, env=LargeEnv, **keywords):
    keywords = {"num_workers": 2, **keywords}
    return cartwheel.VectorEnv([env] * NUM_ENVS, executor=executor, **keywords)


def assert_works(envs):
    envs.reset()
    for step in range(1, 4):
        assert (envs.step([0] * NUM_ENVS)[0] == step).all()


def attempt(function):
    """The type and text of the exception of ``function``, and what it leaves behind."""
    lifeline()  # a pipe that is opened once per program
    before, error = residue(), None
    try:
        function()
    except Exception as raised:
        error = [type(raised).__name__, str(raised)]
    gc.collect()
    return {"error": error, "left": sorted(left_behind(before))}


@program
def construct(executor):
    build(executor).close()  # first starts what is started once per program
    tell(**attempt(lambda: build(executor)))


@program
def construct_in_a_full_group(executor, group):
    """The control group fills up while the program runs."""
    build(executor).close()
    fill(group)
    tell(**attempt(lambda: build(executor)))


def fill(group):
    for name in ("memory.current", "memory/memory.usage_in_bytes"):
        Path(group, name).write_text(str(1 << 40))


@program
def keep_batches_in_a_full_group(executor, group):
    """Batches that are kept while memory runs out have the right values."""
    envs = build(executor)
    envs.reset()
    fill(group)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kept = [envs.step([0] * NUM_ENVS)[0] for _ in range(12)]
    assert [array.flat[0] for array in kept] == list(range(1, 13))
    assert all((array == array.flat[0]).all() for array in kept)
    tell(warnings=[str(warning.message) for warning in caught], slabs=envs.stats().batches_reserved)
    envs.close()


@program
def take_a_rollout_larger_than_the_machine(executor):
    lines = Path("/proc/meminfo").read_text().splitlines()
    amounts = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}
    bytes_a_row = (amounts["MemTotal"] + amounts["SwapTotal"]) // 65534 // NUM_ENVS + 1

    class SizedEnv(LargeEnv):
        observation_space = Box(0, 255, (bytes_a_row,), np.uint8)

    envs = build(executor, SizedEnv, context="fork")
    envs.reset()
    facts = attempt(lambda: envs.rollout(65534))
    assert_works(envs)
    envs.close()
    tell(bytes=65535 * NUM_ENVS * bytes_a_row, **facts)


def limit_address_space(more):
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGESIZE") + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


@program
def construct_with_little_address_space(executor):
    limit_address_space(256 << 20)
    tell(**attempt(lambda: build(executor, context="fork")))


@program
def make_with_8_gib(env_id, num_envs):
    """Reports the error, and the MiB that the attempt takes."""
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        facts = attempt(lambda: cartwheel.make_vec(env_id, int(num_envs)))
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    tell(mib=taken >> 10, **facts)


def enlarge_stacks():
    """From now on the stack of each thread takes 1 GiB of the address space."""
    os.environ["RUST_MIN_STACK"] = str(1 << 30)
    threading.stack_size(1 << 30)


@program
def construct_with_too_few_threads(kind):
    """Some of 64 threads start, others do not."""
    enlarge_stacks()
    limit_address_space(16 << 30)
    keywords = {"executor": "thread", "num_workers": 64}
    if kind == "native":
        tell(**attempt(lambda: cartwheel.NativeVectorEnv("CartPole-v1", 64, **keywords)))
    else:
        tell(**attempt(lambda: cartwheel.VectorEnv([FaultyEnv] * 64, **keywords)))


@program
def estimate_without_threads():
    """Reports whether estimators return what they return on one thread."""
    draw = np.random.default_rng(1)
    rewards, values, next_values = draw.normal(size=(3, 64, 64))
    terminated, truncated = draw.random((2, 64, 64)) < 1 / 8
    ends = (terminated, truncated)
    estimators = {
        "gae": lambda threads: cartwheel.returns.gae(
            rewards, values, next_values, *ends, gamma=0.9, gae_lambda=0.8, num_threads=threads
        ),
        "n_step_returns": lambda threads: cartwheel.returns.n_step_returns(
            rewards, *ends, n=3, next_values=next_values, gamma=0.9, num_threads=threads
        ),
    }
    expected = {name: estimate(1) for name, estimate in estimators.items()}
    enlarge_stacks()
    limit_address_space(512 << 20)
    for name, estimate in estimators.items():
        assert_identical(tuple(estimate(4)), tuple(expected[name]))
    tell(estimators=list(estimators))


@program
def step_in_real_time(executor):
    """Steps with a real-time priority on one processor; what polls for two seconds is killed."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_RTTIME, (2_000_000, 2_000_000))
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        tell(allowed=False)
        return
    if executor == "native":
        envs = cartwheel.NativeVectorEnv("CartPole-v1", 64, num_workers=2)
    else:
        envs = build(executor, FaultyEnv)
    envs.reset()
    for _ in range(20):
        envs.step([0] * envs.num_envs)
    envs.close()
    tell(allowed=True)


@program
def construct_with_few_descriptors(context, *limits):
    """Reports for each limit, which is a hard one, that everything works, or the one exception."""
    build("process", context=context).close()  # a fork server keeps a few descriptors
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    outcomes, left = [], set()
    for limit in map(int, limits):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        before = residue()
        try:
            # The hard limit itself stays, since only root could raise it again.
            with mock.patch.object(resource, "getrlimit", return_value=(limit, limit)):
                envs = build("process", context=context, num_workers=4)
            assert_works(envs)
            envs.close()
            outcomes.append("works")
        except OSError as error:
            outcomes.append([error.errno, str(error)])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        gc.collect()
        left |= left_behind(before)
    tell(outcomes=outcomes, left=sorted(left))


@program
def construct_with_a_low_soft_limit(context):
    """Reports the limits at first and after twelve workers worked."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))
    limits = [resource.getrlimit(resource.RLIMIT_NOFILE)]
    with contextlib.closing(
        cartwheel.VectorEnv([FaultyEnv] * 12, executor="process", context=context, num_workers=12)
    ) as envs:
        envs.reset()
        envs.step([0] * 12)
    limits.append(resource.getrlimit(resource.RLIMIT_NOFILE))
    tell(limits=limits)


@program
def count_descriptors(context):
    """Reports the descriptors of one worker, with one environment and with many."""
    build("process", context=context).close()
    counts = []
    for num_envs in (1, 256):
        before = residue()
        envs = cartwheel.VectorEnv(
            [FaultyEnv] * num_envs, executor="process", context=context, num_workers=1
        )
        envs.reset()
        new = residue() - before
        counts.append(sum(entry.startswith("descriptor") for entry in new))
        envs.close()
    tell(counts=counts)


@program
def step_without_room_in_dev_shm(context):
    """Reports the free space in ``/dev/shm``, and that no environment needs it."""
    envs = build("process", context=context)
    assert_works(envs)
    envs.close()
    room = os.statvfs("/dev/shm") if Path("/dev/shm").exists() else None
    tell(bytes=room and room.f_bavail * room.f_frsize)


class WritingEnv(LargeEnv):
    def step(self, action):
        print("python", file=sys.stderr, flush=True)
        os.write(2, b"descriptor\n")
        return super().step(action)


@program
def close_in_silence(where):
    """Closes healthy environments; reports what was written to stderr."""
    read, write = os.pipe()
    os.dup2(write, 2)
    os.close(write)

    def run():
        envs = build("process", FaultyEnv, context="fork")
        envs.reset()
        envs.close()

    if where == "in a thread of a pool":
        with ThreadPoolExecutor(1) as threads:
            threads.submit(run).result()
    else:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        run()
    os.set_blocking(read, False)
    try:
        tell(written=os.read(read, 4096).decode())
    except BlockingIOError:
        tell(written="")


@program
def write_to_stderr():
    """Reports the lines that arrive while the worker is still alive."""
    read, write = os.pipe()
    os.dup2(write, 2)
    envs = cartwheel.VectorEnv([WritingEnv], executor="process", context="fork")
    envs.reset()
    envs.step([0])
    with open(read, closefd=False) as pipe:
        tell(before_the_end=[pipe.readline(), pipe.readline()])
    envs.close()


@program
def interrupt_the_making_of_files():
    """Reports how often Ctrl-C came while a file for a worker was made, and what it left open."""
    random_times, interrupts = random.Random(1), 0
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for _ in range(300):
        try:
            signal.setitimer(signal.ITIMER_REAL, random_times.uniform(2e-6, 3e-5))
            while True:
                nameless_file("cartwheel-test")
        except KeyboardInterrupt:  # one for each interrupt
            interrupts += 1
    folder = Path("/proc/self/fd")
    links = [str(entry.readlink()) for entry in folder.iterdir() if entry.is_symlink()]
    tell(interrupts=interrupts, left=sum("cartwheel-test" in link for link in links))
