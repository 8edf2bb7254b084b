"""Steps return what those of Stable-Baselines3's DummyVecEnv return."""

import importlib
from copy import deepcopy
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from tests.support.cases import POLE, SHORT
from tests.support.comparison import assert_identical
from tests.support.environments import (
    BufferReusingEnv,
    RecordingEnv,
    TranscriptEnv,
    samplers,
    transcripts,
)
from tests.support.vec_envs import assert_same_reset, assert_same_steps, native

pytestmark = pytest.mark.torch

PARTS = {
    "box": Box(-1, 1, (2, 3), np.float32),
    "count": Discrete(5),
    "many": MultiDiscrete([3, 4]),
    "bits": MultiBinary(4),
    "pixels": Box(0, 255, (60, 80, 3), np.uint8),  # so large that batches are views
}
BOX, DICT, TUPLE = PARTS["box"], Dict(PARTS), Tuple(list(PARTS.values()))
ENVS = {
    "both ends": [*transcripts(3, 4, truncates=True), *transcripts(2, 5)],
    "truncated": transcripts(2, 3, 4, terminates=False, truncates=True),
    "all over at once": transcripts(1, 1, 1),
    "one row": transcripts(3),
    "dict": samplers(DICT, 3),
    "tuple": samplers(TUPLE, 3),
    "actions in a dict": samplers(BOX, 3, action_space=DICT),
    "actions in a tuple": samplers(BOX, 3, action_space=TUPLE),
}


@pytest.mark.parametrize("name", ENVS)
def test_python_rows_equal_those_of_DummyVecEnv(build, dummy, name):
    check_against(build, dummy, ENVS[name])


def test_python_rows_do_not_depend_on_the_number_of_workers(build_everywhere, dummy):
    check_against(build_everywhere, dummy, ENVS["both ends"])


def check_against(build, dummy, env_fns):
    envs, oracle = build(env_fns), dummy(env_fns)
    for each in (envs, oracle):
        each.seed(7)
    for steps in (12, 6):
        assert_same_reset(envs, oracle)
        assert assert_same_steps(envs, oracle, steps)


@pytest.mark.parametrize("case", SHORT, ids=str)
def test_native_rows_equal_monitored_environments_of_gymnasium(dummy, case):
    monitor = importlib.import_module("stable_baselines3.common.monitor").Monitor
    for num_envs, keywords in [(1, {}), (5, {"num_workers": 2}), (5, {"executor": "inline"})]:
        oracle = dummy([lambda: monitor(case())] * num_envs)
        envs = native(case, num_envs, monitor=True, **keywords)
        for each in (envs, oracle):
            each.seed(7)
        for steps in (40, 20):
            assert_same_reset(envs, oracle)
            assert assert_same_steps(envs, oracle, steps)
        envs.close()


class SaysThatItDidNotFail(gym.Wrapper):
    """Has infos with the names of those of rows that failed."""

    def step(self, action):
        *rest, info = super().step(action)
        return *rest, info | {"env_error": True, "worker_restarted": False}


@pytest.mark.parametrize("env_fn", [POLE, lambda: SaysThatItDidNotFail(POLE())])
def test_python_rows_report_episodes_as_a_monitor_does(build, dummy, env_fn):
    monitor = importlib.import_module("stable_baselines3.common.monitor").Monitor
    envs = build([env_fn] * 3, monitor=True)
    oracle = dummy([lambda: monitor(env_fn())] * 3)
    for each in (envs, oracle):
        each.seed(7)
    assert_same_reset(envs, oracle)
    assert assert_same_steps(envs, oracle, 60)
    assert_same_reset(envs, oracle)  # in the middle of episodes, which begin anew
    assert assert_same_steps(envs, oracle, 60)


def test_the_seconds_of_an_episode_count_from_the_beginning():
    envs = native(POLE, 1, monitor=True, max_episode_steps=2)
    envs.reset()
    times = [envs.step([0])[3][0].get("episode", {}).get("t") for _ in range(6)]
    assert times[::2] == [None] * 3
    ends = times[1::2]
    assert ends == sorted(ends)
    assert all(time == round(time, 6) >= 0 for time in ends)
    envs.close()


def test_reported_episodes_begin_anew_when_a_state_is_loaded(build):
    envs = build(transcripts(5, 5), monitor=True, states="pickle")
    envs.reset()
    for _ in range(2):
        envs.step([1, 2])
    state = envs.state_dict()
    envs.step([1, 2])
    assert envs.load_state_dict(state).tolist() == [[2], [2]]
    infos = [envs.step([3, 4])[3] for _ in range(3)][-1]
    assert [info["episode"]["l"] for info in infos] == [3, 3]
    assert [info["episode"]["r"] for info in infos] == [9, 12]


def test_a_step_in_two_halves_equals_a_whole_one(build):
    envs, halves = build(transcripts(2, 3)), build(transcripts(2, 3))
    for each in (envs, halves):
        each.reset()
    for _ in range(7):
        whole = envs.step([1, 2])
        halves.step_async([1, 2])
        assert_identical(halves.step_wait(), whole)
        assert_identical(halves.reset_infos, envs.reset_infos)


def test_flags_in_infos_are_of_python(build):
    envs = build(transcripts(1, 2, terminates=False, truncates=True))
    envs.reset()
    for _ in range(3):
        _, _, dones, infos = envs.step([0, 0])
        assert [info["TimeLimit.truncated"] for info in infos] == dones.tolist()
        assert {type(info["TimeLimit.truncated"]) for info in infos} == {bool}


