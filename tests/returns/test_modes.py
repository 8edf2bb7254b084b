"""The three autoreset modes give the same transitions with the same targets."""

import collections
import types

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import cartwheel
from cartwheel import returns
from tests.support.brute_force_returns import Run
from tests.support.environments import transcripts
from tests.support.simulated_rollouts import MODES, Episode, rollouts

GAMMA, LAM = 0.9, 0.8
RESTARTING = [mode for mode in MODES if mode != "FROZEN"]


def targets(rollout):
    """The outputs of all estimators by name, ``[T, N]`` each."""
    finals, index = rollout.finals("value")
    final_q, _ = rollout.finals("expected_q")
    given, given_q = ({}, {})
    if len(index):
        given = {"final_values": finals, "final_index": index}
        given_q = {"final_values": final_q, "final_index": index}
    flags = (rollout.terminated, rollout.truncated)
    where = rollout.mode_arguments
    then = returns.next_values(
        **where,
        values=rollout.table["value"][rollout.states],
        terminated=flags[0],
        truncated=flags[1],
        **given,
    )
    q_then = returns.next_values(
        **where,
        values=rollout.table["expected_q"][rollout.states],
        terminated=flags[0],
        truncated=flags[1],
        **given_q,
    )
    values, q_values, ratios = (rollout.of_states(kind) for kind in ("value", "q_value", "ratio"))
    valid = returns.valid_mask(
        **where, terminated=flags[0], truncated=flags[1], prev_done=rollout.prev_done
    )
    common = {"valid": valid, "gamma": GAMMA}
    rewards = rollout.rewards
    return valid, {
        "gae": returns.gae(rewards, values, then, *flags, gae_lambda=LAM, **common)[0],
        "normalized": returns.gae_normalized(
            rewards, values, then, *flags, gae_lambda=LAM, **common
        )[0],
        "lambda": returns.lambda_returns(rewards, then, *flags, lambda_=LAM, **common),
        "discounted_returns": returns.discounted_returns(
            rewards, *flags, next_values=then, **common
        ),
        "n_step_returns": returns.n_step_returns(
            rewards, *flags, next_values=then, n=3, **common
        ).returns,
        "vtrace": returns.vtrace(rewards, values, then, ratios, *flags, **common)[0],
        "pg": returns.vtrace(rewards, values, then, ratios, *flags, lambda_=LAM, **common)[1],
        "retrace": returns.retrace(
            rewards, q_values, q_then, ratios, *flags, lambda_=LAM, **common
        ),
    }


def transitions_of_complete_episodes(mode):
    """The transitions of the first ten episodes of each environment.

    Returns a counter of the transitions (state, reward, next state, whether the episode ends), and
    the target of each estimator by transition.
    """
    (rollout,) = rollouts(mode, steps=90, count=1, num_envs=4)
    valid, estimates = targets(rollout)
    seen, found = collections.Counter(), {}
    for t, env in np.argwhere(valid):
        episode, number, k = rollout.grid[t][env].transition
        if number < 10:
            ends = k == len(episode) - 1
            key = (episode.states[k], episode.rewards[k], episode.states[k + 1], ends)
            seen[key] += 1
            found[key] = {name: estimate[t, env] for name, estimate in estimates.items()}
    return seen, found


