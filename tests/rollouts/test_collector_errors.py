"""Every mistake raises an exception, and the collector continues afterwards."""

import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Text
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper
from gymnasium.wrappers.vector import DictInfoToList, TransformAction

import cartwheel
from cartwheel.wrappers import NormalizeObservation
from tests.support.cases import Case, lean
from tests.support.collecting import assert_same, collector_of, policy
from tests.support.comparison import assert_identical
from tests.support.environments import SamplingEnv, transcripts
from tests.support.executors import INLINE, THREAD
from tests.support.simulated_rollouts import FROZEN, MODES


class Bewildered:
    """Returns something wrong, or raises, in every third call; all other calls are right."""

    def __init__(self, wrong):
        self.wrong, self.calls = wrong, 0

    def __call__(self, observations):
        self.calls += 1
        if self.calls % 3 == 0:
            return self.wrong(*policy(observations))
        return policy(observations)


def interrupt(*_):
    raise KeyboardInterrupt


WRONG = {
    "one action too few": (lambda a, e: (a[:-1], e), ValueError, r"`actions` .* \(5,\).*\(4,\)"),
    "a column": (lambda a, e: (a[:, None], e), ValueError, r"`actions` .* \(5,\).*\(5, 1\)"),
    "one action": (lambda _, e: (1, e), ValueError, r"`actions` must have shape \(5,\)"),
    "floats": (
        lambda a, e: (a.astype(float), e),
        TypeError,
        "`actions` must be int64, got float64",
    ),
    "words": (lambda _, e: (["left"] * 5, e), TypeError, "`actions` must be int64, got <U4"),
    "nothing": (lambda _, e: (None, e), TypeError, "returned None as `actions`, where 5 actions"),
    "a short extra": (
        lambda a, _: (a, {"half": np.ones(4)}),
        ValueError,
        r"`half`.*\(5,\).*\(4,\)",
    ),
    "another dtype": (
        lambda a, _: (a, {"half": np.ones(5, complex)}),
        TypeError,
        "`half`.*float64",
    ),
    "no extras": (lambda a, _: a, ValueError, r"the extras \[\] at step [1-9].* \['half'\] before"),
    "another extra": (lambda a, e: (a, {**e, "v": e["half"]}), ValueError, r"\['half', 'v'\]"),
    "no name of an extra": (lambda a, e: (a, {**e, 3: a}), ValueError, r"\[3, 'half'\]"),
    "an exception": (lambda *_: 1 / 0, ZeroDivisionError, "division"),
    "an interrupt": (interrupt, KeyboardInterrupt, ""),
}


def attempt(collector, error, messages):
    """The next rollout; or ``None``, and the error's text is added to ``messages``."""
    try:
        return collector.collect()
    except error as caught:
        messages.append(str(caught))
        return None


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("mode", MODES)
def test_a_mistake_of_the_policy_loses_nothing(mode, wrong):
    mistake, error, message = WRONG[wrong]
    steps = None if mode == FROZEN else 5
    with collector_of(mode, steps) as collector, collector_of(mode, steps) as right:
        collector.policy = Bewildered(mistake)
        for _ in range(2):
            wanted, messages, rollout = right.collect(), [], None
            while rollout is None:  # the next call continues
                rollout = attempt(collector, error, messages)
            assert messages
            assert all(re.search(message, found) for found in messages), messages
            assert_same(rollout, wanted)


@pytest.mark.parametrize("length", [{"num_steps": 20}, {"until": "all_done"}], ids=str)
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_after_a_mistake_of_the_policy_others_may_use_the_environments(mode, length):
    """In lockstep nothing is in flight, so no `pause` is needed."""
    envs, twin = (
        cartwheel.NativeVectorEnv("CartPole-v1", 5, autoreset_mode=mode) for _ in range(2)
    )
    calls = iter(range(1000))

    def lean(seen):
        return (seen[:, 2] > 0).astype(np.int64)

    collector = cartwheel.Collector(
        envs, lambda seen: 1 / 0 if next(calls) == 3 else lean(seen), seed=1, **length
    )
    with pytest.raises(ZeroDivisionError):
        collector.collect()
    found, wanted = (
        cartwheel.evaluate(each, lean, episodes_per_env=2, seed=3) for each in (envs, twin)
    )
    assert_identical(found.returns, wanted.returns)
    assert collector.collect().is_first[0].all()
    envs.close()
    twin.close()


