"""Rollouts hold every transition, in every mode, executor and with every kind of length."""

from functools import partial
from itertools import count

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import cartwheel
from tests.support.cases import Case
from tests.support.collecting import assert_same, collector_of, policy, states_of
from tests.support.comparison import assert_identical
from tests.support.environments import (
    BufferReusingEnv,
    LargeNestedEnv,
    NestedEnv,
    TranscriptEnv,
    transcripts,
)
from tests.support.executors import EVERY_EXECUTOR, EXECUTORS, INLINE, NATIVE, PROCESS
from tests.support.faulty import FaultyEnv, fault
from tests.support.simulated_rollouts import FROZEN, MODES, rollouts, simulated_envs

RESTARTING = [mode for mode in MODES if mode != FROZEN]
SEVEN_PROCESSES = EVERY_EXECUTOR[-1]
WAYS = [{"num_steps": 9}, {"until": "all_done"}, {"num_episodes": 11}]


def longest_episode(num_envs):
    """Steps until the first episode of every environment is over."""
    first = next(rollouts(FROZEN, 9, 1, num_envs=num_envs))
    return int((~first.stale).sum(axis=0).max())


@pytest.mark.parametrize("build", EVERY_EXECUTOR, ids=str)
@pytest.mark.parametrize("num_envs", [1, 5])
@pytest.mark.parametrize("mode", RESTARTING)
def test_rollouts_hold_every_transition_exactly_once(mode, num_envs, build):
    for steps in (1, 2, 17) if build in EXECUTORS else (5,):
        expected = rollouts(mode, steps, 4, num_envs=num_envs)
        with collector_of(mode, steps, num_envs=num_envs, build=build) as collector:
            last = None
            for wanted in expected:
                rollout = collector.collect()
                assert_identical(states_of(rollout.observations), wanted.states)
                assert_identical(rollout.rewards, wanted.rewards)
                assert_identical(rollout.terminated, wanted.terminated)
                assert_identical(rollout.truncated, wanted.truncated)
                assert_identical(rollout.valid, ~wanted.stale)
                assert_identical(rollout.prev_done, wanted.prev_done)
                finals, index = wanted.finals("value", "always")
                assert_identical(rollout.final_index, index)
                states = states_of(rollout.final_observations)
                assert_identical(wanted.table["value"][states], finals)
                assert_identical(rollout.actions, wanted.states[:-1] % 1000)
                assert_identical(rollout.extras["half"], wanted.states[:-1] / 2)
                if last is not None:
                    assert_identical(rollout.observations[0], last.observations[-1])
                    assert_identical(rollout.is_first[0], last.is_first[-1])
                last = rollout


@pytest.mark.parametrize("num_envs", [1, 5])
def test_until_all_done_gives_one_episode_per_environment(num_envs):
    steps = longest_episode(num_envs)
    wanted = next(rollouts(FROZEN, steps, 1, num_envs=num_envs))
    with collector_of(FROZEN, None, num_envs=num_envs) as collector:
        rollout = collector.collect()
    assert rollout.num_steps == steps
    assert_identical(states_of(rollout.observations), wanted.states)
    for name in ("rewards", "terminated", "truncated"):
        assert_identical(getattr(rollout, name), getattr(wanted, name))
    assert_identical(rollout.valid, ~wanted.stale)
    assert len(rollout.final_index) == 0


@pytest.mark.parametrize("way", WAYS[1:], ids=str)
@pytest.mark.parametrize("mode", RESTARTING)
def test_finished_rows_look_frozen_in_every_mode(mode, way):
    """Other modes step rows that ``on_done="freeze"`` would freeze, but do not record that."""
    with (
        collector_of(mode, None, **way) as collector,
        collector_of(FROZEN, None, **{"until": None, **way}) as resting,
    ):
        rollout, other = collector.collect(), resting.collect()
    if mode != "NEXT_STEP" or "until" in way:
        assert_same(rollout, other)
    assert_identical(rollout.valid.sum(), other.valid.sum())
    ours, theirs = (each.transitions("env") for each in (rollout, other))
    for name in ("observations", "next_observations", "rewards", "terminated", "extras"):
        assert_identical(getattr(ours, name), getattr(theirs, name))


@pytest.mark.parametrize("mode", MODES)
def test_episodes_are_divided_evenly_and_each_is_complete(mode):
    with collector_of(mode, None, until=None, num_episodes=13) as collector:
        for _ in range(2):
            episodes = collector.collect().episodes()
            assert np.bincount(episodes.env_index).tolist() == [3, 3, 3, 2, 2]
            assert (episodes.terminated | episodes.truncated).all()
            assert_identical(episodes.lengths, episodes.stops - episodes.starts)


