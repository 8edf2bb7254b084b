"""Rollouts of workers equal those of local collectors, and say which weights made them."""

import importlib
from functools import partial
from itertools import islice

import numpy as np
import pytest

import cartwheel
from cartwheel._cartwheel import usable_cpus
from tests.support.collecting import assert_same
from tests.support.comparison import assert_identical
from tests.support.environments import transcripts
from tests.support.ray_sessions import Leaning, cart_poles, rows_of, twin

pytestmark = pytest.mark.ray
MODES = ["next_step", "same_step", "disabled"]
UPRIGHT = [0.0, 0.02, -0.01]


def python_cart_poles(mode):
    return cartwheel.make_vec("CartPole-v1", 2, executor="process", autoreset_mode=mode)


def assert_same_rows(rollout, first, other):
    """Some rows of a rollout have the bits of another rollout."""
    last = first + other.num_envs
    assert_identical(rows_of(rollout, first, last), rows_of(other, 0, other.num_envs))


@pytest.mark.parametrize("mode", MODES)
def test_one_worker_collects_what_a_collector_collects(workers, mode):
    make_env = cart_poles(autoreset_mode=mode)
    published = iter(UPRIGHT)
    remote = workers(make_env, Leaning, 1, 40, seed=7, weights=lambda: next(published))
    for version, expected in enumerate(twin(make_env, 40, seed=7, weights=UPRIGHT), 1):
        rollout = remote.collect()
        assert_same(rollout, expected)
        assert (rollout.version, rollout.workers) == (version, (0,))
        rollout.rewards[:] = 0  # they are the caller's


@pytest.mark.parametrize("length", [{"num_steps": 30}, {"until": "all_done"}, {"num_episodes": 5}])
def test_two_workers_collect_what_two_collectors_collect(workers, length):
    make_env = cart_poles(autoreset_mode="same_step")
    remote = workers(make_env, Leaning, 2, seed=11, **length)
    length = {"num_steps": None, **length}
    twins = [twin(make_env, seed=seed, weights=[0.0] * 3, **length) for seed in (11, 14)]
    for expected in zip(*twins, strict=True):
        rollout = remote.collect()
        assert rollout.workers == (0, 1)
        for first, other in zip((0, 3), expected, strict=True):
            steps = other.num_steps
            rest = rows_of(rollout, first, first + 3)
            assert not rest["valid"][steps:].any()
            assert not rest["rewards"][steps:].any()
            assert (rest["observations"][steps:] == other.observations[-1]).all()
            assert_same_rows(cut(rollout, steps), first, other)


def cut(rollout, num_steps):
    """The first steps of a rollout."""
    fields = {name: getattr(rollout, name) for name in vars(rollout) if not name.startswith("_")}
    for name in ("actions", "rewards", "terminated", "truncated", "valid"):
        fields[name] = fields[name][:num_steps]
    for name in ("observations", "is_first"):
        fields[name] = fields[name][: num_steps + 1]
    fields["extras"] = {key: extra[:num_steps] for key, extra in rollout.extras.items()}
    return type(rollout)(**fields)


@pytest.mark.parametrize("length", [{"num_steps": 30}, {"until": "all_done"}])
def test_workers_together_collect_what_one_collector_of_all_rows_collects(workers, length):
    remote = workers(cart_poles(2), Leaning, 3, seed=5, **length)
    (expected,) = twin(cart_poles(6), seed=5, weights=[0.0], **{"num_steps": None, **length})
    rollout = remote.collect()
    for name in ("observations", "rewards", "terminated", "truncated", "valid", "is_first"):
        assert_identical(getattr(rollout, name), getattr(expected, name))
    assert_identical(rollout.episodes().returns, expected.episodes().returns)


def test_environments_in_processes_of_a_worker_collect_the_same(workers):
    make_env = partial(python_cart_poles, "disabled")
    remote = workers(make_env, Leaning, 1, 25, seed=3)
    (expected,) = twin(make_env, 25, seed=3, weights=[0.0])
    assert_same(remote.collect(), expected)


def test_nested_observations_and_actions_are_joined(workers):
    def make_env():
        from tests.support.environments import NestedEnv

        return cartwheel.VectorEnv([NestedEnv] * 2, executor="inline")

    def make_policy():
        from gymnasium.vector.utils import batch_space

        from tests.support.environments import NestedEnv

        space = batch_space(NestedEnv().action_space, 2)
        space.seed(1)
        action = space.sample()
        return lambda _: action

    remote = workers(make_env, make_policy, 2, 5, seed=1)
    envs = make_env()
    expected = cartwheel.Collector(envs, make_policy(), 5, seed=1).collect()
    envs.close()
    rollout = remote.collect()
    halves = cartwheel._internal.nested.at(rollout.actions, (slice(None), slice(2)))
    assert_identical(halves, expected.actions)
    halves = cartwheel._internal.nested.at(rollout.observations, (slice(None), slice(2)))
    assert_identical(halves, expected.observations)


class Weights:
    """Weights that count how often they are pickled."""

    pickled = 0

    def __reduce__(self):
        type(self).pickled += 1
        return float, ()


def test_weights_are_pickled_once_a_version_and_loaded_once_a_worker(workers):
    def make_policy():
        class Counting(Leaning):
            loaded = 0

            def set_weights(self, _):
                self.loaded += 1

            def __call__(self, observations):
                actions, extras = super().__call__(observations)
                return actions, {**extras, "loaded": np.full(len(actions), self.loaded)}

        return Counting()

    remote = workers(cart_poles(), make_policy, 2, 4, in_flight=1)
    Weights.pickled = 0
    assert [remote.update(Weights()) for _ in range(3)] == [1, 2, 3]
    assert Weights.pickled == 3
    for rollout in islice(remote.rollouts(), 10):
        assert rollout.version == 3
        assert (rollout.extras["loaded"] == 1).all()
    assert Weights.pickled == 3


