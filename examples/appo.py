"""APPO in one file: learns CartPole with a collector that never waits for the learner.

A collector with ``background=True`` collects in a thread of its own while this thread learns. So
each rollout was made by weights that are a few updates older than those that it changes. V-trace
(IMPALA, https://arxiv.org/abs/1802.01561, section 4) corrects for that: it weighs each step with
the ratio of the probabilities of its action, now and when it was chosen. The policy records the
latter as an extra. Each rollout is used for some epochs with PPO's clipped objective, as in IMPACT
(https://arxiv.org/abs/1912.00167).

What acts is a copy of the network that learns. ``collector.update`` overwrites it between two calls
of the policy, and counts: ``rollout.policy_version`` says which version chose each action.

With ``--in-turn`` the same learner collects and learns in turn, so nothing is stale.

Run it with ``python examples/appo.py``. It needs torch. ``examples/learning_curves.py`` draws its
learning curves.
"""

from __future__ import annotations

import argparse
import collections
import copy
import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import cartwheel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cartwheel._internal.literals import ModeName

ENV_ID = "cartwheel/CartPole-v1"
MODES: tuple[ModeName, ...] = ("next_step", "same_step", "disabled")
SOLVED = 475.0  # the reward threshold of Gymnasium's registry; the maximum return is 500


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of APPO."""

    num_envs: int = 32
    num_steps: int = 64  # of every environment, in each rollout
    total_steps: int = 300_000  # of all environments together; then training stops
    seed: int = 1
    in_turn: bool = False  # collect in lockstep, and learn when it is done
    run_ahead: int = 1  # rollouts that a row may be in front of the slowest one
    queue: int = 1  # rollouts that wait for the learner
    min_rows: int = 8  # native rows step faster than the policy is called: ask for several
    learning_rate: float = 2e-3  # falls linearly to zero over the total steps
    gamma: float = 0.99
    lambda_: float = 0.95
    epochs: int = 4  # over each rollout
    minibatch_size: int = 512
    clip: float = 0.2
    value_coefficient: float = 0.5
    max_grad_norm: float = 0.5


class Actor:
    """Draws actions with a copy of the learner's network; it is called in the collector's thread.

    Args:
        network: Observations (…, 4) to the logits of pushing left and right; it is copied.
        seed: Of random numbers that the learner's thread does not draw from.
    """

    def __init__(self, network: Any, seed: int) -> None:
        """Copies the network."""
        self.network = copy.deepcopy(network)
        self.random = torch.Generator().manual_seed(seed)

    def __call__(self, observations: NDArray[np.float32]) -> tuple[Any, dict[str, Any]]:
        """Draws actions (K,), and returns their log-probabilities too."""
        with torch.inference_mode():
            log_probs = self.network(torch.from_numpy(observations)).log_softmax(-1)  # (K, 2)
            actions = torch.multinomial(log_probs.exp(), 1, generator=self.random)
            return actions.squeeze(-1), {"log_prob": log_probs.gather(-1, actions).squeeze(-1)}


class Learner:
    """A policy and a value function, which share no weights, and their optimizer."""

    def __init__(self, settings: Settings) -> None:
        """Creates networks with orthogonal weights; the policy's last layer has small ones."""
        self.settings = settings
        self.policy = _network(2, gain=0.01)  # (…, 4) to the logits of pushing left and right
        self.critic = _network(1, gain=1.0)  # (…, 4) to (…, 1)
        self.parameters = [*self.policy.parameters(), *self.critic.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, eps=1e-5, fused=True)

    def exploit(self, observations: NDArray[np.float32]) -> Any:
        """The best actions (N,)."""
        with torch.inference_mode():
            return self.policy(torch.from_numpy(observations)).argmax(-1)

    def learn(self, rollout: cartwheel.Rollout) -> None:
        """Improves both by a rollout of older weights."""
        observations = torch.from_numpy(rollout.observations[:-1])  # (T, N, 4)
        actions = torch.from_numpy(rollout.actions).unsqueeze(-1)
        with torch.inference_mode():
            rollout.set_values(self.critic(torch.from_numpy(rollout.value_inputs())))
            before = _chosen(self.policy(observations), actions)  # (T, N)
        # What autoreset, terminations and truncations mean for the targets, the rollout knows.
        ratios = np.exp(before.numpy() - rollout.extras["log_prob"])
        targets, advantages = rollout.vtrace(ratios, self.settings.gamma, self.settings.lambda_)
        # From here on there are only transitions: other rows affect no loss, mean or deviation.
        valid = torch.from_numpy(rollout.valid)
        estimates = [torch.from_numpy(array).float() for array in (targets, advantages)]
        rows = [array[valid] for array in (observations, actions, before, *estimates)]
        for _ in range(self.settings.epochs):
            for batch in torch.randperm(len(rows[0])).split(self.settings.minibatch_size):
                self._descend(*(array[batch] for array in rows))

    def _descend(
        self, observations: Any, actions: Any, before: Any, targets: Any, advantages: Any
    ) -> None:
        settings = self.settings
        ratio = (_chosen(self.policy(observations), actions) - before).exp()
        clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
        scaled = (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
        policy_loss = -torch.minimum(ratio * scaled, clipped * scaled).mean()
        errors = self.critic(observations).squeeze(-1) - targets
        loss = policy_loss + settings.value_coefficient * errors.square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, settings.max_grad_norm)
        self.optimizer.step()


