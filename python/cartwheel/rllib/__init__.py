"""RLlib: vector environments for its environment runners, of one agent and of several.

``pip install 'cartwheel[rllib]'``. RLlib fixes the version of Gymnasium.
"""

from cartwheel._internal.versions import load

load("ray", "rllib", "cartwheel.rllib", "2.60")
load("ray.rllib", "rllib", "cartwheel.rllib")

# ruff: noqa: E402 - they import what was loaded
from cartwheel.rllib.multi_agent_env_runner import AsyncMultiAgentEnvRunner
from cartwheel.rllib.registration import register
from cartwheel.rllib.vector_multi_agent_env import AsyncVectorMultiAgentEnv

__all__ = ["AsyncMultiAgentEnvRunner", "AsyncVectorMultiAgentEnv", "register"]
