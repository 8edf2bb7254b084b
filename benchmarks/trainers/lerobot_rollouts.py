"""LeRobot's rollouts in its asynchronous environments, with its own class and with cartwheel's.

Needs LeRobot: ``.venv-lerobot/bin/python -m benchmarks.trainers.lerobot_rollouts``. Prints the
seconds of the first reset, in which processes start, and the rates of rollouts after it.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import time
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch
from lerobot.envs.utils import _LazyAsyncVectorEnv
from lerobot.scripts.lerobot_eval import rollout

import cartwheel
from benchmarks.harness.claim import Claim
from benchmarks.harness.peers import PeerClaim, PeerRace, measure, version_of
from benchmarks.harness.runners import Repeated
from benchmarks.harness.workloads import compute, rounds_of
from cartwheel.bench.contenders import Contender

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel._internal.arguments import EnvFn

NUM_ENVS, STEPS = 10, 50


class Robot(gym.Env[Any, Any]):
    """A camera and the position of two joints; a step computes, and succeeds never."""

    metadata = {"render_fps": 30}  # noqa: RUF012 - Gymnasium's attribute
    observation_space = gym.spaces.Dict(
        pixels=gym.spaces.Box(0, 255, (96, 96, 3), np.uint8),
        agent_pos=gym.spaces.Box(-1, 1, (2,), np.float32),
    )
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    task = task_description = "move"
    _max_episode_steps = STEPS

    def __init__(self, rounds: int) -> None:
        """Computes ``rounds`` rounds in each step."""
        self.rounds = rounds
        self.frame = {
            "pixels": np.zeros((96, 96, 3), np.uint8),
            "agent_pos": np.zeros(2, np.float32),
        }

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Returns the only observation."""
        super().reset(seed=seed, options=options)
        return self.frame, {"is_success": False}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Computes."""
        compute(self.rounds)
        return self.frame, 1.0, False, False, {"is_success": False}


class Still(torch.nn.Module):
    """A policy that costs nothing."""

    def reset(self) -> None:
        """Does nothing."""

    def select_action(self, batch: dict[str, Any]) -> torch.Tensor:
        """Returns zeros."""
        return torch.zeros(len(batch["observation.state"]), 2)


def rollouts(env_fns: Sequence[EnvFn], *, patch: bool) -> Repeated:
    """Starts the processes, with cartwheel's class or without, to time rollouts."""
    start = time.perf_counter()
    envs = _LazyAsyncVectorEnv(list(env_fns))
    with cartwheel.patch_gymnasium() if patch else contextlib.nullcontext():
        envs.reset(seed=0)
    start_s = time.perf_counter() - start

    def play() -> None:
        rollout(envs, Still(), *[lambda batch: batch] * 4, seeds=list(range(NUM_ENVS)))

    runner = Repeated(play, STEPS * NUM_ENVS, envs.close)
    runner.note = f"first reset after {start_s:.2f} s"
    return runner


def contender(name: str, *, patch: bool) -> Contender:
    """LeRobot's environments with or without the patch."""
    return Contender(name, functools.partial(rollouts, patch=patch))


if __name__ == "__main__":
    os.environ["SLURM_JOB_ID"] = "0"  # LeRobot then shows no progress bars
    torch.set_num_threads(1)
    multiprocessing.set_forkserver_preload(["lerobot.scripts.lerobot_eval"])
    first = multiprocessing.get_context("forkserver").Process()
    first.start()  # and the server, which imports LeRobot, for both contenders
    first.join()
    claim = Claim(contender("cartwheel", patch=True), contender("LeRobot's own", patch=False), 1)
    work = f"evaluation: `rollout` of {STEPS} steps of 1 ms, images of 96×96, by `patch_gymnasium`"
    peer = PeerClaim("rollout", work, claim, version_of("lerobot"))
    measure(__doc__, [PeerRace(NUM_ENVS, [peer], functools.partial(Robot, rounds_of(1e-3)))])
