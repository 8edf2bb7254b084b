"""A vector environment that loads a state continues as the saved one did, in every mode."""

import pickle
from functools import partial

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel import envpool
from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.executors import INLINE, NATIVE, PROCESS, THREAD, Executor
from tests.support.faulty import FaultyEnv, fault
from tests.support.oracle import MODE, D, N, S
from tests.support.runs import stepped
from tests.support.stateful import (
    EndlessWalkEnv,
    NestedWalkEnv,
    PlainWalkEnv,
    TouchyWalkEnv,
    WalkEnv,
    walk,
)

TWO = Executor("process", {"num_workers": 2})
CART_POLE = Case("CartPole-v1", {"max_episode_steps": 9})


def actions_of(steps, num_envs=4, seed=3):
    return np.random.default_rng(seed).integers(2, size=(steps, num_envs))


#: Environments, and the executors that can load each other's states.
KINDS = {
    "methods": (walk, {}, (INLINE, THREAD, TWO)),
    "nested": (partial(walk, NestedWalkEnv), {}, (INLINE, TWO)),
    "pickle": (partial(walk, PlainWalkEnv), {"states": "pickle"}, (INLINE, THREAD, TWO)),
    "gymnasium": (partial(gym.make, "CartPole-v1", 9), {"states": "pickle"}, (INLINE, PROCESS)),
    "native": (CART_POLE, {}, (NATIVE,)),
}


@MODE
@pytest.mark.parametrize("kind", KINDS)
def test_fresh_and_used_environments_continue_as_the_saved_ones(kind, mode):
    env_fn, keywords, executors = KINDS[kind]
    keywords = {**keywords, "autoreset_mode": mode}
    envs = executors[0]([env_fn] * 4, **keywords)
    envs.reset(seed=7)
    actions = actions_of(40)
    shown = stepped(envs, actions[:9])[-1][0]
    state = pickle.loads(pickle.dumps(envs.state_dict()))
    expected = stepped(envs, actions[9:])
    for executor in executors:
        others = executor([env_fn] * 4, **keywords)
        for _ in range(2):
            assert_identical(others.load_state_dict(state), shown)
            assert_identical(stepped(others, actions[9:]), expected)
        others.close()
    envs.close()


def randomly(rng, envs, steps):
    """Steps, resets, sent rows and next resets at random, and what they return."""
    results, mode = [], envs.metadata["autoreset_mode"]
    for _ in range(steps):
        choice, rows = rng.integers(6), rng.permutation(4)[: rng.integers(1, 5)]
        seeds = rng.integers(99, size=len(rows)).tolist()
        if mode == D:
            over = np.array(envs.unwrapped._pool.rows_over(), int)
            if len(over):
                results.append(envs.reset(options={"env_index": over}))
        if choice == 0:
            results.append(envs.reset(seed=seeds, options={"env_index": rows}))
        elif choice == 1 and mode != D:
            envs.next_reset(seed=seeds, env_index=rows)
        elif choice == 2:
            envs.send(rng.integers(2, size=len(rows)), rows)
            results.append(envs.recv(min_rows=len(rows), max_rows=len(rows)))
        elif choice == 3:
            results.append(envs.step(rng.integers(2, size=len(rows)), rows))
        else:
            results.append(envs.step(rng.integers(2, size=4)))
    return results


@MODE
@pytest.mark.parametrize("kind", ["methods", "pickle", "native"])
def test_random_calls_continue_as_without_a_state(kind, mode):
    env_fn, keywords, executors = KINDS[kind]
    keywords = {**keywords, "autoreset_mode": mode, "max_episode_steps": 7}
    for seed in range(4):
        envs = executors[0]([env_fn] * 4, **keywords, staggered_reset=bool(seed % 2))
        others = executors[0]([env_fn] * 4, **keywords, staggered_reset=bool(seed % 2))
        rng = np.random.default_rng(seed)
        envs.reset(seed=seed)
        randomly(rng, envs, 15)
        state, at = envs.state_dict(), pickle.dumps(rng)
        expected = randomly(rng, envs, 25)
        others.load_state_dict(state)
        assert_identical(randomly(pickle.loads(at), others, 25), expected)
        envs.close()
        others.close()


