"""Costs of recording: processor time of a step, and bytes written.

The time of a step has no bound. 4 × the steps must write at most 4.6 × the bytes.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import cartwheel
from cartwheel.wrappers import RecordEpisode

#: The bytes of four times the steps, divided by those of the steps, at most.
BOUND = 4.6


def pendulums(num_envs: int) -> cartwheel.NativeVectorEnv:
    """Pendulums: their episodes have 200 steps."""
    return cartwheel.NativeVectorEnv("Pendulum-v1", num_envs, executor="inline")


def step_us(envs: Any, steps: int = 150) -> float:
    """Microseconds of the caller's processor time a step, within an episode; the least of five."""
    actions = envs.action_space.sample()
    times = []
    for _ in range(5):
        envs.reset(seed=0)
        begin = time.thread_time()
        for _ in range(steps):
            envs.step(actions)
        times.append((time.thread_time() - begin) / steps * 1e6)
    return min(times)


def episode_us(num_envs: int = 64, steps: int = 800) -> float:
    """Microseconds of processor time of all threads for an episode of 200 steps, written."""
    with tempfile.TemporaryDirectory() as folder:
        envs = RecordEpisode(pendulums(num_envs), folder, save_video=False, record_env_state=False)
        actions = envs.action_space.sample()
        envs.reset(seed=0)
        begin = time.process_time()
        for _ in range(steps):
            envs.step(actions)
        envs.close()
        return (time.process_time() - begin) / (num_envs * steps / 200) * 1e6


def written_bytes(steps: int, pause_s: float) -> int:
    """Bytes that a program hands to the system for so many steps of 16 cart-poles.

    It pauses after each hundred, so that the writer flushes by time as in a slow program.
    """

    def written() -> int:
        lines = Path("/proc/self/io").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))

    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        envs = cartwheel.NativeVectorEnv("CartPole-v1", 16, executor="inline")
        recorder = RecordEpisode(envs, folder, record_env_state=False)
        recorder.reset(seed=0)
        before = written()
        for number in range(steps):
            recorder.step(random.integers(0, 2, 16))
            if number % 100 == 99:
                time.sleep(pause_s)
        recorder.close()
        return written() - before


if __name__ == "__main__":
    print("processor time of the caller, µs a step of native Pendulum-v1")
    print(f"{'rows':>6} {'bare':>8} {'recorded':>9} {'with states':>12}")
    for num_envs in (64, 1024, 4096):
        times = [step_us(pendulums(num_envs))]
        for states in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                envs = RecordEpisode(
                    pendulums(num_envs), folder, save_video=False, record_env_state=states,
                    save_on_reset=False,
                )  # fmt: skip
                times.append(step_us(envs))
                envs.close()
        print(f"{num_envs:>6} {times[0]:>8.1f} {times[1]:>9.1f} {times[2]:>12.1f}")
    print(f"an episode of 200 steps, all threads: {episode_us():.0f} µs")
    print("written bytes of 500, 1000 and 2000 steps of 16 cart-poles")
    for pause_s in (0.0, 0.3):
        counts = [written_bytes(steps, pause_s) for steps in (500, 1000, 2000)]
        ratio = counts[2] / counts[0]
        outcome = "ok" if ratio <= BOUND else "TOO MUCH"
        shown = ", ".join(f"{count / 1e6:.2f}" for count in counts)
        print(f"pauses of {pause_s} s: {shown} MB; 4 × the steps: {ratio:.2f} × ({outcome})")
