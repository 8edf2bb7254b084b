"""Wrong calls say what to change, at once; an error in a worker is the worker's own."""

import _thread
import contextlib
import copy
import importlib
import pickle
import subprocess
import sys
import threading
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, NameNotFound

import cartwheel
from tests.support.collecting import assert_same
from tests.support.ray_sessions import CPUS, Leaning, cart_poles, twin

pytestmark = pytest.mark.ray


def lean():
    return lambda observations: (observations[:, 2] > 0).astype(np.int64)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"num_workers": 0}, ValueError, "`num_workers` must be a positive integer, got 0"),
        ({"num_workers": True}, ValueError, "`num_workers` must be a positive integer, got True"),
        ({"in_flight": 0}, ValueError, "`in_flight` must be a positive integer"),
        ({"seed": -1}, ValueError, "`seed` must be an integer from 0 on, got -1"),
        ({"num_steps": 0}, ValueError, "`num_steps` must be an integer from 1 to 65534, got 0"),
        ({"options": 3}, TypeError, "`options` must be a dictionary"),
        ({"actor_options": 3}, TypeError, "`actor_options` must be a dictionary"),
        ({"num_cpus": "2"}, ValueError, "`num_cpus` must be a number of processors"),
        ({"make_env": 3}, TypeError, "`make_env` must be a function without arguments"),
        ({"make_env": lambda rank: rank}, TypeError, r"takes \(rank\)"),
        ({"policy": lambda observations: observations}, TypeError, r"takes \(observations\)"),
        ({"weights": {}}, TypeError, "`weights` must be a function without arguments"),
        ({"actor_options": {"max_restarts": 1}}, ValueError, "workers are restarted forever"),
        ({"actor_options": {"num_cpus": 1}}, ValueError, "pass num_cpus= to RolloutWorkers"),
        ({"actor_options": [1]}, TypeError, "`actor_options` must be a dictionary or None"),
        ({"start_timeout": "soon"}, TypeError, "`start_timeout` must be a number of seconds"),
        ({"start_timeout": -1}, ValueError, "`start_timeout` must not be negative, got -1"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_starts(monkeypatch, change, error, words):
    ray = importlib.import_module("ray")
    rooms = importlib.import_module("cartwheel.ray")
    monkeypatch.setattr(ray, "init", lambda: pytest.fail("Ray was started"))
    monkeypatch.setattr(ray, "remote", lambda *_: pytest.fail("an actor was made"))
    right = {"make_env": cart_poles(), "policy": lean, "num_workers": 1, "num_steps": 4}
    with pytest.raises(error, match=words):
        rooms.RolloutWorkers(**{**right, **change})


def raising():
    raise LookupError("no such track")


@pytest.mark.parametrize(
    ("make_env", "policy", "steps", "error", "words"),
    [
        (lambda: gym.make("CartPole-v1"), lean, 4, TypeError, "must return a vector environment"),
        (raising, lean, 4, LookupError, "no such track"),
        (cart_poles(), raising, 4, LookupError, "no such track"),
        (cart_poles(), int, 4, TypeError, "`policy` must be a function of the observations"),
        (cart_poles(), lean, None, ValueError, "a rollout needs a length"),
    ],
)
def test_what_fails_in_a_worker_is_raised_with_the_worker(
    workers, make_env, policy, steps, error, words
):
    with pytest.raises(error, match=words) as raised:
        workers(make_env, policy, 1, steps)
    assert raised.value.__notes__[-1] == "raised in worker 0"


def test_errors_of_all_workers_are_taken_because_ray_prints_the_others(workers, ray, monkeypatch):
    taken, get = [], ray.get
    monkeypatch.setattr(ray, "get", lambda reference: taken.append(reference) or get(reference))
    with pytest.raises(LookupError, match="no such track"):
        workers(raising, lean, 3, 4)
    assert len(set(taken)) == 3


def test_an_id_that_only_the_driver_knows_is_explained(workers):
    gym.register("OnlyHere-v0", entry_point=lambda: None)
    try:
        with pytest.raises(NameNotFound) as raised:
            workers(lambda: gym.make_vec("OnlyHere-v0", 2), lean, 1, 4)
    finally:
        del gym.registry["OnlyHere-v0"]
    assert "register them in `make_env`" in raised.value.__notes__[0]


def test_workers_that_differ_are_refused(workers):
    def make_env():
        worker = importlib.import_module("cartwheel.ray").worker_info()
        return cartwheel.make_vec("cartwheel/CartPole-v1", 2 + worker.index)

    with pytest.raises(ValueError, match="all workers must have the same environments") as raised:
        workers(make_env, lean, 2, 4)
    assert "in worker 1" in str(raised.value)


def test_a_process_that_ends_while_it_starts_is_an_error(workers):
    with pytest.raises(RuntimeError, match="process of worker 0 ended while it made its env"):
        workers(lambda: importlib.import_module("os")._exit(1), lean, 1, 4)


def test_too_few_processors_are_an_error_with_what_there_is(workers):
    words = rf"workers \[0\] of 1 have not started .*'num_cpus': {CPUS + 1}.* has {CPUS} CPU"
    with pytest.raises(TimeoutError, match=words):
        workers(cart_poles(), lean, 1, 4, num_cpus=CPUS + 1, start_timeout=0.5)


def test_weights_need_a_policy_that_takes_them(workers):
    with pytest.raises(TypeError, match=r"`set_weights\(weights\)`; it made 'function'"):
        workers(cart_poles(), lean, 1, 4, weights=dict)
    remote = workers(cart_poles(), lean, 1, 4)
    with pytest.raises(TypeError, match=r"`set_weights\(weights\)`"):
        remote.update({})
    assert remote.policy_version == 0
    assert remote.collect().version == 0


def test_weights_that_cannot_be_pickled_are_refused(workers):
    remote = workers(cart_poles(), Leaning, 1, 4)
    with pytest.raises(TypeError):
        remote.update(threading.Lock())
    assert remote.policy_version == 0
    assert remote.collect().num_steps == 4


def test_workers_are_neither_pickled_nor_copied():
    kind = importlib.import_module("cartwheel.ray").RolloutWorkers
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="RolloutWorkers cannot be pickled or copied"):
            duplicate(kind.__new__(kind))


