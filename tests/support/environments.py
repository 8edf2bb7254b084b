"""Environments whose results are known in advance."""
# ruff: noqa: ARG001, ARG002 (signatures are Gymnasium's, whether an environment needs them or not)

import gc
import os
import time
from copy import deepcopy
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Text, Tuple
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate


def was_asked_for_its_dict(one):
    """Whether an object was asked for its ``__dict__``, as it is by this function."""
    known = gc.get_referents(one)
    return any(vars(one) is other for other in known)


class TranscriptEnv(gym.Env):
    """The environment of the tests with hand-written expected results.

    Observation: steps since the reset. Reward: the action. Episodes have ``length`` steps. Infos:
    ``{"t": steps}`` from a step, ``{"ep": episodes, "opt": str(options)}`` from a reset.
    """

    action_space: Space = Discrete(10)
    observation_space: Space = Box(-np.inf, np.inf, (1,), np.float32)

    def __init__(self, length, *, terminates=True, truncates=False):
        self.length, self.terminates, self.truncates = length, terminates, truncates
        self.t, self.episodes = 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.episodes = 0, self.episodes + 1
        return self.observe(), {"ep": self.episodes, "opt": str(options)}

    def step(self, action):
        self.t += 1
        over = self.t >= self.length
        flags = over and self.terminates, over and self.truncates
        return self.observe(), float(action), *flags, {"t": self.t}

    def observe(self):
        return np.array([self.t], np.float32)


def transcripts(*lengths, **flags):
    """Functions that build a :class:`TranscriptEnv` of each length."""
    return [partial(TranscriptEnv, length, **flags) for length in lengths]


class Untouched(gym.Wrapper):
    """Fails if it is reset."""

    def reset(self, **_):
        raise AssertionError("was reset")


class BufferReusingEnv(TranscriptEnv):
    """Returns the same objects every time, overwritten by each step and each reset."""

    observation_space = Dict(
        t=Box(-np.inf, np.inf, (1,), np.float32),
        nested=Tuple([Box(0, 255, (2, 2), np.uint8), Discrete(100)]),
    )

    def __init__(self, length):
        super().__init__(length)
        self.obs = {
            "t": np.zeros(1, np.float32),
            "nested": (np.zeros((2, 2), np.uint8), np.zeros((), np.int64)),
        }
        self.info = {
            "array": np.zeros(2, np.int32),
            "nested": {"array": np.zeros(1, np.float64)},
            "list": [0],
            "set": {0},
            "dates": np.zeros(1, "M8[D]"),
            "objects": np.array([None, 0]),
        }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return self.observe(), self.info

    def step(self, action):
        _obs, reward, terminated, truncated, _info = super().step(action)
        return self.obs, reward, terminated, truncated, self.info

    def observe(self):
        self.obs["t"][:] = self.t
        for leaf in self.obs["nested"]:
            leaf[...] = self.t
        self.info["array"][:] = self.t
        self.info["nested"]["array"][:] = self.t
        self.info["list"][0] = self.t
        self.info["set"].clear()
        self.info["set"].add(self.t)
        self.info["dates"][:] = np.datetime64(self.t, "D")
        self.info["objects"][1] = self.t
        return self.obs


class PuppetEnv(gym.Env):
    """Returns the values of its attributes, which tests change with ``set_attr``."""

    def __init__(self, observation_space, observation, action_space=None):
        self.observation_space = observation_space
        self.action_space = Discrete(2) if action_space is None else action_space
        self.reset_frame = (observation, {})
        self.frame = (observation, 0.0, False, False, {})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.reset_frame

    def step(self, action):
        return self.frame


def scalar_puppets(num_envs):
    return [partial(PuppetEnv, Box(-1, 1, (), np.float32), np.float32(0))] * num_envs


class SamplingEnv(gym.Env):
    """Observations are samples of its space; each row has its own seed and episode length."""

    def __init__(self, observation_space, *, action_space=None, row=0, length=None):
        self.observation_space = observation_space
        self.action_space = Discrete(3) if action_space is None else action_space
        self.row, self.length = row, 3 + row if length is None else length
        self.t, self.received = 0, None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        self.source = deepcopy(self.observation_space)
        self.source.seed(int(self.np_random.integers(2**31)))
        return self.source.sample(), {"options": options}

    def step(self, action):
        self.t += 1
        self.received = action
        return self.source.sample(), self.t / 8, self.t == self.length, False, {"t": self.t}


def samplers(observation_space, num_envs, **keywords):
    return [partial(SamplingEnv, observation_space, row=row, **keywords) for row in range(num_envs)]


