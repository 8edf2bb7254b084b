"""Rows that are restored from saved states go on as the saved rows did, in every executor."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from cartwheel.testing import check_vector_env
from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.executors import INLINE, NATIVE, PROCESS, THREAD, Executor
from tests.support.faulty import FaultyEnv, fault
from tests.support.oracle import MODE, D, N
from tests.support.runs import stepped
from tests.support.stateful import (
    EndlessWalkEnv,
    NestedWalkEnv,
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
    for wrong, given in ((state, "one state"), (None, "None"), (7, "7")):
        with pytest.raises(TypeError, match=f"list with one state for each row, got {given}.$"):
            envs.set_state([0], wrong)
    for bad, error, words in [
        (b"", ValueError, "not a state of a Python environment"),
        (native.get_state()[0], ValueError, "not a state of a Python environment"),
        (state[:-1], ValueError, "^row 1: the state of .* was cut or changed"),
        (state[:50] + b"?" + state[51:], ValueError, "was cut or changed"),
        (state[:8] + b"\x09" + state[9:], ValueError, "version 9; .* load it with the cartwheel"),
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
        (None, 1, "one state for each of 4 rows, got 1"),
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


@KINDS
@pytest.mark.parametrize(
    ("env_fn", "error", "words"),
    [
        (PlainWalkEnv, ValueError, r"row 1, .*PlainWalkEnv, .* no method `get_state`. Give"),
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


@pytest.mark.parametrize("env_fn", [HalfMethods, TwoArguments])
def test_environments_with_half_of_the_methods_are_pickled_where_others_may_be(env_fn):
    envs = INLINE([env_fn] * 2, states="pickle")
    envs.reset(seed=7)
    states, actions = envs.get_state(), actions_of(9, 2)
    expected = stepped(envs, actions)
    envs.set_state(None, states)
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
    shown, infos = envs.set_state([3, 1], [states[3], states[1]])
    assert infos["worker_restarted"].tolist() == [False, True]
    assert envs.get_state([3, 1]) == [states[3], states[1]]
    with pytest.raises(ValueError, match="row 0 cannot be saved: it lost its environment"):
        envs.state_dict()
    assert_identical(envs.set_state(None, states)[0][[3, 1]], shown)
    assert_identical(envs.step(actions), expected)


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
