"""RecordMetrics shows how episodes go, in every step, and collects those that have ended.

This file is above 500 lines because every promise of the wrapper is tested with the same episodes.
"""

import math
import pickle
import warnings
from collections import defaultdict
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList

import cartwheel
from cartwheel.wrappers import (
    AtariPreprocessing,
    AutoresetAdapter,
    FrameStack,
    RecordEpisodeStatistics,
    RecordMetrics,
)
from tests.support.bytes_of_flags import TRUE_BYTES, with_byte
from tests.support.comparison import assert_identical
from tests.support.environments import TranscriptEnv, transcripts
from tests.support.episodes_reported import (
    FLAGS,
    GoalEnv,
    Kinds,
    Running,
    complete_episodes,
    without_episodes,
)
from tests.support.executors import INLINE
from tests.support.wrapping import (
    FAILING,
    MODES,
    Builds,
    D,
    N,
    S,
    Script,
    alone,
    assert_traces,
    drive,
    info_of,
    settings_of,
)

SCRIPT = Script(
    steps=14, resets={(1, 3): 50, (0, 3): 51, (2, 9): 52}, actions=lambda _row, k: k % 2
)
VALUES = {"return": np.float64, "episode_len": np.int64, "reward": np.float64}
COLUMNS = {
    "env_index": np.int64,
    "episode_id": np.int64,
    "seed": np.int64,
    "terminated": np.bool_,
    "truncated": np.bool_,
}


class Watched:
    """Checks every step of ``drive`` against :class:`Running`; keeps the episodes that ended."""

    def __init__(self, kinds, names):
        self.kinds, self.names = kinds, names
        self.mode = kinds.metadata["autoreset_mode"]
        self.running = Running(self.mode, kinds.num_envs)
        self.ended = defaultdict(list)
        self.count = 0

    def __call__(self, result, rows):
        infos = result[-1]
        if len(result) == 2:
            assert "episode" not in infos
            for place, row in enumerate(rows):
                self.running.show(int(row), self.kinds.kinds[place], 0.0, over=False, info={})
            return
        values, mask = infos["episode"], infos["_episode"]
        dtypes = {name: array.dtype for name, array in values.items()}
        assert dtypes == VALUES | dict.fromkeys(self.names, np.bool_)
        assert mask.dtype == np.bool_
        assert mask.shape == (len(rows),)
        over = result[2] | result[3]
        for place, row in enumerate(rows):
            row = int(row)
            is_last = self.mode == S and over[place]
            info = info_of(infos.get("final_info", {}) if is_last else infos, place)
            shown, ended = self.running.show(
                row, self.kinds.kinds[place], float(result[1][place]), bool(over[place]), info
            )
            length = shown["episode_len"]
            shown["reward"] = shown["return"] / length if length else 0.0
            found = {name: array[place].item() for name, array in values.items()}
            assert found == {name: shown[name] for name in found}, (row, place)
            assert mask[place] == ended
            self.check_finals(infos, place, found, is_last and ended)
            if ended:
                self.count += 1
                flags = {"terminated": result[2][place], "truncated": result[3][place]}
                self.ended[row].append(found | {key: bool(one) for key, one in flags.items()})

    def check_finals(self, infos, place, found, ended):
        """Values of an ended episode are in the final infos too, in SAME_STEP alone."""
        finals = infos.get("final_info", {})
        if not ended:
            assert "episode" not in finals or not finals["_episode"][place]
            return
        assert infos["_final_info"][place]
        assert finals["_episode"][place]
        assert {name: array[place].item() for name, array in finals["episode"].items()} == found


@pytest.mark.parametrize(
    ("environment", "script", "settings"),
    [
        ("pole", SCRIPT, {}),
        ("one step", SCRIPT, {}),
        ("goal", SCRIPT, {}),
        ("goal", FAILING, {"on_error": "restart"}),
    ],
    ids=["pole", "one step", "goal", "failing"],
)
def test_every_step_and_every_episode_is_that_of_a_count_by_hand(environment, script, settings):
    expected = alone(environment, script)
    reported = FLAGS if environment == "goal" else ()
    with Builds() as build:
        for kind, mode, way, keywords in settings_of(environment):
            if settings and kind == "sync":
                continue
            kinds = Kinds(build(kind, environment, mode, **keywords, **settings))
            envs = RecordMetrics(kinds, buffer_length=5)
            if reported:  # from the first step on
                envs.set_own_state(
                    envs.get_own_state() | {"reports_success": True, "reports_fail": True}
                )
            watched = Watched(kinds, reported)
            traces = drive(envs, script, way, check=watched, close=False)
            assert_traces(without_episodes(traces), expected, infos=True)
            check_finished(envs, watched, expected, reported)


