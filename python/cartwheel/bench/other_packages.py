"""Other packages that take part in a race where they are installed; none is needed.

PufferLib's vectorisation: all in the caller's process, or in worker processes. A step is ``send``
with a batch of actions that was sampled before, and ``recv``, as its trainer calls them. Each
environment is in ``GymnasiumPufferEnv``, without which PufferLib steps none; it resets in the step
after the end of an episode, which counts as a step.

EnvPool beside cartwheel's native environments: the same loop, the threads that suit it best.

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
import importlib
import multiprocessing
import time
import warnings
from typing import TYPE_CHECKING, Any

from gymnasium.vector.utils import batch_space

from cartwheel._cartwheel import usable_cpus
from cartwheel.bench.runner import SendRecvRunner, VectorRunner, fastest_of, sample_actions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel._internal.arguments import EnvFn


def load_package(package: str) -> Any:
    """Imports ``package``, which may take seconds and warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(package)


def why_not_loaded(package: str, hint: str = "") -> str | None:
    """Why ``package`` cannot be imported; ``None`` if it can.

    Args:
        package: The name by which it is imported.
        hint: How to install it, after the words that it is not.
    """
    try:
        load_package(package)
    except (ImportError, OSError) as error:  # such as a library of the system that it needs
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            return f"{package} is not installed{hint}"
        return f"{package} cannot be imported: {error}"
    return None


def quickest_start_method() -> str:
    """How contenders start processes that no clock times: steps do not depend on it.

    A forked process shares what is imported, such as torch, which each of many others would import
    for seconds.
    """
    methods = multiprocessing.get_all_start_methods()
    return "fork" if "fork" in methods else methods[0]


IDLE_S = 0.6
"""Its workers wait actively for half a second after a step, in which nobody else is timed."""


def why_not_pufferlib() -> str | None:
    """Why PufferLib cannot take part; ``None`` when it can."""
    return why_not_loaded("pufferlib")