@pytest.mark.parametrize("mode", MODES)
def test_num_steps_limits_a_rollout_of_episodes(mode):
    with collector_of(mode, 3, until="all_done") as collector:
        rollout = collector.collect()
        assert rollout.num_steps == 3
        rollout = collector.collect()
        assert rollout.is_first[0].all()


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_a_rollout_until_all_done_can_be_repeated(mode):
    """No frame of the previous run appears again; in BBRL 1.0.0 the old terminal frames did."""
    envs = INLINE(transcripts(2, 4), autoreset_mode=mode)
    collector = cartwheel.Collector(envs, lambda _: np.ones(2, np.int64), until="all_done")
    first = collector.collect()
    for _ in range(3):
        assert_same(collector.collect(), first)
    envs.close()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_long_episodes_outgrow_the_first_buffer_and_nothing_is_missing(mode):
    lengths = (3, 150, 71)
    envs = INLINE(transcripts(*lengths, truncates=True), autoreset_mode=mode)
    collector = cartwheel.Collector(
        envs, lambda seen: (seen[:, 0].astype(int) % 10, {"seen": seen.copy()}), num_episodes=4
    )
    for _ in range(2):  # the second rollout has a large enough buffer from the start
        rollout = collector.collect()
        rows = rollout.transitions("env")
        seen = [step for length in (3, 3, 150, 71) for step in range(length)]
        assert_identical(rows.observations[:, 0], np.array(seen, np.float32))
        assert_identical(rows.next_observations, rows.observations + 1)
        assert_identical(rows.rewards, rows.observations[:, 0].astype(float) % 10)
        assert_identical(rows.extras["seen"], rows.observations)
        after_end = rollout.observations[4:, 2, 0]
        assert after_end.max() == 71
        assert (after_end[70:] == 71).all()
    envs.close()


POLES = [Case("CartPole-v1", {"max_episode_steps": 12})] * 7


def balance(observations):
    """A policy that loses the balance at times, with extras of several shapes and dtypes."""
    lean = observations[:, 2] + 0.3 * np.sin(37 * observations[:, 0])
    return (lean > 0).astype(np.int64), {"lean": lean, "pair": observations[:, :2] > 0}


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_every_vector_environment_collects_the_same(mode, way):
    """Gymnasium's, cartwheel's, native and wrapped: copies and slabs hold the same."""
    oracle = SyncVectorEnv(POLES, autoreset_mode=mode)
    builders = [*EXECUTORS, SEVEN_PROCESSES, NATIVE, cartwheel.AsyncVectorEnv]
    with_copies = cartwheel.Collector(oracle, balance, seed=4, **way)
    wanted = [with_copies.collect() for _ in range(3)]
    for build in builders:
        envs = build(POLES, autoreset_mode=mode)
        collector = cartwheel.Collector(envs, balance, seed=4, **way)
        for rollout in wanted:
            assert_same(collector.collect(), rollout)
        envs.close()
    if mode != AutoresetMode.DISABLED:  # its masked resets confuse Gymnasium's statistics
        envs = RecordEpisodeStatistics(NATIVE(POLES, autoreset_mode=mode))
        collector = cartwheel.Collector(envs, balance, seed=4, **way)
        for rollout in wanted:
            assert_same(collector.collect(), rollout)
        envs.close()


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("env", [NestedEnv, LargeNestedEnv, lambda: BufferReusingEnv(3)])
def test_nested_large_and_reused_observations_are_recorded(env, mode):
    def choose(observations):
        leaf = observations["walk" if "walk" in observations else "t"]
        return (leaf.reshape(3, -1)[:, 0] > 0).astype(np.int64), {"leaf": leaf}

    results = []
    for build in (INLINE, PROCESS, SyncVectorEnv):
        envs = build([env] * 3, autoreset_mode=mode)
        collector = cartwheel.Collector(envs, choose, 25, seed=1)
        results.append([collector.collect() for _ in range(3)])
        envs.close()
    # Gymnasium's own class loses final observations of environments that reuse their arrays.
    reused = env not in (NestedEnv, LargeNestedEnv) and mode == AutoresetMode.SAME_STEP
    for other in results[1 : 2 if reused else 3]:
        for rollout, wanted in zip(results[0], other, strict=True):
            assert_same(rollout, wanted)
            assert_identical(rollout.value_inputs(), wanted.value_inputs())
            assert_identical(rollout.next_observations(), wanted.next_observations())


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_final_observations_are_right_if_an_environment_reuses_its_array(mode):
    envs = INLINE([lambda: BufferReusingEnv(3)] * 2, autoreset_mode=mode)
    rollout = cartwheel.Collector(envs, lambda _: np.ones(2, np.int64), 12).collect()
    rows = rollout.transitions()
    assert_identical(rows.next_observations["t"], rows.observations["t"] + 1)
    assert_identical(rows.next_observations["nested"][1], rows.observations["nested"][1] + 1)
    envs.close()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_nested_actions_keep_their_structure(mode):
    space = gym.spaces.Dict(
        push=gym.spaces.Box(-1, 1, (2,), np.float32),
        pick=gym.spaces.Tuple([gym.spaces.Discrete(5), gym.spaces.MultiBinary(3)]),
    )

    class PickingEnv(TranscriptEnv):
        action_space = space

        def step(self, action):
            total = action["push"].sum() + action["pick"][0] + action["pick"][1].sum()
            observation, _, *rest = super().step(0)
            return observation, float(total), *rest

    envs = INLINE([lambda: PickingEnv(3)] * 4, autoreset_mode=mode)
    envs.action_space.seed(0)
    collector = cartwheel.Collector(envs, lambda _: (envs.action_space.sample(), {}), 7)
    rollout = collector.collect()
    push, (pick, bits) = rollout.actions["push"], rollout.actions["pick"]
    assert (push.shape, pick.shape, bits.shape) == ((7, 4, 2), (7, 4), (7, 4, 3))
    totals = push.sum(axis=-1) + pick + bits.sum(axis=-1)
    np.testing.assert_allclose(rollout.rewards[rollout.valid], totals[rollout.valid], atol=1e-6)
    assert_identical(rollout.transitions().actions["pick"][1], bits[rollout.valid])
    envs.close()


