"""With ``final_obs="dense"`` each step of SAME_STEP has the true next observations of all rows."""

import os
from copy import deepcopy
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Graph, Text
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

import cartwheel
from cartwheel.testing import check_vector_env
from tests.support.cases import SHORT, Case
from tests.support.comparison import assert_identical, assert_names_row
from tests.support.environments import (
    BufferReusingEnv,
    LargeNestedEnv,
    NestedEnv,
    PuppetEnv,
    TranscriptEnv,
    samplers,
    transcripts,
)
from tests.support.executors import EVERY_KIND, INLINE, NATIVE, SHORT_ROWS
from tests.support.oracle import D, N, S

DENSE = {"autoreset_mode": S, "final_obs": "dense"}


def dense(envs, result):
    """The result of a step of ``envs`` with dense final observations, from one with objects."""
    observations, rewards, terminations, truncations, infos = deepcopy(result)
    over = terminations | truncations
    rows = list(iterate(envs.observation_space, observations))
    for row in np.flatnonzero(over):
        rows[row] = infos["final_obs"][row]
    space = envs.single_observation_space
    finals = concatenate(space, rows, create_empty_array(space, len(rows)))
    infos |= {"final_obs": finals, "_final_obs": over, "_final_info": over.copy()}
    infos.setdefault("final_info", {})
    return observations, rewards, terminations, truncations, infos


def assert_dense_steps(envs, oracle, steps):
    """Steps both, and compares. Batches that are kept do not change. Returns the ends."""
    assert_identical(envs.reset(seed=3), oracle.reset(seed=3))
    oracle.action_space.seed(7)
    kept, ends = [], 0
    for _ in range(steps):
        actions = oracle.action_space.sample()
        kept.append((envs.step(actions), dense(oracle, oracle.step(actions))))
        ends += kept[-1][0][4]["_final_obs"].sum()
        assert_identical(*kept[-1])
    for result, expected in kept:
        assert_identical(result, expected)
    return ends


@pytest.mark.parametrize(
    ("build_any", "case"),
    [pytest.param(*each, id=f"{each[0]}-{each[1]}") for each in SHORT_ROWS],
    indirect=["build_any"],
)
@pytest.mark.parametrize("rows", [1, 5])
def test_they_are_gymnasiums_final_observations_in_one_array(build_any, case, rows):
    envs = build_any([case] * rows, **DENSE)
    oracle = SyncVectorEnv([case] * rows, autoreset_mode=S)
    assert assert_dense_steps(envs, oracle, 36) >= 3
    oracle.close()


@pytest.mark.parametrize("env_fn", [NestedEnv, LargeNestedEnv], ids=["nested", "large"])
def test_they_are_nested_like_the_space(build, env_fn):
    """Also where batches are views of shared memory; and infos of every kind are kept."""
    envs, oracle = build([env_fn] * 3, **DENSE), SyncVectorEnv([env_fn] * 3, autoreset_mode=S)
    assert assert_dense_steps(envs, oracle, 60) >= 3


def test_all_rows_may_be_over_at_once_and_episodes_may_have_one_step(build_everywhere):
    for lengths in ((1,), (1, 1, 1), (2, 2, 2), (1, 3, 2)):
        envs = build_everywhere(transcripts(*lengths), **DENSE)
        oracle = SyncVectorEnv(transcripts(*lengths), autoreset_mode=S)
        assert assert_dense_steps(envs, oracle, 7) >= 3
        envs.close()


@pytest.mark.parametrize("workers", [1, 7])
@pytest.mark.parametrize("rows", [1, 9, 40])
def test_native_rows_may_all_be_over_at_once(build_native, workers, rows):
    for steps in (1, 2):
        case = Case("CartPole-v1", {"max_episode_steps": steps})
        envs = build_native([case] * rows, num_workers=workers, **DENSE)
        oracle = SyncVectorEnv([case] * rows, autoreset_mode=S)
        assert assert_dense_steps(envs, oracle, 6) >= 3 * rows
        envs.close()


def test_they_are_what_the_mode_disabled_shows(build_any):
    """The second oracle: steps without autoreset, and then a reset of the rows that ended."""
    envs = build_any([SHORT[0]] * 4, **DENSE)
    twin = build_any([SHORT[0]] * 4, autoreset_mode=D)
    envs.reset(seed=1)
    twin.reset(seed=1)
    ends = 0
    for step in range(40):
        actions = np.arange(step, step + 4) // 2 % 2
        observations, *_, infos = envs.step(actions)
        expected, _, terminations, truncations, _ = twin.step(actions)
        over = terminations | truncations
        assert_identical(infos["final_obs"], expected)
        assert_identical(infos["_final_obs"], over)
        ends += over.sum()
        if over.any():
            expected, _ = twin.reset(options={"reset_mask": over})
        assert_identical(observations, expected)
    assert ends > 5


