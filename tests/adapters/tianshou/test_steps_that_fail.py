"""Steps and resets of `CartwheelVectorEnv` that fail or are interrupted lose no other row's."""

import _thread
import threading
import time

import numpy as np
import pytest

import cartwheel
from tests.support.lived import Lived, fns_of

pytestmark = pytest.mark.torch
EXECUTORS = ["inline", "thread", "process"]


class Failing(Lived):
    """Fails on the action 2."""

    def step(self, action):
        if action == 2:
            raise OSError("no camera")
        return super().step(action)


def test_steps_that_were_done_before_another_failed_are_not_lost(tianshou):
    envs = tianshou.ours([lambda: Failing(99)] * 3, 1, executor="thread")
    envs.reset(seed=1)
    done = envs.step([0, 0, 0])[4].tolist()
    while envs.waiting_id:
        done += envs.step(None)[4].tolist()
    assert sorted(info["env_id"] for info in done) == [0, 1, 2]
    found, failures = [], []
    action = [0, 2, 0]
    while action is not None or envs.waiting_id:
        try:
            found += [info["env_id"] for info in envs.step(action)[4]]
        except OSError as error:
            failures.append(error.__notes__[0])
        action = None
    assert sorted(found) == [0, 2]
    assert failures == ["raised by the environment of row 1"]
    assert sorted(envs.ready_id) == [0, 1, 2]
    assert envs.reset()[0].shape == (3, 2)
    envs.close()


class Stuck(Lived):
    """Its second reset fails."""

    resets = 0

    def reset(self, *, seed=None, options=None):
        self.resets += 1
        if self.resets == 2:
            raise OSError("no camera")
        return super().reset(seed=seed, options=options)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_reset_that_fails_leaves_all_environments_to_the_next_one(tianshou, executor):
    makes = [lambda: Lived(9), lambda: Stuck(9), lambda: Lived(9), lambda: Lived(9)]
    envs = tianshou.ours(makes, 2, executor=executor)
    envs.reset()
    with pytest.raises(OSError, match="no camera") as raised:
        envs.reset()
    assert raised.value.__notes__[0].startswith("raised by the environment of row 1")
    shown, told = envs.reset()
    assert shown[:, 0].tolist() == [0] * 4
    assert len(told) == 4
    done = envs.step([0] * 4)[4].tolist()
    while envs.waiting_id:
        done += envs.step(None)[4].tolist()
    assert sorted(info["env_id"] for info in done) == [0, 1, 2, 3]
    envs.close()


class SlowlyReset(Lived):
    """Its resets take longer than those of others."""

    def reset(self, *, seed=None, options=None):
        time.sleep(0.05)
        return super().reset(seed=seed, options=options)


def test_after_a_reset_that_failed_only_this_row_needs_another(tianshou):
    makes = [lambda: Lived(9), lambda: Stuck(9), lambda: SlowlyReset(9)]
    envs = tianshou.ours(makes, 1, executor="thread", num_workers=3)
    envs.reset()
    with pytest.raises(OSError, match="no camera"):
        envs.reset()
    assert envs.reset([1])[0][:, 0].tolist() == [0]
    envs.step([0] * 3)
    envs.close()


def test_a_reset_that_takes_too_long_is_an_error_at_once(tianshou, gates):
    envs = tianshou.ours(gates.env_fns(2), 1, executor="thread", num_workers=2, timeout=0.4)
    envs.reset()
    with pytest.raises(cartwheel.WorkerTimeoutError):
        envs.reset([0], options={"gate": 1})
    gates.open(1)
    envs.close()


@pytest.fixture(params=["thread", "process"])
def interrupted(tianshou, gates, request):
    """Environments after a Ctrl-C in a reset of row 0, while row 2 steps; both wait at gates."""
    envs = tianshou.ours(gates.env_fns(3), 1, executor=request.param, num_workers=3)
    envs.reset()
    envs.step([0, 0, 1])
    while envs.waiting_id != [2]:
        envs.step(np.zeros(0, int), [])
    interrupt = threading.Thread(target=lambda: (gates.await_arrival(2), _thread.interrupt_main()))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        envs.reset([0], options={"gate": 2})
    interrupt.join()
    yield envs
    envs.close()


def test_rows_whose_steps_a_reset_dropped_can_be_reset(interrupted, gates):
    gates.open(1, 2)
    interrupted.reset([0])  # waits for what is in flight, and drops it
    assert interrupted.waiting_id == []
    assert interrupted.reset()[0].tolist() == [[0]] * 3
    done = [info["env_id"] for info in interrupted.step([0] * 3)[4]]
    while interrupted.waiting_id:
        done += [info["env_id"] for info in interrupted.step(None)[4]]
    assert sorted(done) == [0, 1, 2]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_rows_can_be_reset_if_ctrl_c_came_before_they_were_awaited(tianshou, executor):
    envs = tianshou.ours(fns_of([9, 9, 9]), 1, executor=executor)
    envs.reset()
    envs._envs.send_reset(options={"env_index": [0]})  # the first line of such a reset
    assert envs.reset([0])[0][:, 0].tolist() == [0]
    assert len(envs.reset()[0]) == 3
    envs._envs.send([1], [2])  # likewise of a step
    assert len(envs.reset([2, 1])[0]) == 2
    assert envs.step([1] * 3)[4][0]["env_id"] in envs.ready_id
    envs.close()


def test_a_reset_that_was_interrupted_is_no_step(interrupted, gates):
    gates.open(2)
    with gates.opened_soon(1):  # row 0 is reset by then
        infos = interrupted.step(None)[4]
    assert [info["env_id"] for info in infos] == [2]
    assert interrupted.waiting_id == []
    assert interrupted.reset()[0].tolist() == [[0]] * 3
