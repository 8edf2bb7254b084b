"""Episodes of several agents are recorded with a group for each agent, and played again."""

import json
from typing import Any

import av
import h5py
import minari
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError

import cartwheel
from cartwheel.recorder import RecordEpisode, RecordParallelEpisode, TrajectoryDataset, replay
from tests.multiagent.environments import Guests, Talkers, Walkers
from tests.multiagent.oracle import MODES, Alone, blank
from tests.support.comparison import assert_identical
from tests.support.repetitions import times
from tests.support.wrapping import D, N, S

FORMATS = ["maniskill", "minari"]
EVERY_MODE = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)


def record(envs, folder, **keywords):
    keywords = {"trajectory_name": "demo-v0", "save_video": False, **keywords}
    return RecordParallelEpisode(envs, folder, **keywords)


def read(folder, form="maniskill"):
    return TrajectoryDataset(folder / ("demo-v0" if form == "minari" else "demo-v0.h5"))


def guests(mode, num_envs=3, executor="inline", **keywords):
    return cartwheel.ParallelVectorEnv(
        [Guests] * num_envs, autoreset_mode=mode, executor=executor, num_workers=2, **keywords
    )


def walk(envs, steps, seed=3):
    """Steps with sampled actions, and resets rows that are over where nothing else does."""
    envs.action_space.seed(5)
    envs.reset(seed=seed)
    taken = []
    for _ in range(steps):
        actions = envs.action_space.sample()
        taken.append(actions)
        over = envs.step(actions)[4]["episode_over"]
        if envs.autoreset_mode == D and over.any():
            envs.reset(options={"reset_mask": over})
    return taken


def shown_by(agent, space):
    """The recorded observation of an agent, which may be absent."""
    return agent["observation"] if agent["present"] else blank(space)


def at(actions, row):
    """The action of a row."""
    return tuple(part[row] for part in actions) if isinstance(actions, tuple) else actions[row]


def played_alone(envs, row, seed, taken):
    """The complete episodes of a row that an environment plays alone: what each agent had."""
    alone, spaces = Alone(Guests(), D), envs.single_observation_space
    names = envs.possible_agents
    episodes, shown, steps = [], [alone.reset(seed + row)], []
    for actions in taken:
        if alone.over and envs.autoreset_mode == N:  # the step that resets
            shown, steps = [alone.reset()], []
            continue
        if alone.over:
            shown, steps = [alone.reset()], []
        own = {name: at(actions[name], row) for name in names}
        steps.append((own, alone.step(own)))
        shown.append(steps[-1][1])
        if alone.over:
            episodes.append(
                {
                    name: {
                        "obs": [
                            one[name]["observation"]
                            if one[name]["present"]
                            else blank(spaces[name])
                            for one in shown
                        ],
                        "present": [one[name]["present"] for one in shown],
                        "actions": [own[name] for own, _ in steps],
                        "rewards": [one[name]["reward"] for _, one in steps],
                        "terminated": [one[name]["terminated"] for _, one in steps],
                        "truncated": [one[name]["truncated"] for _, one in steps],
                        "acted": [one[name]["acted"] for _, one in steps],
                    }
                    for name in names
                }
            )
    return episodes


def stacked(values):
    if isinstance(values[0], dict):
        return {key: stacked([value[key] for value in values]) for key in values[0]}
    if isinstance(values[0], tuple):
        return tuple(stacked([value[key] for value in values]) for key in range(len(values[0])))
    return np.stack([np.asarray(value) for value in values])


def check(found, expected, context):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), context
        for key in expected:
            check(found[key], expected[key], (*context, key))
    elif isinstance(expected, tuple):
        for key, part in enumerate(expected):  # ManiSkill's files have no tuples
            own = found[key] if isinstance(found, tuple) else found[str(key)]
            check(own, part, (*context, key))
    else:
        assert np.array_equal(found, expected), (context, found, expected)


