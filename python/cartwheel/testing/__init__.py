"""A test kit for authors of environments: one call checks an environment.

Example:
    >>> import gymnasium as gym, cartwheel
    >>> envs = cartwheel.VectorEnv([lambda: gym.make("FrozenLake-v1")] * 3, executor="inline")
    >>> report = cartwheel.testing.check_vector_env(envs, skip=["executors"])
    >>> print(report)
    FrozenLake-v1: 11 checks passed, 5 skipped
      ...
    >>> envs.close()

In a test of your own environment, this call is the whole test. ``check_vector_env`` documents the
checks; each failure is an :class:`EnvCheckError`.
"""

from typing import TYPE_CHECKING

# Packages before files of them: threads that import both at once would wait for each other.
if not TYPE_CHECKING:  # type checkers would see a circle
    import cartwheel.multiagent  # noqa: F401 - for the order

from cartwheel.testing.check import CHECKS, check_vector_env
from cartwheel.testing.report import EnvCheckError, EnvCheckReport

__all__ = ["CHECKS", "EnvCheckError", "EnvCheckReport", "check_vector_env"]