def check_finished(envs, watched, expected, reported):
    """Episodes that ended are those that were shown, and those of single environments."""
    count = watched.count
    means, window = envs.mean(), envs.get_own_state()["window"]
    columns = envs.finished()
    assert {name: column.dtype for name, column in columns.items()} == VALUES | dict.fromkeys(
        reported, np.bool_
    ) | COLUMNS
    assert columns["episode_id"].tolist() == list(range(count))
    assert all(column.shape == (count,) for column in columns.values())
    by_row = defaultdict(list)
    for number, row in enumerate(columns["env_index"].tolist()):
        by_row[row].append({name: column[number].item() for name, column in columns.items()})
    for row, trace in enumerate(expected):
        shown = watched.ended[row]
        assert [{name: one[name] for name in shown[0]} for one in by_row[row]] == shown
        wanted = complete_episodes(trace)
        names = ["return", "episode_len", *reported, "terminated", "truncated"]
        assert [{name: one[name] for name in names} for one in shown[: len(wanted)]] == [
            {name: one[name] for name in names} for one in wanted
        ]
    for name, mean in means.items():
        assert mean == pytest.approx(columns[name][-5:].mean())
        assert window[name].tolist() == columns[name][-5:].tolist()
    assert envs.finished()["return"].shape == (0,)


def test_keys_appear_with_the_first_report_and_stay():
    """A pair that is never reported is not there; a reset's info suffices."""

    class LateEnv(TranscriptEnv):
        def step(self, action):
            *frame, _ = super().step(action)
            return *frame, {"fail": self.t == 2} if self.t >= 2 else {}

    envs = RecordMetrics(INLINE([partial(LateEnv, 3)] * 2))
    envs.reset()
    assert [sorted(envs.step([1, 1])[4]["episode"]) for _ in range(4)] == [
        sorted(VALUES),
        *[sorted([*VALUES, "fail_once", "fail_at_end"])] * 3,
    ]
    assert sorted(envs.mean()) == sorted([*VALUES, "fail_once", "fail_at_end"])
    assert envs.finished()["fail_once"].tolist() == [True, True]
    envs.close()
    envs = RecordMetrics(INLINE([GoalEnv] * 2))
    envs.reset(seed=0)
    assert {"success_once", "success_at_end"} <= envs.step([1, 1])[4]["episode"].keys()
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_is_success_goes_before_success(mode):
    class TwoEnv(TranscriptEnv):
        def step(self, action):
            *frame, _ = super().step(action)
            return *frame, {"success": True, "is_success": self.t == 1}

    envs = RecordMetrics(INLINE([partial(TwoEnv, 2)], autoreset_mode=mode))
    envs.reset()
    envs.step([1])
    episode = envs.step([1])[4]["episode"]
    assert (episode["success_once"][0], episode["success_at_end"][0]) == (True, False)
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_frozen_rows_and_rows_left_alone_keep_their_values(mode):
    rests = {"on_done": "freeze"} if mode == D else {}
    envs = RecordMetrics(INLINE(transcripts(2, 4), autoreset_mode=mode, **rests))
    envs.reset()
    shown = []
    for number in range(4):
        infos = envs.step([1, 1])[4]
        shown.append((infos["episode"]["return"].tolist(), infos["_episode"].tolist()))
        if number == 2:
            envs.reset(options={"reset_mask": np.array([True, False])})
    ended = {
        N: [([0.0, 3.0], [False, False]), ([1.0, 4.0], [False, True])],
        S: [([1.0, 3.0], [False, False]), ([1.0, 4.0], [False, True])],
        D: [([2.0, 3.0], [False, False]), ([1.0, 4.0], [False, True])],
    }
    assert shown == [([1.0, 1.0], [False, False]), ([2.0, 2.0], [True, False]), *ended[mode]]
    envs.close()


