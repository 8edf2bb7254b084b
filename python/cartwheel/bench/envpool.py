"""EnvPool as a contender where it is installed, with the number of threads that suits it best."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from gymnasium.vector.utils import batch_space

from cartwheel._cartwheel import usable_cpus
from cartwheel.bench.runner import SendRecvRunner, VectorRunner, fastest_of, sample_actions


def load_package(package: str) -> Any:
    """Imports ``package``, which may take seconds and warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(package)


def why_not_loaded(package: str, hint: str = "") -> str | None:
    """Returns why ``package`` cannot be imported; ``None`` if it can.

    Args:
        package: The name by which it is imported.
        hint: How to install it, for the message.
    """
    try:
        load_package(package)
    except (ImportError, OSError) as error:  # such as a library of the system that it needs
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            return f"{package} is not installed{hint}"
        return f"{package} cannot be imported: {error}"
    return None


def why_not_envpool(env_id: str) -> str | None:
    """Returns why EnvPool cannot take part with ``env_id``; ``None`` if it can."""
    reason = why_not_loaded("envpool", ": pip install envpool")
    if reason is not None:
        return reason
    return None if env_id in load_package("envpool").list_all_envs() else f"envpool has no {env_id}"


def fastest_envpool(
    env_id: str, num_envs: int, batch_size: int | None = None, num_threads: int | None = None
) -> VectorRunner | SendRecvRunner:
    """Makes EnvPool with the number of threads with which it is fastest here and now.

    Its own default is one thread for each environment, up to the number of cores, which for cheap
    environments can be slower than a single one. So 1, 2, 4 … threads up to the cores are tried in
    alternating rounds, and the note of the runner names the fastest.

    Args:
        env_id: One of its tasks.
        num_envs: Number of environments.
        batch_size: Rows of a batch, which are received in the order of completion; by default all
            rows are stepped at once.
        num_threads: The number of threads; no other is tried.
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
    """Makes a pool of ``package``, EnvPool or :mod:`cartwheel.envpool`, with its own actions."""
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
