"""Confidence intervals of the mean of episodes, stratified by environment."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def mean_interval(values: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """A confidence interval for the mean over the environments of each one's expected value.

    Every environment ``i`` of ``N`` is a stratum with ``E`` episodes, mean ``m_i`` and sample
    variance ``s_i²``. The half width is ``t · sqrt(Σ s_i² / E) / N``, with ``t`` from Student's
    distribution with ``(E - 1) · (Σ s_i²)² / Σ s_i⁴`` degrees of freedom. How much environments
    differ from each other makes it no wider. Source: W. G. Cochran, Sampling Techniques, 3rd
    edition (1977), sections 5.4 and 5.6; the degrees of freedom are F. E. Satterthwaite's (1946).

    With ``E = 1`` an environment's own variance cannot be estimated. The rows then count as one
    sample of ``N``, and the interval is the usual one of a mean: right for copies of one
    environment, too wide for environments that differ.

    Args:
        values: One value an episode, of shape ``(num_envs, episodes_per_env)``.
        confidence: From 0 to 1, exclusive.

    Returns:
        Lower and upper end; NaN for a single episode, whose spread is unknown.
    """
    if values.shape[1] == 1:
        values = values.T
    num_envs, episodes = values.shape
    mean = float(values.mean())
    if episodes == 1:
        return math.nan, math.nan
    variances = values.var(axis=1, ddof=1)
    total = float(variances.sum())
    if total == 0.0:
        return mean, mean
    shares = variances / total  # squares of tiny variances would be lost
    freedom = (episodes - 1) / float((shares**2).sum())
    half = student_t((1 + confidence) / 2, freedom) * math.sqrt(total / episodes) / num_envs
    return mean - half, mean + half


def rate_interval(successes: int, episodes: int, confidence: float) -> tuple[float, float]:
    """Wilson's score interval for a rate of successes.

    ``(p + z²/2n ± z · sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n)``, where ``p`` is the observed rate of
    ``n`` episodes and ``z`` a quantile of the normal distribution. It stays within [0, 1] and has a
    width where all or none succeed. Strata are pooled: rates that differ between environments make
    the variance of their mean smaller, never greater, so the interval is wide enough for them too.
    Source: E. B. Wilson, J. Am. Stat. Assoc. 22 (1927); recommended for few episodes by L. D.
    Brown, T. T. Cai and A. DasGupta, Statistical Science 16 (2001).
    """
    rate = successes / episodes
    z = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    weight = z * z / episodes
    centre = rate + weight / 2
    half = z * math.sqrt(rate * (1 - rate) / episodes + weight / (4 * episodes))
    return (centre - half) / (1 + weight), (centre + half) / (1 + weight)


def student_t(probability: float, freedom: float) -> float:
    """The quantile of Student's distribution.

    With ``t = sqrt(freedom) · tan(angle)`` its distribution function is ``1/2 + Γ((freedom + 1)/2)
    / (sqrt(π) · Γ(freedom/2)) · ∫ cos(φ)^(freedom - 1) dφ`` over ``φ`` from 0 to ``angle``: a
    smooth integrand on a bounded interval, which Simpson's rule takes to ten digits. (M.
    Abramowitz and I. A. Stegun, Handbook of Mathematical Functions, 26.7.1, substituted.)

    Args:
        probability: Of a value below the quantile, from 0.5 to 1, exclusive.
        freedom: Degrees of freedom, at least 1; need not be whole.
    """
    points = np.linspace(0.0, 1.0, 1025)
    weights = np.full(1025, 2 / 3072)
    weights[1::2], weights[[0, -1]] = 4 / 3072, 1 / 3072
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    wanted = (probability - 0.5) * math.sqrt(math.pi) / scale

    def area(angle: float) -> float:
        return angle * float((weights * np.cos(angle * points) ** (freedom - 1)).sum())

    # No float below 1 has a quantile of 40 where that is less than a right angle; a narrow peak
    # between the points of a wider interval would be missed.
    low, high = 0.0, min(math.pi / 2, 40 / math.sqrt(freedom))
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if area(middle) < wanted else (low, middle)
    return math.sqrt(freedom) * math.tan(middle)
