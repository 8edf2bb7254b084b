"""HalfCheetah-v5 and Pong, against Gymnasium, Stable-Baselines3 and ale-py's vector environment.

Pong is what trainers see: four frames a step, 84×84, gray, four in a stack, up to 30 steps of no-op
at the start. In Python it is Gymnasium's preprocessing around ale-py's environment, with one thread
of OpenCV in each process; ale-py's vector environment has the same preprocessing in its threads.

Needs the packages of ``make zoo``; Stable-Baselines3 is left out where it is not installed. An
environment that has both: ``PYTHONPATH=.venv-torch/lib/python3.11/site-packages
.venv-zoo/bin/python -m benchmarks.trainers.real_environments``.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

import cartwheel
from benchmarks.harness.claim import Claim, check
from benchmarks.harness.rivals import SB3_SUBPROC, WHY_NOT
from cartwheel.bench.contenders import ASYNC, SYNC, Contender, cartwheel_with
from cartwheel.bench.runner import VectorRunner, sample_actions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel._internal.arguments import EnvFn

PONG = "ALE/Pong-v5"
PROCESS = cartwheel_with("process")


def make_pong() -> gym.Env[Any, Any]:
    """Pong with Gymnasium's preprocessing."""
    importlib.import_module("ale_py")  # registers the id
    importlib.import_module("cv2").setNumThreads(1)  # there is a process for each core already
    env = gym.make(PONG, frameskip=1, repeat_action_probability=0.0, disable_env_checker=True)
    return FrameStackObservation(AtariPreprocessing(env), 4)


def threads_of_ale(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """``make_vec(…, executor="ale")``."""
    envs = cartwheel.make_vec(PONG, len(env_fns), executor="ale", repeat_action_probability=0.0)
    envs.reset(seed=0)
    return VectorRunner(envs, sample_actions(envs.action_space))


def own_threads_of_ale(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """ale-py's own vector environment."""
    envs = importlib.import_module("ale_py.vector_env").AtariVectorEnv("pong", len(env_fns))
    envs.reset(seed=0)
    return VectorRunner(envs, sample_actions(envs.action_space))


ALE = Contender("cartwheel ale", threads_of_ale)
OWN_ALE = Contender("ale-py", own_threads_of_ale)

if __name__ == "__main__":
    against = [ASYNC, SB3_SUBPROC] if WHY_NOT["sb3"]() is None else [ASYNC]
    check(
        "HalfCheetah-v5",
        functools.partial(gym.make, "HalfCheetah-v5"),
        {
            num_envs: [
                *(Claim(PROCESS, other, bound) for other in against),
                Claim(PROCESS, SYNC, 1),
            ]
            for num_envs, bound in ((8, 2), (32, 2))
        },
    )
    print()
    check(
        "Pong, 84×84×4",
        make_pong,
        {
            8: [
                *(Claim(PROCESS, other, 1) for other in against),
                Claim(ALE, OWN_ALE, 0.95),
                Claim(ALE, PROCESS, 1),
            ]
        },
    )