@pytest.mark.parametrize("build", EVERY_EXECUTOR, ids=str)
def test_observations_are_a_slab_whose_memory_is_used_again(build):
    envs = build(transcripts(3, 4))
    collector = cartwheel.Collector(envs, lambda _: np.ones(2, np.int64), 6)
    addresses = set()
    for _ in range(8):
        rollout = collector.collect()
        assert rollout.observations.flags.c_contiguous
        assert np.shares_memory(rollout.observations, rollout.value_inputs())
        addresses.add(rollout.observations.ctypes.data)
    assert len(addresses) <= 2
    kept = rollout.observations.copy()
    envs.close()
    assert_identical(rollout.observations, kept)


@pytest.mark.parametrize("way", [{"num_steps": 11}, {"until": "all_done"}, {"num_episodes": 9}])
@pytest.mark.parametrize("mode", MODES)
def test_the_policy_can_read_which_rows_begin_an_episode(mode, way):
    marks = []

    def recurrent(observations):
        marks.append(collector.is_first)
        return policy(observations)

    if mode == FROZEN:
        way = {"until": None, **way}
    with collector_of(mode, **{"num_steps": None, **way}) as collector:
        collector.policy = recurrent
        for _ in range(3):
            marks.clear()
            rollout = collector.collect()
            assert_identical(np.array(marks), rollout.is_first[:-1])
            shown = states_of(rollout.observations[:-1])
            begins = np.isin(shown, list(firsts_of(5)))
            assert_identical(rollout.is_first[:-1][rollout.valid], begins[rollout.valid])


class HalvedRewards(cartwheel.VectorEnv):
    def step(self, actions, env_index=None):
        observations, rewards, *rest = super().step(actions, env_index)
        return observations, rewards / 2, *rest