@EVERY_MODE
@pytest.mark.parametrize(("form", "executor"), [("maniskill", "inline"), ("minari", "process")])
def test_each_agent_has_what_it_had_in_its_environment_alone(tmp_path, mode, form, executor):
    steps = times(20, with_full=40)
    with record(guests(mode, executor=executor), tmp_path, format=form) as envs:
        taken = walk(envs, steps)
    dataset = read(tmp_path, form)
    names = [str(name) for name in envs.possible_agents]
    assert dataset.json_data["agents"] == names
    compared = 0
    for row in range(3):
        own = [number for number, about in enumerate(dataset.episodes) if about["env_index"] == row]
        alone = played_alone(envs, row, 3, taken)
        assert len(alone) <= len(own) <= len(alone) + 1
        for number, expected in zip(own, alone, strict=False):
            episode, about = dataset.episode(number), dataset.episodes[number]
            rewards = np.zeros(about["elapsed_steps"])
            last = {"terminated": False, "truncated": False}
            for name in envs.possible_agents:
                parts = {part: stacked(values) for part, values in expected[name].items()}
                found = {part: episode[part][str(name)] for part in ("obs", "present", "actions")}
                check(found | episode["agents"][str(name)], parts, (row, number, name))
                assert about["returns"][str(name)] == parts["rewards"].sum()
                rewards = rewards + parts["rewards"]
                last = {flag: last[flag] or bool(parts[flag][-1]) for flag in last}
            if not any(last.values()):  # the last ones vanished
                last["terminated"] = True
            np.testing.assert_allclose(episode["rewards"], rewards, rtol=1e-6)
            for flag, value in last.items():
                assert about[flag] == value == episode[flag][-1]
                assert not episode[flag][:-1].any()
            compared += 1
    assert compared > steps * 3 // 10


@EVERY_MODE
@pytest.mark.parametrize("form", FORMATS)
def test_episodes_are_played_again_to_the_bit(tmp_path, mode, form):
    with record(guests(mode, state=True), tmp_path, format=form) as envs:
        walk(envs, 25)
    dataset = read(tmp_path, form)
    assert len(dataset.episodes) > 6
    for other in (S, N):
        with guests(other, num_envs=2, state=True) as envs:
            played = replay(dataset, envs)
        for number, episode in enumerate(played):
            recorded = dataset.episode(number)
            assert set(episode) == set(recorded)
            assert_identical(episode, recorded)
            assert set(episode["agents"]) == {"host", "guest_10", "guest_2", "7"}


def test_minari_reads_dictionaries_by_agent_and_their_infos(tmp_path):
    with record(guests(S), tmp_path, format="minari") as envs:
        walk(envs, 25)
    dataset = minari.MinariDataset(tmp_path / "demo-v0" / "data")
    ours = read(tmp_path, "minari")
    assert len(dataset) == len(ours.episodes) > 6
    assert set(dataset.action_space.spaces) == {"host", "guest_10", "guest_2", "7"}
    seen = 0
    for number, episode in enumerate(dataset):
        own = ours.episode(number)
        assert_identical(episode.observations, own["obs"])
        assert_identical(episode.actions, own["actions"])
        assert episode.rewards.shape == episode.terminations.shape == (len(episode),)
        for name, agent in own["agents"].items():
            theirs = episode.infos["agents"][name]
            assert_identical({key: theirs[key] for key in agent}, agent)
            acted = agent["acted"]
            sums = episode.infos.get(name, {}).get("sum")
            if sums is not None:  # a number where the agent said it
                said = ~np.isnan(sums[1:])
                np.testing.assert_array_equal(
                    sums[1:][said & acted], agent["rewards"][said & acted]
                )
                seen += said.sum()
    assert seen > 20


