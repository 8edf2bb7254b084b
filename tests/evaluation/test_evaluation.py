"""Every environment plays its number of complete episodes, in every mode and executor."""
# ruff: noqa: ARG001, ARG005 (signatures are Gymnasium's)

import io
import sys
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import cartwheel
from cartwheel import envpool
from cartwheel.vector.infos import SUCCESS, outcomes
from tests.support.cases import lean
from tests.support.environments import TranscriptEnv, transcripts
from tests.support.evaluations import MODES, WordEnv, every_kind
from tests.support.executors import INLINE, PROCESS
from tests.support.lotteries import EPISODES, NUM_ENVS, SEED, alone, follow_luck, lotteries, same


def in_gymnasium(env_fns, autoreset_mode):
    """Gymnasium's own vector environment."""
    return gym.vector.SyncVectorEnv(env_fns, autoreset_mode=AutoresetMode[autoreset_mode.upper()])


BUILDERS = list(every_kind(gymnasium=in_gymnasium))


@pytest.mark.parametrize("build", BUILDERS)
def test_every_episode_equals_that_of_the_environment_alone(build_with, build):
    envs = build_with(build, lotteries())
    evaluation = cartwheel.evaluate(envs, follow_luck, episodes_per_env=EPISODES, seed=SEED)
    expected = alone(lotteries(), follow_luck, EPISODES, SEED)
    same(evaluation, expected)
    assert evaluation.mean_return == expected["returns"].mean()
    assert evaluation.mean_length == expected["lengths"].mean()
    assert evaluation.success_rate == expected["success_at_end"].mean()
    assert expected["terminated"].sum() + expected["truncated"].sum() > NUM_ENVS * EPISODES
    # Again with the same object: nothing remains from the first time.
    again = cartwheel.evaluate(envs, follow_luck, episodes_per_env=EPISODES, seed=SEED)
    same(again, expected)


def test_a_policy_gets_the_same_arguments_in_every_mode_and_executor(build_with):
    asked = []
    for mode in MODES:
        for executor in (INLINE, PROCESS):
            envs = build_with(executor, lotteries(), autoreset_mode=mode)
            questions, chance = [], np.random.default_rng(3)

            def guess(observations, rows, first, questions=questions, chance=chance):
                questions.append(
                    (
                        observations["luck"].tobytes(),
                        observations["t"].tobytes(),
                        rows.tolist(),
                        first.tolist(),
                    )
                )
                return chance.normal(size=(len(rows), 2))

            evaluation = cartwheel.evaluate(envs, guess, episodes_per_env=3, recurrent=True, seed=0)
            asked.append((questions, evaluation.returns.tobytes()))
    assert all(other == asked[0] for other in asked)


class PayingEnv(TranscriptEnv):
    """The reward is the number in the action."""

    action_space = Box(-9, 9, (1,), np.float64)

    def step(self, action):
        return super().step(action[0])


@pytest.mark.parametrize("mode", MODES)
def test_actions_may_be_integers_in_one_call_and_fractions_in_another(build_with, mode):
    """Also where rows that have finished repeat their last action."""
    env_fns = [partial(PayingEnv, length) for length in (1, 3)]
    envs = build_with(in_gymnasium, env_fns, autoreset_mode=mode)
    evaluation = cartwheel.evaluate(envs, lambda seen: [[2]] * 2 if len(seen) == 2 else [[0.5]])
    assert evaluation.returns.tolist() == [[2.0], [3.0]]


@pytest.mark.parametrize("mode", MODES)
def test_native_rows_play_the_same_episodes_in_every_mode(build_with, mode):
    expected = cartwheel.evaluate(
        build_with(gym.vector.SyncVectorEnv, [lambda: gym.make("CartPole-v1")] * 7),
        lean,
        episodes_per_env=3,
        seed=5,
    )
    for workers in (1, 2):
        envs = build_with(
            cartwheel.NativeVectorEnv, "CartPole-v1", 7, autoreset_mode=mode, num_workers=workers
        )
        evaluation = cartwheel.evaluate(envs, lean, episodes_per_env=3, seed=5)
        assert evaluation.returns.tobytes() == expected.returns.tobytes()
        assert evaluation.lengths.tobytes() == expected.lengths.tobytes()
        assert evaluation.success_at_end is None
        assert evaluation.success_rate is None
        assert evaluation.success_interval is None


