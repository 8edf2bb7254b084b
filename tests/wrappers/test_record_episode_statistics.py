"""RecordEpisodeStatistics reports every complete episode once, in the step that ends it."""

import pickle
import time
from collections import defaultdict
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList
from gymnasium.wrappers.vector import RecordEpisodeStatistics as Gymnasiums

import cartwheel
from cartwheel.wrappers import RecordEpisodeStatistics
from tests.support.environments import TranscriptEnv, transcripts
from tests.support.episodes_reported import complete_episodes, without_episodes
from tests.support.executors import INLINE
from tests.support.gymnasium_versions import MISCOUNTS_SAME_STEP
from tests.support.objectives import TreasureEnv
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
    settings_of,
)

SCRIPT = Script(
    steps=14, resets={(1, 3): 50, (0, 3): 51, (2, 9): 52}, actions=lambda _row, k: k % 2
)


class Collected:
    """Every episode that infos report, by row; a check for ``drive``."""

    def __init__(self):
        self.by_row, self.in_order = defaultdict(list), []

    def __call__(self, result, rows):
        infos = result[-1]
        if len(result) == 2 or "episode" not in infos:
            assert "episode" not in infos
            assert "_episode" not in infos
            return
        values, mask = infos["episode"], infos["_episode"]
        assert mask.dtype == np.bool_
        assert mask.shape == (len(rows),)
        assert mask.any()
        assert [values[key].dtype for key in "rlt"] == [np.float64, np.int64, np.float64]
        assert not (mask & ~(result[2] | result[3])).any()
        for key in "rlt":
            assert not values[key][~mask].any()
        for place in np.flatnonzero(mask):
            episode = float(values["r"][place]), int(values["l"][place])
            self.by_row[int(rows[place])].append(episode)
            self.in_order.append((*episode, float(values["t"][place])))


def check_every_setting(environment, script, **settings):
    """Drives every kind of vector environment in every mode and way."""
    expected = alone(environment, script)
    with Builds() as build:
        for kind, mode, way, keywords in settings_of(environment):
            if settings and kind == "sync":
                continue
            inner = build(kind, environment, mode, **keywords, **settings)
            envs, seen = RecordEpisodeStatistics(inner, buffer_length=3), Collected()
            traces = drive(envs, script, way, check=seen, close=False)
            assert_traces(without_episodes(traces), expected, infos=False)
            for row, trace in enumerate(expected):
                wanted = [(one["return"], one["episode_len"]) for one in complete_episodes(trace)]
                assert seen.by_row[row][: len(wanted)] == wanted, (kind, mode, way, row)
            last = seen.in_order[-3:]
            queues = envs.return_queue, envs.length_queue, envs.time_queue
            assert list(zip(*queues, strict=True)) == last
            assert envs.episode_count == len(seen.in_order)
            yield envs, seen


@pytest.mark.parametrize("environment", ["pole", "one step", "goal"])
def test_episodes_are_those_of_single_environments(environment):
    for envs, _ in check_every_setting(environment, SCRIPT):
        assert envs.failed_count == 0


def test_failed_episodes_are_in_no_report_and_counted_apart():
    settings = check_every_setting("goal", FAILING, on_error="restart")
    counts = {envs.failed_count for envs, _ in settings}
    assert counts == {3}


class WideEnv(TranscriptEnv):
    def __init__(self, length, size):
        super().__init__(length)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def observe(self):
        return np.resize(super().observe(), self.observation_space.shape)


class UnlikeFinalObs:
    """A key that fails when it is compared with ``"final_obs"``."""

    def __hash__(self):
        return hash("final_obs")

    def __eq__(self, other):
        raise ValueError("chosen to fail")


class RefusesFinals(cartwheel.VectorEnv):
    """Infos to which final observations cannot be added, on demand."""

    refuses = False

    def _add_info(self, vector_infos, env_info, env_num):
        if self.refuses:
            vector_infos[UnlikeFinalObs()] = env_info
        return super()._add_info(vector_infos, env_info, env_num)


@pytest.mark.parametrize("size", [1, 2000], ids=["copied", "viewed"])
@pytest.mark.parametrize("rows", [None, [1, 0]], ids=["all", "rows"])
def test_a_step_whose_results_cannot_be_put_together_is_dropped(rows, size):
    """All arrays of the step are made when it fails; no caller sees them."""
    keywords = {"autoreset_mode": S, "final_obs": "dense", "executor": "inline"}
    vectors = RefusesFinals([partial(WideEnv, 3, size)] * 2, **keywords)
    envs = RecordEpisodeStatistics(vectors)
    envs.reset()
    envs.step([1, 1], rows)
    vectors.refuses = True
    with pytest.raises(ValueError, match="chosen to fail"):
        envs.step([1, 1], rows)
    vectors.refuses = False
    _, _, terminations, _, infos = envs.step([1, 2], rows)
    assert terminations.tolist() == [True, True]
    assert "episode" not in infos
    assert (envs.episode_count, envs.failed_count) == (0, 2)
    for reward in (1, 2, 3):
        infos = envs.step([reward, 0], rows)[4]
    assert sorted(infos["episode"]["r"].tolist()) == [0.0, 6.0]
    assert infos["final_obs"].shape == (2, size)
    assert (envs.episode_count, envs.failed_count) == (2, 2)
    envs.close()


