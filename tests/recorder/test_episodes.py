"""Files have every episode as it was, in every kind, mode and order of calls."""

import numpy as np
import pytest

from cartwheel.recorder import RecordEpisode
from tests.support.recordings import assert_recorded, expected_episodes, recorded_episodes
from tests.support.wrapping import N, S, Script, alone, assert_lives, build, drive, settings_of

SCRIPT = Script(steps=12, resets={(1, 3): 50, (0, 3): 51, (2, 9): 52})


def record(envs, folder, **keywords):
    keywords = {"trajectory_name": "demo", "save_video": False, **keywords}
    return RecordEpisode(envs, folder, **keywords)


def settings(environment):
    """Few of those with processes, which take longer and hand over the same."""
    return [
        (kind, mode, way, keywords)
        for kind, mode, way, keywords in settings_of(environment)
        if kind != "process" or (mode, way) in ((N, "send"), (S, "mask"))
    ]


@pytest.mark.parametrize("environment", ["one step", "pendulum", "nested", "images"])
def test_files_have_the_true_episodes_of_every_row(environment, tmp_path):
    lives = alone(environment, SCRIPT)
    for number, (kind, mode, way, keywords) in enumerate(settings(environment)):
        folder = tmp_path / str(number)
        envs = build(kind, environment, mode, **keywords)
        space = envs.single_action_space
        driven = drive(record(envs, folder), SCRIPT, way)
        assert_lives(driven, lives)
        rows = recorded_episodes(folder, 3)
        assert_recorded(rows, expected_episodes(driven, SCRIPT, space))


def test_failed_steps_are_not_written(tmp_path):
    script = Script(
        steps=14, actions=lambda _row, k: k % 3, fails={(1, 4): 3, (0, 4): 3, (1, 9): 3}
    )
    for number, (kind, mode, way, keywords) in enumerate(settings("failing")):
        if kind != "sync":
            folder = tmp_path / str(number)
            envs = build(kind, "failing", mode, on_error="restart", **keywords)
            space = envs.single_action_space
            driven = drive(record(envs, folder), script, way)
            rows = recorded_episodes(folder, 3)
            assert_recorded(rows, expected_episodes(driven, script, space))
            # After a failure the environment is another one, with a seed that nobody gave.
            assert [about["row_seed"] for _, about in rows[0]][:1] == [1]
            assert rows[0][-1][1]["row_seed"] is None


def test_seeds_and_numbers_say_how_to_play_an_episode_again(tmp_path):
    for number, (kind, mode, way, keywords) in enumerate(settings("pole")):
        folder = tmp_path / str(number)
        envs = build(kind, "pole", mode, **keywords)
        space = envs.single_action_space
        driven = drive(record(envs, folder), SCRIPT, way)
        rows = recorded_episodes(folder, 3)
        assert_recorded(rows, expected_episodes(driven, SCRIPT, space))
        single = build("inline", "pole", num_envs=1)
        for row, episodes in enumerate(rows):
            assert episodes[0][1]["episode_seed"] == SCRIPT.seed + row
            assert {50, 51, 52} & {about["row_seed"] for _, about in episodes}
            for arrays, about in episodes:
                is_given = about["episode_in_row"] == 0
                assert about["episode_seed"] == (about["row_seed"] if is_given else None)
                assert about["reset_kwargs"] == ({"seed": about["row_seed"]} if is_given else {})
                first, _ = single.reset(seed=about["row_seed"])
                for _ in range(about["episode_in_row"]):
                    first, _ = single.reset()
                np.testing.assert_array_equal(first[0], arrays["obs"][0])
        single.close()
