"""Native environments that name their agents are those of their twin in Python, by agent."""

import functools
import importlib

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import AutoresetMode

import cartwheel
from cartwheel._internal import nested
from cartwheel.recorder import RecordParallelEpisode, TrajectoryDataset, replay
from tests.native.plugins.chase_and_relay import Chase, Relay
from tests.support.comparison import assert_identical
from tests.support.one_thread import one_thread

RELAY, TEAM = "test_plugin/Relay-v0", "test_plugin/Team-v0"
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]
AGENTS = ["left", "right", "late"]

pytestmark = pytest.mark.usefixtures("plugin")


def twins(num_envs, mode, **keywords):
    """The native environments, and those in Python."""
    own = {"autoreset_mode": mode, **keywords}
    native = cartwheel.ParallelVectorEnv.native(RELAY, num_envs, **own)
    twin = cartwheel.ParallelVectorEnv(
        [Relay] * num_envs, executor="inline", state=True, max_episode_steps=9, **own
    )
    return native, twin


def unequal_twins(case, num_envs, mode, **keywords):
    """The same with agents of unequal spaces: parts with their names, or a dimension."""
    own = {"autoreset_mode": mode, **keywords}
    env_id, options, make = {
        "named": ("test_plugin/Chase-v0", {}, Chase),
        "dimension": (RELAY, {"uneven": True}, functools.partial(Relay, uneven=True)),
    }[case]
    native = cartwheel.ParallelVectorEnv.native(env_id, num_envs, **own, **options)
    twin = cartwheel.ParallelVectorEnv(
        [make] * num_envs,
        executor="inline",
        state=case == "dimension",
        max_episode_steps=9,
        **own,
    )
    return native, twin


def without_infos(infos):
    """Infos that both have: those of an agent, or of a row, differ."""
    left_out = {"final_info", "_final_info", "steps", "_steps", *AGENTS, *Chase.possible_agents}
    return {key: value for key, value in infos.items() if key not in left_out}


def check(results, others, context):
    *arrays, infos = results
    *other_arrays, other_infos = others
    assert_identical(arrays, other_arrays)
    finals = without_infos(infos)
    other_finals = without_infos(other_infos)
    assert finals.keys() == other_finals.keys(), context
    if "final_obs" in finals:  # outside of the masks values are unspecified
        for name, mask in finals["_final_obs"].items():
            shown, other = finals["final_obs"][name], other_finals["final_obs"][name]
            assert_identical(nested.at(shown, mask), nested.at(other, mask))
        if "final_state" in finals:
            over = finals["_final_state"]
            np.testing.assert_array_equal(
                finals["final_state"][over], other_finals["final_state"][over]
            )
        for key in ("final_obs", "final_state"):
            finals.pop(key, None), other_finals.pop(key, None)
    assert_identical(finals, other_finals)


