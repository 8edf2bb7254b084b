"""Awaited rows have the values of single environments and do one thing at a time."""

import asyncio
import contextlib
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, ResetNeeded
from gymnasium.spaces import Box

import cartwheel
from cartwheel import EpisodeOverError, WorkerDiedError, WorkerTimeoutError
from tests.support.sessions import (
    Nested,
    Notebook,
    Numbered,
    Session,
    limit,
    limit_waits,
    opened,
    outcome,
    sent,
    turns,
)

#: Seconds for what must succeed, and for what hangs.
LONG_S, SHORT_S = 60, 0.5


def assert_same(got, expected):
    """Equal, with the same types, dtypes and order of keys."""
    assert type(got) is type(expected)
    if isinstance(expected, dict):
        assert list(got) == list(expected)
        for key, value in expected.items():
            assert_same(got[key], value)
    elif isinstance(expected, tuple | list):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, np.ndarray):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
        assert got.flags.writeable
    else:
        assert got == expected


def single_step(env, action):
    """A step with the types that are promised."""
    observation, reward, terminated, truncated, info = env.step(action)
    return observation, float(reward), bool(terminated), bool(truncated), info


class Dial(Nested):
    action_space = Box(-1, 1, ())


#: Some that go through shared memory, if rows are not lazy, and others.
ACTIONS = {
    Nested: [np.ones(3, np.float32), np.zeros(3, np.float64), [1.0, 2.0, 3.0], "text", None],
    Dial: [np.array(0.5, np.float32), np.float64(0.5), 0.5],
}


@pytest.mark.parametrize("how", ["shared memory", "objects", "actions without dimensions"])
def test_values_are_those_of_the_single_environment(how):
    kind = Dial if how == "actions without dimensions" else Nested

    async def main():
        async with opened([kind], lazy=how == "objects") as envs:
            env = kind()
            options = {"level": [1, "two"]}
            got = await envs.reset(0, seed=3, options=options)
            assert_same(got, env.reset(seed=3, options=options))
            for action in ACTIONS[kind]:
                assert_same(await envs.step(0, action), single_step(env, action))
            assert_same(await envs.reset(0), env.reset())
            assert envs.single_observation_space == kind.observation_space
            assert envs.single_action_space == kind.action_space

    asyncio.run(main())


def test_rows_are_awaited_in_any_order_and_a_failure_reaches_its_task_alone():
    async def main():
        async with opened([Numbered] * 3, timeout=LONG_S) as envs:
            pids = [(await envs.reset(row))[1]["pid"] for row in range(3)]
            kinds = [0, 1, 2]  # a step, an exception, a death
            steps = await asyncio.gather(
                *(envs.step(row, kind) for row, kind in enumerate(kinds)), return_exceptions=True
            )
            assert steps[0][4] == {"steps": 1}
            assert isinstance(steps[1], ValueError)
            assert "row 1" in "".join(steps[1].__notes__) or sys.version_info < (3, 11)
            assert isinstance(steps[2], WorkerDiedError)
            assert (steps[2].env_index, steps[2].pid) == ([2], pids[2])
            for row in (1, 2):
                with pytest.raises(ResetNeeded, match=f"row {row} failed"):
                    await envs.step(row, 0)
            assert (await envs.step(0, 0))[4] == {"steps": 2}
            again = [(await envs.reset(row))[1]["pid"] for row in (1, 2)]
            assert again[0] == pids[1]
            assert again[1] != pids[2]
            # A row that hangs: its task alone is late, and a restart does not wait.
            limit(envs, SHORT_S)
            late = asyncio.ensure_future(outcome(envs.step(1, 3)))
            await sent(envs, 1)
            limit(envs, LONG_S)
            assert (await envs.step(2, 0))[4] == {"steps": 1}
            assert isinstance(await late, WorkerTimeoutError)
            assert late.result().env_index == [1]
            await envs.restart(1)
            assert (await envs.reset(1))[1]["pid"] != again[0]
            assert (await envs.step(1, 4))[2:4] == (True, False)
            with pytest.raises(EpisodeOverError, match=r"row 1 is over: await reset\(1\)"):
                await envs.step(1, 0)

    asyncio.run(main())