@pytest.mark.parametrize("executor", [INLINE, PROCESS], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_a_row_that_has_finished_is_not_stepped(build_with, executor, mode):
    envs = build_with(executor, lotteries(), autoreset_mode=mode)
    shown = []

    def policy(observations):
        shown.append(len(observations["t"]))
        return follow_luck(observations)

    evaluation = cartwheel.evaluate(envs, policy, episodes_per_env=EPISODES)
    assert list(envs.get_attr("steps")) == evaluation.lengths.sum(axis=1).tolist()
    assert sum(shown) == evaluation.lengths.sum()


@pytest.mark.parametrize("mode", MODES)
def test_short_episodes_are_not_favored(build_with, mode):
    envs = build_with(INLINE, transcripts(1, 100, 3), autoreset_mode=mode)
    evaluation = cartwheel.evaluate(envs, lambda t: np.ones(len(t), int), episodes_per_env=2)
    assert evaluation.returns.tolist() == [[1, 1], [100, 100], [3, 3]]
    assert evaluation.mean_return == pytest.approx(104 / 3)


@pytest.mark.parametrize("build", BUILDERS)
def test_a_recurrent_policy_knows_its_rows_and_where_episodes_begin(build_with, build):
    envs = build_with(build, transcripts(2, 5, 1, 3))
    clocks = np.full(4, -1)

    def policy(observations, rows, first):
        clocks[rows] = np.where(first, 0, clocks[rows] + 1)
        assert clocks[rows].tolist() == observations[:, 0].tolist()
        rows[:], first[:] = 0, False  # the policy may overwrite both
        return np.ones(len(rows), np.int64)

    evaluation = cartwheel.evaluate(envs, policy, episodes_per_env=3, recurrent=True)
    assert evaluation.lengths.tolist() == [[2] * 3, [5] * 3, [1] * 3, [3] * 3]


@pytest.mark.parametrize("build", BUILDERS)
def test_actions_reach_their_rows(build_with, build):
    """Rewards of this environment are its actions."""
    envs = build_with(build, transcripts(2, 5, 1, 3))

    def number(observations, rows, first):
        return rows + 1, {"value": None}

    evaluation = cartwheel.evaluate(envs, number, episodes_per_env=2, recurrent=True)
    assert evaluation.returns.tolist() == [[2, 2], [10, 10], [3, 3], [12, 12]]


class NestedActionEnv(TranscriptEnv):
    def __init__(self, length, action_space):
        super().__init__(length)
        self.action_space = action_space

    def step(self, action):
        first, second = action.values() if isinstance(action, dict) else action
        return super().step(first + 10 * second)


@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("space", [Tuple([Discrete(5)] * 2), Dict(a=Discrete(5), b=Discrete(5))])
def test_nested_actions_reach_their_rows(build_with, build, space):
    envs = build_with(build, [partial(NestedActionEnv, length, space) for length in (1, 3)])

    def policy(observations, rows, first):
        parts = rows + 1, rows + 2
        return parts if isinstance(space, Tuple) else dict(zip("ab", parts, strict=True))

    evaluation = cartwheel.evaluate(envs, policy, episodes_per_env=2, recurrent=True)
    assert evaluation.returns.tolist() == [[21, 21], [96, 96]]


@pytest.mark.parametrize("build", BUILDERS)
def test_observations_without_a_fixed_shape_are_passed_for_active_rows(build_with, build):
    envs = build_with(build, [partial(WordEnv, length) for length in (2, 5, 1)])

    def read(observations, rows, first):
        words, clocks = observations
        assert isinstance(words, tuple)
        assert [len(word) for word in words] == [[2, 5, 1][row] for row in rows]
        assert [word[0] for word in words] == ["abc"[int(t) % 3] for t in clocks[:, 0]]
        return np.ones(len(rows), np.int64)

    evaluation = cartwheel.evaluate(envs, read, episodes_per_env=2, recurrent=True)
    assert evaluation.lengths.tolist() == [[2, 2], [5, 5], [1, 1]]


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_wrapped_environments_are_evaluated_too(build_with, mode):
    envs = build_with(RecordEpisodeStatistics, INLINE(lotteries(), autoreset_mode=mode))
    evaluation = cartwheel.evaluate(envs, follow_luck, episodes_per_env=EPISODES, seed=SEED)
    same(evaluation, alone(lotteries(), follow_luck, EPISODES, SEED))


def test_a_pool_of_envpool_is_evaluated_too(build_with):
    pool = build_with(envpool.make_gymnasium, "CartPole-v1", num_envs=3)
    native = build_with(cartwheel.NativeVectorEnv, "CartPole-v1", 3)
    of_pool, of_native = (
        cartwheel.evaluate(envs, lean, episodes_per_env=2, seed=5) for envs in (pool, native)
    )
    assert of_pool.returns.tobytes() == of_native.returns.tobytes()


class ReportingEnv(TranscriptEnv):
    """A test chooses the info of the last step."""

    def __init__(self, last_info):
        super().__init__(length=2)
        self.last_info = last_info

    def step(self, action):
        *frame, _ = super().step(action)
        return *frame, self.last_info if frame[2] else {"is_success": True}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("infos", "expected"),
    [
        ([{"is_success": True}, {"is_success": False}], [[True], [False]]),
        ([{"success": np.True_}, {"success": False}], [[True], [False]]),
        ([{"is_success": 1.0}, {}], [[True], [False]]),
        ([{"is_success": False, "success": True}] * 2, [[False], [False]]),
        ([{"success": np.array([1, 0])}, {"success": np.array([1, 1])}], [[False], [True]]),
        ([{}, {"other": True}], None),
    ],
)
def test_success_is_read_from_the_last_info(build_with, mode, infos, expected):
    envs = build_with(INLINE, [partial(ReportingEnv, info) for info in infos], autoreset_mode=mode)
    evaluation = cartwheel.evaluate(envs, lambda t: np.zeros(len(t), int))
    found = evaluation.success_at_end
    assert (None if found is None else found.tolist()) == expected


