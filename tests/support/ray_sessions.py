"""One cluster of Ray for the tests of a process, and what workers make in it."""

import contextlib
import importlib
import logging
import os
from pathlib import Path

import numpy as np

import cartwheel
from tests.support.collecting import ARRAYS
from tests.support.processes import descendants, wait_until_gone

#: Processors that the cluster says it has; it does not look at the machine.
CPUS = 4


def started():
    """Ray's module, after the start of a cluster that lives as long as this process."""
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # without it, every actor warns
    ray = importlib.import_module("ray")
    if not ray.is_initialized():
        ray.init(
            address="local",
            num_cpus=CPUS,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    return ray


def actors_left():
    """The process ids of rollout workers that are still alive, after waiting for their end."""
    return wait_until_gone(_actors(), 30)


def _actors():
    found = set()
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::RolloutActor"):
                found.add(pid)
    return found


class Leaning:
    """A policy that treats rows alone; its weights are where it thinks that a pole is upright."""

    def __init__(self):
        self.upright = np.float32(0.0)

    def set_weights(self, weights):
        self.upright = weights

    def __call__(self, observations):
        tilt = observations[:, 2]
        return (tilt > self.upright).astype(np.int64), {"tilt": tilt - self.upright}


def cart_poles(num_envs=3, **keywords):
    """A function that makes native environments in a worker."""
    return lambda: cartwheel.make_vec("CartPole-v1", num_envs, **keywords)


def twin(make_env, num_steps, *, seed, weights=(), **keywords):
    """The rollouts of a local collector, one for each of ``weights``."""
    envs, policy = make_env(), Leaning()
    collector = cartwheel.Collector(envs, policy, num_steps, seed=seed, **keywords)
    for upright in weights:
        policy.set_weights(upright)
        yield collector.collect()
    envs.close()


def rows_of(rollout, first, last):
    """The arrays of some environments of a rollout, as `assert_same_rows` compares them."""
    chosen = {}
    for name in ARRAYS:
        if name not in ("final_observations", "final_index", "extras"):
            chosen[name] = getattr(rollout, name)[:, first:last]
    own = (rollout.final_index[:, 1] >= first) & (rollout.final_index[:, 1] < last)
    chosen["final_index"] = rollout.final_index[own] - np.array([0, first])
    chosen["final_observations"] = rollout.final_observations[own]
    chosen["extras"] = {key: extra[:, first:last] for key, extra in rollout.extras.items()}
    chosen["carry"] = {name: array[first:last] for name, array in vars(rollout.carry).items()}
    return chosen
