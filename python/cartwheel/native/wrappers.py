"""The vector wrappers of Gymnasium that replace wrappers of single environments.

Native environments of a vector environment are no objects of Python, so they cannot be wrapped one
by one. A vector wrapper wraps all of them together.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from gymnasium.envs.registration import WrapperSpec
from gymnasium.wrappers import vector

if TYPE_CHECKING:
    from collections.abc import Iterable


def instead_of(
    wrappers: Iterable[Any], one_by_one: str = 'vectorization_mode="sync" or "async"'
) -> str:
    """Returns what to do instead of wrapping native environments one by one, for an error.

    Args:
        wrappers: Classes, ``functools.partial`` of them, functions, or Gymnasium's specs of
            wrappers. For Gymnasium's own wrappers, the result names the vector wrapper of the same
            name, if there is one.
        one_by_one: The keyword with which environments are stepped one by one.
    """
    calls, others = [], []
    for wrapper in wrappers:
        module, name, arguments = _named(wrapper)
        if module.startswith("gymnasium.wrappers.") and name in vector.__all__:
            calls.append(f"gymnasium.wrappers.vector.{name}({arguments})")
        else:
            others.append(name)
    ways = []
    if calls:
        ways.append(f"Wrap all of them together: {', then '.join(calls)}.")
    if others:
        ways.append(f"For {', '.join(others)}, use {one_by_one}, which steps single environments.")
    return " ".join(ways)


def _named(wrapper: Any) -> tuple[str, str, str]:
    """Returns the module and the name of a wrapper, and the arguments of its vector wrapper."""
    if isinstance(wrapper, WrapperSpec):
        return wrapper.entry_point, wrapper.name, "envs, …" if wrapper.kwargs else "envs"
    if isinstance(wrapper, functools.partial):
        module, name, _ = _named(wrapper.func)
        return module, name, "envs, …"
    return getattr(wrapper, "__module__", ""), getattr(wrapper, "__name__", repr(wrapper)), "envs"
