"""After every failure a collector goes on, and every row in flight is received."""

import contextlib
import itertools
import multiprocessing
from functools import partial

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError

import cartwheel
from cartwheel.wrappers import VectorWrapper
from tests.support.collecting import assert_same_steps, collector_of, in_lockstep, policy
from tests.support.comparison import assert_identical
from tests.support.environments import transcripts
from tests.support.executors import EXECUTORS, INLINE, PROCESS, THREAD
from tests.support.faulty import FaultyEnv, fault
from tests.support.interrupts import ANY_MOMENT, interrupted_at
from tests.support.repetitions import times
from tests.support.simulated_rollouts import SimulatedEnv

MODES = ("NEXT_STEP", "SAME_STEP", "DISABLED")
ORDERS = [
    {"order": "free"},
    {"order": "free", "run_ahead": 1, "max_rows": 2},
    {"order": "groups", "groups": 3},
]
OFTEN = {"on_error": "restart", "max_restarts": 10_000}
#: Without `actor`: a tracer could raise before a lock is left that no real Ctrl-C keeps locked.
FILES = tuple(f"rollouts/collecting/{name}" for name in ("block", "pipeline", "pipeline_orders"))


class Raising:
    """Raises, or answers with too few rows, in every third call."""

    def __init__(self):
        self.calls = 0

    def __call__(self, observations):
        self.calls += 1
        if self.calls % 6 == 3:
            raise ZeroDivisionError
        actions, extras = policy(observations)
        if self.calls % 6 == 0:
            return actions[:-1], extras
        return actions, extras


@pytest.mark.parametrize("keywords", ORDERS, ids=str)
@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_if_the_policy_raises_its_rows_wait(mode, executor, keywords):
    expected = in_lockstep(5, mode, 7, num_envs=6)
    with collector_of(mode, 7, num_envs=6, build=executor, **keywords) as collector:
        collector.policy = Raising()
        rollouts, errors = [], 0
        while len(rollouts) < 5:
            try:
                rollouts.append(collector.collect())
            except (ZeroDivisionError, ValueError):  # each call may raise
                errors += 1
        assert errors > 5
        for one, two in zip(rollouts, expected, strict=True):
            assert_same_steps(one, two)