class StubbornEnv(TranscriptEnv):
    """A reset with options raises."""

    def reset(self, *, seed=None, options=None):
        if options:
            raise ValueError("chosen to fail")
        return super().reset(seed=seed)


RESETS = {
    "now": lambda envs, **how: envs.reset(**how),
    "later": lambda envs, **how: (envs.reset_async(**how), envs.reset_wait()),
}


@pytest.mark.parametrize("reset", RESETS.values(), ids=RESETS)
def test_an_episode_whose_reset_fails_with_another_counts_from_the_batch_that_shows_it(reset):
    """The reset that raised returned no batch; the next one shows the first observation."""
    envs = RecordEpisodeStatistics(
        INLINE([partial(TranscriptEnv, 3), partial(StubbornEnv, 3)], autoreset_mode=D)
    )
    envs.reset()
    envs.step([1, 1])
    with pytest.raises(ValueError, match="chosen to fail"):
        reset(envs, options={"chosen": 1})
    envs.reset(options={"reset_mask": np.array([False, True])})
    for _ in range(3):
        *_, terminations, _, infos = envs.step([1, 2])
    assert terminations.all()
    assert infos["_episode"].tolist() == [True, True]
    assert infos["episode"]["l"].tolist() == [3, 3]
    assert infos["episode"]["r"].tolist() == [3.0, 6.0]
    assert (envs.episode_count, envs.failed_count) == (2, 0)
    envs.close()


@pytest.mark.parametrize("mode", [N] if MISCOUNTS_SAME_STEP else [N, S])
@pytest.mark.parametrize("kind", ["native", "sync"])
def test_reports_are_gymnasiums_where_gymnasium_is_right(mode, kind):
    def build():
        if kind == "native":
            return cartwheel.NativeVectorEnv("CartPole-v1", 5, autoreset_mode=mode)
        return SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 5, autoreset_mode=mode)

    ours, theirs = RecordEpisodeStatistics(build()), Gymnasiums(build())
    results = [envs.reset(seed=3) for envs in (ours, theirs)]
    random = np.random.default_rng(0)
    for _ in range(120):
        actions = random.integers(0, 2, 5)
        results = [envs.step(actions.copy()) for envs in (ours, theirs)]
        mine, other = (result[4] for result in results)
        assert mine.keys() == other.keys()
        if "episode" in mine:
            assert mine["episode"].keys() == other["episode"].keys()
            for key in "rlt":
                a, b = mine["episode"][key], other["episode"][key]
                assert a.dtype == b.dtype
                assert key == "t" or a.tobytes() == b.tobytes()
            # Durations are those of two runs side by side.
            assert np.abs(mine["episode"]["t"] - other["episode"]["t"]).max() < 5
            assert mine["_episode"].tobytes() == other["_episode"].tobytes()
        for name in ("episode_returns", "episode_lengths"):
            a, b = getattr(ours, name), getattr(theirs, name)
            assert a.tobytes() == b.tobytes(), name
    assert list(ours.return_queue) == list(theirs.return_queue)
    assert list(ours.length_queue) == list(theirs.length_queue)
    assert ours.episode_count == theirs.episode_count > 5
    ours.close()
    theirs.close()


def test_time_is_counted_from_the_beginning_of_the_episode():
    envs = RecordEpisodeStatistics(INLINE(transcripts(2, 3)))
    envs.reset()
    before = envs.get_own_state()["seconds"]
    envs.step([0, 0])
    infos = envs.step([0, 0])[4]
    state = envs.get_own_state()["seconds"]
    assert (state > before).all()
    assert 0 < infos["episode"]["t"][0] <= state[0] + 1e-6
    assert infos["episode"]["t"][1] == 0.0
    envs.step([0, 0])  # resets row 0
    assert envs.get_own_state()["seconds"][0] < envs.get_own_state()["seconds"][1]
    envs.close()


@pytest.mark.parametrize("mode", [N, S])
@pytest.mark.parametrize("environment", [partial(TranscriptEnv, 3), TreasureEnv])
def test_episode_start_times_change_where_an_episode_begins(environment, mode):
    envs = RecordEpisodeStatistics(INLINE([environment] * 2, autoreset_mode=mode))

    def changed(call, *arguments, **keywords):
        """Which start times a call changes."""
        before = envs.episode_start_times
        result = call(*arguments, **keywords)
        after, now = envs.episode_start_times, time.perf_counter()
        assert after.dtype == np.float64
        assert (before <= after).all()
        assert (after <= now).all()
        if "episode" in result[-1]:
            ended = result[-1]["_episode"]
            assert (result[-1]["episode"]["t"] <= now - before + 1e-6)[ended].all()
        return (before != after).tolist()

    assert changed(envs.reset) == [True, True]
    changed(envs.step, [1, 1])
    assert changed(envs.reset, options={"reset_mask": np.array([False, True])}) == [False, True]
    ends = [2, 3] if mode is S else [3, 4]  # the episodes of three steps, the first with one step
    for step in range(1, 5):
        assert changed(envs.step, [1, 1]) == [step == end for end in ends]
    envs.close()


