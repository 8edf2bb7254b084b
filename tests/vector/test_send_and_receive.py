"""Rows that are sent and received in parts give Gymnasium's results, in any order of arrival."""

import time
from functools import partial
from multiprocessing import TimeoutError

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text, Tuple
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import cartwheel
from tests.support.cases import POLE, Case
from tests.support.environments import (
    NAMES,
    LargeNestedEnv,
    NestedEnv,
    SamplingEnv,
    TranscriptEnv,
)
from tests.support.executors import Executor, Native
from tests.support.in_parts import Oracle, play_in_parts
from tests.support.oracle import MODE

#: Executor, number of environments, batch size: one environment, one row per batch, batches that do
#: not divide the environments, more workers than processors, all rows in each batch.
SETTINGS = [
    (Executor("inline"), 1, 1),
    (Executor("inline"), 7, 1),
    (Executor("inline"), 7, 3),
    (Executor("inline"), 7, 7),
    (Executor("thread", {"num_workers": 1}), 1, 1),
    (Executor("thread", {"num_workers": 2}), 7, 3),
    (Executor("thread", {"num_workers": 7}), 7, 1),
    (Executor("thread", {"num_workers": 7}), 9, 9),
    (Executor("process", {"num_workers": 1}), 1, 1),
    (Executor("process", {"num_workers": 1}), 5, 2),
    (Executor("process", {"num_workers": 2}), 7, 3),
    (Executor("process", {"num_workers": 2}), 7, 7),
    (Executor("process", {"num_workers": 7}), 7, 1),
    (Executor("process", {"num_workers": 7}), 9, 4),
]
FEW_SETTINGS = pytest.mark.parametrize(
    ("executor", "num_envs", "batch_size"), [SETTINGS[2], SETTINGS[5], SETTINGS[10]], ids=str
)


class UnevenEnv(gym.Wrapper):
    """Each step takes a random time, so that rows overtake each other."""

    def step(self, action):
        time.sleep(np.random.default_rng().exponential(2e-4))
        return super().step(action)


def uneven(env_fn, length):
    return UnevenEnv(TimeLimit(env_fn(), length))


class TalkingEnv(TranscriptEnv):
    """Infos of every kind: some in every step, some in a few, some too large for shared memory."""

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        info |= {"half": self.t / 2, "text": "x" * self.t, "array": np.arange(3) + self.t}
        info |= {"nested": {"deep": {"t": self.t}}, "object": [None, self.t], "flag": self.t == 2}
        if self.t % 2:
            info["mixed"] = self.t if action % 2 else self.t / 2  # the first one decides the dtype
        if self.t % 3 == 0:
            info["large"] = np.full(20_000, self.t)
        if self.t % 4 == 0:
            info |= {7: "no text for a key", "set": {self.t}}
        return obs, reward, terminated, truncated, info


NAMED = Dict(name=NAMES, pair=Tuple([Box(-1, 1, (2,), np.float64), Text(3)]))
KINDS = {
    "nested": partial(uneven, NestedEnv, 5),
    "views": partial(uneven, LargeNestedEnv, 5),  # large enough not to be copied
    "short": partial(uneven, partial(TranscriptEnv, 3), 3),
    "one step long": partial(uneven, partial(TranscriptEnv, 1), 3),
    "talking": partial(uneven, partial(TalkingEnv, 9), 7),
    "without a fixed shape": partial(
        uneven, partial(SamplingEnv, NAMED, action_space=Dict(say=NAMES, go=Discrete(3))), 3
    ),
}


@pytest.fixture
def play():
    """Plays in parts with the oracle; closes both after the test."""
    built = []

    def play(envs, env_fns, *, results, seed=0, vector_class=SyncVectorEnv):
        oracle = Oracle(env_fns, envs.autoreset_mode, vector_class)
        built.extend([envs, oracle])
        return play_in_parts(envs, oracle, results=results, seed=seed)

    yield play
    for made in built:
        made.close()


