"""Targets of collected rollouts equal those of each episode alone, in every mode."""

import collections
from functools import partial

import numpy as np
import pytest

import cartwheel
from cartwheel import returns
from cartwheel.rollouts.recording import carry_after
from tests.support.brute_force_returns import Run, expected
from tests.support.collecting import collector_of, states_of, with_values
from tests.support.comparison import assert_identical
from tests.support.simulated_rollouts import FROZEN, MODES, rollouts

BOOTSTRAPS = ("truncated", "always", "never")
GAMMA, LAM = 0.9, 0.8
WITHIN = {"rtol": 0, "atol": 1e-12}


def estimates(rollout, table, bootstrap="truncated"):
    """The outputs of every estimator by name, through the rollout."""
    states = states_of(rollout.observations[:-1])
    ratios, q_values = table["ratio"][states], table["q_value"][states]
    sums = rollout.n_step_returns(3, GAMMA, bootstrap=bootstrap)
    plain = rollout.discounted_returns(GAMMA, bootstrap=bootstrap)
    with_values(rollout, table["expected_q"])
    retrace = rollout.retrace(q_values, ratios, GAMMA, LAM, bootstrap=bootstrap)
    with_values(rollout, table["value"])
    advantages, targets = rollout.gae(GAMMA, LAM, bootstrap=bootstrap)
    vtrace, pg_advantages = rollout.vtrace(ratios, GAMMA, LAM, rho_bar=1.1, bootstrap=bootstrap)
    n_step = rollout.n_step_returns(3, gamma=GAMMA, bootstrap=bootstrap)
    return {
        "n_step rewards": sums.returns,
        "n_step discounts": sums.discounts,
        "rewards alone": plain,
        "retrace": retrace,
        "gae": advantages,
        "gae returns": targets,
        "gae_normalized": rollout.gae_normalized(GAMMA, LAM, bootstrap=bootstrap)[0],
        "lambda_returns": rollout.lambda_returns(GAMMA, LAM, bootstrap=bootstrap),
        "vtrace": vtrace,
        "vtrace advantages": pg_advantages,
        "n_step_returns": n_step.returns,
        "n_step lengths": n_step.lengths,
        "discounted_returns": rollout.discounted_returns(GAMMA, bootstrap=bootstrap),
    }


def by_definition(simulated, bootstrap="truncated"):
    """The same by brute force; NaN in rows that are not transitions."""
    table = simulated.table
    numbers = dict(table)
    table["gamma"], table["lam"] = (
        np.full_like(table["gamma"], GAMMA),
        np.full_like(table["lam"], LAM),
    )
    of = partial(expected, simulated, bootstrap)

    def rewards_alone(run, i):
        return sum(GAMMA**k * reward for k, reward in enumerate(run.rewards[i:]))

    result = {
        "n_step rewards": of(lambda run, i: run.n_step(i, 3)[0]),
        "n_step discounts": of(lambda run, i: run.n_step(i, 3)[1]),
        "rewards alone": of(rewards_alone),
        "retrace": of(lambda run, i: run.retrace(i, 1.0), value="q_value", after="expected_q"),
        "gae": of(Run.gae),
        "gae returns": of(lambda run, i: run.gae(i) + run.values[i]),
        "gae_normalized": of(Run.gae_normalized),
        "lambda_returns": of(Run.lambda_return),
        "vtrace": of(lambda run, i: run.vtrace(i, 1.1, 1.0)),
        "vtrace advantages": of(lambda run, i: run.vtrace_advantage(i, 1.1, 1.0, 1.0)),
        "n_step_returns": of(lambda run, i: run.n_step(i, 3)[2]),
        "n_step lengths": of(lambda run, i: run.n_step(i, 3)[3]),
        "discounted_returns": of(lambda run, i: run.n_step(i, len(run))[2]),
    }
    table.update(numbers)
    return result


