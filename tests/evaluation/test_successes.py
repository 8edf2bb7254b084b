"""Success is read for each episode, and values other than flags are refused."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel.evaluation.result import rate_interval
from tests.support.environments import TranscriptEnv
from tests.support.executors import INLINE, PROCESS

MODES = ["next_step", "same_step", "disabled"]


class SayingEnv(TranscriptEnv):
    """The info of the last step of episode ``i`` is ``sayings[i]``, again and again."""

    def __init__(self, length, *sayings, **flags):
        super().__init__(length, **flags)
        self.sayings = sayings

    def step(self, action):
        *frame, _ = super().step(action)
        over = frame[2] or frame[3]
        return *frame, dict(self.sayings[(self.episodes - 1) % len(self.sayings)]) if over else {}


def synchronous(env_fns, autoreset_mode):
    return SyncVectorEnv(env_fns, autoreset_mode=gym.vector.AutoresetMode[autoreset_mode.upper()])


def successes_of(build, mode, env_fns, episodes=1):
    envs = build(env_fns, autoreset_mode=mode)
    try:
        return cartwheel.evaluate(
            envs, lambda seen: np.ones(len(seen), np.int64), episodes_per_env=episodes
        ).success_at_end
    finally:
        envs.close()


def alone(sayings, episodes):
    """The success that each episode reports, without regard to other rows."""
    said = [sayings[episode % len(sayings)] for episode in range(episodes)]
    return [bool(one.get("is_success", one.get("success", False))) for one in said]


@pytest.mark.parametrize("final_info", [3, {"is_success": False}], ids=str)
@pytest.mark.parametrize("build", [INLINE, PROCESS, synchronous])
@pytest.mark.parametrize("mode", MODES)
def test_infos_of_an_environment_with_names_of_the_pool_are_ordinary_ones(build, mode, final_info):
    own = {"env_error": True, "worker_restarted": False, "infos_lost": False}
    own |= {"final_info": final_info, "is_success": True}
    env_fn = partial(SayingEnv, 2, own, terminates=False, truncates=True)
    assert successes_of(build, mode, [env_fn] * 2, episodes=2).tolist() == [[True, True]] * 2


@pytest.mark.parametrize("build", [INLINE, PROCESS, synchronous])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("lengths", [(3, 3, 3, 3), (3, 4, 2, 5)], ids=["together", "one by one"])
def test_every_episode_is_read_with_its_own_key(build, mode, lengths):
    """Even if other rows end in the same step with another key."""
    sayings = [
        [{"is_success": True}, {"is_success": False}],
        [{"success": True}, {"success": True, "is_success": False}, {}],
        [{"success": False}, {"is_success": True, "success": False}],
        [{}, {"success": True}],
    ]
    env_fns = [partial(SayingEnv, n, *said) for n, said in zip(lengths, sayings, strict=True)]
    found = successes_of(build, mode, env_fns, 6)
    assert found.tolist() == [alone(said, 6) for said in sayings]


READABLE = [
    (np.True_, True),
    (np.False_, False),
    ([True], True),
    ([False], False),
    ([1, 0], False),
    (np.array([True, True]), True),
    (1, True),
    (0.0, False),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("said", "expected"), READABLE, ids=lambda said: repr(said))
def test_flags_are_read_in_every_form(mode, said, expected):
    found = successes_of(INLINE, mode, [partial(SayingEnv, 2, {"success": said})] * 2)
    assert found.tolist() == [[expected], [expected]]


@pytest.mark.parametrize("mode", MODES)
def test_none_is_no_report(mode):
    nothing = partial(SayingEnv, 2, {"is_success": None})
    assert successes_of(INLINE, mode, [nothing] * 2) is None
    other = partial(SayingEnv, 2, {"is_success": None, "success": True})
    assert successes_of(INLINE, mode, [nothing, other]).tolist() == [[False], [True]]


UNREADABLE = [
    ({"task": True}, "dict"),
    ("False", "str"),
    (np.array("no"), "str"),
    (object(), "object"),
    ([[True], [True, False]], "list"),
    ({1, 2}, "set"),
]


@pytest.mark.parametrize("build", [INLINE, synchronous])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", ["success", "is_success"])
@pytest.mark.parametrize(("said", "kind"), UNREADABLE, ids=lambda said: type(said).__name__)
def test_a_value_other_than_a_flag_is_refused_with_its_key_and_type(build, mode, key, said, kind):
    with pytest.raises(TypeError, match=rf"say in '{key}' whether .* got <class '.*{kind}"):
        successes_of(build, mode, [partial(SayingEnv, 2, {key: said})] * 2)


class WanderingEnv(TranscriptEnv):
    """Step ``t`` of every episode says ``sayings[t - 1]``, if that is not empty."""

    def __init__(self, *sayings, **flags):
        super().__init__(len(sayings), **flags)
        self.sayings = sayings

    def step(self, action):
        *frame, _ = super().step(action)
        return *frame, dict(self.sayings[self.t - 1])


YES, NO = {"success": True}, {"success": False}
#: What the steps of an episode say; whether it succeeded once, and at the end.
WANDERERS = [
    ([NO, YES, NO], True, False),
    ([NO, NO, YES], True, True),
    ([NO, NO], False, False),
    ([{"is_success": True}, {"is_success": False}, {}, {}], True, False),
    ([YES], True, True),
    ([NO, {"success": True, "is_success": False}, NO], False, False),
]


@pytest.mark.parametrize("build", [INLINE, PROCESS, synchronous])
@pytest.mark.parametrize("mode", MODES)
def test_success_once_is_that_of_any_step_and_success_at_the_end_that_of_the_last(build, mode):
    env_fns = [partial(WanderingEnv, *said) for said, _, _ in WANDERERS]
    envs = build(env_fns, autoreset_mode=mode)
    try:
        found = cartwheel.evaluate(
            envs, lambda seen: np.ones(len(seen), np.int64), episodes_per_env=4
        )
    finally:
        envs.close()
    assert found.success_once.tolist() == [[once] * 4 for _, once, _ in WANDERERS]
    assert found.success_at_end.tolist() == [[at_end] * 4 for _, _, at_end in WANDERERS]
    assert (found.success_once_rate, found.success_rate) == (4 / 6, 2 / 6)
    low, high = found.success_once_interval
    assert (low, high) == pytest.approx(rate_interval(16, 24, 0.95))
    assert "\nonce     0.6667, 0.95 interval" in found.summary()


def test_what_a_failed_episode_said_is_not_counted_for_the_next_one():
    class FailingEnv(WanderingEnv):
        """Says success, and fails in the step after it, once."""

        failed = False

        def step(self, action):
            if not type(self).failed and self.t == 1:
                type(self).failed = True
                raise ValueError("chosen to fail")
            *frame, _ = super().step(action)
            return *frame, NO if type(self).failed else YES

    for mode in MODES:
        FailingEnv.failed = False
        envs = INLINE([partial(FailingEnv, NO, NO, NO)], autoreset_mode=mode, on_error="restart")
        found = cartwheel.evaluate(envs, lambda seen: np.ones(len(seen), np.int64))
        envs.close()
        assert found.failures.tolist() == [1]
        assert found.success_once.tolist() == [[False]]


def test_success_is_counted_once_where_terminations_are_ignored():
    """Success goes on to the time limit, and may be lost again."""
    said = [NO, YES, NO, YES, NO]
    found = {}
    for ignored in (False, True):
        envs = INLINE(
            [partial(TerminatingEnv, *said)] * 2, max_episode_steps=5, ignore_terminations=ignored
        )
        found[ignored] = cartwheel.evaluate(envs, lambda seen: np.ones(len(seen), np.int64))
        envs.close()
    assert found[False].lengths.tolist() == [[2], [2]]
    assert found[False].success_once_rate == found[False].success_rate == 1.0
    assert found[True].lengths.tolist() == [[5], [5]]
    assert (found[True].success_once_rate, found[True].success_rate) == (1.0, 0.0)


class TerminatingEnv(WanderingEnv):
    """Terminates with every success."""

    def step(self, action):
        observation, reward, _, truncated, info = super().step(action)
        return observation, reward, info["success"], truncated, info
