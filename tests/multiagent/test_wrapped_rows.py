"""Wrappers around rows of agents: absent agents are neither steps nor observations."""
# ruff: noqa: ARG002 (signatures are PettingZoo's)

import pickle
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode

import cartwheel
from cartwheel.recorder import RecordEpisode, TrajectoryDataset
from cartwheel.wrappers import (
    AutoresetAdapter,
    DtypeObservation,
    FrameStack,
    NormalizeObservation,
    NormalizeReward,
    RecordEpisodeStatistics,
    RecordMetrics,
    SmoothAction,
    TransformObservation,
    TransformReward,
)
from tests.multiagent.environments import Guests, Walkers, rock_paper_scissors
from tests.multiagent.oracle import MODES
from tests.support.comparison import assert_identical
from tests.support.gates import Gates

EVERY_MODE = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
NAMES = ("a", "b", "c")


class Visitors(Guests):
    """Guests with equal spaces: they come late, leave with a flag or without, and come again.

    Their last step may have no observation.
    """

    def __init__(self):
        super().__init__(NAMES)

    def observation_space(self, agent):
        return Box(-np.inf, np.inf, (2,), np.float64)

    def action_space(self, agent):
        return Box(-1, 1, (1,), np.float32)

    def observe(self, agent):
        return np.array([10.0 + self.possible_agents.index(agent), 2.0 * self.t])


class Regulars(Visitors):
    """Visitors that may be back in the step that ends them."""

    rejoins = True


class Visits:
    """One environment alone: the visits of its agents that end, and the observations they get."""

    def __init__(self, env, mode):
        self.env, self.mode, self.over = env, mode, False
        self.seen, self.ended, self.rewards = [], {}, {}

    def reset(self, seed=None):
        observations, _ = self.env.reset(seed)
        self.seen += observations.values()
        #: Of each agent that is there: the sum of its rewards, its steps, the seed of its reset.
        self.visits = dict.fromkeys(self.env.agents, (0.0, 0, -1 if seed is None else seed))
        self.over = False

    def step(self, action):
        self.ended, self.rewards = {}, {}
        if self.over and self.mode == AutoresetMode.NEXT_STEP:
            self.reset()
            return
        before = set(self.env.agents)
        results = self.env.step(dict.fromkeys(self.env.agents, np.full(1, action, np.float32)))
        observations, rewards, terminations, truncations, _ = results
        after = self.env.agents
        self.seen += [one for name, one in observations.items() if name in {*before, *after}]
        for name in before:
            self.rewards[name] = rewards[name]
            total, steps, seed = self.visits[name]
            self.visits[name] = total + rewards[name], steps + 1, seed
            if terminations[name] or truncations[name] or name not in after:
                self.ended[name] = self.visits.pop(name)
        new = [name for name in after if name not in self.visits]
        self.visits |= dict.fromkeys(new, (0.0, 0, -1))
        if self.mode == AutoresetMode.SAME_STEP:  # it is the final one, and the next first one
            self.seen += [
                observations[name] for name in new if name in before & observations.keys()
            ]
        self.over = not after
        if self.over and self.mode == AutoresetMode.SAME_STEP:
            self.reset()


