"""`reset(options=[…])` resets each row with a dictionary of its own, as single environments do."""

from functools import partial

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import vector as gymnasium_wrappers

import cartwheel
from cartwheel.wrappers import AutoresetAdapter, CachedReset, FrameStack, RecordEpisodeStatistics
from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.environments import RecordingEnv
from tests.support.executors import NATIVE
from tests.support.in_parts import PATIENCE_S, index, receive_all
from tests.support.oracle import MODE, D, assert_same_steps, with_oracle

WIDE, NARROW = {"low": -0.2, "high": 0.2}, {"low": -0.01, "high": 0.01}
POLE = Case("CartPole-v1", {"max_episode_steps": 5})
SEEDS = pytest.mark.parametrize("seed", [None, 7, [3, None, 2**70, 0, 9]], ids=str)


def reset_one_by_one(oracle, seed, options):
    """The observations of environments of a ``SyncVectorEnv`` that are reset one by one."""
    seeds = seed if isinstance(seed, list) else [seed] * 5
    if isinstance(seed, int):
        seeds = [seed + row for row in range(5)]
    oracle._autoreset_envs[:] = False
    triples = zip(oracle.envs, seeds, options, strict=True)
    return np.stack([env.reset(seed=own, options=options)[0] for env, own, options in triples])


@MODE
@SEEDS
def test_each_row_is_reset_as_a_single_environment_is(build_anywhere, mode, seed):
    envs, oracle = with_oracle(build_anywhere, POLE, 5, mode)
    for options in (
        [WIDE, None, NARROW, {}, WIDE],
        (NARROW, NARROW, NARROW, NARROW, NARROW),
        [None] * 5,
        [{"low": -at / 100, "high": at / 100} for at in range(1, 6)],
    ):
        observations, infos = envs.reset(seed=seed, options=options)
        assert_identical(observations, reset_one_by_one(oracle, seed, options))
        assert infos == {}
        assert_same_steps(envs, oracle, 7)
        envs.reset_async(seed, options)
        assert_identical(envs.reset_wait()[0], reset_one_by_one(oracle, seed, options))
        assert_same_steps(envs, oracle, 2)


@SEEDS
@pytest.mark.parametrize("batch_size", [1, 3, 5])
def test_rows_that_are_sent_or_come_in_parts_have_their_own_too(build_any, seed, batch_size):
    envs = build_any([POLE] * 5, batch_size=batch_size)
    oracle = SyncVectorEnv([POLE] * 5)
    options = [WIDE, None, NARROW, {}, WIDE]
    envs.reset(seed=1)
    oracle.reset(seed=1)
    while envs.in_flight:
        envs.recv(PATIENCE_S)
    for begin in (envs.send_reset, envs.reset_async):
        begin(seed=seed, options=options)
        if begin == envs.reset_async and batch_size == 5:
            observations = envs.reset_wait()[0]
        else:
            observations = np.zeros((5, 4), np.float32)
            while envs.in_flight:
                result = envs.recv(PATIENCE_S)
                observations[index(result)] = result[0]
        assert_identical(observations, reset_one_by_one(oracle, seed, options))
    oracle.close()


def test_environments_in_python_get_copies_of_their_own(build_everywhere):
    envs = build_everywhere([partial(RecordingEnv, scribbles=True)] * 3)
    shared = {"level": [1]}
    options = [shared, None, shared]
    envs.reset(seed=3, options=options)
    assert options == [{"level": [1]}, None, {"level": [1]}]
    envs.send_reset(options=[{"a": 1}, {}, None])
    receive_all(envs)
    assert envs.get_attr("resets") == (
        [(3, {"level": [1]}), (None, {"a": 1})],
        [(4, None), (None, {})],
        [(5, {"level": [1]}), (None, None)],
    )


class AppendingEnv(RecordingEnv):
    """Writes into a list in its options, and keeps it."""

    def reset(self, *, seed=None, options=None):
        if options is not None:
            options["deep"]["list"].append(1)
            options["array"] += 1
            self.kept = options
        return super().reset(seed=seed)


@pytest.mark.parametrize("kind", ["one for all", "the same in a list", "by number"])
def test_rows_never_share_what_is_nested_in_options(build_everywhere, kind):
    envs = build_everywhere([AppendingEnv] * 4)
    options = {"deep": {"list": []}, "array": np.zeros(2)}
    given = {
        "one for all": options,
        "the same in a list": [options] * 4,
        "by number": {**options, "env_index": [3, 0, 1, 2]},
    }
    envs.reset(options=given[kind])
    expected = {"deep": {"list": [1]}, "array": np.ones(2)}
    assert_identical(envs.get_attr("kept"), (expected,) * 4)


def test_what_was_kept_for_the_next_automatic_resets_is_discarded(build_any):
    envs = build_any([POLE] * 3, autoreset_mode="same_step")
    envs.reset(seed=1)
    envs.next_reset(seed=50)
    envs.reset(options=[WIDE, NARROW, None])
    for _ in range(5):
        envs.step([0] * 3)
    assert envs.np_random_seed == (1, 2, 3)


def test_a_list_is_a_reset_of_all_rows(build_any):
    """So it staggers them, and a rollout may begin with it."""
    ends = []
    for options in (NARROW, [NARROW] * 6):
        envs = build_any([POLE] * 6, max_episode_steps=4, staggered_reset=True)
        arrays = envs.rollout(4)
        first, _ = envs.reset(seed=1, options=options)
        for _ in range(4):
            envs.step(np.zeros(6, int))
        assert_identical(arrays.observations[0], first)
        ends.append(arrays.truncated.copy())
    assert_identical(*ends)
    assert ends[0][0].any()
    assert not ends[0][0].all()