def play(native, twin, steps=60, seed=4):
    native.action_space.seed(7)
    check(native.reset(seed=seed), twin.reset(seed=seed), "reset")
    ended = 0
    for step in range(steps):
        assert_identical(native.action_masks(), twin.action_masks())
        actions = native.action_space.sample()
        results = native.step(actions)
        check(results, twin.step(actions), step)
        over = results[4]["episode_over"]
        ended += over.sum()
        if native.autoreset_mode == AutoresetMode.DISABLED and over.any():
            options = {"reset_mask": over}
            check(native.reset(options=options), twin.reset(options=options), step)
    return ended


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize(("num_envs", "num_workers"), [(1, 1), (7, 3)])
def test_results_are_those_of_the_twin(mode, num_envs, num_workers):
    native, twin = twins(num_envs, mode)
    native.close()
    native = cartwheel.ParallelVectorEnv.native(
        RELAY, num_envs, autoreset_mode=mode, num_workers=num_workers
    )
    with native, twin:
        assert native.possible_agents == AGENTS
        assert native.single_observation_space == twin.single_observation_space
        assert native.single_action_space == twin.single_action_space
        assert native.state_space == twin.state_space
        assert play(native, twin) > 4 * num_envs


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_a_flag_of_an_agent_that_is_not_zero_is_a_true_flag(mode):
    """As flags of rows: the only truth values of NumPy are the bytes 0 and 1."""
    loud, quiet = (
        cartwheel.ParallelVectorEnv.native(RELAY, 4, autoreset_mode=mode, loud=loud)
        for loud in (True, False)
    )
    with loud, quiet:
        assert play(loud, quiet) > 16


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("players", [1, 2, 5])
def test_an_option_decides_how_many_agents_there_are_and_each_ends_once(players, mode):
    names = [f"player_{place}" for place in range(players)]
    keywords = {"players": players, "autoreset_mode": mode}
    with cartwheel.ParallelVectorEnv.native(TEAM, 3, **keywords) as envs:
        assert envs.possible_agents == names
        envs.reset(seed=1)
        for step in range(1, players + 1):
            moves = {name: np.ones(3, int) for name in names}
            _, rewards, terminations, truncations, infos = envs.step(moves)
            for moves_of_agent, name in enumerate(names, 1):
                acts = [step <= moves_of_agent] * 3
                assert infos["acted"][name].tolist() == rewards[name].tolist() == acts
                assert terminations[name].tolist() == [step == moves_of_agent] * 3
                assert not truncations[name].any()
            assert infos["episode_over"].tolist() == [step == players] * 3
            if step < players:
                assert infos["left"].dtype == np.int64
                assert infos["left"].tolist() == [players - step] * 3
                assert infos["players"].tolist() == [list(range(step, players))] * 3


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_agents_that_are_left_when_their_row_ends_end_with_it(mode, tmp_path):
    """The author ends the episode with the last of three players, and not that player."""
    envs = cartwheel.ParallelVectorEnv.native(TEAM, 2, last=1, autoreset_mode=mode)
    names = envs.possible_agents
    with RecordParallelEpisode(envs, tmp_path, trajectory_name="team") as envs:
        envs.reset(seed=1)
        for ended in (names[:1], names[1:]):
            _, _, terminations, truncations, infos = envs.step(
                {name: np.ones(2, int) for name in names}
            )
            for name in names:
                assert terminations[name].tolist() == [name in ended] * 2
                assert not truncations[name].any()
        assert infos["episode_over"].all()
    episode = TrajectoryDataset(tmp_path / "team.h5").episode(0)
    for name in names:
        is_first = name == names[0]
        assert episode["agents"][name]["terminated"].tolist() == [is_first, not is_first]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("case", ["named", "dimension"])
@pytest.mark.parametrize("num_envs", [1, 7])
def test_agents_may_have_unequal_spaces(case, mode, num_envs):
    native, twin = unequal_twins(case, num_envs, mode)
    with native, twin:
        assert native.possible_agents == twin.possible_agents
        for spaces in ("single_observation_space", "single_action_space", "observation_space"):
            assert getattr(native, spaces) == getattr(twin, spaces)
        assert len(set(map(str, native.single_action_space.values()))) == 2
        assert play(native, twin) > 4 * num_envs


@pytest.mark.parametrize("case", ["named", "dimension"])
def test_agents_of_unequal_spaces_have_every_other_form(case, tmp_path):
    native, twin = unequal_twins(case, 3, AutoresetMode.SAME_STEP)
    agents, spaces = native.possible_agents, native.single_action_space
    groups = {}
    for name in agents:
        groups.setdefault(str(spaces[name]), []).append(name)
    with native, twin:
        pair = [envs.by_group(groups) for envs in (native, twin)]
        check(*(one.reset(seed=3) for one in pair), "reset")
        for _ in range(12):
            actions = {name: space.sample() for name, space in pair[0].action_spaces.items()}
            (*arrays, infos), (*others, other_infos) = (one.step(actions) for one in pair)
            assert_identical(arrays, others)
            assert_identical(infos["present"], other_infos["present"])
            assert arrays[0].keys() == groups.keys()
            assert_identical(*(one.action_masks() for one in pair))
        with pytest.raises(ValueError, match=r"with the same .* space"):
            native.as_rows()
        with pytest.raises(ValueError, match=r"with the same .* space"):
            native.by_group({"all": agents})

        def policy(observations):
            return {
                name: np.zeros((len(lead(one)), *spaces[name].shape), spaces[name].dtype)
                for name, one in observations.items()
            }

        evaluations = []
        for envs, folder in ((native, "native"), (twin, "twin")):
            keywords = {"trajectory_name": "demo", "save_video": False}
            with RecordParallelEpisode(envs, tmp_path / folder, **keywords) as recorded:
                evaluations.append(cartwheel.evaluate(recorded, policy, episodes_per_env=2, seed=2))
    for name in agents:
        found, expected = (evaluation.agents[name].returns for evaluation in evaluations)
        np.testing.assert_array_equal(found, expected)
    ours, theirs = (
        TrajectoryDataset(tmp_path / folder / "demo.h5") for folder in ("native", "twin")
    )
    for number in range(len(theirs.episodes)):
        assert_identical(ours.episode(number), theirs.episode(number))
    envs, twin = unequal_twins(case, 2, AutoresetMode.NEXT_STEP)
    with envs, twin:
        for number, episode in enumerate(replay(ours, envs)):
            assert_identical(episode, ours.episode(number))


