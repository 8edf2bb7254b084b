"""Limits, ignored terminations, repeated actions and staggered rows equal loops over one row."""

import contextlib
import os
import signal

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import cartwheel
from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.executors import EXECUTORS, INLINE, NATIVE, PROCESS, THREAD, Native
from tests.support.oracle import MODE, D, N, S
from tests.support.ruled import RuledOracle, begins_at

#: Gymnasium's CartPole warns once an episode that goes on after its end.
pytestmark = pytest.mark.filterwarnings("ignore:.*even though this environment has already")

POLE, TAXI, LAKE = Case("CartPole-v1"), Case("Taxi-v4"), Case("FrozenLake-v1")
RULES = [
    {"max_episode_steps": 1},
    {"max_episode_steps": 1, "ignore_terminations": True, "action_repeat": 3},
    {"max_episode_steps": 9},
    {"action_repeat": 3},
    {"action_repeat": 1000, "max_episode_steps": 7},
    {"action_repeat": 4, "max_episode_steps": 30, "ignore_terminations": True},
    {"max_episode_steps": 25, "ignore_terminations": True},
    {
        "max_episode_steps": 14,
        "ignore_terminations": True,
        "staggered_reset": True,
        "action_repeat": 2,
    },
]
ALL = RULES[-1]
SETTINGS = [
    *((kind, POLE, rules, 5) for kind in (INLINE, NATIVE) for rules in RULES),
    *((kind, case, ALL, 1) for kind in (INLINE, NATIVE) for case in (POLE, LAKE)),
    *((kind, POLE, RULES[5], 4) for kind in (THREAD, PROCESS)),
    *((NATIVE, LAKE, rules, 3) for rules in RULES[3:6]),
    *((kind, TAXI, RULES[4], 3) for kind in (NATIVE, PROCESS)),
    (Native("native", {"num_workers": 7}), POLE, ALL, 33),
    (Native("native", {"executor": "inline"}), POLE, ALL, 17),
    (PROCESS, LAKE, ALL, 3),
]


@contextlib.contextmanager
def with_oracle(kind, case, mode, rules, num_envs, **keywords):
    """Rows with these rules, and the oracle."""
    freeze = {"on_done": "freeze"} if mode is D else {}
    envs = kind([case] * num_envs, autoreset_mode=mode, **freeze, **rules, **keywords)
    yield envs, RuledOracle(case, num_envs, mode, **rules)
    envs.close()


def assert_ends(oracle, results):
    """Checks that the comparison was about something: episodes ended."""
    assert any(result[2].any() or result[3].any() for result in results)
    assert oracle.ignored or not oracle.ignores or oracle.limit == 1


@MODE
@pytest.mark.parametrize(("kind", "case", "rules", "num_envs"), SETTINGS)
def test_every_value_equals_that_of_a_loop_over_single_environments(
    kind, case, rules, num_envs, mode
):
    with with_oracle(kind, case, mode, rules, num_envs) as (envs, oracle):
        results = []
        for seed in (3, 90):
            assert_identical(envs.reset(seed=seed), oracle.reset(seed=seed))
            envs.action_space.seed(seed)
            for step in range(60):
                actions = envs.action_space.sample()
                results.append(envs.step(actions))
                assert_identical(results[-1], oracle.step(actions), f"step {step}")
                over = results[-1][2] | results[-1][3]
                if mode is D and over.any() and step % 3 == 0:
                    options = {"reset_mask": over}
                    assert_identical(envs.reset(options=options), oracle.reset(mask=over))
        assert_ends(oracle, results)


