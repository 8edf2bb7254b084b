"""Confidence intervals follow the published formulas and have the stated coverage."""

import math

import numpy as np
import pytest

from cartwheel.evaluation import Evaluation
from cartwheel.evaluation.result import mean_interval, rate_interval, student_t

PROBABILITIES = [0.5, 0.6, 0.75, 0.9, 0.95, 0.975, 0.995, 0.9995, 1 - 1e-6]


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_quantiles_are_those_of_students_distribution(probability):
    """Closed forms exist for 1, 2 and 4 degrees of freedom."""
    p = probability
    alpha = 4 * p * (1 - p)
    half = 4 * math.cos(math.acos(math.sqrt(alpha)) / 3) / math.sqrt(alpha)
    closed = {
        1: math.tan(math.pi * (p - 0.5)),
        2: (2 * p - 1) * math.sqrt(2 / alpha),
        4: math.sqrt(max(half - 4, 0.0)),
    }
    for freedom, quantile in closed.items():
        # In the tails, ten digits of a probability give fewer digits of the quantile.
        assert student_t(p, freedom) == pytest.approx(quantile, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize(
    ("freedom", "table"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (120, 1.980)],
)
def test_quantiles_are_those_of_the_tables(freedom, table):
    assert student_t(0.975, freedom) == pytest.approx(table, abs=5e-4)


def test_many_degrees_of_freedom_are_the_normal_distribution():
    assert student_t(0.975, 1e6) == pytest.approx(1.959964, abs=1e-5)


def test_quantiles_invert_the_distribution_for_any_degrees_of_freedom():
    for freedom in (1.0, 1.5, 3.3, 17.25, 400.5):
        for probability in (0.6, 0.9, 0.975):
            t = np.linspace(0, student_t(probability, freedom), 200_001)
            density = np.exp(
                math.lgamma((freedom + 1) / 2)
                - math.lgamma(freedom / 2)
                - (freedom + 1) / 2 * np.log1p(t * t / freedom)
            ) / math.sqrt(freedom * math.pi)
            area = float(((density[1:] + density[:-1]) / 2 * np.diff(t)).sum())
            assert 0.5 + area == pytest.approx(probability, abs=1e-7)


def test_equal_variances_have_all_degrees_of_freedom():
    values = np.array([[0.0, 2, 4], [10, 12, 14]])  # both have variance 4
    low, high = mean_interval(values, 0.95)
    half = 2.776445 * math.sqrt(2 * 4 / 3) / 2  # t for 4 degrees of freedom
    assert (low, high) == pytest.approx((7 - half, 7 + half), abs=1e-5)


def test_differences_between_environments_make_no_interval_wider():
    values = np.random.default_rng(1).normal(size=(4, 5))
    low, high = mean_interval(values, 0.9)
    far = mean_interval(values + 1000 * np.arange(4)[:, None], 0.9)
    assert far[1] - far[0] == pytest.approx(high - low)


def test_one_episode_per_environment_is_a_simple_sample():
    values = np.random.default_rng(2).normal(size=(6, 1))
    half = student_t(0.975, 5) * values.std(ddof=1) / math.sqrt(6)
    interval = mean_interval(values, 0.95)
    assert interval == pytest.approx((values.mean() - half, values.mean() + half))


def test_a_single_episode_has_no_interval_and_equal_episodes_one_of_width_zero():
    assert all(map(math.isnan, mean_interval(np.ones((1, 1)), 0.95)))
    assert mean_interval(np.array([[1.0, 1], [3, 3]]), 0.95) == (2, 2)
    flags = np.ones((1, 1), np.bool_)
    ones, no_failures = np.ones((1, 1)), np.zeros(1, int)
    lone = Evaluation(ones, ones.astype(int), flags, ~flags, None, no_failures, 0, 0.95)
    assert math.isnan(lone.std_return)
    assert "nan" in lone.summary()


def test_failures_change_no_figure_and_are_in_the_summary():
    values = np.random.default_rng(4).normal(size=(3, 5))
    rest = (np.full((3, 5), 7), values > 0, values <= 0, values > 1)
    without, with_some = (
        Evaluation(values, *rest, np.array(failures), 0, 0.95)
        for failures in ([0, 0, 0], [0, 4, 1])
    )
    for name in ("return", "length", "success"):
        assert getattr(without, f"{name}_interval") == getattr(with_some, f"{name}_interval")
    assert with_some.summary().splitlines()[:-1] == without.summary().splitlines()
    assert with_some.summary().splitlines()[-1].split()[:2] == ["failures", "5"]


@pytest.mark.slow
def test_intervals_contain_the_mean_as_often_as_their_confidence():
    chance = np.random.default_rng(3)
    means, spreads = np.array([[0.0], [50], [-20]]), np.array([[1.0], [4], [2]])
    hits = 0
    for _ in range(4000):
        low, high = mean_interval(means + spreads * chance.normal(size=(3, 6)), 0.9)
        hits += low <= 10 <= high
    # Three standard deviations of 4000 draws are 0.014; the degrees of freedom are approximate.
    assert hits / 4000 == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize(("successes", "episodes"), [(0, 10), (5, 10), (9, 10), (10, 10), (1, 1)])
def test_rates_at_the_ends_of_the_interval_are_just_accepted_by_the_score_test(successes, episodes):
    """Wilson's interval inverts the score test: at its ends the statistic equals the quantile."""
    rate = successes / episodes
    for end in rate_interval(successes, episodes, 0.95):
        assert -1e-12 <= end <= 1 + 1e-12
        deviation = abs(rate - end)
        assert deviation == pytest.approx(
            1.959964 * math.sqrt(max(end * (1 - end), 0) / episodes), abs=1e-6
        )
    low, high = rate_interval(successes, episodes, 0.95)
    assert high - low > 0.1