#: Native rows: short episodes, of one step too; infos or none; one array or several.
NATIVE_CASES = [
    Case("CartPole-v1", {"max_episode_steps": 5}),
    Case("Pendulum-v1", {"max_episode_steps": 1}),
    Case("Blackjack-v1"),
    Case("Taxi-v4", {"max_episode_steps": 6}),
]
NATIVE_SETTINGS = [
    (Native("native", {"num_workers": num_workers}), num_envs, batch_size)
    for num_workers, num_envs, batch_size in [
        (1, 1, 1),
        (2, 7, 7),
        (1, 7, 3),
        (7, 7, 1),
        (3, 20, 8),
    ]
]
ROWS = [
    *[
        (kind, KINDS[kind], *setting)
        for setting in SETTINGS
        for kind in ("nested", "one step long")
    ],
    *[(str(case), case, *setting) for setting in NATIVE_SETTINGS for case in NATIVE_CASES],
]


@MODE
@pytest.mark.parametrize(
    ("env_fn", "executor", "num_envs", "batch_size"),
    [pytest.param(*rest, id="-".join(map(str, [name, *rest[1:]]))) for name, *rest in ROWS],
)
def test_every_batch_equals_that_of_sync_vector_env(
    play, env_fn, executor, num_envs, batch_size, mode
):
    env_fns = [env_fn] * num_envs
    envs = executor(env_fns, autoreset_mode=mode, batch_size=batch_size)
    received = play(envs, env_fns, results=16)
    assert sum((result[2] | result[3]).sum() for result in received) >= num_envs


@MODE
@FEW_SETTINGS
@pytest.mark.parametrize("kind", ["views", "short", "talking", "without a fixed shape"])
def test_every_kind_of_observation_and_info_is_received(
    play, kind, executor, num_envs, batch_size, mode
):
    env_fns = [KINDS[kind]] * num_envs
    play(executor(env_fns, autoreset_mode=mode, batch_size=batch_size), env_fns, results=20, seed=1)


class OwnInfosEnv(cartwheel.VectorEnv):
    def _add_info(self, vector_infos, env_info, env_num):
        return own_infos(vector_infos, env_info, env_num)


class OwnInfosOracle(SyncVectorEnv):
    def _add_info(self, vector_infos, env_info, env_num):
        return own_infos(vector_infos, env_info, env_num)


def own_infos(vector_infos, env_info, env_num):
    vector_infos.setdefault("rows", {})[env_num] = env_info
    return vector_infos


@FEW_SETTINGS
def test_a_subclass_may_batch_infos_its_own_way(play, executor, num_envs, batch_size):
    env_fns = [KINDS["talking"]] * num_envs
    envs = OwnInfosEnv(env_fns, batch_size=batch_size, executor=executor.name, **executor.keywords)
    play(envs, env_fns, results=8, vector_class=OwnInfosOracle)


def test_rows_are_in_flight_until_they_are_received(build_workers, gates):
    envs = build_workers(gates.env_fns(3))
    envs.reset()
    assert envs.in_flight == []
    envs.send([0, 1, 0])
    assert envs.in_flight == [0, 1, 2]
    with pytest.raises(TimeoutError, match=r"^The call to `recv` has timed out after 0\.05 "):
        envs.recv(timeout=0.05)
    assert envs.in_flight == [0, 1, 2]
    gates.open(1)
    envs.recv()
    assert envs.in_flight == []
    envs.step_async([0, 0, 0])
    assert envs.in_flight == []
    envs.step_wait()


def test_rows_in_flight_are_listed_in_every_kind(build_any):
    envs = build_any([POLE] * 3)
    for calling in (lambda: envs.send([0, 1, 0]), envs.send_reset):
        envs.reset()
        calling()
        assert envs.in_flight == [0, 1, 2]
        envs.recv()
        assert envs.in_flight == []
    envs.send([0], [1])
    assert envs.in_flight == [1]
    envs.recv()