def test_restarts_truncate_the_episode_and_a_reset_makes_another_environment():
    async def main():
        restart = dict.fromkeys(("on_error", "on_worker_death", "on_timeout"), "restart")
        async with opened([Numbered], timeout=LONG_S, **restart) as envs:
            for action, told in [
                (1, {"env_error": "ValueError: by number"}),
                (2, {"worker_restarted": True}),
                (3, {"worker_restarted": True}),
            ]:
                await envs.reset(0)
                shown, *_ = await envs.step(0, 0)
                expected = shown.copy()
                shown += 7  # the row shows its own values again, not the caller's
                made = await envs.call(0, "made")
                limit(envs, SHORT_S if action == 3 else LONG_S)
                failed = await envs.step(0, action)
                limit(envs, LONG_S)
                np.testing.assert_array_equal(failed[0], expected)
                assert failed[1:] == (0.0, False, True, told)
                assert isinstance(await outcome(envs.step(0, 0)), EpisodeOverError)
                assert (await envs.call(0, "made") == made) == (action == 1)
                assert isinstance(await outcome(envs.step(0, 0)), EpisodeOverError)
                assert (await envs.reset(0))[0].tolist() == [0, 0]
                assert (await envs.call(0, "made") == made) == (action == 1)
            assert isinstance(await outcome(envs.reset(0, options={"do": "exit"})), WorkerDiedError)

    asyncio.run(main())


def test_a_call_behind_a_cancelled_step_that_hung_makes_another_environment(caplog):
    async def main():
        async with opened([Session], timeout=LONG_S, on_timeout="restart") as envs:
            await envs.reset(0)
            made = await envs.call(0, "made")
            limit(envs, SHORT_S)
            hung = asyncio.ensure_future(envs.step(0, "hang"))
            await sent(envs, 0)
            limit(envs, LONG_S)
            hung.cancel()
            assert await envs.call(0, "made") != made
            assert isinstance(await outcome(envs.step(0, 0)), EpisodeOverError)

    asyncio.run(main())
    (record,) = caplog.records
    assert record.getMessage().startswith("`step` of row 0 has taken")


class Fleet(Session):
    """Has worker processes of its own, one of which dies."""

    def lose(self):
        details = {"worker": 0, "env_index": [0], "pid": 1, "exitcode": 3, "phase": "step"}
        raise WorkerDiedError("one of the fleet", **details)

    def step(self, action):
        return self.lose() if action == "lose" else super().step(action)


def test_an_environment_may_raise_what_the_death_of_its_row_raises():
    async def main():
        async with opened([Fleet], on_error="restart") as envs:
            shown, _ = await envs.reset(0)
            with pytest.raises(WorkerDiedError, match="one of the fleet"):
                await envs.call(0, "lose")
            pid = await envs.call(0, "made")
            observation, *rest, info = await envs.step(0, "lose")
            np.testing.assert_array_equal(observation, shown)
            assert rest == [0.0, False, True]
            assert "one of the fleet" in info["env_error"]
            await envs.reset(0)
            assert await envs.call(0, "made") == pid

    asyncio.run(main())


def test_a_cancelled_await_leaves_its_row_in_flight(gates):
    async def main():
        async with opened([partial(Session, gates)]) as envs:
            await envs.reset(0)
            task = asyncio.ensure_future(envs.step(0, "wait 1"))
            await turns()
            with pytest.raises(AlreadyPendingCallError, match=r"row 0 is busy: .*`step`"):
                await envs.reset(0)
            task.cancel()
            assert isinstance(await asyncio.gather(task, return_exceptions=True), list)
            # The next request waits for it, whether it was cancelled itself or not.
            second = asyncio.ensure_future(envs.step(0, "step"))
            await turns()
            second.cancel()
            await turns()
            third = asyncio.ensure_future(envs.step(0, "step"))
            await turns()
            with pytest.raises(AlreadyPendingCallError, match="row 0 is busy"):
                await envs.step(0, "step")
            gates.open(1)
            assert (await third)[4] == {"steps": 2}
            # An exception that comes late is dropped; what it did to the row stands.
            task = asyncio.ensure_future(envs.step(0, "raise late"))
            await turns()
            task.cancel()
            with pytest.raises(ResetNeeded):
                await envs.step(0, "step")
            await envs.reset(0)

    asyncio.run(main())


