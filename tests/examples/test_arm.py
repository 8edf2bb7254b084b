"""The arm of the examples has random targets, masses and gains, and its recordings are replayed."""

import numpy as np
import pytest

from cartwheel.recorder import RecordEpisode, TrajectoryDataset, replay
from examples import arm


def test_each_episode_has_a_target_masses_and_gains_of_its_own():
    envs = arm.make(6, max_episode_steps=2)
    names = ("data.mocap_pos", "model.body_mass", "model.actuator_gear")
    envs.reset(seed=1)
    first = {name: np.stack(envs.get_attr(name)) for name in names}
    for _ in range(2):
        envs.step(envs.action_space.sample())
    second = {name: np.stack(envs.get_attr(name)) for name in names}
    for name in names:
        drawn = np.concatenate([first[name], second[name]]).reshape(12, -1)
        assert len(np.unique(drawn, axis=0)) == 12, name
    x, y, z = np.moveaxis(first["data.mocap_pos"][:, 0], 1, 0)
    assert ((np.hypot(x, y) >= 0.25) & (np.hypot(x, y) <= 0.5) & (z >= 0.15) & (z <= 0.6)).all()
    envs.close()


@pytest.mark.parametrize("form", ["maniskill", "minari"])
@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_recordings_with_drawn_models_are_played_again_to_the_bit(tmp_path, mode, form):
    envs = arm.make(3, max_episode_steps=5, autoreset_mode=mode, num_workers=2)
    recorder = RecordEpisode(envs, tmp_path, trajectory_name="arm-v0", format=form)
    recorder.reset(seed=1)
    for _ in range(14):
        _, _, terminations, truncations, _ = recorder.step(recorder.action_space.sample())
        if mode == "Disabled" and (terminations | truncations).any():
            recorder.reset(options={"reset_mask": terminations | truncations})
    recorder.close()
    dataset = TrajectoryDataset(tmp_path / ("arm-v0" if form == "minari" else "arm-v0.h5"))
    assert len(dataset.episodes) >= 6
    assert dataset.env_info["functions"]["reset"] == "examples.arm:reset"
    assert len(dataset.success) == len(dataset)
    envs = arm.make(2, dataset.model_path, max_episode_steps=5, num_workers=1)
    for number, episode in enumerate(replay(dataset, envs)):
        recorded = dataset.episode(number)
        for name, values in episode.items():
            np.testing.assert_array_equal(values, recorded[name], strict=True)
    envs.close()