def test_a_rollout_holds_the_results_of_a_subclass():
    envs = HalvedRewards(transcripts(3, 4), executor="inline")
    rollout = cartwheel.Collector(envs, lambda _: np.array([4, 6]), 2).collect()
    assert_identical(rollout.rewards, np.array([[2.0, 3.0]] * 2))
    envs.close()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_step_that_failed_is_no_transition(mode):
    """The step before it bootstraps from the observation on which the failed step acted."""
    actions = np.full((8, 2), fault("none"))
    actions[2, 1] = actions[5, 0] = fault("value error")
    envs = INLINE([FaultyEnv] * 2, autoreset_mode=mode, on_error="restart")
    rows = iter(actions)
    rollout = cartwheel.Collector(envs, lambda _: next(rows), 8).collect()
    failed = actions == fault("value error")
    assert rollout.truncated[failed].all()
    resets = np.zeros_like(failed)
    resets[1:] = (rollout.terminated | rollout.truncated)[:-1] & (mode == AutoresetMode.NEXT_STEP)
    assert_identical(rollout.valid, ~failed & ~resets)
    moves = rollout.transitions(n_step=3, gamma=0.5)
    assert not failed[moves.steps + moves.lengths - 1, moves.env_index].any()
    before = (moves.steps == 1) & (moves.env_index == 1)
    assert moves.lengths[before].tolist() == [1]
    assert_identical(moves.next_observations[before], rollout.observations[2, 1:])
    assert moves.discounts[before].tolist() == [0.5]
    rollout.set_values(np.ones(len(rollout.value_inputs())))
    assert rollout.gae(0.5, 0.9)[0][1, 1] == rollout.rewards[1, 1] + 0.5 - 1
    lengths = sum(episode.stop - episode.start for episode in rollout.episodes())
    assert lengths == rollout.valid.sum()
    envs.close()


class LosingKeysEnv(TranscriptEnv):
    """Resets with the numbers ``failing`` fail; the count continues in its replacements."""

    def __init__(self, length, failing, resets):
        super().__init__(length)
        self.failing, self.resets = failing, resets

    def reset(self, *, seed=None, options=None):
        if next(self.resets) in self.failing:
            raise ArithmeticError("lost the key")
        return super().reset(seed=seed, options=options)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_terminated_episode_is_complete_even_if_the_next_reset_fails(mode, way):
    """Compared with the same environments without failures."""

    def envs_that_fail(*failing):
        fns = [partial(LosingKeysEnv, length, failing, count()) for length in (2, 3, 4)]
        return INLINE(fns, autoreset_mode=mode, on_error="restart")

    def clock(seen):
        return seen[:, 0].astype(int) + 1

    rollouts, returns, evaluations = [], [], []
    for failing in [(), (1, 4)]:
        envs = envs_that_fail(*failing)
        collector = cartwheel.Collector(envs, clock, **way)
        rollouts.append([collector.collect() for _ in range(2)])
        for rollout in rollouts[-1]:
            rollout.set_values(np.full(len(rollout.value_inputs()), 100.0))
            episodes = rollout.episodes()
            returns.append((rollout.discounted_returns(0.5), episodes.returns, episodes.env_index))
        assert envs.stats().replacements.all() == bool(failing)
        envs.close()
        envs = envs_that_fail(*failing)
        evaluations.append(cartwheel.evaluate(envs, clock, episodes_per_env=3).returns)
        envs.close()
    for undisturbed, disturbed in zip(*rollouts, strict=True):
        assert_same(disturbed, undisturbed)
    for place in range(2):
        for undisturbed, disturbed in zip(returns[place], returns[place + 2], strict=True):
            assert_identical(disturbed, undisturbed)
    assert_identical(evaluations[1], evaluations[0])
    totals = np.array([3.0, 6.0, 10.0])
    assert_identical(evaluations[0], np.repeat(totals[:, None], 3, axis=1))
    _, of_episodes, rows = returns[-2]
    whole = rollouts[1][0].episodes().terminated
    assert_identical(of_episodes[whole], totals[rows[whole]])


@pytest.mark.parametrize("build", EVERY_EXECUTOR, ids=str)
def test_a_collector_leaves_no_unfinished_rollout(build):
    """Environments can be stepped in parts afterwards, and later steps change no rollout."""
    envs = build(transcripts(3, 4))
    collector = cartwheel.Collector(envs, lambda _: [0, 0], num_episodes=2)
    rollout = collector.collect()
    before = rollout.observations.copy()
    envs.step([0], env_index=[1])
    envs.step([0, 0])
    assert_identical(rollout.observations, before)

    def failing(_):
        raise ZeroDivisionError

    collector = cartwheel.Collector(envs, failing, num_steps=5)
    with pytest.raises(ZeroDivisionError):
        collector.collect()
    envs.step([0], env_index=[1])
    collector.reset()
    envs.step([0], env_index=[1])


def firsts_of(num_envs):
    """The first states of episodes."""
    for env in range(num_envs):
        stream = simulated_envs(num_envs)[env]().stream
        for _ in range(60):
            yield next(stream).states[0]
