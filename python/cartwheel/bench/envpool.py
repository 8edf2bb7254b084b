"""EnvPool beside cartwheel's native environments: the same loop, the threads that suit it best."""

from __future__ import annotations

import importlib
import statistics
import warnings
from typing import Any

from gymnasium.vector.utils import batch_space

from cartwheel import _cartwheel
from cartwheel.bench.runner import VectorRunner, sample_actions

TRIALS = 3
TRIAL_S = 0.1


def why_not(env_id: str) -> str | None:
    """Why EnvPool cannot take part with ``env_id``; ``None`` when it can."""
    try:
        envpool = _envpool()
    except (ImportError, OSError) as error:  # it needs libraries of the system and files of its own
        if isinstance(error, ModuleNotFoundError) and error.name == "envpool":
            return "envpool is not installed; it comes with: pip install 'cartwheel[envpool]'"
        return f"envpool cannot be imported: {error}"
    return None if env_id in envpool.list_all_envs() else f"envpool has no {env_id}"


def fastest(env_id: str, num_envs: int) -> VectorRunner:
    """EnvPool with as many threads as make it fastest here and now.

    Its own default is one thread for each environment, up to the number of cores, which for cheap
    environments can be slower than a single one. So 1, 2, 4 … threads up to the cores are tried in
    alternating rounds, and the note of the runner says who won.
    """
    cores = _cartwheel.usable_cpus()
    choices = sorted({2**power for power in range(cores.bit_length())} | {cores})
    runners = {threads: _runner(env_id, num_envs, threads) for threads in choices}
    for runner in runners.values():
        runner.run(0)  # one step, to know what a step costs
    rates: dict[int, list[float]] = {threads: [] for threads in choices}
    for _ in range(TRIALS):
        for threads, runner in runners.items():
            rates[threads].append(runner.run(TRIAL_S))
    best = max(choices, key=lambda threads: statistics.median(rates[threads]))
    runners[best].note = f"{best} of {', '.join(map(str, choices))} threads, the fastest"
    return runners[best]


def _runner(env_id: str, num_envs: int, threads: int) -> VectorRunner:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its spaces have bounds of another precision
        envs = _envpool().make_gymnasium(env_id, num_envs=num_envs, num_threads=threads, seed=0)
        envs.reset()
    dtype = envs.spec.action_array_spec["action"].dtype  # any other is cast in every step
    actions = sample_actions(batch_space(envs.single_action_space, num_envs))
    return VectorRunner(envs, [batch.astype(dtype) for batch in actions])


def _envpool() -> Any:
    """The package, which takes seconds to load."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("envpool")
