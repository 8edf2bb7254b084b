"""PPO with TorchRL's losses and collector learns native CartPole in less than a minute.

Everything but the environment is TorchRL's: ``Collector``, ``GAE``, ``ClipPPOLoss``, the transform
``RewardSum``. The one line that differs from a program with ``GymWrapper`` makes the environment.

Run it with ``python examples/trainers/torchrl_ppo.py``; ``pip install 'cartwheel[torchrl]'`` first.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from typing import Any

import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import ExplorationType, RewardSum, TransformedEnv, set_exploration_type
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import cartwheel
from cartwheel.torchrl import CartwheelEnv

SOLVED = 475.0  # the reward threshold of Gymnasium's registry; the maximum return is 500
PATIENCE = 20  # batches whose mean return must reach it


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of PPO."""

    num_envs: int = 32
    num_steps: int = 64  # of every environment, between two updates
    total_steps: int = 144 * 32 * 64  # of all environments together: 144 batches
    seed: int = 1
    learning_rate: float = 3e-3  # falls linearly to zero over the total steps
    gamma: float = 0.99
    gae_lambda: float = 0.95
    epochs: int = 5
    minibatch_size: int = 512
    clip: float = 0.2
    max_grad_norm: float = 0.5


@dataclasses.dataclass
class Result:
    """The result of training."""

    steps: int  # of all environments together
    seconds: float
    evaluation: float  # mean return of the best actions in 100 episodes
    curve: list[tuple[int, float]]  # steps, mean return of the episodes that ended in a batch


def make_env(num_envs: int) -> CartwheelEnv:
    """Makes native environments; discrete actions are integers."""
    envs = cartwheel.make_vec("cartwheel/CartPole-v1", num_envs, autoreset_mode="disabled")
    return CartwheelEnv(envs, categorical_action_encoding=True)


def network(outputs: int, gain: float) -> Any:
    """Two hidden layers with orthogonal weights; ``gain`` is that of the last layer."""
    layers: list[Any] = []
    for fan_in, fan_out, layer_gain in [(4, 64, 2**0.5), (64, 64, 2**0.5), (64, outputs, gain)]:
        linear = torch.nn.Linear(fan_in, fan_out)
        torch.nn.init.orthogonal_(linear.weight, layer_gain)
        torch.nn.init.zeros_(linear.bias)
        layers += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def evaluate(actor: Any, seed: int) -> float:
    """Mean return of the best actions, in 100 episodes, one in each environment."""
    env = TransformedEnv(make_env(100), RewardSum())
    env.set_seed(seed)
    with set_exploration_type(ExplorationType.DETERMINISTIC), torch.no_grad():
        rollout = env.rollout(500, actor, break_when_any_done=False)
    env.close()
    first = rollout["next", "done"].float().argmax(1, keepdim=True)  # where its first episode ends
    return float(rollout["next", "episode_reward"].gather(1, first).mean())


def train(settings: Settings, *, progress: bool = False) -> Result:
    """Trains until the last batches are solved, at most for ``total_steps``."""
    start = time.perf_counter()
    torch.manual_seed(settings.seed)
    logits = TensorDictModule(network(2, gain=0.01), ["observation"], ["logits"])
    actor = ProbabilisticActor(
        logits,
        in_keys=["logits"],
        distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
    )
    critic = ValueOperator(network(1, gain=1.0), in_keys=["observation"])
    advantage = GAE(gamma=settings.gamma, lmbda=settings.gae_lambda, value_network=critic)
    loss_of = ClipPPOLoss(
        actor,
        critic,
        clip_epsilon=settings.clip,
        entropy_bonus=False,
        critic_coeff=0.5,
        loss_critic_type="l2",
        normalize_advantage=True,
    )
    optimizer = torch.optim.Adam(loss_of.parameters(), settings.learning_rate, eps=1e-5)

    env = TransformedEnv(make_env(settings.num_envs), RewardSum())
    env.set_seed(settings.seed)
    collector = Collector(
        env,
        actor,
        frames_per_batch=settings.num_envs * settings.num_steps,
        total_frames=settings.total_steps,
        auto_register_policy_transforms=False,  # the policy has no memory
    )
    curve: list[tuple[int, float]] = []
    steps = 0
    for batch in collector:
        optimizer.param_groups[0]["lr"] = settings.learning_rate * (
            1 - steps / settings.total_steps
        )
        steps += batch.numel()
        with torch.no_grad():
            advantage(batch)
        rows = batch.reshape(-1)
        for _ in range(settings.epochs):
            for chosen in torch.randperm(len(rows)).split(settings.minibatch_size):
                losses = loss_of(rows[chosen])
                optimizer.zero_grad()
                (losses["loss_objective"] + losses["loss_critic"]).backward()
                torch.nn.utils.clip_grad_norm_(loss_of.parameters(), settings.max_grad_norm)
                optimizer.step()
        ended = batch["next", "episode_reward"][batch["next", "done"]]
        if len(ended):
            curve.append((steps, float(ended.mean())))
            if progress and len(curve) % 10 == 0:
                print(f"{steps:7} steps  mean return {curve[-1][1]:5.1f}")
            last = [mean for _, mean in curve[-PATIENCE:]]
            if len(last) == PATIENCE and sum(last) / PATIENCE >= SOLVED:
                break
    collector.shutdown()
    evaluation = evaluate(actor, seed=1000 + settings.seed)
    return Result(steps, time.perf_counter() - start, evaluation, curve)


def main() -> None:
    """Trains once and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--steps", type=int, default=Settings.total_steps, help="of all together")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the networks are small: more threads are slower
    settings = Settings(seed=arguments.seed, total_steps=arguments.steps)
    result = train(settings, progress=True)
    print(
        f"{result.steps} steps in {result.seconds:.0f} s: "
        f"mean return {result.evaluation:.1f} of 500 in 100 episodes"
    )


if __name__ == "__main__":
    main()