@pytest.mark.parametrize("bootstrap", BOOTSTRAPS)
@pytest.mark.parametrize(("steps", "num_envs"), [(1, 5), (2, 5), (17, 5), (17, 1)])
@pytest.mark.parametrize("mode", MODES)
def test_every_estimator_equals_that_of_each_episode_alone(mode, steps, num_envs, bootstrap):
    count = 1 if mode == FROZEN else 4
    with collector_of(mode, steps, num_envs=num_envs) as collector:
        first = collector.collect()  # with FROZEN it may have fewer steps
        simulation = rollouts(mode, first.num_steps, count, num_envs=num_envs)
        for number, simulated in enumerate(simulation):
            rollout = collector.collect() if number else first
            wanted = by_definition(simulated, bootstrap)
            for name, array in estimates(rollout, simulated.table, bootstrap).items():
                valid = rollout.valid
                assert_identical(valid, ~np.isnan(wanted[name]))
                np.testing.assert_allclose(
                    array[valid], wanted[name][valid], **WITHIN, err_msg=f"{mode} {name}"
                )


@pytest.mark.parametrize("mode", ["NEXT_STEP", FROZEN])
def test_nan_in_stale_rows_changes_nothing(mode):
    with collector_of(mode, None if mode == FROZEN else 23) as collector:
        rollout = collector.collect()
    table = next(rollouts(mode, 1, 1)).table
    estimates(rollout, table)  # sets the values; sums computed before them have no bootstrap
    clean = estimates(rollout, table)
    batch = rollout.flatten()
    transitions = rollout.transitions(n_step=3, gamma=GAMMA)
    stale = ~rollout.valid
    assert stale.any()
    rollout.rewards[stale] = np.nan
    rollout.extras["half"][stale] = np.nan
    rollout.extras["advantages"] = np.where(stale, np.nan, clean["gae"])
    for name, array in estimates(rollout, table).items():
        assert_identical(array[rollout.valid], clean[name][rollout.valid])
        assert np.isfinite(array).all(), name
    assert_identical(rollout.flatten().rewards, batch.rewards)
    assert_identical(rollout.flatten().extras["half"], batch.extras["half"])
    parts = [*rollout.minibatches(7, seed=0), *rollout.minibatches(2, by="sequence", length=4)]
    for part in parts:
        valid = getattr(part, "valid", ...)
        assert np.isfinite(part.rewards[valid]).all()
        assert np.isfinite(part["advantages"][valid]).all()
    windows = rollout.windows(4)
    assert np.isfinite(windows.rewards).all()  # no window crosses the border of an episode
    assert np.isfinite(windows["advantages"]).all()
    after = rollout.transitions(n_step=3, gamma=GAMMA)
    assert_identical(after.rewards, transitions.rewards)
    assert np.isfinite(rollout.episodes().returns).all()
    assert np.isfinite(after.extras["advantages"]).all()
    assert np.isfinite(rollout.to_workspace()["env/cumulated_reward"]).all()
    if mode != FROZEN:
        assert np.isfinite(carry_after(rollout).returns).all()


def whole_episodes(mode):
    """The rows and targets of each episode that lies within one of two rollouts."""
    found = {}
    with collector_of(mode, 300, num_envs=4) as collector:
        for simulated in rollouts(mode, 300, 2, num_envs=4):
            rollout = collector.collect()
            outputs = estimates(rollout, simulated.table)
            rows = rollout.transitions()
            columns = [rows.observations, rows.next_observations, rows.terminated, rows.truncated]
            columns += [rows.rewards, *(outputs[name][rollout.valid] for name in sorted(outputs))]
            table = np.column_stack(columns).round(11)
            for number, episode in enumerate(rollout.episodes(complete_only=True)):
                if episode.length == episode.stop - episode.start:
                    mine = table[rows.episodes == number]
                    assert len(mine) == episode.length
                    assert mine[0, 0] not in found
                    found[mine[0, 0]] = collections.Counter(map(tuple, mine.tolist()))
    return found