def test_other_options_are_refused_before_anything_starts(build_any):
    envs, oracle = with_oracle(build_any, POLE, 3)
    for options, error, text in [
        ([], ValueError, "`options` must have one entry for each of the 3 rows, got 0"),
        ([{}] * 4, ValueError, "`options` must have one entry for each of the 3 rows, got 4"),
        ([{}, 3, {}], TypeError, r"`options\[1\]` must be a dictionary or None, got 3"),
        ([{}, [{}], {}], TypeError, r"`options\[1\]` must be a dictionary or None"),
        ([{}, {}, {"env_index": [1]}], ValueError, r"`options\[2\]` cannot select rows by `env_i"),
        ([{"env_idx": [1]}, {}, {}], ValueError, r"`options\[0\]` cannot select rows by `env_idx"),
        (
            [{}, {"reset_mask": np.ones(3, bool)}, {}],
            ValueError,
            "a list resets all rows; `send_reset` resets some with options of their own",
        ),
        ([{}, {"env_ids": [1]}, {}], ValueError, r"`options\[1\]\['env_ids'\]` = \[1\] selects no"),
        (np.array([{}, {}, {}]), TypeError, "or a list with one dictionary or None for each row"),
        ({1, 2}, TypeError, "or a list with one dictionary or None for each row, got {1, 2}"),
    ]:
        for reset in (envs.reset, envs.reset_async, envs.send_reset):
            with pytest.raises(error, match=text):
                reset(options=options)
    assert_same_steps(envs, oracle, 5)
    envs.send([0], [1])
    with pytest.raises(AlreadyPendingCallError):
        envs.reset(options=[WIDE] * 3)
    envs.recv()


def test_native_rows_refuse_options_that_they_do_not_have():
    envs = NATIVE([POLE] * 3)
    first, _ = envs.reset(seed=1)
    for reset in (envs.reset, envs.reset_async, envs.send_reset):
        with pytest.raises(ValueError, match=r"no option 'lo'.*did you mean 'low'") as refused:
            reset(options=[None, WIDE, {"lo": 1}])
        assert refused.value.__notes__ == ["in `options[2]`"]
        with pytest.raises(ValueError, match="must be a finite number"):
            reset(options=[{"low": "x"}, None, None])
    assert_identical(envs.reset(seed=1)[0], first)
    envs.close()


def test_wrappers_of_cartwheel_pass_it_on(build_any):
    envs, oracle = with_oracle(build_any, POLE, 5)
    wrapped = FrameStack(RecordEpisodeStatistics(envs), 2)
    options = [WIDE, None, NARROW, {}, WIDE]
    expected = reset_one_by_one(oracle, 7, options)
    assert_identical(wrapped.reset(seed=7, options=options)[0][:, 1], expected)
    wrapped.reset_async(7, options)
    assert_identical(wrapped.reset_wait()[0][:, 1], expected)
    wrapped.send_reset(7, options)
    assert_identical(wrapped.recv(PATIENCE_S)[0][:, 1], expected)
    around = gymnasium_wrappers.RecordEpisodeStatistics(envs)
    assert_identical(around.reset(seed=7, options=options)[0], expected)
    assert_identical(FrameStack(around, 2).reset(seed=7, options=options)[0][:, 1], expected)


def test_an_adapter_of_modes_passes_it_on(build_any):
    envs, oracle = with_oracle(build_any, POLE, 5, D)
    options = [WIDE, None, NARROW, {}, WIDE]
    adapter = AutoresetAdapter(envs, "same_step")
    expected = reset_one_by_one(oracle, 7, options)
    assert_identical(adapter.reset(seed=7, options=options)[0], expected)
    for _ in range(6):
        adapter.step([0] * 5)


def test_cached_resets_ignore_it_as_other_options():
    both = []
    for options in (WIDE, [WIDE, None]):
        envs = CachedReset(cartwheel.NativeVectorEnv("CartPole-v1", 2), num_states=3, seed=1)
        both.append(envs.reset(seed=2, options=options)[0])
        envs.close()
    assert_identical(*both)


def test_around_environments_of_gymnasium_a_list_is_refused():
    """They would give the list itself to every environment."""
    envs = RecordEpisodeStatistics(SyncVectorEnv([POLE] * 2))
    with pytest.raises(TypeError, match="SyncVectorEnv of Gymnasium would pass the list"):
        envs.reset(options=[{}, {}])
    envs.close()


def test_evaluations_and_collectors_take_a_list():
    def zeros(observations):
        return np.zeros(len(observations), int)

    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, autoreset_mode="same_step")
    options = [{"low": 0.1, "high": 0.1}, {"low": -0.1, "high": -0.1}]
    rollout = cartwheel.Collector(envs, zeros, 3, seed=1, options=options).collect()
    assert_identical(rollout.observations[0], np.float32([[0.1] * 4, [-0.1] * 4]))
    one, each = (
        cartwheel.evaluate(envs, zeros, episodes_per_env=2, seed=3, options=how)
        for how in (WIDE, [WIDE] * 2)
    )
    assert_identical(one.returns, each.returns)
    envs.close()