def pufferlib_serial(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """``Serial``, which steps the environments in turn."""
    return VectorRunner(*_puffer_runner(env_fns, load_package("pufferlib.vector").Serial))


def pufferlib_processes(env_fns: Sequence[EnvFn], num_workers: int | None = None) -> VectorRunner:
    """``Multiprocessing``, with ``num_workers``, or with as many as make it fastest here and now.

    Workers wait actively, and so does their caller. So the choices are a worker for each core, and
    a core left for the caller; the note of the runner names the fastest. The number of environments
    is a multiple of the number of workers, so that can be fewer.
    """
    num_envs, cores = len(env_fns), usable_cpus()
    choices = [num_workers] if num_workers else [cores, max(1, cores - 1)]
    runners = {
        number: PufferRunner(
            *_puffer_runner(
                env_fns,
                load_package("pufferlib.vector").Multiprocessing,
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


class PufferRunner(VectorRunner):
    """Lets workers that wait actively fall asleep before another contender runs."""

    def run(self, seconds: float) -> float:
        """As :meth:`VectorRunner.run`, with a pause behind it."""
        rate = super().run(seconds)
        time.sleep(IDLE_S)
        return rate


class PufferSendAndReceive:
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


def _puffer_runner(
    env_fns: Sequence[EnvFn], backend: Any, **keywords: Any
) -> tuple[Any, list[Any]]:
    """Environments that are all made by the first function, as in a race, and their actions."""
    make = functools.partial(_puffer_env, env_fns[0])
    num_envs = len(env_fns)
    envs = load_package("pufferlib.vector").make(
        make, num_envs=num_envs, backend=backend, **keywords
    )
    space = batch_space(envs.single_action_space, num_envs)
    actions = [batch.astype(envs.single_action_space.dtype) for batch in sample_actions(space)]
    return PufferSendAndReceive(envs, num_envs), actions


def _puffer_env(env_fn: EnvFn, buf: Any = None, seed: int = 0) -> Any:
    return load_package("pufferlib.emulation").GymnasiumPufferEnv(
        env_creator=env_fn, buf=buf, seed=seed
    )


def _divisor(number: int, most: int) -> int:
    """The largest divisor of ``number`` that is at most ``most``."""
    return next(each for each in range(most, 0, -1) if number % each == 0)


def why_not_envpool(env_id: str) -> str | None:
    """Why EnvPool cannot take part with ``env_id``; ``None`` when it can."""
    reason = why_not_loaded("envpool", ": pip install envpool")
    if reason is not None:
        return reason
    return None if env_id in load_package("envpool").list_all_envs() else f"envpool has no {env_id}"


def fastest_envpool(
    env_id: str, num_envs: int, batch_size: int | None = None, num_threads: int | None = None
) -> VectorRunner | SendRecvRunner:
    """EnvPool with as many threads as make it fastest here and now.

    Its own default is one thread for each environment, up to the number of cores, which for cheap
    environments can be slower than a single one. So 1, 2, 4 … threads up to the cores are tried in
    alternating rounds, and the note of the runner names the fastest.

    Args:
        env_id: One of its tasks.
        num_envs: Number of environments.
        batch_size: Rows of a batch, to be received in the order in which they are done; by default
            all of them are stepped at once.
        num_threads: So many, and no others are tried.
    """
    cores = usable_cpus()
    choices = sorted({2**power for power in range(cores.bit_length())} | {cores})
    if num_threads is not None:
        choices = [num_threads]
    package = load_package("envpool")
    runners = {
        threads: envpool_runner(package, env_id, num_envs, batch_size, num_threads=threads)
        for threads in choices
    }
    best = fastest_of(runners)
    if len(choices) > 1:
        runners[best].note = f"{best} of {', '.join(map(str, choices))} threads, the fastest"
    return runners[best]


def envpool_runner(
    package: Any, env_id: str, num_envs: int, batch_size: int | None = None, **keywords: Any
) -> VectorRunner | SendRecvRunner:
    """A pool of ``package``, EnvPool or :mod:`cartwheel.envpool`, with actions of its own dtype."""
    if batch_size is not None:
        keywords["batch_size"] = batch_size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its spaces have bounds of another precision
        pool = package.make_gymnasium(env_id, num_envs=num_envs, seed=0, **keywords)
        pool.async_reset() if batch_size else pool.reset()
    dtype = pool.single_action_space.dtype
    if hasattr(pool.spec, "action_array_spec"):  # EnvPool casts any other dtype in every step
        dtype = pool.spec.action_array_spec["action"].dtype
    batches = sample_actions(batch_space(pool.single_action_space, batch_size or num_envs))
    actions = [batch.astype(dtype) for batch in batches]
    return SendRecvRunner(pool, actions) if batch_size else VectorRunner(pool, actions)


def why_not_sb3() -> str | None:
    """Why Stable-Baselines3 cannot take part; ``None`` when it can."""
    return why_not_loaded("stable_baselines3", ": pip install stable-baselines3")


def sb3_dummy(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """``DummyVecEnv``, which steps the environments in turn."""
    return _sb3_runner(_sb3_classes().DummyVecEnv(list(env_fns)))


def sb3_subproc(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """``SubprocVecEnv``, which has a process for each environment."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        method = quickest_start_method()
        return _sb3_runner(_sb3_classes().SubprocVecEnv(list(env_fns), start_method=method))


def _sb3_runner(envs: Any) -> VectorRunner:
    envs.seed(0)
    envs.reset()
    return VectorRunner(envs, sample_actions(batch_space(envs.action_space, envs.num_envs)))


def _sb3_classes() -> Any:
    return load_package("stable_baselines3.common.vec_env")


def why_not_torchrl() -> str | None:
    """Why TorchRL cannot take part; ``None`` when it can."""
    return why_not_loaded("torchrl", ": pip install torchrl")


def torchrl_parallel(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """``ParallelEnv`` of environments that are all made by the first function, as in a race."""
    torch, envs = load_package("torch"), load_package("torchrl.envs")
    num_threads = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fork beside threads; what it deprecates itself
        stepped = TorchRLSteps(
            envs.ParallelEnv(
                len(env_fns),
                functools.partial(_torchrl_env, env_fns[0]),
                mp_start_method=quickest_start_method(),
            )
        )
    torch.set_num_threads(num_threads)  # `ParallelEnv` changes it for the whole program
    space = batch_space(_torchrl_action_space(env_fns[0]), len(env_fns))
    actions = [torch.as_tensor(batch) for batch in sample_actions(space)]
    return VectorRunner(stepped, actions)  # type: ignore[arg-type] # all that a runner calls


class TorchRLSteps:
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


def _torchrl_env(env_fn: EnvFn) -> Any:
    return load_package("torchrl.envs").GymWrapper(env_fn(), categorical_action_encoding=True)


def _torchrl_action_space(env_fn: EnvFn) -> Any:
    env = env_fn()
    env.close()
    return env.action_space
