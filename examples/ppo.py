"""PPO in one file: learns CartPole in each autoreset mode, and says how long it took.

Proximal policy optimisation (https://arxiv.org/abs/1707.06347) with generalised advantage
estimation (https://arxiv.org/abs/1506.02438), for native environments, on the CPU.

The autoreset modes differ in two things only: which rows of a rollout are transitions, and where
the true next observation of a row is found. ``Collector.collect`` writes both down, ``evaluate``
looks the values up, and everything after that is the same code in every mode. What goes wrong
without it is silent: PPO would still learn something. (``cartwheel.returns`` has functions for the
masks, too; here they are written out.)

Run it with ``python examples/ppo.py``. It needs torch, and matplotlib for ``--plot FILE.png``.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import importlib.util
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

import cartwheel
from cartwheel.returns import gae

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gymnasium.vector import VectorEnv

ENV_ID = "cartwheel/CartPole-v1"
MODES = ("next_step", "same_step", "disabled")
SOLVED = 475.0  # the mean return that Gymnasium's registry asks for; 500 is the most there is

Floats: TypeAlias = NDArray[np.float32]
Flags: TypeAlias = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Settings:
    """What PPO can be told; T and N below are ``num_steps`` and ``num_envs``."""

    num_envs: int = 32
    num_steps: int = 64  # of every environment, between two updates
    total_steps: int = 300_000  # of all environments together, after which it gives up
    seed: int = 1
    learning_rate: float = 3e-3  # falls linearly to zero over the total steps
    gamma: float = 0.99
    lam: float = 0.95
    bootstrap: str = "truncated"  # "never" shows what the value beyond a time limit is good for
    epochs: int = 5
    minibatch_size: int = 512
    clip: float = 0.2
    value_coefficient: float = 0.5
    max_grad_norm: float = 0.5


@dataclasses.dataclass
class Rollout:
    """T steps of N rows, and the true last observations of the episodes that were cut off."""

    observations: Floats  # (T + 1, N, 4): what the policy saw; the last one is still to be acted on
    actions: NDArray[np.int64]  # (T, N)
    rewards: Floats  # (T, N)
    terminations: Flags  # (T, N)
    truncations: Flags  # (T, N)
    valid: Flags  # (T, N): the row is a transition
    # Of K rows, truncated and not terminated, whose next observation is not in the next row:
    final_observations: Floats  # (K, 4)
    final_index: tuple[NDArray[np.intp], NDArray[np.intp]]  # steps (K,) and rows (K,)


class Agent:
    """A policy and a value function, apart from each other."""

    def __init__(self) -> None:
        """Networks with orthogonal weights, of which the policy's last are small."""
        self.actor = _network(2, gain=0.01)  # (…, 4) to the logits of pushing left and right
        self.critic = _network(1, gain=1.0)  # (…, 4) to (…, 1)
        self.parameters = [*self.actor.parameters(), *self.critic.parameters()]


def _network(outputs: int, gain: float) -> Any:
    sizes = [(4, 64, 2**0.5), (64, 64, 2**0.5), (64, outputs, gain)]
    layers: list[Any] = []
    for fan_in, fan_out, layer_gain in sizes:
        linear = torch.nn.Linear(fan_in, fan_out)
        torch.nn.init.orthogonal_(linear.weight, layer_gain)
        torch.nn.init.zeros_(linear.bias)
        layers += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


