"""Environments of awaited rows, which compute, wait, fail, hang or die as their action says."""

import asyncio
import contextlib
import dataclasses
import os
import signal
import sys
import time

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Text

import cartwheel
from cartwheel.workers.retirement import memory_of_this_process


class Session(gym.Env):
    """Counts its steps. An action is the name of what happens; ``step`` is nothing else."""

    observation_space = Box(0, 1000, (2,), np.float32)
    action_space = Text(100)

    def __init__(self, gates=None):
        self.gates = gates
        self.steps = 0
        self.made = os.getpid()

    def _shown(self):
        return np.array([self.steps, 0], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self._do((options or {}).get("do", "step"))
        return self._shown(), {"seed": seed, "pid": os.getpid()}

    def step(self, action):
        self.steps += 1
        self._do(action)
        return self._shown(), 0.5, action == "end", action == "cut", {"steps": self.steps}

    def _do(self, action):
        kind, _, argument = action.partition(" ")
        if kind == "raise":
            raise ValueError(argument)
        if kind == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "exit":
            os._exit(3)
        if kind == "hang":
            time.sleep(3600)
        if kind == "wait":
            self.gates.stand_at(int(argument))
        if kind == "compute":
            end = time.process_time() + float(argument)
            while time.process_time() < end:
                pass

    def double(self, number):
        return 2 * number

    def fail(self):
        raise KeyError("tool")


class Numbered(Session):
    """A ``Session`` whose actions are numbers, so that they go through shared memory."""

    action_space = Discrete(10)  # type: ignore[assignment]
    ACTIONS = ("step", "raise by number", "die", "hang", "end", "compute 0.02", "cut", "exit")

    def step(self, action):
        return super().step(self.ACTIONS[action])


class Nested(gym.Env):
    """Shows dictionaries in another order than that of its space, and all kinds of infos."""

    observation_space = Dict(
        {"a": Box(0, 1, (2, 2), np.float64), "b": Discrete(5), "c": Dict({"z": Discrete(3)})}
    )
    action_space = Box(-1, 1, (3,), np.float32)

    def __init__(self):
        self.steps = 0

    def _shown(self):
        odd = self.steps % 2 == 1
        return {
            "c": {"z": np.int64(self.steps % 3)},
            "b": np.int64(2) if odd else 2,
            "a": np.full((2, 2), self.steps / 10),
        }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._shown(), {"options": options, "scalar": np.float32(1.5)}

    def step(self, action):
        self.steps += 1
        info = {
            "kind": type(action).__name__,
            "dtype": str(getattr(action, "dtype", None)),
            "action": action,
            "number": 3,
            "nested": {"y": (1, [2.0, None]), "x": "text"},
            "flag": np.True_,
        }
        return self._shown(), np.float64(self.steps), np.False_, False, info


class Notebook:
    """Tools of an agent: not an environment."""

    def __init__(self):
        self.lines = []

    def reset(self, topic="nothing"):
        self.lines = [topic]
        return f"about {topic}"

    def write(self, line, *, times=1):
        self.lines += [line] * times
        return len(self.lines)


class Leaks(gym.Env):
    """Keeps so many bytes more with each episode, which ends with its second step."""

    observation_space = Box(0, 1, (1,), np.float64)
    action_space = Discrete(2)

    def __init__(self, leak=0, log=None):
        self.kept = []
        self.leak, self.log = leak, log
        self.steps = 0

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - Gymnasium's signature
        super().reset(seed=seed)
        self.kept.append(np.ones(self.leak, np.uint8))
        self.steps = 0
        memory = memory_of_this_process()
        info = {"pid": os.getpid(), "episode": len(self.kept), "memory": memory}
        return self.np_random.random(1), info

    def step(self, action):  # noqa: ARG002 - Gymnasium's signature
        self.steps += 1
        return np.zeros(1), 1.0, self.steps == 2, False, {"pid": os.getpid()}

    def close(self):
        if self.log is not None:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(f"{os.getpid()}\n")


class ClosesItsStreams(Leaks):
    """Closes the streams of its process, and then exits."""

    def close(self):
        sys.stdout.close()
        sys.stderr.close()
        sys.exit("bye")


async def outcome(awaitable):
    """The result, or the exception."""
    try:
        return await awaitable
    except Exception as error:
        return error


@contextlib.asynccontextmanager
async def opened(env_fns, **keywords):
    """``AwaitableEnvs`` of workers with the usual priority, closed in the end."""
    async with cartwheel.AwaitableEnvs(env_fns, worker_nice=0, **keywords) as envs:
        yield envs


def limit(envs, seconds):
    """Requests may take so many seconds from now on.

    So only what hangs is short of time, and nothing else depends on how busy the machine is.
    """
    limit_waits(envs, seconds)
    service, policy = envs._rows.service, envs._rows._policy
    service._settings = dataclasses.replace(service._settings, policy=policy)


def limit_waits(envs, seconds):
    """Requests may wait so many seconds for a row that was late, from now on."""
    envs._rows._policy = dataclasses.replace(envs._rows._policy, timeout=seconds)


async def sent(envs, row):
    """Waits until the request of a task was sent to its row, where its time runs."""
    await turns()
    while not envs._rows._rows[row].current.deadline:
        await asyncio.sleep(0.001)


async def turns():
    """Lets the loop turn some times."""
    for _ in range(3):
        await asyncio.sleep(0)
