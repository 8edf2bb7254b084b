"""Many awaited rows that compute, sleep, hang and die: the loop runs, and every row goes on."""

import asyncio
import importlib
import subprocess
import sys
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box

import cartwheel
from tests.support.sessions import Numbered, opened
from tools import soak_awaited

pytestmark = pytest.mark.slow


def test_the_loop_turns_while_64_rows_compute_hang_and_die():
    """Requests of rows that fail never keep those of others from their results."""

    async def main():
        restart = dict.fromkeys(("on_error", "on_worker_death", "on_timeout"), "restart")
        async with cartwheel.AwaitableEnvs([Numbered] * 64, timeout=3.0, **restart) as envs:
            await asyncio.gather(*(envs.reset(row) for row in range(64)))
            order = []

            async def play(row):
                kind = row % 4  # steps, raises, dies, hangs
                for _ in range(3):
                    *_, truncated, info = await envs.step(row, kind)
                    assert truncated == (kind > 0), (row, info)
                    if truncated:
                        await envs.reset(row)
                order.append(kind)

            await asyncio.gather(*(play(row) for row in range(64)))
            assert set(order[-16:]) == {3}  # no other row waits for those that hang
            assert len(await asyncio.gather(*(envs.reset(row) for row in range(64)))) == 64

    asyncio.run(main())


def test_nothing_is_lost_among_cancellations_deaths_and_hangs():
    counts = asyncio.run(soak_awaited.soak(rows=8, seed=3, minutes=0.15))
    assert min(counts[name] for name in ("steps", "cancellations", "exceptions", "restarts")) > 0


def test_rows_start_when_they_are_used_and_a_few_at_a_time():
    async def main():
        async with opened([Numbered] * 8, lazy=True, start_concurrency=2) as envs:
            await envs.reset(3)
            pids = envs._rows.service._group.processes
            assert [process is not None for process in pids] == [row == 3 for row in range(8)]
            await asyncio.gather(*(envs.reset(row) for row in range(8)))
            assert all(process.is_alive() for process in pids)

    asyncio.run(main())


def test_by_default_two_start_at_once_for_each_processor_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr("cartwheel.awaitable.envs.usable_cpus", lambda: 3)
    with cartwheel.AwaitableEnvs([Numbered] * 8, lazy=True) as envs:
        assert envs._rows.service._settings.start_concurrency == 6


@pytest.mark.parametrize("end", ["pending", "raise", "no close"])
def test_programs_end_with_their_own_exit_code(end):
    program = f"""
import asyncio, cartwheel
from tests.support.sessions import Session
async def main():
    envs = cartwheel.AwaitableEnvs([Session] * 2)
    await envs.reset(0)
    task = asyncio.ensure_future(envs.step(0, "hang"))
    await asyncio.sleep(0.05)
    if {end!r} == "raise":
        raise ValueError("its own")
    if {end!r} == "no close":
        task.cancel()
        globals()["kept"] = envs
    return task
if __name__ == "__main__":
    asyncio.run(main())
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == (end == "raise"), ended.stderr
    assert ("its own" in ended.stderr) == (end == "raise")


def test_the_agents_of_the_example_finish_their_orders():
    examples = Path(__file__).parents[2] / "examples"
    sys.path.insert(0, str(examples))
    try:
        ends = asyncio.run(importlib.import_module("agents_with_tools").main(8, 2))
    finally:
        sys.path.remove(str(examples))
    assert [score for score, _ in ends] == [1.0] * 8


class Images(gym.Env):
    """Shows images, with texts next to them if asked; actions and infos are large, too."""

    observation_space = Box(0, 255, (100, 100, 3), np.uint8)
    action_space = Box(-1, 1, (2,), np.float32)

    def __init__(self, with_text):
        self.with_text = with_text
        self.steps = 0

    def _shown(self):
        image = np.full((100, 100, 3), self.steps, np.uint8)
        return {"image": image, "text": "x" * 500_000} if self.with_text else image

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._shown(), {"options": len(options["text"])}

    def step(self, action):
        self.steps += 1
        return self._shown(), 0.0, False, False, {"text": "y" * 200_000, "action": action}


def test_images_and_large_messages_of_one_row_never_mix_with_those_of_others():
    async def play(envs, row):
        _, info = await envs.reset(row, options={"text": "z" * 2_000_000})
        assert info == {"options": 2_000_000}
        kept = []
        for step in range(1, 21):
            action = np.array([step / 100, row / 100], np.float32)
            shown, *_, info = await envs.step(row, action)
            np.testing.assert_array_equal(info["action"], action)
            assert len(info["text"]) == 200_000
            kept.append(shown["image"] if row % 2 else shown)
        assert [image.tobytes() for image in kept] == [bytes([n]) * 30_000 for n in range(1, 21)]

    async def main():
        env_fns = [partial(Images, row % 2 == 1) for row in range(4)]
        async with opened(env_fns) as envs:
            await asyncio.gather(*(play(envs, row) for row in range(4)))

    asyncio.run(main())
