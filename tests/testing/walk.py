"""An environment that behaves; the tests break it in one way each."""

import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import cartwheel
from cartwheel.testing import CHECKS, EnvCheckError, check_vector_env


class Walk(gym.Env):
    """A random walk with a nested observation, infos, both kinds of ends and two render modes."""

    metadata = {"render_modes": ["rgb_array", "ansi"]}  # noqa: RUF012 - as Gymnasium has it
    observation_space = Dict(pos=Box(-40, 40, (2,), np.float32), clock=Discrete(21))
    action_space = Discrete(3)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.pos, self.t = np.zeros(2, np.float32), 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.pos, self.t = self.np_random.uniform(-1, 1, 2).astype(np.float32), 0
        return self.observe(), {"t": 0, "speed": 0.0}

    def step(self, action):
        self.t += 1
        change = self.np_random.uniform(-1, 1) * (int(action) - 1)
        self.pos = (self.pos + np.float32(change)).astype(np.float32)
        over = bool(self.np_random.random() < 0.1)
        return self.observe(), float(change), over, self.t == 20, self.info(change)

    def observe(self):
        return {"pos": self.pos.copy(), "clock": self.t}

    def info(self, change):
        return {"t": self.t, "speed": abs(change), 3: self.t}  # not every key is a text

    def render(self):
        if self.render_mode == "ansi":
            return f"{self.pos} at {self.t}"
        return np.full((4, 5, 3), self.t, np.uint8)


def walks(kind=Walk, **keywords):
    """Rows of a kind of walk, in this thread."""
    return cartwheel.VectorEnv([kind] * 3, executor="inline", **keywords)


def only(*names):
    """The argument ``skip`` that leaves these checks."""
    return [name for name in CHECKS if name not in names]


def failure(envs, *checks, **keywords):
    """The error of a vector environment, which is closed."""
    skip = only(*checks) if checks else ()
    try:
        with pytest.raises(EnvCheckError) as caught:
            check_vector_env(envs, skip=skip, **keywords)
    finally:
        envs.close()
    return caught.value


def assert_fails(envs, check, text, remedy):
    """The check fails: the pattern ``text`` says where, and ``remedy`` is in the advice."""
    error = failure(envs, check)
    finding, advice = str(error).split("\n")
    assert re.search(text, finding), finding
    assert remedy in advice, advice
    assert error.check == check
    assert finding.startswith(f"{error.env} fails the check {check!r}: ")


def assert_passes(envs, *checks, **keywords):
    """These checks pass, and none is skipped."""
    report = check_vector_env(envs, skip=only(*checks), **keywords)
    envs.close()
    assert set(report.passed) == set(checks)
