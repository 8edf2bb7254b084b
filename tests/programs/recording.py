"""Programs that record episodes and end badly."""

import os
import resource
import signal
import threading
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
from gymnasium.error import ClosedEnvironmentError

import cartwheel
from cartwheel.recorder import RecordEpisode
from tests.programs.registry import program, tell


def recorder(folder, form="maniskill", num_envs=8, render_mode=None, **keywords):
    envs = cartwheel.NativeVectorEnv(
        "CartPole-v1", num_envs, num_workers=1, render_mode=render_mode
    )
    return RecordEpisode(envs, folder, trajectory_name="t-v0", format=form, **keywords)


def play(envs):
    """Steps without an end, with the same actions in every program."""
    envs.reset(seed=0)
    random = np.random.default_rng(0)
    while True:
        yield envs.step(random.integers(0, 2, envs.num_envs))


@program
def record_until_killed(folder, form, flushes_at, steps):
    """Records; kills itself some steps after it told how many episodes are flushed."""
    envs = recorder(folder, form)
    episodes = 0
    for number, result in enumerate(play(envs)):
        episodes += int((result[2] | result[3]).sum())
        if number == int(flushes_at):
            envs.flush()
            tell(flushed=episodes)
        if number == int(flushes_at) + int(steps):
            os.kill(os.getpid(), signal.SIGKILL)


@program
def record_on_a_full_disk(folder, form):
    """Records until files may not grow any more."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    envs = recorder(folder, form)
    steps = 0
    told = []
    stepping = play(envs)
    try:
        for _ in stepping:
            steps += 1
    except OSError as error:
        told.append(str(error))
    for call in (lambda: envs.step(np.zeros(8, int)), envs.reset, envs.close):
        try:
            call()
        except OSError as error:  # each call tells
            told.append(str(error))
    tell(errors=told, steps=steps, is_closed=envs.unwrapped.closed)


@program
def record_in_a_forked_child(folder):
    """Records; a forked child steps its copy of Gymnasium's environments for a while."""
    envs = gym.vector.SyncVectorEnv([partial(gym.make, "CartPole-v1")] * 2)
    envs = RecordEpisode(envs, folder, trajectory_name="t", save_video=False, queue_mb=1e-6)
    stepping = play(envs)
    for _ in range(100):
        next(stepping)
    child = os.fork()
    if not child:
        signal.alarm(60)  # for a child that hangs
        for _ in range(300):
            next(stepping)
        envs.flush()
        envs.close()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    envs.close()
    tell(child=status)


@program
def film_until_interrupted(folder):
    """Films; is interrupted, and does not close."""
    envs = recorder(folder, num_envs=2, render_mode="rgb_array", save_video=True)
    try:
        for number, _ in enumerate(play(envs)):
            if number == 40:
                envs.flush()
                tell(parts=len([*Path(folder).glob(".*.part.mp4")]))
                os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        return


@program
def record_while_a_thread_steps(folder, end):
    """Closes the recording, or ends, while a daemonic thread steps."""
    # A step ends 64 episodes, which takes the caller less time than the thread that writes them.
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 64, max_episode_steps=1)
    envs = RecordEpisode(envs, folder, trajectory_name="demo", save_video=False)
    envs.reset(seed=1)
    have_begun, ends = threading.Event(), threading.Event()

    def step():
        while not ends.is_set():
            try:
                envs.step([0] * 64)
            except ClosedEnvironmentError:
                break
            have_begun.set()

    thread = threading.Thread(target=step, daemon=True)
    thread.start()
    have_begun.wait()
    if end == "close":
        envs.close()
        ends.set()
        thread.join()
    tell(end=end)


@program
def record_and_end(folder):
    """Records and does not close."""
    envs = recorder(folder)
    for number, _ in enumerate(play(envs)):
        if number == 200:
            break
    tell(is_closed=envs.unwrapped.closed)
