"""An exception in an environment arrives as it was raised, and everything works after a reset."""

import builtins
import re
import traceback
from contextlib import closing
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
from cartwheel.workers.serving.worker import Worker
from tests.support import faulty
from tests.support.comparison import assert_identical, assert_names_row, text_of
from tests.support.faulty import FailingAutoresetEnv, FaultyEnv, fault

#: The exception type of each fault, and a part of its text.
EXCEPTIONS = {
    "value error": (ValueError, "boom"),
    "two arguments": (faulty.TwoArgumentsError, "salt and pepper"),
    "unpicklable": (faulty.UnpicklableError, "holds a lock"),
    "refusing": (faulty.RefusesToPickleError, "refuses"),
    "unprintable": (faulty.UnprintableError, ""),
    "base exception": (faulty.FaultyBaseError, "not an Exception"),
    "system exit": (SystemExit, "3"),
    "keyboard interrupt": (KeyboardInterrupt, ""),
    "chained": (RuntimeError, "the outer one"),
    "long message": (ValueError, "xxxxxxxx"),
    "recursion": (RecursionError, "recursion"),
}
#: Exceptions that cannot be sent, or that would end the caller's program.
NOT_RAISED_AGAIN = {
    "unpicklable",
    "base exception",
    "system exit",
    "keyboard interrupt",
}
NUM_ENVS = 5


def faulty_rows(num_envs=NUM_ENVS, cls=FaultyEnv):
    return [partial(cls, row) for row in range(num_envs)]


def actions(**faults):
    """Actions without a fault, except for rows given as ``row_3="value error"``."""
    batch = [fault("none")] * NUM_ENVS
    for row, name in faults.items():
        batch[int(row.removeprefix("row_"))] = fault(name)
    return batch


def expected_type(name, executor):
    if executor == "process" and name in NOT_RAISED_AGAIN:
        return cartwheel.RemoteEnvError
    return EXCEPTIONS[name][0]


def assert_goes_on_like_new(envs):
    """After a reset with a seed, results equal those of environments that never failed."""
    oracle = SyncVectorEnv(faulty_rows())
    obs, _infos = envs.reset(seed=7)
    assert_identical(obs, oracle.reset(seed=7)[0])
    for _ in range(10):
        assert_identical(envs.step(actions())[:4], oracle.step(actions())[:4])
    oracle.close()


def changes(envs, name, before):
    """By how much a counter of each row has grown."""
    return np.subtract(envs.get_attr(name), before).tolist()


def test_exceptions_in_a_step_arrive_as_they_were_raised(build):
    """The same environments go on after each of them."""
    envs = build(faulty_rows())
    for name, (_, text) in EXCEPTIONS.items():
        envs.reset(seed=1)
        envs.step(actions())
        before = envs.get_attr("steps")
        with pytest.raises(expected_type(name, build.executor)) as failure:
            envs.step(actions(row_3=name))
        error = failure.value
        if name != "unprintable":
            assert text in text_of(error)
            assert_names_row(error, 3)
        if type(error) is cartwheel.RemoteEnvError:
            assert EXCEPTIONS[name][0].__name__ in str(error)
        # Ctrl-C, which arrives in the main thread, does not wait for the rows after this one.
        is_ctrl_c = name == "keyboard interrupt" and build.executor == "inline"
        assert changes(envs, "steps", before) == [1, 1, 1, 0, 0 if is_ctrl_c else 1], name
        assert_goes_on_like_new(envs)


def test_exceptions_in_a_reset_arrive_as_they_were_raised(build):
    envs = build(faulty_rows())
    for name in EXCEPTIONS:
        before = envs.get_attr("resets")
        with pytest.raises(expected_type(name, build.executor)) as failure:
            envs.reset(seed=1, options={"faults": {2: name}})
        if name != "unprintable":
            assert_names_row(failure.value, 2)
        is_ctrl_c = name == "keyboard interrupt" and build.executor == "inline"
        assert changes(envs, "resets", before) == [1, 1, 1, *[0 if is_ctrl_c else 1] * 2], name
        with pytest.raises(ResetNeeded):
            envs.step(actions())
        assert_goes_on_like_new(envs)


