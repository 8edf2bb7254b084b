"""Both layouts are those of ManiSkill and Minari, for their own readers and for ours."""

import json
import shutil
from functools import partial

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Sequence, Text, Tuple
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel.recorder import RecordEpisode, TrajectoryDataset
from cartwheel.recorder.layouts import ManiSkillFiles, space_form
from tests.support.comparison import assert_identical
from tests.support.environments import NestedEnv
from tests.support.painting import PaintingEnv
from tests.support.recordings import read_h5
from tests.support.wrapping import D, N, S


def painters(mode=N):
    env_fns = [partial(PaintingEnv, row, 3 + row) for row in range(2)]
    return cartwheel.VectorEnv(env_fns, executor="inline", autoreset_mode=mode)


OPTIONS = {"level": 1, "map": {"name": "x", "size": np.arange(2)}}


def record(envs, folder, steps=8, options=OPTIONS, **keywords):
    recorder = RecordEpisode(envs, folder, trajectory_name="demo", save_video=False, **keywords)
    recorder.reset(seed=3, options=options)
    for _ in range(steps):
        recorder.step(recorder.action_space.sample())
    recorder.close()


@pytest.mark.parametrize("mode", [N, S])
def test_the_layout_is_that_of_maniskill(tmp_path, mode):
    record(painters(mode), tmp_path, source_type="rl", source_desc="a test")
    known = json.loads((tmp_path / "demo.json").read_text())
    assert known["env_info"] == {"env_id": "VectorEnv", "env_kwargs": {}, "max_episode_steps": None}
    assert (known["source_type"], known["source_desc"]) == ("rl", "a test")
    assert known["episodes"][0] == {
        "episode_id": 0,
        "episode_seed": 3,
        "control_mode": None,
        "elapsed_steps": 3,
        "row_seed": 3,
        "episode_in_row": 0,
        "reset_kwargs": {"seed": 3, "options": {"level": 1, "map": {"name": "x", "size": [0, 1]}}},
        "env_index": 0,
        "return": 6.0,
        "terminated": True,
        "truncated": False,
        "success": True,
    }
    # Only the first episodes were reset with options, each row by its own seed.
    assert [one["episode_seed"] for one in known["episodes"]][:3] == [3, 4, None]
    assert "options" in known["episodes"][1]["reset_kwargs"]
    assert known["episodes"][2]["reset_kwargs"] == {}
    with h5py.File(tmp_path / "demo.h5") as file:
        assert sorted(file) == sorted(f"traj_{one['episode_id']}" for one in known["episodes"])
        group = file["traj_0"]
        assert [*group] == ["obs", "actions", "terminated", "truncated", "success", "rewards"]
        shapes = {name: (group[name].shape, group[name].dtype.str) for name in group}
    assert shapes == {
        "obs": ((4, 2), "<f4"),
        "actions": ((3, 1), "<i8"),
        "terminated": ((3,), "|b1"),
        "truncated": ((3,), "|b1"),
        "success": ((3,), "|b1"),
        "rewards": ((3,), "<f4"),
    }


