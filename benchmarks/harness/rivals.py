"""The vector environments of other packages as contenders, where the packages are installed.

PufferLib's vectorization: all in the caller's process, or in worker processes. A step is ``send``
with a batch of actions that was sampled before, and ``recv``, as its trainer calls them. Each
environment is in ``GymnasiumPufferEnv``, without which PufferLib steps none; it resets in the step
after the end of an episode, which counts as a step.

Stable-Baselines3's vector environments: all in the caller's process, or a process for each. A step
is ``VecEnv.step`` with a batch of actions that was sampled before, as its algorithms call it: the
environments' steps, a copy of the observations, rewards in ``float32`` and a list of infos. It
resets an environment in the step that ends its episode. Most other contenders count the reset as a
step; CartPole's episodes have some 22 steps with random actions, so these steps do up to a
twentieth more.

TorchRL's ``ParallelEnv``: a process for each environment. A step is ``step_and_maybe_reset``, which
its collectors call, with a batch of actions that was sampled before: an action is an ``int64``, not
a row of zeros and a one. Results are in a ``TensorDict`` in shared memory. An environment whose
episode is over is reset in the same call. Most other contenders count the reset as a step;
CartPole's episodes have some 22 steps with random actions, so these steps do up to a twentieth
more.
"""

from __future__ import annotations

import functools
import multiprocessing
import time
import warnings
from typing import TYPE_CHECKING, Any, Literal, get_args

import gymnasium as gym
from gymnasium.vector.utils import batch_space

from benchmarks.harness.runners import stepping
from cartwheel._cartwheel import usable_cpus
from cartwheel.bench.contenders import Contender
from cartwheel.bench.envpool import load_package, why_not_envpool, why_not_loaded
from cartwheel.bench.runner import VectorRunner, fastest_of, sample_actions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cartwheel._internal.arguments import EnvFn


def quickest_start_method() -> str:
    """The start method of processes, whose start is not timed: steps do not depend on it.

    A forked process shares what is imported, such as torch, which each of many others would import
    for seconds.
    """
    methods = multiprocessing.get_all_start_methods()
    return "fork" if "fork" in methods else methods[0]


IDLE_S = 0.6
"""PufferLib's workers spin for half a second after a step; no other contender is timed then."""


