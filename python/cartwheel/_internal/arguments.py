"""Checks of arguments, with Gymnasium's exceptions and words where Gymnasium has them.

Those of seeds and options are in ``reset_arguments.py``.
"""

from __future__ import annotations

import inspect
import multiprocessing
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel._cartwheel import usable_cpus
from cartwheel._internal.literals import Executor, FinalNames, FinalObs, check_choice
from cartwheel._internal.suggestions import shown
from cartwheel._internal.versions import autoreset_mode_of
from cartwheel.errors import add_note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel._internal.literals import Mode, NumWorkers, OnTimeout, OnWorkerDeath

#: A function that makes one environment.
EnvFn: TypeAlias = Callable[[], Any]
#: An integer of Python or NumPy.
Integer: TypeAlias = "int | np.integer[Any]"
#: Time-outs of this many seconds (31 years) or more mean no limit: they would overflow clocks.
FOREVER_S = 1e9
#: The maximum number of rows: the native pool keeps row numbers in 32 bits.
MAX_ENVS = 2**30
#: The maximum number of batches that are kept as views: each has at least a page of memory.
MAX_BATCHES = 2**20


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
    if getattr(envs, "sends_rows", False):
        return
    layer, where = envs, repr(envs)
    while getattr(getattr(layer, "env", None), "sends_rows", None) is False:
        layer, where = layer.env, f"{type(layer.env).__name__} in {envs!r}"
    usual = "use cartwheel.VectorEnv, NativeVectorEnv or wrappers of cartwheel.wrappers"
    raise TypeError(
        f"order={order!r} sends and receives single rows, which {where} cannot do: "
        f"{getattr(layer, '_sends_rows_instead', usual)}, or order='lockstep'."
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
        elif hasattr(env_fns, "step") and not isinstance(env_fns, type):
            how = "pass functions, `[lambda: gymnasium.make(id)] * num_envs`"
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
                f"env_fns[{row}] must be a function that makes an environment, got an object of "
                f"{type(function)}: pass the function, `lambda: gymnasium.make(id)`, or the class."
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
        ValueError: An argument is not a positive integer, or allows too few workers; or
            ``CARTWHEEL_CPUS`` is not a number.
    """
    cpus = usable_cpus()
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
        return min(cpus, num_envs, limit)
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


def check_dictionary(name: str, value: Any) -> None:
    """Raises ``TypeError`` unless the value of an argument is a dictionary or ``None``."""
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"`{name}` must be a dictionary or None, got {shown(value)}.")


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