@pytest.mark.parametrize("executor", [INLINE, TWO, NATIVE], ids=str)
def test_details_of_next_resets_are_saved_until_they_are_used(executor):
    env_fn = CART_POLE if executor is NATIVE else walk
    options = [None, {"low": -0.01, "high": 0.01} if executor is NATIVE else {"a": [1]}]
    envs = executor([env_fn] * 4, autoreset_mode=S)
    envs.reset(seed=1)
    envs.next_reset(seed=[50, None], options=options, env_index=[2, 0])
    state = envs.state_dict()
    assert [entry["env_index"] for entry in state["envs"]["next_resets"]] == [0, 2]
    expected = stepped(envs, actions_of(40))
    assert envs.np_random_seed[2] == 50
    assert envs.state_dict()["envs"]["next_resets"] == []
    envs.next_reset(seed=[9] * 4)  # dropped by the load
    envs.load_state_dict(state)
    assert_identical(stepped(envs, actions_of(40)), expected)
    envs.close()


@pytest.mark.parametrize("executor", [INLINE, THREAD, TWO, NATIVE], ids=str)
def test_rows_that_were_never_reset_are_loaded_as_such(executor):
    env_fn = CART_POLE if executor is NATIVE else walk
    envs = executor([env_fn] * 4, batch_size=2)
    state = envs.state_dict()
    envs.send_reset(seed=1, options={"env_index": np.array([1, 3])})
    shown, *_, infos = envs.recv()
    assert_identical(envs.load_state_dict(envs.state_dict())[infos["env_index"]], shown)
    assert_identical(envs.load_state_dict(state), np.zeros_like(shown, shape=(4, shown.shape[1])))
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.zeros(2, int), [1, 3])
    envs.close()


def changed(state, path, value):
    """A copy in which one entry has another value."""
    copy = pickle.loads(pickle.dumps(state))
    *way, last = path
    part = copy
    for name in way:
        part = part[name]
    part[last] = value
    return copy


@pytest.mark.parametrize("executor", [INLINE, TWO, NATIVE], ids=str)
def test_a_bad_state_changes_nothing(executor):
    env_fn = CART_POLE if executor is NATIVE else walk
    envs, native = executor([env_fn] * 2), executor is NATIVE
    envs.reset(seed=1)
    envs.next_reset(seed=5)
    state = envs.state_dict()
    envs.step(np.zeros(2, int))
    before = envs.state_dict()
    three = executor([env_fn] * 3)
    other = executor([env_fn] * 2, autoreset_mode=S)
    kind = "native" if native else "Python"
    for bad, words in [
        ({}, r"`state` is not from `state_dict` of cartwheel: its keys are \[\]"),
        (changed(state, ["version"], 2), "reads 1: load it with the cartwheel that saved it"),
        (changed(state, ["kind"], "collector"), "one of kind 'collector', not of 'vector_env'"),
        (state | {"more": 1}, "must have the keys"),
        (three.state_dict(), "saved with num_envs=3; it cannot be loaded with num_envs=2"),
        (other.state_dict(), "saved with autoreset_mode='same_step'; .*='next_step'"),
        (changed(state, ["wrappers"], [{}]), r"wrappers'\]\[0\].* must have the keys"),
        (changed(state, ["envs", "states"], 1), "must be a list of 2, got 1"),
        (changed(state, ["envs", "states", 1], b"no"), f"not a state of a {kind} environment"),
        (changed(state, ["envs", "models"], [{}]), "model"),
        (changed(state, ["envs", "next_resets", 0, "seed"], "no"), r"next_resets'\]\[0\]"),
        (changed(state, ["envs", "next_resets", 0, "env_index"], 2), r"next_resets'\]\[0\]"),
    ]:
        with pytest.raises(ValueError, match=words):
            envs.load_state_dict(bad)
        assert envs.state_dict() == before
    with pytest.raises(TypeError, match="`state` must be a dictionary from `state_dict`, got 3"):
        envs.load_state_dict(3)
    for each in (envs, three, other):
        each.close()