WRAPPERS = {"none": lambda envs: envs, "one that changes steps": NormalizeObservation}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("num_envs", [3, 300])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_refused_actions_lose_nothing(mode, num_envs, wrapper):
    """Native environments refuse actions out of range. With 300 rows, observations are views."""
    envs, twin = (
        WRAPPERS[wrapper](cartwheel.NativeVectorEnv("CartPole-v1", num_envs, autoreset_mode=mode))
        for _ in range(2)
    )
    calls = iter(range(1000))

    def wrong_now_and_then(observations):
        actions = (observations[:, 2] > 0).astype(np.int64)
        if next(calls) % 3 == 2:
            actions[-1] = 7
        return actions

    collector = cartwheel.Collector(envs, wrong_now_and_then, num_steps=40, seed=1)
    right = cartwheel.Collector(
        twin, lambda seen: (seen[:, 2] > 0).astype(np.int64), num_steps=40, seed=1
    )
    for _ in range(2):
        messages, rollout = [], None
        while rollout is None:
            rollout = attempt(collector, ValueError, messages)
        assert messages == [f"action 7 of row {num_envs - 1} is not in Discrete(2)"] * len(messages)
        assert len(messages) >= 19
        assert_same(rollout, right.collect())
    envs.close()
    twin.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_reset_drops_the_unfinished_rollout(mode):
    with collector_of(mode, 5, build=lambda _, **k: INLINE(transcripts(2, 4), **k)) as collector:
        collector.policy = lambda seen: np.ones(len(seen), np.int64)
        first = collector.collect()
        collector.policy = Bewildered(lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            collector.collect()
        assert not collector.is_first.all()
        observations, infos = collector.reset(seed=3)
        assert_identical(observations, np.zeros((2, 1), np.float32))
        assert "ep" in infos
        assert collector.is_first.all()
        collector.policy = lambda seen: np.ones(len(seen), np.int64)
        assert_same(collector.collect(), first)


@pytest.mark.parametrize(
    "keywords",
    [
        *({}, {"order": "free", "run_ahead": 1}, {"order": "groups", "background": True}),
        {"order": "free", "standby": 2},
    ],
    ids=str,
)
def test_a_reset_that_is_refused_drops_no_rollout(keywords):
    collectors = []
    for _ in range(2):
        envs = THREAD([Case("CartPole-v1")] * 4, autoreset_mode="disabled")
        collectors.append(cartwheel.Collector(envs, lean, 4, seed=1, **keywords))
        collectors[-1].collect()
    refused, other = collectors
    for arguments, error in [
        ({"seed": "a"}, (TypeError, ValueError)),
        ({"seed": -1}, (gym.error.Error, ValueError)),
        ({"options": {"reset_masks": np.ones(4, bool)}}, ValueError),
    ]:
        with pytest.raises(error):
            refused.reset(**arguments)
    for _ in range(3):
        assert_same(refused.collect(), other.collect())
    for collector in collectors:
        collector.close()
        collector.envs.close()
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 4)
    collector = cartwheel.Collector(envs, lean, 4)
    collector.collect()
    with pytest.raises(ValueError, match="no option 'lows'"):
        collector.reset(options={"lows": 1})
    assert not collector.collect().is_first[0].all()
    envs.close()


@pytest.mark.parametrize("kind", [INLINE, SyncVectorEnv], ids=["ours", "gymnasium's"])
def test_invalid_arguments_are_refused(kind):
    envs = kind(transcripts(3, 4))
    for keywords, message in [
        ({}, "a rollout needs a length"),
        ({"num_steps": 0}, "`num_steps` must be an integer from 1 to 65534, got 0"),
        ({"num_steps": 65535}, "from 1 to 65534"),
        ({"num_steps": 2.0}, "got 2.0"),
        ({"num_steps": True}, "got True"),
        ({"until": "done"}, "`until` must be 'all_done' or None, got 'done'"),
        ({"until": "all_done", "num_episodes": 3}, "exclude each other"),
        ({"num_episodes": 1}, "`num_episodes` must be an integer from 2 on, got 1"),
        ({"num_episodes": "3"}, "got '3'"),
    ]:
        with pytest.raises(ValueError, match=message):
            cartwheel.Collector(envs, policy, **keywords)
    collector = cartwheel.Collector(envs, policy, 3)
    for steps in (None, 0):
        with pytest.raises(ValueError, match="num_steps"):
            collector.num_steps = steps
    assert collector.num_steps == 3
    with pytest.raises(TypeError, match="`policy` must be a function"):
        cartwheel.Collector(envs, "policy", 3)
    envs.metadata = {}
    with pytest.raises(ValueError, match="no 'autoreset_mode'"):
        cartwheel.Collector(envs, policy, 3)
    envs.close()


