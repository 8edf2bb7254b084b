"""TorchRL's ``ParallelEnv``: a process for each environment.

A step is ``step_and_maybe_reset``, which its collectors call, with a batch of actions that was
sampled before: an action is an ``int64``, not a row of zeros and a one. Results are in a
``TensorDict`` in shared memory. An environment whose episode is over is reset in the same call.
Most other contenders count the reset as a step; CartPole's episodes have some 22 steps with random
actions, so these steps do up to a twentieth more.
"""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

from gymnasium.vector.utils import batch_space

from cartwheel.bench.packages import load, quickest_start_method, why_not_loaded
from cartwheel.bench.runner import VectorRunner, sample_actions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel.arguments import EnvFn


def why_not() -> str | None:
    """Why TorchRL cannot take part; ``None`` when it can."""
    return why_not_loaded("torchrl", ": pip install torchrl")


def parallel(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """``ParallelEnv`` of environments that are all made by the first function, as in a race."""
    torch, envs = load("torch"), load("torchrl.envs")
    num_threads = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fork beside threads; what it deprecates itself
        stepped = Steps(
            envs.ParallelEnv(
                len(env_fns),
                functools.partial(_wrapped, env_fns[0]),
                mp_start_method=quickest_start_method(),
            )
        )
    torch.set_num_threads(num_threads)  # `ParallelEnv` changes it for the whole program
    space = batch_space(_action_space(env_fns[0]), len(env_fns))
    actions = [torch.as_tensor(batch) for batch in sample_actions(space)]
    return VectorRunner(stepped, actions)  # type: ignore[arg-type] # all that a runner calls


class Steps:
    """The call of a ``ParallelEnv`` that is timed, under the name that a runner calls."""

    def __init__(self, envs: Any) -> None:
        """Resets ``envs`` and takes them over."""
        self.envs = envs
        self.num_envs: int = envs.batch_size.numel()
        self._state = envs.reset()

    def step(self, actions: Any) -> Any:
        """Steps all environments; those that are over begin again."""
        self._state["action"] = actions
        result, self._state = self.envs.step_and_maybe_reset(self._state)
        return result

    def close(self) -> None:
        """Ends the processes."""
        self.envs.close()


def _wrapped(env_fn: EnvFn) -> Any:
    return load("torchrl.envs").GymWrapper(env_fn(), categorical_action_encoding=True)


def _action_space(env_fn: EnvFn) -> Any:
    env = env_fn()
    env.close()
    return env.action_space
