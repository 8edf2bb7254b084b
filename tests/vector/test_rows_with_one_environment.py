"""Functions that return one and the same environment for several rows are refused, by both rows.

Otherwise one object would be stepped for several rows, and results would depend on the number of
workers.
"""

import functools
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit, TransformReward

import cartwheel
from tests.support.executors import EVERY_EXECUTOR, Executor

REFUSED = (
    r"^env_fns\[{}\] and env_fns\[{}\] returned the same environment: each call has to make a new "
    r"one, as `lambda: gymnasium.make\(…\)` does and `lambda: env` does not"
)


class Counter(gym.Env):
    """Shows how often it was stepped."""

    observation_space = gym.spaces.Box(0, 1e6, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, simulator=None):
        self.simulator = simulator
        self.t = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += int(action)
        return np.full(1, self.t, np.float32), 0.0, False, False, {}


ONE = Counter()


class Holder:
    def __init__(self):
        self.env = Counter()

    def make(self):
        return self.env

    __call__ = make


def others(count=2):
    return [partial(lambda env: env, Counter()) for _ in range(count)]


def in_closure():
    env = Counter()
    return [lambda: env for _ in range(2)]


def one_global():
    return [lambda: ONE, lambda: ONE]


def in_a_list():
    envs = [Counter(), Counter()]
    return [lambda: envs[1], lambda: envs[-1]]


def in_an_inner_function():
    env = Counter()

    def get():
        return env

    return [lambda: get(), lambda: (lambda: get())()]


def wrapped_apart():
    env = Counter()
    return [lambda: TimeLimit(env, 9), lambda: TransformReward(env, float)]


def by_keyword():
    env = Counter()
    return [partial(lambda *, env: env, env=env)] * 2


WAYS = {
    "closure": in_closure,
    "default": lambda: [lambda env=ONE: env] * 2,
    "global": one_global,
    "list": in_a_list,
    "function": in_an_inner_function,
    "method": lambda: [Holder().make] * 2,
    "object": lambda: [Holder()] * 2,
    "partial": lambda: [partial(lambda env: env, Counter())] * 2,
    "keyword": by_keyword,
    "wrappers": wrapped_apart,
}
SPAWN = [
    Executor("process", {"num_workers": 1, "context": "spawn"}),
    pytest.param(
        Executor("process", {"num_workers": 4, "context": "spawn"}), marks=pytest.mark.slow
    ),
]


@pytest.mark.parametrize("executor", [*EVERY_EXECUTOR, *SPAWN], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_one_environment_of_two_rows_is_refused_whichever_worker_has_them(way, executor):
    first, second = WAYS[way]()
    a, b = others()
    with pytest.raises(ValueError, match=REFUSED.format(1, 3)):
        executor([a, first, b, second])


@pytest.mark.parametrize("executor", EVERY_EXECUTOR, ids=str)
def test_the_error_does_not_depend_on_the_number_of_workers(executor):
    env = Counter()
    with pytest.raises(ValueError, match=REFUSED.format(0, 1)):
        executor([lambda: env] * 7)
    assert env.t == 0, "nothing was stepped"


@pytest.mark.parametrize("name", ["inline", "thread", "process"])
def test_an_environment_that_a_function_remembers_is_refused(name):
    make = functools.lru_cache(Counter)
    keywords = {"context": "fork"} if name == "process" else {}  # which need not pickle it
    with pytest.raises(ValueError, match=REFUSED.format(0, 1)):
        cartwheel.VectorEnv([make] * 2, executor=name, num_workers=1, **keywords)
    if name == "thread":
        with pytest.raises(ValueError, match=REFUSED.format(0, 1)):
            cartwheel.VectorEnv([make] * 2, executor=name, num_workers=2)


class Part(gym.Wrapper):
    """Has a step and a reset of its own: one row of a simulation that rows share."""

    t = 0

    def reset(self, **_):
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += int(action)
        return np.full(1, self.t, np.float32), 0.0, False, False, {}


def remembered():
    made = []

    def make():
        made.append(Counter())
        return made[-1]

    return [make] * 4


def of_one_simulator():
    simulator = object()
    return [lambda: Counter(simulator)] * 4


def parts_of_one():
    env = Counter()
    return [lambda: Part(env)] * 4


HEALTHY = {
    "made before": lambda: others(4),
    "wrapped": lambda: [lambda: TimeLimit(TransformReward(Counter(), float), 9)] * 4,
    "remembered in a list": remembered,
    "of one simulator": of_one_simulator,
    "parts of one environment": parts_of_one,
    "from a template": lambda: [lambda: type(ONE)()] * 4,
}


@pytest.mark.parametrize("executor", [*EVERY_EXECUTOR, *SPAWN], ids=str)
@pytest.mark.parametrize("kind", HEALTHY)
def test_environments_of_their_own_are_stepped_apart(kind, executor):
    envs = executor(HEALTHY[kind]())
    envs.reset(seed=1)
    for step in range(1, 4):
        seen = envs.step(np.array([0, 1, 0, 1]))[0]
        assert seen[:, 0].tolist() == [0, step, 0, step]
    envs.close()
