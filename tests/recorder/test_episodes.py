"""Files have every episode as it was, in every kind, mode and order of calls."""

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel.recorder import RecordEpisode
from cartwheel.wrappers import (
    AutoresetAdapter,
    RecordEpisodeStatistics,
    RecordMetrics,
    VectorWrapper,
)
from tests.support import repetitions
from tests.support.comparison import assert_identical
from tests.support.environments import transcripts
from tests.support.recordings import (
    assert_recorded,
    expected_episodes,
    read_h5,
    recorded_episodes,
)
from tests.support.wrapping import (
    FAILING,
    MODES,
    SCRIPT,
    D,
    N,
    S,
    alone,
    assert_traces,
    build,
    drive,
    settings_of,
)

#: Settings of processes, with ``--full``.
FEW = ((N, "send"), (S, "mask"))


def record(envs, folder, **keywords):
    keywords = {"trajectory_name": "demo", "save_video": False, **keywords}
    return RecordEpisode(envs, folder, **keywords)


def settings(environment):
    """Few of those with processes, which take longer and hand over the same."""
    return [
        (kind, mode, way, keywords)
        for kind, mode, way, keywords in settings_of(environment)
        if kind != "process" or ((mode, way) in FEW if repetitions.full else way != "freeze")
    ]


@pytest.mark.parametrize("environment", ["one step", "pendulum", "nested", "images"])
def test_files_have_the_true_episodes_of_every_row(environment, tmp_path):
    traces = alone(environment, SCRIPT)
    for number, (kind, mode, way, keywords) in enumerate(settings(environment)):
        folder = tmp_path / str(number)
        envs = build(kind, environment, mode, **keywords)
        space = envs.single_action_space
        driven = drive(record(envs, folder), SCRIPT, way)
        assert_traces(driven, traces)
        rows = recorded_episodes(folder, 3)
        assert_recorded(rows, expected_episodes(driven, SCRIPT, space))


class LosingFinals(VectorWrapper):
    """Loses the infos of row 0 where its episode ends, as with a worker that dies then."""

    def transform(self, batch):
        finals = batch.infos.get("final_obs")
        if finals is not None:
            mask = batch.infos["_final_obs"] & (batch.rows > 0)
            lost = batch.infos["_final_obs"] & ~mask
            batch.add_info("infos_lost", lost, lost)
            batch.add_info("final_obs", np.where(mask, finals, None), mask)


@pytest.mark.parametrize("truncates", [False, True])
def test_a_step_whose_final_observation_was_lost_is_not_written(tmp_path, truncates):
    flags = {"terminates": not truncates, "truncates": truncates}
    envs = cartwheel.VectorEnv(
        transcripts(3, 3, **flags), executor="inline", autoreset_mode="same_step"
    )
    recorder = record(LosingFinals(envs), tmp_path)
    recorder.reset(seed=1)
    for _ in range(6):
        recorder.step([1, 1])
    recorder.close()
    cut, whole = recorded_episodes(tmp_path, 2)
    assert [arrays["obs"].ravel().tolist() for arrays, _ in cut] == [[0, 1, 2]] * 2
    assert [arrays["obs"].ravel().tolist() for arrays, _ in whole] == [[0, 1, 2, 3]] * 2
    assert not any(about["terminated"] or about["truncated"] for _, about in cut)
    assert all(about["terminated"] or about["truncated"] for _, about in whole)