def test_closed_workers_refuse_every_call(workers):
    with workers(cart_poles(), Leaning, 1, 4) as remote:
        stream = remote.rollouts()
        next(stream)
    for call in (remote.collect, remote.rollouts, lambda: remote.update(0), lambda: next(stream)):
        with pytest.raises(ClosedEnvironmentError):
            call()
    remote.close()


def test_an_error_of_the_policy_is_raised_and_the_same_rollout_goes_on(workers):
    def make_policy():
        class Stumbling(Leaning):
            calls = 0

            def __call__(self, observations):
                self.calls += 1
                if self.calls == 5:
                    raise ArithmeticError("stumbled")
                return super().__call__(observations)

        return Stumbling()

    remote = workers(cart_poles(), make_policy, 2, 10, seed=1)
    for _ in range(2):  # each worker stumbles once
        with pytest.raises(ArithmeticError, match="stumbled"):
            remote.collect()
    rollout = remote.collect()
    (expected,) = twin(cart_poles(6), 10, seed=1, weights=[0.0])
    assert_same(rollout, expected)


def test_ctrl_c_in_a_collect_loses_nothing(workers, gates):
    def make_env():
        return cartwheel.VectorEnv(gates.env_fns(1), executor="inline")

    def make_policy():
        return lambda observations: (observations[:, 0] == 2).astype(np.int64)

    remote = workers(make_env, make_policy, 2, 4)
    timer = threading.Thread(target=lambda: (gates.await_arrival(1), _thread.interrupt_main()))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        remote.collect()
    timer.join()
    gates.open(1)
    rollout = remote.collect()
    assert rollout.observations[:, :, 0].tolist() == [[t, t] for t in range(5)]
    assert remote.stats().rollouts.tolist() == [1, 1]


@pytest.fixture(params=["ask", "receive"])
def _interrupts(request, monkeypatch):
    """A Ctrl-C when Ray has got a call, or has given an answer, and before that is noted."""
    worker_class = importlib.import_module("cartwheel.ray.remote_worker").RemoteWorker

    def interrupted(call):
        def call_and_interrupt(*arguments):
            answer = call(*arguments)
            _thread.interrupt_main()
            return answer

        return call_and_interrupt

    if request.param == "ask":
        call = worker_class._call

        def with_interrupts(worker, name):
            method_of_ray = call(worker, name)
            if name != "collect":
                return method_of_ray
            return SimpleNamespace(remote=interrupted(method_of_ray.remote))

        monkeypatch.setattr(worker_class, "_call", with_interrupts)
    else:
        monkeypatch.setattr(worker_class, "receive", interrupted(worker_class.receive))


@pytest.mark.usefixtures("_interrupts")
def test_ctrl_c_between_a_call_and_its_note_loses_nothing(workers):
    remote = workers(cart_poles(), Leaning, 2, 4, seed=1)
    for _ in range(2):  # each worker is asked once, and each answers once
        with pytest.raises(KeyboardInterrupt):
            remote.collect()
    rollout = remote.collect()
    (expected,) = twin(cart_poles(6), 4, seed=1, weights=[0.0])
    assert_same(rollout, expected)


@pytest.mark.usefixtures("_interrupts")
def test_ctrl_c_before_a_rollout_is_returned_leaves_it_to_the_next_loop(workers):
    remote = workers(cart_poles(), Leaning, 2, 4, seed=1)
    seen, interrupts = {0: [], 1: []}, 0
    while min(map(len, seen.values())) < 3:
        interrupts += 1
        with contextlib.suppress(KeyboardInterrupt):
            for rollout in remote.rollouts():
                seen[rollout.workers[0]].append(rollout)
    assert interrupts >= 6
    for worker, rollouts in seen.items():
        twins = twin(cart_poles(), 4, seed=1 + 3 * worker, weights=[0.0] * len(rollouts))
        for rollout, expected in zip(rollouts, twins, strict=True):
            assert_same(rollout, expected)


def test_closing_does_not_wait_for_a_rollout_that_hangs(workers, gates):
    def make_env():
        return cartwheel.VectorEnv(gates.env_fns(1), executor="process")

    remote = workers(make_env, lambda: lambda _: np.ones(1, int), 1, 4)
    remote._workers[0].ask(0, ())
    gates.await_arrival(1)
    remote.close(grace=0.1)  # the fixtures check that no process is left


def test_a_missing_ray_is_an_error_that_says_how_to_install_it():
    program = "import sys; sys.modules['ray'] = None; import cartwheel.ray"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "ImportError: cartwheel.ray needs ray: pip install 'cartwheel[ray]'" in ended.stderr
