"""Checks of arguments, with Gymnasium's exceptions and words where Gymnasium has them.

This file is above 500 lines because it has the documentation of every check.
"""

from __future__ import annotations

import functools
import inspect
import multiprocessing
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel._cartwheel import usable_cpus
from cartwheel._internal.literals import Executor, FinalNames, FinalObs, check_choice
from cartwheel._internal.suggestions import shown, suggest
from cartwheel._internal.versions import autoreset_mode_of
from cartwheel.errors import add_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cartwheel._internal.literals import Mode, NumWorkers, OnTimeout, OnWorkerDeath

#: A function that makes one environment.
EnvFn: TypeAlias = Callable[[], Any]
#: Seeds of a reset: an integer, or one integer or ``None`` for each row, in a list or an array.
Seeds: TypeAlias = "Integer | Sequence[Integer | None] | NDArray[np.integer[Any]] | None"
Integer: TypeAlias = "int | np.integer[Any]"
#: Options of a reset: a dictionary for all rows, or a list with one or ``None`` for each row.
ResetOptions: TypeAlias = (
    Mapping[str, Any] | list[dict[str, Any] | None] | tuple[dict[str, Any] | None, ...] | None
)
#: Time-outs of this many seconds (31 years) or more mean no limit: they would overflow clocks.
FOREVER_S = 1e9
#: The maximum number of rows: the native pool keeps row numbers in 32 bits.
MAX_ENVS = 2**30
#: The maximum number of batches that are kept as views: each has at least a page of memory.
MAX_BATCHES = 2**20
#: Options of a reset with row numbers: cartwheel's name, and ManiSkill's.
NUMBERING_OPTIONS = ("env_index", "env_idx")
#: Options of a reset that select rows; they are not passed to environments.
ROW_OPTIONS = ("reset_mask", *NUMBERING_OPTIONS)


def as_autoreset_mode(mode: Mode) -> AutoresetMode:
    """Returns the mode for a member, its value (``"SameStep"``) or its name (``"same_step"``).

    Raises:
        ValueError: The mode does not exist. (The first words are Gymnasium's.)
    """
    if isinstance(mode, str) and mode.upper() in AutoresetMode.__members__:
        return AutoresetMode[mode.upper()]
    try:
        return AutoresetMode(mode)
    except ValueError as error:
        modes = ", ".join(repr(member.lower()) for member in AutoresetMode.__members__)
        raise ValueError(f"{error}: `autoreset_mode` must be one of {modes}.") from None


def mode_of(envs: Any) -> AutoresetMode:
    """Returns the autoreset mode of a vector environment.

    Raises:
        ValueError: Its metadata has none.
    """
    mode = autoreset_mode_of(envs)
    if mode is None:
        raise ValueError(
            f"{envs}.metadata has no 'autoreset_mode', so it is unknown which rows are "
            "transitions: set it to a member of gymnasium.vector.AutoresetMode."
        )
    return as_autoreset_mode(mode)


def check_sends_rows(envs: Any, order: str) -> None:
    """Raises ``TypeError`` unless single rows of ``envs`` can be sent, as ``order`` needs it."""
    if not getattr(envs, "sends_rows", False):
        raise TypeError(
            f"order={order!r} sends and receives single rows, which {envs!r} cannot do: use "
            "cartwheel.VectorEnv, NativeVectorEnv or wrappers of cartwheel.wrappers, or "
            "order='lockstep'."
        )


def as_integer(
    name: str, value: Any, low: int, high: int | None = None, *, limit: int | None = None
) -> int:
    """Converts an integer of Python or NumPy to a Python integer; a ``bool`` is refused.

    Args:
        name: The name of the argument in the error.
        value: The value of the argument.
        low: The minimum.
        high: The maximum; ``None`` for no bound.
        limit: A maximum beyond all practical values, which only errors for larger values name.

    Raises:
        ValueError: The value is not an integer, or out of range.
    """
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if is_integer and low <= value and (high is None or value <= high):
        if limit is not None and value > limit:
            raise ValueError(f"`{name}` must be at most {limit}, got {value!r}.")
        return int(value)
    if high is not None:
        wanted = f"an integer from {low} to {high}"
    else:
        wanted = "a positive integer" if low == 1 else f"an integer from {low} on"
    raise ValueError(f"`{name}` must be {wanted}, got {value!r}.")


