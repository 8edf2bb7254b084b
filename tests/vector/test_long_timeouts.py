"""A time-out beyond all practical times means no limit, and one that is not a number is refused."""

from functools import partial

import numpy as np
import pytest

import cartwheel
from cartwheel import envpool
from tests.support.cases import POLE
from tests.support.environments import TranscriptEnv

NEVER = [1e9, 1e10, 1e19, 1e30, float("inf"), 10**400, np.int64(2**63 - 1), np.float32("inf")]


def test_every_call_takes_a_timeout_of_any_length(build_any):
    envs = build_any([POLE] * 2)
    for timeout in NEVER:
        envs.reset_async(seed=1)
        envs.reset_wait(timeout=timeout)
        envs.step_async([0, 1])
        assert envs.step_wait(timeout=timeout)[1].tolist() == [1, 1]
        envs.send([0, 1], env_index=[0, 1])
        assert envs.recv(timeout=timeout)[1].tolist() == [1, 1]
        envs.call_async("gravity")
        assert envs.call_wait(timeout=timeout) == (9.8, 9.8)


@pytest.mark.parametrize("timeout", NEVER, ids=range(len(NEVER)))
def test_a_timeout_of_the_constructor_may_have_any_length(build_any, timeout):
    envs = build_any([POLE] * 2, timeout=timeout)
    assert envs.timeout is None
    envs.reset(seed=1)
    assert envs.step([0, 1])[1].tolist() == [1, 1]
    envs.close(timeout=timeout)


def test_no_worker_hangs_where_the_limit_is_no_time(build_processes):
    with pytest.raises(ValueError, match="needs a positive `timeout`"):
        build_processes([POLE] * 2, on_timeout="restart", timeout=1e30)


class ClosingEnv(TranscriptEnv):
    """Waits for gate 1 when it is closed, and then opens gate 2."""

    def __init__(self, gates):
        super().__init__(length=9)
        self.gates = gates

    def close(self):
        self.gates.stand_at(1)
        self.gates.open(2)


@pytest.mark.parametrize("timeout", [1e10, 1e30, float("inf")])
def test_a_close_without_a_limit_waits_for_the_environments(build_workers, gates, timeout):
    envs = build_workers([partial(ClosingEnv, gates)])
    envs.reset()
    with gates.opened_soon(1):
        envs.close(timeout=timeout)
    gates.stand_at(2)  # open, or the worker was killed before


@pytest.mark.parametrize("timeout", [float("nan"), np.float32("nan")], ids=repr)
def test_a_timeout_that_is_not_a_number_is_refused_by_name(build_any, timeout):
    text = "^`timeout` must be a number of seconds or None, got "
    with pytest.raises(ValueError, match=text):
        build_any([POLE] * 2, timeout=timeout)
    envs = build_any([POLE] * 2)
    envs.reset(seed=1)
    envs.step_async([0, 1])
    with pytest.raises(ValueError, match=text):
        envs.step_wait(timeout=timeout)
    envs.step_wait()
    envs.send([0, 1], env_index=[0, 1])
    for call in (envs.recv, envs.call_wait, envs.reset_wait, envs.close):
        with pytest.raises(ValueError, match=text):
            call(timeout=timeout)
    assert envs.recv()[1].tolist() == [1, 1]


def test_other_waits_take_a_time_of_any_length_and_refuse_nan():
    for timeout in NEVER:
        pool = envpool.make("CartPole-v1", num_envs=2, timeout=timeout)
        pool.reset()
        assert pool.step(np.array([0, 1]))[1].tolist() == [1, 1]
        pool.close()
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2)
    policy = partial(np.zeros, 2, np.int64)
    for deadline in NEVER:
        collector = cartwheel.Collector(
            envs, lambda _: policy(), num_steps=4, order="free", min_rows=2, deadline=deadline
        )
        assert collector.collect().num_steps == 4
    with pytest.raises(ValueError, match=r"^`deadline` must be a number of seconds"):
        cartwheel.Collector(
            envs, lambda _: policy(), num_steps=4, order="free", deadline=float("nan")
        )
    envs.close()
