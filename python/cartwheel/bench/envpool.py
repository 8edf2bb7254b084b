"""EnvPool beside cartwheel's native environments: the same loop, the threads that suit it best."""

from __future__ import annotations

import importlib
import statistics
import warnings
from typing import Any

from gymnasium.vector.utils import batch_space

from cartwheel._cartwheel import usable_cpus
from cartwheel.bench.runner import SendRecvRunner, VectorRunner, sample_actions

TRIALS = 3
TRIAL_S = 0.1


def why_not(env_id: str) -> str | None:
    """Why EnvPool cannot take part with ``env_id``; ``None`` when it can."""
    try:
        envpool = _envpool()
    except (ImportError, OSError) as error:  # it needs libraries of the system and files of its own
        if isinstance(error, ModuleNotFoundError) and error.name == "envpool":
            return "envpool is not installed: pip install envpool"
        return f"envpool cannot be imported: {error}"
    return None if env_id in envpool.list_all_envs() else f"envpool has no {env_id}"


def fastest(
    env_id: str, num_envs: int, batch_size: int | None = None
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
    """
    cores = usable_cpus()
    choices = sorted({2**power for power in range(cores.bit_length())} | {cores})
    package = _envpool()
    runners = {
        threads: pool_runner(package, env_id, num_envs, batch_size, num_threads=threads)
        for threads in choices
    }
    for runner in runners.values():
        runner.run(0)  # one step, to know what a step costs
    rates: dict[int, list[float]] = {threads: [] for threads in choices}
    for _ in range(TRIALS):
        for threads, runner in runners.items():
            rates[threads].append(runner.run(TRIAL_S))
    best = max(choices, key=lambda threads: statistics.median(rates[threads]))
    runners[best].note = f"{best} of {', '.join(map(str, choices))} threads, the fastest"
    return runners[best]


def pool_runner(
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


def _envpool() -> Any:
    """The package, which takes seconds to load."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("envpool")