def as_num_envs(num_envs: Any) -> int:
    """Returns the number of environments.

    Raises:
        ValueError: It is not a positive integer, or greater than :data:`MAX_ENVS`.
    """
    return as_integer("num_envs", num_envs, 1, limit=MAX_ENVS)


def as_bool(name: str, value: Any) -> bool:
    """Converts a ``bool`` of Python or NumPy to one of Python; numbers are refused.

    Raises:
        TypeError: The value is not a ``bool``.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False, got {shown(value)}.")
    return bool(value)


def check_progress(progress: Any) -> None:
    """Checks the argument ``progress``.

    Raises:
        TypeError: It is neither a ``bool`` nor a function.
    """
    if not isinstance(progress, bool) and not callable(progress):
        raise TypeError(f"`progress` must be True, False or a function, got {shown(progress)}")


def as_number(name: str, value: Any) -> float:
    """Converts a number to a Python float.

    Raises:
        ValueError: The value is not a number.
    """
    number = _as_number(value)
    if number is None:
        raise ValueError(f"`{name}` must be a number, got {value!r}.")
    return number


def as_positive(name: str, value: Any) -> float:
    """Converts a number above 0 to a Python float.

    Raises:
        ValueError: The value is not a number, or not above 0, or infinite.
    """
    number = _as_number(value)
    if number is None or not 0 < number < float("inf"):
        raise ValueError(f"`{name}` must be a number above 0, got {value!r}.")
    return number


def as_fraction(name: str, value: Any) -> float:
    """Converts a number from 0 to 1 to a Python float.

    Raises:
        ValueError: The value is not a number, or out of range.
    """
    number = _as_number(value)
    if number is None or not 0 <= number <= 1:
        raise ValueError(f"`{name}` must be a number from 0 to 1, got {value!r}.")
    return number


def _as_number(value: Any) -> float | None:
    """Returns a real number of Python or NumPy as a float; ``None`` for anything else."""
    is_number = isinstance(value, int | float | np.integer | np.floating)
    return float(value) if is_number and not isinstance(value, bool) else None


def as_env_fns(env_fns: Iterable[EnvFn]) -> list[EnvFn]:
    """Returns the functions as a list.

    Raises:
        IndexError: The list is empty. (This is Gymnasium's type.)
        TypeError: ``env_fns`` is not a list of functions, or an entry is not callable.
    """
    if isinstance(env_fns, str) or not isinstance(env_fns, Iterable):
        if isinstance(env_fns, str):
            how = f"cartwheel.make_vec({env_fns!r}, num_envs) makes environments of an id"
        elif hasattr(env_fns, "num_envs"):
            how = "pass the functions that this vector environment is made of"
        else:
            how = "repeat one function by `[function] * num_envs`"
        raise TypeError(
            f"`env_fns` must be a list of functions that make environments, got {shown(env_fns)}: "
            f"{how}."
        )
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


def mismatched_signature(function: Callable[..., Any], *arguments: Any) -> inspect.Signature | None:
    """Returns the signature of a function that cannot be called with these arguments.

    ``None`` if it can be, or if it is written in C and has no signature.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:
        return None
    try:
        signature.bind(*arguments)
    except TypeError:
        return signature
    return None


def as_executor(
    executor: Executor,
    num_envs: int,
    *,
    on_timeout: OnTimeout,
    on_worker_death: OnWorkerDeath,
    retires: bool = False,
    measures: bool = False,
) -> Executor:
    """Chooses the executor for ``"auto"``.

    With one environment or one processor, workers cannot run in parallel with anything, unless
    environments wait, which is known only if one is measured (``measures``). A daemonic process,
    such as a worker of ``multiprocessing.Pool``, may start no processes. In all other cases
    ``"process"`` is chosen, because the time of a step is not known in advance. Policies for
    time-outs and deaths need processes: only they can be killed, and die without the program. So do
    workers that are replaced (``retires``).

    Raises:
        ValueError: ``executor`` is not one of the executors, or does not allow these policies.
    """
    check_choice("executor", executor, Executor)
    if executor == "auto":
        one_processor = usable_cpus() == 1 and not measures
        alone = num_envs == 1 or one_processor or multiprocessing.current_process().daemon
        restarts = retires or "restart" in (on_timeout, on_worker_death)
        executor = "inline" if alone and not restarts else "process"
    if on_timeout == "restart" and executor != "process":
        raise ValueError(
            "`on_timeout='restart'` needs executor='process': only a process can be killed, got "
            f"executor={executor!r}."
        )
    if retires and executor != "process":
        raise ValueError(
            "`max_episodes_per_worker` and `max_worker_memory` need executor='process', whose "
            f"workers can be replaced, got executor={executor!r}."
        )
    return executor


def as_num_workers(
    num_workers: NumWorkers,
    max_concurrency: int | None,
    num_envs: int,
    *,
    retires: bool = False,
    measures: bool = False,
) -> int:
    """Returns the number of workers: at most ``num_envs``, and at most ``max_concurrency``.

    Workers that are replaced between two episodes (``retires``) have one row each. For ``"auto"``,
    which is allowed where an environment can be measured (``measures``), the maximum is returned.

    Raises:
        ValueError: An argument is not a positive integer, or allows too few workers.
    """
    limit = num_envs if max_concurrency is None else _as_max_concurrency(max_concurrency)
    if measures and num_workers == "auto":
        num_workers = num_envs
    elif isinstance(num_workers, str):
        wanted = (
            "a positive integer, 'auto' or None"
            if measures
            else "a positive integer or None ('auto' is for environments in Python)"
        )
        raise ValueError(f"`num_workers` must be {wanted}, got {num_workers!r}.")
    if retires:
        asked = num_envs if num_workers is None else as_integer("num_workers", num_workers, 1)
        if min(asked, limit) < num_envs:
            raise ValueError(
                "`max_episodes_per_worker` and `max_worker_memory` replace a worker between two "
                f"episodes of its only row: they need num_workers={num_envs}, one for each row, "
                f"got {min(asked, limit)}."
            )
        return num_envs
    if num_workers is None:
        return min(usable_cpus(), num_envs, limit)
    return min(as_integer("num_workers", num_workers, 1), num_envs, limit)


def _as_max_concurrency(max_concurrency: Any) -> int:
    """Checks ``max_concurrency`` with Gymnasium's rules and words; so ``True`` counts as 1."""
    if not isinstance(max_concurrency, int | np.integer):
        raise ValueError(  # noqa: TRY004 - Gymnasium's type
            f"`max_concurrency` must be an integer or None, got {type(max_concurrency)}."
        )
    if max_concurrency < 1:
        raise ValueError(
            f"`max_concurrency` must be a positive integer or None, got {max_concurrency}."
        )
    return int(max_concurrency)


def as_timeout(timeout: Any, name: str = "timeout") -> float | None:
    """Returns the seconds to wait; ``None`` for no limit, also for :data:`FOREVER_S` and more.

    ``name`` is its name in errors.

    Raises:
        TypeError: ``timeout`` is not a number.
        ValueError: ``timeout`` is negative or NaN.
    """
    if timeout is None:
        return None
    wanted = f"`{name}` must be a number of seconds or None, got {timeout!r}."
    is_number = isinstance(timeout, int | float | np.integer | np.floating)
    if not is_number or isinstance(timeout, bool):
        raise TypeError(wanted)
    if timeout < 0:
        raise ValueError(f"`{name}` must not be negative, got {timeout!r}.")
    if not timeout >= 0:  # NaN
        raise ValueError(wanted)
    return None if timeout >= FOREVER_S else float(timeout)


def as_seeds(seed: Any, rows: Sequence[int], num_envs: int) -> list[int | None]:
    """Returns one seed or ``None`` for each of these rows, which may be some of ``num_envs``.

    Integers of NumPy become Python integers, because Gymnasium's environments accept no others.

    Raises:
        TypeError: ``seed`` is neither an integer nor a list. (This is Gymnasium's type.)
        ValueError: The list has the wrong length.
        gymnasium.error.Error: An environment would refuse a seed.
    """
    if seed is None:
        return [None] * len(rows)
    seeds: Any = seed
    if isinstance(seed, int | np.integer):
        seeds = [int(seed) + row for row in rows]
    try:
        length = len(seeds)
    except TypeError:
        length = -1
    if length < 0 or isinstance(seeds, str | bytes | Mapping | AbstractSet):
        raise TypeError(
            "`seed` must be None, an integer, or a list with one integer or None for each "
            f"environment, got {shown(seed)}."
        )
    if length != len(rows) < num_envs:
        raise ValueError(
            f"`seed` must have one entry for each of the {len(rows)} rows that are reset, got "
            f"{length}."
        )
    if length != len(rows):
        raise ValueError(
            "If seeds are passed as a list the length must match "
            f"num_envs={len(rows)} but got length={length}."
        )
    return [as_seed(row_seed, row) for row_seed, row in zip(seeds, rows, strict=True)]


def as_seed(seed: Any, row: int) -> int | None:
    """Returns the seed of a row, a Python integer.

    Raises:
        gymnasium.error.Error: An environment's ``reset`` would refuse it; before anything is reset.
    """
    if seed is None:
        return None
    is_integer = isinstance(seed, int | np.integer)
    if is_integer and seed >= 0:
        return int(seed)
    message = (
        f"Seed must be greater or equal to zero, actual value: {seed}"
        if is_integer
        else f"Seed must be a python integer, actual type: {type(seed)}"
    )
    raise add_note(gym.error.Error(message), f"the seed of row {row} is {shown(seed)}")


def check_options(options: Any, num_envs: int) -> None:
    """Refuses options of a reset of another form, and misspelled options that select rows.

    Raises:
        TypeError: ``options`` is neither a dictionary nor a list of dictionaries nor ``None``.
        ValueError: An entry is refused, or the list has the wrong length or selects rows.
    """
    if isinstance(options, list | tuple):
        how = "a list resets all rows; `send_reset` resets some with options of their own"
        check_row_options(options, num_envs, num_envs, how)
    elif options is None or isinstance(options, Mapping):
        _check_entries(options or {}, "options", num_envs)
    else:
        raise _refused_form(options)


def check_dictionary(name: str, value: Any) -> None:
    """Raises ``TypeError`` unless the value of an argument is a dictionary or ``None``."""
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"`{name}` must be a dictionary or None, got {shown(value)}.")