def test_every_mode_gives_the_same_transitions_with_the_same_targets():
    first, wanted = transitions_of_complete_episodes(RESTARTING[0])
    assert first.total() > 100
    for mode in RESTARTING[1:]:
        seen, found = transitions_of_complete_episodes(mode)
        assert seen == first
        for key, estimates in wanted.items():
            assert found[key] == pytest.approx(estimates, rel=0, abs=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("mode", RESTARTING)
def test_consecutive_rollouts_neither_lose_nor_repeat_a_transition(mode, steps):
    numbers = [[] for _ in range(5)]
    for rollout in rollouts(mode, steps, count=40 // steps):
        valid = returns.valid_mask(mode, rollout.terminated, rollout.truncated, rollout.prev_done)
        for t, env in np.argwhere(valid):
            numbers[env].append(rollout.grid[t][env].transition[1:])
    for transitions in numbers:
        assert transitions == sorted(set(transitions))
        lengths = collections.Counter(number for number, _ in transitions)
        for number, k in transitions:
            assert k < lengths[number]
        assert max(lengths) >= 5


@pytest.mark.parametrize("steps", [1, 2, 17])
@pytest.mark.parametrize("mode", MODES)
def test_is_first_marks_the_first_observation_of_each_episode(mode, steps):
    initial = np.ones(5, bool)
    marked = [[] for _ in range(5)]
    for rollout in rollouts(mode, steps, count=40 // steps):
        marks = returns.is_first(
            **rollout.mode_arguments,
            terminated=rollout.terminated,
            truncated=rollout.truncated,
            prev_done=rollout.prev_done,
            initial=initial,
        )
        assert marks.shape == (steps + 1, 5)
        np.testing.assert_array_equal(marks[0], initial)
        for t, env in np.argwhere(marks[:-1]):
            marked[env].append(rollout.states[t, env])
        begins = [
            [row.transition is not None and row.transition[2] == 0 for row in step]
            for step in rollout.grid
        ]
        np.testing.assert_array_equal(marks[:-1], begins)
        initial = marks[-1]
    assert all(states == sorted(set(states)) for states in marked)


def test_a_next_step_rollout_keeps_the_state_for_the_value_of_the_final_observation():
    over = np.array([[False], [True], [False], [False]])
    none, before = np.zeros_like(over), np.zeros(1, bool)
    marks = returns.is_first("next_step", none, over, before, ~before)
    assert marks[:, 0].tolist() == [True, False, False, True, False]
    marks = returns.is_first("same_step", none, over, before, ~before)
    assert marks[:, 0].tolist() == [True, False, True, False, False]


def value(observations):
    """A value function for observations of a :class:`TranscriptEnv`."""
    return np.sin(1 + 2.0 * np.asarray(observations, float)[..., 0])


def record(mode, steps):
    """A rollout of environments with lengths 2, 3, 4 and 1, and the values that GAE needs.

    The action is the observation plus one, and is also the reward.
    """
    env_fns = [
        *transcripts(2, 3, terminates=False, truncates=True),
        *transcripts(4, 1),
    ]
    envs = cartwheel.VectorEnv(env_fns, executor="inline", autoreset_mode=mode)
    observations, _ = envs.reset()
    rows, final_values, final_index = [], [], []
    for t in range(steps):
        acted_on = observations
        actions = acted_on[:, 0].astype(int) + 1
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        over, finals = terminated | truncated, observations
        if mode == AutoresetMode.SAME_STEP and over.any():
            finals = infos["final_obs"]
        if mode == AutoresetMode.DISABLED and over.any():
            observations, _ = envs.reset(options={"reset_mask": over})
        if mode != AutoresetMode.NEXT_STEP:
            for env in np.flatnonzero(over):
                final_values.append(value(finals[env]))
                final_index.append((t, env))
        rows.append((acted_on, rewards, terminated, truncated))
    envs.close()
    acted_on, rewards, terminated, truncated = map(np.array, zip(*rows, strict=True))
    values = value(np.concatenate([acted_on, observations[None]]))
    finals = (
        {"final_values": np.array(final_values), "final_index": np.array(final_index)}
        if final_values
        else {}
    )
    then = returns.next_values(mode, values, terminated, truncated, **finals)
    valid = returns.valid_mask(mode, terminated, truncated, np.zeros(4, bool))
    return acted_on[..., 0].astype(int), rewards, values[:-1], then, terminated, truncated, valid


@pytest.mark.parametrize("mode", AutoresetMode)
def test_recorded_rollouts_have_the_advantages_of_their_episodes(mode):
    states, rewards, values, then, terminated, truncated, valid = record(mode, steps=30)
    advantages, _ = returns.gae(
        rewards, values, then, terminated, truncated, valid=valid, gamma=GAMMA, gae_lambda=LAM
    )
    for env, (length, ends) in enumerate([(2, False), (3, False), (4, True), (1, True)]):
        # All episodes of an environment are the same.
        episode = Episode(list(range(length + 1)), list(range(1, length + 1)), ends, not ends)
        wanted = brute_force_advantages(episode)
        period = length + (mode == AutoresetMode.NEXT_STEP)
        complete = 30 // period * period
        for t in range(complete):
            k = t % period
            assert valid[t, env] == (k < length)
            assert advantages[t, env] == pytest.approx(wanted[k] if k < length else 0, abs=1e-12)
            if k < length:
                assert states[t, env] == k


def brute_force_advantages(episode):
    """The advantage of each step of an episode whose states are observations."""

    table = {"value": value(np.arange(10)[:, None]), "ratio": np.ones(10)}
    table |= {"gamma": np.full(10, GAMMA), "lam": np.full(10, LAM)}
    steps = [(k, (episode, 0, k)) for k in range(len(episode))]
    run = Run(types.SimpleNamespace(table=table), steps, "truncated")
    return [run.gae(k) for k in range(len(episode))]
