"""Attributes that the parts of a vector environment share: its pool, and the numbers of rows."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Generic

from gymnasium.error import AlreadyPendingCallError
from numpy.typing import NDArray
from typing_extensions import TypeVar

from cartwheel._internal.arguments import as_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gymnasium.spaces import Space
    from gymnasium.vector import AutoresetMode

    from cartwheel._cartwheel import Pool

#: Observations: an array, unless the space is nested: ``VectorEnv[dict[str, NDArray[Any]]]``.
ObsType = TypeVar("ObsType", default=NDArray[Any])
ActType = TypeVar("ActType", default=Any)


class PoolOwner(Generic[ObsType, ActType]):
    """The attributes that the parts of a vector environment use."""

    num_envs: int
    # Gymnasium does not annotate what spaces are of, so Pyright would refuse each use of one.
    observation_space: Space[Any]
    action_space: Space[Any]
    single_observation_space: Space[Any]
    single_action_space: Space[Any]
    #: Rows of a batch; if fewer than ``num_envs``, a batch has the rows that finish first.
    batch_size: int
    #: Whether a reset with row numbers returns the full batch of all rows.
    full_batch: bool = False
    #: A ``WorkerCallbacks`` or a ``NativeCallbacks``.
    _callbacks: Any
    _pool: Pool
    _autoreset_mode: AutoresetMode
    #: The number of steps and resets that had begun at the end of the last reset of all rows.
    _reset_at = 0

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When a finished environment restarts. Workers have read it, so it cannot be set."""
        return self._autoreset_mode

    def _named(self, env_index: Any) -> list[int] | None:
        """Returns the rows of ``env_index`` as a list; ``None`` stands for all rows."""
        return None if env_index is None else as_rows(env_index, self.num_envs)

    def _numbers(self, env_index: Any) -> list[int]:
        """Returns row numbers as a list; ``None`` stands for all rows."""
        rows = self._named(env_index)
        return list(range(self.num_envs)) if rows is None else rows


def owner_of(envs: Any) -> PoolOwner | None:
    """Returns the vector environment that has the pool of ``envs``; ``None`` if there is none.

    Rows of agents and the pools of EnvPool's interface have one inside.
    """
    owner = getattr(envs, "_pool_owner", envs)
    return owner if isinstance(owner, PoolOwner) else None


def pool_of(envs: Any) -> Pool | None:
    """Returns the pool that counts and checks the calls of a vector environment, if it has one."""
    owner = owner_of(envs)
    return None if owner is None else owner._pool


@contextlib.contextmanager
def nothing_in_flight(envs: Any, calling: str) -> Iterator[None]:
    """Checks at the beginning, and at the end if nothing was raised, that ``envs`` are idle.

    Args:
        envs: A vector environment, possibly in wrappers.
        calling: The method that the caller uses, for errors.

    Raises:
        gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
    """
    _check_idle(envs.unwrapped, calling)
    yield
    if not envs.unwrapped.closed:
        _check_idle(envs.unwrapped, calling)


def _check_idle(envs: Any, calling: str) -> None:
    pool = pool_of(envs)
    if pool is not None:
        pool.check(calling, idle=True)
        return
    pending = getattr(getattr(envs, "_state", None), "value", "default")  # Gymnasium's own
    if pending != "default":
        raise AlreadyPendingCallError(
            f"calling `{calling}` while waiting for a pending call to `{pending}` to complete",
            pending,
        )