def _network(outputs: int, gain: float) -> Any:
    sizes = [(4, 64, 2**0.5), (64, 64, 2**0.5), (64, outputs, gain)]
    layers: list[Any] = []
    for fan_in, fan_out, layer_gain in sizes:
        linear = torch.nn.Linear(fan_in, fan_out)
        torch.nn.init.orthogonal_(linear.weight, layer_gain)
        torch.nn.init.zeros_(linear.bias)
        layers += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def _chosen(logits: Any, actions: Any) -> Any:
    """Log-probabilities (…) of actions (…, 1)."""
    return logits.log_softmax(-1).gather(-1, actions).squeeze(-1)


def play(learner: Learner, seed: int) -> float:
    """Mean return of the best actions, in 100 episodes of new environments."""
    envs = cartwheel.make_vec(ENV_ID, 20, autoreset_mode="disabled")
    evaluation = cartwheel.evaluate(
        envs, learner.exploit, episodes_per_env=5, seed=seed, progress=False
    )
    envs.close()
    return evaluation.mean_return


@dataclasses.dataclass
class Result:
    """The result of training in one mode."""

    mode: ModeName
    steps: int  # of all environments together, without those that only reset
    seconds: float  # everything: collecting, learning, evaluating
    evaluation: float  # mean return of `play`
    curve: list[tuple[int, float]]  # steps, mean return of the last 100 episodes
    staleness: float  # updates between an action and the hand-out of its rollout, on average
    max_staleness: int  # at most


def make_collector(envs: Any, actor: Actor, settings: Settings) -> cartwheel.Collector:
    """A collector in the background, or in turn with the learner."""
    if settings.in_turn:
        return cartwheel.Collector(envs, actor, settings.num_steps, seed=settings.seed)
    return cartwheel.Collector(
        envs,
        actor,
        settings.num_steps,
        seed=settings.seed,
        order="free",
        min_rows=settings.min_rows,
        run_ahead=settings.run_ahead,
        background=True,
        queue=settings.queue,
    )


def train(mode: ModeName, settings: Settings) -> Result:
    """Learns until the environment is solved, or the total steps are used up."""
    start = time.perf_counter()
    torch.manual_seed(settings.seed)
    envs = cartwheel.make_vec(ENV_ID, settings.num_envs, autoreset_mode=mode, executor="thread")
    learner = Learner(settings)
    actor = Actor(learner.policy, settings.seed)
    collector = make_collector(envs, actor, settings)
    evaluation_seed = settings.seed + settings.num_envs  # the rows' seeds are those before it
    evaluation, steps = 0.0, 0
    returns: collections.deque[float] = collections.deque(maxlen=100)  # the last episodes'
    curve: list[tuple[int, float]] = []
    try:
        while steps < settings.total_steps and evaluation < SOLVED:
            remaining = 1 - steps / settings.total_steps
            learner.optimizer.param_groups[0]["lr"] = settings.learning_rate * remaining
            rollout = collector.collect()
            learner.learn(rollout)
            collector.update(lambda: actor.network.load_state_dict(learner.policy.state_dict()))
            steps += int(rollout.valid.sum())
            returns.extend(rollout.episodes(complete_only=True).returns)
            if returns:
                curve.append((steps, float(np.mean(returns))))
                if len(curve) % 5 == 1:
                    seconds = time.perf_counter() - start
                    print(
                        f"{mode:<11}{steps:>8,} steps{seconds:>7.1f} s{curve[-1][1]:>8.1f}",
                        flush=True,
                    )
                if len(returns) == 100 and curve[-1][1] >= SOLVED:
                    evaluation = play(learner, evaluation_seed)
        if evaluation < SOLVED:
            evaluation = play(learner, evaluation_seed)
        stats = collector.stats()
    finally:
        collector.close()  # ends its thread
        envs.close()
    seconds = time.perf_counter() - start
    ages = stats.mean_staleness, stats.max_staleness
    return Result(mode, steps, seconds, evaluation, curve, *ages)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains in the selected modes and prints a table."""
    parser = argparse.ArgumentParser(description="APPO on CartPole in each autoreset mode.")
    parser.add_argument("--mode", choices=[*MODES, "all"], default="all")
    parser.add_argument("--in-turn", action="store_true")
    parser.add_argument("--num-envs", type=int, default=Settings.num_envs)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--total-steps", type=int, default=Settings.total_steps)
    parser.add_argument("--run-ahead", type=int, default=Settings.run_ahead)
    parser.add_argument("--queue", type=int, default=Settings.queue)
    options = vars(parser.parse_args(arguments))
    mode = options.pop("mode")
    torch.set_num_threads(1)  # the networks are too small for two

    settings = Settings(**options)
    results = [train(each, settings) for each in (MODES if mode == "all" else (mode,))]
    print(
        f"\n{'mode':<11}{'env steps':>10}{'seconds':>9}{'last 100':>10}{'evaluation':>12}"
        f"{'updates old':>13}{'at most':>9}"
    )
    for result in results:
        last = result.curve[-1][1] if result.curve else float("nan")
        print(
            f"{result.mode:<11}{result.steps:>10,}{result.seconds:>9.1f}{last:>10.1f}"
            f"{result.evaluation:>12.1f}{result.staleness:>13.2f}{result.max_staleness:>9}"
        )
    unsolved = [result.mode for result in results if result.evaluation < SOLVED]
    if unsolved:
        raise SystemExit(f"a mean return of {SOLVED:.0f} was not reached in: {', '.join(unsolved)}")


if __name__ == "__main__":
    main()