def test_a_restart_does_not_wait_for_what_the_row_does_and_no_policy_hides_it():
    async def main():
        async with opened([Session], on_worker_death="restart", max_restarts=0) as envs:
            _, first = await envs.reset(0)
            for action in ("hang", "step"):  # the second may be done before its process is killed
                task = asyncio.ensure_future(envs.step(0, action))
                await turns()
                await envs.restart(0)
                await asyncio.gather(task, return_exceptions=True)
                if action == "hang":
                    with pytest.raises(WorkerDiedError, match=r"`restart` ended worker 0, pid \d+"):
                        await task
                with pytest.raises(ResetNeeded, match="row 0 was never reset"):
                    await envs.step(0, "step")
                _, second = await envs.reset(0)
                assert second["pid"] != first["pid"]
                first = second

    asyncio.run(main())


def test_a_request_does_not_wait_forever_for_a_row_that_is_late():
    async def main():
        async with opened([Session], timeout=LONG_S) as envs:
            await envs.reset(0)
            limit(envs, SHORT_S)
            early = asyncio.ensure_future(outcome(envs.step(0, "hang")))
            await turns()
            early.cancel()
            # It waits for the row until that is late, and then for its own time.
            kinds = [await outcome(envs.step(0, "step")), await outcome(envs.reset(0))]
            for kind, late in zip(("step", "reset"), kinds, strict=True):
                assert isinstance(late, WorkerTimeoutError)
                assert f"`{kind}` of row 0 has waited" in str(late)
                assert (late.env_index, late.workers) == ([0], [0])
            limit(envs, LONG_S)
            await envs.restart(0)
            assert (await envs.reset(0))[0].tolist() == [0, 0]

    asyncio.run(main())


def test_a_request_after_a_restart_waits_until_a_row_that_was_late_has_ended():
    """The system may need longer for that than a request may take."""

    async def main():
        async with opened([Session], timeout=LONG_S) as envs:
            await envs.reset(0)
            limit(envs, SHORT_S / 5)
            assert isinstance(await outcome(envs.step(0, "hang")), WorkerTimeoutError)
            limit(envs, LONG_S)
            limit_waits(envs, SHORT_S / 5)
            process = envs._rows.service._group.processes[0]
            kill = process.kill
            ended = threading.Timer(SHORT_S, kill)

            def kill_later():
                process.kill = kill  # it may be killed again where it is reaped
                ended.start()

            process.kill = kill_later
            await envs.restart(0)
            assert (await envs.reset(0))[0].tolist() == [0, 0]
            ended.join()

    asyncio.run(main())


def test_a_row_that_was_late_may_still_answer(gates):
    async def main():
        async with opened([partial(Session, gates)], timeout=LONG_S) as envs:
            await envs.reset(0)
            limit(envs, SHORT_S / 5)
            assert isinstance(await outcome(envs.step(0, "wait 1")), WorkerTimeoutError)
            limit(envs, LONG_S)
            second = asyncio.ensure_future(envs.step(0, "step"))
            await turns()
            gates.open(1)
            assert (await second)[4] == {"steps": 2}

    asyncio.run(main())


