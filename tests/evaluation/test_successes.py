"""Success is read for each episode, and values that are no flags are refused."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import cartwheel
from tests.support.environments import TranscriptEnv
from tests.support.executors import INLINE, PROCESS

MODES = ["next_step", "same_step", "disabled"]


class SayingEnv(TranscriptEnv):
    """The info of the last step of episode ``i`` is ``sayings[i]``, again and again."""

    def __init__(self, length, *sayings):
        super().__init__(length)
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
        ).successes
    finally:
        envs.close()


def alone(sayings, episodes):
    """The success that each episode reports, without regard to other rows."""
    said = [sayings[episode % len(sayings)] for episode in range(episodes)]
    return [bool(one.get("is_success", one.get("success", False))) for one in said]


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
def test_a_value_that_is_no_flag_is_refused_with_its_key_and_type(build, mode, key, said, kind):
    with pytest.raises(TypeError, match=rf"say in '{key}' whether .* got <class '.*{kind}"):
        successes_of(build, mode, [partial(SayingEnv, 2, {key: said})] * 2)