@MODE
@pytest.mark.parametrize(("kind", "case"), [*((kind, POLE) for kind in EXECUTORS), (NATIVE, TAXI)])
def test_rows_that_are_sent_or_named_follow_the_same_rules(kind, case, mode):
    rules = {"max_episode_steps": 8, "ignore_terminations": True, "action_repeat": 3}
    with with_oracle(kind, case, mode, rules, 4) as (envs, oracle):
        assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
        envs.action_space.seed(1)
        for step in range(30):
            actions = envs.action_space.sample()
            rows = [[0, 1, 2, 3], [2, 0], [3], [1, 2]][step % 4]
            if step % 2:
                batch = envs.step(actions[rows], rows)
            else:
                envs.send(actions[rows], rows)
                batch = envs.recv()
            expected = oracle.step(actions, rows)
            for ours, theirs in zip(batch[:4], expected[:4], strict=True):
                assert_identical(ours, theirs[rows], f"step {step}")
            assert batch[4].pop("env_index").tolist() == rows
            infos = batch[4]
            assert infos.keys() == expected[4].keys()
            for name, values in infos.items():
                if isinstance(values, np.ndarray):
                    assert_identical(values, expected[4][name][rows], name)


@pytest.mark.parametrize("kind", [INLINE, NATIVE], ids=str)
def test_dense_final_observations_are_those_of_the_last_repetition(kind):
    rules = {"max_episode_steps": 8, "action_repeat": 3, "ignore_terminations": True}
    with with_oracle(kind, POLE, S, rules, 5, final_obs="dense") as (envs, oracle):
        envs.reset(seed=6)
        oracle.reset(seed=6)
        envs.action_space.seed(6)
        for step in range(12):
            actions = envs.action_space.sample()
            *_, truncations, infos = envs.step(actions)
            shown, _, _, expected, theirs = oracle.step(actions)
            assert_identical(truncations, expected)
            for row in np.flatnonzero(truncations):
                shown[row] = theirs["final_obs"][row]
            assert_identical(infos["final_obs"], shown, f"step {step}")
        assert oracle.ignored


@pytest.mark.parametrize("kind", [INLINE, NATIVE], ids=str)
def test_a_reset_that_was_planned_is_not_repeated(kind):
    rules = {"max_episode_steps": 4, "action_repeat": 3}
    with with_oracle(kind, LAKE, N, rules, 3) as (envs, _):
        envs.reset(seed=1)
        actions = np.zeros(3, np.int64)
        for _ in range(2):
            over = envs.step(actions)[3]
        envs.next_reset(seed=[70, 71, 72])
        envs.step(actions)
        reset = envs.np_random
        assert over.any()
        for row in np.flatnonzero(over):
            alone = LAKE()
            alone.reset(seed=70 + int(row))
            assert_identical(reset[row], alone.unwrapped.np_random)


@pytest.mark.parametrize("kind", [INLINE, NATIVE], ids=str)
def test_rollouts_record_what_the_rules_make_of_the_steps(kind):
    rules = {"max_episode_steps": 9, "action_repeat": 2, "staggered_reset": True}
    with with_oracle(kind, POLE, N, rules, 6) as (envs, oracle):
        envs.reset(seed=4)
        oracle.reset(seed=4)
        arrays = envs.rollout(20)
        envs.action_space.seed(4)
        for step in range(20):
            actions = envs.action_space.sample()
            envs.step(actions)
            observations, rewards, terminations, truncations, _ = oracle.step(actions)
            assert_identical(arrays.observations[step + 1], observations)
            assert_identical(arrays.rewards[step], rewards)
            assert_identical(arrays.terminated[step], terminations)
            assert_identical(arrays.truncated[step], truncations)
        assert arrays.truncated.any()


