"""Rows that are awaited, one by one, in a program of ``asyncio``."""

from cartwheel.awaitable.envs import AwaitableEnvs
from cartwheel.awaitable.lease import RowLease

__all__ = ["AwaitableEnvs", "RowLease"]