def test_nested_observations_are_groups_and_images_are_compressed(tmp_path):
    space = Dict({"camera": Box(0, 255, (40, 30, 3), np.uint8), "place": Tuple([Box(-1, 1, (2,))])})
    action = Dict({"turn": Box(-1, 1, (2,), np.float64), "grip": Discrete(3)})

    class Robot(PaintingEnv):
        observation_space, action_space = space, action

        def reset(self, **keywords):
            super().reset(**keywords)
            return self.shown(), {}

        def step(self, actions):
            _, *rest = super().step(actions)
            return self.shown(), *rest

        def shown(self):
            return {
                "camera": np.full((40, 30, 3), self.steps, np.uint8),
                "place": (np.full(2, self.steps / 10, np.float32),),
            }

    for form in ("maniskill", "minari"):
        envs = SyncVectorEnv([partial(Robot, 0, 20)])
        record(envs, tmp_path / form, 25, format=form)
    with h5py.File(tmp_path / "maniskill" / "demo.h5") as file:
        group = file["traj_0"]
        assert group["obs/camera"].compression == "gzip"
        assert group["obs/camera"].compression_opts == 5
        assert group["obs/camera"].id.get_storage_size() < 5000
        np.testing.assert_array_equal(group["obs/camera"][:, 0, 0, 0], np.arange(21))
        np.testing.assert_array_equal(group["obs/place/0"][:, 0], np.arange(21, dtype="f4") / 10)
        assert group["actions/turn"].shape == (20, 2)
        assert group["actions/turn"].dtype == np.float64
        assert group["actions/grip"].shape == (20,)
    dataset = minari.MinariDataset(tmp_path / "minari" / "demo-v0" / "data")
    first = dataset[0]
    np.testing.assert_array_equal(first.observations["camera"][:, 3, 4, 1], np.arange(21))
    assert first.observations["place"][0].shape == (21, 2)
    ours = TrajectoryDataset(tmp_path / "minari" / "demo-v0").episode(0)
    theirs = TrajectoryDataset(tmp_path / "maniskill" / "demo.h5").episode(0)
    np.testing.assert_array_equal(ours["obs"]["camera"], theirs["obs"]["camera"])
    np.testing.assert_array_equal(ours["obs"]["place"][0], theirs["obs"]["place"]["0"])


@pytest.mark.parametrize("mode", [N, S, D])
def test_minari_reads_its_layout(tmp_path, mode):
    envs = painters(mode)
    actions = np.array([[0, 1]] * 8)
    recorder = RecordEpisode(
        envs, tmp_path, trajectory_name="demo-v2", save_video=False, format="minari"
    )
    recorder.reset(seed=3, options={"level": 1, "map": {"name": "x"}})
    for action in actions:
        result = recorder.step(action)
        if mode == D and (result[2] | result[3]).any():
            recorder.reset(options={"reset_mask": result[2] | result[3]})
    recorder.close()
    dataset = minari.MinariDataset(tmp_path / "demo-v2" / "data")
    assert dataset.spec.dataset_id == "demo-v2"
    assert dataset.observation_space == PaintingEnv.observation_space
    assert dataset.action_space == PaintingEnv.action_space
    episodes = [*dataset.iterate_episodes()]
    assert dataset.total_episodes == len(episodes)
    assert dataset.total_steps == sum(len(one) for one in episodes)
    first = episodes[0]
    np.testing.assert_array_equal(first.observations[:, 1], np.arange(4))
    np.testing.assert_array_equal(first.actions, [0, 0, 0])
    np.testing.assert_array_equal(first.rewards, [1.0, 2.0, 3.0])
    assert first.rewards.dtype == np.float64
    np.testing.assert_array_equal(first.terminations, [False, False, True])
    np.testing.assert_array_equal(first.truncations, [False] * 3)
    np.testing.assert_array_equal(first.infos["count"], [0, 1, 2, 3])
    np.testing.assert_array_equal(first.infos["success"], [False, False, False, True])
    about = [*dataset.storage.get_episode_metadata(range(3))]
    assert [one.get("seed") for one in about] == [3, 4, None]
    assert (about[0]["id"], about[0]["total_steps"]) == (0, 3)
    assert about[0]["options"] == {"level": 1, "map": {"name": "x"}}
    assert "options" not in about[2]


def test_minari_makes_the_environment_again(tmp_path):
    for number, env_id in enumerate(("CartPole-v1", "cartwheel/CartPole-v1")):
        keywords = {"num_workers": 1, "autoreset_mode": "same_step"} if number else {}
        envs = cartwheel.make_vec(
            env_id, 2, sutton_barto_reward=True, max_episode_steps=9, **keywords
        )
        record(envs, tmp_path / str(number), 30, options=None, format="minari")
        dataset = minari.MinariDataset(tmp_path / str(number) / "demo-v0" / "data")
        env = dataset.recover_environment()
        assert env.spec.id == env_id
        assert env.spec.kwargs["sutton_barto_reward"]
        assert env.spec.max_episode_steps == 9
        env.close()


