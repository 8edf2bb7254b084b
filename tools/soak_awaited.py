"""Awaited rows with random cancellations, time-outs, exceptions, hangs and kills, for a given time.

    python -m tools.soak_awaited [--minutes 10] [--rows 32] [--seed 1]

Each row counts its steps and its episodes. A task for each row knows what the row must show after
every request that was not disturbed: nothing may be lost, and nothing may reach another row. At the
end all rows answer, and no process, thread or descriptor is left. The exit status is 1 if not.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter

import gymnasium as gym

import cartwheel
from tests.support.processes import left_behind, open_descriptors, resident_kib, residue

#: Seconds that a request may take.
LIMIT = 1.0


class Counting(gym.Env):
    """Shows the row, the episode and the step."""

    observation_space = gym.spaces.MultiDiscrete([1 << 20] * 3)
    action_space = gym.spaces.Discrete(5)

    def __init__(self, row):
        self.row = row
        self.episode = self.steps = 0

    def _shown(self):
        return {"row": self.row, "episode": self.episode, "steps": self.steps}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.steps = options["episode"], 0
        return self.observation_space.sample(), self._shown()

    def step(self, action):
        self.steps += 1
        if action == 1:
            time.sleep(0.01)
        elif action == 2:
            raise ValueError(self.row)
        elif action == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        elif action == 4:
            time.sleep(3600)
        return self.observation_space.sample(), 0.0, False, False, self._shown()

    def told(self):
        return self._shown()


def check(holds, shown):
    """Raises if a row showed something wrong."""
    if not holds:
        raise AssertionError(shown)


async def told_by(envs, row, counts):
    """The state that a row shows; ``None`` if that came too late, as on a busy machine."""
    try:
        return await envs.call(row, "told")
    except (cartwheel.WorkerTimeoutError, cartwheel.WorkerDiedError) as error:
        check(" second(s)" in str(error), error)  # the process died of nothing else
        counts["late"] += 1
        return None


async def play(envs, row, end, rng, counts):
    """Uses a row until ``end``; raises if it shows something wrong."""
    episode = 0
    while time.monotonic() < end:
        episode += 1
        try:
            _, info = await envs.reset(row, options={"episode": episode})
        except (cartwheel.WorkerDiedError, cartwheel.WorkerTimeoutError):
            counts["failed resets"] += 1
            continue
        steps = 0
        check(info == {"row": row, "episode": episode, "steps": steps}, info)
        for _ in range(rng.randrange(1, 60)):
            if rng.random() < 0.01:
                await envs.restart(row)
                counts["restarts"] += 1
                break
            action = rng.choices(range(5), [0.8, 0.17, 0.01, 0.01, 0.01])[0]
            task = asyncio.ensure_future(envs.step(row, action))
            if rng.random() < 0.1:
                await asyncio.sleep(rng.random() * 0.005)
                task.cancel()
            try:
                *_, info = await task
                steps += 1
            except asyncio.CancelledError:
                counts["cancellations"] += 1
                if action > 1:
                    break
                # It has happened, unless it waited for a step that was cancelled before it.
                told = await told_by(envs, row, counts)
                if told is None:
                    break
                check(told["steps"] in (steps, steps + 1), told)
                steps = told["steps"]
                continue
            except ValueError as error:
                check(error.args == (row,), error)
                counts["exceptions"] += 1
                break
            except (cartwheel.WorkerDiedError, cartwheel.WorkerTimeoutError) as error:
                check(error.env_index == [row], error)
                counts[type(error).__name__] += 1
                break
            if "worker_restarted" in info:
                counts["hangs"] += 1
                break
            counts["steps"] += 1
            check(info == {"row": row, "episode": episode, "steps": steps}, info)
            if rng.random() < 0.02:
                told = await told_by(envs, row, counts)
                if told is None:
                    break
                check(told == info, info)
                counts["calls"] += 1


async def soak(rows, seed, minutes):
    """Plays in all rows; returns the counts."""
    counts, rng = Counter(), random.Random(seed)
    env_fns = [lambda row=row: Counting(row) for row in range(rows)]
    async with cartwheel.AwaitableEnvs(env_fns, timeout=LIMIT, on_timeout="restart") as envs:
        end = time.monotonic() + 60 * minutes
        played = [play(envs, row, end, random.Random(rng.random()), counts) for row in range(rows)]
        try:
            await asyncio.gather(*played)
        finally:
            print(dict(counts), flush=True)
        for row in range(rows):
            _, info = await envs.reset(row, options={"episode": 0})
            check(info["row"] == row, info)
    return counts


def main():
    """Soaks, and looks for what is left."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    asyncio.run(soak(2, 0, 0.02))  # what is started once per program
    before, memory = residue(), resident_kib()
    asyncio.run(soak(arguments.rows, arguments.seed, arguments.minutes))
    left = left_behind(before)
    print(f"memory: {memory} to {resident_kib()} KiB; descriptors: {open_descriptors()}")
    if left:
        print(f"left behind: {sorted(left)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