class Collector:
    """Steps the environments, and keeps what one rollout hands on to the next."""

    def __init__(self, envs: VectorEnv[Any, Any, Any], num_steps: int, seed: int) -> None:
        """Resets ``envs``, whose mode it goes by."""
        self.envs, self.num_steps = envs, num_steps
        self.mode = envs.metadata["autoreset_mode"]
        self.observations, _ = envs.reset(seed=seed)  # (N, 4)
        self.resetting = np.zeros(envs.num_envs, np.bool_)  # next step: only in NEXT_STEP
        self.running_returns = np.zeros(envs.num_envs)
        self.returns: collections.deque[float] = collections.deque(maxlen=100)  # the last episodes'

    def collect(self, agent: Agent) -> Rollout:
        """Lets the policy act for T steps."""
        num_steps, num_envs = self.num_steps, self.envs.num_envs
        rollout = Rollout(
            observations=np.empty((num_steps + 1, num_envs, 4), np.float32),
            actions=np.empty((num_steps, num_envs), np.int64),
            rewards=np.empty((num_steps, num_envs), np.float32),
            terminations=np.empty((num_steps, num_envs), np.bool_),
            truncations=np.empty((num_steps, num_envs), np.bool_),
            valid=np.empty((num_steps, num_envs), np.bool_),
            final_observations=np.empty((0, 4), np.float32),
            final_index=(np.empty(0, np.intp), np.empty(0, np.intp)),
        )
        finals: list[tuple[int, int, Floats]] = []
        for step in range(num_steps):
            with torch.inference_mode():
                logits = agent.actor(torch.from_numpy(self.observations))
                actions = torch.multinomial(logits.softmax(-1), 1).squeeze(-1).numpy()  # (N,)
            rollout.observations[step] = self.observations
            rollout.actions[step] = actions
            # A row that is only reset by this step ignores its action and gives no reward.
            rollout.valid[step] = ~self.resetting

            observations, rewards, terminations, truncations, infos = self.envs.step(actions)
            rollout.rewards[step] = rewards
            rollout.terminations[step] = terminations
            rollout.truncations[step] = truncations

            over = terminations | truncations
            self.running_returns += rewards
            self.returns.extend(self.running_returns[over])
            self.running_returns[over] = 0.0

            # The next row shows the true next observation, except at the end of an episode in the
            # modes that put a new one's first observation there. After a termination nobody asks.
            cut_off = np.flatnonzero(truncations & ~terminations)
            if self.mode == AutoresetMode.NEXT_STEP:
                self.resetting = over  # also into the next rollout
            elif self.mode == AutoresetMode.SAME_STEP:
                finals += [(step, row, infos["final_obs"][row]) for row in cut_off.tolist()]
            else:
                finals += [(step, row, observations[row]) for row in cut_off.tolist()]
                if over.any():  # the other rows keep their observations
                    observations, _ = self.envs.reset(options={"reset_mask": over})
            self.observations = observations
        rollout.observations[num_steps] = self.observations
        if finals:
            steps, rows, last = zip(*finals, strict=True)
            rollout.final_observations = np.stack(last)
            rollout.final_index = np.array(steps), np.array(rows)
        return rollout


def evaluate(agent: Agent, rollout: Rollout) -> tuple[Floats, Floats]:
    """Values of the observations and of the true next observations, both (T, N), in one call."""
    (num_steps, num_envs), num_features = rollout.rewards.shape, rollout.observations.shape[-1]
    shown = rollout.observations.reshape(-1, num_features)
    with torch.inference_mode():
        inputs = torch.from_numpy(np.concatenate([shown, rollout.final_observations]))
        outputs: Floats = agent.critic(inputs).squeeze(-1).numpy()  # ((T + 1) * N + K,)
    values = outputs[: len(shown)].reshape(num_steps + 1, num_envs)
    next_values = values[1:].copy()
    next_values[rollout.final_index] = outputs[len(shown) :]
    return values[:-1], next_values


def update(agent: Agent, optimizer: Any, rollout: Rollout, settings: Settings) -> None:
    """Improves the agent by one rollout."""
    # Two different masks are at work in `gae`: a termination ends the value, since nothing comes
    # after it; either flag ends the sum, since what comes in the next row is another episode. A
    # truncated episode would have gone on, and is worth what the critic says of its last
    # observation. The observation does not tell the time: with zero instead (`--bootstrap never`)
    # one and the same upright pole would be worth 1 just before the limit and almost 100 long
    # before it.
    values, next_values = evaluate(agent, rollout)
    all_advantages, all_returns = gae(
        rollout.rewards,
        values,
        next_values,
        rollout.terminations,
        rollout.truncations,
        valid=rollout.valid,
        gamma=settings.gamma,
        lam=settings.lam,
        bootstrap=settings.bootstrap,
    )
    # From here on there are only transitions: no loss, mean or deviation sees any other row.
    valid = rollout.valid
    observations = torch.from_numpy(rollout.observations[:-1][valid])  # (valid.sum(), 4)
    actions = torch.from_numpy(rollout.actions[valid]).unsqueeze(-1)
    advantages = torch.from_numpy(all_advantages[valid])
    returns = torch.from_numpy(all_returns[valid])
    with torch.no_grad():
        old_log_probs = agent.actor(observations).log_softmax(-1).gather(-1, actions).squeeze(-1)

    for _ in range(settings.epochs):
        for batch in torch.randperm(len(observations)).split(settings.minibatch_size):
            log_probs = agent.actor(observations[batch]).log_softmax(-1)
            log_probs = log_probs.gather(-1, actions[batch]).squeeze(-1)
            ratio = (log_probs - old_log_probs[batch]).exp()
            clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
            scaled = advantages[batch]
            scaled = (scaled - scaled.mean()) / (scaled.std(correction=0) + 1e-8)
            policy_loss = -torch.minimum(ratio * scaled, clipped * scaled).mean()
            errors = agent.critic(observations[batch]).squeeze(-1) - returns[batch]
            loss = policy_loss + settings.value_coefficient * errors.square().mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(agent.parameters, settings.max_grad_norm)
            optimizer.step()


