"""Environments that behave pass every check, and the report says what was left out and why."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import cartwheel
from cartwheel.testing import CHECKS, check_vector_env
from tests.support.cases import VARIANTS
from tests.support.comparison import assert_identical
from tests.support.environments import LargeNestedEnv, NestedEnv
from tests.support.native_ids import OF_MUJOCO
from tests.support.objectives import TreasureEnv
from tests.support.oracle import MODE
from tests.support.repetitions import times
from tests.testing.walk import Walk, only, walks

IDS = [env_id for env_id, *_ in cartwheel._cartwheel.native_envs()]
FOR_PYTHON = {"written", "parameters", "states", "rendering"}


@pytest.fixture
def check(monkeypatch):
    """Checks a vector environment and closes it."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")

    def check(envs, **keywords):
        keywords.setdefault("steps", times(20, with_full=64))
        try:
            return check_vector_env(envs, **keywords)
        finally:
            envs.close()

    return check


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*out of date")
@pytest.mark.parametrize("env_id", IDS)
def test_every_native_environment_passes(check, env_id):
    unseen = {"rendering"} if env_id in OF_MUJOCO else set()  # not every machine has OpenGL
    report = check(cartwheel.NativeVectorEnv(env_id, 5), skip=unseen)
    skipped = set(report.skipped) - {"states"} - unseen
    if env_id == "Null-v0":
        assert skipped == {"other_seeds", "parameters", "rendering"}
    else:
        assert skipped == ({"other_seeds"} if env_id == "CliffWalking-v1" else set())


def test_final_observations_of_all_rows_are_checked(check):
    keywords = {"autoreset_mode": "same_step", "executor": "inline", "final_obs": "dense"}
    report = check(cartwheel.VectorEnv([Walk] * 3, **keywords), skip=only("spaces", "rows"))
    assert set(report.passed) == {"spaces", "rows"}


def test_rows_take_other_actions_in_each_step_and_than_other_rows(check):
    taken = {}

    class Noting(Walk):
        def step(self, action):
            taken.setdefault(self, []).append(int(action))
            return super().step(action)

    check(walks(Noting), skip=only("rows"))
    assert all(len(set(actions)) > 1 for actions in taken.values())
    assert len({tuple(actions[:9]) for actions in taken.values()}) == 3


@pytest.mark.parametrize(
    "case",
    [
        VARIANTS[2],
        VARIANTS[13],
        *(pytest.param(VARIANTS[at], marks=pytest.mark.slow) for at in (18, -1)),
    ],
    ids=str,
)
@MODE
def test_native_variants_pass_in_every_mode(check, case, mode):
    keywords = {"autoreset_mode": mode, "num_workers": 2, **case.keywords}
    rows = times(6, with_full=19)
    check(cartwheel.NativeVectorEnv(case.env_id, rows, **keywords), steps=24, skip=["rendering"])


@MODE
def test_environments_in_python_pass_in_every_mode(check, mode):
    report = check(walks(autoreset_mode=mode))
    assert set(report.skipped) == FOR_PYTHON
    assert list(report.passed) == [name for name in CHECKS if name not in FOR_PYTHON]


@pytest.mark.parametrize("kind", [NestedEnv, pytest.param(LargeNestedEnv, marks=pytest.mark.slow)])
def test_nested_observations_and_infos_pass(check, kind):
    check(walks(kind), ignore_infos=["options"], steps=24)


@pytest.mark.parametrize(
    "env_id",
    [
        "Blackjack-v1",
        "CartPole-v1",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("FrozenLake-v1", "Pendulum-v1")),
    ],
)
def test_environments_of_gymnasium_pass(check, env_id):
    check(cartwheel.make_vec(env_id, 2, executor="inline"), steps=times(20, with_full=32))


@MODE
def test_rewards_of_several_objectives_pass_in_every_mode(check, mode):
    env_fns = [partial(TreasureEnv, 2)] * 3
    report = check(cartwheel.VectorEnv(env_fns, autoreset_mode=mode, executor="inline"))
    assert "frozen_rows" in report.passed


def test_vector_environments_of_gymnasium_pass(check):
    report = check(gym.vector.SyncVectorEnv([Walk] * 3), steps=16)
    assert set(report.skipped) == {"executors", "frozen_rows", "send_recv", *FOR_PYTHON}


def test_rows_in_small_batches_and_other_executors_pass(check):
    steps = times(12, with_full=24)
    check(cartwheel.VectorEnv([Walk] * 7, executor="thread", batch_size=2), steps=steps)
    check(cartwheel.NativeVectorEnv("CartPole-v1", 20, batch_size=7, num_workers=3), steps=steps)
    check(cartwheel.VectorEnv([Walk] * 3, executor="process", num_workers=2), steps=steps)