def test_unsupported_environments_are_refused():
    with pytest.raises(TypeError, match="`envs` must be a vector environment, got"):
        cartwheel.Collector(cartwheel.NativeEnv("CartPole-v1"), policy, 3)
    envs = INLINE(transcripts(3, 4, 5), batch_size=2)
    with pytest.raises(ValueError, match="all 3 rows, but batch_size is 2"):
        cartwheel.Collector(envs, policy, 3)
    envs.close()
    for space, action in ((Text(5), None), (None, Text(5))):
        observed = space or transcripts(1)[0]().observation_space
        envs = INLINE([lambda o=observed, a=action: SamplingEnv(o, action_space=a)] * 2)
        with pytest.raises(TypeError, match="no fixed shape"):
            cartwheel.Collector(envs, policy, 3)
        envs.close()


class Forgetful(TransformAction):
    """Removes the final observations from the infos."""

    def __init__(self, envs):
        super().__init__(envs, lambda actions: actions)

    def step(self, actions):
        *results, infos = super().step(actions)
        infos.pop("final_obs", None)
        return *results, infos


@pytest.mark.parametrize("way", [{"num_steps": 6}, {"num_episodes": 4}])
def test_a_missing_final_observation_is_refused(way):
    def ones(seen):
        return np.ones(len(seen), np.int64)

    envs = Forgetful(INLINE(transcripts(2, 4), autoreset_mode="same_step"))
    collector = cartwheel.Collector(envs, ones, **way)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"environments \[0\] .* step 1 .* no `final_obs`"):
            collector.collect()
    envs.close()


def test_flags_that_contradict_the_mode_are_refused():
    envs = VectorWrapper(SyncVectorEnv(transcripts(1, 4), autoreset_mode=AutoresetMode.SAME_STEP))
    envs.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
    collector = cartwheel.Collector(envs, lambda seen: np.ones(len(seen), np.int64), 3)
    with pytest.raises(ValueError, match="another mode's rollout"):
        collector.collect()
    envs.close()


class ListingSteps(DictInfoToList):
    """Turns the infos of steps into lists, but not those of resets."""

    def reset(self, **keywords):
        return self.env.reset(**keywords)


@pytest.mark.parametrize("build", [INLINE, SyncVectorEnv], ids=["ours", "gymnasium's"])
@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(("wrapper", "most"), [(DictInfoToList, 0), (ListingSteps, 1)])
def test_infos_that_are_lists_are_refused_early(wrapper, most, mode, build):
    asked = []

    def ones(seen):
        asked.append(len(seen))
        return np.ones(len(seen), np.int64)

    envs = build(transcripts(1, 4), autoreset_mode=mode)
    listing = wrapper(envs)
    collector = cartwheel.Collector(listing, ones, 6)
    for call in (
        collector.collect,
        collector.collect,
        lambda: cartwheel.evaluate(listing, ones),
    ):
        asked.clear()
        with pytest.raises(TypeError, match=r"infos .* a dict .*<class 'list'>.*DictInfoToList"):
            call()
        assert len(asked) == most
    rollout = cartwheel.Collector(envs, ones, 6).collect()  # without the wrapper
    assert rollout.is_first[0].all()
    assert cartwheel.evaluate(envs, ones).lengths.tolist() == [[1], [4]]
    envs.close()


@pytest.mark.parametrize("options", [{"reset_mask": np.arange(5) < 2}, {"env_index": [0]}])
def test_a_reset_of_some_rows_is_refused_and_changes_nothing(options):
    with collector_of("NEXT_STEP", 5) as collector, collector_of("NEXT_STEP", 5) as other:
        assert_same(collector.collect(), other.collect())
        with pytest.raises(ValueError, match="`options` must not choose rows, got"):
            collector.reset(options=options)
        assert_same(collector.collect(), other.collect())


def test_seeds_and_options_reach_the_resets():
    envs = INLINE([lambda: SamplingEnv(transcripts(1)[0]().observation_space, length=2)] * 2)
    seen = []
    real = envs.reset

    def reset(*, seed=None, options=None):
        seen.append((seed, options))
        return real(seed=seed, options=options)

    envs.reset = reset
    collector = cartwheel.Collector(
        envs, lambda _: np.ones(2, np.int64), until="all_done", seed=7, options={"level": 1}
    )
    collector.collect()
    collector.collect()
    collector.reset(seed=[1, 2], options={})
    collector.collect()
    assert seen == [(7, {"level": 1}), (None, {"level": 1}), ([1, 2], {})]
    envs.close()