def test_a_missing_part_of_an_action_is_named(build_with):
    space = Dict(a=Discrete(5), b=Discrete(5))
    envs = build_with(INLINE, [partial(NestedActionEnv, 2, space)] * 3)
    with pytest.raises(ValueError, match="2 actions under 'b' for 3 observations"):
        cartwheel.evaluate(envs, lambda t: {"a": np.zeros(3, int), "b": np.zeros(2, int)})


def test_options_and_seeds_apply_to_the_first_episodes(build_with):
    envs = build_with(INLINE, lotteries(2))
    first = cartwheel.evaluate(envs, follow_luck, seed=[8, 3])
    each = [
        cartwheel.evaluate(build_with(INLINE, lotteries()[row : row + 1]), follow_luck, seed=seed)
        for row, seed in enumerate([8, 3])
    ]
    assert first.returns.tolist() == [one.returns[0].tolist() for one in each]
    assert first.seed == [8, 3]
    unseeded = cartwheel.evaluate(envs, follow_luck, seed=None)
    assert unseeded.returns.tolist() != first.returns.tolist()


def test_progress_is_reported_to_a_function(build_with):
    envs, reports = build_with(INLINE, lotteries()), []
    cartwheel.evaluate(
        envs, follow_luck, episodes_per_env=3, progress=lambda *report: reports.append(report)
    )
    done = [report[0] for report in reports]
    assert done == sorted(set(done))
    assert reports[-1] == (15, 15)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("screen", "progress", "drawn"),
    [(Terminal, True, True), (Terminal, False, False), (io.StringIO, True, False)],
)
def test_a_progress_bar_is_drawn_only_on_a_terminal(
    build_with, monkeypatch, screen, progress, drawn
):
    envs, stderr = build_with(INLINE, lotteries(2)), screen()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        cartwheel.evaluate(envs, follow_luck, progress=progress)
    assert ("/2 episodes" in stderr.getvalue()) == drawn
    assert bool(stderr.getvalue()) == drawn


def test_the_summary_of_an_evaluation_has_its_figures(build_with):
    evaluation = cartwheel.evaluate(
        build_with(INLINE, lotteries(2)), follow_luck, episodes_per_env=2, seed=4, confidence=0.9
    )
    text = evaluation.summary()
    assert "4 episodes, 2 of each of 2 environments, seed 4" in text
    for figure in (evaluation.mean_return, *evaluation.return_interval, evaluation.mean_length):
        assert f"{figure:.6g}" in text
    assert "0.9 interval" in text
    assert f"success  {evaluation.success_rate:.4g}" in text
    assert f"mean_return={evaluation.mean_return:.6g}" in repr(evaluation)
    assert evaluation.std_return == evaluation.returns.std(ddof=1)
    assert evaluation.std_length == evaluation.lengths.std(ddof=1)
    with pytest.raises(ValueError, match="read-only"):
        evaluation.returns[0, 0] = 1
    with pytest.raises(AttributeError):
        evaluation.returns = None


class LastActionEnv(TranscriptEnv):
    def step(self, action):
        self.last_action = int(action)
        return super().step(action)


@pytest.mark.parametrize("mode", MODES)
def test_finished_rows_repeat_their_action_if_all_rows_are_stepped(build_with, mode):
    envs = build_with(
        gym.vector.SyncVectorEnv,
        [partial(LastActionEnv, length) for length in (1, 4)],
        autoreset_mode=AutoresetMode[mode.upper()],
    )
    cartwheel.evaluate(envs, lambda observations, rows, first: rows + 7, recurrent=True)
    assert envs.get_attr("last_action") == (7, 8)


def test_values_of_rows_without_a_success_report_are_ignored():
    infos = {"success": np.array([7.0, 7.0, 0.0]), "_success": np.array([True, False, True])}
    assert outcomes(infos, SUCCESS).flags.tolist() == [True, False, False]
    assert outcomes(infos, SUCCESS, np.array([1])) is None
