"""TRL's ``environment_factory`` over awaited rows: the tools of all rollouts run at the same time.

``GRPOTrainer`` makes an environment for each rollout, calls its ``reset``, and awaits those of its
methods that are coroutines together, in a loop of its own. Here each environment has a row of
``cartwheel.AwaitableEnvs``, which is used from one loop in a thread. ``Loop`` is to be copied, and
``Warehouse`` with your own tools.

    pip install cartwheel trl
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import cartwheel

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

_Result = TypeVar("_Result")


class Shelves:
    """The simulator, in a process of its own. It knows nothing of the trainer."""

    def reset(self, seed: int | None = None) -> str:
        """Fills the shelves."""
        self.left, self.packed = 2 + (seed or 0) % 3, 0
        return f"There are {self.left} bolts."

    def pack(self, count: int) -> str:
        """Packs bolts."""
        count = min(count, self.left)
        self.left, self.packed = self.left - count, self.packed + count
        return f"packed {count}"


class Loop:
    """Rows, and the event loop that uses them, in a thread."""

    def __init__(self, env_fns: list[Callable[[], Any]], **keywords: Any) -> None:
        """Starts the thread and the rows."""
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.envs = cartwheel.AwaitableEnvs(env_fns, **keywords)
        self.free = list(range(len(env_fns)))

    def wait(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Runs a coroutine of the rows from a thread without a loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Runs a coroutine of the rows from another loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def close(self) -> None:
        """Ends the rows and the thread."""
        self.wait(self.envs.aclose())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Warehouse:
    """The environment that TRL gets: its public methods are the tools of the model."""

    def __init__(self, rows: Loop) -> None:
        """Takes a row, for as long as the trainer lives."""
        self._rows = rows
        self._row = rows.free.pop(0)

    def reset(self, seed: int | None = None, **_: Any) -> str:
        """Begins an episode; the observation is added to the prompt."""
        observation, _info = self._rows.wait(self._rows.envs.reset(self._row, seed=seed))
        return str(observation)

    async def pack(self, count: int) -> str:
        """Packs bolts into the box.

        Args:
            count: How many.

        Returns:
            How many were packed.
        """
        answer = await self._rows.run(self._rows.envs.call(self._row, "pack", count))
        return str(answer)

    async def get_reward(self) -> float:
        """The number of bolts in the box."""
        return float(await self._rows.run(self._rows.envs.call(self._row, "packed")))
