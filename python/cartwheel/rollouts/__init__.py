"""Rollouts of a policy in vector environments, correct in every autoreset mode.

:class:`Collector` runs the policy and returns one :class:`Rollout` after another. A rollout knows
which of its rows are transitions, and the true next observation of each. So code that uses a
rollout is the same in every mode.

Example:
    >>> import numpy as np, cartwheel
    >>> envs = cartwheel.NativeVectorEnv("CartPole-v1", 8)
    >>> policy = lambda observations: (observations[:, 2] > 0).astype(int)
    >>> value_function = lambda observations: np.ones(len(observations))
    >>> collector = cartwheel.Collector(envs, policy, num_steps=16, seed=1)
    >>> rollout = collector.collect()
    >>> rollout.set_values(value_function(rollout.value_inputs()))
    >>> advantages, targets = rollout.gae(gamma=0.99, gae_lambda=0.95)
    >>> rollout.extras["advantages"], rollout.extras["returns"] = advantages, targets
    >>> batch = next(rollout.minibatches(64, seed=2))
    >>> batch.observations.shape, batch.actions.shape, batch["advantages"].shape
    ((64, 4), (64,), (64,))
    >>> envs.close()
"""

from typing import TYPE_CHECKING

# Packages before files of them: threads that import both at once would wait for each other.
if not TYPE_CHECKING:  # type checkers would see a circle
    import cartwheel.multiagent
    import cartwheel.returns
    import cartwheel.wrappers  # noqa: F401 - for the order

from cartwheel.rollouts.buffers import Carry
from cartwheel.rollouts.collecting.session import CollectorStats
from cartwheel.rollouts.collector import Collector
from cartwheel.rollouts.rollout import Rollout
from cartwheel.rollouts.views import Episode, Episodes, Rows, Transitions, Windows

__all__ = [
    "Carry",
    "Collector",
    "CollectorStats",
    "Episode",
    "Episodes",
    "Rollout",
    "Rows",
    "Transitions",
    "Windows",
]
