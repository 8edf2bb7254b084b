"""Rows that are restored from saved states go on as the saved rows did, in every executor."""

import threading
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils import EzPickle
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import (
    Autoreset,
    DelayObservation,
    FrameStackObservation,
    MaxAndSkipObservation,
    NormalizeObservation,
    NormalizeReward,
    OrderEnforcing,
    RecordEpisodeStatistics,
    StickyAction,
    TimeAwareObservation,
    TimeLimit,
)

from cartwheel.testing import check_vector_env
from cartwheel.wrappers import CachedReset
from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.executors import INLINE, NATIVE, PROCESS, THREAD, Executor
from tests.support.faulty import FaultyEnv, fault
from tests.support.oracle import MODE, D, N, S
from tests.support.runs import stepped
from tests.support.stateful import (
    EndlessWalkEnv,
    NestedWalkEnv,
    OneArgument,
    PlainWalkEnv,
    TouchyWalkEnv,
    WalkEnv,
    walk,
)

KINDS = pytest.mark.parametrize("executor", [INLINE, THREAD, PROCESS], ids=str)
SEVEN = Executor("process", {"num_workers": 7})


def actions_of(steps, num_envs=5, seed=3):
    return np.random.default_rng(seed).integers(3, size=(steps, num_envs))


@pytest.mark.parametrize("executor", [INLINE, THREAD, SEVEN], ids=str)
@MODE
@pytest.mark.parametrize("kind", [WalkEnv, NestedWalkEnv])
def test_a_restored_pool_repeats_the_transcript_of_gymnasium(executor, mode, kind):
    envs = executor([partial(walk, kind)] * 5, autoreset_mode=mode)
    oracle = SyncVectorEnv([partial(walk, kind)] * 5, autoreset_mode=mode)
    actions = actions_of(40)
    assert_identical(envs.reset(seed=7), oracle.reset(seed=7))
    assert_identical(stepped(envs, actions[:9]), stepped(oracle, actions[:9]))
    states = envs.get_state()
    expected = stepped(oracle, actions[9:])
    assert_identical(stepped(envs, actions[9:]), expected)
    for _ in range(2):
        envs.set_state(None, states)
        assert_identical(stepped(envs, actions[9:]), expected)
    envs.close()
    others = (PROCESS if executor is INLINE else INLINE)(
        [partial(walk, kind)] * 5, autoreset_mode=mode
    )
    others.set_state(range(5), states)  # before the first reset
    assert_identical(stepped(others, actions[9:]), expected)
    others.close()


@KINDS
@MODE
@pytest.mark.parametrize("batch_size", [None, 2])
def test_states_move_to_any_rows_and_the_rows_show_themselves_again(executor, mode, batch_size):
    for kind in (WalkEnv, NestedWalkEnv):
        envs = executor([partial(walk, kind)] * 5, autoreset_mode=mode)
        envs.reset(seed=5)
        actions = actions_of(30)
        seen = [step for step in stepped(envs, actions[:6]) if len(step) == 5][-1]
        states = envs.get_state([4, 1, 2])
        expected = stepped(envs, actions[6:])
        envs.close()
        others = executor([partial(walk, kind)] * 3, autoreset_mode=mode, batch_size=batch_size)
        others.send_reset()
        while others.in_flight:
            others.recv()
        observations, infos = others.set_state([2, 0, 1], states)
        assert_identical(infos, {"env_index": np.array([2, 0, 1])})
        if mode != D:  # there, the rows were reset after the step
            for at, row in enumerate([4, 1, 2]):
                shown = _row(observations, at)
                assert_identical(shown, _row(seen[0], row))
        assert others.get_state([2, 0, 1]) == states
        if batch_size is None:
            mirrored = stepped(others, actions[6:][:, [1, 2, 4]])
            for got, wanted in zip(mirrored, expected, strict=False):
                if len(got) == len(wanted) == 5 and mode != D:
                    assert_identical(_row(got[0], 2), _row(wanted[0], 4))
                    assert_identical(got[1], wanted[1][[1, 2, 4]])
        others.close()


def _row(batch, row):
    if isinstance(batch, dict):
        return {key: part[row] for key, part in batch.items()}
    return batch[row]