def test_the_file_has_a_group_for_each_agent(tmp_path):
    with record(guests(S, state=True), tmp_path) as envs:
        walk(envs, 12)
    known = json.loads((tmp_path / "demo-v0.json").read_text())
    assert known["env_info"]["env_id"] == "guests"
    with h5py.File(tmp_path / "demo-v0.h5") as file:
        group = file["traj_0"]
        steps = len(group["terminated"])
        top = {"agents", "env_states", "rewards", "state", "terminated", "truncated"}
        assert set(group) == top
        assert list(group["agents"]) == ["host", "guest_10", "guest_2", "7"]
        agent = group["agents/guest_2"]
        shapes = {name: (agent[name].shape, agent[name].dtype.str) for name in agent}
        assert group["state"].shape == (steps + 1, 2)
    assert shapes == {
        "obs": ((steps + 1, 2, 3), "|u1"),
        "present": ((steps + 1,), "|b1"),
        "actions": ((steps, 2), "<i8"),
        "rewards": ((steps,), "<f8"),
        "terminated": ((steps,), "|b1"),
        "truncated": ((steps,), "|b1"),
        "acted": ((steps,), "|b1"),
    }


NAMES = ["host", "guest_10", "guest_2", "7"]
REPORTS = {"success", "fail"}


class Achievers(Guests):
    """Guests whose infos say whether they succeeded: of the last one now and then."""

    def step(self, actions):
        before = set(self.agents)
        results = super().step(actions)
        infos = results[4]
        for name in before:
            if name != 7 or self.rng.random() < 0.2:
                succeeded = results[1][name] > 2
                infos[name] = infos.get(name, {}) | {"success": succeeded, "fail": not succeeded}
        return results


@EVERY_MODE
def test_success_is_that_of_each_agent(tmp_path, mode):
    envs = cartwheel.ParallelVectorEnv([Achievers] * 3, autoreset_mode=mode, executor="inline")
    with record(envs, tmp_path) as envs:
        walk(envs, times(20, with_full=40))
    with h5py.File(tmp_path / "demo-v0.h5") as file:
        said = {(name, "success" in file[f"{one}/agents/{name}"]) for one in file for name in NAMES}
    assert said >= {("host", True), ("7", True), ("7", False)}
    dataset = read(tmp_path)
    assert dataset.success is None
    for name, agent in dataset.agents.items():
        assert agent["success"].dtype == agent["fail"].dtype == np.bool_
        succeeded = agent["acted"] & (agent["rewards"] > 2)
        if name == "7":
            assert not (agent["success"] & ~succeeded).any()
            assert not (agent["fail"] & (succeeded | ~agent["acted"])).any()
        else:
            np.testing.assert_array_equal(agent["success"], succeeded)
            np.testing.assert_array_equal(agent["fail"], agent["acted"] & ~succeeded)
        assert (agent["success"] | agent["fail"]).any()
    with cartwheel.ParallelVectorEnv([Achievers] * 2, executor="inline") as envs:
        for number, episode in enumerate(replay(dataset, envs)):
            recorded = dataset.episode(number)["agents"]
            for name, agent in episode["agents"].items():  # infos are not played again
                own = {part: recorded[name][part] for part in recorded[name].keys() - REPORTS}
                assert_identical(agent, own)


def walkers(mode=N, **keywords):
    return cartwheel.ParallelVectorEnv(
        [Walkers] * 2, autoreset_mode=mode, executor="inline", **keywords
    )


def test_a_limit_truncates_the_agents_that_live(tmp_path):
    with record(walkers(S, max_episode_steps=3), tmp_path) as envs:
        envs.reset(seed=[0, 0])
        for _ in range(3):
            envs.step(envs.action_space.sample())
    episode, about = read(tmp_path).episode(0), read(tmp_path).episodes[0]
    assert (about["terminated"], about["truncated"]) == (True, True)
    agents = episode["agents"]
    assert [agents[f"walker_{n}"]["terminated"].tolist() for n in range(3)] == [
        [False, True, False],
        [False, False, True],
        [False, False, False],
    ]
    assert [agents[f"walker_{n}"]["truncated"][-1] for n in range(3)] == [False, False, True]
    assert [agents[f"walker_{n}"]["acted"].tolist() for n in (0, 2)] == [
        [True, True, False],
        [True, True, True],
    ]
    assert episode["present"]["walker_0"].tolist() == [True, True, True, False]


