"""An actor-critic that learns from rollouts of older weights, by V-trace.

``ray_impala.py`` and ``sebulba.py`` use it. V-trace (IMPALA, https://arxiv.org/abs/1802.01561,
section 4) weighs each step with the ratio of the probabilities of its action: under the weights
that learn, and under those that acted. So rollouts may be a few versions old. Each rollout is used
for several epochs with PPO's clipped objective, as in IMPACT (https://arxiv.org/abs/1912.00167).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from examples import ppo

if TYPE_CHECKING:
    from numpy.typing import NDArray

    import cartwheel


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of learning; the same in both examples."""

    num_envs: int = 32  # of all actors together
    num_steps: int = 64  # of a rollout
    total_steps: int = 400_000  # of all environments together; then training stops
    seed: int = 1
    learning_rate: float = 2e-3  # falls linearly to zero over the total steps
    gamma: float = 0.99
    lambda_: float = 0.95
    epochs: int = 4  # over each rollout
    minibatch_size: int = 512
    clip: float = 0.2
    value_coefficient: float = 0.5
    max_grad_norm: float = 0.5


class Agent(ppo.Agent):
    """The networks of ``examples/ppo.py`` on one device, as a policy of ``Collector``."""

    def __init__(self, device: str = "cpu") -> None:
        """Creates the networks."""
        super().__init__()
        self.device = device
        self.actor.to(device)
        self.critic.to(device)

    def __call__(self, observations: NDArray[Any]) -> tuple[Any, dict[str, Any]]:
        """Draws actions (N,), with their log-probabilities."""
        with torch.inference_mode():
            log_probs = self.actor(self.tensor(observations)).log_softmax(-1)  # (N, 2)
            actions = torch.multinomial(log_probs.exp(), 1)
            chosen = log_probs.gather(-1, actions).squeeze(-1)
            return actions.squeeze(-1).cpu(), {"log_prob": chosen.cpu()}

    def set_weights(self, weights: dict[str, Any]) -> None:
        """Takes the weights of a learner's :meth:`weights`."""
        self.actor.load_state_dict(weights)

    def weights(self) -> dict[str, Any]:
        """A copy of what acting needs, on the CPU."""
        return {name: value.cpu().clone() for name, value in self.actor.state_dict().items()}

    def tensor(self, array: NDArray[Any]) -> Any:
        """A copy of an array on the device; the array may be read-only."""
        return torch.tensor(array, device=self.device)


class Learner:
    """Improves an agent by one rollout after the other."""

    def __init__(self, agent: Agent, settings: Settings) -> None:
        """Makes the optimizer."""
        self.agent, self.settings = agent, settings
        self.optimizer = torch.optim.Adam(agent.parameters, eps=1e-5, fused=True)
        self.steps = 0  # learned from so far

    def learn(self, *rollouts: cartwheel.Rollout) -> None:
        """Improves the agent by rollouts; only here are they moved to the device."""
        settings, agent = self.settings, self.agent
        left = max(0.0, 1 - self.steps / settings.total_steps)
        self.optimizer.param_groups[0]["lr"] = settings.learning_rate * left
        rows = [self._rows(rollout) for rollout in rollouts]
        observations, actions, now, targets, advantages = map(torch.cat, zip(*rows, strict=True))
        self.steps += len(now)
        for _ in range(settings.epochs):
            order = torch.randperm(len(now), device=agent.device)
            for batch in order.split(settings.minibatch_size):
                log_probs = _chosen(agent.actor(observations[batch]), actions[batch])
                ratio = (log_probs - now[batch]).exp()
                clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
                scaled = advantages[batch]
                scaled = (scaled - scaled.mean()) / (scaled.std(correction=0) + 1e-8)
                policy_loss = -torch.minimum(ratio * scaled, clipped * scaled).mean()
                errors = agent.critic(observations[batch]).squeeze(-1) - targets[batch]
                loss = policy_loss + settings.value_coefficient * errors.square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(agent.parameters, settings.max_grad_norm)
                self.optimizer.step()

    def _rows(self, rollout: cartwheel.Rollout) -> tuple[Any, ...]:
        """Observations, actions, their log-probabilities, targets and advantages of a rollout."""
        settings, agent = self.settings, self.agent
        observations = agent.tensor(rollout.observations[:-1])  # (T, N, 4)
        actions = agent.tensor(rollout.actions).unsqueeze(-1)
        with torch.inference_mode():
            values = agent.critic(agent.tensor(rollout.value_inputs()))
            now = _chosen(agent.actor(observations), actions)  # (T, N)
        rollout.set_values(values.cpu())
        # What autoreset, terminations and truncations mean for it, `vtrace` of the rollout knows.
        ratios = np.exp(now.cpu().numpy() - rollout.extras["log_prob"])
        targets, advantages = rollout.vtrace(ratios, settings.gamma, settings.lambda_)
        rows = agent.tensor(rollout.valid)
        estimates = (agent.tensor(array).float() for array in (targets, advantages))
        return tuple(array[rows] for array in (observations, actions, now, *estimates))


def _chosen(logits: Any, actions: Any) -> Any:
    """Log-probabilities (…) of actions (…, 1)."""
    return logits.log_softmax(-1).gather(-1, actions).squeeze(-1)
