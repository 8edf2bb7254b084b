"""Groups and free rows give the rollouts of lockstep, in every mode and on every executor."""

from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete

import cartwheel
from cartwheel._internal import nested
from cartwheel.wrappers import NormalizeObservation, VectorWrapper
from tests.support.cases import POLE, SHORT, lean
from tests.support.collecting import (
    assert_same,
    assert_same_steps,
    collector_of,
    in_lockstep,
    policy,
    states_of,
)
from tests.support.comparison import assert_identical
from tests.support.environments import LargeNestedEnv, TranscriptEnv
from tests.support.executors import EVERY_EXECUTOR, EXECUTORS, INLINE, NATIVE, PROCESS, THREAD
from tests.support.repetitions import times

MODES = ("NEXT_STEP", "SAME_STEP", "DISABLED")
ORDERS = {
    "free": {"order": "free"},
    "free, ahead": {"order": "free", "run_ahead": 2},
    "free, few at a time": {"order": "free", "min_rows": 2, "max_rows": 3},
    "free, without a deadline": {"order": "free", "min_rows": 4, "deadline": None},
    "free, no patience": {"order": "free", "min_rows": 4, "deadline": 0},
    "groups": {"order": "groups", "groups": 3},
    "groups, ahead": {"order": "groups", "groups": 2, "run_ahead": 1},
    "auto": {"order": "auto"},
    "auto, ahead": {"order": "auto", "run_ahead": 1},
}


@pytest.fixture(params=ORDERS)
def order(request):
    return ORDERS[request.param]


