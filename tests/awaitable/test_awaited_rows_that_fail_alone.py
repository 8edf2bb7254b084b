"""A row that cannot be made, loaded or heard fails alone: other rows go on."""

import asyncio
import dataclasses
import fcntl
import os
import re
import signal
import termios
import threading
import time
from functools import partial

import gymnasium as gym
import pytest

import cartwheel
from cartwheel import WorkerTimeoutError
from tests.support.processes import sockets
from tests.support.sessions import Notebook, Numbered, limit, opened, outcome, sent

#: Seconds for what must succeed, and for what hangs.
LONG_S, SHORT_S = 60, 0.5


def broken():
    raise gym.error.Error("no simulator here")


def test_an_environment_that_cannot_be_made_fails_its_row_alone(caplog):
    async def main():
        async with opened([broken, Notebook]) as envs:
            with pytest.raises(gym.error.Error, match="no simulator here"):
                await envs.reset(0)
            assert await envs.reset(1) == ("about nothing", {})

    asyncio.run(main())
    (message,) = caplog.messages  # it was the one that tells the spaces
    assert re.search(r"are pickled, .*: pass `spaces`\. .*row 0 .*no simulator here$", message)


def _refuse_to_load():
    raise EOFError("it stays there")


class Unloadable:
    def __reduce__(self):
        return _refuse_to_load, ()


class UnloadableEnv(Numbered):
    """Returns what cannot be loaded: from a method, from a step with the action 5, from a reset."""

    def result(self):
        return Unloadable()

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        return observation, {"result": Unloadable()} if options else info

    def step(self, action):
        if action == 5:
            observation, reward, terminated, truncated, _ = super().step(0)
            return observation, reward, terminated, truncated, {"result": Unloadable()}
        return super().step(action)


def test_a_result_that_cannot_be_loaded_fails_its_row_alone():
    async def main():
        async with opened([UnloadableEnv] * 2, timeout=LONG_S) as envs:
            with pytest.raises(EOFError, match="it stays there"):
                await envs.reset(0, options={"first": True})
            for row in range(2):
                await envs.reset(row)
            with pytest.raises(EOFError, match="it stays there"):
                await envs.call(0, "result")
            assert (await envs.step(0, 0))[4] == {"steps": 1}
            failed, passed = await asyncio.gather(
                envs.step(0, 5), envs.step(1, 0), return_exceptions=True
            )
            assert isinstance(failed, EOFError)
            assert passed[4] == {"steps": 1}
            await envs.reset(0)
            for row, steps in ((0, 1), (1, 2)):
                assert (await envs.step(row, 0))[4] == {"steps": steps}

    asyncio.run(main())


def hangs():
    while True:
        time.sleep(3600)


def test_an_environment_that_is_never_made_times_out_for_its_row_alone():
    async def main():
        async with opened([hangs, Notebook], timeout=SHORT_S, start_concurrency=1) as envs:
            late = asyncio.ensure_future(outcome(envs.reset(0)))
            await sent(envs, 0)
            limit(envs, LONG_S)
            assert await envs.reset(1) == ("about nothing", {})
            assert isinstance(await late, WorkerTimeoutError)

    asyncio.run(main())


def test_the_log_tells_of_a_constructor_that_no_task_awaits_and_that_is_killed(caplog):
    async def main():
        spaces = Numbered.observation_space, Numbered.action_space
        async with opened([hangs], spaces=spaces, timeout=SHORT_S):
            while not caplog.messages:
                await asyncio.sleep(0.001)

    asyncio.run(main())
    assert caplog.messages[0].endswith("second(s), and its process was killed")


class HangsOnce(Notebook):
    """Its first constructor never returns."""

    def __init__(self, folder):
        super().__init__()
        if not folder.exists():
            folder.mkdir()
            hangs()


def test_a_restart_ends_the_first_constructor_for_which_all_rows_wait(tmp_path):
    async def main():
        async with opened([partial(HangsOnce, tmp_path / "made"), Notebook]) as envs:
            waits = asyncio.ensure_future(outcome(envs.reset(0)))
            while not (tmp_path / "made").exists():
                await asyncio.sleep(0.001)
            await envs.restart(0)
            assert await envs.reset(1) == ("about nothing", {})
            assert isinstance(await waits, cartwheel.WorkerDiedError)
            assert await envs.reset(0) == ("about nothing", {})

    asyncio.run(main())


class StopsWithinItsAnswer(Notebook):
    """Its process is stopped when it has sent a part of an answer."""

    def read(self):
        threading.Thread(target=stop_while_sending, daemon=True).start()
        return "x" * 50_000_000


def stop_while_sending():
    ends, nothing = sockets(), bytes(4)
    while all(fcntl.ioctl(end, termios.TIOCOUTQ, nothing) == nothing for end in ends):
        pass
    os.kill(os.getpid(), signal.SIGSTOP)


def test_a_process_that_is_stopped_within_its_answer_fails_its_row_alone():
    async def main():
        async with opened([StopsWithinItsAnswer, Notebook], timeout=LONG_S) as envs:
            await envs.reset(0)
            await envs.reset(1)
            group = envs._rows.service._group
            group.restart_policy = dataclasses.replace(group.restart_policy, timeout=SHORT_S)
            stopped, other = await asyncio.gather(
                outcome(envs.call(0, "read")), envs.call(1, "write", "a line")
            )
            assert type(stopped) is cartwheel.WorkerDiedError
            assert other == await envs.call(1, "write", "another") - 1
            assert await envs.reset(0) == ("about nothing", {})

    asyncio.run(main())
