"""Native rows that are restored go on as the saved rows did."""

from contextlib import closing

import gymnasium as gym
import numpy as np
import pytest

from cartwheel import NativeVectorEnv

MODES = list(gym.vector.AutoresetMode)
IDS = ["CartPole-v1", "Taxi-v4", "Blackjack-v1", "FrozenLake-v1", "Pendulum-v1"]


def make(env_id, mode, num_envs=5, **keywords):
    keywords = {"num_workers": 2, "max_episode_steps": 9} | keywords
    envs = NativeVectorEnv(env_id, num_envs, autoreset_mode=mode, on_done="freeze", **keywords)
    return closing(envs)


def actions_of(envs, steps):
    space = envs.single_action_space
    space.seed(3)
    return [np.array([space.sample() for _ in range(envs.num_envs)]) for _ in range(steps)]


def transcript(envs, actions, order=slice(None)):
    """Observations, rewards and flags of steps, as bytes, row by row."""
    frames = []
    for action in actions:
        *arrays, infos = envs.step(action)
        observation = arrays[0] if isinstance(arrays[0], tuple) else (arrays[0],)
        parts = [np.asarray(part)[order].tobytes() for part in (*observation, *arrays[1:])]
        frames.append((parts, sorted(key for key in infos if not key.startswith("_"))))
    return frames


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("env_id", IDS)
def test_a_restored_row_repeats_its_transcript(env_id, mode):
    with make(env_id, mode) as envs:
        envs.reset(seed=7)
        actions = actions_of(envs, 60)
        transcript(envs, actions[:13])
        states = envs.get_state()
        expected = transcript(envs, actions[13:])
        for _ in range(2):
            envs.set_state(None, states)
            assert transcript(envs, actions[13:]) == expected
    with make(env_id, mode) as others:
        others.set_state(range(5), states)  # before the first reset
        assert transcript(others, actions[13:]) == expected


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("batch_size", [None, 2])
def test_a_state_can_be_restored_into_any_row_of_any_pool(mode, batch_size):
    with make("Taxi-v4", mode) as envs:
        envs.reset(seed=7)
        actions = actions_of(envs, 40)
        transcript(envs, actions[:8])
        states = envs.get_state([4, 1, 2])
        expected = transcript(envs, actions[8:], [4, 1, 2])
    with make("Taxi-v4", mode, 3, num_workers=1, batch_size=batch_size) as others:
        others.set_state([2, 0, 1], [states[0], states[1], states[2]])
        again = others.get_state([2, 0, 1])
        assert again == states
    with make("Taxi-v4", mode, 3, num_workers=1) as others:
        others.set_state([2, 0, 1], states)
        mirrored = [action[[1, 2, 4]] for action in actions[8:]]
        seen = transcript(others, mirrored, [2, 0, 1])
        assert [frame[0] for frame in seen] == [frame[0] for frame in expected]


def test_other_rows_go_on_undisturbed():
    with make("CartPole-v1", MODES[0]) as envs, make("CartPole-v1", MODES[0]) as alone:
        for each in (envs, alone):
            each.reset(seed=3)
        actions = actions_of(envs, 30)
        transcript(envs, actions[:4])
        transcript(alone, actions[:4])
        envs.set_state([1], envs.get_state([3]))
        rest = [0, 2, 3, 4]
        assert transcript(envs, actions[4:], rest) == transcript(alone, actions[4:], rest)


def test_a_state_that_does_not_fit_is_refused_and_no_row_changes():
    with make("CartPole-v1", MODES[0]) as envs, make("Taxi-v4", MODES[0]) as taxis:
        envs.reset(seed=1)
        taxis.reset(seed=1)
        state = envs.get_state([0])[0]
        (taxi,) = taxis.get_state([0])
        before = envs.get_state()
        for bad, expected in [
            (b"", "this is not a state of a native environment"),
            (b"pickled", "this is not a state of a native environment"),
            (state[:-1], "was cut or changed"),
            (state[:60] + b"?" + state[61:], "was cut or changed"),
            (taxi, "the state is of Taxi-v4, not of CartPole-v1"),
        ]:
            with pytest.raises(ValueError, match=expected):
                envs.set_state([0, 1], [state, bad])
            assert envs.get_state() == before
    others = make("CartPole-v1", MODES[0], sutton_barto_reward=True)
    options = r"with the options \{\}, not \{.*sutton"
    with others as tuned, pytest.raises(ValueError, match=options):
        tuned.set_state([0], [state])


@pytest.mark.parametrize(
    ("rows", "states", "expected"),
    [
        ([5], 1, "`env_index` names row 5; there are rows 0 to 4"),
        ([-1], 1, "`env_index` names row -1; there are rows 0 to 4"),
        ([1, 1], 2, "`env_index` names row 1 twice"),
        ([1, 2], 1, "one state for each of 2 rows, got 1"),
        (None, 1, "one state for each of 5 rows, got 1"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows, states, expected):
    with make("CartPole-v1", MODES[0]) as envs:
        envs.reset(seed=1)
        state = envs.get_state([0])[0]
        with pytest.raises(ValueError, match=expected):
            envs.set_state(rows, [state] * states)


def test_states_are_not_touched_while_a_call_is_pending_or_after_a_close():
    envs = make("CartPole-v1", MODES[0]).thing
    envs.reset(seed=1)
    states = envs.get_state()
    envs.step_async(np.zeros(5, int))
    for call in (envs.get_state, lambda: envs.set_state(None, states)):
        with pytest.raises(gym.error.AlreadyPendingCallError):
            call()
    envs.step_wait()
    envs.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        envs.get_state()
