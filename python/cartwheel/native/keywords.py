"""Keywords and options of native environments: checks, specs, and the JSON for Rust."""

from __future__ import annotations

import copy
import json
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from cartwheel._cartwheel import (
    NativeEnvs,
    described_options,
    env_keywords,
    native_envs,
    reset_option_names,
)
from cartwheel._internal.literals import States
from cartwheel._internal.reset_arguments import ROW_OPTIONS
from cartwheel._internal.suggestions import listed, reset_advice, shown, suggest, wrapper_advice
from cartwheel.errors import named_rows
from cartwheel.native.mujoco.env import KEYWORD_TEXTS, MujocoBackend, is_mujoco, mujoco_keywords
from cartwheel.native.registration import NATIVE_ENTRY_POINT, registered_id

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gymnasium.envs.registration import EnvSpec

#: Keywords of :class:`~cartwheel.VectorEnv` without an effect on native environments.
_IGNORED = ("shared_memory", "copy", "context", "daemon")
#: Keywords of :class:`~cartwheel.VectorEnv` with only one possible value, and the reason.
_FIXED = {
    "worker": (None, "the loop of their workers cannot be replaced"),
    "observation_mode": ("same", "their observation spaces are always equal"),
    "on_worker_death": ("raise", "their workers are threads, which only die with the process"),
    "on_timeout": ("raise", "their workers are threads, which cannot be killed"),
    "max_episodes_per_worker": (None, "their workers are threads, which are not replaced"),
    "max_worker_memory": (None, "their workers are threads, which are not replaced"),
}


def environment_keywords(keywords: dict[str, Any]) -> dict[str, Any]:
    """Returns the keywords of the environment, without keywords of all vector environments.

    Raises:
        ValueError: A keyword of vector environments has a value that is not possible here.
    """
    for name, (only, why) in _FIXED.items():
        if name in keywords and keywords[name] != only:
            raise ValueError(
                f"`{name}` of native environments must be {only!r}, got {keywords[name]!r}: {why}."
            )
    taken, states = {*_IGNORED, *_FIXED}, keywords.get("states")
    # Native environments can always be saved. A plugin's may have this keyword, for a number.
    if isinstance(states, str) and states in get_args(States):
        taken.add("states")
    return {name: value for name, value in keywords.items() if name not in taken}


def names_of_keywords(env_id: str) -> list[str] | None:
    """Returns the names of an environment's keywords; ``None`` for a plugin that lists none.

    Args:
        env_id: The environment, without ``cartwheel/``.

    Raises:
        ImportError: It needs MuJoCo, which is not installed or too old.
    """
    return list(mujoco_keywords(env_id)) if is_mujoco(env_id) else env_keywords(env_id)


#: The default of an option where its plugin does not report it.
UNKNOWN = object()


class Described(NamedTuple):
    """A keyword of an environment, or an option of its ``reset``.

    Attributes:
        name: Its name, as in Gymnasium.
        default: The value if it is not passed; :data:`UNKNOWN` if its plugin does not report it.
        text: Its effect, with units; empty if its plugin does not report it.
    """

    name: str
    default: Any
    text: str


def describe_keywords(env_id: str) -> list[Described]:
    """Returns the keywords of a native environment, with the defaults of its id.

    Args:
        env_id: The environment, without ``cartwheel/``.

    Raises:
        ImportError: It needs MuJoCo, which is not installed or too old.
    """
    described = _described(env_id, of_reset=False)
    if is_mujoco(env_id):
        texts = {**KEYWORD_TEXTS, **{name: text for name, _, text in described}}
        return [
            Described(name, default, texts.get(name, ""))
            for name, default in mujoco_keywords(env_id).items()
        ]
    implied = json.loads(next(keywords for name, *_, keywords in native_envs() if name == env_id))
    return [
        one._replace(default=implied[one.name]) if one.name in implied else one for one in described
    ]


def describe_reset_options(env_id: str) -> list[Described]:
    """Returns the options of a native environment's ``reset``, without those that select rows."""
    return _described(env_id, of_reset=True)


def _described(env_id: str, *, of_reset: bool) -> list[Described]:
    return [
        Described(name, UNKNOWN if default is None else json.loads(default), text)
        for name, default, text in described_options(env_id, of_reset) or ()
    ]


def check_keywords(
    env_id: str, keywords: dict[str, Any], owner: str, others: Collection[str], attribute: str
) -> None:
    """Refuses keywords that a native environment does not have.

    A plugin that does not list its keywords gets all of them, and refuses unknown ones itself.

    Args:
        env_id: The environment, without ``cartwheel/``.
        keywords: The keywords and their values.
        owner: The class that is constructed, for the error.
        others: The keywords of this class itself.
        attribute: The code that sets an attribute, with ``{name}`` and ``{value}``.

    Raises:
        ImportError: The environment needs MuJoCo, which is not installed or too old.
        TypeError: A keyword does not exist; the error has a suggestion, or names those that exist.
    """
    own = names_of_keywords(env_id)
    for name, value in keywords.items():
        if own is not None and name not in own:
            raise TypeError(_no_such_keyword(env_id, name, value, own, owner, others, attribute))


