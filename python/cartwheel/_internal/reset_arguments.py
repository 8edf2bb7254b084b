"""Checks of the arguments of resets: seeds, options, and the rows that options select."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium as gym
import numpy as np

from cartwheel._internal.arguments import as_rows, check_dictionary
from cartwheel._internal.suggestions import shown, suggest
from cartwheel.errors import add_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cartwheel._internal.arguments import Integer

#: Seeds of a reset: an integer, or one integer or ``None`` for each row, in a list or an array.
Seeds: TypeAlias = "Integer | Sequence[Integer | None] | NDArray[np.integer[Any]] | None"
#: Options of a reset: a dictionary for all rows, or a list with one or ``None`` for each row.
ResetOptions: TypeAlias = (
    Mapping[str, Any] | list[dict[str, Any] | None] | tuple[dict[str, Any] | None, ...] | None
)
#: Options of a reset with row numbers: cartwheel's name, and ManiSkill's.
NUMBERING_OPTIONS = ("env_index", "env_idx")
#: Options of a reset that select rows; they are not passed to environments.
ROW_OPTIONS = ("reset_mask", *NUMBERING_OPTIONS)


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
        return mask.nonzero()[0].tolist()
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


def kept_options(options: ResetOptions) -> ResetOptions:
    """Returns options to read later, with a mask and row numbers that the caller cannot change."""
    if not isinstance(options, Mapping):
        return options
    return {**options, **{name: copy.copy(options[name]) for name in row_options_in(options)}}


def check_chooses_no_rows(options: ResetOptions, why: str = "all of them are reset") -> None:
    """Refuses options that select rows, where the caller may not; ``why`` is for the error.

    Raises:
        ValueError: They do.
    """
    chosen = row_options_in(options)
    if chosen:
        raise ValueError(f"`options` must not choose rows, got {chosen}: {why}")


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
    """Returns a copy of the options without those that select rows; a list has none.

    A dictionary keeps its class, as in Gymnasium; another mapping becomes a dictionary. One that
    had nothing but row numbers is ``None``, as in a reset of all rows; one that had nothing but a
    mask is empty, as in Gymnasium.
    """
    if not isinstance(options, Mapping):
        return options
    kept = shallow_copy(options)
    for name in row_options_in(kept):
        del kept[name]
    return None if type(kept) is dict and not kept and names_rows(options) else kept


def shallow_copy(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of the same class; of a mapping that is not a dictionary, a dictionary."""
    if isinstance(options, dict) and type(options) is not dict:
        return copy.copy(options)
    return dict(options)  # `torch.compile` warns of `copy`


def copied(options: Any, known: dict[int, Any] | None = None) -> Any:
    """Copies the options of a reset, with the dictionaries, lists, tuples and arrays in them.

    Dictionaries keep their class. Other objects, such as a policy to play against, are not copied.

    Args:
        options: The options, or a part of them, which may contain itself.
        known: The copies of dictionaries and lists so far, by the ``id`` of each.
    """
    known = {} if known is None else known
    if id(options) in known:
        return known[id(options)]
    if isinstance(options, dict):
        clone = known[id(options)] = shallow_copy(options)
        for key, value in options.items():
            clone[key] = copied(value, known)
        return clone
    if type(options) is list:
        parts = known[id(options)] = []
        parts.extend(copied(part, known) for part in options)
        return parts
    if type(options) is tuple:
        return tuple(copied(part, known) for part in options)
    return options.copy() if isinstance(options, np.ndarray) else options
