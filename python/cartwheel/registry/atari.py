"""Which vector environments ale-py makes: those of ``make_vec("ALE/…", executor="ale")``."""

from __future__ import annotations

import copy
import importlib
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from cartwheel.native.wrappers import instead_of

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The vector entry point of specs that :class:`~cartwheel.ale.AleVectorEnv` makes; a string, so
#: that they survive JSON.
ENTRY_POINT = "cartwheel.ale.vector_env:AleVectorEnv"
#: The vector entry point with which ale-py registers its ids.
_OF_ALE = "ale_py.vector_env:AtariVectorEnv"


def is_chosen(id_or_spec: Any, keywords: dict[str, Any]) -> bool:
    """Whether ale-py makes the vector environment; if so, its ids are registered afterwards.

    Args:
        id_or_spec: An id, or a spec, such as that of an earlier vector environment.
        keywords: All keywords.

    Raises:
        ImportError: ale-py is not installed.
    """
    executor = keywords.get("executor")
    is_stored = isinstance(id_or_spec, EnvSpec) and id_or_spec.vector_entry_point == ENTRY_POINT
    if executor == "ale" or (executor is None and is_stored):
        importlib.import_module("cartwheel.ale")
        return True
    return False


def as_spec(spec: EnvSpec, wrappers: Iterable[Any], *, one_by_one: bool) -> EnvSpec:
    """Returns the spec with the vector entry point of :class:`~cartwheel.ale.AleVectorEnv`.

    Args:
        spec: The registered spec, or the spec of an earlier vector environment.
        wrappers: Functions for single environments, which there are none of.
        one_by_one: Whether single environments were asked for by ``vectorization_mode``.

    Raises:
        ValueError: ale-py has no vector environment of this id, or single environments were asked
            for.
        gymnasium.error.Error: There are wrappers.
    """
    if spec.vector_entry_point not in (_OF_ALE, ENTRY_POINT):
        raise ValueError(
            f"executor='ale' is for ids such as 'ALE/Pong-v5', of which ale-py has a vector "
            f"environment; got {spec.id!r}."
        )
    if one_by_one:
        raise ValueError(
            "executor='ale' steps no single environments: leave out `vectorization_mode`, or use "
            "executor='process'."
        )
    all_wrappers = [*spec.additional_wrappers, *wrappers]
    if all_wrappers:
        raise gym.error.Error(
            "executor='ale' has no single environments to wrap. "
            + instead_of(all_wrappers, "executor='process'")
        )
    spec = copy.deepcopy(spec)
    spec.vector_entry_point = ENTRY_POINT
    return spec
