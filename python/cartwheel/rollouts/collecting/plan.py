"""The checked arguments for the order of a collector."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

from gymnasium.vector import AutoresetMode

from cartwheel._internal.arguments import as_integer, as_timeout, check_sends_rows
from cartwheel._internal.literals import CollectOrder, check_choice
from cartwheel.rollouts.collecting.auto import Auto
from cartwheel.rollouts.collecting.block import Standby
from cartwheel.rollouts.collecting.lockstep import Lockstep
from cartwheel.rollouts.collecting.pipeline_orders import Free, Groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel.rollouts.collecting.policy_calls import Actor
    from cartwheel.rollouts.collecting.source import Source
    from cartwheel.vector.calls import Calls


@dataclasses.dataclass(frozen=True)
class Plan:
    """The order of a :class:`~cartwheel.Collector`, which documents these."""

    order: CollectOrder
    groups: int
    min_rows: int
    max_rows: int | None
    deadline: float | None
    run_ahead: int
    columns: int | None
    standby: int

    def check(self, envs: Any, mode: AutoresetMode, *, counts_episodes: bool) -> None:
        """Checks everything against the environments; nothing is stepped.

        Raises:
            TypeError: The environments cannot send and receive rows.
            ValueError: A value is out of range, or does not go with another one.
        """
        every = envs.num_envs
        check_choice("order", self.order, CollectOrder)
        as_integer("groups", self.groups, 1)
        as_integer("run_ahead", self.run_ahead, 0)
        as_integer("standby", self.standby, 0, every - 1)
        rows = every - self.standby
        as_integer("min_rows", self.min_rows, 1, rows)
        if self.max_rows is not None:
            as_integer("max_rows", self.max_rows, 1, rows)
            if self.max_rows < self.min_rows:
                raise ValueError(
                    f"`max_rows` must be at least min_rows={self.min_rows}, got {self.max_rows}."
                )
        if self.columns is not None:
            as_integer("columns", self.columns, 1, rows)
        as_timeout(self.deadline, "deadline")
        self._check_together(rows, mode, counts_episodes=counts_episodes)
        if self.order in ("free", "groups"):
            check_sends_rows(envs, self.order)

    def _check_together(self, rows: int, mode: AutoresetMode, *, counts_episodes: bool) -> None:
        """Checks that the arguments go together."""
        if self.order == "groups" and rows % self.groups:
            raise ValueError(
                f"`groups` must divide the number of rows, {rows}, got {self.groups}: all groups "
                "have the same size."
            )
        if counts_episodes and self.order != "lockstep":
            raise ValueError(
                f"`until` and `num_episodes` go with order='lockstep', got {self.order!r}: in the "
                "other orders a rollout has `num_steps` steps of each column. For episodes without "
                "a barrier there is cartwheel.evaluate(…, order='free')."
            )
        if self.order in ("lockstep", "auto"):
            for name, value, usual in (
                ("columns", self.columns, None),
                ("standby", self.standby, 0),
            ):
                if value != usual:
                    raise ValueError(
                        f"`{name}` needs order='free' or 'groups', got {name}={value} and "
                        f"order={self.order!r}."
                    )
        if self.order == "lockstep" and self.run_ahead:
            raise ValueError(
                "`run_ahead` needs another order: in 'lockstep' all rows advance together; "
                f"got run_ahead={self.run_ahead}."
            )
        if self.standby and mode != AutoresetMode.DISABLED:
            raise ValueError(
                "`standby` needs the autoreset mode DISABLED, in which the collector resets the "
                f"environments; got standby={self.standby} and {mode}."
            )

    def source(
        self,
        envs: Any,
        mode: AutoresetMode,
        actor: Actor,
        calls: Calls,
        num_steps: int | None,
        episodes_per_env: NDArray[Any] | None,
    ) -> tuple[Source, Standby | None]:
        """Makes the source of this order, and its spares."""
        standby = Standby(envs.num_envs, self.standby) if self.standby else None
        rows = envs.num_envs - self.standby
        where = (envs, mode, actor, calls, num_steps)
        bounds: dict[str, Any] = {
            "run_ahead": self.run_ahead,
            "columns": self.columns,
            "standby": standby,
        }
        free = functools.partial(
            Free,
            *where,
            min_rows=self.min_rows,
            max_rows=self.max_rows or rows,
            deadline=as_timeout(self.deadline, "deadline"),
            **bounds,
        )
        groups = functools.partial(Groups, *where, groups=self.groups, **bounds)
        if self.order == "free":
            return free(), standby
        if self.order == "groups":
            return groups(), standby
        lockstep = Lockstep(*where, episodes_per_env)
        if self.order == "lockstep":
            return lockstep, None
        makers: dict[str, Any] = {}
        if getattr(envs, "sends_rows", False):
            makers["free"] = free
            if self.groups > 1 and rows % self.groups == 0:
                makers["groups"] = groups
        auto: Any = Auto(actor, lockstep, makers)  # a source by `__getattr__`
        return auto, None
