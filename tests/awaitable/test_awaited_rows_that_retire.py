"""The process of an awaited row is replaced after its episodes, and the row goes on."""

import asyncio
from functools import partial

import numpy as np
import pytest
from gymnasium.wrappers import RecordEpisodeStatistics

import cartwheel
from tests.support.sessions import ClosesItsStreams, Leaks, Notebook, opened

MB = 10**6


async def episode(envs, row, **keywords):
    """One episode: the observation and the info of the reset, and the info of the last step."""
    observation, info = await envs.reset(row, **keywords)
    await envs.step(row, 0)
    *_, last = await envs.step(row, 0)
    return observation, info, last


async def episodes(env_fns, count, **keywords):
    """So many episodes of each row at once, by row."""

    async def play(envs, row):
        return [await episode(envs, row) for _ in range(count)]

    async with opened(env_fns, **keywords) as envs:
        return await asyncio.gather(*(play(envs, row) for row in range(len(env_fns))))


def check_replacements(rows, limit):
    """Each process served so many episodes, and its first reset says that it is new."""
    for row in rows:
        infos = [info for _, info, _ in row]
        assert [info["episode"] for info in infos] == [n % limit + 1 for n in range(len(infos))]
        told = [info.get("restarted", False) for info in infos]
        assert told == [n > 0 and n % limit == 0 for n in range(len(infos))]
        assert len({info["pid"] for info in infos}) == -(-len(infos) // limit)
        assert all(info["pid"] == last["pid"] for _, info, last in row)


def test_the_memory_of_rows_that_leak_stays_bounded():
    """Ten megabytes an episode: with a number of episodes and with an amount of memory."""
    leak = 10 * MB
    [whole, counted] = asyncio.run(
        episodes([Leaks, partial(Leaks, leak)], 9, max_episodes_per_worker=3)
    )
    check_replacements([whole, counted], 3)
    base = min(info["memory"] for _, info, _ in whole)
    assert max(info["memory"] for _, info, _ in counted) < base + 4.5 * leak
    [by_memory] = asyncio.run(
        episodes([partial(Leaks, leak)], 9, max_worker_memory=base + 3 * leak)
    )
    assert 2 <= sum("restarted" in info for _, info, _ in by_memory) < 9
    assert max(info["memory"] for _, info, _ in by_memory) < base + 5.5 * leak


def test_an_environment_may_close_its_streams_and_exit():
    [row] = asyncio.run(episodes([ClosesItsStreams], 3, max_episodes_per_worker=1))
    check_replacements([row], 1)


def test_other_rows_go_on_and_environments_are_closed_first(tmp_path):
    log = tmp_path / "closed"

    async def main():
        async with opened([partial(Leaks, log=log), Leaks], max_episodes_per_worker=1) as envs:
            pid = (await episode(envs, 0))[1]["pid"]
            await envs.reset(1)
            replaced = asyncio.ensure_future(envs.reset(0))
            steps = 0
            while not replaced.done():  # the start of a process takes many steps of another row
                *_, over, _, _ = await envs.step(1, 0)
                steps += 1
                if over:
                    break
            _, info = await replaced
            assert steps > 0
            assert info["restarted"]
            assert log.read_text(encoding="utf-8") == f"{pid}\n"
            # A row that is cancelled meanwhile goes on with the environment of the new process.
            await envs.step(0, 0)
            await envs.step(0, 0)
            task = asyncio.ensure_future(envs.reset(0))
            await asyncio.sleep(0)
            task.cancel()
            *_, last = await envs.step(0, 0)
            assert last["pid"] != info["pid"]

    asyncio.run(main())


def test_statistics_and_seeds_go_on_as_those_of_a_vector_environment():
    def make():
        return RecordEpisodeStatistics(Leaks())

    async def main():
        async with opened([make], max_episodes_per_worker=1) as envs:
            shown = [await episode(envs, 0, seed=5), await episode(envs, 0), await episode(envs, 0)]
            count = await envs.call(0, "episode_count")
            seeded = await episode(envs, 0, seed=5)
            return shown, count, seeded

    shown, count, seeded = asyncio.run(main())
    assert count == 3
    assert [last["episode"]["r"] for *_, last in shown] == [2.0] * 3
    np.testing.assert_array_equal(seeded[0], shown[0][0])
    with cartwheel.VectorEnv(
        [make], autoreset_mode="disabled", max_episodes_per_worker=1, executor="process"
    ) as vector:
        for number, (observation, _, _) in enumerate(shown):
            expected, _ = vector.reset(seed=None if number else 5)
            np.testing.assert_array_equal(observation, expected[0])
            for _ in range(2):
                vector.step(np.zeros(1, np.int64))


def test_objects_retire_as_well_and_wrong_limits_are_refused():
    async def main():
        async with opened([Notebook], max_episodes_per_worker=1, lazy=True) as envs:
            assert await envs.reset(0) == ("about nothing", {})
            await envs.call(0, "write", "line")
            assert await envs.reset(0) == ("about nothing", {"restarted": True})
            assert await envs.call(0, "write", "line") == 2

        for wrong in ({"max_episodes_per_worker": 0}, {"max_worker_memory": "a lot"}):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                async with opened([Notebook], lazy=True, **wrong):
                    raise AssertionError("it is refused")
        # Every episode would begin in a new process, as for a vector environment.
        async with opened([Notebook] * 2, lazy=True, max_worker_memory="1MB") as envs:
            for _ in range(2):
                with pytest.raises(ValueError, match=r"worker 1 has .* before its first episode"):
                    await envs.reset(1)

    asyncio.run(main())