def pufferlib_serial(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """``Serial``, which steps the environments in turn."""
    return _puffer_runner(env_fns, load_package("pufferlib.vector").Serial)


def pufferlib_processes(env_fns: Sequence[EnvFn], num_workers: int | None = None) -> VectorRunner:
    """``Multiprocessing``, with ``num_workers``, or with as many as make it fastest here and now.

    Workers wait actively, and so does their caller. So the choices are a worker for each core, and
    a core left for the caller; the note of the runner names the fastest. The number of environments
    is a multiple of the number of workers, so that can be fewer.
    """
    num_envs, cores = len(env_fns), usable_cpus()
    choices = [num_workers] if num_workers else [cores, max(1, cores - 1)]
    runners = {
        number: _puffer_runner(
            env_fns,
            load_package("pufferlib.vector").Multiprocessing,
            kind=PufferRunner,
            num_workers=number,
            overwork=True,  # or it refuses to have more workers than cores without SMT
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


class PufferRunner(VectorRunner):
    """Lets workers that wait actively fall asleep before another contender runs."""

    def run(self, seconds: float) -> float:
        """As :meth:`VectorRunner.run`, with a pause behind it."""
        rate = super().run(seconds)
        time.sleep(IDLE_S)
        return rate


def puffer_stepping(
    envs: Any, num_envs: int, actions: list[Any], kind: type[VectorRunner] = VectorRunner
) -> VectorRunner:
    """A runner of ``send`` and ``recv``, as PufferLib's trainer calls them."""
    envs.async_reset(0)
    envs.recv()

    def step(actions: Any) -> Any:
        envs.send(actions)
        return envs.recv()

    return stepping(num_envs, step, actions, envs.close, kind=kind)


def _puffer_runner(
    env_fns: Sequence[EnvFn], backend: Any, kind: type[VectorRunner] = VectorRunner, **keywords: Any
) -> VectorRunner:
    """Steps environments that are all made by the first function, as in a race."""
    make = functools.partial(_puffer_env, env_fns[0])
    num_envs = len(env_fns)
    envs = load_package("pufferlib.vector").make(
        make, num_envs=num_envs, backend=backend, **keywords
    )
    space = batch_space(envs.single_action_space, num_envs)
    actions = [batch.astype(envs.single_action_space.dtype) for batch in sample_actions(space)]
    return puffer_stepping(envs, num_envs, actions, kind)


def _puffer_env(env_fn: EnvFn, buf: Any = None, seed: int = 0) -> Any:
    return load_package("pufferlib.emulation").GymnasiumPufferEnv(
        env_creator=env_fn, buf=buf, seed=seed
    )


def _divisor(number: int, limit: int) -> int:
    """The largest divisor of ``number`` that is at most ``limit``."""
    return next(each for each in range(limit, 0, -1) if number % each == 0)


def sb3_dummy(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """``DummyVecEnv``, which steps the environments in turn."""
    return _sb3_runner(_sb3_classes().DummyVecEnv(list(env_fns)))


def sb3_subproc(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """``SubprocVecEnv``, which has a process for each environment."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork of a process with threads
        method = quickest_start_method()
        return _sb3_runner(_sb3_classes().SubprocVecEnv(list(env_fns), start_method=method))


def _sb3_runner(envs: Any) -> VectorRunner:
    envs.seed(0)
    envs.reset()
    return VectorRunner(envs, sample_actions(batch_space(envs.action_space, envs.num_envs)))


def _sb3_classes() -> Any:
    return load_package("stable_baselines3.common.vec_env")


def torchrl_parallel(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """``ParallelEnv`` of environments that are all made by the first function, as in a race."""
    torch, module = load_package("torch"), load_package("torchrl.envs")
    num_threads, num_envs = torch.get_num_threads(), len(env_fns)
    make = functools.partial(_torchrl_env, env_fns[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fork of a process with threads; its own deprecations
        envs = module.ParallelEnv(num_envs, make, mp_start_method=quickest_start_method())
        state = envs.reset()
    torch.set_num_threads(num_threads)  # `ParallelEnv` changes it for the whole program

    def step(actions: Any) -> Any:
        nonlocal state
        state["action"] = actions
        result, state = envs.step_and_maybe_reset(state)
        return result

    space = batch_space(_torchrl_action_space(env_fns[0]), num_envs)
    actions = [torch.as_tensor(batch) for batch in sample_actions(space)]
    return stepping(num_envs, step, actions, envs.close)


def _torchrl_env(env_fn: EnvFn) -> Any:
    return load_package("torchrl.envs").GymWrapper(env_fn(), categorical_action_encoding=True)


def _torchrl_action_space(env_fn: EnvFn) -> Any:
    env = env_fn()
    env.close()
    return env.action_space


Rival = Literal["sb3", "pufferlib", "torchrl", "envpool"]
RIVALS: tuple[Rival, ...] = get_args(Rival)
"""In the order in which they are built: those that fork before the one that has threads."""
WHY_NOT: dict[Rival, Callable[[], str | None]] = {
    "sb3": functools.partial(
        why_not_loaded, "stable_baselines3", ": pip install stable-baselines3"
    ),
    "pufferlib": functools.partial(why_not_loaded, "pufferlib"),
    "torchrl": functools.partial(why_not_loaded, "torchrl", ": pip install torchrl"),
}
"""For each package, why it cannot take part; ``None`` when it can."""
SERIAL = (Contender("sb3 dummy", sb3_dummy), Contender("pufferlib serial", pufferlib_serial))
SB3_SUBPROC = Contender("sb3 subproc", sb3_subproc)
TORCHRL = Contender("torchrl parallel", torchrl_parallel)
PUFFERLIB = Contender("pufferlib workers", pufferlib_processes)
ONE_PROCESS_EACH = (SB3_SUBPROC.name, TORCHRL.name)
"""Those that start a process for each environment, as Gymnasium's ``AsyncVectorEnv`` does."""


def why_not(rival: Rival, env: gym.Env[Any, Any], native_id: str | None) -> str | None:
    """Why ``rival`` cannot take part; ``None`` when it can.

    Args:
        rival: A package.
        env: One of the environments of the race; closed or not.
        native_id: That of the same environments in Rust, without a namespace, if there are any.
    """
    if rival == "envpool":
        if native_id is None:
            return "envpool is raced where there is a native environment"
        return why_not_envpool(native_id)
    for name, space in (("observation", env.observation_space), ("action", env.action_space)):
        if not _is_one_array(space):
            return f"{rival} is raced with spaces of one array: the {name} space is {space}"
    return WHY_NOT[rival]()


def python_rivals(rivals: Sequence[Rival]) -> Iterator[Contender]:
    """The contenders of these packages that step environments in Python."""
    for serial in SERIAL:
        if serial.name.partition(" ")[0] in rivals:
            yield serial
    for contender in (SB3_SUBPROC, PUFFERLIB, TORCHRL):
        if contender.name.partition(" ")[0] in rivals:
            yield contender


def pufferlib_with(num_workers: int) -> Contender:
    """PufferLib's processes, so many of them."""
    return Contender(
        PUFFERLIB.name, functools.partial(pufferlib_processes, num_workers=num_workers)
    )


def _is_one_array(space: gym.Space[Any]) -> bool:
    """Whether all rivals have such a space, with the same values."""
    kinds = (gym.spaces.Box, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
    if isinstance(space, gym.spaces.Discrete):
        return bool(space.start == 0)
    return isinstance(space, kinds)
