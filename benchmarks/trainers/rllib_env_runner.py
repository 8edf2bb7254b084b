"""``sample`` of RLlib's environment runners: its own vectorization against cartwheel's.

A step of the table is a step of one environment inside ``sample``, with RLlib's connectors,
episodes and a small network, which take most of the time where environments are cheap. Environments
of two agents compute or wait for a millisecond in each step.
"""

from __future__ import annotations

import functools
import logging
import time
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.tune.registry import register_env

from benchmarks.harness.claim import Claim, check, no_env
from benchmarks.harness.workloads import compute, rounds_of
from cartwheel.bench.contenders import Contender
from cartwheel.rllib import AsyncMultiAgentEnvRunner, register

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

AGENTS = ("left", "right")
#: Keywords of ``env_runners`` that choose a vectorization.
GYMNASIUM_SYNC = {"gym_env_vectorize_mode": "sync"}
GYMNASIUM_ASYNC = {"gym_env_vectorize_mode": "async"}
CARTWHEEL = {"gym_env_vectorize_mode": "vector_entry_point"}


class MillisecondEnv(MultiAgentEnv):
    """Two agents; a step computes or waits for a millisecond, and an episode has 100 steps."""

    def __init__(self, work: Callable[[], object]) -> None:
        """``work`` is done in each step."""
        self.possible_agents = self.agents = list(AGENTS)
        super().__init__()
        self.observation_spaces = dict.fromkeys(AGENTS, Box(-1, 1, (4,), np.float32))
        self.action_spaces = dict.fromkeys(AGENTS, Discrete(2))
        self._work = work
        self._t = 0

    def _observations(self) -> dict[str, Any]:
        return {agent: np.zeros(4, np.float32) for agent in AGENTS}

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begins an episode."""
        self._t = 0
        return self._observations(), {}

    def step(self, action_dict: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Does the work."""
        self._work()
        self._t += 1
        flags = {"__all__": False}, {"__all__": self._t == 100}
        return self._observations(), dict.fromkeys(AGENTS, 1.0), *flags, {}


class EightWorkersRunner(AsyncMultiAgentEnvRunner):
    """A worker process for each environment, for environments that wait."""

    vector_kwargs: ClassVar[dict[str, Any]] = {"num_workers": 8}


class Sampling:
    """One runner, which samples again and again."""

    note = ""

    def __init__(self, runner: Any) -> None:
        """Samples nothing yet."""
        self.runner = runner
        self._step_s = float("inf")  # of one environment, in the last run

    def run(self, seconds: float) -> float:
        """Samples for about ``seconds``; returns steps of environments per second."""
        steps = max(self.runner.num_envs, round(seconds / self._step_s))
        start = time.perf_counter()
        self.runner.sample(num_timesteps=steps)
        self._step_s = (time.perf_counter() - start) / steps
        return 1 / self._step_s

    def close(self) -> None:
        """Closes the environments."""
        self.runner.stop()


def build(
    runner_class: type[Any], env: str, vectorization: dict[str, Any], env_fns: Sequence[Any]
) -> Sampling:
    """Makes a runner in this process."""
    config = (
        PPOConfig()
        .environment(env)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=len(env_fns), **vectorization)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[32]))
        .debugging(seed=1)
    )
    if issubclass(runner_class, MultiAgentEnvRunner):
        config.multi_agent(policies={"all"}, policy_mapping_fn=lambda *_, **__: "all")
    return Sampling(runner_class(config=config))


def contender(
    name: str, runner_class: type[Any], env: str, vectorization: dict[str, Any] | None = None
) -> Contender:
    """A runner of registered environments."""
    return Contender(name, functools.partial(build, runner_class, env, vectorization or {}))


def claims() -> list[Claim]:
    """Of one agent and of two."""
    register("python", "CartPole-v1", executor="process")
    register("native", "cartwheel/CartPole-v1")
    computing = functools.partial(compute, rounds_of(1e-3))
    waiting = functools.partial(time.sleep, 1e-3)
    register_env("computing", lambda _config: MillisecondEnv(computing))
    register_env("waiting", lambda _config: MillisecondEnv(waiting))
    one = SingleAgentEnvRunner
    sync = contender("Gymnasium sync", one, "CartPole-v1", GYMNASIUM_SYNC)
    asynchronous = contender("Gymnasium async", one, "CartPole-v1", GYMNASIUM_ASYNC)
    process = contender("cartwheel process", one, "python", CARTWHEEL)
    native = contender("cartwheel native", one, "native", CARTWHEEL)
    return [
        Claim(process, asynchronous, 1.0),
        Claim(native, asynchronous, 1.2),
        Claim(native, sync, 1.1),
        Claim(
            contender("2 agents, compute", AsyncMultiAgentEnvRunner, "computing"),
            contender("RLlib sync, compute", MultiAgentEnvRunner, "computing"),
            1.2,  # on two cores; half of the rest is RLlib's own work, between the steps
        ),
        Claim(
            contender("2 agents, wait", EightWorkersRunner, "waiting"),
            contender("RLlib sync, wait", MultiAgentEnvRunner, "waiting"),
            2.5,
        ),
    ]


if __name__ == "__main__":
    logging.getLogger("ray").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", ".*Overriding environment rllib-.*")
    torch.set_num_threads(1)  # so small a network is slower on more
    check("sampling by RLlib's environment runners", no_env, {8: claims()})