@pytest.mark.parametrize("executor", EVERY_EXECUTOR, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_a_rollout_is_the_one_of_lockstep(mode, executor, order):
    expected = in_lockstep(6, mode, 7, num_envs=6)
    with collector_of(mode, 7, num_envs=6, build=executor, **order) as collector:
        for rollout in expected:
            assert_same_steps(collector.collect(), rollout)


def normalized(kind, mode):
    return NormalizeObservation(kind([POLE] * 6, autoreset_mode=mode))


@pytest.mark.parametrize("kind", [THREAD, PROCESS, NATIVE], ids=str)
def test_wrappers_get_the_rows_of_a_group_and_no_others_with_them(kind):
    """Also where others are done, as native ones are: moments of observations count batches."""
    groups, seen = ([0, 2, 4], [1, 3, 5]), []
    with normalized(NATIVE, "SAME_STEP") as envs:
        observations, _ = envs.reset(seed=1)
        shown = [observations[rows] for rows in groups]
        for rows, each in zip(groups, shown, strict=True):
            envs.send(lean(each), rows)
        for _ in range(40):
            seen.append(np.stack(shown, axis=1).reshape(6, 4))
            for group, rows in enumerate(groups):
                shown[group] = envs.recv(max_rows=3)[0]
                envs.send(lean(shown[group]), rows)
        envs.recv()
    with normalized(kind, "SAME_STEP") as envs:
        rollout = cartwheel.Collector(envs, lean, 39, seed=1, order="groups", groups=2).collect()
    assert_identical(rollout.observations, np.array(seen))


@pytest.mark.parametrize("kind", [THREAD, PROCESS], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_groups_have_the_same_bits_with_a_wrapper_that_counts_batches(mode, kind):
    rollouts = []
    for each in (NATIVE, kind):
        with normalized(each, mode) as envs:
            collector = cartwheel.Collector(envs, lean, 30, seed=1, order="groups", groups=3)
            rollouts.append([collector.collect() for _ in range(3)])
    for rollout, other in zip(*rollouts, strict=True):
        assert_same(rollout, other)


@pytest.mark.parametrize(("num_envs", "num_steps"), [(1, 1), (1, 5), (6, 1), (6, 40)])
@pytest.mark.parametrize("mode", MODES)
def test_sizes_at_the_edge_make_no_difference(mode, num_envs, num_steps, order):
    if num_envs == 1:
        order = {**order, "groups": 1, "min_rows": 1, "max_rows": None}
    expected = in_lockstep(5, mode, num_steps, num_envs=num_envs)
    build = PROCESS if num_envs > 1 else INLINE
    with collector_of(mode, num_steps, num_envs=num_envs, build=build, **order) as collector:
        for rollout in expected:
            assert_same_steps(collector.collect(), rollout)


class PayingEnv(TranscriptEnv):
    """The reward is the number in the action."""

    action_space = Box(-1, 1, (1,), np.float32)

    def step(self, action):
        return super().step(action[0])


@pytest.mark.parametrize("mode", MODES)
def test_environments_get_actions_with_the_bits_that_the_policy_gave(mode, order):
    """Also wider floats than those of the space, and next to rows that only reset."""
    env_fns = [partial(PayingEnv, length) for length in (1, 2, 3, 4, 5, 6)]
    envs = THREAD(env_fns, autoreset_mode=mode)
    with cartwheel.Collector(envs, lambda seen: np.full((len(seen), 1), 0.1), 9, **order) as found:
        for _ in range(4):
            rollout = found.collect()
            assert set(rollout.rewards[rollout.valid].tolist()) == {0.1}
    envs.close()


class ChoosingEnv(TranscriptEnv):
    """Its actions are far from 0."""

    action_space = Dict(
        pick=Discrete(3, start=5),
        tune=MultiDiscrete([2, 3], start=[-4, 7]),
        push=Box(1, 2, (2,), np.float32),
        flag=MultiBinary(2),
    )

    def step(self, action):
        return super().step(action["pick"])


class Strict(VectorWrapper):
    """Refuses actions that are not in the space, as native environments do."""

    def act(self, actions, batch):
        space = self.single_action_space
        for action in nested.rows(space, actions, len(batch.rows)):
            assert space.contains(action), action
        return actions


def test_rows_that_only_reset_get_an_action_of_their_space(order):
    envs = Strict(INLINE([partial(ChoosingEnv, length) for length in (1, 1, 2, 3, 4, 5)]))
    envs.single_action_space.seed(3)
    action = envs.single_action_space.sample()

    def act(observations):
        return nested.stack(envs.single_action_space, [action] * len(observations))

    rollout = cartwheel.Collector(envs, act, 9, **order).collect()
    assert set(rollout.rewards[rollout.valid].tolist()) == {action["pick"]}
    assert not rollout.valid.all()
    envs.close()


@pytest.mark.parametrize("case", SHORT, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_native_rows_are_those_of_lockstep(mode, case, order):
    rollouts = []
    for keywords in ({}, order):
        envs = NATIVE([case] * 6, autoreset_mode=mode)
        envs.single_action_space.seed(8)
        action = envs.single_action_space.sample()
        collector = cartwheel.Collector(envs, partial(always, action), 9, seed=3, **keywords)
        rollouts.append([collector.collect() for _ in range(5)])
        envs.close()
    for one, two in zip(*rollouts, strict=True):
        assert_same_steps(two, one)


def always(action, observations):
    """The same action for each row."""
    leaf = observations[0] if isinstance(observations, tuple) else observations
    return np.stack([action] * len(leaf))


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_large_nested_observations_keep_their_values(mode, executor):
    def act(observations):
        return observations["state"][0] % 3

    rollouts = []
    for keywords in ({}, ORDERS["free, ahead"], ORDERS["groups"]):
        envs = executor([LargeNestedEnv] * 3, autoreset_mode=mode)
        collector = cartwheel.Collector(envs, act, 25, seed=5, **keywords)
        rollouts.append([collector.collect() for _ in range(3)])
        envs.close()
    for other in rollouts[1:]:
        for one, two in zip(other, rollouts[0], strict=True):
            assert_same_steps(one, two)


@pytest.mark.parametrize("mode", MODES)
def test_a_recurrent_policy_gets_row_numbers_and_beginnings_of_episodes(mode, order):
    def recurrent(sums, observations, env_index, first):
        states = observations[:, 0]
        sums[env_index] = np.where(first, 0, sums[env_index]) + states
        return (states % 1000).astype(np.int64), {"sum": sums[env_index]}

    rollouts = []
    for build, keywords in ((INLINE, {}), (PROCESS, order)):
        with collector_of(mode, 7, num_envs=6, build=build, **keywords) as collector:
            collector = cartwheel.Collector(
                collector.envs, partial(recurrent, np.zeros(6)), 7, recurrent=True, **keywords
            )
            rollouts.append([collector.collect() for _ in range(5)])
    for one, two in zip(*rollouts, strict=True):
        assert_same_steps(two, one)


@pytest.mark.parametrize("mode", MODES)
def test_groups_ask_the_same_questions_whatever_the_timing(mode):
    def asked(executor):
        batches = []

        def remember(observations):
            batches.append(observations.copy())
            return policy(observations)

        with collector_of(mode, 7, num_envs=6, build=executor) as collector:
            collector = cartwheel.Collector(
                collector.envs, remember, 7, order="groups", run_ahead=1
            )
            for _ in range(5):
                collector.collect()
                batches.append(np.zeros(0))  # where the rollout ended counts, too
        return batches

    first, *others = map(asked, times(EXECUTORS, with_full=EVERY_EXECUTOR))
    for batches in others:
        assert_identical(batches, first)


@pytest.mark.parametrize("mode", MODES)
def test_the_policy_gets_as_many_rows_as_it_wants(mode):
    sizes = []

    def measure(observations):
        sizes.append(len(observations))
        return policy(observations)

    with collector_of(mode, 30, num_envs=8, build=PROCESS) as collector:
        collector = cartwheel.Collector(
            collector.envs, measure, 30, order="free", min_rows=2, max_rows=3, deadline=None
        )
        for _ in range(3):
            collector.collect()
    assert max(sizes) == 3
    # A single row is asked only where no other can come: at the ends of rollouts, and where all
    # others reset.
    assert sizes.count(1) < len(sizes) / 4


@pytest.mark.parametrize("kind", [THREAD, PROCESS], ids=str)
def test_a_row_goes_on_alone_after_the_deadline_however_long_the_others_take(gates, kind):
    asked = []

    def act(_, env_index, __):
        asked.append(env_index.tolist())
        if len(asked) == 2:
            gates.open(1)
        return np.where(env_index == 0, 0, 1)  # the others wait at gate 1

    envs = kind(gates.env_fns(4), num_workers=4)
    collector = cartwheel.Collector(
        envs, act, 3, recurrent=True, order="free", min_rows=2, deadline=0.01
    )
    rollout = collector.collect()
    envs.close()
    assert asked[:2] == [[0, 1, 2, 3], [0]]
    assert rollout.valid.all()


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_in_flight_between_rollouts_without_run_ahead(mode):
    for order in ("free", "groups"):
        with collector_of(mode, 7, num_envs=6, build=PROCESS, order=order) as collector:
            for _ in range(3):
                collector.collect()
                assert collector.envs.in_flight == []
                assert collector.envs.recv_order == "sent"


@pytest.mark.parametrize("mode", MODES)
def test_a_paused_collector_leaves_the_environments_to_others_and_goes_on(mode):
    for keywords in (ORDERS["free, ahead"], ORDERS["groups, ahead"]):
        expected = in_lockstep(6, mode, 7, num_envs=6)
        with collector_of(mode, 7, num_envs=6, build=PROCESS, **keywords) as collector:
            for rollout in expected:
                assert_same_steps(collector.collect(), rollout)
                collector.pause()
                assert collector.envs.in_flight == []
                assert len(collector.envs.call("spec")) == 6


@pytest.mark.parametrize("kind", ["free", "groups"])
@pytest.mark.parametrize("mode", MODES)
def test_columns_are_each_rows_next_steps_in_order(mode, kind):
    expected = in_lockstep(30, mode, 5, num_envs=6)
    seen = [0] * 6
    bounds = {"order": kind, "columns": 4, "run_ahead": 1, "groups": 3}
    with collector_of(mode, 5, num_envs=6, build=PROCESS, **bounds) as collector:
        for _ in range(20):
            rollout = collector.collect()
            assert rollout.valid.shape == (5, 4)
            assert len(set(rollout.env_index.tolist())) == 4
            for column, row in enumerate(rollout.env_index.tolist()):
                assert_same_column(rollout, column, expected[seen[row]], row)
                seen[row] += 1
            assert max(seen) - min(seen) <= 3
    assert sum(seen) == 80


@pytest.mark.parametrize("mode", MODES)
def test_the_parts_of_a_rollout_of_columns_name_their_environments(mode):
    with collector_of(mode, 5, num_envs=6, order="free", columns=2) as collector:
        collector.reset()
        row_of = {}
        for rollout in (collector.collect() for _ in range(12)):
            states = states_of(rollout.observations)
            for column, row in enumerate(rollout.env_index.tolist()):
                for state in states[:, column].tolist():
                    assert row_of.setdefault(state, row) == row, "states belong to one row"
            rows = rollout.env_index.tolist()
            moves = rollout.transitions()
            assert moves.env_index.tolist() == [row_of[s] for s in states_of(moves.observations)]
            for windows in (
                rollout.windows(2),
                rollout.windows(3, stop_at_done=False),
                *rollout.minibatches(1, by="env"),
                *rollout.minibatches(2, by="sequence", length=2),
            ):
                first = states_of(windows.observations)[0]
                assert windows.env_index.tolist() == [row_of[state] for state in first]
            for episode in rollout.episodes():
                column = rows.index(episode.env_index)
                assert row_of[states[episode.start, column]] == episode.env_index
            ended = {(episode.env_index, episode.stop - 1) for episode in rollout.episodes()}
            flags = np.argwhere((rollout.terminated | rollout.truncated) & rollout.valid)
            assert {(rows[column], step) for step, column in flags.tolist()} <= ended
        assert len(set(row_of.values())) == 6


def assert_same_column(rollout, column, other, row):
    """A column of a rollout has the steps of a row of another one."""
    valid = rollout.valid[:, column]
    for name in ("valid", "observations", "rewards", "terminated", "truncated", "is_first"):
        assert_identical(getattr(rollout, name)[:, column], getattr(other, name)[:, row])
    assert_identical(rollout.actions[valid, column], other.actions[valid, row])
    assert_identical(rollout.extras["half"][valid, column], other.extras["half"][valid, row])
    mine, others = rollout.final_index[:, 1] == column, other.final_index[:, 1] == row
    assert_identical(rollout.final_index[mine, 0], other.final_index[others, 0])
    assert_identical(rollout.final_observations[mine], other.final_observations[others])
    for name, array in vars(other.carry).items():
        assert getattr(rollout.carry, name)[column] == array[row]
