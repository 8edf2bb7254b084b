"""`AutoresetAdapter` gives what environments give that are made with the autoreset mode."""

import pickle
from collections import OrderedDict

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text, Tuple
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from cartwheel._internal import nested
from cartwheel._internal.versions import autoreset_mode_of
from cartwheel.wrappers import AutoresetAdapter, TransformReward
from tests.support import repetitions
from tests.support.comparison import assert_identical
from tests.support.environments import RecordingEnv, SamplingEnv
from tests.support.wrapping import (
    ENVIRONMENTS,
    Builds,
    D,
    N,
    S,
    Script,
    alone,
    assert_traces,
    build,
    drive,
    kinds_of,
)


class Quiet(gym.Wrapper):
    """Does not tell options: a masked reset gives ``{}`` where an autoreset gives ``None``."""

    def reset(self, **keywords):
        observation, info = self.env.reset(**keywords)
        info.pop("options", None)
        return observation, info


class Numbered(Quiet):
    """Not every key of its infos is a text."""

    def step(self, action):
        *results, info = self.env.step(action)
        return *results, {**info, 7: int(action is not None)}


def quiet(name):
    function = ENVIRONMENTS[name]
    wrapper = {"nested": Quiet, "images": Numbered, "failing": Quiet}.get(name)
    return function if wrapper is None else (lambda: wrapper(function()))


PARTS = Dict(move=Discrete(3), turn=Tuple([Discrete(9)]))
NAMES = ["one step", "pendulum", "taxi", "blackjack", "nested", "images"]


def calls(envs, fails=()):
    """All results of a run with masked resets and, where possible, steps of some rows."""
    envs.action_space.seed(4)
    yield envs.reset(seed=3)
    random = np.random.default_rng(5)
    for number in range(24):
        actions = envs.action_space.sample()
        if number in fails:
            actions[number % 2] = 3
        elif fails:
            actions %= 3
        if getattr(envs, "steps_rows", False) and number % 3 == 2:
            rows = random.permutation(envs.num_envs)[:2]
            yield envs.step(nested.at(actions, rows), rows)
        else:
            yield envs.step(actions)
        if number % 7 == 5:
            mask = np.arange(envs.num_envs) == number % 2
            yield envs.reset(seed=number, options={"reset_mask": mask})


@pytest.mark.parametrize("environment", NAMES)
def test_results_are_those_of_environments_of_the_mode(environment):
    for number, kind in enumerate(kinds_of(environment), NAMES.index(environment)):
        modes = (S, N) if repetitions.full else ((S, N)[number % 2],)
        for mode in modes if kind != "sync" else (S,):
            adapted = AutoresetAdapter(build(kind, quiet(environment), D), mode)
            own = build(kind, quiet(environment), mode)
            assert adapted.metadata["autoreset_mode"] is mode
            assert autoreset_mode_of(adapted.env) is D
            for call, pair in enumerate(zip(calls(adapted), calls(own), strict=True)):
                assert_identical(*pair, f"{kind}, {mode.value}, call {call}")
            adapted.close()
            own.close()


