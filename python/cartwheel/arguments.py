"""Checks of what users pass, with Gymnasium's exceptions and words where it has them."""

from __future__ import annotations

import inspect
import multiprocessing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel._cartwheel import usable_cpus
from cartwheel.choices import Executor, check_choice
from cartwheel.errors import add_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from cartwheel.choices import Mode

#: What makes one environment.
EnvFn: TypeAlias = Callable[[], Any]
#: Options of a reset that number its rows: our own word for them, and ManiSkill's.
NUMBERING_OPTIONS = ("env_index", "env_idx")
#: Options of a reset that say which rows are reset; no environment gets them.
ROW_OPTIONS = ("reset_mask", *NUMBERING_OPTIONS)


def as_autoreset_mode(mode: Mode) -> AutoresetMode:
    """The mode for a member, its value (``"SameStep"``) or its name (``"same_step"``).

    Raises:
        ValueError: It is none of them.
    """
    if isinstance(mode, str) and mode.upper() in AutoresetMode.__members__:
        return AutoresetMode[mode.upper()]
    return AutoresetMode(mode)


def keywords_of(constructor: Any) -> frozenset[str]:
    """The names of what can be passed to a class by keyword, but for those of its ``**``."""
    parameters = inspect.signature(constructor).parameters.values()
    return frozenset(part.name for part in parameters if part.kind is not part.VAR_KEYWORD)


def as_integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """A Python integer in a range, for one of Python's or NumPy's; a ``bool`` is none.

    Args:
        name: The argument, named in the error.
        value: What was passed for it.
        low: The least that is allowed.
        high: The greatest; ``None`` for no bound.

    Raises:
        ValueError: It is no integer, or out of range.
    """
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if is_integer and low <= value and (high is None or value <= high):
        return int(value)
    if high is not None:
        wanted = f"an integer from {low} to {high}"
    else:
        wanted = "a positive integer" if low == 1 else f"an integer from {low} on"
    raise ValueError(f"`{name}` must be {wanted}, got {value!r}.")


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


def as_executor(executor: Executor, num_envs: int) -> Executor:
    """Chooses the executor for ``"auto"``.

    One environment gains nothing from a worker, and one processor cannot run two. Everything else
    goes to processes: how long a step takes is not known before it is made.
    """
    check_choice("executor", executor, Executor)
    if executor != "auto":
        return executor
    return "inline" if num_envs == 1 or usable_cpus() == 1 else "process"


def as_num_workers(num_workers: int | None, max_concurrency: int | None, num_envs: int) -> int:
    """The number of workers, at most one per environment and ``max_concurrency`` in all.

    Raises:
        ValueError: One of them is no positive integer.
    """
    most = num_envs if max_concurrency is None else _as_most(max_concurrency)
    if num_workers is None:
        return min(usable_cpus(), num_envs, most)
    return min(as_integer("num_workers", num_workers, 1), num_envs, most)


def _as_most(max_concurrency: Any) -> int:
    """The argument of Gymnasium's, refused in its words; so ``True`` counts as 1 here."""
    if not isinstance(max_concurrency, int | np.integer):
        raise ValueError(  # noqa: TRY004 - Gymnasium's type
            f"`max_concurrency` must be an integer or None, got {type(max_concurrency)}."
        )
    if max_concurrency < 1:
        raise ValueError(f"`max_concurrency` must be a positive or None, got {max_concurrency}.")
    return int(max_concurrency)


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


def as_seeds(seed: Any, rows: Sequence[int]) -> list[int | None]:
    """One seed or ``None`` for each of these rows.

    Integers may be Python's or NumPy's; environments get Python's, which is what Gymnasium accepts.

    Raises:
        TypeError: No integer and no list. (Gymnasium's type for it.)
        ValueError: A list of the wrong length.
        gymnasium.error.Error: A seed that an environment would refuse.
    """
    if seed is None:
        return [None] * len(rows)
    if isinstance(seed, int | np.integer):
        seeds: Any = [int(seed) + row for row in rows]
    else:
        seeds = seed
    try:
        length = len(seeds)
    except TypeError:
        raise TypeError(
            "`seed` must be None, an integer, or a list with one integer or None for each "
            f"environment, got {seed!r}."
        ) from None
    if length != len(rows):
        raise ValueError(
            "If seeds are passed as a list the length must match "
            f"num_envs={len(rows)} but got length={length}."
        )
    return [_as_seed(row_seed, row) for row_seed, row in zip(seeds, rows, strict=True)]


