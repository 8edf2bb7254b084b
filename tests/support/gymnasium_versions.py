"""Differences of the installed Gymnasium from the newest one, for tests that compare with it.

Everything here is false, or has no effect, with the newest version.
"""

from importlib.metadata import version

import gymnasium as gym
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import DtypeObservation

INSTALLED = tuple(map(int, version("gymnasium").split(".")[:2]))
#: Wrong arguments are assertions, without a class of their own and sometimes without a text.
ASSERTS = INSTALLED < (1, 4)
#: ``RecordEpisodeStatistics`` leaves out the first step after an autoreset in ``SAME_STEP``.
MISCOUNTS_SAME_STEP = INSTALLED < (1, 4)
#: ``SyncVectorEnv`` and ``AsyncVectorEnv`` write their autoreset mode to the class of environments.
WRITES_TO_METADATA = INSTALLED < (1, 4)
#: A vector environment or a wrapper that is dropped is closed.
CLOSES_WHAT_IS_DROPPED = hasattr(gym.vector.VectorEnv, "__del__")


def error_of_today(error):
    """The types and the text that the newest version has for an error of an older one."""
    if not ASSERTS or not isinstance(error, AssertionError):
        return type(error), str(error)
    return (TypeError, ValueError), str(error).replace(
        "'reset_mask': mask]", "'reset_mask']"
    ).replace("a boolean array, got", "a boolean array with at least one True value, got")


def metadata_of_class(env):
    """The metadata of an environment without what Gymnasium's vector environments wrote there."""
    metadata = dict(env.metadata)
    if WRITES_TO_METADATA:
        metadata.pop("autoreset_mode", None)
    return metadata


def space_of_today(wrapped):
    """The observation space of a wrapper of Gymnasium for single environments.

    Before 1.4, ``DtypeObservation`` makes one value too many of a ``Discrete``.
    """
    space, inside = wrapped.observation_space, wrapped.env.observation_space
    counts_one_more = INSTALLED < (1, 4) and isinstance(wrapped, DtypeObservation)
    if counts_one_more and isinstance(inside, Discrete):
        return Box(space.low, space.high - 1, dtype=space.dtype)
    return space