@pytest.mark.parametrize("kind", [INLINE, THREAD, NATIVE], ids=str)
def test_resets_of_some_rows_and_autoresets_begin_at_the_first_step(kind):
    limit, num_envs = 40, 12
    rules = {"max_episode_steps": limit, "ignore_terminations": True, "staggered_reset": True}
    with with_oracle(kind, POLE, N, rules, num_envs) as (envs, _):
        actions = np.zeros(num_envs, np.int64)

        def lengths(steps):
            over = np.array([envs.step(actions)[3] for _ in range(steps)])
            assert over.any(0).all()
            return (over.argmax(0) + 1).tolist()

        seeds = [0, 1, 2**31, 2**64 - 1, 2**64, 2**100, 2**128 - 1, 2**128, 2**200, 5, 6, 7]
        staggered = [limit - begins_at(seed, limit) for seed in seeds]
        assert len(set(staggered)) > 6
        envs.reset(seed=seeds)
        assert lengths(limit) == staggered
        envs.send_reset(seed=seeds)
        envs.recv()
        assert lengths(limit) == staggered
        envs.reset(seed=seeds, options={"reset_mask": np.ones(num_envs, np.bool_)})
        assert lengths(limit) == [limit] * num_envs
        envs.reset(seed=seeds, options={"env_index": np.arange(num_envs)})
        assert lengths(limit) == [limit] * num_envs
        assert lengths(limit + 1) == [limit + 1] * num_envs, "after the autoreset"


@pytest.mark.parametrize("kind", [INLINE, NATIVE], ids=str)
def test_rows_without_a_seed_are_spread_too(kind):
    rules = {"max_episode_steps": 400, "ignore_terminations": True, "staggered_reset": True}
    with with_oracle(kind, POLE, N, rules, 16) as (envs, _):
        envs.reset()
        actions = np.zeros(16, np.int64)
        cut = sum(envs.step(actions)[3] for _ in range(200))
        assert 0 < np.count_nonzero(cut) < 16  # each with a probability of 2 to the power of -16


@pytest.mark.parametrize("kind", [INLINE, NATIVE], ids=str)
def test_staggering_uses_none_of_the_environments_random_numbers(kind):
    limit = {"max_episode_steps": 50}
    with (
        with_oracle(kind, LAKE, N, limit, 4) as (plain, _),
        with_oracle(kind, LAKE, N, {"max_episode_steps": 50, "staggered_reset": True}, 4) as (
            envs,
            _,
        ),
    ):
        for each in (plain, envs):
            each.reset(seed=7)
        assert_identical(envs.np_random, plain.np_random)


def test_a_saved_row_keeps_its_place_in_a_staggered_episode():
    rules = {"max_episode_steps": 30, "ignore_terminations": True, "staggered_reset": True}
    with with_oracle(NATIVE, POLE, N, rules, 5) as (envs, _):
        envs.reset(seed=11)
        states = envs.get_state()
        actions = np.ones(5, np.int64)
        first = [envs.step(actions) for _ in range(40)]
        envs.set_state(None, states)
        assert_identical([envs.step(actions) for _ in range(40)], first)


