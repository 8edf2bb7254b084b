"""A worker that dies loses its rollouts in flight, and nothing else."""

import os
import signal
from functools import partial

import numpy as np
import pytest

import cartwheel
from tests.support.collecting import assert_same
from tests.support.comparison import assert_identical
from tests.support.processes import wait_until_gone
from tests.support.programs import run_program
from tests.support.ray_sessions import Leaning, cart_poles, twin

pytestmark = pytest.mark.ray


def kill_by_signal(_, remote, worker):
    os.kill(remote.stats().pids[worker], signal.SIGKILL)


def kill_by_ray(ray, remote, worker):
    ray.kill(remote._workers[worker]._actor)


def end_by_ray(ray, remote, worker):
    ray.kill(remote._workers[worker]._actor, no_restart=False)


def end(kill, ray, remote, worker):
    """Kills a worker and waits for the end of its process: Ray only sends a request."""
    pid = remote.stats().pids[worker]
    kill(ray, remote, worker)
    assert not wait_until_gone([pid], 60)


@pytest.mark.parametrize("kill", [kill_by_signal, kill_by_ray, end_by_ray])
def test_others_go_on_and_the_worker_returns_with_the_newest_weights(ray, workers, kill, caplog):
    remote = workers(cart_poles(), Leaning, 2, 10, seed=1)
    upright = [np.float32(number / 50) for number in range(3)]
    first = list(twin(cart_poles(), 10, seed=1, weights=upright[:2]))
    # The worker returns with the seeds that a third worker would have.
    first += twin(cart_poles(), 10, seed=1 + 3 * 2, weights=upright[2:])
    second = list(twin(cart_poles(), 10, seed=1 + 3, weights=upright))
    for number, weights in enumerate(upright):
        if number == 2:
            pids = remote.stats().pids
            end(kill, ray, remote, 0)
        remote.update(weights)
        observations = remote.collect().observations
        assert_identical(observations[:, :3], first[number].observations)
        assert_identical(observations[:, 3:], second[number].observations)
    stats = remote.stats()
    assert stats.restarts.tolist() == [1, 0]
    assert stats.pids[0] != pids[0]
    assert stats.pids[1] == pids[1]
    assert "rollout worker 0 died and is restarted" in caplog.text


def gated(gates):
    return cartwheel.VectorEnv(gates.env_fns(1), executor="inline")


class Choosing:
    """A policy whose weights are its action."""

    action = 0

    def set_weights(self, weights):
        self.action = weights

    def __call__(self, observations):
        return np.full(len(observations), self.action)


@pytest.mark.parametrize("kill", [kill_by_signal, kill_by_ray])
def test_a_worker_that_dies_in_a_rollout_loses_only_this_rollout(ray, workers, kill, gates):
    remote = workers(partial(gated, gates), Choosing, 2, 4, in_flight=1)
    remote.update(1)  # every step waits at gate 1
    stream = remote.rollouts()
    for worker in remote._workers:
        worker.ask(1, remote._weights)
    gates.await_arrival(1)
    end(kill, ray, remote, 1)
    remote.update(0)
    gates.open(1)
    versions = {0: [], 1: []}
    while not versions[1]:
        rollout = next(stream)
        assert rollout.num_steps == 4
        versions[rollout.workers[0]].append(rollout.version)
    assert versions[0][0] == 1  # its rollout of the older weights was not lost
    assert versions[1] == [2]
    assert remote.stats().restarts.tolist() == [0, 1]


def test_a_worker_that_dies_in_every_rollout_is_given_up(ray, workers):
    def make_policy():
        return lambda _: os._exit(1)

    remote = workers(cart_poles(), make_policy, 1, 4)
    with pytest.raises(ray.exceptions.RayActorError) as raised:
        remote.collect()
    assert raised.value.__notes__ == ["worker 0 died 4 times without a rollout"]
    assert remote.stats().restarts.tolist() == [4]


@pytest.mark.parametrize("wait", [False, True])
def test_a_worker_that_dies_between_two_calls_is_restarted(ray, workers, wait):
    remote = workers(cart_poles(), Leaning, 1, 10, seed=1)
    first = remote.collect()
    end(kill_by_signal, ray, remote, 0)
    if wait:  # until Ray has restarted the process, which has made nothing yet
        actor = remote._workers[0]._actor
        ray.get(actor.__ray_ready__.options(max_task_retries=-1).remote())
    rollout = remote.collect()
    (expected,) = twin(cart_poles(), 10, seed=1 + 3, weights=[0.0])
    assert_same(rollout, expected)
    assert not np.array_equal(first.observations, rollout.observations)
    assert remote.stats().restarts.tolist() == [1]


def test_workers_move_when_nodes_leave_and_come():
    facts = run_program("ray_nodes")
    assert facts == {
        "nodes_of_workers": 2,
        "rollouts_of": [0] * 5,
        "joined_of": [0, 1],
        "restarts": [0, 1],
        "is_on_the_new_node": True,
        "after_the_shutdown": "the workers ended when Ray was shut down.",
    }