def lead(observation):
    """One of the arrays of an observation, for its number of rows."""
    return next(iter(observation.values())) if isinstance(observation, dict) else observation


@pytest.mark.parametrize("case", ["named", "dimension"])
def test_rows_of_unequal_spaces_are_sent_frozen_and_continued(case):
    mode = AutoresetMode.DISABLED
    native, twin = unequal_twins(case, 4, mode, on_done="freeze")
    with native, twin:
        check(native.reset(seed=1), twin.reset(seed=1), "reset")
        native.action_space.seed(2)
        taken = [native.action_space.sample() for _ in range(12)]
        for step, actions in enumerate(taken):
            if step == 2:
                state = native.state_dict()
                kept = native.step(actions), native.action_masks()
                native.load_state_dict(state)
                assert_identical((native.step(actions), native.action_masks()), kept)
                check(kept[0], twin.step(actions), step)
                continue
            check(native.step(actions), twin.step(actions), step)
        rows = np.array([2, 0])
        native.reset(seed=5), twin.reset(seed=5)
        actions = {name: part[:2] for name, part in native.action_space.sample().items()}
        results = []
        for envs in (native, twin):
            envs.send(actions, rows)
            results.append((envs.recv(min_rows=2), envs.action_masks()))
        (found, masks), (expected, other_masks) = results
        check(found, expected, "recv")
        assert_identical(masks, other_masks)
        with pytest.raises((TypeError, ValueError), match="action"):
            native.step({name: np.full(4, 99) for name in native.possible_agents})


def test_an_integer_that_no_agent_can_have_is_at_the_position_of_its_row():
    with cartwheel.NativeVectorEnv(TEAM, 3, players=2) as envs:
        envs.reset()
        actions = np.zeros((3, 2), np.uint64)
        actions[1, 1] = 2**63
        with pytest.raises(ValueError, match=f"^action {2**63} at position 1 is not from"):
            envs.step(actions)


def test_observations_by_agent_and_by_group_are_views_of_the_rows():
    with cartwheel.ParallelVectorEnv.native(RELAY, 5) as envs:
        observations, _ = envs.reset(seed=0)
        places = [observations[name]["place"] for name in AGENTS]
        assert all(one.base is not None and one.strides == (24, 4) for one in places)
        assert len({one.base.__array_interface__["data"][0] for one in places}) == 1
        groups = envs.by_group({"first": ["left", "right"], "other": ["late"]})
        found, infos = groups.reset(seed=0)
        assert found["first"]["place"].shape == (5, 2, 2)
        assert found["first"]["place"].strides == (24, 8, 4)
        assert infos["present"]["first"].all()
        assert not infos["present"]["other"].any()
        kept = found["first"]["place"].copy()
        for _ in range(4):
            groups.step({"first": np.full((5, 2), 2), "other": np.zeros((5, 1), int)})
        np.testing.assert_array_equal(found["first"]["place"], kept)


def test_the_last_infos_of_rows_are_those_of_the_rows_themselves():
    mode = AutoresetMode.SAME_STEP
    with (
        cartwheel.NativeVectorEnv(RELAY, 3, autoreset_mode=mode) as rows,
        cartwheel.ParallelVectorEnv.native(RELAY, 3, autoreset_mode=mode) as by_agent,
        cartwheel.ParallelVectorEnv.native(RELAY, 3, autoreset_mode=mode) as others,
    ):
        of_agents = others.as_rows()
        for envs in (rows, by_agent, of_agents):
            envs.reset(seed=4)
        ended = 0
        for _ in range(40):
            expected = rows.step(np.full((3, 3), 2))[4]
            infos = by_agent.step({name: np.full(3, 2) for name in AGENTS})[4]
            infos_of_agents = of_agents.step(np.full(9, 2))[4]
            assert_identical(infos["steps"], expected["steps"])
            if "final_info" not in expected:
                continue
            last, mask = (expected["final_info"][key] for key in ("steps", "_steps"))
            assert_identical(infos["final_info"]["steps"], last)
            assert_identical(infos["final_info"]["_steps"], mask)
            over, found = np.repeat(mask, 3), infos_of_agents["final_info"]
            assert found["_steps"][over].all()
            assert_identical(found["steps"][over], np.repeat(last, 3)[over])
            ended += int(mask.sum())
        assert ended > 6