@pytest.mark.parametrize("executor", [INLINE, THREAD, TWO], ids=str)
def test_a_row_that_refuses_its_state_puts_all_rows_back(executor):
    envs = executor([partial(walk, TouchyWalkEnv)] * 3)
    envs.reset(seed=1)
    envs.step(np.zeros(3, int))
    state = envs.state_dict()
    envs.reset(seed=2)
    envs.next_reset(seed=7, env_index=[1])
    arrays = envs.rollout(3)
    envs.step(np.zeros(3, int))
    after = envs.state_dict()
    envs.set_attr("touchy", [False, True, False])
    with pytest.raises(ValueError, match="this state is refused"):
        envs.load_state_dict(state)
    assert envs.state_dict() == after
    np.testing.assert_array_equal(arrays.observations[2], envs.step(np.zeros(3, int))[0])
    envs.load_state_dict(state)
    assert envs.state_dict() == state
    envs.step(np.zeros(3, int))
    assert not arrays.observations[3].any(), "the rollout has ended"
    envs.close()
    fresh = executor([partial(walk, TouchyWalkEnv)] * 3)
    fresh.set_attr("touchy", [False, True, False])
    with pytest.raises(ValueError, match="this state is refused"):
        fresh.load_state_dict(state)
    with pytest.raises(gym.error.ResetNeeded):
        fresh.step(np.zeros(3, int))
    fresh.close()


def test_states_wait_for_calls_and_end_rollouts(build_any):
    env_fn = CART_POLE if build_any.executor == "native" else walk
    envs = build_any([env_fn] * 3)
    envs.reset(seed=1)
    state = envs.state_dict()
    expected = envs.step(np.zeros(3, int))
    for begin, end in [
        (lambda: envs.step_async(np.zeros(3, int)), envs.step_wait),
        (lambda: envs.send(np.zeros(1, int), [1]), envs.recv),
    ]:
        begin()
        for call in (envs.state_dict, lambda: envs.load_state_dict(state)):
            with pytest.raises(gym.error.AlreadyPendingCallError):
                call()
        end()
    arrays = envs.rollout(2)
    envs.load_state_dict(state)
    assert_identical(envs.step(np.zeros(3, int))[0], expected[0])
    assert not arrays.observations[1].any(), "the rollout has ended"
    envs.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        envs.state_dict()


@pytest.mark.parametrize("executor", [INLINE, NATIVE], ids=str)
def test_rules_of_episodes_are_those_of_the_vector_environment_that_loads(executor):
    env_fn = CART_POLE if executor is NATIVE else partial(walk, EndlessWalkEnv, 99)
    actions = np.array([[0, 0], [1, 1]] * 2)
    envs = executor([env_fn] * 2, max_episode_steps=9)
    envs.reset(seed=1)
    stepped(envs, actions)
    state = envs.state_dict()
    envs.close()
    for rules, last in (({"max_episode_steps": 2}, 0), ({"max_episode_steps": 7}, 2), ({}, None)):
        others = executor([env_fn] * 2, **rules)
        others.load_state_dict(state)
        truncated = [step[3].all() for step in stepped(others, actions[:3])]
        assert truncated == [step == last for step in range(3)]
        others.close()


def test_an_unknown_way_to_save_is_refused():
    with pytest.raises(ValueError, match="`states` must be one of 'methods', 'pickle', got 'all'"):
        INLINE([walk], states="all")


def test_a_pool_of_envpool_continues():
    envpool.register("Walks-v0", WalkEnv, max_episode_steps=8)
    for task, keywords in [("CartPole-v1", {}), ("Walks-v0", {"executor": "inline"})]:
        for mode in (N, S):
            made = [
                envpool.make(
                    task, env_type="gymnasium", num_envs=3, seed=4, autoreset_mode=mode, **keywords
                )
                for _ in range(2)
            ]
            envs, others = made
            assert_identical(others.load_state_dict(envs.state_dict()).shape[0], 3)
            for _ in range(4):  # the first one is a reset
                shown = envs.step(np.zeros(3, int))[0]
            envs.seed(9)
            state, actions = pickle.loads(pickle.dumps(envs.state_dict())), actions_of(20, 3)
            expected = [envs.step(action) for action in actions] + [envs.reset()]
            assert_identical(others.load_state_dict(state), shown)
            results = [others.step(action) for action in actions] + [others.reset()]
            assert_identical(results, expected)
            with pytest.raises(ValueError, match="of kind 'vector_env', not of 'envpool'"):
                others.load_state_dict(state["envs"])
            for each in made:
                each.close()


