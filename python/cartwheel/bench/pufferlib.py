"""PufferLib's vectorisation: all in the caller's process, or in worker processes.

A step is ``send`` with a batch of actions that was sampled before, and ``recv``, as its trainer
calls them. Each environment is in ``GymnasiumPufferEnv``, without which PufferLib steps none; it
resets in the step after the end of an episode, which counts as a step.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any

from gymnasium.vector.utils import batch_space

from cartwheel._cartwheel import usable_cpus
from cartwheel.bench.packages import load, why_not_loaded
from cartwheel.bench.runner import VectorRunner, fastest_of, sample_actions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel.arguments import EnvFn

IDLE_S = 0.6
"""Its workers wait actively for half a second after a step, in which nobody else is timed."""


def why_not() -> str | None:
    """Why PufferLib cannot take part; ``None`` when it can."""
    return why_not_loaded("pufferlib")


def serial(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """``Serial``, which steps the environments in turn."""
    return VectorRunner(*_made(env_fns, load("pufferlib.vector").Serial))


def processes(env_fns: Sequence[EnvFn], num_workers: int | None = None) -> VectorRunner:
    """``Multiprocessing``, with ``num_workers``, or with as many as make it fastest here and now.

    Workers wait actively, and so does their caller. So the choices are a worker for each core, and
    a core left for the caller; the note of the runner names the fastest. The number of environments
    is a multiple of the number of workers, so that can be fewer.
    """
    num_envs, cores = len(env_fns), usable_cpus()
    choices = [num_workers] if num_workers else [cores, max(1, cores - 1)]
    runners = {
        number: WaitingRunner(
            *_made(
                env_fns,
                load("pufferlib.vector").Multiprocessing,
                num_workers=number,
                overwork=True,  # or it refuses to have more workers than cores without SMT
            )
        )
        for number in sorted({_divisor(num_envs, choice) for choice in choices})
    }
    best = fastest_of(runners)
    if len(runners) > 1:
        runners[best].note = f"{best} of {', '.join(map(str, runners))} workers, the fastest"
    for number, runner in runners.items():
        if number != best:
            runner.close()
    return runners[best]


class WaitingRunner(VectorRunner):
    """Lets workers that wait actively fall asleep before another contender runs."""

    def run(self, seconds: float) -> float:
        """As :meth:`VectorRunner.run`, with a pause behind it."""
        rate = super().run(seconds)
        time.sleep(IDLE_S)
        return rate


class SendAndReceive:
    """The two calls of PufferLib that are timed, under the name that a runner calls."""

    def __init__(self, envs: Any, num_envs: int) -> None:
        """Resets ``envs`` and takes them over."""
        self.envs, self.num_envs = envs, num_envs
        envs.async_reset(0)
        envs.recv()

    def step(self, actions: Any) -> Any:
        """Steps all environments; those that were over begin again."""
        self.envs.send(actions)
        return self.envs.recv()

    def close(self) -> None:
        """Ends the processes."""
        self.envs.close()


def _made(env_fns: Sequence[EnvFn], backend: Any, **keywords: Any) -> tuple[Any, list[Any]]:
    """Environments that are all made by the first function, as in a race, and their actions."""
    make = functools.partial(_puffer_env, env_fns[0])
    num_envs = len(env_fns)
    envs = load("pufferlib.vector").make(make, num_envs=num_envs, backend=backend, **keywords)
    space = batch_space(envs.single_action_space, num_envs)
    actions = [batch.astype(envs.single_action_space.dtype) for batch in sample_actions(space)]
    return SendAndReceive(envs, num_envs), actions


def _puffer_env(env_fn: EnvFn, buf: Any = None, seed: int = 0) -> Any:
    return load("pufferlib.emulation").GymnasiumPufferEnv(env_creator=env_fn, buf=buf, seed=seed)


def _divisor(number: int, most: int) -> int:
    """The largest divisor of ``number`` that is at most ``most``."""
    return next(each for each in range(most, 0, -1) if number % each == 0)
