"""Bad input is refused before anything is stepped, with the values that fix the call."""

import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import cartwheel
from tests.support.collecting import assert_same_steps, collector_of, in_lockstep, policy
from tests.support.environments import Untouched, transcripts
from tests.support.executors import INLINE, PROCESS

WRONG = {
    "unknown order": ({"order": "fast"}, ValueError, "`order` must be .*'auto'.*'fast'"),
    "groups that do not divide": (
        {"order": "groups", "groups": 4},
        ValueError,
        "`groups` must divide the number of rows, 6, got 4",
    ),
    "no group": ({"order": "groups", "groups": 0}, ValueError, "`groups` must be .*got 0"),
    "too many rows": ({"order": "free", "min_rows": 7}, ValueError, "`min_rows` .*1 to 6, got 7"),
    "bounds that cross": (
        {"order": "free", "min_rows": 4, "max_rows": 3},
        ValueError,
        "`max_rows` must be at least min_rows=4, got 3",
    ),
    "max_rows above": ({"order": "free", "max_rows": 9}, ValueError, "`max_rows` .*1 to 6, got 9"),
    "a deadline below 0": (
        {"order": "free", "deadline": -1},
        ValueError,
        "`deadline` must not be negative, got -1",
    ),
    "a deadline of NaN": ({"order": "free", "deadline": np.nan}, ValueError, "`deadline`.*nan"),
    "a deadline in words": ({"order": "free", "deadline": "1"}, TypeError, "`deadline`.*'1'"),
    "columns above": ({"order": "free", "columns": 7}, ValueError, "`columns` .*1 to 6, got 7"),
    "columns in lockstep": ({"columns": 3}, ValueError, "`columns` needs order='free'"),
    "columns with auto": (
        {"order": "auto", "columns": 3},
        ValueError,
        "`columns` needs .*order='auto'",
    ),
    "ahead in lockstep": ({"run_ahead": 1}, ValueError, "`run_ahead` .*run_ahead=1"),
    "ahead below 0": (
        {"order": "free", "run_ahead": -1},
        ValueError,
        "`run_ahead` must be an integer from 0 on, got -1",
    ),
    "episodes": (
        {"order": "free", "until": "all_done"},
        ValueError,
        "`until` and `num_episodes` go with order='lockstep', got 'free'",
    ),
    "a truth value in words": ({"background": "yes"}, TypeError, "`background` must be True"),
    "no queue": ({"background": True, "queue": 0}, ValueError, "`queue` must be .*got 0"),
    "a reset of some rows": (
        {"options": {"env_index": [0]}},
        ValueError,
        r"`options` must not choose rows, got \['env_index'\]: all of them are reset",
    ),
    "standby in lockstep": ({"standby": 1}, ValueError, "`standby` needs order='free'"),
}


def test_an_argument_that_does_not_fit_is_an_error(closes):
    rows = [lambda: Untouched(transcripts(3)[0]())] * 6
    envs = closes(PROCESS(rows, autoreset_mode="disabled"))
    for keywords, error, message in WRONG.values():
        with pytest.raises(error, match=message):
            cartwheel.Collector(envs, policy, 7, **keywords)


@pytest.mark.parametrize("order", ["free", "groups"])
def test_vectors_without_send_and_recv_are_refused(order):
    envs = SyncVectorEnv(transcripts(3, 4))
    with pytest.raises(TypeError, match=re.escape("order='lockstep'")):
        cartwheel.Collector(envs, policy, 7, order=order)
    wrapped = gym.wrappers.vector.RecordEpisodeStatistics(INLINE(transcripts(3, 4)))
    with pytest.raises(TypeError, match=re.escape("wrappers of cartwheel.wrappers")):
        cartwheel.Collector(wrapped, policy, 7, order=order)
    wrapped.close()
    envs.close()