class Named(gym.Env):
    """Has an info of the name of the rows of a batch; its episodes have 2 or 3 steps."""

    observation_space = gym.spaces.Box(0, 9, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.steps = 0
        return np.zeros(1, np.float32), {"env_index": 100}

    def step(self, action):
        self.steps += 1
        shown, is_over = np.full(1, self.steps, np.float32), self.steps == 2 + action
        return shown, 0.0, is_over, False, {"env_index": self.steps}


@pytest.mark.parametrize("mode", [S, N])
def test_an_info_of_the_name_of_rows_is_kept_or_has_no_value(mode):
    adapted, own = AutoresetAdapter(build("inline", Named, D), mode), build("inline", Named, mode)
    assert_identical(adapted.reset(), own.reset(), "reset")
    actions = np.arange(own.num_envs) % 2
    for number in range(8):
        (*_, infos), (*_, expected) = adapted.step(actions), own.step(actions)
        if mode == S:
            assert_identical(infos, expected, f"step {number}")
        else:  # a step in parts has the rows under this name
            kept = infos["_env_index"]
            assert infos["env_index"][kept].tolist() == expected["env_index"][kept].tolist()
    adapted.close()
    own.close()


@pytest.mark.parametrize("mode", [S, N])
def test_actions_and_observations_may_have_parts(mode):
    """Also parts without arrays; observations tell which actions the environment got."""

    class Echo(SamplingEnv):
        def __init__(self):
            got = Box(0, 9, (2,), np.int64)
            super().__init__(Dict(word=Text(4), got=got), action_space=PARTS, length=4)

        def step(self, action):
            observation, *rest = super().step(action)
            given = np.array([action["move"], action["turn"][0]])
            return {**observation, "got": given}, *rest

    def make():
        return Quiet(Echo())

    adapted, own = AutoresetAdapter(build("inline", make, D), mode), build("inline", make, mode)
    for number, pair in enumerate(zip(calls(adapted), calls(own), strict=True)):
        assert_identical(*pair, f"call {number}")
    adapted.close()
    own.close()


@pytest.mark.parametrize("mode", [S, N])
def test_rows_that_fail_are_reset_as_in_environments_of_the_mode(mode):
    keywords = {"on_error": "restart", "max_restarts": None}
    for kind in ("inline", "process"):
        adapted = AutoresetAdapter(build(kind, quiet("failing"), D, **keywords), mode)
        own = build(kind, quiet("failing"), mode, **keywords)
        results = [list(calls(envs, fails=(3, 4, 9, 10, 11))) for envs in (adapted, own)]
        assert any("env_error" in result[-1] for result in results[1])
        for number, pair in enumerate(zip(*results, strict=True)):
            assert_identical(*pair, f"{kind}, call {number}")
        adapted.close()
        own.close()


@pytest.mark.parametrize("mode", [S, N])
def test_lives_are_those_of_single_environments_around_wrappers_and_inside(mode):
    script = Script(steps=12, resets={(1, 3): 50, (2, 9): 52})
    expected = alone("pole", script, lambda env: gym.wrappers.TransformReward(env, lambda r: r * 2))
    with Builds() as build:
        for number, kind in enumerate(kinds_of("pole"), int(mode is S)):
            ways = ("mask",) if kind == "sync" else ("mask", "async", "rows")
            if not repetitions.full:
                ways = (ways[number % len(ways)],)
            for way in ways if mode is S or kind != "sync" else ():
                for on_done in ("raise", "freeze") if kind in ("inline", "native") else ("raise",):
                    keywords = {} if on_done == "raise" else {"on_done": on_done}
                    bare = build(kind, "pole", D, **keywords)
                    inside = AutoresetAdapter(TransformReward(bare, lambda r: r * 2), mode)
                    assert_traces(drive(inside, script, way, close=False), expected)
                    around = TransformReward(AutoresetAdapter(bare, mode), lambda r: r * 2)
                    assert around.metadata["autoreset_mode"] is mode
                    assert around.autoreset_mode is mode
                    assert_traces(drive(around, script, way, close=False), expected)


def test_final_observations_are_copies():
    envs = AutoresetAdapter(build("native", "one step", D), S)
    envs.reset(seed=1)
    observations, *_, infos = envs.step(np.zeros(3, np.int64))
    finals = infos["final_obs"]
    before = finals[1].copy()
    observations[:] = 7
    finals[0][:] = 8
    np.testing.assert_array_equal(finals[1], before)
    assert not (envs.step(np.zeros(3, np.int64))[0] == 7).any()
    envs.close()


def test_a_step_changes_no_state_that_was_saved():
    envs = AutoresetAdapter(build("native", "one step", D), N)
    envs.reset(seed=1)
    saved = envs.state_dict()
    packed = pickle.dumps(saved)
    assert envs.step(np.zeros(3, np.int64))[3].all()
    assert pickle.dumps(saved) == packed
    envs.close()


@pytest.mark.parametrize("mode", [S, N])
def test_a_rollout_has_what_steps_return(mode):
    envs = AutoresetAdapter(build("native", "pole", D), mode)
    envs.action_space.seed(1)
    present, _ = envs.reset(seed=1)
    arrays = envs.rollout(20)
    for step in range(20):
        result = envs.step(envs.action_space.sample())
        assert_identical(arrays.observations[step], present)
        assert_identical(arrays.rewards[step], result[1])
        assert_identical(arrays.terminated[step], result[2])
        assert_identical(arrays.truncated[step], result[3])
        present = result[0]
    assert_identical(arrays.observations[20], present)
    assert (arrays.terminated | arrays.truncated).any()
    envs.close()


def test_wrong_modes_are_refused_before_anything_is_stepped():
    disabled, same = build("native", "pole", D), build("native", "pole", S)
    sync = build("sync", "pole", D)
    parts = build("native", "pole", D, batch_size=2)
    with pytest.raises(ValueError, match=r"'disabled', got .* SAME_STEP"):
        AutoresetAdapter(same, N)
    with pytest.raises(ValueError, match="SAME_STEP or NEXT_STEP"):
        AutoresetAdapter(disabled, D)
    with pytest.raises(
        ValueError, match=r"'NoSuchMode' is .* `autoreset_mode` must be one of 'next_step'"
    ):
        AutoresetAdapter(disabled, "NoSuchMode")
    with pytest.raises(TypeError, match="SAME_STEP works"):
        AutoresetAdapter(sync, N)
    with pytest.raises(ValueError, match="batch_size=2 below num_envs=3"):
        AutoresetAdapter(parts, S)
    adapted = AutoresetAdapter(disabled, S)
    for calling in ("send", "recv", "send_reset"):
        arguments = ([0, 0, 0],) if calling == "send" else ()
        with pytest.raises(TypeError, match=f"no `{calling}`"):
            getattr(adapted, calling)(*arguments)
        with pytest.raises(TypeError, match=f"no `{calling}`"):
            getattr(TransformReward(adapted, np.abs), calling)(*arguments)
    over_sync = AutoresetAdapter(sync, S)
    over_sync.reset(seed=1)
    with pytest.raises(TypeError, match="some rows"):
        over_sync.step(np.zeros(1, np.int64), [0])
    for envs in (disabled, same, sync, parts):
        envs.close()


def test_statistics_of_gymnasium_inside_are_told_as_final_infos():
    envs = AutoresetAdapter(RecordEpisodeStatistics(build("sync", "one step", D)), S)
    envs.reset(seed=1)
    *_, infos = envs.step(np.zeros(3, np.int64))
    assert "episode" not in infos
    assert infos["final_info"]["episode"]["l"].tolist() == [1, 1, 1]
    assert infos["final_info"]["_episode"].all()
    assert isinstance(envs.unwrapped, SyncVectorEnv)
    envs.close()


def test_a_step_that_only_resets_is_waited_for_once():
    envs = AutoresetAdapter(build("inline", "one step", D, 2), N)
    envs.reset(seed=1)
    envs.step([0, 0])
    envs.step_async([0, 0])
    assert envs.step_wait()[1].tolist() == [0.0, 0.0]
    with pytest.raises(gym.error.NoAsyncCallError):
        envs.step_wait()
    envs.close()


def test_a_wrong_number_of_actions_is_refused_where_rows_are_only_reset():
    envs = AutoresetAdapter(build("inline", "one step", D, 2), N)
    envs.reset(seed=1)
    envs.step([0, 0])
    for wrong, rows in (([0], None), ([0, 0, 0], None), (0, None), ([0, 0], [1]), ([0], [1, 0])):
        with pytest.raises(ValueError, match="`actions` must have one action for each of"):
            envs.step(wrong, rows)
    assert envs.step([0, 0])[1].tolist() == [0.0, 0.0]  # the resets were still due
    envs.close()


def test_options_keep_their_class_and_the_callers_keep_their_mask():
    envs = AutoresetAdapter(SyncVectorEnv([RecordingEnv] * 2, autoreset_mode=D), S)
    options = OrderedDict(x=1, reset_mask=np.array([True, True]))
    envs.reset(options=options)
    assert list(options) == ["x", "reset_mask"]
    for _seed, received in [resets[-1] for resets in envs.env.get_attr("resets")]:
        assert type(received) is OrderedDict
        assert received == {"x": 1}
    envs.close()
