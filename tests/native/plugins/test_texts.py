"""Observations of native environments may have texts: tuples of strings in Python."""

import copy

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
from cartwheel import testing, wrappers

TELLER = "test_plugin/Teller-v0"
ROWS = 5

pytestmark = pytest.mark.usefixtures("plugin")


class Teller(gym.Env):
    """The environment in Python."""

    letters_of_bytes = "abé€"
    observation_space = Dict(
        {
            "count": Discrete(7),
            "letters": Text(6, min_length=0, charset=letters_of_bytes),
            "newest": Text(1, min_length=0, charset=letters_of_bytes),
            "share": Box(0, 1, ()),
        }
    )
    action_space = Discrete(2)

    def _observation(self):
        letters = self.letters
        texts = {"letters": letters, "newest": letters[-1:]}
        return {"count": len(letters), **texts, "share": np.array(len(letters) / 6, np.float32)}

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        super().reset(seed=seed)
        self.letters = ""
        self.goal = int(self.np_random.integers(1, 7))
        return self._observation(), {}

    def step(self, action):
        if action == 1 and len(self.letters) < 6:
            self.letters += self.letters_of_bytes[self.np_random.integers(0, 4)]
        count = len(self.letters)
        return self._observation(), float(count), count >= self.goal, False, {}


def same(ours, theirs):
    assert set(ours) == set(theirs)
    for key, value in theirs.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(ours[key], value)
        else:
            assert ours[key] == value, key


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("keywords", [{"executor": "inline"}, {"num_workers": 3}], ids=str)
def test_batches_equal_those_of_the_environment_in_python(mode, keywords):
    envs = cartwheel.NativeVectorEnv(TELLER, ROWS, autoreset_mode=mode, **keywords)
    oracle = SyncVectorEnv([Teller] * ROWS, autoreset_mode=mode)
    assert envs.single_observation_space == oracle.single_observation_space
    assert envs.observation_space == oracle.observation_space
    same(envs.reset(seed=3)[0], oracle.reset(seed=3)[0])
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = rng.integers(0, 2, ROWS)
        ours, theirs = envs.step(actions), oracle.step(actions)
        same(ours[0], theirs[0])
        assert ours[0] in envs.observation_space
        for mine, other in zip(ours[1:4], theirs[1:4], strict=True):
            np.testing.assert_array_equal(mine, other)
        assert set(ours[4]) == set(theirs[4])
        if "final_obs" in theirs[4]:
            assert ours[4]["final_obs"].tolist() == theirs[4]["final_obs"].tolist()
        ended = ours[2] | ours[3]
        if mode == AutoresetMode.DISABLED and ended.any():
            options = {"reset_mask": ended}
            same(envs.reset(options=options)[0], oracle.reset(options=dict(options))[0])
    envs.close()
    oracle.close()


@pytest.mark.parametrize(
    "wrap",
    [
        lambda envs: envs,
        lambda envs: wrappers.FilterObservation(envs, ["count", "letters"]),
        lambda envs: wrappers.DtypeObservation(envs, np.float32, keys=["count"]),
    ],
    ids=["bare", "filtered", "cast"],
)
def test_dense_final_observations_have_texts(wrap):
    settings = {"autoreset_mode": "same_step", "executor": "inline"}
    envs = wrap(cartwheel.NativeVectorEnv(TELLER, ROWS, final_obs="dense", **settings))
    other = wrap(cartwheel.NativeVectorEnv(TELLER, ROWS, **settings))
    envs.reset(seed=1)
    other.reset(seed=1)
    seen = 0
    for _ in range(20):
        (shown, *_, finals), (*_, objects) = (one.step(np.ones(ROWS, int)) for one in (envs, other))
        if "final_obs" in finals:
            assert all(isinstance(text, str) for text in finals["final_obs"]["letters"])
            running = np.flatnonzero(~finals["_final_obs"])
            texts = [finals["final_obs"]["letters"][row] for row in running]
            assert texts == [shown["letters"][row] for row in running]
        for row in np.flatnonzero(finals["_final_obs"]):
            seen += 1
            expected = objects["final_obs"][row]
            assert {key: part[row] for key, part in finals["final_obs"].items()} == expected
    assert seen
    envs.close()
    other.close()


def test_a_string_is_the_same_object_until_its_text_changes():
    envs = cartwheel.NativeVectorEnv(TELLER, 1, executor="inline", max_episode_steps=100)
    envs.reset(seed=2)
    first = envs.step([1])[0]["letters"][0]
    assert first
    kept = [envs.step([0])[0]["letters"][0] for _ in range(3)]
    if all(text == first for text in kept):
        assert all(text is first for text in kept)
    envs.close()


def test_partial_batches_and_single_environments_have_texts():
    envs = cartwheel.NativeVectorEnv(TELLER, ROWS, num_workers=2, batch_size=2)
    envs.send_reset(seed=4)
    for _ in range(6):
        observations, *_, infos = envs.recv()
        rows = infos["env_index"]
        assert len(observations["letters"]) == len(rows) == 2
        assert all(text in Teller.observation_space["letters"] for text in observations["letters"])
        envs.send(np.ones(2, int), rows)
    envs.close()
    with gym.make(TELLER) as env:
        observation, _ = env.reset(seed=4)
        assert observation in env.observation_space
        observation = env.step(1)[0]
        assert observation in env.observation_space
        assert isinstance(observation["share"], np.ndarray)  # a number would be cast with a warning


def test_states_continue_with_the_same_texts():
    envs = cartwheel.NativeVectorEnv(TELLER, ROWS, executor="inline")
    envs.reset(seed=5)
    envs.step(np.ones(ROWS, int))
    state = envs.state_dict()
    expected = [envs.step(np.ones(ROWS, int))[0] for _ in range(5)]
    envs.load_state_dict(state)
    for one in expected:
        same(envs.step(np.ones(ROWS, int))[0], one)
    envs.close()


def test_a_rollout_refuses_texts():
    with cartwheel.NativeVectorEnv(TELLER, 2, executor="inline") as envs:
        envs.reset(seed=0)
        with pytest.raises(ValueError, match="fixed shape"):
            envs.rollout(4)


@pytest.mark.slow
def test_the_test_kit_accepts_texts():
    envs = cartwheel.NativeVectorEnv(TELLER, ROWS)
    report = testing.check_vector_env(envs)
    assert report.passed
    envs.close()


def test_what_needs_arrays_names_the_text_and_the_wrappers_that_help():
    envs = cartwheel.NativeVectorEnv(TELLER, 2, executor="inline")
    with pytest.raises(
        TypeError, match=r"`observations/letters` has no .* FilterObservation leaves"
    ):
        cartwheel.Collector(envs, lambda _: np.ones(2, int), 3)
    for wrapped in (
        wrappers.FlattenObservation(envs),
        wrappers.FilterObservation(envs, ["count"]),
    ):
        rollout = cartwheel.Collector(wrapped, lambda _: np.ones(2, int), 3, seed=1).collect()
        assert rollout.actions.shape == (3, 2)
    envs.close()


def test_a_copy_is_refused_without_the_advice_to_use_an_environment_of_gymnasium():
    with gym.make(TELLER) as env, pytest.raises(TypeError, match=r"repeat the actions$"):
        copy.copy(env.unwrapped)
