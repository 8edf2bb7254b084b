"""Rollouts of a policy in vector environments, right in every autoreset mode.

:class:`Collector` runs the policy and gives a :class:`Rollout` at a time. A rollout knows which of
its rows are transitions and what followed on each, so whatever is made of it is the same code in
every mode::

    collector = cartwheel.Collector(envs, policy, num_steps=128, seed=1)
    rollout = collector.collect()
    rollout.set_values(value_function(rollout.value_inputs()))
    rollout.extras["advantages"], rollout.extras["returns"] = rollout.gae(gamma=0.99, lam=0.95)
    for batch in rollout.minibatches(256, seed=2):
        learn(batch.observations, batch.actions, batch["advantages"], batch["returns"])
"""

from cartwheel.rollouts.carry import Carry
from cartwheel.rollouts.collector import Collector
from cartwheel.rollouts.episodes import Episode, Episodes
from cartwheel.rollouts.rollout import Rollout
from cartwheel.rollouts.rows import Rows
from cartwheel.rollouts.transitions import Transitions
from cartwheel.rollouts.windows import Windows

__all__ = [
    "Carry",
    "Collector",
    "Episode",
    "Episodes",
    "Rollout",
    "Rows",
    "Transitions",
    "Windows",
]
