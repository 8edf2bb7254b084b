"""Awaited rows end with a close, their loop, their program or their last reference."""

import asyncio
import gc
import os
import signal
import threading
import time
from functools import partial

import pytest
from gymnasium.error import ClosedEnvironmentError

import cartwheel
from cartwheel.awaitable import service
from cartwheel.workers.process import StartProcess
from tests.support.sessions import Notebook, Session, opened, turns


def test_a_plain_with_block_closes_rows_where_no_loop_runs():
    async def main():
        with pytest.raises(TypeError, match="use `async with`"), envs:
            raise AssertionError("it is refused")

    with cartwheel.AwaitableEnvs([Notebook], lazy=True) as envs:
        assert asyncio.run(envs.reset(0)) == ("about nothing", {})
        asyncio.run(main())
    with pytest.raises(ClosedEnvironmentError):
        asyncio.run(envs.reset(0))


def test_closing_ends_every_wait_also_with_rows_that_hang():
    async def main():
        envs = cartwheel.AwaitableEnvs([Session] * 2, worker_nice=0)
        await envs.reset(0)
        waits = [
            asyncio.ensure_future(one)
            for one in (envs.step(0, "hang"), envs.reset(1, options={"do": "hang"}))
        ]
        await turns()
        async with envs.acquire(), envs.acquire():
            waits.append(asyncio.ensure_future(envs.acquire().__aenter__()))
            await turns()
            envs.close()
            ends = await asyncio.gather(*waits, return_exceptions=True)
        assert [type(end) for end in ends] == [ClosedEnvironmentError] * 3
        await envs.aclose()
        await envs.aclose()

    asyncio.run(main())


def test_a_forked_child_may_not_use_the_rows():
    async def main():
        async with opened([Notebook], lazy=True) as envs:
            await envs.reset(0)
            child = os.fork()
            if child == 0:
                try:
                    await envs.reset(0)
                except cartwheel.ForkedProcessError:
                    await envs.aclose()  # the end of `async with`, which waits for nothing here
                    os._exit(23)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 23
            assert await envs.reset(0) == ("about nothing", {})

    asyncio.run(main())


def test_rows_that_nothing_refers_to_end():
    """The fixture of every test finds the processes that are left."""

    async def main():
        envs = cartwheel.AwaitableEnvs([Notebook], worker_nice=0)
        await envs.reset(0)

    asyncio.run(main())


def test_ctrl_c_ends_the_program_and_its_rows():
    async def main():
        async with opened([Session]) as envs:
            await envs.reset(0)
            asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGINT)
            await envs.step(0, "hang")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    gc.collect()  # asyncio's own exception has frames in a cycle


def test_a_lease_ends_with_its_loop():
    envs, kept = cartwheel.AwaitableEnvs([Notebook], lazy=True, worker_nice=0), []

    async def borrows():
        kept.append(envs.acquire())
        kept.append(await kept[0].__aenter__())

    async def borrows_again():
        async with envs.acquire() as row:
            with pytest.raises(RuntimeError, match="a task of another event loop"):
                await kept[1].reset()
            await kept[0].__aexit__()
            with pytest.raises(asyncio.TimeoutError):  # the row is still lent
                await asyncio.wait_for(envs.acquire().__aenter__(), 0.01)
            assert await row.reset() == ("about nothing", {})

    asyncio.run(borrows())
    asyncio.run(borrows_again())
    envs.close()


class SlowToClose(Notebook):
    def close(self):
        time.sleep(3600)


def test_an_environment_that_is_closed_too_slowly_is_named(caplog, monkeypatch):
    monkeypatch.setattr(service, "_GRACE", 0.1)

    async def main():
        async with opened([SlowToClose]) as envs:
            await envs.reset(0)

    asyncio.run(main())
    (record,) = caplog.records
    assert "worker 0 (row 0) was killed: its environments had not closed" in record.message
    assert "close(timeout" not in record.message  # which has no such argument here


def made_at_a_gate(gates):
    gates.stand_at(1)


def hangs():
    time.sleep(3600)


def test_a_close_ends_the_first_process_although_it_has_not_started_yet(monkeypatch):
    start, closing = StartProcess.__call__, threading.Event()

    def start_late(self, index):
        assert closing.wait(30)
        return start(self, index)

    async def main():
        envs = cartwheel.AwaitableEnvs([hangs], worker_nice=0)
        envs.close()
        closing.set()
        await asyncio.wait_for(envs.aclose(), 20)

    monkeypatch.setattr(StartProcess, "__call__", start_late)
    asyncio.run(main())


def test_the_end_of_the_first_process_by_a_close_is_not_a_death(caplog, gates):
    envs = cartwheel.AwaitableEnvs([partial(made_at_a_gate, gates)], worker_nice=0)
    gates.await_arrival(1)
    envs.close()
    assert not caplog.records