def test_wrappers_of_cartwheel_are_collected():
    envs = cartwheel.wrappers.RecordEpisodeStatistics(PROCESS(transcripts(3, 4, 5, 6)))
    collector = cartwheel.Collector(
        envs, lambda o: np.zeros(len(o), np.int64), 7, order="free", seed=1
    )
    assert collector.collect().valid.shape == (7, 4)
    collector.close()
    envs.close()


def test_the_number_of_steps_changes_only_between_rollouts():
    with collector_of("NEXT_STEP", 7, num_envs=6, build=PROCESS, order="free") as collector:
        assert collector.collect().num_steps == 7
        collector.num_steps = 3
        assert collector.collect().num_steps == 3
    with collector_of(
        "NEXT_STEP", 7, num_envs=6, build=PROCESS, order="free", run_ahead=3, max_rows=1
    ) as collector:
        collector.collect()
        if collector.envs.in_flight:
            with pytest.raises(RuntimeError, match="`num_steps` cannot change from 7 to 3"):
                collector.num_steps = 3
        collector.reset()
        collector.num_steps = 3
        assert collector.collect().num_steps == 3


@pytest.mark.parametrize("name", ["envs", "recurrent"])
def test_what_a_collector_has_read_cannot_be_set(name):
    with collector_of("NEXT_STEP", 7, num_envs=2) as collector:
        before = getattr(collector, name)
        with pytest.raises(AttributeError, match=name):
            setattr(collector, name, True)
        assert getattr(collector, name) is before


def test_the_number_of_steps_stays_while_columns_wait_for_their_rollout():
    with collector_of("NEXT_STEP", 7, num_envs=6, order="free", columns=2) as collector:
        seen = [collector.collect()]  # inline, the columns of the other rows are complete, too
        with pytest.raises(RuntimeError, match="`num_steps` cannot change from 7 to 3"):
            collector.num_steps = 3
        seen += [collector.collect() for _ in range(2)]
        assert sorted(np.concatenate([rollout.env_index for rollout in seen])) == list(range(6))
        collector.reset()
        collector.num_steps = 3
        assert collector.collect().num_steps == 3


def test_the_names_of_extras_stay_within_a_rollout():
    class Changing:
        calls = 0

        def __call__(self, observations):
            self.calls += 1
            actions, extras = policy(observations)
            return (actions, extras) if self.calls < 4 else (actions, {**extras, "more": actions})

    with collector_of("NEXT_STEP", 7, num_envs=6, build=PROCESS, order="free") as collector:
        collector.policy = Changing()
        with pytest.raises(ValueError, match=r"gave the extras \['half', 'more'\]"):
            collector.collect()
        collector.policy = policy
        assert list(collector.collect().extras) == ["half"]


@pytest.mark.parametrize("order", ["lockstep", "free", "groups"])
@pytest.mark.parametrize("kind", ["<U1", ">f4", "O", "M8[s]"])
def test_extras_that_are_not_numbers_are_refused_before_anything_is_stepped(kind, order):
    def say(observations):
        actions, _ = policy(observations)
        return actions, {"said": np.zeros(len(actions), kind)}

    (expected,) = in_lockstep(1, "NEXT_STEP", 7, num_envs=6)
    with collector_of("NEXT_STEP", 7, num_envs=6, build=PROCESS, order=order) as collector:
        collector.policy = say
        with pytest.raises(TypeError, match="extra `said` must be numbers or flags, got dtype"):
            collector.collect()
        assert collector.envs.stats().steps.sum() == 0
        collector.policy = policy
        assert_same_steps(collector.collect(), expected)


def test_a_collector_says_what_it_is():
    with collector_of("NEXT_STEP", 7, num_envs=6, build=PROCESS, order="free") as collector:
        assert re.search(r"policy, num_steps=7, order='free'\)$", repr(collector))
        line = repr(cartwheel.Collector(collector.envs, policy, 7, background=True))
        assert line.endswith("num_steps=7, background=True)")


def test_progress_is_neither_a_number_nor_a_word():
    for progress in (3, "yes", None):
        with pytest.raises(TypeError, match="`progress` must be True, False or a function"):
            collector_of("NEXT_STEP", 7, progress=progress).__enter__()
