"""Checks of what users pass, with Gymnasium's exceptions and words where it has them."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel import _cartwheel
from cartwheel.faults import add_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from cartwheel.spaces import EnvFn

EXECUTORS = ("auto", "inline", "thread", "process")


def as_autoreset_mode(mode: str | AutoresetMode) -> AutoresetMode:
    """The mode for a member, its value (``"SameStep"``) or its name (``"same_step"``).

    Raises:
        ValueError: It is none of them.
    """
    if isinstance(mode, str) and mode.upper() in AutoresetMode.__members__:
        return AutoresetMode[mode.upper()]
    return AutoresetMode(mode)


def check_choice(argument: str, value: Any, choices: Sequence[str]) -> None:
    """Raises ``ValueError`` unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(
            f"`{argument}` must be one of {', '.join(map(repr, choices))}, got {value!r}."
        )


def as_env_fns(env_fns: Iterable[EnvFn]) -> list[EnvFn]:
    """The functions as a list.

    Raises:
        IndexError: There is none. (Gymnasium's type for it.)
        TypeError: One cannot be called.
    """
    functions = list(env_fns)
    if not functions:
        raise IndexError("`env_fns` is empty: a vector environment needs at least one environment.")
    for row, function in enumerate(functions):
        if not callable(function):
            raise TypeError(
                f"env_fns[{row}] must be a function that makes an environment, "
                f"got {type(function)}."
            )
    return functions


def as_executor(executor: str, num_envs: int) -> str:
    """Chooses the executor for ``"auto"``.

    One environment gains nothing from a worker, and one processor cannot run two. Everything else
    goes to processes: how long a step takes is not known before it is made.
    """
    check_choice("executor", executor, EXECUTORS)
    if executor != "auto":
        return executor
    return "inline" if num_envs == 1 or _cartwheel.usable_cpus() == 1 else "process"


def as_num_workers(num_workers: int | None, max_concurrency: int | None, num_envs: int) -> int:
    """The number of workers, at most one per environment and ``max_concurrency`` in all.

    Raises:
        ValueError: One of them is no positive integer.
    """
    for name, value in (("max_concurrency", max_concurrency), ("num_workers", num_workers)):
        if value is not None and not isinstance(value, int | np.integer):
            raise ValueError(f"`{name}` must be an integer or None, got {type(value)}.")
        if value is not None and value < 1:
            raise ValueError(f"`{name}` must be a positive or None, got {value}.")
    wanted = _cartwheel.usable_cpus() if num_workers is None else int(num_workers)
    most = num_envs if max_concurrency is None else min(num_envs, int(max_concurrency))
    return min(wanted, most)


def as_timeout(timeout: Any) -> float | None:
    """Seconds to wait, or ``None`` for as long as it takes, which infinity means too.

    Raises:
        TypeError: It is no number.
        ValueError: It is negative or not a number.
    """
    if timeout is None:
        return None
    if not isinstance(timeout, int | float | np.number):
        raise TypeError(f"`timeout` must be a number of seconds or None, got {timeout!r}.")
    seconds = float(timeout)
    if not seconds >= 0:
        raise ValueError(f"`timeout` must not be negative, got {timeout!r}.")
    return None if seconds == float("inf") else seconds


def as_seeds(seed: Any, num_envs: int) -> list[int | None]:
    """One seed or ``None`` a row.

    Raises:
        TypeError: No integer and no list. (What Gymnasium's ``len(seed)`` gives.)
        ValueError: A list of the wrong length.
        gymnasium.error.Error: A seed that an environment would refuse.
    """
    if seed is None:
        return [None] * num_envs
    seeds = [seed + row for row in range(num_envs)] if isinstance(seed, int) else seed
    if len(seeds) != num_envs:
        raise ValueError(
            "If seeds are passed as a list the length must match "
            f"num_envs={num_envs} but got length={len(seeds)}."
        )
    for row, row_seed in enumerate(seeds):
        if row_seed is not None:
            _check_seed(row_seed, row)
    return list(seeds)


def _check_seed(seed: Any, row: int) -> None:
    """Refuses, before anything is reset, what an environment's ``reset`` would refuse."""
    if isinstance(seed, int) and seed >= 0:
        return
    refused = gym.error.Error(
        f"Seed must be greater or equal to zero, actual value: {seed}"
        if isinstance(seed, int)
        else f"Seed must be a python integer, actual type: {type(seed)}"
    )
    add_note(refused, f"the seed of row {row}")
    raise refused


def as_reset_mask(options: dict[str, Any] | None, num_envs: int) -> NDArray[np.bool_] | None:
    """The mask among the options of a reset, if there is one.

    Raises:
        TypeError: It is no array, or not of dtype ``bool``.
        ValueError: It has another shape than ``(num_envs,)``, or no true value.
    """
    if options is None or "reset_mask" not in options:
        return None
    mask = options["reset_mask"]
    if not isinstance(mask, np.ndarray):
        raise TypeError(f"`options['reset_mask']` must be a numpy array, got {type(mask)}")
    if mask.shape != (num_envs,):
        raise ValueError(
            f"`options['reset_mask']` must have shape `({num_envs},)`, got {mask.shape}"
        )
    if mask.dtype != np.bool_:
        raise TypeError(f"`options['reset_mask']` must have `dtype=np.bool_`, got {mask.dtype}")
    if not np.any(mask):
        raise ValueError(
            "`options['reset_mask']` must contain a boolean array with at least one True value, "
            f"got reset_mask={mask}"
        )
    return mask


def as_batch_size(batch_size: Any, num_envs: int) -> int:
    """Rows of a batch; all of them by default.

    Raises:
        ValueError: It is no integer from 1 to ``num_envs``.
    """
    if batch_size is None:
        return num_envs
    is_integer = isinstance(batch_size, int | np.integer) and not isinstance(batch_size, bool)
    if not is_integer or not 1 <= batch_size <= num_envs:
        raise ValueError(
            f"`batch_size` must be an integer from 1 to num_envs={num_envs}, got {batch_size!r}."
        )
    return int(batch_size)


def as_rows(env_index: Any, num_envs: int) -> list[int]:
    """Row numbers from an array or a list of them.

    Raises:
        TypeError: It is no one-dimensional collection of integers.
        ValueError: It is empty, or names a row twice or one that does not exist.
    """
    array = np.asarray(env_index)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(
            "`env_index` must be a one-dimensional array of integers, got shape "
            f"{array.shape} of {array.dtype}"
        )
    rows: list[int] = array.tolist()
    if not rows:
        raise ValueError("`env_index` is empty: it must name at least one row")
    wrong = [row for row in rows if not 0 <= row < num_envs]
    if wrong:
        raise ValueError(f"`env_index` names row {wrong[0]}; there are rows 0 to {num_envs - 1}")
    if len(set(rows)) < len(rows):
        twice = next(row for row in rows if rows.count(row) > 1)
        raise ValueError(f"`env_index` names row {twice} twice")
    return rows


def check_max_slabs(max_slabs: Any) -> None:
    """Raises ``ValueError`` unless it is ``None`` or an integer from 2 on."""
    if max_slabs is not None and (not isinstance(max_slabs, int) or max_slabs < 2):
        raise ValueError(f"`max_slabs` must be at least 2, got {max_slabs!r}.")


def as_context(context: Any) -> Any:
    """A ``multiprocessing`` context for a start method's name, a context, or ``None``."""
    if context is None or isinstance(context, str):
        return multiprocessing.get_context(context)
    return context