@pytest.mark.parametrize("mode", MODES[:2], ids=lambda mode: mode.value)
def test_rows_that_are_sent_are_received_as_they_are_stepped(mode):
    native, twin = twins(6, mode)
    native.close()
    keywords = {"autoreset_mode": mode, "batch_size": 2, "num_workers": 2}
    with cartwheel.ParallelVectorEnv.native(RELAY, 6, **keywords) as native, twin:
        native.send_reset(seed=4)
        expected = {row: [] for row in range(6)}
        result = twin.reset(seed=4)
        for step in range(20):
            rewards = None if step == 0 else result[1]
            for row in range(6):
                place = result[0]["right"]["place"][row].tolist()
                acted = None if step == 0 else [rewards[name][row] for name in AGENTS]
                expected[row].append((place, acted))
            result = twin.step({name: np.full(6, 2) for name in AGENTS})
        seen = dict.fromkeys(range(6), 0)
        while len(native.in_flight) >= 2:
            observations, rewards, *_, infos = native.recv()
            rows = infos["env_index"]
            for place, row in enumerate(rows.tolist()):
                shown, acted = expected[row][seen[row]]
                assert observations["right"]["place"][place].tolist() == shown
                if acted is not None:
                    assert [rewards[name][place] for name in AGENTS] == acted
                seen[row] += 1
            rows = rows[[seen[row] < 20 for row in rows.tolist()]]
            if len(rows):
                native.send({name: np.full(len(rows), 2) for name in AGENTS}, rows)
        assert sorted(seen.values())[1:] == [20] * 5  # one alone is not a batch of two


def test_frozen_rows_and_failed_rows_are_as_in_python():
    native, twin = twins(3, AutoresetMode.DISABLED, on_done="freeze")
    with native, twin:
        check(native.reset(seed=1), twin.reset(seed=1), "reset")
        for step in range(14):
            actions = {name: np.full(3, 2) for name in AGENTS}
            results = native.step(actions)
            check(results, twin.step(actions), step)
        assert not any(results[4]["acted"][name].any() for name in AGENTS)
        assert not any(results[1][name].any() for name in AGENTS)
    failing = cartwheel.ParallelVectorEnv.native(
        RELAY, 8, fails=True, on_error="restart", autoreset_mode="same_step", max_restarts=None
    )
    with failing:
        failing.reset(seed=0)
        failures = 0
        for _ in range(12):
            _, rewards, terminations, _, infos = failing.step(
                {name: np.full(8, 2) for name in AGENTS}
            )
            if "_env_error" not in infos:
                continue
            failed = infos["_env_error"]
            failures += failed.sum()
            assert infos["episode_over"][failed].all()
            for name in AGENTS:
                assert not infos["acted"][name][failed].any()
                assert not rewards[name][failed].any()
                assert not terminations[name][failed].any()
        assert failures > 4


def test_states_continue_bit_for_bit():
    native, twin = twins(4, AutoresetMode.NEXT_STEP)
    with native, twin:
        play(native, twin, steps=5)
        state = native.state_dict()
        actions = {name: np.full(4, 1) for name in AGENTS}
        first = [native.step(actions) for _ in range(9)]
        native.load_state_dict(state)
        assert_identical([native.step(actions) for _ in range(9)], first)
        rows = native.get_state([2])
        native.set_state([0], rows)