class Counting(gym.Env):
    """Counts its steps; halves its action in place; fails at step ``fails_at`` if it is not 0."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float64)
    action_space = Box(-1, 1, (2,), np.float32)

    def __init__(self, fails_at=0):
        self.fails_at = fails_at
        self.steps = 0

    def reset(self, **_):
        self.steps = 0
        return np.zeros(2), {"steps": 0}

    def step(self, action):
        self.steps += 1
        if self.steps == self.fails_at:
            raise ArithmeticError(f"step {self.steps}")
        reward = float(action[0])
        action *= 0.5
        return np.array([self.steps, reward]), reward, False, False, {"steps": self.steps}


@pytest.mark.parametrize("kind", [INLINE, PROCESS], ids=str)
def test_every_repetition_gets_the_same_action(kind):
    envs = kind([Counting] * 2, action_repeat=3)
    envs.reset()
    actions = np.array([[0.5, 0], [1, 0]], np.float32)
    observations, rewards, *_, infos = envs.step(actions)
    assert observations.tolist() == [[3, 0.5], [3, 1]]
    assert rewards.tolist() == [1.5, 3]
    assert infos["steps"].tolist() == [3, 3]
    assert actions.tolist() == [[0.5, 0], [1, 0]]
    envs.close()


@MODE
def test_a_failure_in_the_middle_fails_the_step(mode):
    fns = [Counting, lambda: Counting(fails_at=5), Counting]
    actions = np.ones((3, 2), np.float32)
    envs = cartwheel.VectorEnv(fns, executor="inline", autoreset_mode=mode, action_repeat=3)
    envs.reset()
    envs.step(actions)
    with pytest.raises(ArithmeticError, match="step 5"):
        envs.step(actions)
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(actions)
    envs.reset(options={"reset_mask": np.array([False, True, False])})
    assert envs.step(actions)[0][:, 0].tolist() == [9, 3, 9]
    envs.close()
    envs = cartwheel.VectorEnv(
        fns, executor="inline", autoreset_mode=mode, action_repeat=3, on_error="restart"
    )
    envs.reset()
    first, *_ = envs.step(actions)
    observations, rewards, terminations, truncations, infos = envs.step(actions)
    shown = infos["final_obs"][1] if mode is S else observations[1]
    assert_identical(shown, first[1])
    assert (rewards.tolist(), truncations.tolist()) == ([3, 0, 3], [False, True, False])
    assert not terminations.any()
    assert "step 5" in infos["env_error"][1]
    envs.close()


@pytest.mark.parametrize("mode", [N, S], ids=str)
def test_a_replaced_worker_follows_the_same_rules(mode):
    rules = {"max_episode_steps": 5, "action_repeat": 2, "ignore_terminations": True}
    envs = PROCESS([POLE] * 3, autoreset_mode=mode, on_worker_death="restart", **rules)
    envs.reset(seed=1)
    actions = np.ones(3, np.int64)
    envs.step(actions)
    os.kill(envs.processes[0].pid, signal.SIGKILL)
    envs.processes[0].join()
    *_, truncations, infos = envs.step(actions)
    lost = infos["worker_restarted"]
    assert lost.tolist() == truncations.tolist()
    if mode is N:
        envs.step(actions)
    for _ in range(3):
        over = [envs.step(actions) for _ in range(3)]
        assert [result[3][lost].tolist() for result in over] == [
            [False] * lost.sum(),
            [False] * lost.sum(),
            [True] * lost.sum(),
        ]
        assert not any(result[2].any() for result in over)
        if mode is N:
            envs.step(actions)
    envs.close()


@pytest.mark.parametrize("value", [0, -1, True, "3", 2.0, 2**32], ids=repr)
@pytest.mark.parametrize("name", ["max_episode_steps", "action_repeat"])
def test_numbers_must_be_positive_integers(name, value):
    limit = {} if name == "max_episode_steps" else {"max_episode_steps": 3}
    with pytest.raises(ValueError, match=f"`{name}` must be an integer from 1") as refusal:
        cartwheel.VectorEnv([POLE], **{name: value}, **limit)
    assert repr(value) in str(refusal.value)
    if (name, value) != ("max_episode_steps", -1):  # Gymnasium's name for no limit
        with pytest.raises(ValueError, match=f"`{name}` must be an integer from 1"):
            cartwheel.NativeVectorEnv("CartPole-v1", 1, **{name: value})


@pytest.mark.parametrize("value", [None, 1, "yes"], ids=repr)
@pytest.mark.parametrize("name", ["ignore_terminations", "staggered_reset"])
def test_switches_must_be_true_or_false(name, value):
    for make in (
        lambda: cartwheel.VectorEnv([POLE], **{name: value}, max_episode_steps=3),
        lambda: cartwheel.NativeVectorEnv("CartPole-v1", 1, **{name: value}),
    ):
        with pytest.raises(TypeError, match=f"`{name}` must be True or False, got {value!r}"):
            make()


def unlimited():
    return gym.make("CartPole-v1", max_episode_steps=-1)


def test_ignored_terminations_need_a_limit_of_every_environment():
    for fns, named in [
        ([unlimited] * 2, "no environment has one"),
        ([POLE, unlimited], r"rows \[1\] have none"),
        ([POLE().unwrapped.__class__], "no environment has one"),
    ]:
        for executor in ("inline", "process"):
            with pytest.raises(ValueError, match=named + ": pass `max_episode_steps`"):
                cartwheel.VectorEnv(fns, executor=executor, ignore_terminations=True)
    for fns, keywords in [
        ([unlimited], {"max_episode_steps": 9}),
        ([POLE], {}),
        ([lambda: gym.wrappers.TimeLimit(unlimited(), 9)], {}),
        ([lambda: gym.wrappers.TransformReward(POLE(), float)], {}),
    ]:
        cartwheel.VectorEnv(fns, executor="inline", ignore_terminations=True, **keywords).close()
    with pytest.raises(ValueError, match="pass `max_episode_steps`"):
        cartwheel.NativeVectorEnv("CartPole-v1", 1, ignore_terminations=True, max_episode_steps=-1)
    with pytest.raises(ValueError, match="pass `max_episode_steps`"):
        cartwheel.NativeVectorEnv("Blackjack-v1", 1, ignore_terminations=True)


def test_staggered_resets_need_a_limit_of_the_vector_environment():
    with pytest.raises(ValueError, match=r"`staggered_reset=True`.*pass `max_episode_steps`"):
        cartwheel.VectorEnv([POLE], staggered_reset=True)
    with pytest.raises(ValueError, match=r"pass it `vector_kwargs=\{'max_episode_steps': n\}`"):
        cartwheel.make_vec("CartPole-v1", 1, max_episode_steps=9, staggered_reset=True)
    with pytest.raises(ValueError, match=r"`staggered_reset=True`.*pass `max_episode_steps`"):
        cartwheel.NativeVectorEnv("Blackjack-v1", 1, staggered_reset=True)


@pytest.mark.parametrize("preset", [cartwheel.AsyncVectorEnv, cartwheel.SyncVectorEnv])
def test_presets_pass_the_rules_on(preset):
    envs = preset([POLE] * 2, executor="inline", **RULES[4])
    envs.reset(seed=1)
    oracle = RuledOracle(POLE, 2, N, **RULES[4])
    oracle.reset(seed=1)
    assert_identical(envs.step(np.array([0, 1])), oracle.step([0, 1]))
    envs.close()


@pytest.mark.parametrize("again", [cartwheel.make_vec, gym.make_vec])
def test_the_spec_rebuilds_the_rules(again):
    rules = {"ignore_terminations": True, "action_repeat": 3, "staggered_reset": True}
    made = [
        cartwheel.make_vec("cartwheel/CartPole-v1", 2, max_episode_steps=11, **rules),
        cartwheel.make_vec(
            "CartPole-v1", 2, executor="inline", vector_kwargs={"max_episode_steps": 11}, **rules
        ),
    ]
    for envs in made:
        rebuilt = again(gym.envs.registration.EnvSpec.from_json(envs.spec.to_json()))
        assert type(rebuilt) is type(envs)
        for each in (envs, rebuilt):
            each.reset(seed=2)
            oracle = RuledOracle(POLE, 2, N, max_episode_steps=11, **rules)
            oracle.reset(seed=2)
            for _ in range(9):
                assert_identical(each.step(np.array([0, 1])), oracle.step([0, 1]))
            each.close()


def test_a_limit_for_make_vec_is_that_of_each_environment():
    envs = cartwheel.make_vec("CartPole-v1", 2, executor="inline", max_episode_steps=5)
    assert [env.spec.max_episode_steps for env in envs.envs] == [5, 5]
    envs.close()
    envs = cartwheel.make_vec(
        "CartPole-v1", 2, executor="inline", vector_kwargs={"max_episode_steps": 5}
    )
    assert [env.spec.max_episode_steps for env in envs.envs] == [500, 500]
    envs.reset(seed=1)
    assert [envs.step(np.array([0, 1]))[3].all() for _ in range(5)] == [False] * 4 + [True]
    envs.close()


def test_discrete_actions_of_the_caller_stay_as_they_are():
    assert isinstance(POLE().action_space, Discrete)
    envs = cartwheel.VectorEnv([POLE] * 2, executor="inline", action_repeat=2)
    envs.reset(seed=1)
    actions = [1, 0]
    envs.step(actions)
    assert actions == [1, 0]
    envs.close()