@pytest.mark.parametrize("large", [False, True])
def test_results_belong_to_the_caller(build, large):
    env_fns = samplers(PARTS["pixels"] if large else BOX, 3)
    written, untouched = build(env_fns), build(env_fns)
    for each in (written, untouched):
        each.seed(7)
        each.reset()
    results, copies = [], []
    for _ in range(12):
        results.append(written.step([0, 0, 0]))
        copies.append(deepcopy(results[-1]))
        assert_identical(copies[-1], untouched.step([0, 0, 0]))
    assert_identical(results, copies)
    for observations, rewards, dones, infos in results:
        rewards += 1  # as PPO does to bootstrap
        observations[:], dones[:] = 0, True
        for info in infos:
            info.clear()
    assert_identical(written.step([0, 0, 0]), untouched.step([0, 0, 0]))


def test_infos_and_terminal_observations_are_copies_of_what_environments_write_again(build):
    flat = build([partial(FlatBufferReusingEnv, 2)])
    flat.reset()
    first, second = flat.step([0])[3], flat.step([0])[3]
    (info,) = second
    assert first[0]["list"] == [1]
    assert first[0]["set"] == {1}
    assert (info["list"], info["set"]) == ([2], {2})
    assert info["terminal_observation"].tolist() == [2]
    assert flat.reset_infos[0]["list"] == [0]
    flat.step([0])
    assert (info["list"], info["set"], info["objects"].tolist()) == ([2], {2}, [None, 2])
    assert info["terminal_observation"].tolist() == [2]


class FlatBufferReusingEnv(gym.ObservationWrapper):
    """One part of the observation."""

    def __init__(self, length):
        super().__init__(BufferReusingEnv(length))
        self.observation_space = self.env.observation_space["t"]

    def observation(self, observation):
        return observation["t"]


class OddInfosEnv(TranscriptEnv):
    """Infos for which a batch has no columns."""

    INFOS = (
        {"a": 1, "_a": 2},
        {"a": 0.5, "deep": {"er": [1, (2, None)], "none": None}},
        {1: "a number as key", "frozen": frozenset({1})},
        {"final_obs": "of its own", "final_info": 3, "big": 2**70},
        {"terminal": np.float32(0.1), "array": np.arange(3, dtype=">i4"), "text": "\ud800"},
    )

    def __init__(self):
        super().__init__(4)

    def reset(self, **keywords):
        observation, _ = super().reset(**keywords)
        return observation, deepcopy(self.INFOS[self.episodes % len(self.INFOS)])

    def step(self, action):
        *rest, _ = super().step(action)
        return *rest, deepcopy(self.INFOS[(self.t + self.episodes) % len(self.INFOS)])


def test_infos_of_every_kind_are_those_of_DummyVecEnv(build, dummy):
    check_against(build, dummy, [OddInfosEnv] * 3)


def test_infos_that_do_not_fit_into_shared_memory_arrive(build):
    envs = build([LongInfosEnv] * 2)
    envs.reset()
    assert [info["long"] for info in envs.reset_infos] == ["r" * 300_000] * 2
    infos = envs.step([0, 0])[3]
    assert [info["long"] for info in infos] == ["s" * 300_000] * 2
    assert [info["long"] for info in envs.reset_infos] == ["r" * 300_000] * 2


class LongInfosEnv(TranscriptEnv):
    """Episodes of one step with infos of 300 kB."""

    def __init__(self):
        super().__init__(1)

    def reset(self, **keywords):
        return super().reset(**keywords)[0], {"long": "r" * 300_000}

    def step(self, action):
        return *super().step(action)[:4], {"long": "s" * 300_000}


@pytest.mark.parametrize("space", [MultiBinary(3), MultiDiscrete([2, 2, 2]), Discrete(2)], ids=str)
def test_whole_floats_are_actions_of_integers(build, space):
    envs = build([partial(RecordingEnv, space)] * 2)
    envs.reset()
    floats = np.ones((2, *space.shape), np.float32)
    envs.step(floats)
    assert_identical(envs.get_attr("held"), list(floats.astype(space.dtype)))
    stepped = envs.get_attr("actions")
    for begin in (envs.step, envs.step_async):  # wrappers of Stable-Baselines3 call the second one
        for wrong in (floats / 2, floats * np.nan):
            with pytest.raises(ValueError, match="must be whole numbers"):
                begin(wrong)
    assert_identical(envs.get_attr("actions"), stepped)
    envs.step_async(floats * 0)
    envs.step_wait()
    assert_identical(envs.get_attr("held"), list(np.zeros_like(floats, space.dtype)))


def test_double_floats_are_actions_of_floats(build_inline):
    envs = build_inline([partial(RecordingEnv, BOX)] * 2)
    envs.reset()
    doubles = np.full((2, *BOX.shape), 0.1)  # which no single float equals
    envs.step(doubles)
    np.testing.assert_allclose(envs.get_attr("held"), doubles, rtol=1e-6)


def test_actions_of_the_wrong_number_are_refused_before_anything_is_stepped(build):
    for space in (Discrete(3), DICT):
        envs = build(samplers(BOX, 3, action_space=space))
        envs.reset()
        with pytest.raises(ValueError, match="expected 3 actions"):
            envs.step([space.sample()] * 2)
        assert envs.get_attr("t") == [0, 0, 0]
