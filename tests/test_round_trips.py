"""Exceptions and results of the public interface survive pickle and copy.

A job of a process pool that raises one of these exceptions, or returns one of these results, would
otherwise break the pool, or lose what the value says.
"""

import copy
import dataclasses
import importlib
import pickle
import pkgutil
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel import envpool, returns
from cartwheel.envpool.checks import EnvBusyError
from cartwheel.errors import add_note
from cartwheel.multiagent.pool import OtherOrderError
from cartwheel.rollouts.collecting.policy_calls import Stopped
from cartwheel.testing import EnvCheckError, EnvCheckReport
from cartwheel.testing.report import Unchecked
from tests.support.comparison import assert_identical

#: One exception of each class, made as cartwheel makes it.
EXCEPTIONS = [
    cartwheel.BrokenPoolError("broken"),
    cartwheel.CartwheelError("failed"),
    cartwheel.EnvFailedError("failed"),
    cartwheel.EnvPanicError("panicked"),
    cartwheel.EpisodeOverError([1, 3]),
    cartwheel.ForkedProcessError("forked"),
    cartwheel.PluginError("broke a rule"),
    cartwheel.RemoteEnvError("raised"),
    cartwheel.RemoteTraceback("line 1"),
    cartwheel.WorkerDiedError(
        "died", worker=1, env_index=[2, 3], pid=7, exitcode=-9, phase="step", stderr="last words"
    ),
    cartwheel.WorkerTimeoutError("late", env_index=[3, 4], workers=[1]),
    EnvBusyError("send", [0, 2]),
    EnvCheckError("spaces", "CartPole-v1", "nothing was seen", "fix it"),
    OtherOrderError("the layout of row 0"),
    Stopped(),
    Unchecked("it has no states"),
]


#: None leaves cartwheel.
PRIVATE = {OtherOrderError, Stopped, Unchecked}


def again(value):
    """The value after each way to copy it, and the name of the way."""
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        yield f"pickle {protocol}", pickle.loads(pickle.dumps(value, protocol))
    yield "copy", copy.copy(value)
    yield "deepcopy", copy.deepcopy(value)


def every_exception():
    """Every class of exceptions that a module of cartwheel defines, or shows as its own."""
    for module in pkgutil.walk_packages(cartwheel.__path__, "cartwheel."):
        try:
            names = vars(importlib.import_module(module.name))
        except (ImportError, SystemExit):  # of a library that is not installed, or a program
            continue
        for each in names.values():
            is_exception = isinstance(each, type) and issubclass(each, BaseException)
            if is_exception and each.__module__ == module.name:
                yield each


def test_the_list_has_every_exception_of_cartwheel():
    assert {type(one) for one in EXCEPTIONS} == set(every_exception())


def test_tracebacks_name_public_exceptions_where_users_import_them_from():
    for kind in {type(one) for one in EXCEPTIONS} - PRIVATE:
        package = kind.__module__.removesuffix(".errors")  # a public module, as gymnasium.error
        assert kind.__name__ in importlib.import_module(package).__all__, kind


def test_every_public_exception_derives_from_cartwheel_error_and_a_standard_one():
    for public in {type(one) for one in EXCEPTIONS} - PRIVATE:
        assert issubclass(public, cartwheel.CartwheelError), public
        assert len(public.__bases__) > 1 or public in (
            cartwheel.CartwheelError,
            cartwheel.RemoteTraceback,  # only ever the cause of another exception
        )


@pytest.mark.parametrize("error", EXCEPTIONS, ids=lambda one: type(one).__name__)
def test_an_exception_keeps_its_type_text_attributes_and_notes(error):
    add_note(error, "a note")
    for way, made in again(error):
        assert type(made) is type(error), way
        assert (str(made), made.args, vars(made)) == (str(error), error.args, vars(error)), way


class OwnDeath(cartwheel.WorkerDiedError):
    """An exception of a user, with a constructor of another form."""

    def __init__(self, job):
        super().__init__("died", worker=0, env_index=[0], pid=1, exitcode=None, phase="step")
        self.job = job


def test_an_exception_that_derives_from_one_keeps_its_attributes():
    for _, made in again(OwnDeath("training")):
        assert (type(made), made.job, made.env_index, str(made)) == (
            OwnDeath,
            "training",
            [0],
            "died",
        )


def policy(observations):
    actions = np.zeros(len(observations), np.int64)
    return actions, {"value": np.ones(len(observations))}


@pytest.fixture(scope="module")
def results():
    """One result of each public kind, by its name."""
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 3, autoreset_mode="same_step")
    collector = cartwheel.Collector(envs, policy, num_steps=30)
    rollout = collector.collect()
    made = {"Rollout": rollout, "CollectorStats": collector.stats()}
    made["Carry"] = rollout.carry
    made["Rows"] = rollout.flatten()
    made["Transitions"] = rollout.transitions(n_step=2, gamma=0.9)
    made["Windows"] = rollout.windows(8)
    made["Episodes"] = rollout.episodes()
    made["Episode"] = next(iter(made["Episodes"]))
    made["Evaluation"] = cartwheel.evaluate(envs, lambda seen: policy(seen)[0])
    envs.reset(seed=1)
    made["RolloutArrays"] = envs.rollout(2)
    envs.step(np.zeros(3, np.int64))
    envs.end_rollout()
    made["Stats"] = envs.stats()
    envs.close()
    flags = np.zeros((2, 3), np.bool_)
    made["NStepReturns"] = returns.n_step_returns(np.ones((2, 3)), flags, flags, n=2, gamma=0.9)
    made["EnvCheckReport"] = EnvCheckReport("CartPole-v1", {"rows": "3"}, {"modes": "no"}, ["note"])
    pool = envpool.make("CartPole-v1", "dm", num_envs=2, seed=3)
    made["TimeStep"] = pool.reset()
    made["EnvSpec"] = pool.spec
    pool.close()
    return made


RESULTS = (
    *("Rollout", "CollectorStats", "Carry", "Rows", "Transitions", "Windows", "Episodes"),
    *("Episode", "Evaluation", "RolloutArrays", "Stats", "NStepReturns", "EnvCheckReport"),
    *("TimeStep", "EnvSpec"),
)


def parts(value, depth=0):
    """The parts of a result: its fields, and those of their values."""
    if dataclasses.is_dataclass(value) or isinstance(value, envpool.EnvSpec):
        value = (type(value), *[parts(part, depth + 1) for part in vars(value).items()])
    elif isinstance(value, gym.Space):
        value = repr(value)
    elif isinstance(value, tuple):
        value = (type(value), *[parts(part, depth + 1) for part in value])
    elif isinstance(value, np.ndarray):
        value = (value, value.flags.writeable)
    return value


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_keeps_its_values(results, name):
    result = results[name]
    assert type(result).__name__ == name
    for way, made in again(result):
        assert type(made) is type(result), way
        assert_identical(parts(made), parts(result), way)


def test_a_death_crosses_a_pool_of_processes():
    """The pool of ``concurrent.futures`` breaks at an exception that it cannot load."""
    program = """
import concurrent.futures, multiprocessing, cartwheel

def job():
    raise cartwheel.WorkerDiedError(
        "died", worker=0, env_index=[2], pid=1, exitcode=-9, phase="step"
    )

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            pool.submit(job).result(timeout=200)
        except cartwheel.WorkerDiedError as died:
            print(died, died.env_index, died.exitcode)
"""
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ran.stdout == "died [2] -9\n", ran.stderr