@pytest.mark.parametrize("executor", [INLINE, THREAD, PROCESS, NATIVE], ids=str)
def test_rows_that_are_over_frozen_or_waiting_are_restored_so(executor):
    case = Case("CartPole-v1", {"max_episode_steps": 2})
    env_fn = case if executor is NATIVE else partial(walk, EndlessWalkEnv, 2)
    for mode, keywords in ((N, {}), (D, {"on_done": "freeze"}), (D, {})):
        envs = executor([env_fn] * 3, autoreset_mode=mode, **keywords)
        envs.reset(seed=1)
        envs.step(np.zeros(3, int))
        fresh = envs.get_state([0])
        last = envs.step(np.zeros(3, int))
        assert (last[2] | last[3]).all()
        over = envs.get_state([0, 1])
        envs.reset(seed=2)
        observations, _ = envs.set_state([2, 1], [over[0], fresh[0]])
        assert_identical(observations[0], last[0][0])
        if mode == D and not keywords:
            with pytest.raises(gym.error.Error, match=r"\[2\]"):
                envs.step(np.zeros(3, int))
        else:
            step = envs.step(np.zeros(3, int))
            assert step[3].tolist() == [False, True, mode == D and bool(last[3][0])]
            assert step[1][2] == 0
            assert (mode == D) == np.array_equal(step[0][2], last[0][0])
        envs.close()


@pytest.mark.parametrize("batch_size", [None, 1, 3])
def test_restored_native_rows_are_returned_in_their_order(batch_size):
    envs = NATIVE([Case("Taxi-v4")] * 4)
    envs.reset(seed=3)
    observations = envs.step(np.zeros(4, int))[0]
    states = envs.get_state([3, 0, 2])
    others = NATIVE([Case("Taxi-v4")] * 4, batch_size=batch_size)
    restored, infos = others.set_state([1, 3, 0], states)
    assert_identical(restored, observations[[3, 0, 2]])
    assert_identical(infos, {"env_index": np.array([1, 3, 0])})
    envs.close()
    others.close()


@KINDS
def test_a_row_that_was_never_reset_is_restored_so(executor):
    envs = executor([walk] * 2)
    states = envs.get_state([0])
    envs.reset(seed=1)
    observations, _ = envs.set_state([1], states)
    assert_identical(observations, np.zeros((1, 2)))
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.zeros(2, int))
    envs.close()


@KINDS
def test_all_rows_change_or_none(executor):
    envs = executor([partial(walk, TouchyWalkEnv)] * 4)
    envs.reset(seed=1)
    envs.step(np.zeros(4, int))
    states = envs.get_state()
    envs.reset(seed=2)
    before = envs.get_state()
    envs.set_attr("touchy", [False, False, True, False])
    with pytest.raises(ValueError, match="this state is refused") as caught:
        envs.set_state([3, 2, 0], states[:3])
    assert any("row 2" in note for note in caught.value.__notes__)
    assert envs.get_state() == before
    state = states[0]
    native = NATIVE([Case("CartPole-v1")])
    native.reset(seed=1)
    other = executor([partial(walk, WalkEnv)])
    other.reset(seed=1)
    for wrong in (state, None, 7):
        with pytest.raises(TypeError, match="`states` must be a list with one state for each row"):
            envs.set_state([0], wrong)
    for bad, error, words in [
        (b"", ValueError, "not a state of a Python environment"),
        (native.get_state()[0], ValueError, "not a state of a Python environment"),
        (state[:-1], ValueError, "^row 1: the state of .* was cut or changed"),
        (state[:50] + b"?" + state[51:], ValueError, "was cut or changed"),
        (state[:8] + b"\x09" + state[9:], ValueError, "version 9; this cartwheel reads 1"),
        ("text", TypeError, "must be bytes"),
        (other.get_state()[0], ValueError, "of tests.support.stateful.WalkEnv, not of .*Touchy"),
    ]:
        with pytest.raises(error, match=words):
            envs.set_state([0, 1], [state, bad])
        assert envs.get_state() == before
    with pytest.raises(ValueError, match="not a state of a native environment"):
        native.set_state([0], [state])
    for rows, count, words in [
        ([4], 1, "names row 4; there are rows 0 to 3"),
        ([1, 1], 2, "names row 1 twice"),
        (None, 1, "1 states for 4 rows"),
    ]:
        with pytest.raises(ValueError, match=words):
            envs.set_state(rows, [state] * count)
    for each in (envs, native, other):
        each.close()