@pytest.mark.parametrize("lazy", [False, True])
def test_counters_are_those_of_requests_however_they_travel(lazy):
    async def main():
        async with opened([Numbered] * 2, lazy=lazy) as envs:
            await envs.reset(0)
            for action in (0, 5, 0):  # one takes 20 ms
                await envs.step(0, action)
            await envs.call(0, "double", 2)
            await envs.restart(0)
            await envs.reset(0)
            stats = envs.stats()
            assert stats.steps.tolist() == [3, 0]
            assert stats.resets.tolist() == [2, 0]
            assert stats.restarts.tolist() == [1, 0]
            assert stats.step_times.sum(1).tolist() == [3, 0]
            assert 0.02 <= stats.slowest_step[0] <= stats.step_seconds[0]
            assert stats.timed_seconds == pytest.approx(stats.step_seconds)
            ((bucket,),) = np.nonzero(stats.step_times[0, 24:])
            low, high = stats.bucket_edges[24 + bucket :][:2]
            assert low <= stats.slowest_step[0] < high
            assert 'cartwheel_steps_total{rows="0-0"} 3' in stats.prometheus()

    asyncio.run(main())


def test_calls_and_objects_that_are_not_environments():
    async def main():
        async with opened([Session, Notebook], lazy=True) as envs:
            with pytest.raises(AttributeError, match="await `reset` of a row first"):
                _ = envs.single_observation_space
            assert await envs.call(0, "double", 21) == 42
            with pytest.raises(KeyError, match="tool"):
                await envs.call(0, "fail")
            with pytest.raises(ValueError, match="use `step` directly"):
                await envs.call(0, "step", "step")
            assert await envs.reset(1) == ("about nothing", {})
            assert await envs.call(1, "reset", topic="rows") == "about rows"
            assert await envs.call(1, "write", "line", times=2) == 3
            assert await envs.call(1, "lines") == ["rows", "line", "line"]
            with pytest.raises(TypeError, match="pickle"):
                await envs.call(1, "write", asyncio.get_running_loop())
            assert envs.single_action_space == Session.action_space

    asyncio.run(main())


def test_leases_are_first_come_first_served_and_always_returned():
    async def main():
        async with opened([Notebook] * 2, lazy=True) as envs:
            order = []

            async def borrow(name, seen, *, fails=False):
                async with envs.acquire() as row:
                    order.append((name, row.index))
                    await seen.wait()
                    if fails:
                        raise OSError(name)
                with pytest.raises(RuntimeError, match="was returned"):
                    await row.reset()

            events = [asyncio.Event() for _ in range(5)]
            tasks = [
                asyncio.ensure_future(borrow(name, event, fails=name == 1))
                for name, event in enumerate(events)
            ]
            await turns()
            assert order == [(0, 0), (1, 1)]
            tasks[2].cancel()  # it waits first in line, and loses no row
            events[1].set()
            await turns()
            assert order[2:] == [(3, 1)]
            for event in events:
                event.set()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(end) for end in ends] == [
                type(None), OSError, asyncio.CancelledError, type(None), type(None)
            ]  # fmt: skip
            # A row is given to a task that is cancelled in the same turn.
            async with envs.acquire(), envs.acquire():
                task = asyncio.ensure_future(borrow(5, events[0]))
                await turns()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            async with envs.acquire() as one, envs.acquire() as other:
                assert {one.index, other.index} == {0, 1}
                before = await one.call("write", "x")
                assert await one.call("write", "x", times=3) == before + 3

    asyncio.run(main())


def test_of_two_loops_that_come_at_the_same_instant_one_is_refused(gates):
    envs = cartwheel.AwaitableEnvs([partial(Session, gates)], worker_nice=0)
    asked, has_entered, refused = threading.Event(), threading.Event(), []

    class EndedLoop(asyncio.SelectorEventLoop):
        """Another thread comes while the first one asks whether this loop runs."""

        def is_running(self):
            if threading.current_thread() is not threading.main_thread() and not asked.is_set():
                asked.set()
                has_entered.wait(0.1)
            return super().is_running()

    async def reset_later():
        task = asyncio.ensure_future(envs.reset(0))
        await turns()
        has_entered.set()
        await asyncio.wait_for(task, SHORT_S)

    def other_thread():
        asked.wait(LONG_S)
        try:
            asyncio.run(reset_later())
        except Exception as error:
            refused.append(error)

    async def reset():
        await envs.reset(0)
        await asyncio.to_thread(other.join)

    with contextlib.closing(EndedLoop()) as ended:
        ended.run_until_complete(envs.reset(0))
        other = threading.Thread(target=other_thread)
        first = threading.Thread(target=asyncio.run, args=[reset()])
        for thread in (other, first):
            thread.start()
        first.join()
    assert [str(error).partition(":")[0] for error in refused] == [
        "this AwaitableEnvs is used by another event loop, which is running"
    ]
    envs.close()