def _refused_form(options: Any) -> TypeError:
    return TypeError(
        "`options` must be None, a dictionary, or a list with one dictionary or None for each "
        f"row, got {shown(options)}."
    )


def _check_entries(options: Mapping[str, Any], given: str, num_envs: int) -> None:
    """Refuses misspelled options that select rows; ``given`` names the options in errors.

    Environments may have options of any name, which are passed on. So an entry is refused only if
    its name differs from one that selects rows merely by a typing error, case, hyphens, a plural or
    ``id`` for ``idx``, and if its value could select rows too: a ``bool`` array with one value for
    each row, or a list or an array of row numbers. A reset of all rows would ignore it.
    """
    for name, value in options.items():
        if name in ROW_OPTIONS or not isinstance(name, str):
            continue
        meant = _meant_row_option(name)
        if meant is not None and _may_select_rows(value, num_envs):
            wanted = "reset_mask" if meant == "reset_mask" else "env_index"
            raise ValueError(
                f"`{given}[{name!r}]` = {shown(value)} selects no rows: did you mean `{wanted}`?"
            )


@functools.lru_cache(maxsize=64)  # the rows of a list mostly have the same names
def _meant_row_option(name: str) -> str | None:
    return suggest(name, (*ROW_OPTIONS, "env_ids", "env_indices"), cutoff=0.87)