def test_a_native_state_is_refused_by_other_environments():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2)
    other = cartwheel.NativeVectorEnv("Acrobot-v1", 2)
    with pytest.raises(ValueError, match=r"the state is of CartPole-v1, not of Acrobot-v1"):
        other.load_state_dict(envs.state_dict())
    envs.close()
    other.close()


@pytest.mark.parametrize("executor", [INLINE, THREAD, PROCESS], ids=str)
def test_a_row_that_failed_is_refused_by_name_and_continues_from_an_earlier_state(executor):
    envs = executor([partial(FaultyEnv, row) for row in range(3)], states="pickle")
    envs.reset(seed=1)
    envs.step(np.zeros(3, int))
    state = envs.state_dict()
    expected = envs.step(np.zeros(3, int))
    with pytest.raises(ValueError, match="boom"):
        envs.step(np.array([0, fault("value error"), 0]))
    with pytest.raises(ValueError, match=r"row 1 cannot be saved: it failed .* Reset it first"):
        envs.state_dict()
    with pytest.raises(ValueError, match="row 1 cannot be saved"):
        envs.get_state([1])
    assert len(envs.get_state([0, 2])) == 2
    others = executor([WalkEnv] * 3)
    others.reset(seed=1)
    with pytest.raises(ValueError, match=r"the state is of .*WalkEnv"):
        envs.load_state_dict(others.state_dict())
    with pytest.raises(gym.error.ResetNeeded, match=r"\[1\]"):
        envs.step(np.zeros(3, int))
    envs.load_state_dict(state)
    assert_identical(envs.step(np.zeros(3, int)), expected)
    for each in (envs, others):
        each.close()


def test_a_native_row_that_failed_is_refused_and_continues_from_an_earlier_state():
    envs = cartwheel.NativeVectorEnv("Acrobot-v1", 4, num_workers=2)
    envs.reset(seed=1)
    state = envs.state_dict()
    actions = np.array([0, 1, 2, 0])
    expected = envs.step(actions)
    envs.load_state_dict(state)
    states = list(envs.get_attr("state"))
    states[2] = np.full(4, np.inf)
    envs.set_attr("state", states)
    with pytest.raises(cartwheel.EnvPanicError):
        envs.step(actions)
    with pytest.raises(ValueError, match=r"row 2 cannot be saved: it failed .* Reset it first"):
        envs.state_dict()
    with pytest.raises(ValueError, match="row 2 cannot be saved"):
        envs.get_state([2])
    assert len(envs.get_state([0, 1, 3])) == 3
    envs.load_state_dict(state)
    assert_identical(envs.step(actions), expected)
    envs.close()


class FailingWalkEnv(WalkEnv):
    """Its third action is an error."""

    def step(self, action):
        if action == 2:
            raise ValueError("no such way")
        return super().step(action)


@pytest.mark.parametrize("executor", [INLINE, TWO], ids=str)
@MODE
def test_replacements_after_a_load_are_those_of_the_saved_environments(mode, executor):
    keywords = {"autoreset_mode": mode, "on_error": "restart", "max_restarts": None}
    envs = executor([FailingWalkEnv] * 4, **keywords)
    envs.reset(seed=7)
    actions = np.random.default_rng(3).integers(3, size=(30, 4))
    stepped(envs, actions[:9])  # some rows have been replaced already, others have not
    state = envs.state_dict()
    expected = stepped(envs, actions[9:])
    others = INLINE([FailingWalkEnv] * 4, **keywords)
    for _ in range(2):
        others.load_state_dict(state)
        assert_identical(stepped(others, actions[9:]), expected)
    for each in (envs, others):
        each.close()
