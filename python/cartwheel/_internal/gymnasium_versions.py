"""What differs between the versions of Gymnasium that cartwheel works beside.

``docs/gymnasium-versions.md`` has the table. Everything else asks Gymnasium itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import gymnasium as gym

#: The oldest version that the tests run beside, see ``make matrix``.
OLDEST = "1.2.2"
#: What draws an environment before 1.3, by its present id; the two differ only in the rain.
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
    """Returns the numbers of a version; what follows them, as in ``1.4.0a1``, does not count."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


check_version(gym.__version__)  # before other modules import names that came later

from gymnasium.spaces import Dict  # noqa: E402
from gymnasium.vector import VectorWrapper, utils  # noqa: E402

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec
    from gymnasium.spaces import Space

    AnyVectorWrapper = VectorWrapper[Any, Any, Any, Any, Any]
else:
    #: Gymnasium's ``VectorWrapper`` of any types; before 1.4 it has no type parameters.
    AnyVectorWrapper = VectorWrapper


_SHARES_METADATA = numbers(gym.__version__) < (1, 4)


def keep_open(envs: Any) -> None:
    """The ``__del__`` of vector environments and wrappers: does nothing.

    Gymnasium 1.2 has one that calls ``close``: also of objects that were never made, because their
    arguments were refused, and of wrappers, whose environments may be in use without them. A pool
    ends by itself when nothing refers to it.
    """


def autoreset_mode_of(envs: Any) -> Any:
    """Returns the autoreset mode that a vector environment has, or ``None`` if it names none.

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


def spec_that_draws(env_id: str) -> EnvSpec | None:
    """Returns the spec of the environment that draws ``env_id``, or ``None`` if there is none."""
    return gym.registry.get(env_id) or gym.registry.get(_BEFORE.get(env_id, ""))
