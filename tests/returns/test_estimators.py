"""Every estimator equals its definition over the true transitions, in every autoreset mode."""

import numpy as np
import pytest

from cartwheel import returns
from tests.support.brute_force_returns import expected
from tests.support.simulated_rollouts import MODES, rollouts

BOOTSTRAPS = ("truncated", "always", "never")
RHO_BAR, C_BAR, PG_RHO_BAR = 1.2, 0.9, 1.5
N = 3

EXACT = 1e-12
ROUNDED = 2e-5  # float32: about 100 roundings of numbers up to 10


def arguments(rollout, bootstrap, dtype, stale):
    """The arguments of all estimators; stale rows have ``stale`` everywhere but in ``values``."""

    def cast(array):
        return array.astype(dtype)

    def after(kind):
        finals, index = rollout.finals(kind, bootstrap)
        given = {"final_values": cast(finals), "final_index": index} if len(finals) else {}
        values = returns.next_values(
            **rollout.mode_arguments,
            values=cast(rollout.table[kind][rollout.states]),
            terminated=rollout.terminated,
            truncated=rollout.truncated,
            bootstrap=bootstrap,
            **given,
        )
        return rollout.with_stale(values, stale)

    flags = {"terminated": rollout.terminated, "truncated": rollout.truncated}
    valid = returns.valid_mask(**rollout.mode_arguments, **flags, prev_done=rollout.prev_done)
    np.testing.assert_array_equal(valid, ~rollout.stale)
    common = {
        **flags,
        "rewards": cast(rollout.with_stale(rollout.rewards, stale)),
        "valid": valid,
        "gamma": cast(rollout.with_stale(rollout.of_states("gamma"), stale)),
        "bootstrap": bootstrap,
    }
    weight = cast(rollout.with_stale(rollout.of_states("lam"), stale))
    gae_lambda, lambda_ = {"gae_lambda": weight}, {"lambda_": weight}
    ratios = {"ratios": cast(rollout.with_stale(rollout.of_states("ratio"), stale))}
    values = {"values": cast(rollout.of_states("value"))}
    q_values = {"q_values": cast(rollout.with_stale(rollout.of_states("q_value"), stale))}
    then, q_then = {"next_values": after("value")}, {"next_values": after("expected_q")}
    caps = {"rho_bar": RHO_BAR, "c_bar": C_BAR, "pg_rho_bar": PG_RHO_BAR}
    return {
        "gae": {**common, **gae_lambda, **values, **then},
        "gae_normalized": {**common, **gae_lambda, **values, **then},
        "lambda_returns": {**common, **lambda_, **then},
        "discounted_returns": {**common, **then},
        "n_step_returns": {**common, **then, "n": N},
        "vtrace": {**common, **lambda_, **values, **then, **ratios, **caps},
        "retrace": {**common, **lambda_, **q_values, **q_then, **ratios, "c_bar": C_BAR},
    }


def outputs(name, keywords):
    """The outputs of an estimator as a tuple."""
    result = getattr(returns, name)(**keywords)
    return result if isinstance(result, tuple) else (result,)


#: The outputs of each estimator by definition.
DEFINITIONS = {
    "gae": (lambda run, i: run.gae(i), lambda run, i: run.gae(i) + run.values[i]),
    "gae_normalized": (
        lambda run, i: run.gae_normalized(i),
        lambda run, i: run.gae_normalized(i) + run.values[i],
    ),
    "lambda_returns": (lambda run, i: run.lambda_return(i),),
    "discounted_returns": (lambda run, i: run.n_step(i, len(run))[2],),
    "n_step_returns": (
        lambda run, i: run.n_step(i, N)[2],
        lambda run, i: run.n_step(i, N)[1],
        lambda run, i: run.n_step(i, N)[3],
    ),
    "vtrace": (
        lambda run, i: run.vtrace(i, RHO_BAR, C_BAR),
        lambda run, i: run.vtrace_advantage(i, RHO_BAR, C_BAR, PG_RHO_BAR),
    ),
    "retrace": (lambda run, i: run.retrace(i, C_BAR),),
}

#: Outputs that equal the row's value in rows that are not valid; other outputs are 0 there.
VALUED = {("gae", 1), ("gae_normalized", 1), ("vtrace", 0)}


