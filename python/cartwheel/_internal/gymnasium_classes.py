"""Gymnasium's own vector environments, also while ``patch_gymnasium`` replaces them.

``_make`` imports this module, so that it has them before anything can be patched.
"""

from gymnasium.vector.async_vector_env import AsyncState, AsyncVectorEnv
from gymnasium.vector.sync_vector_env import SyncVectorEnv

__all__ = ["AsyncState", "AsyncVectorEnv", "SyncVectorEnv"]