def test_spaces_are_those_that_minari_reads():
    spaces = [
        Box(-np.inf, 1, (2, 3), np.float64),
        Discrete(4, start=-1),
        MultiDiscrete([2, 3], start=[1, 0]),
        MultiBinary(3),
        Dict({"a": Tuple([Discrete(2), Box(0, 255, (2,), np.uint8)])}),
        Text(5, min_length=0, charset="ab é"),
    ]
    for space in spaces:
        assert minari.serialization.deserialize_space(json.dumps(space_form(space))) == space
    with pytest.raises(TypeError, match=r"Minari does not support the space Sequence"):
        space_form(Sequence(Discrete(3)))


class Speaker(gym.Env):
    """Says a longer word at each step; an episode has three."""

    observation_space = Dict({"said": Text(6, min_length=0, charset="aé"), "step": Discrete(4)})
    action_space = Discrete(2)

    def reset(self, **keywords):
        super().reset(**keywords)
        self.steps = 0
        return {"said": "", "step": 0}, {}

    def step(self, _):
        self.steps += 1
        return {"said": "aé" * self.steps, "step": self.steps}, 1.0, self.steps == 3, False, {}


@pytest.mark.parametrize("mode", [N, S])
@pytest.mark.parametrize("form", ["maniskill", "minari"])
def test_texts_of_observations_are_read_as_strings(tmp_path, mode, form):
    said = ["", "aé", "aéaé", "aéaéaé"]
    envs = cartwheel.VectorEnv([Speaker] * 2, executor="inline", autoreset_mode=mode)
    record(envs, tmp_path, 9, options=None, format=form)
    dataset = TrajectoryDataset(tmp_path / ("demo.h5" if form == "maniskill" else "demo-v0"))
    whole = dataset.episode(0)["obs"]
    assert (whole["said"].tolist(), whole["step"].tolist()) == (said, [0, 1, 2, 3])
    assert dataset[1]["obs"]["said"] == "aé"
    assert len(dataset.episodes) >= 4
    if form == "minari":
        theirs = minari.MinariDataset(tmp_path / "demo-v0" / "data")
        assert theirs.observation_space == Speaker.observation_space
        assert theirs[0].observations["said"] == said
    else:
        with h5py.File(tmp_path / "demo.h5") as file:
            stored = file["traj_0/obs/said"][()]
        assert [text.decode() for text in stored] == said


def test_states_that_cannot_be_had_are_an_error_only_on_demand(tmp_path):
    record(painters(), tmp_path)
    assert "env_states" not in read_h5(tmp_path / "demo.h5")["traj_0"]
    envs = painters()
    recorder = RecordEpisode(
        envs, tmp_path, trajectory_name="states", save_video=False, record_env_state=True
    )
    with pytest.raises(ValueError, match="cannot be saved: it has no method `get_state`"):
        recorder.reset()
    recorder.close()


def test_rewards_are_left_out_on_demand(tmp_path):
    record(painters(), tmp_path, record_reward=False)
    assert "rewards" not in read_h5(tmp_path / "demo.h5")["traj_0"]
    dataset = TrajectoryDataset(tmp_path / "demo.h5")
    assert dataset.rewards is None
    assert set(dataset[0]) == {"obs", "action", "terminated", "truncated", "success"}


def test_states_continue_an_episode_to_the_bit(tmp_path):
    for number, mode in enumerate((N, S, D)):
        envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, max_episode_steps=5, autoreset_mode=mode)
        record(envs, tmp_path / str(number), 4 if mode == D else 12, options=None)
        arrays = read_h5(tmp_path / str(number) / "demo.h5")["traj_0"]
        lengths = arrays["env_states"]["length"]
        steps = len(arrays["actions"])
        assert (lengths[:-1] > 0).all()
        assert (lengths[-1] == 0) == (mode == S)  # the next episode has begun
        again = cartwheel.NativeVectorEnv("CartPole-v1", 1, max_episode_steps=5)
        again.reset()
        for step in range(steps):
            again.set_state([0], [arrays["env_states"]["bytes"][step][: lengths[step]].tobytes()])
            result = again.step(arrays["actions"][step])
            np.testing.assert_array_equal(result[0][0], arrays["obs"][step + 1])
        again.close()


