"""The pool of awaited rows: its spaces, its memory, and processes that are started later."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from cartwheel._cartwheel import Pool
from cartwheel._internal.logging import LOGGER
from cartwheel.vector.episode_rules import Rules
from cartwheel.vector.forks import make_private_on_fork
from cartwheel.vector.memory_plan import plan_memory
from cartwheel.workers import launch
from cartwheel.workers.callbacks import WorkerCallbacks
from cartwheel.workers.channels import pickled
from cartwheel.workers.envs.observation_form import shared
from cartwheel.workers.faults import Fault
from cartwheel.workers.serving.awaited_env import MakesAwaitedEnv

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel.awaitable.requests import Settings
    from cartwheel.workers.group import WorkerGroup

#: Batches that may exist at once. Two are filled, and one is read, whose rows are copied at once.
_BATCHES = 8


def described_spaces(
    group: WorkerGroup, env_fn: bytes, settings: Settings
) -> tuple[Any, Any] | None:
    """Makes the environment of the first row; returns its spaces, ``None`` if that failed.

    That is logged: the cause may pass, as a server that is not up yet, and the slow way of
    observations and actions stays.
    """
    assert group.start_process is not None, "awaited rows are processes"
    group.start_process.parts[0] = pickled(
        [MakesAwaitedEnv(env_fn, 0, settings.nice, None, settings.policy)]
    )
    try:
        group.start(0)
        description = group.receive(0, "construct", settings.policy.timeout)
    except Exception as error:  # it died or hangs, or its spaces cannot be loaded
        description = {"fault": error}
    if "fault" not in description:
        spaces: tuple[Any, Any] = description["spaces"][0]
        return spaces
    # A request of the row will fail likewise, and raise it.
    group.reap(0)
    if not group.hung_up:  # otherwise the rows are closed
        fault = description["fault"]
        LOGGER.warning(
            "the spaces of awaited rows are unknown, so their observations and actions are "
            "pickled, which is several times slower for small ones: pass `spaces`. The "
            "environment of row 0 was not made: %s",
            fault.summary if isinstance(fault, Fault) else fault,
        )
    return None


@dataclasses.dataclass(frozen=True)
class OpenPool:
    """A pool whose processes are started later.

    Attributes:
        pool: The pool.
        is_fast: Whether an action can go through shared memory as it is.
    """

    pool: Pool
    is_fast: Callable[[Any], bool]

    @classmethod
    def of_spaces(
        cls,
        group: WorkerGroup,
        env_fns: list[bytes],
        settings: Settings,
        spaces: tuple[Any, Any] | None,
    ) -> OpenPool:
        """Makes the memory for these spaces, as far as their values have a fixed shape."""
        observation, action = (shared(space) for space in spaces or (None, None))
        rows = len(env_fns)
        plan = plan_memory((observation, action), group.shards, rows, _BATCHES)
        rules = Rules.from_keywords(None, False, 1, False).as_dict()
        of_rows = {"autoreset_mode": AutoresetMode.DISABLED.value, "freeze": True, "rules": rules}
        memory, own_shard = launch.make_memory(group, plan, of_rows)
        same = {"spaces": [(observation, action)], "layouts": []}
        group.descriptions = [same] * rows
        assert group.start_process is not None, "awaited rows are processes"
        for row, env_fn in enumerate(env_fns):
            spaces = (observation, action)
            maker = MakesAwaitedEnv(env_fn, row, settings.nice, spaces, settings.policy)
            group.start_process.parts[row] = pickled([maker])
        batched = batch_space(action, rows)
        callbacks: Any = WorkerCallbacks(None, group, batched, None, "methods")
        pool = Pool(
            memory,
            plan["observations"],
            plan["actions"],
            shard=own_shard,
            pids=[0] * rows,
            objects=group.objects,
            channels=group.channels,
            callbacks=callbacks,
            class_name=settings.name,
            timeout=None,
            columnar=True,
            spin=False,
            inline=False,
            restart=True,
            deferred=True,
        )
        pool.receive_in_order(False)
        make_private_on_fork(pool)
        return cls(pool, _fast_kind(action))


def _fast_kind(space: Any) -> Callable[[Any], bool]:
    """Returns a function that says whether an action can go through shared memory as it is."""
    if isinstance(space, Discrete) and space != shared(None):
        return lambda action: type(action) in (int, np.int64) and -(2**63) <= action < 2**63
    # A batch of arrays without dimensions gives the environments scalars.
    if isinstance(space, Box | MultiBinary | MultiDiscrete) and space.shape:
        dtype, shape = space.dtype, space.shape
        return lambda action: (
            type(action) is np.ndarray and action.dtype == dtype and action.shape == shape
        )
    return lambda _: False