def _may_select_rows(value: Any, num_envs: int) -> bool:
    if not isinstance(value, list | tuple | np.ndarray):
        return False
    try:
        array = np.asarray(value)
    except ValueError:
        return False
    if array.ndim != 1 or not array.size:
        return False
    if array.dtype == np.bool_:
        return array.shape == (num_envs,)
    is_integer = array.dtype.kind in "iu"
    return is_integer and bool(((array >= 0) & (array < num_envs)).all())


def as_reset_mask(options: ResetOptions, num_envs: int) -> NDArray[np.bool_] | None:
    """Returns the mask in the options of a reset, or ``None``.

    Raises:
        TypeError: The mask is not an array of dtype ``bool``.
        ValueError: The mask has another shape than ``(num_envs,)``, or no true value.
    """
    if not isinstance(options, Mapping) or "reset_mask" not in options:
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
    if not mask.any():
        raise ValueError(
            "`options['reset_mask']` must contain a boolean array with at least one True value, "
            f"got reset_mask={mask}"
        )
    return mask


def as_batch_size(batch_size: Any, num_envs: int) -> int:
    """Returns the number of rows of a batch; ``None`` means all rows.

    Raises:
        ValueError: ``batch_size`` is not an integer from 1 to ``num_envs``.
    """
    return num_envs if batch_size is None else as_integer("batch_size", batch_size, 1, num_envs)