def test_episodes_are_evaluated_recorded_and_played_again(tmp_path):
    native, twin = twins(3, AutoresetMode.SAME_STEP)

    def policy(observations):
        return {name: one["place"][:, 1].astype(int) % 3 for name, one in observations.items()}

    with twin:
        expected = cartwheel.evaluate(twin, policy, episodes_per_env=3, seed=2)
    with RecordParallelEpisode(native, tmp_path, trajectory_name="relay") as native:
        found = cartwheel.evaluate(native, policy, episodes_per_env=3, seed=2)
    for name in AGENTS:
        for part in ("returns", "lengths", "terminated", "truncated"):
            np.testing.assert_array_equal(
                getattr(found.agents[name], part), getattr(expected.agents[name], part)
            )
    dataset = TrajectoryDataset(tmp_path / "relay.h5")
    assert len(dataset.episodes) >= 9
    with cartwheel.ParallelVectorEnv.native(RELAY, 2) as envs:
        for number, episode in enumerate(replay(dataset, envs)):
            assert_identical(episode, dataset.episode(number))


def test_errors_have_the_name_of_the_class_that_was_made():
    envs = cartwheel.ParallelVectorEnv.native(RELAY, 1)
    envs.close()
    with pytest.raises(ClosedEnvironmentError, match="operate on `ParallelVectorEnv`, after"):
        envs.reset()


def test_the_rows_stay_what_they_are():
    with cartwheel.NativeVectorEnv(RELAY, 2) as envs:
        observations, _ = envs.reset(seed=0)
        assert observations["agents"]["place"].shape == (2, 3, 2)
        assert envs.step(np.full((2, 3), 1))[1].shape == (2,)
    with cartwheel.ParallelVectorEnv.native(RELAY, 3) as envs:
        assert envs.processes == []
        rows = envs.as_rows()
        assert rows.reset(seed=0)[0]["place"].shape == (9, 2)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", [RELAY, TEAM, "test_plugin/Chase-v0"])
def test_the_rows_pass_the_checks_for_authors(env_id):
    with cartwheel.ParallelVectorEnv.native(env_id, 3) as envs:
        cartwheel.testing.check_vector_env(envs)


@pytest.mark.parametrize(
    ("env_id", "keywords", "error", "text"),
    [
        ("CartPole-v1", {}, ValueError, "CartPole-v1 does not name its agents"),
        (
            RELAY,
            {"action_repeat": 2},
            TypeError,
            "`action_repeat`.*repeat actions in the environment",
        ),
        (RELAY, {"final_obs": "dense"}, TypeError, "dictionaries by agent"),
        (RELAY, {"action_mask": "place"}, ValueError, "a mask of its actions is an array of 3"),
        (RELAY, {"action_mask": 3}, TypeError, "`action_mask` must be the key of masks"),
        (RELAY, {"fail": True}, TypeError, "did you mean `fails`"),
        (RELAY, {"executor": "process"}, ValueError, "`executor`"),
    ],
)
def test_what_has_no_agents_is_refused(env_id, keywords, error, text):
    with pytest.raises(error, match=text):
        cartwheel.ParallelVectorEnv.native(env_id, 2, **keywords)


@pytest.mark.torch
def test_models_of_stable_baselines3_see_native_agents_as_those_in_python():
    one_thread()
    kind = importlib.import_module("cartwheel.sb3").CartwheelAgentsVecEnv
    both = [kind(envs, monitor=True) for envs in twins(2, AutoresetMode.SAME_STEP)]
    for envs in both:
        envs.seed(3)
    assert_identical(*(envs.reset() for envs in both))
    ended = 0
    for actions in np.random.default_rng(1).integers(0, 3, (30, 6)):
        found, expected = (envs.step(actions) for envs in both)
        assert_identical(found[:3], expected[:3])
        for own, wanted in zip(found[3], expected[3], strict=True):
            for key in ("acted", "present", "episode_over", "terminal_observation"):
                assert_identical(own.get(key), wanted.get(key), key)
            assert own.get("episode", {}).get("r") == wanted.get("episode", {}).get("r")
            ended += "episode" in own
        assert_identical(both[0].env_method("action_masks"), both[1].env_method("action_masks"))
    assert ended > 6
    for envs in both:
        envs.close()


@pytest.mark.torch
def test_rollouts_of_torchrl_with_native_agents_are_those_in_python():
    runs = importlib.import_module("tests.support.torchrl_runs")
    kind = importlib.import_module("cartwheel.torchrl").CartwheelAgentsEnv
    rollouts = []
    for envs in twins(2, AutoresetMode.DISABLED):
        env = kind(envs, use_mask=True)
        rollouts.append(runs.rolled_out(env, 30))
        env.close()
    assert rollouts[1]["next", "done"].sum() > 4
    runs.assert_same(*rollouts)
