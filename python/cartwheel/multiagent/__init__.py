"""Vector environments whose environments have several agents, as those of PettingZoo."""

from cartwheel.multiagent.agent_rows import AgentRows
from cartwheel.multiagent.groups import Groups
from cartwheel.multiagent.vector_env import ParallelVectorEnv

__all__ = ["AgentRows", "Groups", "ParallelVectorEnv"]
