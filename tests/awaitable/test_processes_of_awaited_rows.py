"""Processes of awaited rows start, die and are killed, and only their own row notices."""

import asyncio
import dataclasses
import errno
import os
import signal
import sys
import threading
import weakref
from functools import partial
from multiprocessing.connection import wait

import pytest
from gymnasium.error import ResetNeeded

import cartwheel
from cartwheel.workers.process import StartProcess
from cartwheel.workers.serving.worker import Worker
from tests.support.sessions import Notebook, Session, opened, outcome, sent, turns


def test_results_are_freed_although_another_row_takes_long():
    async def main():
        async with opened([Session] * 2, timeout=3600) as envs:
            await asyncio.gather(envs.reset(0), envs.reset(1))
            long = asyncio.ensure_future(envs.step(0, "hang"))
            await sent(envs, 0)
            results = []
            for _ in range(20):
                observation, *_ = await envs.step(1, "step")
                results.append(weakref.ref(observation))
                del observation
            await turns()
            kept = [result for result in results if result() is not None]
            long.cancel()
            return len(kept)

    # Without the GIL, the thread that made a result frees it, when it runs again.
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)
    assert asyncio.run(main()) <= (1 if has_gil() else 5)


def test_a_process_that_has_ended_is_not_killed_because_another_may_have_its_number():
    async def main():
        async with opened([Session]) as envs:
            _, first = await envs.reset(0)
            process, kills = envs._rows.service._group.processes[0], []
            os.kill(first["pid"], signal.SIGKILL)
            wait([process.sentinel])
            process.kill = lambda: kills.append(first["pid"])
            await envs.restart(0)
            _, second = await envs.reset(0)
            assert second["pid"] != first["pid"]
            return kills

    assert asyncio.run(main()) == []


class Unwatchable:
    """A pool that cannot watch the next processes."""

    def __init__(self, pool, errors):
        self._pool, self._errors = pool, errors

    def __getattr__(self, name):
        return getattr(self._pool, name)

    def resume(self, *args):
        if self._errors:
            raise self._errors.pop()
        self._pool.resume(*args)


@pytest.mark.parametrize(
    ("errors", "raised"),
    [
        ([OSError(errno.EMFILE, "too many open files")], OSError),
        ([ProcessLookupError()] * 2, cartwheel.WorkerDiedError),  # a reset starts another one once
    ],
)
def test_a_process_that_cannot_be_watched_is_an_error_of_its_row_alone(errors, raised):
    async def main():
        async with opened([Notebook] * 2, lazy=True) as envs:
            await envs.reset(0)
            service, left = envs._rows.service, list(errors)
            pool = Unwatchable(service._opened.pool, left)
            service._opened = dataclasses.replace(service._opened, pool=pool)
            with pytest.raises(raised):
                await envs.reset(1)
            assert not left
            assert await envs.call(0, "write", "goes on") == 2
            assert await envs.reset(1) == ("about nothing", {})

    asyncio.run(main())


def test_a_thread_that_cannot_be_started_is_an_error_of_its_row_alone(monkeypatch):
    start, refused = threading.Thread.start, []

    def start_others(self):
        if self.name == "cartwheel-start" and not refused:
            refused.append(self)
            raise RuntimeError("can't start new thread")
        start(self)

    async def main():
        async with opened([Notebook] * 2, lazy=True) as envs:
            await envs.reset(0)
            monkeypatch.setattr(threading.Thread, "start", start_others)
            error, answer = await asyncio.gather(
                outcome(envs.reset(1)), outcome(envs.call(0, "write", "goes on"))
            )
            assert "can't start new thread" in str(error)
            assert answer == 2
            assert await envs.reset(1) == ("about nothing", {})

    asyncio.run(main())


def test_a_restart_ends_a_request_that_waits_for_its_process(monkeypatch):
    start, may_start = StartProcess.__call__, threading.Event()

    def start_late(self, index):
        assert may_start.wait(30)
        return start(self, index)

    monkeypatch.setattr(StartProcess, "__call__", start_late)

    async def main():
        async with opened([Notebook], lazy=True, on_worker_death="restart") as envs:
            reset = asyncio.ensure_future(envs.reset(0))
            await turns()
            await envs.restart(0)
            with pytest.raises(cartwheel.WorkerDiedError, match="`reset` of row 0 before it began"):
                await reset
            may_start.set()
            assert await envs.reset(0) == ("about nothing", {})

    asyncio.run(main())


def test_a_call_does_not_go_on_with_another_environment_after_a_death():
    async def main():
        async with opened([Session]) as envs:
            for request in (partial(envs.call, 0, "double", 2), partial(envs.step, 0, "step")):
                _, info = await envs.reset(0)
                os.kill(info["pid"], signal.SIGKILL)
                # As after a death that was noticed with the result of the request before.
                service = envs._rows.service
                service._inbox.append(partial(service._drop_next, 0))
                service.wake()
                with pytest.raises(cartwheel.WorkerDiedError) as caught:
                    await request()
                assert caught.value.pid == info["pid"]
                with pytest.raises(ResetNeeded, match="row 0 failed"):
                    await envs.step(0, "step")

    asyncio.run(main())


class DiesBeforeItServes(Session):
    """Its first process ends when it has described the environment."""

    def __init__(self, folder):
        super().__init__()
        try:
            (folder / "first").mkdir()
        except FileExistsError:
            return
        Worker.resume = lambda *_, **__: os._exit(3)


def test_a_first_process_that_dies_before_it_serves_is_replaced(tmp_path):
    async def main():
        async with opened([partial(DiesBeforeItServes, tmp_path), Session]) as envs:
            assert (await envs.reset(1, seed=7))[1]["seed"] == 7
            assert (await envs.reset(0, seed=7))[1]["seed"] == 7

    asyncio.run(main())
    assert (tmp_path / "first").exists()