def play(
    agent: Agent, seed: int, num_envs: int = 20, episodes_each: int = 5
) -> NDArray[np.float64]:
    """Returns of the best actions in fresh environments, (episodes_each, num_envs).

    Every row plays as many episodes as every other. The first so many episodes to end would be the
    short ones. An over row rests, at reward 0, until the last one is over.
    """
    envs = cartwheel.make_vec(ENV_ID, num_envs, autoreset_mode="disabled", on_done="freeze")
    returns = np.zeros((episodes_each, num_envs))
    for episode in range(episodes_each):
        observations, _ = envs.reset(seed=seed if episode == 0 else None)
        over = np.zeros(num_envs, np.bool_)
        while not over.all():
            with torch.inference_mode():
                actions = agent.actor(torch.from_numpy(observations)).argmax(-1).numpy()
            observations, rewards, terminations, truncations, _ = envs.step(actions)
            returns[episode] += rewards
            over = terminations | truncations
    envs.close()
    return returns


@dataclasses.dataclass
class Result:
    """What came of one mode."""

    mode: str
    steps: int  # of all environments together, without those that only reset
    seconds: float  # everything: collecting, learning, evaluating
    evaluation: float  # mean return of `play`
    curve: list[tuple[int, float]]  # steps, mean return of the last 100 episodes


def train(mode: str, settings: Settings) -> Result:
    """Learns until the environment is solved, or the total steps are used up."""
    start = time.perf_counter()
    torch.manual_seed(settings.seed)
    envs = cartwheel.make_vec(ENV_ID, settings.num_envs, autoreset_mode=mode)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters, eps=1e-5, fused=True)
    collector = Collector(envs, settings.num_steps, settings.seed)
    evaluation_seed = settings.seed + settings.num_envs  # the rows' seeds are those before it
    evaluation, steps = 0.0, 0
    curve: list[tuple[int, float]] = []
    while steps < settings.total_steps and evaluation < SOLVED:
        remaining = 1 - steps / settings.total_steps
        optimizer.param_groups[0]["lr"] = settings.learning_rate * remaining
        rollout = collector.collect(agent)
        update(agent, optimizer, rollout, settings)
        steps += int(rollout.valid.sum())
        if collector.returns:
            curve.append((steps, float(np.mean(collector.returns))))
            if len(curve) % 5 == 1:
                seconds = time.perf_counter() - start
                print(
                    f"{mode:<11}{steps:>8,} steps{seconds:>7.1f} s{curve[-1][1]:>8.1f}", flush=True
                )
            if len(collector.returns) == 100 and curve[-1][1] >= SOLVED:
                evaluation = float(play(agent, evaluation_seed).mean())
    if evaluation < SOLVED:
        evaluation = float(play(agent, evaluation_seed).mean())
    envs.close()
    return Result(mode, steps, time.perf_counter() - start, evaluation, curve)


def plot(results: Sequence[Result], path: Path) -> None:
    """Writes the learning curves as one picture."""
    from matplotlib.figure import Figure  # only here: not everybody has it

    figure = Figure(figsize=(8.0, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for result, colour in zip(results, ("#14606b", "#e09f3e", "#b5482f"), strict=False):
        steps, returns = zip(*result.curve, strict=True)
        axes.plot(steps, returns, color=colour, label=f"{result.mode}, {result.seconds:.1f} s")
    axes.axhline(SOLVED, color="#7d848c", linestyle="dashed", label="solved")
    axes.set_title(f"PPO on {ENV_ID}", loc="left", fontweight="bold")
    axes.set_xlabel("environment steps")
    axes.set_ylabel("mean return of the last 100 episodes")
    axes.grid(axis="y", color="#e4e6e9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains in the modes asked for, and prints a table."""
    parser = argparse.ArgumentParser(description="PPO on CartPole in each autoreset mode.")
    parser.add_argument("--mode", choices=[*MODES, "all"], default="all")
    parser.add_argument("--num-envs", type=int, default=Settings.num_envs)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--total-steps", type=int, default=Settings.total_steps)
    parser.add_argument("--bootstrap", choices=["truncated", "never"], default=Settings.bootstrap)
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="write learning curves")
    options = vars(parser.parse_args(arguments))
    mode, path = options.pop("mode"), options.pop("plot")
    if path is not None and importlib.util.find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib: pip install matplotlib")
    torch.set_num_threads(1)  # the networks are too small for two

    settings = Settings(**options)
    results = [train(each, settings) for each in (MODES if mode == "all" else (mode,))]
    print(f"\n{'mode':<11}{'env steps':>10}{'seconds':>9}{'last 100':>10}{'evaluation':>12}")
    for result in results:
        last = result.curve[-1][1] if result.curve else float("nan")
        print(
            f"{result.mode:<11}{result.steps:>10,}{result.seconds:>9.1f}{last:>10.1f}"
            f"{result.evaluation:>12.1f}"
        )
    if path is not None:
        plot(results, path)
    unsolved = [result.mode for result in results if result.evaluation < SOLVED]
    if unsolved:
        raise SystemExit(f"a mean return of {SOLVED:.0f} was not reached in: {', '.join(unsolved)}")


if __name__ == "__main__":
    main()
