"""Misuse that crashes, hangs or misleads a program with EnvPool.

Each call is refused with an exception that says why. Nothing is stepped, and the pool still works.
"""

import copy
import multiprocessing
import os
import pickle
import re
import signal
import threading

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.spaces import Dict, Discrete, Tuple

from cartwheel import ForkedProcessError, envpool
from cartwheel.envpool.formats import checked
from tests.envpool.tasks import FAILING, GATED, RECORDING, TRANSCRIPT
from tests.support.processes import wait_until_gone

NATIVE, PYTHON = "CartPole-v1", "gymnasium.envs.classic_control:CartPole-v1"


class Unharmed:
    """A pool of four, and a twin with which it must agree after each misuse."""

    def __init__(self, make, task_id):
        # The calling thread refuses the calls, so the executor does not matter.
        self.envs = make(task_id, num_envs=4, seed=7, executor="inline")
        self.twin = make(task_id, num_envs=4, seed=7, executor="inline")
        for envs in (self.envs, self.twin):
            envs.reset()

    def check(self):
        ours, theirs = (envs.step(np.array([0, 1, 1, 0])) for envs in (self.envs, self.twin))
        for one, other in zip(ours[:4], theirs[:4], strict=True):
            np.testing.assert_array_equal(one, other)
        assert ours[4]["elapsed_step"].tolist() == theirs[4]["elapsed_step"].tolist()


@pytest.fixture(params=[NATIVE, PYTHON], ids=["native", "python"])
def unharmed(make, request):
    unharmed = Unharmed(make, request.param)
    yield unharmed
    unharmed.check()


BAD_STEPS = {
    "a single value": (np.array(1), None, ValueError, "4 rows, got a single value of shape ()"),
    "a number": (1, None, ValueError, "got a single value of shape ()"),
    "an id too large": (np.array([1]), [77], IndexError, "environment 77; there are 0 to 3"),
    "a negative id": (np.array([1]), [-1], IndexError, "environment -1; there are 0 to 3"),
    "fewer actions than ids": (np.array([0, 1, 0]), None, ValueError, "3 rows for 4 environments"),
    "more actions than ids": (np.array([0, 1, 0, 1, 0]), None, ValueError, "5 rows for 4"),
    "more actions than some ids": (np.array([0, 1, 0]), [1, 2], ValueError, "3 rows for 2"),
    "no actions": (np.array([], np.int64), None, ValueError, "0 rows for 4 environments"),
    "no ids": (np.array([], np.int64), np.array([], int), ValueError, "`env_id` is empty"),
    "ids that are floats": (np.array([1]), [0.0], TypeError, "array of integers"),
    "ids of two dimensions": (np.array([1]), [[0]], TypeError, "one-dimensional"),
    "an action too large": (np.array([0, 7, 0, 0]), None, ValueError, "7"),
    "a negative action": (np.array([0, 0, -5, 0]), None, ValueError, "-5"),
    "an action too large, cast": (np.array([0, 7, 0, 0], np.uint8), None, ValueError, "7"),
    "floats": (np.array([0.9, 0, 0, 0]), None, TypeError, "float64"),
    "not a number": (np.full(4, np.nan), None, TypeError, "float64"),
    "bools": (np.array([True] * 4), None, TypeError, "bool"),
    "text": (np.array(["a"] * 4), None, TypeError, "<U1"),
    "a wrong shape": (np.zeros((4, 1), np.int64), None, ValueError, "4, 1"),
    "the same id twice": (np.zeros(4, np.int64), [0, 0, 0, 0], ValueError, "twice"),
    "an unknown key": ({"action": np.zeros(4, np.int64), "b": 1}, None, ValueError, "['action', "),
    "no action key": ({"env_id": [0]}, None, ValueError, "must have the keys ['action']"),
}