@ANY_MOMENT
@pytest.mark.parametrize("keywords", ORDERS, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_ctrl_c_at_any_line_leaves_a_collector_that_goes_on(mode, keywords):
    whole = in_lockstep(3, mode, 4, num_envs=6)
    near, far = times((7, 61), with_full=(3, 37))
    for line in itertools.chain(range(1, 200, near), itertools.count(200, far)):
        with collector_of(mode, 4, num_envs=6, build=INLINE, **keywords) as collector:
            came = interrupted_at(line, collector.collect, FILES)
            rollout = collector.collect()
            # It is the one that was interrupted, or one after it, or one after a reset.
            assert rollout.valid.shape == (4, 6)
            states = rollout.observations[0, :, 0]
            if np.array_equal(states, whole[0].observations[0, :, 0]):
                assert_same_steps(rollout, whole[0])
            elif np.array_equal(states, whole[1].observations[0, :, 0]):
                assert_same_steps(rollout, whole[1])
            else:
                assert rollout.is_first[0].all()
            collector.close()
            assert collector.envs.in_flight == []
        if not came:
            break


@contextlib.contextmanager
def with_several_batches_in_flight():
    """A collector whose policy has raised, with rows in flight that no single ``recv`` returns."""
    with collector_of("SAME_STEP", 4, num_envs=6, build=INLINE, **ORDERS[2]) as collector:
        calls = itertools.count(1)

        def raises(observations):
            if next(calls) == 5:
                raise ZeroDivisionError
            return policy(observations)

        collector.policy = raises
        with pytest.raises(ZeroDivisionError):
            collector.collect()
        yield collector


def test_ctrl_c_in_a_pause_leaves_a_collector_that_goes_on(monkeypatch):
    with with_several_batches_in_flight() as collector:
        receive, calls = collector.envs.recv, itertools.count()

        def interrupted(*arguments, **keywords):
            if next(calls) == 1:
                raise KeyboardInterrupt
            return receive(*arguments, **keywords)

        with monkeypatch.context() as patch:
            patch.setattr(collector.envs, "recv", interrupted)
            with pytest.raises(KeyboardInterrupt):
                collector.pause()
        assert_same_steps(collector.collect(), in_lockstep(1, "SAME_STEP", 4, num_envs=6)[0])


def test_ctrl_c_in_a_step_that_is_dropped_leaves_a_collector_that_goes_on(monkeypatch):
    def interrupts(*_):
        raise KeyboardInterrupt

    with with_several_batches_in_flight() as collector:
        with monkeypatch.context() as patch:
            patch.setattr(SimulatedEnv, "step", interrupts)
            with pytest.raises(KeyboardInterrupt):
                collector.reset()
        assert collector.collect().is_first[0].all()


@ANY_MOMENT
@pytest.mark.parametrize("mode", MODES)
def test_ctrl_c_at_any_line_of_lockstep_leaves_no_rollout_to_the_environments(mode):
    files = tuple(f"rollouts/{name}" for name in ("recording", "buffers", "collecting/lockstep"))
    step, first = times(6, with_full=1), {"DISABLED": 0, "NEXT_STEP": 2, "SAME_STEP": 4}[mode]
    for line in itertools.count(1 + first, step):
        with collector_of(mode, 2, num_envs=2) as collector:
            came = interrupted_at(line, collector.collect, files)
            collector.close()
            envs = collector.envs
            envs.reset()
            envs.send([1], [0])  # rows cannot be sent while a rollout is recorded
            assert envs.recv()[4]["env_index"].tolist() == [0]
        if not came:
            break


class FailsOnce:
    """Gives a row an action that fails, in its ``when``-th step; 0 otherwise."""

    def __init__(self, row, when, action):
        self.row, self.when, self.action, self.steps = row, when, action, 0

    def __call__(self, observations, env_index, first):  # noqa: ARG002 - a recurrent policy
        actions = np.zeros(len(env_index), np.int64)
        at = np.flatnonzero(env_index == self.row)
        if len(at):
            self.steps += 1
            if self.steps == self.when:
                actions[at] = self.action
        return actions


@pytest.mark.parametrize("keywords", ORDERS, ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["value error", "kill"])
def test_steps_of_a_replaced_environment_are_no_transitions(name, mode, keywords):
    envs = PROCESS(
        [partial(FaultyEnv, row) for row in range(6)],
        autoreset_mode=mode,
        on_error="restart",
        on_worker_death="restart",
        num_workers=3,
    )
    fails = FailsOnce(2, 4, fault(name))
    collector = cartwheel.Collector(envs, fails, 6, recurrent=True, **keywords)
    rollouts = [collector.collect() for _ in range(3)]
    failed = np.flatnonzero(~rollouts[0].valid[:, 2])
    assert failed[0] == 3
    assert rollouts[0].truncated[3, 2]
    assert not rollouts[0].terminated.any()
    for rollout in rollouts:
        assert rollout.valid[:, [0, 1, 4, 5]].all()
    assert all(rollout.valid[:, 2].all() for rollout in rollouts[1:])
    collector.close()
    envs.close()


@pytest.mark.parametrize("keywords", [{}, *ORDERS], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_a_frame_that_a_failure_ends_has_the_numbers_of_its_episode(mode, keywords):
    """Also in the rollout after it, which begins with this frame."""
    env_fns = [partial(FaultyEnv, row) for row in range(6)]
    envs = INLINE(env_fns, autoreset_mode=mode, on_error="restart")
    fails = FailsOnce(2, 4, fault("value error"))
    with cartwheel.Collector(envs, fails, 4, recurrent=True, seed=1, **keywords) as collector:
        first, second = collector.collect(), collector.collect()
    assert first.truncated[-1].tolist() == [row == 2 for row in range(6)]
    for rollout, frame in ((first, -1), (second, 0)):
        workspace = rollout.to_workspace()
        assert workspace["env/timestep"][frame].tolist() == [4, 4, 3, 4, 4, 4]
        sums = first.rewards.sum(axis=0).astype(np.float32)
        assert_identical(workspace["env/cumulated_reward"][frame], sums)
    later = second.to_workspace()["env/timestep"][1:, 2].tolist()
    assert later == ([0, 1, 2, 3] if mode == "NEXT_STEP" else [1, 2, 3, 4])
    envs.close()


class OftenFailingEnv(FaultyEnv):
    """Episodes of up to five steps, of which many fail."""

    chance = np.random.default_rng(3)

    def step(self, action):
        if self.chance.random() < 0.4:
            raise ValueError
        observation, reward, *flags, info = super().step(action)
        return observation, reward, self.steps % 5 == 4, *flags[1:], info


@pytest.mark.parametrize("num_steps", [1, 2, 7])
@pytest.mark.parametrize("mode", MODES)
def test_a_rollout_begins_with_the_last_frame_of_the_one_before(mode, num_steps):
    """Also where the first step of an episode fails."""
    envs = INLINE([partial(OftenFailingEnv, row) for row in range(4)], autoreset_mode=mode, **OFTEN)
    collector = cartwheel.Collector(envs, lambda seen: np.zeros(len(seen), int), num_steps, seed=1)
    before, failed_first = collector.collect(), 0
    for _ in range(40):
        after = collector.collect()
        failed_first += np.count_nonzero(before.is_first[:-1] & before.truncated)
        frames, later = before.to_workspace(), after.to_workspace()
        for name in ("env/reward", "env/done", "env/timestep"):
            assert_identical(later[name][0], frames[name][-1], name)
        sums = (later["env/cumulated_reward"][0], frames["env/cumulated_reward"][-1])
        np.testing.assert_allclose(*sums, rtol=1e-6)
        before = after
    assert failed_first > 9
    envs.close()


class Losing(VectorWrapper):
    """Loses the infos of row 1 where its episode ends, as with a worker that dies then."""

    def transform(self, batch):
        if batch.rewards is None or "final_obs" not in batch.infos:
            return
        lost = (batch.terminations | batch.truncations) & (batch.rows == 1)
        infos = {**batch.infos, "infos_lost": lost, "_infos_lost": lost}
        infos["_final_obs"] = infos["_final_obs"] & ~lost
        if not infos["_final_obs"].any():
            del infos["final_obs"], infos["_final_obs"]
        batch.infos = infos


class LosingSome(VectorWrapper):
    """Loses the infos of row 1 in the second step of its episodes."""

    def transform(self, batch):
        if batch.rewards is not None:
            lost = (batch.rows == 1) & (batch.observations[:, 0] == 2)
            batch.add_info("infos_lost", lost, lost)


@pytest.mark.parametrize("mode", MODES)
def test_an_episode_that_lost_infos_ends_before_and_its_rest_is_another(mode):
    envs = LosingSome(INLINE(transcripts(3, 4), autoreset_mode=mode))
    collector = cartwheel.Collector(envs, lambda seen: np.ones(len(seen), int), 9)
    rollout = collector.collect()
    transitions = rollout.transitions()
    assert len(transitions) == rollout.valid.sum() < rollout.valid.size
    episodes = rollout.episodes()
    parts = [one.length for one in episodes if one.env_index == 1]
    assert sorted(parts[:4]) == [1, 1, 2, 2]
    assert all(rollout.valid[one.start : one.stop, one.env_index].all() for one in episodes)
    envs.close()


@pytest.mark.parametrize("keywords", [{}, {"order": "free"}], ids=str)
@pytest.mark.parametrize("num_steps", [1, 2, 3, 5])
@pytest.mark.parametrize("mode", MODES)
def test_the_rest_of_an_episode_that_lost_infos_is_the_same_in_other_rollouts(
    mode, num_steps, keywords
):
    def collected(num_steps, **keywords):
        envs = LosingSome(INLINE(transcripts(3, 4), autoreset_mode=mode))
        collector = cartwheel.Collector(
            envs, lambda seen: np.ones(len(seen), int), num_steps, **keywords
        )
        rollouts = [collector.collect() for _ in range(60 // num_steps)]
        collector.close()
        envs.close()
        return rollouts

    def complete(rollout):
        episodes = rollout.episodes(complete_only=True)
        return [(one.env_index, one.length, one.episode_return) for one in episodes]

    (whole,), parts = collected(60), collected(num_steps, **keywords)
    assert set(complete(whole)) == {(0, 3, 3.0), (1, 2, 2.0)}
    assert [one for rollout in parts for one in complete(rollout)] == complete(whole)
    steps = whole.to_workspace()["env/timestep"]
    found = [rollout.to_workspace()["env/timestep"][1:] for rollout in parts]
    assert_identical(np.concatenate(found), steps[1:])
    for n in range(1, 60, num_steps):
        assert_identical(whole.tail(n).to_workspace()["env/timestep"], steps[-n - 1 :])


@pytest.mark.parametrize("truncates", [False, True])
@pytest.mark.parametrize(
    "keywords",
    [
        {"num_steps": 7},
        {"num_episodes": 8},
        {"num_steps": 7, "order": "free"},
        {"num_steps": 7, "order": "groups", "groups": 3},
    ],
    ids=str,
)
def test_steps_whose_final_observation_was_lost_are_no_transitions(keywords, truncates):
    def collector(wrap):
        lengths = transcripts(3, 2, 4, terminates=not truncates, truncates=truncates)
        envs = wrap(INLINE(lengths, autoreset_mode="same_step"))
        return cartwheel.Collector(envs, lambda seen: np.ones(len(seen), int), **keywords)

    losing, whole = collector(Losing), collector(lambda envs: envs)
    lost = 0
    for _ in range(3):
        rollout, other = losing.collect(), whole.collect()
        ended = (other.terminated | other.truncated) & other.valid
        ended[:, [0, 2]] = False
        lost += ended.sum()
        np.testing.assert_array_equal(rollout.valid, other.valid & ~ended)
        of_others = other.final_index[:, 1] != 1
        np.testing.assert_array_equal(rollout.final_index, other.final_index[of_others])
        np.testing.assert_array_equal(
            rollout.final_observations, other.final_observations[of_others]
        )
        for name in ("rewards", "terminated", "truncated", "is_first"):
            np.testing.assert_array_equal(getattr(rollout, name), getattr(other, name))
        assert len(rollout.transitions()) == rollout.valid.sum()
    assert lost >= 6
    for each in (losing, whole):
        each.close()
        each.envs.close()


def test_environments_in_flight_are_refused_to_others():
    with collector_of("NEXT_STEP", 7, num_envs=6, build=PROCESS, order="free", run_ahead=2) as (
        collector
    ):
        envs = collector.envs
        while not envs.in_flight:
            collector.collect()
        for call in (
            lambda: envs.step(np.zeros(6, np.int64)),
            envs.reset,
            lambda: cartwheel.evaluate(envs, policy),
        ):
            with pytest.raises(Exception, match=r"pause\(\)") as caught:
                call()
            assert "in flight" in str(caught.value)
        collector.pause()
        envs.step(np.zeros(6, np.int64))


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("keywords", [{"order": "free", "max_rows": 2}, *ORDERS[1:]], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_after_an_exception_others_may_reset_the_environments(mode, keywords, error):
    def raises(observations):
        if collector.envs.in_flight:
            raise error
        return policy(observations)

    with collector_of(mode, 7, num_envs=6, **keywords) as collector:
        envs = collector.envs
        for use in (envs.reset, lambda: cartwheel.evaluate(envs, policy)):
            collector.policy = raises
            with pytest.raises(error):
                collector.collect()
            assert envs.in_flight
            assert envs.recv_order == "sent"
            use()
            assert envs.in_flight == []
            collector.policy = policy
            assert collector.collect().is_first[0].all()


@pytest.mark.parametrize("mode", MODES)
def test_without_their_collector_rows_in_flight_do_not_hinder_a_reset(mode):
    keywords = {"order": "groups", "run_ahead": 1}
    with collector_of(mode, 7, num_envs=6, **keywords) as made:
        envs = made.envs
        for _ in range(2):
            collector = cartwheel.Collector(envs, policy, 7, **keywords)
            collector.collect()
            assert envs.in_flight
            with pytest.raises(AlreadyPendingCallError):
                envs.reset()
            del collector
            envs.reset()
            assert envs.in_flight == []


def test_without_their_collector_rows_are_received_in_the_order_of_before(closes, gates):
    envs = closes(THREAD(gates.env_fns(2)))
    collector = cartwheel.Collector(
        envs,
        lambda _observations, rows, _first: (rows == 0).astype(np.int64),
        num_steps=1,
        recurrent=True,
        order="free",
        columns=1,
    )
    assert collector.collect().env_index.tolist() == [1]
    assert envs.in_flight == [0]
    assert envs.recv_order == "done"
    del collector
    assert envs.recv_order == "sent"
    gates.open(1)
    envs.reset()
    assert envs.in_flight == []


def test_a_call_that_takes_too_long_loses_nothing():
    expected = in_lockstep(3, "NEXT_STEP", 7, num_envs=6)
    with collector_of("NEXT_STEP", 7, num_envs=6, build=PROCESS, order="free") as collector:
        recv, late = collector.envs.recv, iter([True, False] * 1000)

        def sometimes_late(timeout=None, **bounds):
            if next(late):
                raise multiprocessing.TimeoutError
            return recv(timeout, **bounds)

        collector.envs.recv = sometimes_late
        rollouts = []
        while len(rollouts) < 3:
            try:
                rollouts.append(collector.collect())
            except multiprocessing.TimeoutError:  # each call may raise
                continue
        for one, two in zip(rollouts, expected, strict=True):
            assert_same_steps(one, two)


def test_without_a_deadline_a_time_out_does_not_ask_the_policy_for_fewer_rows():
    sizes, calls = [], itertools.count()

    def measure(seen):
        sizes.append(len(seen))
        return policy(seen)

    def few_and_then_late(timeout=None, **bounds):
        call = next(calls)
        if call == 1:
            raise multiprocessing.TimeoutError
        return recv(timeout, **(bounds if call else {"min_rows": 1, "max_rows": 2}))

    expected = in_lockstep(2, "NEXT_STEP", 7, num_envs=6)
    with collector_of("NEXT_STEP", 7, num_envs=6, build=PROCESS) as made:
        recv, made.envs.recv = made.envs.recv, few_and_then_late
        collector = cartwheel.Collector(
            made.envs, measure, 7, order="free", min_rows=6, deadline=None
        )
        with pytest.raises(multiprocessing.TimeoutError):
            collector.collect()
        assert sizes == [6]  # after the reset
        for rollout in expected:
            assert_same_steps(collector.collect(), rollout)