def _no_such_keyword(
    env_id: str,
    name: str,
    value: Any,
    own: list[str],
    owner: str,
    others: Collection[str],
    attribute: str,
) -> str:
    mujoco = MujocoBackend(env_id, {}) if is_mujoco(env_id) else None
    options = "" if mujoco is None else as_json(mujoco.options)
    try:
        envs = NativeEnvs(env_id, options, [(0, 1)], autoreset_mode="NextStep", freeze=False)
        attributes = envs.parameters()
    except ValueError:  # it cannot be made without the keyword that is meant
        attributes = []
    start = f"`{name}` is not a keyword of {env_id}"
    place = reset_advice(name, value)
    if place is not None:
        return f"{start}: {place}."
    if name in attributes:
        how = attribute.format(name=name, value=shown(value))
        return f"`{name}` of {env_id} is an attribute, not a keyword: `{how}`."
    given = () if owner == "NativeEnv" else ("num_envs",)
    meant = suggest(name, (*own, *others, *given))
    if meant is not None:
        return f"{start}: did you mean `{meant}`?"
    meant = suggest(name, attributes)
    if meant is not None:
        how = attribute.format(name=meant, value=shown(value))
        return f"{start}: did you mean the attribute `{meant}`? Set it by `{how}`."
    return f"{start}, which has {listed(own)}, nor of {owner}, which has {listed(sorted(others))}."


def refused_values(name: str, refused: Sequence[tuple[int, str]], *, one_value: bool) -> ValueError:
    """Returns the error for values that a parameter cannot have.

    Args:
        name: The parameter.
        refused: The rows, with the reason for the value of each shard's first row.
        one_value: Whether all rows were given the same value.
    """
    reason = refused[0][1]
    if one_value:
        return ValueError(f"`{name}` {reason}.")
    first, *others = (row for row, _ in refused)
    too = f"; {named_rows(others)} were refused, too" if others else ""
    return ValueError(f"`{name}` of row {first} {reason}{too}.")


def read_spec(spec: EnvSpec) -> tuple[str, dict[str, Any]]:
    """Returns the native id in a registered spec, and its other keywords.

    Raises:
        TypeError: The spec is not the spec of a native environment without wrappers.
    """
    if spec.vector_entry_point != NATIVE_ENTRY_POINT:
        raise TypeError(f"{spec.id} is not native: use cartwheel.make_vec(spec, num_envs)")
    if "vectorization_mode" in spec.kwargs:
        raise TypeError(
            "this is the spec of a vector environment, which cartwheel.make_vec(spec) rebuilds"
        )
    if spec.additional_wrappers:
        names = ", ".join(wrapper.name for wrapper in spec.additional_wrappers)
        raise TypeError(
            f"{spec.id} is wrapped by {names}, but native environments cannot be wrapped one by "
            f"one. {wrapper_advice(spec.additional_wrappers)}"
        )
    keywords = copy.deepcopy(spec.kwargs)
    return keywords.pop("env_id"), keywords


def as_json(options: Mapping[str, Any]) -> str:
    """Returns keywords of an environment as a JSON object.

    Raises:
        ValueError: JSON has no form for a value.
    """
    parts = (f"{json.dumps(name)}: {_value_as_json(name, options[name])}" for name in options)
    return f"{{{', '.join(parts)}}}"


#: Names of options that select rows in other libraries, and cartwheel's names.
_ROW_SYNONYMS = {
    "mask": "reset_mask",
    "env_mask": "reset_mask",
    **dict.fromkeys(
        ("env_id", "env_ids", "env_indices", "index", "indices", "idx", "ids", "row", "rows"),
        "env_index",
    ),
}


def reset_as_json(env_id: str, options: Mapping[str, Any], shown_id: str | None = None) -> str:
    """Returns the environment's own options of a reset as a JSON object.

    Options that only other native environments have are left out, so that environments may share
    one dictionary. A plugin that does not name its options gets all of them, and refuses unknown
    ones itself. ``shown_id`` is the id in errors, if it differs.

    Raises:
        ValueError: No native environment has an option of this name, or a value is not a number.
            (For a plugin: JSON has no form for the value.)
    """
    own = reset_option_names(env_id)
    if own is None:
        return as_json(options)
    if not options.keys() <= set(own):
        others = (reset_option_names(other) or () for other, *_ in native_envs())
        known = set(own).union(*others)
        for name in options:
            if name not in known:
                raise ValueError(_no_such_option(shown_id or env_id, name, own))
    chosen = {name: options[name] for name in own if name in options}
    if registered_id(env_id) == env_id:
        return as_json(chosen)
    return json.dumps({name: _as_number(name, value) for name, value in chosen.items()})


def options_of_reset(env_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options that the environment has, for a reset that ignores the others."""
    own = reset_option_names(env_id)
    return {name: options[name] for name in (options if own is None else own) if name in options}


def _no_such_option(env_id: str, name: Any, own: list[str]) -> str:
    start = f"{env_id} has no option {name!r} of a reset"
    meant = _ROW_SYNONYMS.get(name) or suggest(str(name), (*own, *ROW_OPTIONS, *_ROW_SYNONYMS))
    if meant is not None:
        return f"{start}: did you mean {_ROW_SYNONYMS.get(meant, meant)!r}?"
    has = f"only {' and '.join(map(repr, own))}" if own else "and has none"
    return f"{start}, {has}; 'reset_mask' and 'env_index' select rows."


def _as_number(name: str, value: Any) -> int | float:
    number = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if not isinstance(number, int | float) or isinstance(number, bool) or not isfinite(number):
        raise ValueError(f"`options[{name!r}]` must be a finite number, got {shown(value)}.")
    return number


def _value_as_json(name: str, value: Any) -> str:
    try:
        text = json.dumps(value, default=_plain, allow_nan=False, ensure_ascii=False)
        text.encode()  # UTF-8 has no halves of characters
    except (TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"`{name}` cannot be passed to a native environment: {shown(value)}"
        ) from error
    return text


def _plain(value: Any) -> Any:
    """Converts an array or NumPy scalar to Python types; bytes, NumPy's characters, to ``str``."""
    return value.decode() if isinstance(value, bytes) else value.tolist()
