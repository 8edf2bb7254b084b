"""RLlib: vector environments for its environment runners, of one agent and of several.

Needs the extra ``ray`` and RLlib itself: ``pip install 'cartwheel[ray]' 'ray[rllib]'``. RLlib fixes
the version of Gymnasium.
"""

try:
    import ray.rllib  # noqa: F401 - only to say what is missing
except ImportError as error:
    raise ImportError(
        f"cartwheel.rllib needs RLlib: pip install 'cartwheel[ray]' 'ray[rllib]' ({error})",
        name=error.name,
    ) from error

from cartwheel.rllib.multi_agent_env_runner import AsyncMultiAgentEnvRunner
from cartwheel.rllib.registration import register
from cartwheel.rllib.vector_multi_agent_env import AsyncVectorMultiAgentEnv

__all__ = ["AsyncMultiAgentEnvRunner", "AsyncVectorMultiAgentEnv", "register"]