@EVERY_MODE
@pytest.mark.parametrize(
    ("env_fn", "executor"), [(Visitors, "inline"), (Visitors, "process"), (Regulars, "inline")]
)
def test_statistics_are_those_of_each_visit_of_an_agent(mode, env_fn, executor):
    with cartwheel.ParallelVectorEnv([env_fn] * 3, autoreset_mode=mode, executor=executor) as made:
        observing = NormalizeObservation(made.as_rows())
        envs = RecordEpisodeStatistics(RecordMetrics(observing, stats_key="metrics"))
        metrics, rewarding = envs.env, NormalizeReward(envs)
        envs = TransformReward(rewarding, lambda rewards: rewards + 1)
        alone = [Visits(env_fn(), mode) for _ in range(3)]
        envs.reset(seed=5)
        for number, env in enumerate(alone):
            env.reset(5 + number)
        ended, acted = [], 0
        for step in range(150):
            action = 0.25 * (step % 4)
            _, rewards, _, _, infos = envs.step(np.full((9, 1), action, np.float32))
            expected = np.zeros((2, 9))
            for number, env in enumerate(alone):
                env.step(action)
                for name, (total, steps, seed) in env.ended.items():
                    row = 3 * number + NAMES.index(name)
                    expected[:, row] = total, steps
                    ended.append((row, total, steps, seed))
                there = [3 * number + NAMES.index(name) for name in env.rewards]
                rest = np.setdiff1d(range(3 * number, 3 * number + 3), there)
                assert not rewards[rest].any(), step
                acted += len(there)
            shown = infos.get("episode", {"r": np.zeros(9), "l": np.zeros(9)})
            np.testing.assert_allclose(shown["r"], expected[0])
            assert shown["l"].tolist() == expected[1].tolist(), step
            if mode == AutoresetMode.DISABLED and infos["episode_over"].any():
                envs.reset(options={"reset_mask": infos["episode_over"]})
                for env in alone:
                    if env.over:
                        env.reset()
        seen = np.array([one for env in alone for one in env.seen])
    found = metrics.finished()
    columns = (found[name].tolist() for name in ("env_index", "return", "episode_len", "seed"))
    by_row = sorted(zip(*columns, strict=True), key=lambda visit: visit[0])
    for one, two in zip(by_row, sorted(ended, key=lambda visit: visit[0]), strict=True):
        assert one == pytest.approx(two)
    assert len(ended) > 100
    assert {seed for *_, seed in ended} == {-1, 5, 6, 7}
    assert round(rewarding.return_rms.count) == acted
    moments = observing.obs_rms
    assert round(moments.count) == len(seen)
    np.testing.assert_allclose(moments.mean, seen.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(moments.var, seen.var(axis=0), rtol=1e-3)


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_rows_of_absent_agents_show_the_last_normalized_observation_again(mode):
    with cartwheel.ParallelVectorEnv([Walkers] * 2, autoreset_mode=mode, executor="inline") as made:
        envs = NormalizeObservation(made.as_rows())
        last, _ = envs.reset(seed=0)
        absent = 0
        for _ in range(30):
            shown, *_, infos = envs.step(np.zeros((6, 1)))
            gone = ~infos["present"] & ~infos["acted"]
            assert shown[gone].tolist() == last[gone].tolist()
            absent, last = absent + gone.sum(), shown
        assert absent > 5


class Gated(Walkers):
    """The first action above 0 in the life of an environment waits at a gate."""

    def __init__(self, gates):
        super().__init__()
        self.gates = gates

    def step(self, actions):
        if max(action[0] for action in actions.values()) > 0:
            self.gates.stand_at(1)
        return super().step(actions)


@EVERY_MODE
@pytest.mark.parametrize("form", ["rows", "wrapped rows", "groups"])
def test_a_step_that_timed_out_can_be_waited_for_in_any_form(form, mode, tmp_path):
    forms = {
        "rows": lambda envs: envs.as_rows(),
        "wrapped rows": lambda envs: NormalizeObservation(envs.as_rows()),
        "groups": lambda envs: envs.by_group({"all": envs.possible_agents}),
    }
    gates, zeros, ones = Gates(tmp_path), np.zeros((6, 1)), np.ones((6, 1))
    if form == "groups":
        zeros, ones = ({"all": part.reshape(2, 3, 1)} for part in (zeros, ones))
    where = {"autoreset_mode": mode, "executor": "thread", "num_workers": 2}
    with (
        cartwheel.ParallelVectorEnv([partial(Gated, gates)] * 2, timeout=1, **where) as made,
        cartwheel.ParallelVectorEnv([Walkers] * 2, **where) as twin,
    ):
        rows, others = forms[form](made), forms[form](twin)
        for each in (rows, others):
            each.reset(seed=[0, 0])
            each.step(zeros)
        with pytest.raises(cartwheel.WorkerTimeoutError):
            rows.step(ones)
        with pytest.raises(gym.error.AlreadyPendingCallError):
            rows.step(ones)
        gates.open(1)
        assert_identical(rows.step_wait(), others.step(ones))
        rows.step_async(zeros)
        assert_identical(rows.step_wait(timeout=60), others.step(zeros))


@EVERY_MODE
def test_a_step_that_timed_out_is_lost_to_the_rows_that_a_masked_reset_leaves_alone(mode, tmp_path):
    gates = Gates(tmp_path)
    with cartwheel.ParallelVectorEnv(
        [partial(Gated, gates)] * 2,
        autoreset_mode=mode,
        executor="thread",
        num_workers=2,
    ) as made:
        observing = NormalizeObservation(made.as_rows())
        envs = RecordMetrics(observing)
        envs.reset(seed=[0, 0])
        envs.step(np.zeros((6, 1)))
        envs.step_async(np.ones((6, 1)))
        with pytest.raises(cartwheel.WorkerTimeoutError):
            envs.step_wait(timeout=0.1)
        gates.open(1)
        mask = np.arange(6) > 2
        _, infos = envs.reset(options={"reset_mask": mask})
        # Walker 0 ended in the step that was lost.
        is_there = mode != AutoresetMode.SAME_STEP
        assert infos["present"].tolist() == [is_there] + [True] * 5
        assert round(observing.obs_rms.count) == 12 + 2 + is_there + 3
        for _ in range(9):
            over = envs.step(np.zeros((6, 1)))[4]["episode_over"]
            if mode == AutoresetMode.DISABLED and over.any():
                envs.reset(options={"reset_mask": over})
        found = envs.finished()
    lengths = 2 + found["env_index"] % 3  # of whole episodes
    assert found["episode_len"].tolist() == lengths.tolist()
    assert found["return"].tolist() == (10.0 * (lengths - 2) * lengths).tolist()
    assert len(set(found["env_index"].tolist())) == 6


@EVERY_MODE
def test_wrappers_of_rows_go_on_from_a_state_of_others(mode):
    def made():
        envs = cartwheel.ParallelVectorEnv([Visitors] * 2, autoreset_mode=mode, executor="inline")
        shifted = TransformObservation(NormalizeObservation(envs.as_rows()), lambda seen: seen + 1)
        return RecordMetrics(shifted)

    def step(envs):
        """Steps; the last results are what rows show now."""
        results = [envs.step(np.zeros((6, 1)))]
        over = results[0][4]["episode_over"]
        if mode == AutoresetMode.DISABLED and over.any():
            results.append(envs.reset(options={"reset_mask": over}))
        return results

    absent = 0
    with made() as envs, made() as others:
        envs.reset(seed=3)
        for _ in range(25):
            shown, *_, infos = step(envs)[-1]
            absent += np.count_nonzero(~infos["present"])
            state = pickle.loads(pickle.dumps(envs.state_dict()))
            np.testing.assert_array_equal(others.load_state_dict(state), shown)
            for _ in range(5):
                assert_identical(step(others), step(envs))
            np.testing.assert_equal(others.finished(), envs.finished())
        moments = others.state_dict(envs=False)
    assert absent > 20
    with made() as others:
        assert others.load_state_dict(moments) is None
        assert others.obs_rms.count == envs.obs_rms.count


@EVERY_MODE
def test_refused_actions_lose_no_episode(mode):
    with cartwheel.ParallelVectorEnv([Walkers] * 2, autoreset_mode=mode, executor="inline") as made:
        envs = RecordEpisodeStatistics(made.as_rows())
        envs.reset(seed=[0, 1])
        envs.step(np.ones((6, 1)))
        for wrong in (np.zeros((5, 1)), np.full((6, 1), "left")):
            with pytest.raises((TypeError, ValueError), match="actions"):
                envs.step(wrong)
        for _ in range(3):
            envs.step(np.ones((6, 1)))
        assert sorted(envs.length_queue) == [2, 3, 3, 4, 4]
        assert envs.failed_count == 0


class Respawning(Walkers):
    """Walker 0 ends with step 2, too, and is back in it."""

    def step(self, actions):
        results = super().step(actions)
        if self.t == 2:
            results[2]["walker_0"] = True
        return results


@pytest.mark.parametrize("mode", ["next_step", "disabled"])
def test_an_agent_that_is_back_in_its_last_step_begins_with_what_that_shows(mode, tmp_path):
    pytest.importorskip("h5py")
    with cartwheel.ParallelVectorEnv(
        [lambda: Respawning(2)], autoreset_mode=mode, executor="inline"
    ) as made:
        recording = RecordEpisode(made.as_rows(), tmp_path, trajectory_name="t", save_video=False)
        envs = SmoothAction(FrameStack(recording, 2), 0.5)
        envs.reset(seed=2)
        envs.step(np.ones((2, 1), np.float32))
        ended, _, terminations, *_ = envs.step(np.ones((2, 1), np.float32))
        assert terminations.tolist() == [True, False]
        assert ended[:, :, 1].tolist() == [[2, 2], [1, 2]]
        shown, rewards, *_ = envs.step(np.zeros((2, 1), np.float32))
        assert shown[:, :, 1].tolist() == [[2, 3], [2, 3]]
        assert rewards.tolist() == [0, 10.5]
        envs.step(np.zeros((2, 1), np.float32))
        recording.flush()
        dataset = TrajectoryDataset(tmp_path / "t.h5")
        envs.close()
    times = [dataset.episode(place)["obs"][:, 1].tolist() for place in range(2)]
    assert times == [[0, 1, 2], [2, 3, 4]]


@pytest.mark.parametrize("seed", [4, [4, 5], np.array([4, 5])], ids=["one", "list", "array"])
def test_seeds_and_options_are_those_of_environments(seed):
    with cartwheel.ParallelVectorEnv([Walkers] * 2, executor="inline") as made:
        envs = RecordMetrics(made.as_rows())
        envs.reset(seed=seed, options=[{"a": 1}, None])
        for _ in range(7):
            envs.step(np.zeros((6, 1)))
        found = envs.finished()
    seeds = dict(zip(found["env_index"].tolist(), found["seed"].tolist(), strict=True))
    assert seeds == {0: 4, 1: 4, 2: 4, 3: 5, 4: 5, 5: 5}


@EVERY_MODE
def test_recorded_episodes_are_the_visits_of_agents_one_after_the_other(mode, tmp_path):
    pytest.importorskip("h5py")
    with cartwheel.ParallelVectorEnv([Walkers] * 2, autoreset_mode=mode, executor="inline") as made:
        envs = RecordEpisode(made.as_rows(), tmp_path, trajectory_name="rows", save_video=False)
        envs.reset(seed=3)
        for _ in range(13):
            over = envs.step(np.ones((6, 1), np.float32))[4]["episode_over"]
            if mode == AutoresetMode.DISABLED and over.any():
                envs.reset(options={"reset_mask": over})
        envs.flush()
        dataset = TrajectoryDataset(tmp_path / "rows.h5")
        envs.close()
    numbers = {}
    for place, about in enumerate(dataset.episodes):
        row, number = about["env_index"], about["episode_in_row"]
        assert number == numbers.get(row, 0)
        numbers[row] = number + 1
        assert about["row_seed"] == 3 + row // 3
        times = dataset.episode(place)["obs"][:, 1]
        assert times.tolist() == list(range(2 + row % 3 + row // 3 + 1))
        assert about["terminated"]
    assert len(numbers) == 6
    assert numbers[0] > 1


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_the_rollout_goes_on_after_refused_actions(mode):
    make = partial(rock_paper_scissors, max_cycles=4)
    calls = iter(range(100))

    def policy(observations):
        number = next(calls)
        actions = (observations + number) % 3
        return actions.astype(np.uint64) + 2**63 if number == 2 else actions

    with cartwheel.ParallelVectorEnv([make] * 2, executor="inline", autoreset_mode=mode) as envs:
        collector = cartwheel.Collector(envs.as_rows(), policy, 9, seed=1)
        with pytest.raises(ValueError, match="must fit into int64"):
            collector.collect()
        rollout = collector.collect()
        assert next(calls) == 10
        assert envs.call("num_moves") == ((9 % 5,) * 2 if mode == "next_step" else (1, 1))
        assert rollout.valid.sum() == 4 * 9 - 4 * (mode == "next_step")


def test_a_rollout_during_which_others_step_the_environments_is_lost():
    with cartwheel.ParallelVectorEnv([Walkers] * 2, executor="inline") as envs:

        def policy(observations):
            envs.step({name: np.zeros((2, 1)) for name in envs.possible_agents})
            return observations[:, :1]

        collector = cartwheel.Collector(envs.as_rows(), policy, 5, seed=1)
        with pytest.raises(RuntimeError, match="by another caller while the collector collected"):
            collector.collect()


def test_the_next_rollout_begins_anew_after_an_evaluation_of_the_environments():
    with cartwheel.ParallelVectorEnv([Walkers] * 2, executor="inline") as envs:
        collector = cartwheel.Collector(envs.as_rows(), lambda seen: seen[:, :1], 2, seed=1)
        assert not collector.collect().is_first[2].any()

        def push(observations):
            return {name: one[:, :1] for name, one in observations.items()}

        cartwheel.evaluate(envs, push, seed=5)
        rollout = collector.collect()
        assert rollout.is_first[0].all()
        assert rollout.observations[:, 0, 1].tolist() == [0, 1, 2]


def test_rows_of_agents_have_no_adapter_of_modes():
    with cartwheel.ParallelVectorEnv(
        [Walkers], autoreset_mode="disabled", executor="inline"
    ) as envs:
        for mode in ("same_step", "next_step"):
            with pytest.raises(ValueError, match=f"with autoreset_mode='{mode}'"):
                AutoresetAdapter(envs.as_rows(), mode)


class Misnamed(Walkers):
    """Infos have the names of final observations and infos."""

    def step(self, actions):
        *results, infos = super().step(actions)
        return *results, {name: {"final_obs": 7, "final_info": 8} for name in infos}


@pytest.mark.parametrize("mode", ["next_step", "disabled"])
def test_an_info_with_the_name_of_final_observations_is_an_info(mode):
    with cartwheel.ParallelVectorEnv(
        [Misnamed] * 2, autoreset_mode=mode, executor="inline"
    ) as envs:
        rows = DtypeObservation(NormalizeObservation(envs.as_rows()), np.float64)
        rows.reset(seed=1)
        infos = rows.step(np.zeros((6, 1), np.float32))[4]
        assert infos["final_obs"].tolist() == [7] * 6
        assert infos["final_info"].tolist() == [8] * 6


def test_in_same_step_only_the_mode_has_the_names_of_final_observations():
    shown = []
    for kind in (Walkers, Misnamed):
        with cartwheel.ParallelVectorEnv(
            [kind] * 2, autoreset_mode="same_step", executor="inline"
        ) as envs:
            rows = RecordMetrics(DtypeObservation(NormalizeObservation(envs.as_rows()), np.float64))
            results = [rows.reset(seed=1)]
            results += [rows.step(np.zeros((6, 1), np.float32)) for _ in range(12)]
        for *_, infos in results:
            infos.get("final_info", {}).pop("final_obs", None)
        shown.append(results)
    ended = [bool(infos.get("_final_obs", np.zeros(1)).any()) for *_, infos in shown[0]]
    assert True in ended[1:]
    assert False in ended[1:]
    for number, (plain, misnamed) in enumerate(zip(*shown, strict=True)):
        assert ("final_obs" in misnamed[-1]) == ended[number]
        if ended[number]:
            for name in ("final_obs", "_final_obs"):
                assert_identical(misnamed[-1][name], plain[-1][name])
        assert_identical(misnamed[:-1], plain[:-1])
