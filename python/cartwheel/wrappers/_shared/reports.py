"""Reports of episodes in infos: their keys, and rows without an episode.

A wrapper that reports has the attribute ``_stats_key``; one that reports in every step also has
``_reports_every_step`` and ``_blank_report``.
"""

from __future__ import annotations

from typing import Any

from gymnasium.wrappers.vector import DictInfoToList

from cartwheel.workers.envs.attributes import own_attribute
from cartwheel.wrappers.batch import chain


def check_stats_key(envs: Any, key: Any) -> None:
    """Checks, without a step, that infos can have the key.

    Raises:
        TypeError: The key is not a string, or a wrapper inside makes infos that are not a
            dictionary.
        ValueError: A wrapper inside uses the key.
    """
    if not isinstance(key, str):
        raise TypeError(f"`stats_key` must be a string, got {key!r}")
    for inner in chain(envs):
        if isinstance(inner, DictInfoToList):
            raise TypeError(
                "episodes are counted from infos that are a dict of arrays, but "
                f"{type(inner).__name__} inside makes them a list: put it around this wrapper"
            )
        if own_attribute(inner, "_stats_key") == key:
            raise ValueError(
                f"`stats_key`={key!r} is used by {type(inner).__name__} inside: give one of the "
                "two another key"
            )


def blank_reports(envs: Any, size: int) -> dict[str, Any]:
    """Returns the infos of wrappers inside that report in every step, of rows that only reset.

    Args:
        envs: A vector environment.
        size: The number of these rows.
    """
    blank: dict[str, Any] = {}
    for inner in reversed([*chain(envs)]):
        if getattr(inner, "_reports_every_step", False):
            blank |= inner._blank_report(size)
    return blank


def reported_keys(envs: Any, *, in_every_step: bool = False) -> frozenset[str]:
    """Returns the keys of infos under which wrappers inside report episodes, and their masks.

    Args:
        envs: A vector environment.
        in_every_step: Only keys that have a value of every row in every step; the mask says where
            an episode ended.
    """
    keys = [
        key
        for inner in chain(envs)
        if (key := own_attribute(inner, "_stats_key")) is not None
        if not in_every_step or getattr(inner, "_reports_every_step", False)
    ]
    return frozenset([*keys, *(f"_{key}" for key in keys)])


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