def test_frozen_rows_of_the_given_object_pass(check):
    envs = walks(autoreset_mode="disabled", on_done="freeze")
    report = check(envs, skip=only("frozen_rows"))
    assert report.passed == {"frozen_rows": "3 rows that were over were stepped again"}


def test_rows_of_different_kinds_pass(check):
    fns = [lambda limit=limit: gym.wrappers.TimeLimit(Walk(), limit) for limit in (2, 5, 9)]
    check(cartwheel.VectorEnv(fns, executor="inline"), skip=["time_limit"])


@pytest.mark.parametrize("mode", ["rgb_array", "ansi"])
def test_frames_of_environments_in_python_are_checked(check, mode):
    envs = walks(lambda: Walk(mode))
    assert check(envs, skip=only("rendering")).passed["rendering"].startswith(f"{mode}: 2 rows")


class Clockwork(gym.Env):
    """Nothing is random."""

    observation_space = gym.spaces.Discrete(100)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.t = 0
        return 0, {}

    def step(self, action):
        self.t = (self.t + int(action)) % 100
        return self.t, 0.0, self.t == 9, False, {}


def test_a_deterministic_environment_is_not_refused(check):
    report = check(walks(Clockwork))
    assert report.skipped["other_seeds"].startswith("deterministic")


def test_an_environment_that_draws_numbers_in_vain_is_not_refused(check):
    envs = cartwheel.NativeVectorEnv("FrozenLake-v1", 3, is_slippery=False)
    report = check(envs, skip=["rendering"])
    assert report.skipped["other_seeds"].startswith("deterministic")


def test_the_vector_environment_is_left_open_and_reset_with_the_seed():
    envs, fresh = walks(), walks()
    check_vector_env(envs, seed=5, skip=only("rows"))
    fresh.reset(seed=5)
    assert_identical(envs.step(np.ones(3, int)), fresh.step(np.ones(3, int)))
    envs.close()
    fresh.close()


def test_a_report_has_a_line_for_each_check_and_note(check):
    report = check(cartwheel.make_vec("FrozenLake-v1", 2, executor="inline"), skip=["executors"])
    lines = str(report).splitlines()
    assert lines[0] == "FrozenLake-v1: 11 checks passed, 5 skipped"
    assert len(lines) == 1 + len(CHECKS) + 1
    assert "  skipped  executors     left out by `skip`" in lines
    assert lines[-1].startswith("  note: info['prob'] is int64 at resets and float64 in steps")


# Wrong arguments


def test_checks_that_are_left_out_may_be_an_iterator(check):
    report = check(walks(), skip=iter(only("rows")))
    assert list(report.passed) == ["rows"]


def test_wrong_arguments_are_refused_by_name():
    envs = walks()
    for error, text, keywords in [
        (ValueError, "no check 'row': did you mean 'rows'", {"skip": ["row"]}),
        (ValueError, "`steps` must be", {"steps": 0}),
        (ValueError, "`seed` must be", {"seed": -1}),
        (TypeError, "`skip` must be a list", {"skip": "rows"}),
        (TypeError, "`ignore_infos` must be a list", {"ignore_infos": "t"}),
    ]:
        with pytest.raises(error, match=text):
            check_vector_env(envs, **keywords)
    with pytest.raises(TypeError, match=r"wrapped by RecordEpisodeStatistics: pass .*unwrapped"):
        check_vector_env(RecordEpisodeStatistics(envs))
    with pytest.raises(TypeError, match="must be a vector environment"):
        check_vector_env(Walk())
    envs.close()


def test_rows_in_flight_are_the_callers_error():
    envs = walks()
    envs.reset(seed=1)
    envs.send(envs.action_space.sample())
    with pytest.raises(gym.error.AlreadyPendingCallError):
        check_vector_env(envs)
    envs.recv()
    envs.close()


@MODE
@pytest.mark.parametrize(
    "build",
    [
        partial[Any](cartwheel.NativeVectorEnv, "FrozenLake-v1", 3),
        partial[Any](cartwheel.VectorEnv, [Walk] * 2, executor="inline"),
    ],
    ids=["native", "python"],
)
def test_other_rules_of_episodes_pass(check, build, mode):
    rules = {"max_episode_steps": 12, "ignore_terminations": True, "action_repeat": 3}
    report = check(build(autoreset_mode=mode, **rules), steps=times(14, with_full=30))
    assert set(report.passed) >= {"executors", "modes"} - set(report.skipped), report


def test_staggered_rows_are_refused():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 3, staggered_reset=True)
    with pytest.raises(ValueError, match="without `staggered_reset`"):
        check_vector_env(envs)
    envs.close()