def test_frozen_rows_and_failed_steps_are_not_written(tmp_path):
    envs = cartwheel.ParallelVectorEnv(
        [Walkers, lambda: Walkers(fails_at=3)],
        autoreset_mode=D,
        executor="inline",
        on_done="freeze",
        on_error="restart",
    )
    with record(envs, tmp_path) as envs:
        envs.reset(seed=[0, 0])
        for _ in range(7):
            envs.step(envs.action_space.sample())
    dataset = read(tmp_path)
    by_row = {about["env_index"]: about for about in dataset.episodes}
    assert by_row[0]["elapsed_steps"] == 4
    assert by_row[0]["terminated"]
    assert by_row[1]["elapsed_steps"] == 2  # the third failed
    assert not by_row[1]["terminated"]
    assert not by_row[1]["truncated"]


@pytest.mark.parametrize("mode", [N, S])
def test_rows_that_are_sent_and_received_are_recorded(tmp_path, mode):
    envs = cartwheel.ParallelVectorEnv(
        [Walkers] * 4, autoreset_mode=mode, executor="process", num_workers=2, batch_size=2
    )
    with record(envs, tmp_path) as envs:
        envs.send_reset(seed=[0, 1, 2, 3])
        sent = np.zeros(4, int)
        for _ in range(40):
            rows = envs.recv()[4]["env_index"]
            sent[rows] += 1
            actions = {name: np.full((len(rows), 1), 0.5) for name in envs.possible_agents}
            envs.send(actions, rows)
    dataset = read(tmp_path)
    lengths = {row: 4 + row % 3 for row in range(4)}
    ended = [about for about in dataset.episodes if about["terminated"]]
    assert len(ended) > 8
    for about in ended:
        if about["episode_in_row"] == 0:
            assert about["elapsed_steps"] == lengths[about["env_index"]]
        assert about["returns"]["walker_0"] == 0.5 * (about["elapsed_steps"] - 2)


def test_resets_cut_episodes_short_or_discard_them(tmp_path):
    with record(walkers(), tmp_path) as envs:
        envs.reset(seed=0)
        envs.step(envs.action_space.sample())
        envs.reset(options={"env_index": [1]})
        envs.step(envs.action_space.sample())
        envs.reset(save=False)
        envs.flush()
        dataset = read(tmp_path)
        assert [about["env_index"] for about in dataset.episodes] == [1]
        with pytest.raises(TypeError, match="`save` must be"):
            envs.reset(save=1)
    assert len(read(tmp_path).episodes) == 1  # the last episodes have no step
    assert envs.closed


def test_groups_rows_and_evaluations_are_recorded_too(tmp_path):
    with record(walkers(S), tmp_path) as envs:
        groups = envs.by_group({"all": envs.possible_agents})
        groups.reset(seed=0)
        for _ in range(8):
            groups.step({"all": np.zeros((2, 3, 1), np.float32)})
        rows = envs.as_rows()
        rows.reset(seed=0)
        rows.step(rows.action_space.sample())
        found = cartwheel.evaluate(
            envs,
            lambda observations: {name: one[:, :1] for name, one in observations.items()},
            episodes_per_env=2,
            seed=7,
        )
        envs.flush()
        whole = [about for about in read(tmp_path).episodes if about["row_seed"] in (7, 8)]
        complete = [about for about in whole if about["terminated"]]
    assert len(complete) == 4
    for about in complete:
        row, episode = about["env_index"], about["episode_in_row"]
        assert about["return"] == pytest.approx(found.total.returns[row, episode])
        returns = {name: agent.returns[row, episode] for name, agent in found.agents.items()}
        assert about["returns"] == returns


def test_rewards_are_left_out_if_asked(tmp_path):
    with record(walkers(S), tmp_path, record_reward=False) as envs:
        walk(envs, 6, seed=0)
    dataset = read(tmp_path)
    assert dataset.rewards is None
    assert set(dataset.agents["walker_1"]) == {"terminated", "truncated", "acted"}
    assert dataset[2]["agents"]["walker_1"]["acted"]