def test_the_modes_give_the_same_transitions_with_the_same_targets():
    """Compared as multisets, for every episode that is complete in the rollouts of all modes."""
    found = [whole_episodes(mode) for mode in ("NEXT_STEP", "SAME_STEP", "DISABLED")]
    common = set.intersection(*(set(episodes) for episodes in found))
    assert len(common) > 400
    for first in common:
        assert found[0][first] == found[1][first] == found[2][first]


@pytest.mark.parametrize("mode", MODES)
def test_values_come_from_one_call_on_the_needed_observations(mode):
    with collector_of(mode, None if mode == FROZEN else 17) as collector:
        rollout = collector.collect()
    inputs = rollout.value_inputs()
    shown = rollout.observations.size
    assert len(inputs) == shown + len(rollout.final_index)
    ends = rollout.terminated | rollout.truncated
    assert len(rollout.final_index) == (ends.sum() if mode in ("SAME_STEP", "DISABLED") else 0)
    rollout.set_values(inputs)
    assert_identical(rollout.values, rollout.observations[..., 0])
    assert_identical(rollout.next_values, rollout.next_observations()[..., 0])
    assert_identical(rollout.final_values, rollout.final_observations[..., 0])
    # The dtype of the values decides, not that of the rewards.
    rollout.set_values(inputs[:, 0].astype(np.float32))
    assert rollout.gae(0.9, 0.8)[0].dtype == np.float32


def test_out_discount_arrays_and_num_threads_reach_the_estimators():
    with collector_of("SAME_STEP", 30) as collector:
        rollout = collector.collect()
    rollout.set_values(np.sin(rollout.value_inputs()))
    out = (np.empty((30, 5)), np.empty((30, 5)))
    gamma = np.full((30, 5), 0.9)
    results = rollout.gae(gamma, gae_lambda=0.8, out=out, num_threads=1)
    assert results[0] is out[0]
    wanted = returns.gae(
        rollout.rewards,
        rollout.values[:-1],
        rollout.next_values,
        rollout.terminated,
        rollout.truncated,
        gamma=0.9,
        gae_lambda=0.8,
    )
    assert_identical(results, wanted)


def test_bad_input_of_estimators_is_refused():
    with collector_of("SAME_STEP", 8) as collector:
        rollout = collector.collect()
    needed = len(rollout.value_inputs())
    for call in (rollout.gae, rollout.gae_normalized, rollout.lambda_returns):
        with pytest.raises(ValueError, match="set_values"):
            call(0.9, 0.9)
    with pytest.raises(ValueError, match=rf"shape \({needed},\).*\(8 \+ 1\) \* 5"):
        rollout.set_values(np.zeros(needed - 1))
    with pytest.raises(ValueError, match="shape"):
        rollout.set_values(np.zeros((needed, 2)))
    with pytest.raises(TypeError, match="float32 or float64"):
        rollout.set_values(np.zeros(needed, int))
    with pytest.raises(ValueError, match="there are no values"):
        _ = rollout.next_values
    rollout.set_values(np.zeros((needed, 1)))
    for gamma, lam in ((1.1, 0.9), (0.9, -0.1), (np.nan, 0.9)):
        with pytest.raises(ValueError, match=r"\[0, 1\]"):
            rollout.gae(gamma, lam)
    with pytest.raises(ValueError, match="bootstrap"):
        rollout.gae(0.9, 0.9, bootstrap="sometimes")
    with pytest.raises(ValueError, match="ratios"):
        rollout.vtrace(np.ones((8, 4)), 0.9)
    with pytest.raises(TypeError, match="q_values"):
        rollout.retrace(np.ones((8, 5), int), np.ones((8, 5)), 0.9, 0.9)


def test_rollout_and_collector_are_exported():
    assert cartwheel.Rollout is cartwheel.rollouts.Rollout
    assert cartwheel.Collector is cartwheel.rollouts.Collector