def check_finals(final_obs: Any, final_names: Any, mode: AutoresetMode) -> None:
    """Checks the form of final observations.

    Raises:
        ValueError: The form does not exist, or it needs another autoreset mode.
    """
    check_choice("final_obs", final_obs, FinalObs)
    check_choice("final_names", final_names, FinalNames)
    if final_obs == "dense" and mode is not AutoresetMode.SAME_STEP:
        raise ValueError(
            "`final_obs='dense'` needs autoreset_mode='same_step', got "
            f"{mode.name.lower()!r}, in which the observations of a step are the true next ones."
        )


def as_full_batch(full_batch: Any, batch_size: int, num_envs: int) -> bool:
    """Returns whether resets with row numbers return all rows.

    Raises:
        TypeError: ``full_batch`` is not a ``bool``.
        ValueError: Batches have fewer rows than there are environments.
    """
    is_full = as_bool("full_batch", full_batch)
    if is_full and batch_size < num_envs:
        raise ValueError(
            f"`full_batch=True` needs batches of all rows, got batch_size={batch_size} of "
            f"num_envs={num_envs}."
        )
    return is_full


def as_drawn_rows(env_index: Any, num_envs: int, render_mode: str | None) -> list[int]:
    """Returns the rows whose terminal states are drawn; ``None`` and an empty list mean none.

    Raises:
        Exception: As for :func:`as_rows`.
        ValueError: The environments draw no frames.
    """
    if env_index is None or np.size(env_index) == 0:
        return []
    rows = as_rows(env_index, num_envs)
    if render_mode in (None, "human"):
        raise ValueError(
            "frames of terminal states need environments that return frames, such as those with "
            f"render_mode='rgb_array'; these have render_mode={render_mode!r}"
        )
    return rows


def as_rows(env_index: Any, num_envs: int, name: str = "env_index") -> list[int]:
    """Returns row numbers from an array or a list of integers; ``name`` is its name in errors.

    Raises:
        TypeError: ``env_index`` is not a one-dimensional collection of integers.
        ValueError: ``env_index`` is empty, or a row does not exist or is named twice.
    """
    rows: list[int] = as_integers(name, env_index).tolist()
    if not rows:
        raise ValueError(f"`{name}` is empty: it must name at least one row")
    wrong = [row for row in rows if not 0 <= row < num_envs]
    if wrong:
        raise ValueError(f"`{name}` names row {wrong[0]}; there are rows 0 to {num_envs - 1}")
    if len(set(rows)) < len(rows):
        twice = next(row for row in rows if rows.count(row) > 1)
        raise ValueError(f"`{name}` names row {twice} twice")
    return rows


def as_integers(name: str, values: Any) -> NDArray[Any]:
    """Returns an array for an array or a list of integers; ``name`` is its name in errors.

    Raises:
        TypeError: ``values`` are not a one-dimensional collection of integers.
    """
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(
            f"`{name}` must be a one-dimensional array of integers, got shape "
            f"{array.shape} of {array.dtype}"
        )
    return array


def as_reset_rows(options: ResetOptions, num_envs: int) -> list[int]:
    """Returns the rows that a reset with these options resets, in their order.

    Raises:
        TypeError: As for :func:`as_reset_mask` and :func:`as_rows`.
        ValueError: As for these functions; or several options select rows.
    """
    mask = as_reset_mask(options, num_envs)
    ways = row_options_in(options)
    if len(ways) > 1:
        both = " and ".join(f"`{name}`" for name in ways)
        raise ValueError(f"`options` has both {both}: give one of them")
    if mask is not None:
        rows: list[int] = mask.nonzero()[0].tolist()
        return rows
    if not isinstance(options, Mapping) or not ways:
        return list(range(num_envs))
    return as_rows(options[ways[0]], num_envs, ways[0])


def check_row_options(options: Any, num_rows: int, num_envs: int, instead: str) -> None:
    """Checks the options of ``num_rows`` rows: a dictionary for all of them, or a list.

    Args:
        options: The dictionary, which may not select rows, or the list.
        num_rows: The number of rows.
        num_envs: The number of all rows.
        instead: How the caller selects rows, for errors.

    Raises:
        TypeError: ``options`` is neither, or an entry is not a dictionary.
        ValueError: The list has the wrong length, or options select rows.
    """
    is_list = isinstance(options, list | tuple)
    if not is_list and options is not None and not isinstance(options, Mapping):
        raise _refused_form(options)
    if is_list and len(options) != num_rows:
        raise ValueError(
            f"`options` must have one entry for each of the {num_rows} rows, got {len(options)}."
        )
    for at, own in enumerate(options if is_list else [options]):
        given = f"options[{at}]" if is_list else "options"
        check_dictionary(given, own)
        _check_entries(own or {}, given, num_envs)
        for name in row_options_in(own):
            raise ValueError(f"`{given}` cannot select rows by `{name}`: {instead}.")