def test_rollouts_say_which_weights_made_them(workers):
    remote = workers(cart_poles(), Leaning, 2, 10, seed=1, in_flight=2)
    versions = {0: np.float32(0.0)}
    stream = remote.rollouts()
    for _ in range(30):
        rollout = next(stream)
        tilt = rollout.observations[:-1, :, 2]
        assert_identical(rollout.extras["tilt"], tilt - versions[rollout.version])
        weights = np.float32(len(versions) / 100)
        versions[remote.update(weights)] = weights
    assert len({rollout.version for rollout in islice(stream, 4)}) > 1


def test_every_worker_is_ahead_by_as_many_rollouts_as_allowed(workers):
    remote = workers(cart_poles(), Leaning, 2, 10, seed=1, in_flight=3)
    for version, _ in enumerate(islice(remote.rollouts(), 12), 1):
        assert remote.stats().in_flight.tolist() == [3, 3]
        assert remote.update(np.float32(0)) == version


def test_the_stream_of_a_worker_has_no_gap_and_equals_its_twin(workers):
    remote = workers(cart_poles(), Leaning, 2, 10, seed=1)
    seen = {0: [], 1: []}
    for rollout in islice(remote.rollouts(), 7):
        seen[rollout.workers[0]].append(rollout)
    for rollout in islice(remote.rollouts(), 7):  # the rollouts in flight are not lost
        seen[rollout.workers[0]].append(rollout)
    for worker, rollouts in seen.items():
        twins = twin(cart_poles(), 10, seed=1 + 3 * worker, weights=[0.0] * len(rollouts))
        for rollout, expected in zip(rollouts, twins, strict=True):
            assert_same(rollout, expected)


def test_collect_drops_what_older_weights_made(workers):
    remote = workers(cart_poles(), Leaning, 2, 10, seed=1, in_flight=2)
    next(remote.rollouts())
    remote.update(np.float32(0.5))
    rollout = remote.collect()
    assert rollout.version == 1
    assert_identical(rollout.extras["tilt"], rollout.observations[:-1, :, 2] - np.float32(0.5))
    assert remote.stats().dropped.tolist() == [2, 2]
    assert remote.collect().version == 1  # no new weights: nothing to wait for


def test_arrays_come_out_of_the_object_store_without_a_copy(workers):
    remote = workers(cart_poles(64), Leaning, 1, 200, in_flight=1)
    rollout = next(remote.rollouts())
    assert rollout.nbytes > 200 * 64 * 4 * 4
    for array in (rollout.observations, rollout.rewards, rollout.extras["tilt"]):
        assert not array.flags.writeable
        assert not array.flags.owndata
        assert array.flags.c_contiguous


def test_estimates_of_joined_rollouts_equal_those_of_their_parts(workers):
    remote = workers(cart_poles(), Leaning, 2, 50, seed=2)
    rollout = remote.collect()
    rollout.set_values(rollout.value_inputs()[:, 0].copy())
    advantages, returns = rollout.gae(0.99, 0.95)
    for first, seed in ((0, 2), (3, 5)):
        (part,) = twin(cart_poles(), 50, seed=seed, weights=[0.0])
        part.set_values(part.value_inputs()[:, 0].copy())
        expected = part.gae(0.99, 0.95)
        assert_identical(advantages[:, first : first + 3], expected[0])
        assert_identical(returns[:, first : first + 3], expected[1])


def test_counts_are_those_of_the_rollouts(workers):
    remote = workers(cart_poles(), Leaning, 2, 10, seed=1)
    rollouts = [remote.collect() for _ in range(3)]
    stats = remote.stats()
    assert stats.rollouts.tolist() == [3, 3]
    assert stats.steps.sum() == sum(int(rollout.valid.sum()) for rollout in rollouts)
    assert stats.bytes.sum() == sum(rollout.nbytes for rollout in rollouts)
    assert [envs.steps.tolist() for envs in stats.envs] == [[30] * 3] * 2
    assert stats.restarts.tolist() == stats.dropped.tolist() == [0, 0]
    assert 0 < stats.waited < stats.elapsed
    assert "2 workers" in repr(stats)
    assert "6 rollouts" in repr(stats)


def test_other_vector_environments_have_rollouts_too(workers):
    def make_env():
        from gymnasium.vector import SyncVectorEnv

        return SyncVectorEnv(transcripts(3, 4))

    def make_policy():
        return lambda observations: observations[:, 0].astype(np.int64)

    rollout = workers(make_env, make_policy, 1, 6).collect()
    envs = make_env()
    assert_same(rollout, cartwheel.Collector(envs, make_policy(), 6).collect())
    envs.close()


def test_a_worker_has_the_threads_that_ray_assigned(workers):
    def make_policy():
        info = importlib.import_module("cartwheel.ray").worker_info()
        kept = [info.index, info.num_workers, info.num_cpus, info.seed, usable_cpus()]
        return lambda observations: (
            np.zeros(len(observations), np.int64),
            {"info": np.full((len(observations), 5), kept)},
        )

    assert importlib.import_module("cartwheel.ray").worker_info() is None
    for cpus, threads in ((0.5, 1), (1, 1), (2, 2)):
        rollout = workers(cart_poles(2), make_policy, 1, 1, seed=9, num_cpus=cpus).collect()
        expected = [0, 1, threads, 9, min(threads, usable_cpus())]
        assert rollout.extras["info"][0, 0].tolist() == expected