class TwoArguments(WalkEnv):
    def set_state(self, qpos, qvel):  # as the environments of `gymnasium.envs.mujoco`
        pass


class Unpicklable(WalkEnv):
    def get_state(self):
        return (number for number in range(3))


class HalfMethods(PlainWalkEnv):
    def get_state(self):
        return 1


def _wrapped():
    return OneArgument(TwoArguments())


@KINDS
@pytest.mark.parametrize(
    ("env_fn", "error", "words"),
    [
        (
            PlainWalkEnv,
            ValueError,
            r"row 1, .*PlainWalkEnv, .* no method `get_state`. Give",
        ),
        (HalfMethods, ValueError, r"row 1, .*HalfMethods, .* no method `set_state`. Give it"),
        (
            TwoArguments,
            ValueError,
            r"row 1, .*`set_state\(qpos, qvel\)` must be callable as `set_s",
        ),
        (Unpicklable, TypeError, "cannot pickle 'generator' object"),
    ],
)
def test_environments_that_cannot_be_saved_are_named(executor, env_fn, error, words):
    envs = executor([WalkEnv, env_fn, WalkEnv])
    envs.reset(seed=1)
    states = envs.get_state([0, 2])
    with pytest.raises(error, match=words) as caught:
        envs.get_state()
    assert any("row 1" in note for note in caught.value.__notes__)
    with pytest.raises(error, match=words):
        envs.set_state([0, 1], states)
    assert envs.get_state([0, 2]) == states
    envs.close()


#: Gymnasium's wrappers with values of their own.
STATEFUL = {
    "FrameStackObservation": partial(FrameStackObservation, stack_size=2),
    "DelayObservation": partial(DelayObservation, delay=1),
    "TimeAwareObservation": TimeAwareObservation,
    "MaxAndSkipObservation": partial(MaxAndSkipObservation, skip=2),
    "NormalizeObservation": NormalizeObservation,
    "NormalizeReward": NormalizeReward,
    "RecordEpisodeStatistics": RecordEpisodeStatistics,
    "StickyAction": partial(StickyAction, repeat_action_probability=0.5),
    "Autoreset": Autoreset,
}


def _stateful(name):
    return STATEFUL[name](TimeLimit(OrderEnforcing(WalkEnv()), 9))


def without_durations(results):
    for *_, infos in results:
        infos.get("final_info", {}).get("episode", {}).pop("t", None)
    return results


@pytest.mark.parametrize("executor", [INLINE, PROCESS], ids=str)
@pytest.mark.parametrize("name", STATEFUL)
def test_values_of_wrappers_of_gymnasium_are_saved(name, executor):
    envs = executor([partial(_stateful, name)] * 2, autoreset_mode=S)
    envs.reset(seed=1)
    stepped(envs, actions_of(5, 2, seed=4))
    state, actions = envs.state_dict(), actions_of(20, 2)
    expected = without_durations(stepped(envs, actions))
    envs.load_state_dict(state)
    assert_identical(without_durations(stepped(envs, actions)), expected)
    envs.close()
    fresh = INLINE([partial(_stateful, name)] * 2, autoreset_mode=S)
    fresh.load_state_dict(state)
    assert_identical(without_durations(stepped(fresh, actions)), expected)
    fresh.close()


@pytest.mark.parametrize("name", ["NormalizeObservation", "NormalizeReward"])
def test_cached_resets_do_not_turn_moments_back(name):
    envs = INLINE([partial(_stateful, name)] * 2)
    with pytest.raises(ValueError, match=rf"row 0 .*{name} .*Use cartwheel.wrappers.{name}"):
        CachedReset(envs, 2)
    envs.close()


def test_a_state_is_not_restored_into_a_row_with_other_wrappers():
    envs = INLINE([WalkEnv, lambda: RecordEpisodeStatistics(WalkEnv()), WalkEnv])
    envs.reset(seed=1)
    (state,) = envs.get_state([0])
    shown = envs.step(np.zeros(3, int))
    with pytest.raises(ValueError, match=r"wrappers \[\], .* of row 1 has .*Statistics"):
        envs.set_state([2, 1], [state, state])
    envs.set_state([0], [state])
    again = envs.step(np.zeros(3, int))
    assert_identical(again[0][0], shown[0][0])
    assert not np.array_equal(again[0][2], shown[0][2]), "row 2 has gone on"
    envs.close()


