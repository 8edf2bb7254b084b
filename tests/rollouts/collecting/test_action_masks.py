"""Policies get the masks of their rows, and rollouts keep them."""

from contextlib import closing
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete, MultiDiscrete

import cartwheel
from tests.support.masked import MaskedEnv, expected

ORDERS = [
    *({}, {"order": "groups"}, {"order": "free"}),
    *({"order": "free", "standby": 2}, {"order": "free", "columns": 4, "run_ahead": 1}),
]


class Masked:
    """Takes the first allowed action, and checks that masks belong to observations."""

    def __init__(self):
        self.calls = 0

    def __call__(self, observations, action_masks):
        self.calls += 1
        assert action_masks.shape == (len(observations), 4)
        wanted = expected(observations)
        over = action_masks.all(axis=1)
        np.testing.assert_array_equal(action_masks[~over], wanted[~over])
        return action_masks.argmax(axis=1), {"value": np.zeros(len(observations))}


def build(mode, executor="inline", rows=4):
    return cartwheel.VectorEnv([MaskedEnv] * rows, executor=executor, autoreset_mode=mode)


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_rollouts_keep_the_masks_of_their_observations(mode, order):
    if "standby" in order and mode != "disabled":
        pytest.skip("spares need the mode `disabled`")
    with closing(build(mode, rows=6 if "standby" in order else 4)) as envs:
        collector = cartwheel.Collector(envs, Masked(), num_steps=12, seed=1, **order)
        for _ in range(2):
            rollout = collector.collect()
            masks = rollout.extras["action_masks"]
            assert masks.shape == (12, 4, 4)
            assert masks.dtype == np.bool_
            wanted = expected(rollout.observations[:-1]).reshape(masks.shape)
            np.testing.assert_array_equal(masks[rollout.valid], wanted[rollout.valid])
            assert masks[~rollout.valid].all()
            allowed = np.take_along_axis(masks, rollout.actions[..., None], 2)[..., 0]
            assert allowed[rollout.valid].all()
        batch = next(rollout.minibatches(8, seed=1))
        np.testing.assert_array_equal(batch["action_masks"], expected(batch.observations))
        collector.close()


def test_whole_episodes_are_collected_with_masks():
    with closing(build("same_step")) as envs:
        collector = cartwheel.Collector(envs, Masked(), until="all_done", seed=1)
        rollout = collector.collect()
        masks = rollout.extras["action_masks"]
        wanted = expected(rollout.observations[:-1]).reshape(masks.shape)
        np.testing.assert_array_equal(masks[rollout.valid], wanted[rollout.valid])


class StrictEnv(MaskedEnv):
    """Refuses actions that its mask does not allow."""

    def step(self, action):
        taken = gym.spaces.utils.flatten(self.action_space, action).astype(bool)
        assert expected([self.count])[0][taken].all(), (self.count, action)
        return super().step(action)


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize("space", [Discrete(4, start=3), MultiDiscrete([2, 2])], ids=str)
def test_rows_that_rest_while_their_environments_go_on_take_allowed_actions(mode, space):
    make = partial(StrictEnv, action_space=space)
    envs = cartwheel.VectorEnv([make] * 4, executor="inline", autoreset_mode=mode)

    def policy(observations, action_masks):
        masks = action_masks.reshape(len(observations), *space.shape, -1)
        return masks.argmax(axis=-1) + getattr(space, "start", 0)

    with closing(envs):
        whole = cartwheel.Collector(envs, policy, num_episodes=9, seed=1).collect()
        assert whole.terminated.any(axis=0).all()
        around = gym.wrappers.vector.RecordEpisodeStatistics(envs)  # steps all rows
        evaluation = cartwheel.evaluate(around, policy, episodes_per_env=3, seed=1)
        assert evaluation.terminated.all()


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize("order", ["lockstep", "free"])
def test_evaluations_hand_masks_to_the_policy(mode, order):
    policy = Masked()
    with closing(build(mode)) as envs:
        evaluation = cartwheel.evaluate(envs, policy, episodes_per_env=3, seed=1, order=order)
    assert evaluation.lengths.min() >= 2
    assert policy.calls > 5


def test_a_parameter_with_a_default_is_left_out_where_there_are_no_masks():
    def masked(observations, action_masks=None):
        assert action_masks is None
        return np.zeros(len(observations), np.int64)

    def strict(observations, *, action_masks):
        raise AssertionError(observations, action_masks)

    with closing(cartwheel.make_vec("cartwheel/CartPole-v1", 2)) as envs:
        rollout = cartwheel.Collector(envs, masked, num_steps=3).collect()
        assert not rollout.extras
        with pytest.raises(ValueError, match="has no masks of actions"):
            cartwheel.evaluate(envs, strict)


@pytest.mark.parametrize("order", ["lockstep", "free"])
def test_a_policy_that_needs_masks_can_be_replaced_where_there_are_none(order):
    def strict(observations, *, action_masks):
        raise AssertionError(observations, action_masks)

    with closing(cartwheel.make_vec("cartwheel/CartPole-v1", 2)) as envs:
        collector = cartwheel.Collector(envs, strict, num_steps=3, order=order)
        for _ in range(2):
            with pytest.raises(ValueError, match="has no masks of actions"):
                collector.collect()
        collector.policy = lambda observations: np.zeros(len(observations), np.int64)
        assert collector.update() == 1
        assert collector.collect().rewards.shape == (3, 2)


def test_a_model_with_predict_gets_masks():
    class Model:
        def predict(self, observations, state=None, action_masks=None):
            assert state is None
            return Masked()(observations, action_masks)[0], None

    with closing(build("next_step")) as envs:
        rollout = cartwheel.Collector(envs, Model(), num_steps=5, seed=1).collect()
    assert rollout.extras.keys() == {"action_masks"}


def test_wrappers_of_gymnasium_hand_masks_on():
    with closing(gym.wrappers.vector.RecordEpisodeStatistics(build("same_step"))) as envs:
        rollout = cartwheel.Collector(envs, Masked(), num_steps=5, seed=1).collect()
    wanted = expected(rollout.observations[:-1]).reshape(5, 4, 4)
    np.testing.assert_array_equal(rollout.extras["action_masks"], wanted)


def test_a_policy_of_rows_gets_masks_too():
    def policy(observations, env_index, first, action_masks):
        assert len(observations) == len(env_index) == len(first) == len(action_masks)
        return action_masks.argmax(axis=1)

    with closing(build("same_step")) as envs:
        collector = cartwheel.Collector(envs, policy, num_steps=5, recurrent=True, seed=1)
        masks = collector.collect().extras["action_masks"]
        assert not masks.all()
        cartwheel.evaluate(envs, partial(policy), recurrent=True)


def test_a_restored_collector_continues_with_the_same_masks():
    with closing(build("next_step")) as envs, closing(build("next_step")) as others:
        collector = cartwheel.Collector(envs, Masked(), num_steps=7, seed=1)
        collector.collect()
        state = collector.state_dict()
        wanted = collector.collect()
        again = cartwheel.Collector(others, Masked(), num_steps=7)
        again.load_state_dict(state)
        rollout = again.collect()
        np.testing.assert_array_equal(rollout.extras["action_masks"], wanted.extras["action_masks"])