def test_what_cannot_be_recorded_is_refused(tmp_path):
    with walkers() as envs:
        with pytest.raises(TypeError, match="RecordParallelEpisode"):
            RecordEpisode(envs, tmp_path)
        with pytest.raises(TypeError, match="`save_videos` is not a keyword of RecordParallelEp"):
            RecordParallelEpisode(envs, tmp_path, save_videos=True)
        with pytest.raises(ValueError, match="render_mode is None"):
            RecordParallelEpisode(envs, tmp_path, save_video=True)
        with record(envs, tmp_path) as again, pytest.raises(TypeError, match="records its epi"):
            RecordParallelEpisode(again, tmp_path)
    with (
        cartwheel.NativeVectorEnv("CartPole-v1", 1) as envs,
        pytest.raises(TypeError, match="RecordEpisode records others"),
    ):
        RecordParallelEpisode(envs, tmp_path)
    with (
        cartwheel.ParallelVectorEnv([Talkers], executor="inline") as envs,
        pytest.raises(TypeError, match="`obs/a` has no fixed shape"),
    ):
        RecordParallelEpisode(envs, tmp_path)
    for names in (("a", "b/c", "d", "e"), ("7", "b", "c", 7), ("a", "b", "c", "agents")):
        with (
            cartwheel.ParallelVectorEnv(
                [lambda names=names: Guests(names)], executor="inline"
            ) as envs,
            pytest.raises(ValueError, match="groups of their names"),
        ):
            RecordParallelEpisode(envs, tmp_path)


class Painted(Walkers):
    """Walkers that are drawn: red tells the step."""

    metadata = {"name": "painted", "render_modes": ["rgb_array"]}  # noqa: RUF012
    render_mode: Any = "rgb_array"

    def render(self):
        return np.full((300, 300, 3), 20 * self.t, np.uint8)


@pytest.mark.parametrize("mode", [N, S])
def test_videos_show_environments(tmp_path, mode):
    envs = cartwheel.ParallelVectorEnv([Painted] * 2, autoreset_mode=mode, executor="inline")
    keywords = {"trajectory_name": "demo-v0", "info_on_video": True}
    with RecordParallelEpisode(envs, tmp_path, **keywords) as envs:
        envs.reset(seed=[0, 1])
        for _ in range(4):
            envs.step(envs.action_space.sample())
    about = read(tmp_path).episodes[0]
    (name,) = about["videos"]
    with av.open(tmp_path / name) as video:
        frames = [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)]
    assert len(frames) == about["elapsed_steps"] + 1 == 5
    assert frames[0][-1, -1, 0] < 20 < frames[-1][-1, -1, 0]


def test_rows_in_flight_cannot_be_asked_for_terminal_frames(tmp_path):
    with cartwheel.ParallelVectorEnv([Painted] * 2, autoreset_mode=S, executor="inline") as envs:
        envs.reset()
        envs.send({name: np.zeros((1, 1)) for name in envs.possible_agents}, [0])
        with pytest.raises(AlreadyPendingCallError, match=r"`RecordParallelEpisode` while rows"):
            RecordParallelEpisode(envs, tmp_path, save_video=True)


def test_a_loaded_state_continues_and_cuts_episodes_short(tmp_path):
    with record(guests(S), tmp_path) as envs:
        walk(envs, 3)
        state = envs.state_dict()
        actions = [envs.action_space.sample() for _ in range(9)]
        first = [envs.step(each) for each in actions]
        envs.load_state_dict(state)
        again = [envs.step(each) for each in actions]
        for one, other in zip(first, again, strict=True):
            assert_identical(one[:4], other[:4])
        envs.flush()
        before = len(read(tmp_path).episodes)
    dataset = read(tmp_path)
    assert len(dataset.episodes) >= before
    lengths = [about["elapsed_steps"] for about in dataset.episodes]
    assert len(dataset) == sum(lengths) > 20