@pytest.mark.parametrize("bootstrap", BOOTSTRAPS)
@pytest.mark.parametrize("steps", [1, 2, 17])
@pytest.mark.parametrize("mode", MODES)
def test_estimators_equal_their_definitions(mode, steps, bootstrap):
    for rollout in rollouts(mode, steps, count=max(2, 12 // steps)):
        exact = arguments(rollout, bootstrap, np.float64, stale=0.5)
        rounded = arguments(rollout, bootstrap, np.float32, stale=0.5)
        for name, definitions in DEFINITIONS.items():
            kinds = {"value": "q_value", "after": "expected_q"} if name == "retrace" else {}
            results, single = outputs(name, exact[name]), outputs(name, rounded[name])
            for number, of in enumerate(definitions):
                wanted = expected(rollout, bootstrap, of, **kinds)
                stale = exact[name]["values"] if (name, number) in VALUED else 0
                wanted = np.where(rollout.stale, stale, wanted)
                what = f"output {number} of {name}"
                np.testing.assert_allclose(results[number], wanted, 0, EXACT, err_msg=what)
                np.testing.assert_allclose(single[number], wanted, 0, ROUNDED, err_msg=what)
                if (name, number) != ("n_step_returns", 2):
                    assert results[number].dtype == np.float64
                    assert single[number].dtype == np.float32


@pytest.mark.parametrize("bootstrap", BOOTSTRAPS)
@pytest.mark.parametrize("steps", [1, 2, 17])
@pytest.mark.parametrize("mode", MODES)
def test_nan_in_stale_rows_reaches_no_valid_row(mode, steps, bootstrap):
    for rollout in rollouts(mode, steps, count=3):
        clean = arguments(rollout, bootstrap, np.float64, stale=0.5)
        dirty = arguments(rollout, bootstrap, np.float64, stale=np.nan)
        for name in clean:
            for one, other in zip(
                outputs(name, clean[name]), outputs(name, dirty[name]), strict=True
            ):
                assert np.isfinite(other).all()
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("bootstrap", ["truncated", "never"])
@pytest.mark.parametrize("mode", MODES)
def test_nan_in_unused_next_values_changes_nothing(mode, bootstrap):
    for rollout in rollouts(mode, 17, count=3):
        unused = rollout.over if bootstrap == "never" else rollout.terminated
        assert unused.any()
        for name, keywords in arguments(rollout, bootstrap, np.float64, stale=0.5).items():
            clean = outputs(name, keywords)
            dirty = np.where(unused, np.nan, keywords["next_values"])
            for one, other in zip(
                clean, outputs(name, {**keywords, "next_values": dirty}), strict=True
            ):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", MODES)
def test_a_scalar_discount_equals_a_constant_array(mode):
    for rollout in rollouts(mode, 17, count=1, alike=("gamma", "lam")):
        for name, keywords in arguments(rollout, "truncated", np.float64, stale=0.5).items():
            scalars = {**keywords, "gamma": rollout.table["gamma"][0]}
            for argument in {"gae_lambda", "lambda_"} & set(keywords):
                scalars[argument] = rollout.table["lam"][0]
            for one, other in zip(outputs(name, keywords), outputs(name, scalars), strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", MODES)
def test_without_next_values_nothing_is_bootstrapped(mode):
    for rollout in rollouts(mode, 17, count=3):
        every = arguments(rollout, "truncated", np.float64, stale=np.nan)
        for name, of in {
            "discounted_returns": lambda run, i: run.n_step(i, len(run))[0],
            "n_step_returns": lambda run, i: run.n_step(i, N)[0],
        }.items():
            keywords = {**every[name], "next_values": None}
            wanted = expected(rollout, "truncated", of)
            result = outputs(name, keywords)[0]
            np.testing.assert_allclose(
                result, np.where(rollout.stale, 0, wanted), rtol=0, atol=EXACT
            )


def test_n_step_discounts_and_lengths_allow_values_to_be_added_later():
    for rollout in rollouts("SAME_STEP", 17, count=3):
        keywords = arguments(rollout, "truncated", np.float64, stale=0.0)["n_step_returns"]
        then = keywords.pop("next_values")
        rewards, discounts, lengths = returns.n_step_returns(**keywords)
        last = np.arange(17)[:, None] + lengths - 1
        targets = rewards + discounts * np.take_along_axis(then, last, axis=0)
        np.testing.assert_allclose(
            targets,
            returns.n_step_returns(**keywords, next_values=then).returns,
            rtol=0,
            atol=EXACT,
        )


def test_retrace_without_a_cap_is_importance_sampling():
    for rollout in rollouts("NEXT_STEP", 17, count=2):
        keywords = arguments(rollout, "truncated", np.float64, stale=np.nan)["retrace"]
        kinds = {"value": "q_value", "after": "expected_q"}
        wanted = expected(rollout, "truncated", lambda run, i: run.retrace(i, np.inf), **kinds)
        sampled = returns.retrace(**{**keywords, "c_bar": np.inf})  # importance sampling
        np.testing.assert_allclose(sampled, np.where(rollout.stale, 0, wanted), atol=1e-10)