def test_they_are_taken_before_the_reset(build_everywhere):
    """The environment reuses its buffers."""
    envs = build_everywhere([partial(BufferReusingEnv, 2)] * 3, **DENSE)
    envs.reset()
    for t in (1, 2, 1, 2):
        infos = envs.step([0] * 3)[4]
        assert infos["_final_obs"].tolist() == [t == 2] * 3
        assert infos["final_obs"]["t"].tolist() == [[t]] * 3
        assert infos["final_obs"]["nested"][0].tolist() == [[[t] * 2] * 2] * 3
        assert infos["final_obs"]["nested"][1].tolist() == [t] * 3
        if t == 2:
            assert infos["final_info"]["list"].tolist() == [[2]] * 3


@pytest.mark.parametrize("build_any", EVERY_KIND, indirect=True, ids=str)
def test_rows_that_are_sent_have_them_too(build_any):
    """The observations of both environments count the steps of the episode."""
    native = build_any.executor == "native"
    fns = [Case("Null-v0", {"episode_steps": 3})] * 5 if native else transcripts(3, 3, 3, 3, 3)
    action = 0
    for batch_size in (2, 5):
        envs = build_any(fns, batch_size=batch_size, **DENSE)
        envs.send_reset(seed=1)
        steps = np.full(5, -1)
        ended = 0
        while steps.min() < 7:
            observations, *_, infos = envs.recv()
            rows = infos["env_index"]
            steps[rows] += 1
            t = np.where(steps[rows] == 0, 0, (steps[rows] - 1) % 3 + 1)
            over = t == 3
            assert infos["final_obs"].ravel().tolist() == t.tolist()
            assert infos["_final_obs"].tolist() == infos["_final_info"].tolist() == over.tolist()
            assert observations.ravel().tolist() == np.where(over, 0, t).tolist()
            ended += over.sum()
            envs.send(np.full(len(rows), action), rows)
        assert ended >= 10
        envs.close()