def test_seeds_are_those_of_the_resets_that_began_the_episodes():
    for kind, build in {
        "inline": lambda **keywords: INLINE(transcripts(1, 2, 2), **keywords),
        "sync": lambda autoreset_mode: SyncVectorEnv(
            transcripts(1, 2, 2), autoreset_mode=autoreset_mode
        ),
    }.items():
        for mode in (N, S):
            envs = RecordMetrics(build(autoreset_mode=mode))
            envs.reset(seed=5)
            envs.step([0] * 3)
            envs.reset(
                seed=[70, None, 2**80], options={"reset_mask": np.array([True, False, True])}
            )
            for _ in range(4):
                envs.step([0] * 3)
            columns = envs.finished()
            seeds = defaultdict(list)
            for row, seed in zip(columns["env_index"], columns["seed"], strict=True):
                seeds[int(row)].append(int(seed))
            assert seeds[0][:2] == [5, 70]
            assert set(seeds[0][2:]) == {-1}, (kind, mode)
            assert seeds[1][0] == 6
            assert set(seeds[1][1:]) <= {-1}
            assert set(seeds[2]) == {-1}
            envs.close()
    envs = RecordMetrics(cartwheel.NativeVectorEnv("CartPole-v1", 4, max_episode_steps=1))
    envs.send_reset(seed=[3, 8], options={"env_index": [2, 1]})
    assert envs.recv()[4]["episode"]["return"].tolist() == [0.0, 0.0]
    envs.send([0, 0], [1, 2])
    envs.recv()
    columns = envs.finished()
    assert dict(zip(columns["env_index"].tolist(), columns["seed"].tolist(), strict=True)) == {
        1: 8,
        2: 3,
    }
    envs.close()


@pytest.mark.parametrize("seed", [[80, 30], [6, 30, 7, 80], 27, None])
def test_seeds_of_a_full_batch_may_be_those_of_the_rows_that_are_reset(seed):
    envs = cartwheel.NativeVectorEnv(
        "CartPole-v1", 4, max_episode_steps=1, autoreset_mode="disabled", full_batch=True
    )
    envs = RecordMetrics(envs)
    envs.reset(seed=1)
    envs.reset(seed=seed, options={"env_index": [3, 1]})
    envs.step([0] * 4)
    last = [-1, -1] if seed is None else [28, 30] if seed == 27 else [30, 80]
    assert envs.finished()["seed"].tolist() == [1, last[0], 3, last[1]]
    envs.close()


def test_it_stacks_with_statistics_under_another_key():
    for order in (0, 1):
        envs = cartwheel.NativeVectorEnv("CartPole-v1", 3, autoreset_mode=S, max_episode_steps=4)
        both = [RecordMetrics, partial(RecordEpisodeStatistics, stats_key="statistics")]
        for wrap in both if order else both[::-1]:
            envs = wrap(envs)
        envs.reset(seed=1)
        for _ in range(9):
            infos = envs.step([0, 1, 0])[4]
            mask = infos["_episode"]
            assert ("statistics" in infos) == mask.any()
            if mask.any():
                assert infos["_statistics"].tolist() == mask.tolist()
                assert infos["statistics"]["r"][mask].tolist() == (
                    infos["episode"]["return"][mask].tolist()
                )
        assert envs.episode_count == len(envs.finished()["return"]) > 3
        envs.close()


@pytest.mark.parametrize("final_obs", ["object", "dense"])
def test_the_last_step_counts_around_wrappers_that_take_final_observations(final_obs):
    def finished(*wraps):
        envs = INLINE([GoalEnv] * 3, autoreset_mode=S, final_obs=final_obs)
        for wrap in wraps:
            envs = wrap(envs)
        envs.reset(seed=4)
        for _ in range(12):
            envs.step([1, 1, 1])
        found = envs.finished()
        envs.close()
        return found

    stack = partial(FrameStack, stack_size=2)
    inside = finished(RecordMetrics, stack)
    assert inside["success_at_end"].any()
    assert_identical(finished(stack, RecordMetrics), inside, "episodes")


@pytest.mark.parametrize("mode", MODES)
def test_what_callers_do_to_infos_changes_no_later_step(mode):
    def run(*, spoils):
        envs = RecordMetrics(INLINE([GoalEnv] * 3, autoreset_mode=mode))
        envs.reset(seed=4)
        shown, over = [], np.zeros(3, bool)
        for _ in range(12):
            if mode == D and over.any():
                envs.reset(options={"reset_mask": over.copy()})
            _, _, terminations, truncations, infos = envs.step([1, 1, 1])
            over = terminations | truncations
            shown.append(pickle.dumps({key: infos[key] for key in ("episode", "_episode")}))
            if spoils:
                for where in (infos, infos.get("final_info", {})):
                    for array in where.get("episode", {}).values():
                        array[:] = 1
                    for key in ("_episode", "success", "_success"):
                        if key in where:
                            where[key][:] = False
        finished = envs.finished()
        envs.close()
        return shown, pickle.dumps(finished)

    assert run(spoils=True) == run(spoils=False)