@pytest.mark.parametrize("form", ["maniskill", "minari"])
def test_the_dataset_has_the_transitions_of_all_episodes(tmp_path, form):
    envs = cartwheel.VectorEnv([NestedEnv] * 2, executor="inline")
    record(envs, tmp_path, 30, format=form)
    name, file = ("demo.h5", "demo.h5") if form == "maniskill" else ("demo-v0", "demo-v0/data")
    dataset = TrajectoryDataset(tmp_path / name)
    assert_identical(TrajectoryDataset(str(tmp_path / file)).actions, dataset.actions)
    assert len(dataset) == sum(about["elapsed_steps"] for about in dataset.episodes)
    raw = read_h5(dataset.path)
    at = 0
    for number, about in enumerate(dataset.episodes):
        group = raw[f"{'traj' if form == 'maniskill' else 'episode'}_{number}"]
        steps = about["elapsed_steps"]
        rewards = group["rewards"]
        np.testing.assert_array_equal(dataset[at : at + steps]["reward"], rewards)
        whole = dataset.episode(number)
        walk = group["obs" if form == "maniskill" else "observations"]["walk"]
        np.testing.assert_array_equal(whole["obs"]["walk"], walk)
        np.testing.assert_array_equal(dataset[at]["obs"]["walk"], walk[0])
        at += steps
    assert len(TrajectoryDataset(tmp_path / name, load_count=2).episodes) == 2
    count = len(dataset.episodes)
    with pytest.raises(IndexError, match=f"there is no episode {count}: .* has {count}"):
        dataset.episode(count)


def test_only_successes_are_read_on_demand(tmp_path):
    for form in ("maniskill", "minari"):
        record(painters(), tmp_path / form, 5, format=form)
        path = tmp_path / form / ("demo.h5" if form == "maniskill" else "demo-v0")
        everything, good = TrajectoryDataset(path), TrajectoryDataset(path, success_only=True)
        assert [about["success"] for about in everything.episodes] == [True, True, False]
        assert [about["episode_id"] for about in good.episodes] == [0, 1]
        assert len(good) == 7
        assert good.success.sum() == 2
        np.testing.assert_array_equal(good.success, everything.success[:7])
    record(cartwheel.VectorEnv([NestedEnv], executor="inline"), tmp_path / "mute", 5)
    with pytest.raises(ValueError, match="episode 0 does not report success"):
        TrajectoryDataset(tmp_path / "mute" / "demo.h5", success_only=True)


def test_gymnasiums_environments_have_their_name_and_keywords(tmp_path):
    envs = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync", sutton_barto_reward=True)
    record(envs, tmp_path, 30, options=None)
    info = TrajectoryDataset(tmp_path / "demo.h5").env_info
    assert info == {
        "env_id": "CartPole-v1",
        "env_kwargs": {"sutton_barto_reward": True},
        "max_episode_steps": 500,
    }


def test_metadata_that_are_too_long_for_the_file_of_arrays_lose_keywords(tmp_path):
    keywords = {"map": "x" * 100_000}
    files = ManiSkillFiles(tmp_path / "t", {"env_id": "Maze", "env_kwargs": keywords}, {})
    files.flush()
    killed = TrajectoryDataset(shutil.copy(files.path, tmp_path / "killed.h5"))
    assert killed.env_info == {"env_id": "Maze", "env_kwargs": {}}
    files.close()
    assert TrajectoryDataset(files.path).env_info["env_kwargs"] == keywords


@pytest.mark.parametrize("form", ["maniskill", "minari"])
def test_a_recording_without_a_whole_episode_is_read(tmp_path, form):
    recorder = RecordEpisode(painters(), tmp_path, trajectory_name="demo-v0", format=form)
    recorder.reset(seed=3)
    recorder.flush()
    where = tmp_path / ("demo-v0.h5" if form == "maniskill" else "demo-v0")
    for _ in ("as after a kill", "closed"):
        dataset = TrajectoryDataset(where)
        assert (len(dataset), dataset.episodes) == (0, [])
        assert dataset.env_info
        recorder.close()