class NestedEnv(gym.Env):
    """A random walk seen through nested Dict and Tuple spaces, with infos of every common kind."""

    action_space = Discrete(3)
    observation_space = Dict(
        walk=Box(-np.inf, np.inf, (2, 3), np.float64),
        state=Tuple([Discrete(1000), MultiBinary(5), Dict(clock=MultiDiscrete([500, 7]))]),
        pixels=Box(0, 255, (4, 4, 3), np.uint8),
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.walk = 0, self.np_random.normal(size=(2, 3))
        return self.observe(), {"options": str(options), "start": float(self.walk[0, 0])}

    def step(self, action):
        self.t += 1
        self.walk = self.walk + (int(action) - 1) * self.np_random.normal(size=(2, 3))
        terminated = bool(self.np_random.random() < 0.05)
        info = {"t": self.t, "sign": np.sign(self.walk[0]), "deep": {"mean": self.walk.mean()}}
        if self.t % 3 == 0:
            info["rare"] = f"at {self.t}"
        return self.observe(), self.walk.sum(), terminated, self.t == 40, info

    def observe(self):
        return {
            "walk": self.walk,
            "state": (
                self.t,
                (self.walk.reshape(-1)[:5] > 0).astype(np.int8),
                {"clock": np.array([self.t, self.t % 7])},
            ),
            "pixels": self.np_random.integers(0, 256, (4, 4, 3), dtype=np.uint8),
        }


class LargeEnv(gym.Env):
    """Its observation is a mebibyte, all equal to the number of steps."""

    observation_space = Box(0, 255, (1024, 1024), np.uint8)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.steps = 0
        return self.observe(), {}

    def step(self, action):
        self.steps += 1
        return self.observe(), 0.0, False, False, {}

    def observe(self):
        return np.full(self.observation_space.shape, self.steps, np.uint8)


class LargeNestedEnv(NestedEnv):
    """The same with so many pixels that batches are not copied."""

    observation_space = Dict(
        {**NestedEnv.observation_space, "pixels": Box(0, 255, (60, 80, 3), np.uint8)}
    )

    def observe(self):
        pixels = self.np_random.integers(0, 256, (60, 80, 3), dtype=np.uint8)
        return super().observe() | {"pixels": pixels}


class RecordingEnv(gym.Env):
    """Records its arguments: ``actions`` and ``resets`` in order, the last action in ``held``."""

    observation_space = Box(-np.inf, np.inf, (1,), np.float32)

    def __init__(self, action_space=None, *, scribbles=False):
        self.action_space = Discrete(10) if action_space is None else action_space
        self.scribbles = scribbles
        self.actions, self.resets, self.held = [], [], None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets.append((seed, deepcopy(options)))
        if self.scribbles and options is not None:
            options["scribble"] = True
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.actions.append(deepcopy(action))
        self.held = action
        if self.scribbles:
            action[...] = 0
        return np.array([len(self.actions)], np.float32), 0.0, False, False, {}


class SleepingEnv(TranscriptEnv):
    """Sleeps for ``action`` seconds, and reports when the sleep started and ended."""

    action_space = Box(0, np.inf, (), np.float64)

    def __init__(self):
        super().__init__(length=1000)

    def reset(self, *, seed=None, options=None):
        started = time.monotonic()
        obs, _info = super().reset(seed=seed, options=options)
        return obs, {"started": started, "ended": time.monotonic()}

    def step(self, action):
        started = time.monotonic()
        time.sleep(float(action))
        obs, reward, terminated, truncated, info = super().step(action)
        info |= {"started": started, "ended": time.monotonic()}
        return obs, reward, terminated, truncated, info

    def sleep(self, seconds):
        time.sleep(seconds)
        return seconds


class CountedEnv(TranscriptEnv):
    """Appends its process id to a file when it is built, and again when it is closed."""

    def __init__(self, path):
        super().__init__(length=3)
        self.path = Path(path)
        self.note("built")

    def note(self, event):
        with self.path.open("a") as file:
            file.write(f"{event} {os.getpid()}\n")

    def close(self):
        self.note("closed")


class Complex(Space):
    """A space that Gymnasium does not know: one complex number."""

    def __init__(self, seed=None):
        super().__init__((), np.complex64, seed)

    def sample(self, mask=None, probability=None):
        real, imag = self.np_random.normal(size=2)
        return complex(real, imag)

    def contains(self, x):
        return isinstance(x, complex)

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))


class RegisteredComplex(Complex):
    """The same, registered with Gymnasium: a batch is a complex64 array ``(num_envs,)``."""


class ComplexBatch(Space):
    def __init__(self, num_envs, seed=None):
        super().__init__((num_envs,), np.complex64, seed)

    def sample(self, mask=None, probability=None):
        return self.np_random.normal(size=self.shape).astype(np.complex64) * (1 + 1j)

    def contains(self, x):
        return isinstance(x, np.ndarray) and x.shape == self.shape and x.dtype == self.dtype

    def __eq__(self, other):
        return type(self) is type(other) and self.shape == other.shape

    def __hash__(self):
        return hash(type(self))


@batch_space.register(RegisteredComplex)
def _(space, n=1):
    return ComplexBatch(n, deepcopy(space.np_random))


@create_empty_array.register(RegisteredComplex)
def _(space, n=1, fn=np.zeros):
    return fn((n, *space.shape), dtype=space.dtype)


@concatenate.register(RegisteredComplex)
def _(space, items, out):
    out[:] = [item * 2 for item in items]  # doubled, so that a test sees that this function ran
    return out


@iterate.register(ComplexBatch)
def _(space, items):
    return (complex(item) for item in items)


NAMES = Text(6, min_length=1, charset="abcdef")
