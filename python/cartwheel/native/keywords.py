"""Keywords of native vector environments, and the keywords in their specs."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from cartwheel._cartwheel import NativeEnvs, env_keywords
from cartwheel.native.options import as_json
from cartwheel.native.registration import NATIVE_ENTRY_POINT
from cartwheel.native.simulated import Simulated, is_simulated, keywords_of_simulated
from cartwheel.native.wrappers import instead_of
from cartwheel.near_misses import listed, near_miss, place_of, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gymnasium.envs.registration import EnvSpec

#: The most rows that an error names.
_NAMED = 17
#: Keywords of :class:`~cartwheel.VectorEnv` that change nothing for native environments.
_IDLE = ("shared_memory", "copy", "context", "daemon")
#: Keywords of :class:`~cartwheel.VectorEnv` that can have only one value here, and the reason.
_FIXED = {
    "worker": (None, "the loop of their workers cannot be replaced"),
    "observation_mode": ("same", "their observation spaces are always equal"),
    "on_worker_death": ("raise", "their workers are threads, which only die with the process"),
    "on_timeout": ("raise", "their workers are threads, which cannot be killed"),
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
    return {name: value for name, value in keywords.items() if name not in (*_IDLE, *_FIXED)}


def names_of_keywords(env_id: str) -> list[str] | None:
    """Returns the names of an environment's keywords; ``None`` for a plugin that lists none.

    Args:
        env_id: The environment, without ``cartwheel/``.

    Raises:
        ImportError: It needs MuJoCo, which is not installed or too old.
    """
    return list(keywords_of_simulated(env_id)) if is_simulated(env_id) else env_keywords(env_id)


def check_keywords(
    env_id: str,
    keywords: dict[str, Any],
    owner: str,
    others: Collection[str],
    attribute: str,
) -> None:
    """Refuses keywords that a native environment does not have.

    A plugin that does not list its keywords gets them all, and refuses what it does not have.

    Args:
        env_id: The environment, without ``cartwheel/``.
        keywords: The keywords and their values.
        owner: The class that the caller makes, for the error.
        others: The keywords that this class has itself.
        attribute: How an attribute is set, with the places ``{name}`` and ``{value}``.

    Raises:
        ImportError: The environment needs MuJoCo, which is not installed or too old.
        TypeError: The error says what was meant, or which keywords exist.
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
    simulated = Simulated(env_id, {}) if is_simulated(env_id) else None
    options = "" if simulated is None else as_json(simulated.options)
    envs = NativeEnvs(env_id, options, [(0, 1)], autoreset_mode="NextStep", freeze=False)
    attributes = envs.parameters()
    start = f"`{name}` is not a keyword of {env_id}"
    place = place_of(name, value)
    if place is not None:
        return f"{start}: {place}."
    if name in attributes:
        how = attribute.format(name=name, value=shown(value))
        return f"`{name}` of {env_id} is an attribute, not a keyword: `{how}`."
    given = () if owner == "NativeEnv" else ("num_envs",)
    meant = near_miss(name, (*own, *others, *given))
    if meant is not None:
        return f"{start}: did you mean `{meant}`?"
    meant = near_miss(name, attributes)
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
    rows = [row for row, _ in refused]
    others = f"; rows {rows[1:_NAMED]} were refused, too" if len(rows) > 1 else ""
    more = f", and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return ValueError(f"`{name}` of row {rows[0]} {reason}{others}{more}.")


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
            f"one. {instead_of(spec.additional_wrappers)}"
        )
    keywords = copy.deepcopy(spec.kwargs)
    return keywords.pop("env_id"), keywords
