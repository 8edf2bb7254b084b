"""Wrappers around rows whose agent has no observation: it ended or has gone, or the row failed."""

from functools import partial

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import cartwheel
from cartwheel.wrappers import (
    FlattenObservation,
    NormalizeObservation,
    RecordEpisodeStatistics,
    RecordMetrics,
    TransformObservation,
)
from tests.multiagent.environments import Counted, Walkers
from tests.multiagent.oracle import MODES, Alone, play
from tests.multiagent.test_lost_infos import losing
from tests.multiagent.test_wrapped_rows import Visitors

EVERY_MODE = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)


class Leaving(Walkers):
    """One agent ends without a last observation."""

    def __init__(self, silent):
        super().__init__()
        self.silent = silent

    def step(self, actions):
        observations, rewards, over, *rest = super().step(actions)
        if over.get(self.silent):
            del observations[self.silent]
        return observations, rewards, over, *rest


@pytest.mark.parametrize("silent", ["walker_1", "walker_2"], ids=["early", "with its row"])
def test_a_last_observation_that_an_agent_does_not_have_is_blank_and_does_not_count(silent):
    makes, mode = [partial(Leaving, silent)] * 2, AutoresetMode.SAME_STEP
    number, blank = int(silent[-1]), 0
    with (
        cartwheel.ParallelVectorEnv(makes, autoreset_mode=mode, executor="inline") as made,
        cartwheel.ParallelVectorEnv(makes, autoreset_mode=mode, executor="inline") as others,
    ):
        rows, envs = made.as_rows(), NormalizeObservation(others.as_rows())
        alone = [Alone(make(), mode) for make in makes]
        rows.reset(seed=0)
        before, _ = envs.reset(seed=0)
        seen = sum(of["present"] for seed in (0, 1) for of in alone[seed].reset(seed).values())
        for _ in range(11):
            _, _, terminated, _, infos = rows.step(np.zeros((6, 1)))
            shown, _, _, _, normalized = envs.step(np.zeros((6, 1)))
            for env in alone:
                steps = env.step(dict.fromkeys(made.possible_agents, np.zeros(1)))
                batches = [steps] if steps.final is None else [steps, steps.final]
                seen += sum(of["present"] for batch in batches for of in batch.values())
            for row in np.flatnonzero(terminated):
                last, is_silent = infos["final_obs"][row], row % 3 == number
                assert infos["_final_obs"][row]
                assert infos["final_info"]["present"][row] == (not is_silent)
                assert last[1] == (0 if is_silent else 2 + row % 3 + row // 3)
                if is_silent:
                    np.testing.assert_array_equal(normalized["final_obs"][row], before[row])
                    blank += 1
            assert round(envs.obs_rms.count) == seen
            before = shown
    assert blank > 3


class Reduced(Walkers):
    """Walker 0 takes part in the first episode alone, of all environments with these ``resets``."""

    def __init__(self, resets, fails_at):
        super().__init__(fails_at=fails_at)
        self.resets = resets

    def reset(self, seed=None, options=None):
        observations, infos = super().reset(seed, options)
        self.resets.append(seed)
        if len(self.resets) > 1:
            self.agents.remove("walker_0")
            del observations["walker_0"]
        return observations, infos


def test_the_last_observation_of_a_failed_row_is_not_new_though_its_agent_has_gone():
    make = partial(Reduced, [], fails_at=2)
    with cartwheel.ParallelVectorEnv(
        [make], autoreset_mode="same_step", executor="inline", on_error="restart"
    ) as made:
        envs = NormalizeObservation(made.as_rows())
        envs.reset(seed=[2])
        before = envs.step(np.ones((3, 1)))[0]
        shown, _, _, truncated, infos = envs.step(np.ones((3, 1)))
        assert truncated.all()
        assert infos["present"].tolist() == [False, True, True]
        np.testing.assert_array_equal(np.stack(infos["final_obs"]), before)
        np.testing.assert_array_equal(shown[0], before[0])
        assert round(envs.obs_rms.count) == 3 + 3 + 2


@EVERY_MODE
def test_an_observation_that_a_failed_row_repeats_does_not_count_again(mode):
    # Walker 0 ends in step 2, and step 3 fails.
    with cartwheel.ParallelVectorEnv(
        [lambda: Walkers(fails_at=3)], autoreset_mode=mode, executor="inline", on_error="restart"
    ) as made:
        envs = NormalizeObservation(made.as_rows())
        envs.reset(seed=[0])
        for _ in range(3):
            infos = envs.step(np.ones((3, 1)))[4]
        assert infos["episode_over"].all()
        assert round(envs.obs_rms.count) == 9 + 3 * (mode == AutoresetMode.SAME_STEP)
        if mode == AutoresetMode.NEXT_STEP:
            envs.step(np.ones((3, 1)))
        elif mode == AutoresetMode.DISABLED:
            envs.reset(options={"reset_mask": infos["episode_over"]})
        assert round(envs.obs_rms.count) == 12


@EVERY_MODE
@pytest.mark.parametrize("executor", ["inline", "process"])
def test_flattened_observations_of_absent_agents_are_zeros(mode, executor):
    keywords = {"autoreset_mode": mode, "executor": executor}
    with (
        cartwheel.ParallelVectorEnv([Counted] * 2, **keywords) as made,
        cartwheel.ParallelVectorEnv([Counted] * 2, **keywords) as others,
    ):
        rows, envs = made.as_rows(), FlattenObservation(others.as_rows())
        absent = finals = 0

        def check(shown, flat, present):
            np.testing.assert_array_equal(flat, np.eye(9)[shown - 1] * present[:, None])

        pair = rows.reset(seed=0), envs.reset(seed=0)
        for _ in range(12):
            (shown, *_, infos), (flat, *_, others_infos) = pair
            check(shown, flat, infos["present"])
            absent += np.count_nonzero(~infos["present"])
            assert ("final_obs" in others_infos) == ("final_obs" in infos)
            if "final_obs" in infos:
                mask = infos["_final_obs"]
                lasts = [np.stack(of["final_obs"][mask]) for of in (infos, others_infos)]
                check(*lasts, infos["final_info"]["present"][mask])
                finals += len(lasts[0])
            over = infos.get("episode_over", np.zeros(6, np.bool_))
            if mode == AutoresetMode.DISABLED and over.any():
                pair = tuple(one.reset(options={"reset_mask": over}) for one in (rows, envs))
            else:
                pair = tuple(one.step(np.zeros((6, 1))) for one in (rows, envs))
        assert absent > 5
        assert (finals > 5) == (mode == AutoresetMode.SAME_STEP)


class Returning(Walkers):
    """Walker 0 ends in step 2 and acts again in step 4; before it acts, it has no observation."""

    def reset(self, seed=None, options=None):
        observations, _ = super().reset(seed, options)
        del observations["walker_0"]
        return observations, {name: {"begun": True} for name in self.agents}

    def step(self, actions):
        *results, infos = super().step(actions)
        if self.t == 3:
            self.agents.insert(0, "walker_0")
            infos["walker_0"] = {"back": True}
        return *results, infos


@EVERY_MODE
def test_an_agent_that_lives_without_an_observation_has_its_infos(mode):
    with cartwheel.ParallelVectorEnv(
        [Returning] * 2, autoreset_mode=mode, executor="inline"
    ) as envs:
        play(envs, [Returning(), Returning()], steps=12)


@EVERY_MODE
def test_an_episode_of_an_agent_that_comes_without_an_observation_begins_when_it_acts(mode):
    with cartwheel.ParallelVectorEnv(
        [Returning] * 2, autoreset_mode=mode, executor="inline"
    ) as made:
        envs = RecordMetrics(RecordEpisodeStatistics(made.as_rows(), stats_key="statistics"))
        envs.reset(seed=[0, 3])
        for _ in range(20):
            over = envs.step(np.ones((6, 1)))[4]["episode_over"]
            if mode == AutoresetMode.DISABLED and over.any():
                envs.reset(options={"reset_mask": over})
        found = envs.finished()
        lengths = sorted(envs.length_queue)
    visits = [[] for _ in range(6)]
    for row, length, total in zip(
        *(found[name].tolist() for name in ("env_index", "episode_len", "return")), strict=True
    ):
        assert total == length * (1 + 10 * (row % 3))
        visits[row].append(length)
    assert lengths == sorted(length for row in visits for length in row)
    for row, of_row in enumerate(visits):
        assert len(of_row) > 3
        assert of_row == ([2, 1] * 20 if row % 3 == 0 else [2 + row % 3] * 20)[: len(of_row)]


@EVERY_MODE
def test_functions_of_observations_see_none_of_absent_agents(mode):
    def doubled(observations):
        assert len(observations)
        assert not np.isnan(observations).any()
        return observations * 2

    with cartwheel.ParallelVectorEnv(
        [partial(Leaving, "walker_1")] * 2,
        autoreset_mode=mode,
        executor="inline",
        absent=np.nan,
        max_episode_steps=5,
    ) as made:
        envs = TransformObservation(made.as_rows(), doubled)
        envs.reset(seed=0)
        absent = 0
        for step in range(1, 5):
            shown, *_, infos = envs.step(np.zeros((6, 1)))
            np.testing.assert_array_equal(np.isnan(shown).all(axis=1), ~infos["present"])
            steps = [0 if infos["episode_over"][row] else step for row in range(6)]
            if mode != AutoresetMode.SAME_STEP:
                steps = [step] * 6
            there = np.flatnonzero(infos["present"])
            assert shown[there, 1].tolist() == [2 * steps[row] for row in there]
            absent += 6 - len(there)
        assert absent > 3


def test_a_row_whose_last_observation_was_lost_has_none(monkeypatch):
    monkeypatch.setattr("cartwheel.multiagent.pool.MAX_DENSE_BYTES", -1)
    with losing(4, autoreset_mode="same_step") as made:
        envs = NormalizeObservation(made.as_rows())
        envs.reset(seed=[2, 0])
        for _ in range(4):
            _, _, _, truncated, infos = envs.step(np.ones((6, 1)))
        assert truncated.tolist() == [False] * 5 + [True]
        assert infos["infos_lost"].tolist() == [False] * 3 + [True] * 3
        assert infos["_final_obs"].tolist() == [True] + [False] * 5  # walker 0 of row 0 ends
        assert infos["present"].tolist() == [False] + [True] * 5
        assert round(envs.obs_rms.count) == 6 + 6 + 6 + 5 + (3 + 3)


class Unreliable(Visitors):
    """Fails at random; the environment that replaces it has the random numbers of the seed 0."""

    def step(self, actions):
        if self.rng.random() < 0.1:
            raise OSError("chosen by chance")
        return super().step(actions)


def test_wrappers_tell_the_same_in_every_mode_of_rows_that_fail_or_reach_a_limit():
    counts, visits = {}, {}
    for mode in MODES:
        with cartwheel.ParallelVectorEnv(
            [Unreliable] * 3,
            autoreset_mode=mode,
            executor="inline",
            on_error="restart",
            max_restarts=None,
            max_episode_steps=6,
        ) as made:
            observing = NormalizeObservation(made.as_rows())
            envs = RecordMetrics(observing)
            envs.reset(seed=5)
            counts[mode] = []
            for _ in range(200):
                infos = envs.step(np.zeros((9, 1)))[4]
                if mode == AutoresetMode.DISABLED and infos["episode_over"].any():
                    envs.reset(options={"reset_mask": infos["episode_over"]})
                counts[mode].append(round(observing.obs_rms.count))
            found = envs.finished()
        columns = (found[name].tolist() for name in ("return", "episode_len", "truncated"))
        visits[mode] = [[] for _ in range(9)]
        for row, *visit in zip(found["env_index"].tolist(), *columns, strict=True):
            visits[mode][row].append(visit)
    next_step, same_step, disabled = MODES
    assert counts[same_step] == counts[disabled]
    assert visits[same_step] == visits[disabled]
    for found, others in zip(visits[next_step], visits[same_step], strict=True):
        assert found == others[: len(found)]
        assert len(found) > 10
