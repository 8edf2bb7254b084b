"""Wrappers take rewards that are arrays, or refuse them and say what to do."""

import re
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
from cartwheel import wrappers
from tests.support.comparison import assert_identical
from tests.support.objectives import NoisyEnv, OneObjective, TreasureEnv

K, ROWS = 3, 4
MODES = {mode.name.lower(): mode for mode in AutoresetMode}
by_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
WEIGHTS = np.array([0.5, -2.0, 3.0])


def made(mode=AutoresetMode.NEXT_STEP, **keywords):
    """Environments with ``K`` objectives; in ``DISABLED``, rows that are over rest."""
    keywords = {"executor": "inline", "on_done": "freeze", **keywords}
    return cartwheel.VectorEnv([partial(NoisyEnv, K)] * ROWS, autoreset_mode=mode, **keywords)


def alone(objective, mode=AutoresetMode.NEXT_STEP):
    env_fns = [lambda: OneObjective(NoisyEnv(K), objective)] * ROWS
    keywords = {"executor": "inline", "on_done": "freeze"}
    return cartwheel.VectorEnv(env_fns, autoreset_mode=mode, **keywords)


def weigh(rewards):
    return rewards @ WEIGHTS


def played(*all_envs, steps=25):
    """Steps all of them with the same actions, and yields the results of each step."""
    rng = np.random.default_rng(5)
    for envs in all_envs:
        envs.reset(seed=9)
    for _ in range(steps):
        actions = rng.integers(0, 3, ROWS)
        yield [envs.step(actions) for envs in all_envs]
    for envs in all_envs:
        envs.close()


@by_mode
def test_transform_reward_makes_numbers_of_transitions_only(mode):
    weighed = wrappers.TransformReward(made(mode), lambda rewards: weigh(rewards) + 7)
    assert weighed.reward_space is None
    over = np.zeros(ROWS, bool)
    for (_, rewards, *_), (_, shown, terminations, truncations, _) in played(made(mode), weighed):
        stepped = np.ones(ROWS, bool) if mode == AutoresetMode.SAME_STEP else ~over
        assert_identical(shown, np.where(stepped, weigh(rewards) + 7, 0.0))
        over = terminations | truncations


def test_transform_reward_returns_arrays_if_it_has_a_reward_space():
    space = Box(-np.inf, np.inf, (2,))
    envs = wrappers.TransformReward(made(), lambda rewards: rewards[:, :2] + 1, space)
    assert envs.reward_space is space
    outer = wrappers.TransformReward(envs, lambda rewards: rewards.max(axis=1))
    numbers = made().unwrapped
    halves = wrappers.TransformReward(
        alone(0), lambda rewards: np.stack([rewards, -rewards], axis=1), reward_space=space
    )
    arrays = envs.rollout(3)
    assert arrays.rewards.shape == (3, ROWS, 2)
    envs.end_rollout()
    for (_, rewards, *_), (_, largest, *_), (_, pairs, *_) in played(
        numbers, outer, halves, steps=1
    ):
        assert_identical(largest, (rewards[:, :2] + 1).max(axis=1))
        assert_identical(pairs, np.stack([rewards[:, 0], -rewards[:, 0]], axis=1))


@pytest.mark.parametrize(
    ("function", "space", "text"),
    [
        (lambda rewards: rewards, None, "an array (2,); got (2, 3). Give `reward_space` if the"),
        (lambda rewards: rewards.sum(), None, "as an array (2,); got ()."),
        (lambda rewards: rewards, Box(0, 1, (2,)), "as an array (2, 2); got (2, 3)"),
        (weigh, Box(0, 1, (2, 2)), "`reward_space` must be a Box of shape (k,), got Box"),
    ],
    ids=["arrays", "one", "other", "matrix"],
)
def test_transform_reward_refuses_functions_that_return_another_shape(function, space, text):
    envs = made()
    with pytest.raises(ValueError, match=re.escape(text)):
        wrappers.TransformReward(envs, function, space)
    envs.close()