def test_steps_of_some_rows_have_them(build_any):
    envs = build_any([SHORT[0]] * 4, **DENSE)
    twin = build_any([SHORT[0]] * 4, autoreset_mode=S)
    assert_identical(envs.reset(seed=2), twin.reset(seed=2))
    ends = 0
    for turn in range(40):
        rows = np.array([3, 1, 0]) if turn % 2 else np.array([2, 1])
        actions = np.full(len(rows), turn // 3 % 2)
        result, other = envs.step(actions, rows), twin.step(actions, rows)
        other = dense(envs, (*other[:4], other[4]))
        assert_identical(result, other)
        ends += result[4]["_final_obs"].sum()
    assert ends > 3


class FragileEnv(TranscriptEnv):
    """Raises at action 8, ends its process at action 9, and may return what does not fit."""

    def __init__(self, length=3):
        super().__init__(length)
        self.ends_with_another_shape = False

    def step(self, action):
        if action == 8:
            raise ValueError("eight")
        if action == 9:
            os._exit(3)
        result = super().step(action)
        if self.ends_with_another_shape and result[2]:
            return np.zeros(7, np.float32), *result[1:]
        return result


def test_failures_are_replaced_as_with_objects(build):
    script = [[1, 1, 1], [1, 8, 1], [1, 1, 8], [8, 8, 8], [1, 1, 1], [1, 1, 1], [1, 1, 1]]
    plain = build([FragileEnv] * 3, autoreset_mode=S, on_error="restart")
    envs = build([FragileEnv] * 3, on_error="restart", **DENSE)
    assert_identical(envs.reset(), plain.reset())
    for actions in script:
        assert_identical(envs.step(actions), dense(plain, plain.step(actions)))


def test_the_death_of_a_worker_ends_episodes_as_with_objects(build_processes):
    plain, envs = (
        build_processes([FragileEnv] * 3, on_worker_death="restart", **keywords)
        for keywords in ({"autoreset_mode": S}, DENSE)
    )
    assert_identical(envs.reset(), plain.reset())
    for actions in ([1, 1, 1], [9, 1, 1], [1, 1, 1], [1, 1, 9], [1, 1, 1], [1, 1, 1]):
        assert_identical(envs.step(actions), dense(plain, plain.step(actions)))


def test_a_terminal_observation_that_does_not_fit_is_a_failure_of_the_step(build):
    envs = build([FragileEnv] * 2, **DENSE)
    envs.reset()
    envs.set_attr("ends_with_another_shape", [False, True])
    envs.step([1, 1])
    envs.step([1, 1])
    with pytest.raises(ValueError, match="shape") as raised:
        envs.step([1, 1])
    assert_names_row(raised.value, 1)
    envs.reset()
    assert envs.step([1, 1])[4]["final_obs"].tolist() == [[1], [1]]
    again = build([FragileEnv] * 2, on_error="restart", **DENSE)
    again.reset()
    again.set_attr("ends_with_another_shape", [False, True])
    for _ in range(3):
        *_, truncations, infos = again.step([1, 1])
    assert truncations.tolist() == [False, True]
    assert infos["final_obs"].tolist() == [[3], [2]]  # the last one that it showed
    assert infos["_env_error"].tolist() == [False, True]


def test_values_are_cast_as_observations_are(build):
    space = Box(-np.inf, np.inf, (2,), np.float32)
    envs = build([partial(PuppetEnv, space, np.zeros(2, np.float32))] * 2, **DENSE)
    envs.reset()
    envs.set_attr("frame", [([1.5, 2.5], 0.0, True, False, {}), ((3, 4), 0.0, False, True, {})])
    infos = envs.step([0, 0])[4]
    assert_identical(infos["final_obs"], np.array([[1.5, 2.5], [3, 4]], np.float32))


# Rollouts


@pytest.mark.parametrize("env_fn", [NestedEnv, LargeNestedEnv], ids=["copies", "views"])
def test_rollouts_have_the_same_arrays_and_steps_their_own_finals(build, env_fn):
    envs, oracle = build([env_fn] * 3, **DENSE), SyncVectorEnv([env_fn] * 3, autoreset_mode=S)
    envs.reset(seed=3)
    oracle.reset(seed=3)
    shown, kept, ends = None, [], 0
    oracle.action_space.seed(1)
    for _ in range(2):
        arrays = envs.rollout(25)
        for step in range(25):
            actions = oracle.action_space.sample()
            result, expected = envs.step(actions), dense(oracle, oracle.step(actions))
            assert_identical(result, expected)
            kept.append((result, expected))
            ends += expected[4]["_final_obs"].sum()
            shown = list(iterate(oracle.observation_space, expected[0]))
            assert_identical(arrays.observations["walk"][step + 1, 0], shown[0]["walk"])
            assert_identical(arrays.terminated[step], expected[2])
    for result, expected in kept:
        assert_identical(result, expected)
    assert ends >= 3


def test_native_rollouts_have_them(build_native):
    envs = build_native([SHORT[0]] * 300, **DENSE)  # more than is copied
    twin = build_native([SHORT[0]] * 300, autoreset_mode=S)
    envs.reset(seed=3)
    twin.reset(seed=3)
    arrays, others = envs.rollout(20), twin.rollout(20)
    kept = []
    for step in range(20):
        actions = np.arange(300) // (step + 1) % 2
        kept.append((envs.step(actions), dense(twin, twin.step(actions))))
    for result, expected in kept:
        assert_identical(result, expected)
    for name in ("observations", "rewards", "terminated", "truncated"):
        assert_identical(getattr(arrays, name), getattr(others, name), name)
    assert arrays.truncated.any()


# Names, keywords, errors


@pytest.mark.parametrize("final_obs", ["object", "dense"])
def test_maniskills_names_are_the_same_arrays(build_any, final_obs):
    keywords = {"autoreset_mode": S, "final_obs": final_obs, "final_names": "maniskill"}
    envs = build_any([SHORT[0]] * 3, **keywords)
    twin = build_any([SHORT[0]] * 3, autoreset_mode=S, final_obs=final_obs)
    envs.reset(seed=1)
    twin.reset(seed=1)
    ends = 0
    for _ in range(12):
        infos, plain = envs.step([0, 1, 1])[4], twin.step([0, 1, 1])[4]
        assert ("final_observation" in infos) == ("final_obs" in infos)
        if "final_obs" in infos:
            assert infos.pop("final_observation") is infos["final_obs"]
            assert infos.pop("_final_observation") is infos["_final_obs"]
            ends += infos["_final_obs"].sum()
        assert_identical(infos, plain)
    assert ends > 0


def test_objects_are_gymnasiums_by_default(build_any):
    envs = build_any([SHORT[0]] * 2, autoreset_mode=S)
    assert (envs.final_obs, envs.final_names) == ("object", "gymnasium")
    oracle = SyncVectorEnv([SHORT[0]] * 2, autoreset_mode=S)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    for _ in range(12):
        assert_identical(envs.step([0, 1]), oracle.step([0, 1]))


@pytest.mark.parametrize("mode", [N, D])
def test_other_modes_refuse_them_before_anything_starts(build_any, mode):
    text = f"`final_obs='dense'` needs autoreset_mode='same_step', got '{mode.name.lower()}'"
    with pytest.raises(ValueError, match=text):
        build_any([SHORT[0]] * 2, autoreset_mode=mode, final_obs="dense")


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"final_obs": "sparse"}, "`final_obs` must be one of 'object', 'dense', got 'sparse'"),
        (
            {"final_names": "sb3"},
            "`final_names` must be one of 'gymnasium', 'maniskill', got 'sb3'",
        ),
    ],
)
def test_other_forms_are_refused(build_any, keywords, text):
    with pytest.raises(ValueError, match=text):
        build_any([SHORT[0]] * 2, autoreset_mode=S, **keywords)


