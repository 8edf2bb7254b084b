"""The key of infos under which a wrapper shows statistics of episodes."""

from __future__ import annotations

from typing import Any

from gymnasium.wrappers.vector import DictInfoToList


def check_stats_key(envs: Any, key: Any) -> None:
    """Checks, without a step, that infos can have the key.

    Raises:
        TypeError: The key is no string, or a wrapper inside makes infos that are no dictionary.
        ValueError: A wrapper inside uses the key.
    """
    if not isinstance(key, str):
        raise TypeError(f"`stats_key` must be a string, got {key!r}")
    inner = envs
    while inner is not None:
        if isinstance(inner, DictInfoToList):
            raise TypeError(
                "episodes are counted from infos that are a dict of arrays, but "
                f"{type(inner).__name__} inside makes them a list: put it around this wrapper"
            )
        if vars(inner).get("_stats_key") == key:
            raise ValueError(
                f"`stats_key`={key!r} is used by {type(inner).__name__} inside: give one of the "
                "two another key"
            )
        inner = vars(inner).get("env")


def refuse_taken(infos: dict[str, Any], key: str, mask_key: str) -> None:
    """Checks that infos do not have the key, nor that of its mask.

    Raises:
        ValueError: They have it.
    """
    if key in infos or mask_key in infos:
        raise ValueError(
            f"the infos have the key {key!r} already, with the keys {list(infos)}: give this "
            "wrapper another `stats_key`"
        )
