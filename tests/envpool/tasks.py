"""Tasks for the tests of ``cartwheel.envpool``."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from cartwheel import envpool
from tests.envpool.parallel_env import CountdownEnv, CurtCountdownEnv
from tests.support.environments import NestedEnv, RecordingEnv, TranscriptEnv
from tests.support.gates import GatedEnv

TRANSCRIPT, NESTED, RECORDING = "tests/Transcript-v0", "tests/Nested-v0", "tests/Recording-v0"
FAILING = "tests/Failing-v0"
COUNTDOWN, CURT_COUNTDOWN = "tests/Countdown-v0", "tests/CurtCountdown-v0"
KEYED, GATED, SHOWN = "tests/Keyed-v0", "tests/Gated-v0", "tests/Shown-v0"


class FailingEnv(TranscriptEnv):
    """Raises when its action is 9."""

    def step(self, action):
        if action == 9:
            raise RuntimeError("nine")
        return super().step(action)


class ShownEnv(TranscriptEnv):
    """A transcript whose observation is a dict with the same array under each key."""

    def __init__(self, keys):
        super().__init__(10)
        self.observation_space = Dict({key: Box(-np.inf, np.inf, (1,)) for key in keys})

    def observe(self):
        return dict.fromkeys(self.observation_space, super().observe())


def make_keyed():
    """An environment with two action keys, one of them nested."""
    space = Dict(a=Discrete(5), b=Dict(c=Box(-1, 1, (2,), np.float32), d=MultiDiscrete([3, 4])))
    return RecordingEnv(space)


envpool.register(TRANSCRIPT, TranscriptEnv)
envpool.register(NESTED, NestedEnv)
envpool.register(RECORDING, RecordingEnv)
envpool.register(FAILING, FailingEnv)
envpool.register(GATED, GatedEnv)
envpool.register(KEYED, make_keyed)
envpool.register(SHOWN, ShownEnv)
envpool.register(COUNTDOWN, CountdownEnv, parallel=True)
envpool.register(CURT_COUNTDOWN, CurtCountdownEnv, parallel=True)


def single(env_id, seed, **keywords):
    """Gymnasium's environment, and the observation of its first reset."""
    env = gym.make(env_id, **keywords)
    return env, env.reset(seed=seed)[0]
