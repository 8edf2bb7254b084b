"""`call`, `get_attr` and `set_attr` with ``env_index`` reach these environments and no others."""

import os
import signal
from functools import partial
from multiprocessing import TimeoutError

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError
from gymnasium.vector import SyncVectorEnv

from cartwheel.wrappers import RecordEpisodeStatistics
from tests.support.cases import POLE
from tests.support.comparison import assert_identical, assert_names_row
from tests.support.environments import TranscriptEnv
from tests.support.executors import EVERY_NATIVE
from tests.support.faulty import FaultyEnv
from tests.support.oracle import assert_same_reset, assert_same_steps, with_oracle

ROWS = ([3], [4, 0, 2], (1,), np.array([2, 4], np.int16), range(5), [1, 2, 3, 4, 0])


class AskedEnv(TranscriptEnv):
    """Counts how often it was asked."""

    def __init__(self, row):
        super().__init__(length=100)
        self.row, self.asked = row, 0

    def scaled(self, factor, *, env_index=0):
        self.asked += 1
        return factor * self.row + env_index

    def stand_at(self, gates, gate):
        gates.stand_at(gate)
        return self.row

    def die_once(self, flag):
        if not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.row


def asked(count):
    return [partial(AskedEnv, row) for row in range(count)]


def test_only_the_named_environments_are_called_and_answer_in_this_order(build_everywhere):
    envs, singles = build_everywhere(asked(5)), [make() for make in asked(5)]
    for rows in ROWS:
        answers = envs.call("scaled", 10, env_index=rows)
        assert_identical(answers, tuple(singles[row].scaled(10) for row in rows))
        assert_identical(envs.get_attr("asked"), tuple(env.asked for env in singles))
        assert_identical(
            envs.get_attr("row", env_index=rows), tuple(singles[row].row for row in rows)
        )
    assert envs.call("scaled", 10, env_index=None) == (0, 10, 20, 30, 40)


def test_a_method_gets_a_parameter_of_this_name_by_its_position(build):
    class OwnEnv(AskedEnv):
        def scaled(self, factor, env_index=0):
            return super().scaled(factor, env_index=env_index)

    envs = build([partial(OwnEnv, row) for row in range(3)])
    assert envs.call("scaled", 10, 7, env_index=[2, 1]) == (27, 17)


def test_values_are_one_for_each_named_row_or_one_for_all_of_them(build_everywhere):
    envs, expected = build_everywhere(asked(5)), [0, 1, 2, 3, 4]
    for rows, values in [
        ([3, 0], [30, 31]),
        (np.array([1, 4]), (41, 42)),
        ([2], [None]),
        ([4, 1, 0], "text"),
        ([2, 3], np.arange(2)),
        (range(5), [9, 8, 7, 6, 5]),
    ]:
        envs.set_attr("row", values, env_index=rows)
        each = values if isinstance(values, list | tuple) else [values] * len(rows)
        for row, value in zip(rows, each, strict=True):
            expected[row] = value
        assert_identical(envs.get_attr("row"), tuple(expected))


def test_a_pending_call_keeps_its_rows(build_any):
    envs = build_any([POLE] * 4)
    envs.reset(seed=1)
    envs.set_attr("gravity", [1.0, 2.0, 3.0, 4.0])
    envs.call_async("gravity", env_index=[3, 1])
    with pytest.raises(AlreadyPendingCallError):
        envs.get_attr("gravity", env_index=[0])
    assert envs.call_wait() == (4.0, 2.0)
    envs.call_async("gravity")
    assert envs.call_wait() == (1.0, 2.0, 3.0, 4.0)
    assert len(envs.np_random_seed) == 4


def test_a_call_that_timed_out_still_answers_for_its_rows(build_workers, gates):
    envs = build_workers(asked(4))
    envs.call_async("stand_at", gates, 1, env_index=[3, 0])
    with pytest.raises(TimeoutError):
        envs.call_wait(timeout=0.02)
    with gates.opened_soon(1):
        assert envs.call_wait() == (3, 0)


def test_a_restarted_worker_answers_for_the_same_rows(build_processes, tmp_path):
    envs = build_processes(asked(4), on_worker_death="restart")
    assert envs.call("die_once", tmp_path / "died", env_index=[3, 1]) == (3, 1)
    assert envs.get_attr("row", env_index=[2, 3, 0]) == (2, 3, 0)


def test_the_error_of_a_named_environment_names_its_row_and_others_are_not_called(build):
    envs = build([partial(FaultyEnv, row) for row in range(4)])
    assert envs.call("fail_in_row", 2, "value error", env_index=[3, 1, 0]) == ("none",) * 3
    with pytest.raises(ValueError, match="boom") as failure:
        envs.call("fail_in_row", 2, "value error", env_index=[3, 2])
    assert_names_row(failure.value, 2)


