"""Rows that are lent to one task at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from cartwheel.awaitable.rows import Rows


class RowLease:
    """A row that :meth:`AwaitableEnvs.acquire` lends: its methods, without the row number.

    After the ``async with`` block, or in another event loop, the row belongs to others, and the
    methods raise ``RuntimeError``.
    """

    def __init__(self, envs: Any, index: int) -> None:
        self._envs: Any = envs
        self._index = index
        self._loop = asyncio.get_running_loop()

    @property
    def index(self) -> int:
        """The row."""
        return self._index

    def __repr__(self) -> str:
        return f"RowLease({self._index}{', returned' if self._envs is None else ''})"

    def _lent(self) -> Any:
        if self._envs is None:
            raise RuntimeError(
                f"row {self._index} was returned at the end of `async with envs.acquire()`"
            )
        if self._loop is not asyncio.get_running_loop():
            raise RuntimeError(f"row {self._index} was lent to a task of another event loop")
        return self._envs

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets the row, see :meth:`AwaitableEnvs.reset`."""
        result: tuple[Any, dict[str, Any]]
        result = await self._lent().reset(self._index, seed=seed, options=options)
        return result

    async def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Steps the row, see :meth:`AwaitableEnvs.step`."""
        result: tuple[Any, float, bool, bool, dict[str, Any]]
        result = await self._lent().step(self._index, action)
        return result

    async def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Calls a method of the row's environment, see :meth:`AwaitableEnvs.call`."""
        return await self._lent().call(self._index, name, *args, **kwargs)

    async def restart(self) -> None:
        """Replaces the row's process, see :meth:`AwaitableEnvs.restart`."""
        await self._lent().restart(self._index)


class Acquiring:
    """The ``async with`` block of a lease."""

    def __init__(self, envs: Any, rows: Rows) -> None:
        self._envs = envs
        self._rows = rows
        self._lease: RowLease | None = None

    async def __aenter__(self) -> RowLease:
        """Waits for a free row."""
        if self._lease is not None:
            raise RuntimeError("this lease is in use: call `acquire` for each block")
        self._lease = RowLease(self._envs, await self._rows.borrow())
        return self._lease

    async def __aexit__(self, *_: object) -> None:
        """Returns the row."""
        lease, self._lease = self._lease, None
        if lease is not None:
            lease._envs = None
            if self._rows.loop is lease._loop:  # in the next loop all rows are free again
                self._rows.give_back(lease.index)

    def __await__(self) -> NoReturn:
        """Raises ``TypeError``: the end of a block returns the row."""
        raise TypeError("use `async with envs.acquire() as row`, which returns the row in the end")