def test_means_without_an_episode_are_nan_and_the_window_is_kept():
    envs = RecordMetrics(INLINE(transcripts(1, 50)), buffer_length=3)
    assert all(math.isnan(mean) for mean in envs.mean().values())
    envs.reset()
    for number in range(1, 10):
        envs.step([number % 10, 0])  # every second step resets row 0
    assert envs.mean() == {"return": 7.0, "episode_len": 1.0, "reward": 7.0}
    envs.close()


def test_episodes_that_are_not_taken_are_dropped_with_a_warning():
    class FewMetrics(RecordMetrics):
        _MAX_WAITING = 5

    envs = FewMetrics(INLINE(transcripts(1, 1), autoreset_mode=S))
    envs.reset()
    for _ in range(4):
        envs.step([1, 2])
    with pytest.warns(RuntimeWarning, match="3 finished episodes were dropped"):
        columns = envs.finished()
    assert columns["episode_id"].tolist() == [3, 4, 5, 6, 7]
    envs.step([1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert envs.finished()["episode_id"].tolist() == [8, 9]
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_state_goes_on_in_another_wrapper(mode):
    rests = {"on_done": "freeze"} if mode == D else {}
    inner = INLINE([GoalEnv] * 3, autoreset_mode=mode, **rests)
    first = RecordMetrics(inner, buffer_length=4)
    first.reset(seed=3)
    for _ in range(9):
        first.step([1, 1, 1])
    state = pickle.loads(pickle.dumps(first.get_own_state()))
    other = INLINE([GoalEnv] * 3, autoreset_mode=mode, **rests)
    second = RecordMetrics(other, buffer_length=4)
    second.reset()
    second.set_own_state(state)
    assert pickle.dumps(second.get_own_state()) == pickle.dumps(first.get_own_state())
    assert second.mean() == first.mean()
    taken = second.finished()
    assert taken["seed"].tolist() == first.finished()["seed"].tolist()
    state["returns"][:] = 99  # a copy was taken
    assert 99 not in second.get_own_state()["returns"]
    third = RecordMetrics(INLINE([GoalEnv] * 3), buffer_length=2)
    third.set_own_state(state)
    assert third.get_own_state()["window"]["return"].tolist() == (
        state["window"]["return"][-2:].tolist()
    )
    for envs in (first, second, third):
        envs.close()


@pytest.mark.parametrize("byte", TRUE_BYTES)
def test_a_state_goes_on_whatever_byte_its_flags_have(byte):
    envs = RecordMetrics(INLINE([GoalEnv] * 3, autoreset_mode="same_step"))
    envs.reset()
    for _ in range(9):
        envs.step([1, 1, 1])

    def changed(state):
        return {
            key: changed(value)
            if isinstance(value, dict)
            else with_byte(value, byte)
            if getattr(value, "dtype", None) == np.bool_
            else value
            for key, value in state.items()
        }

    state = envs.get_own_state()
    assert state["finished"]["terminated"].any() or state["finished"]["truncated"].any()
    envs.set_own_state(changed(state))
    assert pickle.dumps(envs.get_own_state()) == pickle.dumps(state)
    envs.close()


def test_a_state_of_another_form_is_refused_and_changes_nothing():
    envs = RecordMetrics(INLINE(transcripts(1, 3)))
    envs.reset()
    envs.step([1, 1])
    state = envs.get_own_state()
    columns = state["finished"]
    wrong = [
        ({**state, "seeds": np.zeros(3, np.int64)}, r"\['seeds'\].*int64 \(2,\), got int64 \(3,\)"),
        ({**state, "reports_fail": 1}, r"\['reports_fail'\]"),
        ({**state, "finished": {}}, r"\['finished'\].*must be a dict with the keys"),
        ({**state, "window": columns | {"seed": np.zeros(1)}}, r"\['window'\]\['seed'\].*int64"),
        ({**state, "window": columns | {"seed": np.zeros(9, np.int64)}}, "`seed` must have 1 ent"),
    ]
    for given, match in wrong:
        with pytest.raises(ValueError, match=match):
            envs.set_own_state(given)
    assert pickle.dumps(envs.get_own_state()) == pickle.dumps(state)
    envs.close()


def test_bad_arguments_are_refused_before_a_step():
    envs = INLINE(transcripts(2, 2))
    envs.reset()
    for length in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="`buffer_length` must be a positive integer"):
            RecordMetrics(envs, length)
    # Before 1.3, wrappers of Gymnasium that are dropped close `envs`.
    theirs, listed = gym.wrappers.vector.RecordEpisodeStatistics(envs), DictInfoToList(envs)
    for wrapped in (theirs, RecordMetrics(envs)):
        with pytest.raises(ValueError, match=r"'episode' is used by Record.* inside"):
            RecordMetrics(wrapped)
        RecordMetrics(wrapped, stats_key="other")
    with pytest.raises(TypeError, match="DictInfoToList inside"):
        RecordMetrics(listed)
    assert envs.step([0, 0])[4]["t"].tolist() == [1, 1]
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_key_that_infos_have_is_refused_where_they_show_it(mode):
    """A single environment in Gymnasium's wrapper has it, in final infos too."""
    env_fns = [lambda: gym.wrappers.RecordEpisodeStatistics(TranscriptEnv(2))] * 2
    envs = RecordMetrics(INLINE(env_fns, autoreset_mode=mode))
    envs.reset()
    envs.step([0, 0])
    with pytest.raises(ValueError, match="have the key 'episode' already"):
        envs.step([0, 0])
    envs.close()
    envs = RecordMetrics(INLINE(env_fns, autoreset_mode=mode), stats_key="metrics")
    envs.reset()
    envs.step([0, 0])
    assert envs.step([0, 0])[4]["metrics"]["episode_len"].tolist() == [2, 2]
    envs.close()


def test_a_report_that_is_no_flag_is_refused_with_its_key():
    class WordyEnv(TranscriptEnv):
        def step(self, action):
            *frame, _ = super().step(action)
            return *frame, {"fail": "no"}

    envs = RecordMetrics(INLINE([partial(WordyEnv, 2)]))
    envs.reset()
    with pytest.raises(TypeError, match="say in 'fail' whether the episode failed"):
        envs.step([0])
    envs.close()


class PictureEnv(TranscriptEnv):
    """Observations are images."""

    observation_space = Box(0, 255, (8, 8, 3), np.uint8)

    def observe(self):
        return np.full((8, 8, 3), self.t, np.uint8)


@pytest.mark.parametrize("mode", [*MODES, "adapted to same_step", "adapted to next_step"])
def test_every_step_has_the_metrics_of_all_rows_where_calls_are_of_some(mode):
    """Rows whose episodes end are left out of calls, or reset by one of their own."""
    env_fns = [partial(PictureEnv, length) for length in (6, 9, 100)]
    inner = RecordMetrics(INLINE(env_fns, autoreset_mode=mode if mode in MODES else D))
    if mode in MODES:
        envs = AtariPreprocessing(inner, screen_size=4)
    else:
        envs = AutoresetAdapter(inner, mode.removeprefix("adapted to "))
    envs = RecordMetrics(envs, stats_key="outer")
    envs.reset(seed=1)
    ends = 0
    for _ in range(30):
        *_, terminations, truncations, infos = envs.step([1, 1, 1])
        over = terminations | truncations
        found, expected = infos["episode"]["return"], infos["outer"]["return"]
        if mode == "adapted to same_step":  # as in infos of environments, the last ones are apart
            last = infos["final_info"]["episode"]["return"] if over.any() else found
            found = np.where(over, last, found)
        np.testing.assert_array_equal(found, expected)
        ends += over.sum()
        if mode == D and over.any():
            envs.reset(options={"reset_mask": over})
    assert ends >= 4
    envs.close()


class ReportingEnv(TranscriptEnv):
    """Says in every step whether it succeeded."""

    def step(self, action):
        *frame, infos = super().step(action)
        return *frame, infos | {"success": self.t == 1}


@pytest.mark.parametrize("rows", [None, [1, 0], [0]])
@pytest.mark.parametrize("kind", [TranscriptEnv, ReportingEnv])
def test_a_step_in_which_all_rows_only_reset_has_the_metrics_of_the_others(kind, rows):
    """Those of environments that are made with the mode."""

    def made(mode):
        envs = INLINE([partial(kind, 2)] * 2, autoreset_mode=mode)
        return RecordMetrics(RecordMetrics(envs, stats_key="inner"))

    adapted, own = AutoresetAdapter(made(D), N), made(N)
    actions = [1] * 2 if rows is None else [1] * len(rows)
    for envs in (adapted, own):
        envs.reset()
    for _ in range(7):
        infos, expected = (envs.step(actions, rows)[4] for envs in (adapted, own))
        for name in ("episode", "_episode", "inner", "_inner"):
            assert_identical(infos[name], expected[name])
    for envs in (adapted, own):
        envs.close()