class HoldsALock(gym.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.guard = threading.Lock()


@KINDS
def test_attributes_of_wrappers_that_cannot_be_pickled_are_named(executor):
    envs = executor([walk, lambda: HoldsALock(walk())])
    before = envs.state_dict()  # an environment that was never reset has no values
    envs.reset(seed=1)
    with pytest.raises(ValueError, match=r"row 1, .*: `guard` of the wrapper HoldsALock .* cannot"):
        envs.state_dict()
    with pytest.raises(ValueError, match="`guard` of the wrapper HoldsALock"):
        envs.load_state_dict(before)
    envs.close()


class RefersToItsChain(gym.Wrapper):
    """Its attributes are members of the chain, and functions."""

    def __init__(self, env):
        super().__init__(env)
        self.inner, self.twice = env.unwrapped, lambda number: 2 * number

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, self.twice(float(self.inner.steps)), *rest


@KINDS
def test_references_within_the_chain_are_restored_as_references(executor):
    def chain():
        return RefersToItsChain(walk(PlainWalkEnv))

    envs = executor([chain] * 2, autoreset_mode=S, states="pickle")
    envs.reset(seed=1)
    stepped(envs, actions_of(4, 2, seed=4))
    state, actions = envs.state_dict(), actions_of(20, 2)
    expected = stepped(envs, actions)
    envs.close()
    fresh = INLINE([chain] * 2, autoreset_mode=S, states="pickle")
    fresh.load_state_dict(state)
    assert fresh.envs[0].inner is fresh.envs[0].unwrapped
    assert_identical(stepped(fresh, actions), expected)
    fresh.close()


def test_the_duration_of_an_episode_goes_on_from_its_seconds(monkeypatch):
    envs, others = (INLINE([partial(_stateful, "RecordEpisodeStatistics")]) for _ in range(2))
    envs.reset(seed=1)
    began = envs.envs[0].episode_start_time
    monkeypatch.setattr("time.perf_counter", lambda: began + 60)
    state = envs.state_dict()
    monkeypatch.setattr("time.perf_counter", lambda: 1000.0)  # of a machine that began later
    others.load_state_dict(state)
    assert others.envs[0].episode_start_time == pytest.approx(940)
    monkeypatch.undo()
    for each in (envs, others):
        each.close()


class Counts(gym.Wrapper):
    """Has its attribute from its first step on."""

    def step(self, action):
        self.count = getattr(self, "count", 0) + 1
        observation, _, *rest = super().step(action)
        return observation, float(self.count), *rest


def test_attributes_that_a_wrapper_did_not_have_are_gone_after_a_load():
    envs = INLINE([lambda: Counts(walk())], autoreset_mode=S)
    envs.reset(seed=1)
    state = envs.state_dict()
    expected = stepped(envs, actions_of(4, 1))
    envs.load_state_dict(state)
    assert_identical(stepped(envs, actions_of(4, 1)), expected)
    envs.close()


class Rebuilt(PlainWalkEnv, EzPickle):
    def __init__(self):
        EzPickle.__init__(self)
        PlainWalkEnv.__init__(self)


class Reduced(PlainWalkEnv):
    def __reduce__(self):
        return type(self), ()


@pytest.mark.parametrize(
    ("kind", "words"), [(Rebuilt, "EzPickle"), (Reduced, "`__reduce__` of its own")]
)
def test_environments_whose_pickle_leaves_parts_out_are_refused(kind, words):
    envs = INLINE([partial(walk, kind)], states="pickle")
    envs.reset(seed=1)
    with pytest.raises(ValueError, match=f"row 0, .*{kind.__name__}, cannot be saved .*{words}"):
        envs.state_dict()
    envs.close()


class SavesItsStack(gym.Wrapper):
    """Saves the frames of the wrapper inside, too."""

    def get_state(self):
        return [frame.copy() for frame in self.env.obs_queue], self.unwrapped.get_state()

    def set_state(self, state):
        frames, walk_state = state
        self.env.obs_queue.extend(frames)
        self.unwrapped.set_state(walk_state)


def _stacked():
    return TimeLimit(SavesItsStack(FrameStackObservation(WalkEnv(), 3)), 9)


@KINDS
def test_a_wrapper_around_them_can_save_their_values(executor):
    envs = executor([_stacked] * 2, autoreset_mode=S)
    envs.reset(seed=1)
    stepped(envs, actions_of(3, 2, seed=4))
    states, actions = envs.get_state(), actions_of(20, 2)
    expected = stepped(envs, actions)
    envs.set_state([0, 1], states)
    assert_identical(stepped(envs, actions), expected)
    envs.close()


@KINDS
def test_a_wrapper_can_have_the_methods(executor):
    envs = executor([_wrapped] * 2, autoreset_mode=S)
    envs.reset(seed=1)
    envs.step(np.zeros(2, int))
    states, actions = envs.get_state(), actions_of(20, 2)
    expected = stepped(envs, actions)
    envs.set_state([0, 1], states)
    assert_identical(stepped(envs, actions), expected)
    envs.close()


def test_states_wait_for_calls_rows_and_rollouts(build_any):
    case = Case("CartPole-v1") if build_any.executor == "native" else walk
    envs = build_any([case] * 3)
    envs.reset(seed=1)
    states = envs.get_state()
    arrays = envs.rollout(3)
    with pytest.raises(RuntimeError, match="rollout"):
        envs.set_state([0], states[:1])
    first = envs.step(np.zeros(3, int))
    envs.set_state(None, states)  # between steps
    assert_identical(envs.step(np.zeros(3, int))[0], first[0])
    del arrays
    envs.end_rollout()
    for begin, end in [
        (lambda: envs.step_async(np.zeros(3, int)), envs.step_wait),
        (lambda: envs.send(np.zeros(1, int), [1]), envs.recv),
    ]:
        begin()
        for call in (envs.get_state, lambda: envs.set_state([0], states[:1])):
            with pytest.raises(gym.error.AlreadyPendingCallError):
                call()
        end()
    envs.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        envs.get_state()


class FaultyWalk(FaultyEnv):
    def get_state(self):
        return self.walk.copy(), self.steps, self.np_random.bit_generator.state

    def set_state(self, state):
        self.walk, self.steps, self.np_random.bit_generator.state = state


def test_rows_that_lost_their_environments_are_not_saved_but_can_be_restored(build_processes):
    envs = build_processes(
        [partial(FaultyWalk, row) for row in range(4)],
        autoreset_mode=D,
        on_worker_death="restart",
        on_done="freeze",
    )
    envs.reset(seed=1)
    states = envs.get_state()
    actions = np.full(4, fault("none"))
    expected = envs.step(actions)
    envs.processes[0].kill()
    with pytest.raises(ValueError, match="row 0 cannot be saved: it lost its environment"):
        envs.get_state()
    with pytest.raises(ValueError, match="row 1 cannot be saved: it lost its environment"):
        envs.set_state([3, 1], [states[3], states[1]])
    envs.reset(seed=4)
    envs.set_state(None, states)
    assert_identical(envs.step(actions)[:4], expected[:4])


class DyingWalk(FaultyWalk):
    """Its worker dies the first time that it restores a state."""

    def __init__(self, row, path):
        super().__init__(row)
        self.path = path

    def set_state(self, state):
        if self.row == 0 and not self.path.exists():
            self.path.touch()
            self.commit("kill")
        super().set_state(state)


@MODE
def test_a_worker_that_dies_while_it_restores_is_restarted_and_restores(
    build_processes, mode, tmp_path
):
    fns = [partial(DyingWalk, row, tmp_path / "died") for row in range(4)]
    envs = build_processes(fns, autoreset_mode=mode, on_worker_death="restart")
    envs.reset(seed=1)
    states, actions = envs.get_state(), np.full((3, 4), fault("none"))
    expected = stepped(envs, actions)
    _, infos = envs.set_state(None, states)
    assert (tmp_path / "died").exists()
    assert infos["worker_restarted"].tolist() == [True, True, False, False]
    assert_identical([step[:4] for step in stepped(envs, actions)], [step[:4] for step in expected])


@pytest.mark.slow
def test_the_test_kit_checks_states_of_python_environments():
    envs = INLINE([partial(walk, WalkEnv, 9)] * 3)
    report = check_vector_env(envs)
    assert "states" not in report.skipped
    envs.close()