def test_failed_steps_are_not_written(tmp_path):
    for number, (kind, mode, way, keywords) in enumerate(settings("failing")):
        folder = tmp_path / str(number)
        envs = build(kind, "failing", mode, **keywords)
        space = envs.single_action_space
        driven = drive(record(envs, folder), FAILING, way)
        rows = recorded_episodes(folder, 3)
        assert_recorded(rows, expected_episodes(driven, FAILING, space))
        # After a failure the environment is another one, with an unknown seed.
        assert [about["row_seed"] for _, about in rows[0]][:1] == [1]
        assert rows[0][-1][1]["row_seed"] is None


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize("kind", ["inline", "process", "native"])
def test_seeds_of_next_reset_are_those_of_their_episodes(kind, mode, tmp_path):
    envs = record(build(kind, "pendulum", mode, 2), tmp_path)
    envs.reset(seed=0)
    envs.next_reset(seed=[70, 71])
    still = np.zeros((2, 1), np.float32)
    for _ in range(20):  # episodes have 5 steps
        envs.step(still)
    envs.close()
    single = build(kind, "pendulum", mode, 1)
    for row, episodes in enumerate(recorded_episodes(tmp_path, 2)):
        abouts = [about for _, about in episodes[:3]]
        seeds = [about["episode_seed"] for about in abouts]
        assert seeds == [row, 70 + row, None]
        assert [about["row_seed"] for about in abouts] == [row, 70 + row, 70 + row]
        assert [about["episode_in_row"] for about in abouts] == [0, 0, 1]
        first, _ = single.reset(seed=70 + row)
        assert_identical(episodes[1][0]["obs"][:1], first)
    single.close()


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_of_a_row_that_continues_from_a_state_no_seed_is_known(mode, tmp_path):
    envs = record(build("native", "pendulum", mode, 2), tmp_path)
    envs.reset(seed=7)
    still = np.zeros((2, 1), np.float32)
    for _ in range(2):
        envs.step(still)
    states = envs.get_state()
    envs.step(still)
    envs.set_state([1], [states[0]])
    for _ in range(8):
        over = np.logical_or(*envs.step(still)[2:4])
        if mode == "disabled" and over.any():
            envs.reset(options={"reset_mask": over})
    envs.reset(seed=20)
    envs.step(still)
    envs.close()
    abouts = [[about for _, about in episodes] for episodes in recorded_episodes(tmp_path, 2)]
    assert [about["row_seed"] for about in abouts[0]] == [7] * (len(abouts[0]) - 1) + [20]
    found = [(about["row_seed"], about["episode_in_row"]) for about in abouts[1]]
    assert found[0] == (8, 0)
    assert found[1:-1] == [(None, number) for number in range(len(found) - 2)]
    assert len(found) > 3
    assert found[-1] == (21, 0)


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


#: Wrappers that report episodes, inside of a recorder; and the modes in which they are right.
REPORTS = {
    "statistics": (RecordEpisodeStatistics, MODES),
    "metrics": (RecordMetrics, MODES),
    "both": (lambda envs: RecordMetrics(RecordEpisodeStatistics(envs), stats_key="metrics"), MODES),
    "adapted": (lambda envs: AutoresetAdapter(RecordEpisodeStatistics(envs), S), [D]),
    "adapted metrics": (lambda envs: RecordMetrics(AutoresetAdapter(envs, S)), [D]),
    "gymnasium's": (gym.wrappers.vector.RecordEpisodeStatistics, [N, S]),
}


@pytest.mark.parametrize(
    ("name", "mode"), [(name, mode) for name, (_, modes) in REPORTS.items() for mode in modes]
)
def test_reports_of_an_episode_are_in_the_last_entry_of_its_own_infos(tmp_path, name, mode):
    wrap, _ = REPORTS[name]
    envs = wrap(cartwheel.VectorEnv(transcripts(3, 2), executor="inline", autoreset_mode=mode))
    envs = record(envs, tmp_path, format="minari")
    envs.reset(seed=1)
    for _ in range(12):
        over = np.logical_or(*envs.step([1, 1])[2:4])
        if over.any() and envs.autoreset_mode == D:
            envs.reset(options={"reset_mask": over})
    envs.close()
    lengths = []
    for episode in read_h5(tmp_path / "demo-v0" / "data" / "main_data.hdf5").values():
        length, infos = len(episode["rewards"]), episode["infos"]
        reports = [infos[key] for key in ("episode", "metrics") if key in infos]
        assert len(reports) == (1 + (name == "both") if episode["terminations"][-1] else 0)
        for report in reports:
            total, steps = ("r", "l") if "r" in report else ("return", "episode_len")
            assert report[steps].tolist() == [0] * length + [length]
            np.testing.assert_array_equal(report[total], [np.nan] * length + [length])
        lengths.append(length)
    assert lengths.count(3) >= 3
    assert lengths.count(2) >= 4
