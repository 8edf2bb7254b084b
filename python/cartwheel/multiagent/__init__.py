"""Vector environments whose environments have several agents, as those of PettingZoo."""

from cartwheel.multiagent.vector_env import ParallelVectorEnv

__all__ = ["ParallelVectorEnv"]