@pytest.mark.parametrize(
    "space",
    [
        Text(4),
        Graph(Box(0, 1, (2,)), None),
        gym.spaces.Dict(a=Box(0, 1), b=gym.spaces.Tuple([Text(3)])),
    ],
    ids=["text", "graph", "nested"],
)
def test_observations_without_a_fixed_shape_are_refused(build, space):
    with pytest.raises(ValueError, match="needs observations of fixed shape; the space has parts"):
        build(samplers(space, 2), **DENSE)


@pytest.mark.parametrize("make", [cartwheel.make_vec, gym.make_vec], ids=["ours", "gymnasium's"])
@pytest.mark.parametrize("env_id", ["cartwheel/CartPole-v1", "CartPole-v1"])
def test_they_are_keywords_of_every_make_function_and_specs_keep_them(make, env_id):
    keywords = {**DENSE, "final_names": "maniskill", "full_batch": True}
    if env_id == "CartPole-v1":
        if make is gym.make_vec:
            return  # it makes Gymnasium's class
        keywords["vectorization_mode"] = "sync"
    envs = make(env_id, 2, **keywords)
    again = cartwheel.make_vec(envs.spec)
    for each in (envs, again):
        each.reset(seed=1)
        infos = each.step(np.array([0, 1]))[4]
        assert infos["final_observation"].shape == (2, 4)
        assert each.full_batch
        each.close()


def test_presets_have_the_keywords():
    for preset in (cartwheel.SyncVectorEnv, cartwheel.AsyncVectorEnv):
        envs = preset(transcripts(1, 2), **DENSE)
        envs.reset()
        assert envs.step([0, 0])[4]["final_obs"].tolist() == [[1], [1]]
        envs.close()


# What reads them


@pytest.mark.parametrize("build_any", [INLINE, NATIVE], indirect=True, ids=str)
@pytest.mark.parametrize("case", [SHORT[0], SHORT[2]], ids=["array", "pair"])
def test_collectors_give_the_same_rollouts(build_any, case):
    def policy(observations):
        first = observations if isinstance(observations, np.ndarray) else observations[0]
        return np.arange(len(first)) % 2

    envs, plain = (build_any([case] * 4, autoreset_mode=S, final_obs=form) for form in FORMS)
    for how in ({"num_steps": 30}, {"num_episodes": 12}):
        ours, theirs = (cartwheel.Collector(each, policy, seed=3, **how) for each in (envs, plain))
        for _ in range(2):
            rollout, other = ours.collect(), theirs.collect()
            assert len(rollout.final_index) > 3
            for name in ("observations", "final_observations", "final_index", "valid", "is_first"):
                assert_identical(getattr(rollout, name), getattr(other, name), name)


FORMS = ("dense", "object")


@pytest.mark.parametrize("build_any", [INLINE, NATIVE], indirect=True, ids=str)
def test_evaluations_are_the_same(build_any):
    """Also of successes, which are in the infos of the last step."""
    envs, plain = (build_any([SHORT[3]] * 3, autoreset_mode=S, final_obs=form) for form in FORMS)
    ours, theirs = (
        cartwheel.evaluate(each, lambda observations: observations % 4, episodes_per_env=6, seed=2)
        for each in (envs, plain)
    )
    assert_identical(ours.returns, theirs.returns)
    assert_identical(ours.lengths, theirs.lengths)


class SucceedingEnv(TranscriptEnv):
    """Reports success at the end of every second episode."""

    def step(self, action):
        *result, info = super().step(action)
        return *result, (info | {"is_success": self.episodes % 2 == 0} if result[2] else info)


def always_first(observations):
    return np.zeros(len(observations), np.int64)


def test_evaluations_see_successes(build):
    fns = [partial(SucceedingEnv, length) for length in (1, 2, 4)]
    found = []
    for form in FORMS:
        envs = build(fns, autoreset_mode=S, final_obs=form)
        result = cartwheel.evaluate(envs, always_first, episodes_per_env=6)
        found.append(deepcopy(result.success_at_end))
        envs.close()
    assert_identical(*found)
    assert 0 < found[0].sum() < found[0].size


@pytest.mark.slow
def test_the_test_kit_checks_such_vector_environments():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 3, **DENSE, executor="inline")
    check_vector_env(envs, steps=40)
    envs.close()
