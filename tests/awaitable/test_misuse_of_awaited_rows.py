"""Wrong arguments and objects are refused before anything starts, with the way out."""

import asyncio
import multiprocessing
import pickle
import threading
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete

import cartwheel
from cartwheel.workers import launch
from cartwheel.workers.deaths import NO_MAIN_GUARD
from cartwheel.workers.restart_policy import RestartPolicy
from tests.support.sessions import Numbered, Session, opened

#: Seconds after which a wait that would never end fails its test.
LIMIT_S = 60


class Both:
    """An object with the interface of a parallel environment of PettingZoo, and a coroutine."""

    def observation_space(self, *_):
        return Session.observation_space

    action_space = observation_space

    def reset(self):
        return {"a": 0, "b": 0}, {"a": {}, "b": {}}

    def step(self, actions):
        return actions, {"a": 1.0, "b": 2.0}, {"a": False}, {"b": False}, {}

    async def ask(self):
        return 1

    def stop(self):
        return next(iter(()))


def test_what_is_not_a_step_of_one_environment_is_named_with_the_way_out():
    async def main():
        async with opened([Both], lazy=True) as envs:
            assert await envs.reset(0) == ({"a": 0, "b": 0}, {"a": {}, "b": {}})
            with pytest.raises(AttributeError, match="await `reset` of a row first"):
                _ = envs.single_observation_space
            with pytest.raises(TypeError, match=r"`ask` is an `async def`.* make it a plain `def`"):
                await envs.call(0, "ask")
            with pytest.raises(RuntimeError, match=r"row 0 raised StopIteration") as caught:
                await asyncio.wait_for(envs.call(0, "stop"), LIMIT_S)  # a future refuses it
            assert isinstance(caught.value.__cause__, StopIteration)
            assert (await envs.call(0, "step", {"a": 3}))[:2] == ({"a": 3}, {"a": 1.0, "b": 2.0})
            with pytest.raises(TypeError, match=r"of one environment, got .* `call\(row, 'step'"):
                await envs.step(0, {"a": 3})

    asyncio.run(main())


def test_a_function_that_cannot_be_pickled_is_refused_before_anything_starts():
    """The other errors of the constructor are in `tests/vector/misuse.txt`."""
    with pytest.raises(TypeError, match=r"env_fns\[1\] cannot be pickled"):
        cartwheel.AwaitableEnvs([Session, threading.Lock().acquire])


def test_a_request_that_cannot_be_pickled_leaves_its_row_as_it_was():
    async def main():
        async with opened([Session, Numbered], on_error="restart") as envs:
            for row, action in enumerate(("step", 0)):
                await envs.reset(row)
                await envs.step(row, action)
                lock = threading.Lock()
                for request in (envs.step(row, lock), envs.reset(row, options={"lock": lock})):
                    with pytest.raises(TypeError, match="cannot pickle"):
                        await request
                assert (await envs.step(row, action))[4] == {"steps": 2}

    asyncio.run(main())


def test_wrong_rows_and_copies_are_refused():
    async def main():
        spaces = (Box(0, 1000, (2,), np.float32), Discrete(10))
        async with opened([Numbered] * 2, lazy=True, spaces=spaces) as envs:
            assert envs.num_envs == 2
            assert repr(envs) == "AwaitableEnvs(num_envs=2)"
            for row, error, text in [
                (2, IndexError, "`env_index` names row 2; there are rows 0 to 1"),
                (-1, IndexError, "`env_index` names row -1; there are rows 0 to 1"),
                ("0", TypeError, "`env_index` must be an integer, a row, got '0'"),
                (True, TypeError, "`env_index` must be an integer, a row, got True"),
            ]:
                for refused in (envs.reset(row), envs.step(row, 0), envs.call(row, "made")):
                    with pytest.raises(error, match=f"^{text}$"):
                        await refused
            with pytest.raises(TypeError, match="cannot be pickled"):
                pickle.dumps(envs)
            with pytest.raises(TypeError, match="async with"):
                await envs.acquire()
            with pytest.raises(ResetNeeded, match="row 0 was never reset"):
                await envs.step(0, 0)
            with pytest.raises(ValueError, match="made wrong"):
                await envs.reset(0, options={"do": "raise made wrong"})
            with pytest.raises(TypeError, match="`options` must be a dictionary"):
                await envs.reset(0, options=[("do", 1)])
            lending = envs.acquire()
            for _ in range(2):  # one after the other
                async with lending as row:
                    with pytest.raises(RuntimeError, match="this lease is in use"):
                        await lending.__aenter__()
                    with pytest.raises(ValueError, match="made wrong"):
                        await row.reset(options={"do": "raise made wrong"})
            await envs.reset(np.int64(0))
            assert (await envs.reset(0, seed=np.int64(3)))[1]["seed"] == 3
            for seed in (-1, "7", 1.5):
                with pytest.raises(gym.error.Error, match="Seed must be"):
                    await envs.reset(0, seed=seed)
            assert (await envs.step(0, 0))[4] == {"steps": 1}  # nothing was changed

    asyncio.run(main())


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"timeout": 0}, ValueError, "`timeout` must be positive, or None"),
        ({"timeout": -1}, ValueError, "must not be negative"),
        ({"timeout": True}, TypeError, "must be a number of seconds or None, got True"),
        ({"on_timeout": "restart"}, ValueError, "needs a positive `timeout`"),
        ({"max_worker_memory": "lots"}, ValueError, "'4GiB' or '512MB', got 'lots'"),
        ({"context": "fork"}, ValueError, "use 'forkserver' or 'spawn'"),
        ({"num_workers": 2}, TypeError, "`num_workers` is not a keyword"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_starts(keywords, error, text):
    with pytest.raises(error, match=text):
        cartwheel.AwaitableEnvs([Numbered], **keywords)


def test_advice_names_what_awaited_rows_have(monkeypatch):
    started = launch.prepare_processes(
        [b""],
        name="AwaitableEnvs",
        context=multiprocessing.get_context("forkserver"),
        daemon=True,
        restart_policy=RestartPolicy(),
    )
    started.processes[0] = SimpleNamespace(pid=1, exitcode=NO_MAIN_GUARD)
    monkeypatch.setattr(type(started), "_last_lines", lambda *_: "")
    died = str(started.died(0, "construct"))
    assert "__main__" in died
    assert "fork" not in died
    monkeypatch.setattr(launch.resource, "getrlimit", lambda _: (100, 100))
    with pytest.raises(OSError, match="or use fewer rows"):
        cartwheel.AwaitableEnvs([Numbered] * 64)