def test_rows_that_were_not_stepped_because_of_ctrl_c_need_a_reset():
    with closing(cartwheel.VectorEnv(faulty_rows(), executor="inline")) as envs:
        envs.reset(seed=1)
        with pytest.raises(KeyboardInterrupt):
            envs.step(actions(row_3="keyboard interrupt"))
        with pytest.raises(ResetNeeded, match=r"\[3, 4\]"):
            envs.step(actions())
        assert_goes_on_like_new(envs)


class WideEnv(gym.Env):
    """Episodes of one step. Kept batches of it are kept in place."""

    observation_space = Box(0, 1, (4096,))
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return np.zeros(4096, np.float32), {}

    def step(self, _):
        return np.zeros(4096, np.float32), 0.0, True, False, {}


def test_rows_are_as_they_were_if_ctrl_c_comes_before_their_reset(monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    envs = cartwheel.VectorEnv([WideEnv] * 2, executor="inline", autoreset_mode="Disabled")
    with closing(envs):
        kept = [envs.reset(), envs.step([0, 0])]
        with monkeypatch.context() as patch:
            patch.setattr(Worker, "receive_reset", interrupt)
            with pytest.raises(KeyboardInterrupt):
                envs.reset()
        with pytest.raises(cartwheel.EpisodeOverError, match=r"\[0, 1\]"):
            envs.step([0, 0])
        kept.append(envs.reset())
        envs.step([0, 0])


class InterruptedCopy:
    def __deepcopy__(self, memo):
        raise KeyboardInterrupt


class CopiedInfoEnv(FaultyEnv):
    """Episodes of one step, whose info has an object that is copied for ``final_info``."""

    def step(self, action):
        observation, reward, _, truncated, info = super().step(action)
        return observation, reward, True, truncated, info | {"copied": InterruptedCopy()}


def test_ctrl_c_while_an_info_is_copied_is_raised():
    envs = cartwheel.VectorEnv([CopiedInfoEnv], executor="inline", autoreset_mode="SameStep")
    with closing(envs):
        envs.reset(seed=1)
        with pytest.raises(KeyboardInterrupt):
            envs.step([fault("none")])


def test_ctrl_c_in_a_masked_reset_leaves_the_rows_of_others_as_they_are():
    envs = cartwheel.VectorEnv(
        faulty_rows(), executor="inline", autoreset_mode=AutoresetMode.DISABLED
    )
    oracle = [make() for make in faulty_rows()]
    envs.reset(seed=1)
    for row, env in enumerate(oracle):
        env.reset(seed=1 + row)
    masked = {"reset_mask": np.array([False, True, False, True, False])}
    with pytest.raises(KeyboardInterrupt):
        envs.reset(options={**masked, "faults": {1: "keyboard interrupt"}})
    assert envs.get_attr("resets") == (1, 2, 1, 1, 1)
    envs.reset(options=masked)
    for row in (1, 3):
        oracle[row].reset()
    expected = np.array([env.step(0)[0] for env in oracle])
    assert_identical(envs.step(actions())[0][::2], expected[::2])
    envs.close()


@pytest.mark.parametrize("name", ["value error", "unpicklable", "system exit"])
def test_an_exception_in_a_call_arrives_as_it_was_raised(build, name):
    envs = build(faulty_rows())
    envs.reset(seed=7)
    with pytest.raises(expected_type(name, build.executor)) as failure:
        envs.call("fail_in_row", 4, name)
    assert_names_row(failure.value, 4)
    envs.step(actions())  # a failed call requires no reset
    assert_goes_on_like_new(envs)


def note_and_fail(env, rows, row, error):
    rows.append(env.unwrapped.row)
    if env.unwrapped.row == row:
        raise error


def test_ctrl_c_in_an_applied_function_does_not_wait_for_the_other_rows():
    with closing(cartwheel.VectorEnv(faulty_rows(), executor="inline")) as envs:
        rows = []
        with pytest.raises(KeyboardInterrupt) as failure:
            envs.apply(note_and_fail, rows, 2, KeyboardInterrupt())
        assert_names_row(failure.value, 2)
        assert rows == [0, 1, 2]
        rows.clear()
        with pytest.raises(ValueError, match="boom"):
            envs.apply(note_and_fail, rows, 2, ValueError("boom"))
        assert rows == [0, 1, 2, 3, 4]
        assert_goes_on_like_new(envs)


class InterruptedStateEnv(FaultyEnv):
    saves = 0

    def get_state(self):
        self.saves += 1
        if self.row == 2:
            raise KeyboardInterrupt

    def set_state(self, state):
        raise NotImplementedError


def test_ctrl_c_while_rows_are_saved_does_not_wait_for_the_other_rows():
    rows = faulty_rows(cls=InterruptedStateEnv)
    with closing(cartwheel.VectorEnv(rows, executor="inline")) as envs:
        envs.reset(seed=1)
        with pytest.raises(KeyboardInterrupt) as failure:
            envs.get_state()
        assert_names_row(failure.value, 2)
        assert envs.get_attr("saves") == (1, 1, 1, 0, 0)


def test_arguments_of_an_exception_are_kept(build):
    envs = build(faulty_rows())
    envs.reset()
    with pytest.raises(ValueError, match="boom") as failure:
        envs.step(actions(row_0="value error"))
    assert failure.value.args == ("boom", 7)


def test_the_message_is_not_shortened(build):
    envs = build(faulty_rows())
    envs.reset()
    with pytest.raises(ValueError, match="xxx") as failure:
        envs.step(actions(row_0="long message"))
    assert failure.value.args == ("x" * 5_000_000,)


@pytest.mark.slow
def test_a_message_of_50_mb_arrives_whole(build_processes):
    def build_env():
        env = FaultyEnv()

        def commit(_name):
            raise ValueError("x" * 50_000_000)

        env.commit = commit
        return env

    envs = build_processes([build_env] * 2)
    with pytest.raises(ValueError, match="xxx") as failure:
        envs.reset()
    assert len(str(failure.value)) == 50_000_000


@pytest.mark.parametrize("name", ["value error", "unpicklable", "chained"])
def test_the_traceback_includes_the_environment(build, name):
    envs = build(faulty_rows())
    envs.reset()
    with pytest.raises(expected_type(name, build.executor)) as failure:
        envs.step(actions(row_3=name))
    shown = "".join(traceback.format_exception(failure.value))
    for place in ("faulty.py", "in commit", "in _raise\n"):
        assert place in shown
    if name == "chained":
        assert "in _raise_chained\n" in shown
        assert "boom" in shown
    if build.executor == "process":
        assert "faulty.py" in str(failure.value.__cause__)


def test_the_lowest_row_is_raised_and_every_other_row_is_stepped(build_everywhere):
    envs = build_everywhere(faulty_rows())
    envs.reset(seed=1)
    with pytest.raises(RuntimeError, match="the outer one") as failure:
        envs.step(actions(row_1="chained", row_3="value error", row_4="unpicklable"))
    assert_names_row(failure.value, 1)
    assert envs.get_attr("steps") == (1, 0, 1, 0, 0)
    assert_goes_on_like_new(envs)


def test_rows_that_raised_must_be_reset_first(build_everywhere):
    envs = build_everywhere(faulty_rows())
    oracle = SyncVectorEnv(faulty_rows())
    envs.reset(seed=1)
    oracle.reset(seed=1)
    with pytest.raises(ValueError, match="boom"):
        envs.step(actions(row_1="value error", row_2="value error"))
    for _ in range(2):
        with pytest.raises(ResetNeeded, match=r"1\D+2"):
            envs.step(actions())
    assert envs.get_attr("steps") == (1, 0, 0, 1, 1)
    only = np.array([False, True, False, False, False])
    envs.reset(options={"reset_mask": only})
    with pytest.raises(ResetNeeded, match="2"):
        envs.step(actions())
    others = np.array([False, False, True, False, False])
    envs.reset(seed=30, options={"reset_mask": others})
    oracle.step(actions())
    rewards = envs.step(actions())[1]
    assert_identical(rewards[[0, 3, 4]], oracle.step(actions())[1][[0, 3, 4]])
    oracle.reset(seed=30)
    assert_identical(rewards[2], oracle.step(actions())[1][2])
    assert envs.get_attr("resets") == (1, 2, 2, 1, 1)
    oracle.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_an_exception_in_an_autoreset_is_an_error_of_its_row(build, mode):
    envs = build(faulty_rows(3, FailingAutoresetEnv), autoreset_mode=mode)
    envs.reset(seed=1)
    if mode == "NextStep":
        assert envs.step([0] * 3)[2].tolist() == [False, True, False]
    with pytest.raises(ValueError, match="boom") as failure:
        envs.step([0] * 3)
    assert_names_row(failure.value, 1)
    with pytest.raises(ResetNeeded, match="1"):
        envs.step([0] * 3)
    oracle = SyncVectorEnv(faulty_rows(3))
    assert_identical(envs.reset(seed=1)[0], oracle.reset(seed=1)[0])
    if mode == "NextStep":
        assert_identical(envs.step([0] * 3)[:2], oracle.step([0] * 3)[:2])
    oracle.close()


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
def test_failing_again_and_again_changes_nothing(build, mode):
    envs = build(faulty_rows(), autoreset_mode=mode)
    for turn in range(20):
        envs.reset(seed=turn)
        with pytest.raises(ValueError, match="boom") as failure:
            envs.step(actions(**{f"row_{turn % NUM_ENVS}": "value error"}))
        assert_names_row(failure.value, turn % NUM_ENVS)
    assert_goes_on_like_new(envs)


def test_workers_survive_an_exception(build_processes):
    envs = build_processes(faulty_rows())
    pids = envs.get_attr("pid")
    for name in EXCEPTIONS:
        envs.reset()
        with pytest.raises(BaseException) as failure:  # noqa: PT011 (of every type there is)
            envs.step(actions(row_2=name))
        assert isinstance(failure.value, (EXCEPTIONS[name][0], cartwheel.RemoteEnvError))
    assert envs.get_attr("pid") == pids


def test_an_exception_of_a_pending_step_is_raised_when_it_is_waited_for(build):
    envs = build(faulty_rows())
    envs.reset()
    envs.step_async(actions(row_2="value error"))
    with pytest.raises(ValueError, match="boom") as failure:
        envs.step_wait()
    assert_names_row(failure.value, 2)
    assert_goes_on_like_new(envs)


def test_a_class_that_exists_only_in_the_worker_is_reported(build_processes):
    class HomeMadeError(Exception):
        pass

    def build_env():
        env = FaultyEnv()

        def commit(_name):
            raise HomeMadeError("never seen before")

        env.commit = commit
        return env

    envs = build_processes([build_env] * 2)
    with pytest.raises(Exception, match="never seen before") as failure:
        envs.reset()
    assert "HomeMadeError" in f"{type(failure.value).__name__} {failure.value}"


def test_an_exception_group_arrives_whole(build):
    if not hasattr(builtins, "ExceptionGroup"):
        pytest.skip("Python 3.10 has no exception groups")

    def build_env():
        env = FaultyEnv()

        def commit(_name):
            raise builtins.ExceptionGroup("a group", [ValueError(1), TypeError(2)])

        env.commit = commit
        return env

    envs = build([build_env] * 2)
    with pytest.raises(builtins.ExceptionGroup, match="a group") as failure:
        envs.reset()
    assert [type(error) for error in failure.value.exceptions] == [ValueError, TypeError]


def test_cartwheel_prints_nothing(build, capfd):
    envs = build(faulty_rows())
    envs.reset()
    with pytest.raises(ValueError, match="boom"):
        envs.step(actions(row_2="value error"))
    envs.close()
    captured = capfd.readouterr()
    assert re.sub(r"\s", "", captured.out + captured.err) == ""