def _as_seed(seed: Any, row: int) -> int | None:
    """Refuses, before anything is reset, what an environment's ``reset`` would refuse."""
    if seed is None:
        return None
    is_integer = isinstance(seed, int | np.integer)
    if is_integer and seed >= 0:
        return int(seed)
    refused = gym.error.Error(
        f"Seed must be greater or equal to zero, actual value: {seed}"
        if is_integer
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
    return num_envs if batch_size is None else as_integer("batch_size", batch_size, 1, num_envs)


def as_rows(env_index: Any, num_envs: int, name: str = "env_index") -> list[int]:
    """Row numbers from an array or a list of them, which errors call by ``name``.

    Raises:
        TypeError: It is no one-dimensional collection of integers.
        ValueError: It is empty, or names a row twice or one that does not exist.
    """
    array = np.asarray(env_index)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(
            f"`{name}` must be a one-dimensional array of integers, got shape "
            f"{array.shape} of {array.dtype}"
        )
    rows: list[int] = array.tolist()
    if not rows:
        raise ValueError(f"`{name}` is empty: it must name at least one row")
    wrong = [row for row in rows if not 0 <= row < num_envs]
    if wrong:
        raise ValueError(f"`{name}` names row {wrong[0]}; there are rows 0 to {num_envs - 1}")
    if len(set(rows)) < len(rows):
        twice = next(row for row in rows if rows.count(row) > 1)
        raise ValueError(f"`{name}` names row {twice} twice")
    return rows


def as_reset_rows(options: dict[str, Any] | None, num_envs: int) -> list[int]:
    """The rows that a reset with these options is of, in their order.

    Raises:
        TypeError: As for :func:`as_reset_mask` and :func:`as_rows`.
        ValueError: Likewise; or the rows are chosen in several ways.
    """
    mask = as_reset_mask(options, num_envs)
    ways = [name for name in ROW_OPTIONS if options is not None and name in options]
    if len(ways) > 1:
        both = " and ".join(f"`{name}`" for name in ways)
        raise ValueError(f"`options` has both {both}: give one of them")
    if mask is not None:
        rows: list[int] = mask.nonzero()[0].tolist()
        return rows
    if options is None or not ways:
        return list(range(num_envs))
    return as_rows(options[ways[0]], num_envs, ways[0])


def without_rows(options: dict[str, Any] | None) -> dict[str, Any] | None:
    """The options that environments get: a copy without those that say which rows are reset."""
    if options is None:
        return None
    return {key: value for key, value in options.items() if key not in ROW_OPTIONS}


def copied(options: Any) -> Any:
    """The options of a reset, of whose dictionaries, lists, tuples and arrays each is a copy.

    Other objects, such as a policy to play against, are the caller's own.
    """
    if type(options) is dict:
        return {key: copied(value) for key, value in options.items()}
    if type(options) in (list, tuple):
        return type(options)(map(copied, options))
    return options.copy() if isinstance(options, np.ndarray) else options


def as_values(values: Any, num_envs: int) -> list[Any]:
    """One value for each row for ``set_attr``: entries of a list or tuple, or one for all.

    Raises:
        ValueError: A list or tuple of the wrong length.
    """
    if not isinstance(values, list | tuple):
        return [values] * num_envs
    if len(values) != num_envs:
        raise ValueError(
            "Values must be a list or tuple with length equal to the number of environments. "
            f"Got `{len(values)}` values for {num_envs} environments."
        )
    return list(values)


def check_max_slabs(max_slabs: Any) -> None:
    """Raises ``ValueError`` unless it is ``None`` or an integer from 2 on."""
    if max_slabs is not None:
        as_integer("max_slabs", max_slabs, 2)


def as_context(context: Any) -> Any:
    """A ``multiprocessing`` context for a start method's name, a context, or ``None``."""
    if context is None or isinstance(context, str):
        return multiprocessing.get_context(context)
    return context
