"""Recorded episodes are played again to the bit, from their states and from their seeds."""

import hashlib
import json

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text, Tuple
from gymnasium.vector import SyncVectorEnv

import cartwheel
import cartwheel.mujoco
from cartwheel.recorder import RecordEpisode, TrajectoryDataset, replay
from tests.support import own_models
from tests.support.comparison import assert_identical
from tests.support.painting import PaintingEnv
from tests.support.wrapping import D, N, S

FORMATS = ["maniskill", "minari"]
MODES = [N, S, D]


def record(envs, folder, steps=25, seed=3, **keywords):
    """Records steps with actions that are `float64`, where they are floats."""
    keywords = {"trajectory_name": "demo-v0", "save_video": False, **keywords}
    recorder = RecordEpisode(envs, folder, **keywords)
    recorder.action_space.seed(5)
    recorder.reset(seed=seed)
    for _ in range(steps):
        actions = recorder.action_space.sample()
        if getattr(actions, "dtype", None) == np.float32:
            actions = actions * np.float64(1.01)  # not a float32
        over = np.logical_or(*recorder.step(actions)[2:4])
        if envs.metadata["autoreset_mode"] == D and over.any():
            recorder.reset(options={"reset_mask": over})
    recorder.close()
    is_minari = keywords.get("format") == "minari"
    return TrajectoryDataset(folder / ("demo-v0" if is_minari else "demo-v0.h5"))


def assert_replayed(dataset, envs, count):
    assert len(dataset.episodes) >= count
    played = replay(dataset, envs)
    envs.close()
    for number, episode in enumerate(played):
        recorded = dataset.episode(number)
        assert_identical(episode, {name: recorded[name] for name in episode})
        cut_short = not (recorded["terminated"] | recorded["truncated"])[-1]
        assert set(episode) == {"obs", "actions", "rewards", "terminated", "truncated"}
        assert cut_short or (episode["terminated"] | episode["truncated"])[-1]


def robots(model, rows, mode, **keywords):
    task = {"reward": own_models.reward, "truncated": own_models.truncated}
    return cartwheel.mujoco.make(model, rows, autoreset_mode=mode, **task, **keywords)