def test_what_callers_do_to_infos_changes_no_later_report():
    envs = RecordEpisodeStatistics(INLINE(transcripts(1, 2), autoreset_mode=S))
    envs.reset()
    for number in range(1, 5):
        infos = envs.step([1, 1])[4]
        assert infos["_episode"].tolist() == [True, number % 2 == 0]
        assert infos["episode"]["r"].tolist() == [1.0, 2.0 * (number % 2 == 0)]
        infos["_episode"][:] = False
        infos["episode"]["r"][:] = infos["episode"]["l"][:] = 77
    assert envs.episode_count == 6
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_state_goes_on_in_another_wrapper(mode):
    envs = INLINE(
        transcripts(2, 3, 5), autoreset_mode=mode, on_done="raise" if mode != D else "freeze"
    )
    first = RecordEpisodeStatistics(envs, buffer_length=2)
    first.reset()
    for _ in range(4):
        first.step([1, 2, 3])
    state = pickle.loads(pickle.dumps(first.get_own_state()))
    state["returns"] += 10
    second = RecordEpisodeStatistics(INLINE(transcripts(2, 3, 5)), buffer_length=2)
    second.set_own_state(state)
    for name, value in second.get_own_state().items():
        if name != "seconds":
            assert np.array_equal(value, state[name]), name
    assert (second.get_own_state()["seconds"] >= state["seconds"]).all()
    first.get_own_state()["returns"][:] = 99
    assert 99 not in first.get_own_state()["returns"]
    first.set_own_state(state)
    report = first.step([1, 2, 3])[4]
    assert report["episode"]["r"][2] == 10 + 5 * 3
    assert list(first.return_queue)[-1] == 25.0
    first.close()
    second.close()


def test_a_state_of_another_form_is_refused_and_changes_nothing():
    envs = RecordEpisodeStatistics(INLINE(transcripts(2, 3)))
    envs.reset()
    envs.step([1, 1])
    state = envs.get_own_state()
    wrong = [
        ({**state, "returns": np.zeros(3)}, r"\['returns'\].*float64 \(2,\), got float64 \(3,\)"),
        ({**state, "lengths": np.zeros(2)}, r"\['lengths'\].*int64"),
        ({**state, "episode_count": 1.5}, r"\['episode_count'\]"),
        ({"returns": state["returns"]}, "must be a dict with the keys"),
        (None, "must be a dict"),
    ]
    for given, match in wrong:
        with pytest.raises(ValueError, match=match):
            envs.set_own_state(given)
    for name, value in envs.get_own_state().items():
        assert name == "seconds" or np.array_equal(value, state[name])
    envs.close()


class TakenEnv(TranscriptEnv):
    """Reports an episode itself, at its end."""

    def step(self, action):
        *frame, info = super().step(action)
        return *frame, info | ({"episode": 1} if frame[2] else {})


def test_bad_arguments_are_refused_before_a_step():
    envs = INLINE(transcripts(2, 2))
    envs.reset()
    for length in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="`buffer_length` must be a positive integer"):
            RecordEpisodeStatistics(envs, length)
    with pytest.raises(TypeError, match="`stats_key` must be a string"):
        RecordEpisodeStatistics(envs, stats_key=None)
    # Before 1.3, wrappers of Gymnasium that are dropped close `envs`.
    theirs, ours, listed = Gymnasiums(envs), RecordEpisodeStatistics(envs), DictInfoToList(envs)
    for wrapped in (theirs, ours):
        with pytest.raises(ValueError, match="'episode' is used by RecordEpisodeStatistics inside"):
            RecordEpisodeStatistics(cartwheel.wrappers.base.VectorWrapper(wrapped))
        RecordEpisodeStatistics(wrapped, stats_key="other")
    with pytest.raises(TypeError, match="DictInfoToList inside"):
        RecordEpisodeStatistics(listed)
    assert envs.step([0, 0])[4]["t"].tolist() == [1, 1]
    envs.close()


def test_a_key_that_infos_have_is_refused_in_the_step_that_shows_it():
    envs = RecordEpisodeStatistics(INLINE([partial(TakenEnv, 2)] * 2))
    envs.reset()
    envs.step([0, 0])
    with pytest.raises(ValueError, match="have the key 'episode' already"):
        envs.step([0, 0])
    assert envs.episode_count == 0
    envs.close()