def by_row(options: Any, num_rows: int) -> list[Any]:
    """Returns checked options for each row; rows share a dictionary that is for all of them."""
    return list(options) if isinstance(options, list | tuple) else [options] * num_rows


def row_options_in(options: ResetOptions) -> list[str]:
    """Returns the names of those options that select rows."""
    return [name for name in ROW_OPTIONS if name in options] if isinstance(options, Mapping) else []


def names_rows(options: ResetOptions) -> bool:
    """Whether the options of a reset have row numbers."""
    return not set(NUMBERING_OPTIONS).isdisjoint(row_options_in(options))


def as_reset_of_all(
    seed: Any, options: ResetOptions, num_envs: int
) -> tuple[list[int | None], NDArray[np.bool_]]:
    """Returns seeds and mask of all rows for options with row numbers.

    A list of seeds has one entry for each row that is reset, in their order, or one for each of
    all rows.

    Raises:
        Exception: As for :func:`as_reset_rows` and :func:`as_seeds`.
    """
    rows = as_reset_rows(options, num_envs)
    if len(rows) < num_envs and np.ndim(seed) == 1 and len(seed) == num_envs:
        seed = [seed[row] for row in rows]
    seeds: list[int | None] = [None] * num_envs
    mask = np.zeros(num_envs, np.bool_)
    for row, own in zip(rows, as_seeds(seed, rows, num_envs), strict=True):
        seeds[row] = own
        mask[row] = True
    return seeds, mask


def without_rows(options: ResetOptions) -> ResetOptions:
    """Returns a copy of the options without those that select rows; a list has none."""
    if not isinstance(options, Mapping):
        return options
    return {key: value for key, value in options.items() if key not in ROW_OPTIONS}


def copied(options: Any) -> Any:
    """Copies the options of a reset, with the dictionaries, lists, tuples and arrays in them.

    Other objects, such as a policy to play against, are not copied.
    """
    if type(options) is dict:
        return {key: copied(value) for key, value in options.items()}
    if type(options) in (list, tuple):
        return type(options)(map(copied, options))
    return options.copy() if isinstance(options, np.ndarray) else options


def as_values(name: str, values: Any, num_envs: int, rows: list[int] | None) -> list[Any]:
    """Returns one value for each row for ``set_attr``, from a list, a tuple, or a single value.

    Args:
        name: The attribute.
        values: The argument of ``set_attr``.
        num_envs: The number of all rows.
        rows: The rows to set; ``None`` for all rows.

    Raises:
        ValueError: The list or tuple has the wrong length.
    """
    num_rows, times = (num_envs, "num_envs") if rows is None else (len(rows), str(len(rows)))
    if not isinstance(values, list | tuple):
        return [values] * num_rows
    if len(values) != num_rows:
        message = (
            "Values must be a list or tuple with length equal to the number of environments. "
            f"Got `{len(values)}` values for {num_rows} environments. The attribute is `{name}`."
            if rows is None
            else f"`values` of `{name}` must have one entry for each of the {num_rows} rows of "
            f"`env_index`, got {len(values)}."
        )
        raise add_note(
            ValueError(message),
            f"to set `{name}` to one list in every row, pass `[the_list] * {times}`",
        )
    return list(values)


def check_max_batches(max_batches: Any) -> None:
    """Raises ``ValueError`` unless it is ``None`` or from 2 to :data:`MAX_BATCHES`."""
    if max_batches is not None:
        as_integer("max_batches", max_batches, 2, limit=MAX_BATCHES)


def as_context(context: Any) -> Any:
    """Returns a ``multiprocessing`` context for the name of a start method, or for ``None``.

    Raises:
        ValueError: The start method does not exist, or ``context`` is not a context. (The first
            words are Gymnasium's.)
    """
    methods = sorted(multiprocessing.get_all_start_methods())  # the default is first, and differs
    if context is None or context in methods:
        return multiprocessing.get_context(context)
    if isinstance(context, str) or not hasattr(context, "get_start_method"):
        names = ", ".join(map(repr, methods))
        raise ValueError(
            f"cannot find context for {shown(context)}: `context` must be one of {names}, a "
            "multiprocessing context or None."
        )
    return context
