"""The form of saved vector environments, and the checks before one is loaded.

::

    state    := format, version, kind, autoreset_mode, num_envs, wrappers, envs
    wrappers := from the innermost to the outermost: class, state, rows
    envs     := None | states, next_resets, models, action_masks

All of them are dictionaries with these keys, lists, arrays, numbers, text and bytes. ``rows`` of a
wrapper is the state of its source, which wrappers share: it is in the innermost of these. It and
the numbers of single rows are missing in a state of the wrappers alone. ``states`` has the bytes of
each row (:mod:`cartwheel.workers.serving.row_state`, or the engine's), ``models`` what was set in
the rows' own MuJoCo models, ``action_masks`` those of the last observations.
"""

from __future__ import annotations

import itertools
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal.suggestions import shown

if TYPE_CHECKING:
    from collections.abc import Collection

FORMAT, VERSION = "cartwheel", 1


def new_state(kind: str, **entries: Any) -> dict[str, Any]:
    """Returns a state of the present version with these entries; ``kind`` says what was saved."""
    return {"format": FORMAT, "version": VERSION, "kind": kind, **entries}


def check_header(state: Any, kind: str, entries: Collection[str]) -> None:
    """Checks that this is a whole state of this kind and of a version that can be read.

    Args:
        state: The argument of ``load_state_dict``.
        kind: As for :func:`new_state`.
        entries: The names of its other entries.

    Raises:
        TypeError: It is not a dictionary.
        ValueError: It is something else, or of an unknown version.
    """
    if not isinstance(state, dict):
        raise TypeError(f"`state` must be a dictionary from `state_dict`, got {shown(state)}")
    if state.get("format") != FORMAT:
        raise ValueError(
            f"`state` is not from `state_dict` of cartwheel: its keys are {sorted(map(str, state))}"
        )
    version = state.get("version")
    if version != VERSION:
        raise ValueError(
            f"the state has version {version!r}; this cartwheel reads {VERSION}: load it with the "
            "cartwheel that saved it"
        )
    if state.get("kind") != kind:
        raise ValueError(f"the state is one of kind {state.get('kind')!r}, not of {kind!r}")
    check_keys("state", state, {"format", "version", "kind", *entries})


def described(envs: Any) -> dict[str, Any]:
    """Returns what must be equal where the rows of a vector environment are loaded."""
    return {"num_envs": envs.num_envs, "autoreset_mode": envs.autoreset_mode.name.lower()}


def check_described(state: dict[str, Any], envs: Any) -> None:
    """Checks that the rows of a state, if it has any, are those of such a vector environment.

    Raises:
        ValueError: They are those of another one.
    """
    if state["envs"] is not None:
        for name, present in described(envs).items():
            check_equal(name, state[name], present)


def check_keys(path: str, given: Any, keys: Collection[str]) -> None:
    """Checks that a part of a state is a dictionary with these keys.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(given, dict):
        raise ValueError(f"`{path}` must be a dictionary, got {shown(given)}")  # noqa: TRY004 - a part of a state
    if given.keys() != set(keys):
        raise ValueError(
            f"`{path}` must have the keys {sorted(keys)}, got {sorted(map(str, given))}"
        )


def check_list(path: str, given: Any, length: int) -> None:
    """Checks that a part of a state is a list of this length.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(given, list) or len(given) != length:
        got = f"a list of {len(given)}" if isinstance(given, list) else shown(given)
        raise ValueError(f"`{path}` must be a list of {length}, got {got}")


def check_wrappers(entries: Any, names: list[str]) -> None:
    """Checks that the wrappers of a state are those of these names, from the innermost on.

    Raises:
        ValueError: They are others, or in another order.
    """
    path = "state['wrappers']"
    check_list(path, entries, len(entries) if isinstance(entries, list) else len(names))
    for at, entry in enumerate(entries):
        check_keys(f"{path}[{at}]", entry, {"class", "state", "rows"})
    if (saved := [entry["class"] for entry in entries]) != names:
        pairs = itertools.zip_longest(saved, names, fillvalue="no wrapper")
        there, here = next(pair for pair in pairs if pair[0] != pair[1])
        raise ValueError(
            f"the state has the wrappers {saved}, from the innermost on; it cannot be loaded with "
            f"the wrappers {names}. The first difference: {there} in the state, {here} here"
        )


def check_array(path: str, given: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Checks that a part of a state is an array of this shape and dtype.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(given, np.ndarray) or given.shape != shape or given.dtype != dtype:
        got = f"{given.dtype} {given.shape}" if isinstance(given, np.ndarray) else shown(given)
        raise ValueError(f"`{path}` must be an array {np.dtype(dtype)} {shape}, got {got}")


def check_equal(name: str, saved: Any, present: Any) -> None:
    """Checks that a property of the saved object is that of the present one.

    Raises:
        ValueError: They differ.
    """
    if saved != present:
        raise ValueError(
            f"the state was saved with {name}={shown(saved)}; it cannot be loaded with "
            f"{name}={shown(present)}"
        )


#: Seed and options of a row's next automatic reset.
NextReset = tuple[int | None, dict[str, Any] | None]


def as_entries(next_resets: dict[int, NextReset], pickled: Any) -> list[dict[str, Any]]:
    """Returns what ``next_reset`` gave rows as a part of a state; ``pickled`` pickles options."""
    return [
        {"env_index": row, "seed": seed, "options": None if options is None else pickled(options)}
        for row, (seed, options) in sorted(next_resets.items())
    ]


def from_entries(entries: Any, num_envs: int, path: str) -> dict[int, NextReset]:
    """Returns what :func:`as_entries` saved; ``path`` names it in errors.

    Raises:
        ValueError: Entries have another form.
        Exception: Options cannot be unpickled.
    """
    check_list(path, entries, len(entries) if isinstance(entries, list) else 0)
    found: dict[int, NextReset] = {}
    for at, entry in enumerate(entries):
        check_keys(f"{path}[{at}]", entry, {"env_index", "seed", "options"})
        row, seed, options = entry["env_index"], entry["seed"], entry["options"]
        if (
            not isinstance(row, int)
            or not 0 <= row < num_envs
            or not isinstance(seed, int | None)
            or not isinstance(options, bytes | None)
        ):
            raise ValueError(f"`{path}[{at}]` must be a row, a seed and bytes, got {shown(entry)}")
        found[row] = seed, None if options is None else pickle.loads(options)
    return found