def test_environments_of_gymnasium_step_alike_with_the_same_attributes(build_anywhere):
    envs, oracle = with_oracle(build_anywhere, POLE, 5)
    for rows, values in [([4, 0], [3.0, 30.0]), ([2], 20.0), ([1, 3, 2], [1.0, 2.0, 9.8])]:
        envs.set_attr("gravity", values, env_index=rows)
        each = values if isinstance(values, list) else [values] * len(rows)
        for row, value in zip(rows, each, strict=True):
            oracle.envs[row].set_wrapper_attr("gravity", value)
        assert_identical(envs.get_attr("gravity"), oracle.get_attr("gravity"))
        for named in ([0, 4, 2], [3]):
            expected = oracle.get_attr("gravity")
            assert_identical(
                envs.get_attr("gravity", env_index=named), tuple(expected[row] for row in named)
            )
        assert_same_steps(envs, oracle, 15)
    for name in ("np_random", "np_random_seed", "state"):
        expected = oracle.get_attr(name)
        for ask in (envs.get_attr, envs.call):
            assert_identical(ask(name, env_index=[4, 1]), (expected[4], expected[1]))


@pytest.mark.parametrize("executor", EVERY_NATIVE, ids=str)
def test_a_refused_value_changes_no_native_row(executor):
    envs = executor([POLE] * 5)
    envs.set_attr("gravity", [1.0, 2.0, 3.0, 4.0, 5.0])
    with pytest.raises(ValueError, match=r"`gravity` of row 0 must be a number, got 'x'\."):
        envs.set_attr("gravity", [7.0, "x", 8.0], env_index=[4, 0, 2])
    assert envs.get_attr("gravity") == (1.0, 2.0, 3.0, 4.0, 5.0)
    with pytest.raises(AttributeError, match="no parameter 'gravty'"):
        envs.set_attr("gravty", 1, env_index=[0])
    envs.close()


def test_the_observations_of_other_rows_stay_when_a_state_is_set(build_native):
    envs = build_native([POLE] * 3, on_done="freeze", autoreset_mode="disabled")
    first, _ = envs.reset(seed=1)
    envs.set_attr("state", [[0.5, 0, 0, 0]], env_index=[1])
    again, _ = envs.reset(options={"reset_mask": np.array([True, False, False])})
    assert_identical(again[1:], first[1:])  # shown again, whatever was set
    observations = envs.step([1, 1, 1])[0]
    assert observations[1, 0] == np.float32(0.5)
    single = SyncVectorEnv([POLE] * 3)
    single.reset(seed=1)
    assert_identical(observations[2], single.step([1, 1, 1])[0][2])
    single.close()


WRONG = [
    ([3], ValueError, "`env_index` names row 3; there are rows 0 to 2"),
    ([-1], ValueError, "`env_index` names row -1; there are rows 0 to 2"),
    ([1, 1], ValueError, "`env_index` names row 1 twice"),
    ([], ValueError, "`env_index` is empty"),
    ([0.5], TypeError, "`env_index` must be a one-dimensional array of integers"),
    (1, TypeError, "`env_index` must be a one-dimensional array of integers"),
    (np.array([True, False, True]), TypeError, "`env_index` must be a one-dimensional array"),
]


def test_other_rows_are_refused_before_anything_starts(build_any):
    envs, oracle = with_oracle(build_any, POLE, 3)
    for rows, error, text in WRONG:
        for function in (
            lambda rows: envs.call("gravity", env_index=rows),
            lambda rows: envs.call_async("gravity", env_index=rows),
            lambda rows: envs.get_attr("gravity", env_index=rows),
            lambda rows: envs.set_attr("gravity", 1.0, env_index=rows),
            envs.render,
        ):
            with pytest.raises(error, match=text):
                function(rows)
    for values in ([1.0], [1.0, 2.0, 3.0], ()):
        with pytest.raises(ValueError, match=r"each of the 2 rows of `env_index`, got \d"):
            envs.set_attr("gravity", values, env_index=[0, 2])
    assert_same_steps(envs, oracle, 5)
    envs.send([0], [1])
    with pytest.raises(AlreadyPendingCallError):
        envs.get_attr("gravity", env_index=[0])
    envs.recv()
    envs.close()
    with pytest.raises(ClosedEnvironmentError):
        envs.get_attr("gravity", env_index=[7])


def test_wrappers_of_cartwheel_pass_it_on(build_any):
    envs = build_any([POLE] * 3)
    wrapped = RecordEpisodeStatistics(envs)
    wrapped.set_attr("gravity", [1.0, 2.0], env_index=[2, 0])
    assert wrapped.get_attr("gravity", env_index=[0, 2]) == (2.0, 1.0)
    assert wrapped.call("gravity", env_index=[2]) == (1.0,)


@pytest.mark.parametrize("num_envs", [1, 7])
def test_one_environment_and_more_workers_than_environments(build_everywhere, num_envs):
    envs = build_everywhere(asked(num_envs))
    last = num_envs - 1
    assert envs.call("scaled", 2, env_index=[last]) == (2 * last,)
    envs.set_attr("row", [5], env_index=[last])
    assert envs.get_attr("row", env_index=[last]) == (5,)


def test_resets_after_such_calls_are_those_of_gymnasium(build_any):
    envs, oracle = with_oracle(build_any, POLE, 3)
    envs.call_async("gravity", env_index=[1])
    envs.call_wait()
    assert_same_reset(envs, oracle, seed=4)
    assert_same_steps(envs, oracle, 5)