@pytest.mark.parametrize(
    ("space", "actions", "words"),
    [
        (Dict(a=Discrete(2)), 3, "action must be a dictionary with the keys ['a'], got 3"),
        (Tuple([Discrete(2)] * 2), [[0]], "action must be a tuple of 2 batches, got [[0]]"),
    ],
)
def test_actions_that_are_not_nested_as_their_space_are_shown(space, actions, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        checked(space, actions, np.arange(1), "action")


@pytest.mark.parametrize("misuse", BAD_STEPS)
def test_a_bad_step_is_refused_before_anything_is_stepped(unharmed, misuse):
    action, env_id, error, words = BAD_STEPS[misuse]
    with pytest.raises(error, match=re.escape(words)):
        unharmed.envs.step(action, env_id)


@pytest.mark.parametrize("misuse", BAD_STEPS)
def test_a_bad_first_step_is_refused_before_anything_is_reset(make, misuse):
    action, env_id, error, words = BAD_STEPS[misuse]
    envs = make(NATIVE, num_envs=4, seed=7)
    envs.reset([3])
    with pytest.raises(error, match=re.escape(words)):
        envs.step(action, env_id)
    assert envs.step(np.array([0, 1, 1, 0]))[4]["elapsed_step"].tolist() == [0, 0, 0, 1]


def test_the_same_id_twice_is_refused_before_a_first_step_resets_anything(make):
    envs = make(NATIVE, num_envs=4, seed=7)
    envs.reset([3])
    with pytest.raises(ValueError, match="environment 0 twice"):
        envs.step(np.array([0, 1, 1]), [0, 3, 0])
    assert envs.step(np.array([0, 1, 1, 0]))[4]["elapsed_step"].tolist() == [0, 0, 0, 1]


def test_a_wrong_dtype_is_refused_on_later_calls_too(unharmed):
    unharmed.check()
    for wrong in (np.zeros(4), np.zeros((4, 2), np.int64), np.zeros(3, np.int64)):
        with pytest.raises((TypeError, ValueError)):
            unharmed.envs.step(wrong)


@pytest.mark.parametrize("ids", [[77], [-1]])
def test_a_reset_of_an_env_id_that_does_not_exist_is_refused(unharmed, ids):
    for call in (unharmed.envs.reset, unharmed.envs.async_reset):
        with pytest.raises(IndexError, match=rf"environment {ids[0]}; there are 0 to 3"):
            call(ids)


def test_an_action_error_names_row_and_environment(make):
    envs = make(PYTHON, num_envs=4)
    envs.reset()
    with pytest.raises(ValueError, match=r"row 1 \(environment 2\) is 7, .* from 0 to 1"):
        envs.step(np.array([0, 7]), [3, 2])


@pytest.mark.parametrize("task_id", ["Pendulum-v1", "gymnasium.envs.classic_control:Pendulum-v1"])
def test_nan_is_refused_where_actions_are_floats(make, task_id):
    envs = make(task_id, num_envs=2)
    envs.reset()
    for dtype in (np.float32, np.float64):
        with pytest.raises(ValueError, match=r"(?i)nan|not a number"):
            envs.step(np.array([[0], [np.nan]], dtype))
    assert np.isfinite(envs.step(np.zeros((2, 1), np.float32))[0]).all()


@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_asynchronous_mode_needs_env_ids(make, task_id):
    envs = make(task_id, num_envs=4, batch_size=2)
    envs.async_reset()
    for call in (envs.send, envs.step):
        with pytest.raises(ValueError, match="`env_id` is required in asynchronous mode"):
            call(np.array([0, 1]))
    ids = envs.recv()[4]["env_id"]
    envs.send(np.array([0, 1]), ids)
    assert {*envs.recv()[4]["env_id"], *envs.recv()[4]["env_id"]} == {0, 1, 2, 3}


@pytest.mark.parametrize("batch_size", [2, 4])
def test_too_many_sends_are_refused_with_the_busy_environments(make, batch_size):
    envs = make(NATIVE, num_envs=4, batch_size=batch_size)
    envs.reset()
    if batch_size == 2:
        envs.recv()
    envs.send(np.array([0, 1]), [1, 3])
    for _ in range(50):
        with pytest.raises(envpool.EnvBusyError, match=r"\[1, 3\]") as refused:
            envs.send(np.array([0, 1, 0, 1]), [0, 1, 2, 3])
        assert refused.value.env_ids == [1, 3]
        assert isinstance(refused.value, ValueError)
        assert isinstance(refused.value, AlreadyPendingCallError)
    info = envs.recv()[4]
    assert sorted(info["env_id"]) == [1, 3]
    assert info["elapsed_step"].tolist() == [1, 1]


@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_sending_everything_twice_is_refused_with_the_busy_environments(make, task_id):
    envs = make(task_id, num_envs=2)
    envs.reset()
    envs.send(np.array([0, 1]))
    with pytest.raises(envpool.EnvBusyError, match=r"\[0, 1\]"):
        envs.send(np.array([0, 1]))
    assert envs.recv()[4]["elapsed_step"].tolist() == [1, 1]


@pytest.mark.parametrize("batch_size", [2, 4])
@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_resets_in_flight_are_not_reset_again(make, task_id, batch_size):
    envs = make(task_id, num_envs=4, batch_size=batch_size)
    envs.async_reset()
    for _ in range(10):
        with pytest.raises(envpool.EnvBusyError, match=r"\[0, 1, 2, 3\]"):
            envs.async_reset()
    received = [envs.recv()[4]["env_id"] for _ in range(4 // batch_size)]
    assert sorted(np.concatenate(received)) == [0, 1, 2, 3]


@pytest.mark.parametrize("batch_size", [2, 4])
@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_receiving_nothing_is_an_error(make, task_id, batch_size):
    envs = make(task_id, num_envs=4, batch_size=batch_size)
    with pytest.raises(NoAsyncCallError):
        envs.recv()
    envs.async_reset()
    for _ in range(4 // batch_size):
        envs.recv()
    with pytest.raises(NoAsyncCallError):
        envs.recv()


def test_two_threads_do_not_disturb_each_other(make):
    envs = make(NATIVE, num_envs=64)
    envs.reset()
    steps, refused, unexpected = [], [], []

    def play():
        for _ in range(200):
            try:
                steps.append(envs.step(np.zeros(64, np.int64))[4]["elapsed_step"])
            except (AlreadyPendingCallError, NoAsyncCallError) as error:
                refused.append(error)
            except BaseException as error:
                unexpected.append(error)

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not unexpected
    assert len(steps) + len(refused) == 800
    assert steps


BAD_CONFIGURATIONS = {
    "num_threads": [(-1, "0 on"), ("4", "0 on"), (1.5, "0 on")],
    "num_envs": [(0, "positive"), (-1, "positive"), ("4", "positive"), (True, "positive")],
    "batch_size": [(-1, "0 to 4"), (5, "0 to 4")],
    "seed": [
        (-1, "0 on"),
        ("7", "an integer, or a list with one for each environment, got '7'"),
        ([1, 2], "2 entries for num_envs=4"),
        ([1, 2, 3, -4], r"seed\[3\]"),
    ],
    "max_episode_steps": [(0, "positive"), (-3, "positive"), ("9", "positive")],
    "max_num_players": [(0, "positive"), (2, "one player")],
    "thread_affinity_offset": [(-2, "-1 on")],
    "autoreset_mode": [("sometimes", "sometimes")],
    "executor": [("gpu", "gpu")],
    "on_done": [("stop", "stop")],
    "max_batches": [(1, "from 2 on")],
    "gym_reset_return_info": [(False, "env_type='gym'")],
    "env_type": [("jax", "jax")],
    "reward_threshold": [("475", "a number"), (True, "a number")],
    "no_such_option": [(1, "no_such_option")],
}


@pytest.mark.parametrize("task_id", [NATIVE, PYTHON, TRANSCRIPT])
@pytest.mark.parametrize("keyword", BAD_CONFIGURATIONS)
def test_a_bad_configuration_is_refused_with_its_name(task_id, keyword):
    for value, words in BAD_CONFIGURATIONS[keyword]:
        keywords = {"num_envs": 4, keyword: value}
        with pytest.raises((ValueError, TypeError), match=words) as refused:
            envpool.make(task_id, **({"length": 1} if task_id == TRANSCRIPT else {}), **keywords)
        assert keyword in str(refused.value)


def test_same_step_is_refused_where_the_last_observation_would_be_lost():
    with pytest.raises(ValueError, match=r"SameStep.*env_type='dm'"):
        envpool.make(NATIVE, "dm", autoreset_mode="same_step")


@pytest.mark.parametrize("call", [envpool.make, envpool.make_spec])
@pytest.mark.parametrize("task_id", ["CartPale-v1", "CartPale v1"])
def test_an_unknown_task_points_to_the_list(call, task_id):
    with pytest.raises(gym.error.UnregisteredEnv, match=r"CartPale.*list_all_envs\(\) lists all$"):
        call(task_id)


def test_an_atari_game_of_envpool_is_named_as_it_is_here():
    with pytest.raises(gym.error.UnregisteredEnv, match=r"'ale_py:ALE/Pong-v5', and needs ale-py"):
        envpool.make("Pong-v5", "gymnasium")
    with pytest.raises(gym.error.UnregisteredEnv, match=r"HalfCheetah[^A]*$"):
        envpool.make("HalfCheeta-v5", "gymnasium")


@pytest.mark.parametrize(
    ("task_id", "named"),
    [
        ("Meta-World/MT1", "metaworld:Meta-World/MT1"),
        ("MiniGrid-Empty-5x5-v0", "minigrid:MiniGrid-Empty-5x5-v0"),
    ],
)
def test_an_unknown_task_of_another_package_says_how_to_name_the_package(task_id, named):
    with pytest.raises(gym.error.UnregisteredEnv, match=f"name it, too: '{named}'"):
        envpool.make(task_id, "gymnasium")


@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_calls_of_a_closed_pool_raise(make, task_id):
    envs = make(task_id, num_envs=2)
    envs.reset()
    envs.close()
    envs.close()
    actions = np.zeros(2, np.int64)
    for call in (envs.recv, envs.reset, envs.async_reset, lambda: envs.step(actions)):
        with pytest.raises(ClosedEnvironmentError, match="operate on `EnvPool`, after"):
            call()


@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_a_call_in_a_forked_child_raises_and_the_child_ends_normally(make, task_id):
    envs = make(task_id, num_envs=2, num_threads=2)
    envs.reset()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            envs.step(np.zeros(2, np.int64))
        except ForkedProcessError:
            del envs
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert envs.step(np.zeros(2, np.int64))[4]["elapsed_step"].tolist() == [1, 1]


def test_an_exception_in_an_environment_reaches_the_caller(make):
    envs = make(FAILING, num_envs=3, length=9)
    envs.reset()
    with pytest.raises(RuntimeError, match="nine") as raised:
        envs.step(np.array([1, 9, 1]))
    assert any("row 1" in note for note in raised.value.__notes__)
    assert envs.step(np.array([1, 1, 1]))[4]["elapsed_step"].tolist() == [0, 0, 0]
    assert envs.step(np.array([1, 1, 1]))[4]["elapsed_step"].tolist() == [1, 1, 1]


def test_a_worker_that_dies_raises_an_exception(make):
    envs = make(TRANSCRIPT, num_envs=2, length=9, num_threads=2)
    envs.reset()
    pid = envs._envs.processes[0].pid
    os.kill(pid, signal.SIGKILL)
    assert not wait_until_gone([pid], 10)
    with pytest.raises(RuntimeError, match=rf"{pid}"):
        envs.step(np.array([1, 1]))


def test_a_wait_can_be_interrupted(make, gates):
    envs = make(GATED, num_envs=2, num_threads=2, gates=gates)
    envs.reset()
    envs.send(np.array([1, 0]))
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])

    def wait():
        timer.start()
        envs.recv()

    with pytest.raises(KeyboardInterrupt):
        wait()
    timer.join()
    gates.open(1)
    assert envs.recv()[4]["elapsed_step"].tolist() == [1, 1]


@pytest.mark.parametrize("env_type", ["gymnasium", "gym", "dm"])
def test_a_step_that_times_out_is_received_later_and_not_sent_again(make, gates, env_type):
    envs = make(GATED, env_type, num_envs=1, timeout=2, gates=gates)
    envs.async_reset()
    envs.recv(timeout=60)  # on a busy machine a reset may take longer than the timeout below
    envs._timeout = 0.01
    with pytest.raises(multiprocessing.TimeoutError):
        envs.step(np.array([1]))
    for call, name in ((envs.step, "step"), (envs.send, "send")):
        with pytest.raises(envpool.EnvBusyError, match=rf"^`{name}` was called .*\[0\]"):
            call(np.array([1]))
    gates.open(1)
    received = envs.recv(timeout=60)
    info = received.observation.info if env_type == "dm" else received[-1]
    assert info["elapsed_step"].tolist() == [1]


@pytest.mark.parametrize("name", ["env_index", "env_idx"])
def test_other_names_of_environments_are_refused(unharmed, name):
    with pytest.raises(ValueError, match="by `env_id`"):
        unharmed.envs.reset(options={name: np.array([1])})


def test_a_mask_and_ids_together_are_refused(unharmed):
    mask = np.array([True, False, False, False])
    with pytest.raises(ValueError, match="not both"):
        unharmed.envs.reset([1], options={"reset_mask": mask})


@pytest.mark.parametrize(
    "mask", [np.zeros(4, np.bool_), np.ones(3, np.bool_), np.ones(4, np.int64), [True] * 4], ids=str
)
def test_a_bad_mask_is_refused(unharmed, mask):
    with pytest.raises((TypeError, ValueError), match="reset_mask"):
        unharmed.envs.reset(options={"reset_mask": mask})


def test_a_busy_pool_is_not_reset_by_a_mask(make):
    envs = make(RECORDING, num_envs=2)
    envs.reset()
    envs.send(np.array([3]), [1])
    with pytest.raises(envpool.EnvBusyError, match=r"\[1\]"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    assert envs.recv()[4]["env_id"].tolist() == [1]


@pytest.mark.parametrize("batch_size", [2, 3])
@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
@pytest.mark.parametrize("env_type", ["gymnasium", "dm"])
def test_a_reset_loses_no_rewards_of_busy_environments(make, env_type, task_id, batch_size):
    envs = make(task_id, env_type, num_envs=3, batch_size=batch_size, max_episode_steps=1)
    envs.async_reset()
    envs.recv()
    if batch_size == 2:
        envs.recv()
    envs.send(np.array([1, 1]), [0, 1])
    with pytest.raises(envpool.EnvBusyError, match=r"`reset`.*\[0, 1\]"):
        envs.reset([2])
    received = envs.recv()
    rewards = received.reward if env_type == "dm" else received[1]
    assert rewards.tolist() == [1.0, 1.0]
    envs.reset([2])


@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_pools_cannot_be_pickled(make, task_id):
    envs = make(task_id)
    for call in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled"):
            call(envs)