def test_the_next_loop_may_use_the_rows_of_one_that_has_ended(gates):
    envs = cartwheel.AwaitableEnvs([partial(Session, gates)] * 2, worker_nice=0)

    async def leave():
        await asyncio.gather(envs.reset(0), envs.reset(1))  # so no start wakes the thread later
        task = asyncio.ensure_future(envs.step(0, "wait 1"))
        await turns()
        return task.done()

    async def use():
        # The step of the loop that ended counts as cancelled.
        assert (await envs.step(0, "step"))[4] == {"steps": 2}
        refused = []

        def other_thread():
            try:
                asyncio.run(envs.reset(1))
            except RuntimeError as error:
                refused.append(str(error))

        thread = threading.Thread(target=other_thread)
        thread.start()
        await asyncio.to_thread(thread.join)
        assert "another event loop, which is running" in refused[0]

    assert asyncio.run(leave()) is False
    gates.open(1)
    outcomes = envs._rows.service.outcomes  # which no loop has taken
    while "step" not in [outcome.request.asked.kind for outcome in tuple(outcomes)]:
        time.sleep(0.001)
    asyncio.run(asyncio.wait_for(use(), LONG_S))
    envs.close()
    envs.close()
    with pytest.raises(ClosedEnvironmentError):
        asyncio.run(envs.reset(0))


def test_tasks_of_a_loop_that_runs_again_after_another_one_are_cancelled(gates):
    envs = cartwheel.AwaitableEnvs([partial(Session, gates)], worker_nice=0)

    async def lends():
        async with envs.acquire(), envs.acquire():
            pass

    loop, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    with contextlib.closing(loop), contextlib.closing(other):
        loop.run_until_complete(envs.reset(0))
        tasks = [loop.create_task(one) for one in (envs.step(0, "wait 1"), lends())]
        loop.run_until_complete(turns())
        gates.open(1)
        other.run_until_complete(envs.reset(0))
        for task in tasks:
            with pytest.raises(asyncio.CancelledError, match="another event loop uses"):
                loop.run_until_complete(task)
        loop.run_until_complete(envs.reset(0))
    envs.close()


@pytest.fixture(scope="module")
def uvloop():
    """The module. Its first loop makes a pipe for signals, which lives as long as the program."""
    module = pytest.importorskip("uvloop")
    module.new_event_loop().close()
    return module


def test_the_loops_of_uvloop_are_served_likewise(uvloop, gates):
    """Results and failures, a cancellation, a loop that ends, and the next one that closes."""
    envs = cartwheel.AwaitableEnvs([partial(Session, gates), Numbered], worker_nice=0)

    async def leave():
        assert type(asyncio.get_running_loop()).__module__.startswith("uvloop")
        await asyncio.gather(envs.reset(0), envs.reset(1))
        steps = await asyncio.gather(
            *(outcome(envs.step(row, action)) for row, action in [(0, "step"), (1, 2)])
        )
        assert steps[0][4] == {"steps": 1}
        assert isinstance(steps[1], WorkerDiedError)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(envs.step(0, "wait 1"), 0.01)

    async def use():
        gates.open(1)
        assert (await envs.step(0, "step"))[4] == {"steps": 3}
        assert (await envs.reset(1))[0].tolist() == [0, 0]
        async with envs.acquire() as row:
            await row.reset()
        await envs.aclose()

    for main in (leave, use):
        loop = uvloop.new_event_loop()
        try:
            loop.run_until_complete(main())
        finally:
            loop.close()
