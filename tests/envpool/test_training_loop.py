"""A training loop in CleanRL's manner gets the same types from EnvPool and from cartwheel."""

import gc

import gymnasium as gym
import numpy as np
import pytest

from cartwheel import envpool as ours

# EnvPool's bounds are float64.
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting to float32")

TASK, NUM_ENVS, STEPS, UPDATES = "CartPole-v1", 4, 32, 4
#: Infos of EnvPool's Atari environments, and of its versions for gym before 0.26.
ABSENT = ("lives", "reward", "terminated", "TimeLimit.truncated")


class EpisodeStatistics(gym.Wrapper):
    """Adds returns and lengths of episodes to the infos, as the wrapper of CleanRL does."""

    def __init__(self, env):
        super().__init__(env)
        self.num_envs = getattr(env, "num_envs", 1)

    def reset(self, **keywords):
        result = super().reset(**keywords)
        self.returns = np.zeros(self.num_envs, np.float32)
        self.lengths = np.zeros(self.num_envs, np.int32)
        return result

    def step(self, action):
        observations, rewards, terminated, truncated, infos = super().step(action)
        self.returns += infos.get("reward", rewards)  # in place: a float64 reward is refused
        self.lengths += 1
        infos["r"], infos["l"] = self.returns.copy(), self.lengths.copy()
        over = infos.get("terminated", terminated) | truncated
        self.returns *= 1 - over
        self.lengths *= 1 - over
        return observations, rewards, terminated, truncated, infos


def types_of(value):
    """The types, keys, dtypes and shapes of a result."""
    if isinstance(value, np.ndarray):
        return (value.dtype, value.shape)
    if isinstance(value, dict):
        return {key: types_of(part) for key, part in value.items()}
    return type(value)


def train(pool):
    """Collects rollouts with a random policy, and computes advantages.

    Returns:
        The types of everything that it saw, and the lengths of the episodes.
    """
    assert pool.num_envs == NUM_ENVS
    envs = EpisodeStatistics(pool)
    assert isinstance(envs.action_space, gym.spaces.Discrete), "only discrete actions"
    source = np.random.default_rng(0)
    number = envs.action_space.n
    seen, lengths = [type(envs.action_space), type(envs.observation_space), type(number)], []
    observations = np.zeros((STEPS, NUM_ENVS, *pool.single_observation_space.shape), np.float32)
    actions = np.zeros((STEPS, NUM_ENVS, *pool.single_action_space.shape), np.int64)
    rewards, dones = (np.zeros((STEPS, NUM_ENVS), np.float32) for _ in range(2))
    next_observation, info = envs.reset()
    seen += [types_of(next_observation), types_of(info)]
    next_done = np.zeros(NUM_ENVS, np.float32)
    for _ in range(UPDATES):
        for step in range(STEPS):
            observations[step], dones[step] = next_observation, next_done
            actions[step] = source.integers(number, size=NUM_ENVS)
            result = envs.step(actions[step])
            next_observation, reward, terminated, truncated, info = result
            rewards[step] = reward
            next_done = (terminated | truncated).astype(np.float32)
            lengths += info["l"][next_done == 1].tolist()
            assert (info["elapsed_step"] <= info["l"]).all()
            seen += map(types_of, result)
        values = observations.sum(axis=2)
        advantages = np.zeros_like(rewards)
        last = np.float32(0)
        for step in reversed(range(STEPS - 1)):
            goes_on = 1 - dones[step + 1]
            delta = rewards[step] + 0.99 * values[step + 1] * goes_on - values[step]
            advantages[step] = last = delta + 0.99 * 0.95 * goes_on * last
        seen.append(types_of(advantages))
    return seen, lengths


@pytest.mark.parametrize("env_type", ["gym", "gymnasium"])
def test_a_training_loop_sees_the_same_types(make, theirs, env_type):
    results = []
    for module_make in (make, theirs.make):
        envs = module_make(TASK, env_type=env_type, num_envs=NUM_ENVS, seed=1)
        for key in ABSENT:
            with pytest.raises(KeyError, match=key):
                envs.reset()[1][key]
        results.append(train(envs))
    (seen, lengths), (expected, other_lengths) = results
    assert seen == expected
    assert min(len(lengths), len(other_lengths)) > 4
    gc.collect()  # ends EnvPool's threads


def test_a_script_for_gym_before_0_26_runs(make):
    """The lines of CleanRL's script that touch the environments, with its assignments."""
    envs = make(
        TASK, env_type="gym", num_envs=2, seed=1, max_episode_steps=2, gym_reset_return_info=False
    )
    envs.num_envs = 2
    envs.single_action_space = envs.action_space
    envs.single_observation_space = envs.observation_space
    wrapped = gym.Wrapper(envs)
    assert isinstance(wrapped.action_space, gym.spaces.Discrete)
    assert wrapped.reset().dtype == np.float32
    for limited in (False, True):
        observations, rewards, dones, infos = wrapped.step(np.array([0, 1]))
        assert observations.shape == (2, *envs.single_observation_space.shape)
        assert rewards.dtype == np.float32
        assert dones.tolist() == infos["TimeLimit.truncated"].tolist() == [limited] * 2
    assert infos["elapsed_step"].tolist() == [2, 2]


def test_single_spaces_make_the_batches_that_wrappers_of_gymnasium_expect(make):
    envs = make(TASK, num_envs=3)
    wrapped = gym.wrappers.vector.RecordEpisodeStatistics(envs)
    batch = gym.vector.utils.batch_space(wrapped.single_observation_space, 3)
    assert batch.contains(wrapped.reset()[0])
    assert isinstance(envs, ours.GymnasiumEnvPool)
