"""Checks ``rows``, ``num_envs``, ``executors``, ``modes`` and ``send_recv``.

Results do not depend on the worker of a row, on when it is stepped, or on the other rows.
"""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING

from gymnasium.vector import AutoresetMode

from cartwheel.testing.report import Unchecked
from cartwheel.vector.base import PoolVectorEnv

if TYPE_CHECKING:
    from cartwheel.testing.kit import Kit
    from cartwheel.testing.player import Player

_REMEDY = (
    "A row must depend on its own seed and actions alone. Keep state in the environment itself: no "
    "class attributes, globals or buffers that environments share."
)


def check_rows(kit: Kit) -> str:
    """Row ``i`` with the seed ``s + i`` equals the single environment."""
    player = kit.run(kit.envs)
    _assert_single(kit, player, f"among {kit.envs.num_envs} rows")
    return f"{len(player.traces)} rows and single environments × {kit.steps} steps"


def check_num_envs(kit: Kit) -> str:
    """A row does not depend on the number of rows, nor on their division into blocks."""
    for num_envs in kit.variants.sizes:
        with kit.made(num_envs, mode=kit.mode, limit=kit.short) as envs:
            _assert_single(kit, kit.run(envs), f"among {num_envs} rows", ending=True)
    _refuse_nothing(kit.variants.sizes)
    return f"num_envs = {', '.join(map(str, kit.variants.sizes))}"


def check_executors(kit: Kit) -> str:
    """A row does not depend on the executor, nor on the number of workers and their shards."""
    _refuse_nothing(kit.variants.executors)
    num_envs, tried = max(kit.variants.sizes), []
    for keywords in kit.variants.executors:
        if keywords["executor"] == "process" and multiprocessing.current_process().daemon:
            continue  # a daemonic process can have no workers
        text = ", ".join(f"{name}={value!r}" for name, value in keywords.items())
        with kit.made(num_envs, mode=kit.mode, limit=kit.short, **keywords) as envs:
            _assert_single(kit, kit.run(envs), f"with {text}", ending=True)
        tried.append(text)
    return f"{num_envs} rows with {'; '.join(tried)}"


def check_modes(kit: Kit) -> str:
    """All autoreset modes show the same episodes."""
    limit = kit.short
    for mode in AutoresetMode:
        with kit.made(3, mode=mode, limit=limit) as envs:
            player = kit.run(envs)
        _assert_single(kit, player, f"in the mode {mode.name}", ending=True)
    ends = sum(event.is_end for trace in player.traces.values() for event in trace)
    limited = "" if limit is None else f", by a limit of {limit} steps"
    if not ends:
        raise Unchecked(f"no episode ended in {kit.steps} steps: pass more `steps`")
    return f"3 modes × 3 rows × {kit.steps} steps, {ends} ends of episodes{limited}"


def check_send_recv(kit: Kit) -> str:
    """Rows that are sent and received are those of ``step``, in batches of any rows."""
    if not isinstance(kit.given, PoolVectorEnv):
        raise Unchecked("only cartwheel's vector environments have `send` and `recv`")
    player = kit.player(kit.given)
    player.run_in_parts(kit.steps)
    here = "after `send` and `recv`"
    _assert_single(kit, player, here)
    for mode in AutoresetMode:
        with kit.made(5, mode=mode, limit=kit.short, batch_size=2) as envs:
            player = kit.player(envs)
            player.run_in_parts(kit.steps)
            _assert_single(kit, player, f"{here} in the mode {mode.name}", ending=True)
    return f"{kit.given.num_envs} rows; 5 rows in batches of 2 in 3 modes; {kit.steps} steps"


def _assert_single(kit: Kit, player: Player, here: str, *, ending: bool = False) -> None:
    """Fails unless every row of a player equals the single environment."""
    singles = kit.singles(ending=ending)
    kit.assert_same(player, singles, (here, "in a single environment"), _REMEDY)


def _refuse_nothing(tried: tuple[object, ...]) -> None:
    if not tried:
        raise Unchecked("only cartwheel's own vector environments can be made in several ways")
