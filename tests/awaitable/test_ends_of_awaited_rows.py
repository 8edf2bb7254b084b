"""Awaited rows end with a close, their loop, their program or their last reference."""

import asyncio
import gc
import os
import signal
import socket
import threading
import time
from functools import partial

import pytest
from gymnasium.error import ClosedEnvironmentError
from gymnasium.spaces import Discrete

import cartwheel
from cartwheel.awaitable import service
from cartwheel.workers.group import WorkerGroup
from cartwheel.workers.process import StartProcess
from tests.support.processes import sockets
from tests.support.sessions import Notebook, Numbered, Session, opened, turns


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


def test_errors_that_no_loop_has_taken_end_with_a_close():
    """Their tracebacks may refer to the memory, and so keep it until a garbage collection."""

    def fails():
        raise ValueError("it cannot be made")

    with cartwheel.AwaitableEnvs([fails]) as envs:
        outcomes = envs._rows.service.outcomes
        while not outcomes:
            time.sleep(0.01)
    assert not outcomes


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
        kept.append(asyncio.ensure_future(envs.acquire().__aenter__()))  # waits in vain
        await turns()

    async def borrows_again():
        async with envs.acquire() as row:
            with pytest.raises(RuntimeError, match="a task of another event loop"):
                await kept[1].reset()
            await kept[0].__aexit__()
            with pytest.raises(asyncio.TimeoutError):  # the row is still lent
                await asyncio.wait_for(envs.acquire().__aenter__(), 0.01)
            assert await row.reset() == ("about nothing", {})

    asyncio.run(borrows())
    asyncio.run(asyncio.wait_for(borrows_again(), 30))
    envs.close()


class EndingLoop(asyncio.SelectorEventLoop):
    """Says that it runs when it has just ended."""

    has_ended = False

    def is_running(self):
        return self.has_ended or super().is_running()


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_close_while_the_loop_ends_refuses_later_requests(is_closed):
    envs, loop = cartwheel.AwaitableEnvs([Notebook], lazy=True, worker_nice=0), EndingLoop()
    loop.run_until_complete(envs.reset(0))
    if is_closed:
        loop.close()
    loop.has_ended = True
    envs.close()
    loop.has_ended = False
    with pytest.raises(ClosedEnvironmentError):
        asyncio.run(envs.reset(0))
    loop.close()


def test_a_loop_that_is_closed_with_tasks_that_wait_for_a_row_prevents_no_close():
    envs, loop = cartwheel.AwaitableEnvs([Notebook], lazy=True, worker_nice=0), EndingLoop()

    async def main():
        await envs.acquire().__aenter__()
        waits = asyncio.ensure_future(envs.acquire().__aenter__())
        await turns()
        return waits

    waits = loop.run_until_complete(main())
    loop.close()
    envs.close()
    assert not waits.done()
    waits._log_destroy_pending = False


def test_a_loop_that_is_closed_within_an_aclose_prevents_no_other():
    envs, loop = cartwheel.AwaitableEnvs([Notebook], lazy=True, worker_nice=0), EndingLoop()

    async def main():
        end = asyncio.ensure_future(envs._rows.closed())
        await turns()
        return end

    end = loop.run_until_complete(main())
    loop.close()
    asyncio.run(asyncio.wait_for(envs.aclose(), 30))
    assert not end.done()
    end._log_destroy_pending = False


def test_a_request_that_was_checked_before_another_thread_closed_is_refused(monkeypatch):
    """The check reads ``failure`` last."""
    left = []

    def close(self):
        while left:
            left.pop()
            self.close()
            assert self.closed.wait(30)

    monkeypatch.setattr(service.Service, "failure", property(close, lambda *_: None), raising=False)
    envs = cartwheel.AwaitableEnvs([Notebook], lazy=True, worker_nice=0)
    left.append(True)
    with pytest.raises(ClosedEnvironmentError):
        asyncio.run(envs.reset(0))
    envs.close()


class Mute(Numbered):
    """Its second action raises an exception that never leaves its process."""

    action_space = Discrete(2)
    ACTIONS = ("step", "mute")  # type: ignore[assignment]

    def _do(self, action):
        if action == "mute":
            self.pair = socket.socketpair()
            for number in sockets():
                if number not in map(socket.socket.fileno, self.pair):
                    os.dup(number)  # the caller must not find it closed
                    os.dup2(self.pair[0].fileno(), number)
            raise ValueError("unheard")


def test_a_process_that_was_stopped_while_it_sends_holds_up_no_other_row(monkeypatch):
    monkeypatch.setattr(service, "SENDING_S", 0.2)

    async def main():
        async with opened([Mute] * 2) as envs:
            await asyncio.gather(envs.reset(0), envs.reset(1))
            with pytest.raises(cartwheel.WorkerDiedError, match="SIGKILL"):
                await envs.step(0, 1)
            assert (await envs.step(1, 0))[4] == {"steps": 1}
            await envs.reset(0)
            assert (await envs.step(0, 0))[4] == {"steps": 1}

    asyncio.run(main())


def test_a_close_does_not_wait_for_what_a_stopped_process_was_about_to_send(monkeypatch):
    monkeypatch.setattr(service, "SENDING_S", 3600.0)
    receive, receives = WorkerGroup.receive_announced, threading.Event()

    def note_and_receive(self, *arguments):
        receives.set()
        return receive(self, *arguments)

    monkeypatch.setattr(WorkerGroup, "receive_announced", note_and_receive)

    async def main():
        envs = cartwheel.AwaitableEnvs([Mute], worker_nice=0)
        await envs.reset(0)
        step = asyncio.ensure_future(envs.step(0, 1))
        assert await asyncio.to_thread(receives.wait, 30)
        await envs.aclose()
        with pytest.raises(ClosedEnvironmentError):
            await step

    asyncio.run(main())


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
