"""Differences between the supported versions of Gymnasium, and libraries of extras.

``docs/gymnasium-versions.md`` has the table. No other module asks for Gymnasium's version.
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any

import gymnasium as gym

#: The oldest version that the tests run with, see ``make matrix``.
OLDEST = "1.2.2"
#: Ids before 1.3 of environments that draw frames, by present id; they differ only in the rain.
_BEFORE = {"Taxi-v4": "Taxi-v3"}


def check_version(installed: str) -> None:
    """Refuses a version of Gymnasium that is too old.

    Args:
        installed: The version, such as ``"1.4.0"``.

    Raises:
        ImportError: The version is older than :data:`OLDEST`.
    """
    if numbers(installed) < numbers(OLDEST):
        raise ImportError(
            f"cartwheel needs Gymnasium {OLDEST} or newer, but {installed} is installed: "
            f"pip install 'gymnasium>={OLDEST}'"
        )


def numbers(version: str) -> tuple[int, ...]:
    """Returns the numbers of a version; a suffix, as in ``1.4.0a1``, does not count."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


check_version(gym.__version__)  # before other modules import names that came later

from gymnasium.spaces import Dict  # noqa: E402 - after the check
from gymnasium.vector import VectorWrapper, utils  # noqa: E402 - after the check

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec
    from gymnasium.spaces import Space

    AnyVectorWrapper = VectorWrapper[Any, Any, Any, Any, Any]
else:
    #: Gymnasium's ``VectorWrapper`` of any types; before 1.4 it has no type parameters.
    AnyVectorWrapper = VectorWrapper


_SHARES_METADATA = numbers(gym.__version__) < (1, 4)


def keep_open(envs: Any) -> None:
    """Does nothing: the ``__del__`` of vector environments and wrappers.

    That of Gymnasium 1.2 calls ``close``, even for objects whose construction failed, and for
    wrappers whose environments are still in use without them. A pool ends when the last reference
    to it is gone.
    """


def autoreset_mode_of(envs: Any) -> Any:
    """Returns the autoreset mode that a vector environment has, or ``None`` if it has none.

    It is in ``metadata``. But before 1.4, ``SyncVectorEnv`` and ``AsyncVectorEnv`` write it to the
    metadata of the environments' class, where the next vector environment overwrites it.
    """
    metadata, bare = envs.metadata or {}, getattr(envs, "unwrapped", envs)
    if _SHARES_METADATA and metadata is bare.metadata:
        return getattr(bare, "autoreset_mode", metadata.get("autoreset_mode"))
    return metadata.get("autoreset_mode")


def batch_differing_spaces(spaces: list[Space[Any]]) -> Space[Any]:
    """Batches spaces of one shape and dtype, see ``gymnasium.vector.utils.batch_differing_spaces``.

    Raises:
        ValueError, TypeError: The spaces cannot be batched; before 1.4, Gymnasium asserts it.
    """
    try:
        return utils.batch_differing_spaces(spaces)
    except AssertionError as error:
        raise ValueError(
            str(error) or f"Expected spaces of equal structure, got {spaces}"
        ) from None


def dict_like(space: Dict, parts: dict[str, Space[Any]]) -> Dict:
    """Returns a space of ``parts`` that orders its keys as ``space`` does, sorted before 1.4."""
    return Dict(parts, sort_keys=space.sort_keys) if hasattr(space, "sort_keys") else Dict(parts)


def rendering_spec(env_id: str) -> EnvSpec | None:
    """Returns the spec of the environment that draws ``env_id``, or ``None`` if there is none."""
    return gym.registry.get(env_id) or gym.registry.get(_BEFORE.get(env_id, ""))


def load(library: str, extra: str, user: str, oldest: str | None = None) -> Any:
    """Imports a library of an extra.

    Args:
        library: The module to import.
        extra: The extra that installs it.
        user: The module or environment that needs it, for the error.
        oldest: The oldest version that works, if an older one would fail only later.

    Raises:
        ImportError: The library, or something that it imports, is not installed, or it is too old.
    """
    if oldest is not None:
        _check_version(library, extra, user, oldest)
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise ImportError(
            f"{user} needs {library}: pip install 'cartwheel[{extra}]' ({error})",
            name=error.name,
            path=error.path,
        ) from error


#: Libraries that are new enough, and since which version. To read a version takes milliseconds.
_NEW_ENOUGH: set[tuple[str, str]] = set()


def _check_version(library: str, extra: str, user: str, oldest: str) -> None:
    """Raises ``ImportError`` if a library is too old; it need not be imported."""
    if (library, oldest) in _NEW_ENOUGH:
        return
    metadata: Any = importlib.import_module("importlib.metadata")  # slow to import
    try:
        found = metadata.version(library)
    except metadata.PackageNotFoundError:
        return  # not installed, or without metadata: the import shows which
    if numbers(found) < numbers(oldest):
        raise ImportError(
            f"{user} needs {library} {oldest} or newer, but {found} is installed: "
            f"pip install -U 'cartwheel[{extra}]'",
            name=library,
        )
    _NEW_ENOUGH.add((library, oldest))