KEYWORDS = {
    "frame_skip": own_models.FRAME_SKIP,
    "observation": list(own_models.FIELDS),
    "reset_noise_scale": 0.1,
    "max_episode_steps": 6,
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("mode", MODES)
def test_a_recording_of_an_own_model_has_all_that_its_replay_needs(tmp_path, mode, form):
    envs = robots(own_models.XML, 3, mode, **KEYWORDS, num_workers=2)
    dataset = record(envs, tmp_path, format=form)
    info = dataset.env_info
    again = robots(
        dataset.model_path,
        2,  # of any number of rows and in any mode
        MODES[(MODES.index(mode) + 1) % 3],
        max_episode_steps=info["max_episode_steps"],
        **info["env_kwargs"],
    )
    assert again.state_dict()["num_envs"] == 2
    assert_replayed(dataset, again, 12)
    assert info["env_id"] == "cartwheel.mujoco"
    assert info["functions"]["reward"] == "tests.support.own_models:reward"
    assert info["model"]["xml"] == own_models.XML
    digest = hashlib.sha256(dataset.model_path.read_bytes()).hexdigest()
    assert info["model"]["sha256"] == digest
    if form == "minari":
        assert minari.MinariDataset(tmp_path / "demo-v0" / "data").total_episodes >= 12


def test_an_own_model_is_named_before_the_files_are_closed(tmp_path):
    xml = own_models.XML + f"<!-- {'x' * 70_000} -->"  # more than an attribute of the file can have
    envs = robots(xml, 2, N, **KEYWORDS)
    recorder = RecordEpisode(envs, tmp_path, trajectory_name="demo", save_video=False)
    recorder.reset(seed=1)
    recorder.flush()
    dataset = TrajectoryDataset(tmp_path / "demo.h5")
    assert dataset.env_info["env_kwargs"]["frame_skip"] == own_models.FRAME_SKIP
    assert dataset.env_info["model"]["xml"] is None
    assert dataset.model_path.stat().st_size > 1000
    recorder.close()
    known = json.loads((tmp_path / "demo.json").read_text())
    assert known["env_info"]["model"]["xml"] == xml
    dataset.model_path.unlink()
    with pytest.raises(FileNotFoundError, match="the recording has lost its model"):
        _ = dataset.model_path
    assert TrajectoryDataset(tmp_path / "demo.h5").env_info["model"]["file"] == "demo.mjb"


def test_models_without_xml_are_recorded_compiled(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(own_models.XML)
    dataset = record(robots(model, 2, N, **KEYWORDS), tmp_path)
    assert dataset.env_info["model"]["xml"] is None
    assert_replayed(dataset, robots(dataset.model_path, 1, N, **KEYWORDS), 6)


def test_a_file_of_a_model_is_not_overwritten(tmp_path):
    (tmp_path / "demo-v0.mjb").write_text("mine")
    with pytest.raises(FileExistsError, match="this recording exists already"):
        record(robots(own_models.XML, 1, N, **KEYWORDS), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["demo-v0.mjb"]


def test_another_model_is_refused(tmp_path):
    dataset = record(robots(own_models.XML, 2, N, **KEYWORDS), tmp_path)
    heavier = robots(own_models.XML.replace("900", "901"), 2, N, **KEYWORDS)
    with pytest.raises(ValueError, match=r"the state is of cartwheel.mujoco with the options"):
        replay(dataset, heavier)
    heavier.close()


def test_seeds_alone_give_the_first_episodes_of_rows(tmp_path):
    dataset = record(robots(own_models.XML, 3, N, **KEYWORDS), tmp_path)
    envs = robots(own_models.XML, 1, N, **KEYWORDS)
    first = [n for n, metadata in enumerate(dataset.episodes) if metadata["episode_in_row"] == 0]
    assert len(first) == 3
    for number in first:
        metadata = dataset.episodes[number]
        recorded = dataset.episode(number)
        shown = [envs.reset(seed=metadata["row_seed"])[0][0]]
        shown += [envs.step(action[None])[0][0] for action in recorded["actions"]]
        np.testing.assert_array_equal(np.stack(shown), recorded["obs"])
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_native_episodes_are_played_again(tmp_path, mode):
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 3, max_episode_steps=5, autoreset_mode=mode)
    dataset = record(envs, tmp_path)
    again = cartwheel.NativeVectorEnv("CartPole-v1", 4, max_episode_steps=5, autoreset_mode=mode)
    assert_replayed(dataset, again, 12)


class Nested(gym.Env):
    """Nested observations and actions, with a slash in a key, and a text."""

    observation_space = Dict(
        {
            "arm/joints": Box(-9, 9, (2,)),
            "pair": Tuple([Box(-9, 9, (1,), np.float64)]),
            "word": Text(9, min_length=0, charset="abé"),
        }
    )
    action_space = Dict({"arm/grip": Discrete(3), "turn": Tuple([Box(-1, 1, (2,))])})

    def reset(self, **keywords):
        super().reset(**keywords)
        self.steps = 0
        self.turned = self.np_random.normal(size=2)
        return self.shown(), {}

    def step(self, action):
        self.turned = self.turned + action["turn"][0] * action["arm/grip"]
        self.steps += 1
        return self.shown(), float(self.turned.sum()), self.steps >= 4, False, {}

    def shown(self):
        word = "éab"[int(self.turned[0] > 0) :] * self.steps
        joints = self.turned.astype(np.float32)
        return {"arm/joints": joints, "pair": (self.turned[:1],), "word": word[:9]}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("mode", MODES)
def test_nested_episodes_are_played_again(tmp_path, mode, form):
    def build(rows, mode):
        env_fns = [Nested] * rows
        return cartwheel.VectorEnv(env_fns, executor="inline", autoreset_mode=mode, states="pickle")

    dataset = record(build(2, mode), tmp_path, format=form)
    assert_replayed(dataset, build(3, mode), 8)


def test_chosen_episodes_are_played_in_the_order_given(tmp_path):
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, max_episode_steps=5)
    dataset = record(envs, tmp_path)
    again = cartwheel.NativeVectorEnv("CartPole-v1", 2, max_episode_steps=5)
    played = replay(dataset, again, [4, 0, -1, 4])
    for number, episode in zip([4, 0, -1, 4], played, strict=True):
        np.testing.assert_array_equal(episode["obs"], dataset.episode(number)["obs"])
    assert replay(dataset, again, []) == []
    count = len(dataset.episodes)
    with pytest.raises(IndexError, match=f"there is no episode -99: .* has {count}"):
        replay(dataset, again, [0, -99])
    again.close()


def test_replays_are_recorded_like_episodes(tmp_path):
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, max_episode_steps=5)
    dataset = record(envs, tmp_path / "first")
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 1, max_episode_steps=5)
    recorder = RecordEpisode(envs, tmp_path, trajectory_name="again", save_video=False)
    replay(dataset, recorder, [0, 1])
    recorder.close()
    second = TrajectoryDataset(tmp_path / "again.h5")
    for number in (0, 1):
        assert_identical(second.episode(number), dataset.episode(number))


def test_what_cannot_be_played_again_is_refused(tmp_path):
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, max_episode_steps=5)
    without = record(envs, tmp_path / "without", record_env_state=False)
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2)
    with pytest.raises(ValueError, match=r"episode 0 of .* has no state of its beginning"):
        replay(without, envs)
    with h5py.File(without.path, "a") as file:  # ManiSkill's own states
        file["traj_0/env_states/actors/cube"] = np.zeros((6, 13), np.float32)
    with pytest.raises(ValueError, match=r"episode 0 of .* has no state of its beginning"):
        replay(TrajectoryDataset(without.path), envs)
    dataset = record(envs, tmp_path)
    with pytest.raises(TypeError, match="`envs` must be a vector environment of cartwheel"):
        replay(dataset, SyncVectorEnv([lambda: PaintingEnv(0, 3)]))
    with pytest.raises(TypeError, match=r"`dataset` must be a TrajectoryDataset, got '/demo.h5'"):
        replay("/demo.h5", envs)
    with pytest.raises(TypeError, match=r"`episodes` must be a list of places, got 3: \[3\]"):
        replay(dataset, envs, 3)
    envs = robots(own_models.XML, 1, N, **KEYWORDS)
    with pytest.raises(ValueError, match=r"the actions of episode 0 are not of the action space"):
        replay(dataset, envs)
    with h5py.File(dataset.path, "r") as file:  # it was not kept open
        assert "traj_0" in file
    envs.close()