@by_mode
@pytest.mark.parametrize("sends", [False, True], ids=["step", "send"])
def test_statistics_have_the_returns_of_each_objective(mode, sends):
    envs = wrappers.RecordEpisodeStatistics(made(mode), buffer_length=5)
    each = [wrappers.RecordEpisodeStatistics(alone(number, mode)) for number in range(K)]
    reported = 0
    rng = np.random.default_rng(6)
    for one in (envs, *each):
        one.reset(seed=9)
    for _ in range(25):
        actions, rows = rng.integers(0, 3, ROWS), np.arange(ROWS)
        if sends:
            rows = rng.permutation(ROWS)[:3]
            for one in (envs, *each):
                one.send(actions[:3], rows)
            infos, *others = (one.recv()[4] for one in (envs, *each))
        else:
            infos, *others = (one.step(actions)[4] for one in (envs, *each))
        assert ("episode" in infos) == ("episode" in others[0])
        returns = np.stack([one.episode_returns for one in each], axis=-1)
        assert_identical(envs.episode_returns, returns)
        assert_identical(envs.episode_lengths, each[0].episode_lengths)
        if "episode" in infos:
            reported += 1
            expected = np.stack([other["episode"]["r"] for other in others], axis=-1)
            assert expected.shape == (len(rows), K)
            assert_identical(infos["episode"]["r"], expected)
            assert_identical(infos["episode"]["l"], others[0]["episode"]["l"])
            assert_identical(infos["_episode"], others[0]["_episode"])
    assert reported
    assert envs.episode_count == each[0].episode_count
    last = np.stack([np.array(one.return_queue) for one in each], axis=-1)[-5:]
    assert_identical(np.array(envs.return_queue), last)
    restored = wrappers.RecordEpisodeStatistics(made(mode), buffer_length=5)
    restored.set_own_state(envs.get_own_state())
    for one in (envs, restored):
        assert_identical(list(one.return_queue), list(last))
        assert_identical(one.episode_returns, returns)
    with envs.frozen():
        while not any(envs.step(actions)[2]):
            pass
    assert envs.episode_count == restored.episode_count
    assert_identical(list(envs.return_queue), list(last))
    for one in (envs, restored, *each):
        one.close()


@pytest.mark.parametrize("outer", ["next_step", "same_step"])
def test_the_adapter_of_modes_keeps_arrays(outer):
    inner = made(AutoresetMode.DISABLED, on_done="raise")
    adapted = wrappers.AutoresetAdapter(inner, outer)
    for (_, rewards, *_), (_, adapted_rewards, *_) in played(made(MODES[outer]), adapted):
        assert_identical(adapted_rewards, rewards)


def test_other_wrappers_pass_arrays_on():
    envs = wrappers.TransformObservation(wrappers.FrameStack(made(), 2), lambda found: found)
    assert envs.reward_space == Box(-np.inf, np.inf, (K,), np.float64)
    for (_, rewards, *_), (_, shown, *_) in played(made(), envs, steps=8):
        assert_identical(shown, rewards)


class OthersVectorEnv(SyncVectorEnv):
    """A vector environment of another package, as MO-Gymnasium's."""

    def __init__(self, env_fns):
        super().__init__(env_fns)
        self.reward_space = self.envs[0].unwrapped.reward_space
        self._rewards = np.zeros((self.num_envs, *self.reward_space.shape))


def test_vector_environments_of_others_may_have_a_reward_space():
    envs = gym.wrappers.vector.TransformObservation(
        OthersVectorEnv([TreasureEnv] * 2), lambda found: found
    )
    statistics = wrappers.RecordEpisodeStatistics(envs)
    statistics.reset()
    infos = [statistics.step([1, 1])[4] for _ in range(3)]
    assert infos[-1]["episode"]["r"].tolist() == [[3, -3]] * 2
    with pytest.raises(ValueError, match="ClipReward needs rewards that are numbers"):
        wrappers.ClipReward(statistics, 0, 1)
    envs.close()


def policy(observations):
    return np.zeros(len(observations), np.int64)


#: What needs numbers, by the name in the error.
USERS = {
    "ClipReward": lambda envs, _: wrappers.ClipReward(envs, 0, 1),
    "NormalizeReward": lambda envs, _: wrappers.NormalizeReward(envs),
    "RecordMetrics": lambda envs, _: wrappers.RecordMetrics(envs),
    "RecordEpisode": lambda envs, folder: wrappers.RecordEpisode(
        envs, folder, save_video=False, record_env_state=False
    ),
    "`evaluate`": lambda envs, _: cartwheel.evaluate(envs, policy, seed=1),
}


@pytest.mark.parametrize("name", USERS)
def test_what_needs_numbers_says_so_and_its_advice_helps(name, tmp_path):
    envs = made()
    text = (
        f"{name} needs rewards that are numbers, and those of the environments are arrays of "
        "`reward_space` Box(-inf, inf, (3,), float64): weigh them first, by "
        "`cartwheel.wrappers.TransformReward(envs, lambda rewards: rewards @ weights)`."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        USERS[name](envs, tmp_path)
    advised = wrappers.TransformReward(envs, lambda rewards: rewards @ WEIGHTS)
    user = USERS[name](advised, tmp_path)
    (user if hasattr(user, "step") else envs).close()


def test_atari_preprocessing_needs_numbers():
    class Pixels(TreasureEnv):
        observation_space = Box(0, 255, (90, 90, 3), np.uint8)

    envs = cartwheel.VectorEnv([Pixels], executor="inline")
    with pytest.raises(ValueError, match="AtariPreprocessing needs rewards that are numbers"):
        wrappers.AtariPreprocessing(envs)
    envs.close()


def test_the_interface_of_envpool_needs_numbers():
    cartwheel.envpool.register("Treasure-objectives-v0", TreasureEnv)
    with pytest.raises(ValueError, match=r"cartwheel\.envpool needs rewards that are numbers"):
        cartwheel.envpool.make("Treasure-objectives-v0", env_type="gymnasium", num_envs=2)
