"""Results of an evaluation, and confidence intervals stratified by environment."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Complete episodes, the same number of every environment; ``print(evaluation.summary())``.

    Every array but ``failures`` has shape ``(num_envs, episodes_per_env)``: ``returns[i, e]`` is
    that of episode ``e`` of environment ``i``. Arrays are read-only.

    Means are over all episodes, which is the mean over the environments of each one's mean.
    Intervals are for that mean, at the level ``confidence``; each property names the formula.

    Episodes that a failure cut short are not included. If failures depend on the course of an
    episode (long ones may fail more often), the mean is biased, and no interval corrects that: look
    at ``failures``.

    Success is measured in two ways: *at the end* (``success_at_end``, ``success_rate``), if the
    last step of an episode reported it, and *once* (``success_once``, ``success_once_rate``), if
    any of its steps did. They are equal where success ends the episode, and may differ where it
    continues, as with ``ignore_terminations=True``.

    Attributes:
        returns: Sums of rewards, ``float64``, not discounted.
        lengths: Steps, ``int64``.
        terminated: ``bool``: whether the last step was a termination.
        truncated: ``bool``: whether it was a truncation; both may be true.
        success_at_end: ``bool``: ``is_success``, or else ``success``, in the info of the last step
            of the episode; an array counts as true if all of it is true, ``None`` as not reported.
            False where an episode did not report. ``None`` if no episode did.
        failures: Episodes of each environment that a failure cut short, ``int64`` of shape
            ``(num_envs,)``. They are not in the other arrays: another episode was played instead of
            each.
        seed: The seed of the first episodes, as it was given.
        confidence: The level of the intervals.
        success_once: ``bool``: whether any step of the episode reported success, read as
            ``success_at_end``. ``None`` if no step of any episode reported.
    """

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    success_at_end: NDArray[np.bool_] | None
    failures: NDArray[np.int64]
    seed: Any
    confidence: float
    success_once: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        """Makes the arrays read-only, so that all properties agree."""
        arrays = (self.returns, self.lengths, self.terminated, self.truncated, self.failures)
        for array in (*arrays, self.success_at_end, self.success_once):
            if array is not None:
                array.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Makes the arrays of a copy read-only, too."""
        vars(self).update(state)
        self.__post_init__()

    @property
    def num_envs(self) -> int:
        """Number of environments."""
        return len(self.returns)

    @property
    def episodes_per_env(self) -> int:
        """Episodes of each environment."""
        return int(self.returns.shape[1])

    @property
    def mean_return(self) -> float:
        """Mean of the returns."""
        return float(self.returns.mean())

    @property
    def std_return(self) -> float:
        """Sample standard deviation of all returns (divided by their number less 1); or NaN."""
        return _std(self.returns)

    @property
    def return_interval(self) -> tuple[float, float]:
        """Confidence interval of the mean return, from Student's t, stratified by environment.

        ``mean ± t · sqrt(Σ s_i² / E) / N``, with the variance ``s_i²`` of environment ``i`` and
        ``(E - 1) · (Σ s_i²)² / Σ s_i⁴`` degrees of freedom (Cochran, Sampling Techniques, 1977,
        5.4). With one episode an environment, the environments count as copies of one; NaN for one
        episode in all.
        """
        return mean_interval(self.returns, self.confidence)

    @property
    def mean_length(self) -> float:
        """Mean of the lengths, steps."""
        return float(self.lengths.mean())

    @property
    def std_length(self) -> float:
        """Sample standard deviation of all lengths; NaN for one episode."""
        return _std(self.lengths)

    @property
    def length_interval(self) -> tuple[float, float]:
        """Confidence interval of the mean length, as that of the return."""
        return mean_interval(self.lengths.astype(np.float64), self.confidence)

    @property
    def success_rate(self) -> float | None:
        """Fraction of the episodes that succeeded at the end; ``None`` if none reported."""
        return _rate(self.success_at_end)

    @property
    def success_interval(self) -> tuple[float, float] | None:
        """Wilson's score interval (1927) of the success rate, all episodes pooled."""
        return _interval(self.success_at_end, self.confidence)

    @property
    def success_once_rate(self) -> float | None:
        """Fraction of the episodes that succeeded in any step; ``None`` if none reported."""
        return _rate(self.success_once)

    @property
    def success_once_interval(self) -> tuple[float, float] | None:
        """Confidence interval of the rate of success in any step, as that of the success rate."""
        return _interval(self.success_once, self.confidence)

    def summary(self) -> str:
        """Returns a readable summary: the episodes, and mean, spread and interval of each figure.

        Success is that at the end; the line ``once`` is about success in any step.

        The last line counts failures, if there were any.
        """
        size, level = self.returns.size, f"{self.confidence:.4g}"
        lines = [
            f"{size} episodes, {self.episodes_per_env} of each of {self.num_envs} environments, "
            f"seed {self.seed}"
        ]
        figures = [
            ("return", self.mean_return, self.std_return, self.return_interval),
            ("length", self.mean_length, self.std_length, self.length_interval),
        ]
        for name, mean, std, (low, high) in figures:
            lines.append(
                f"{name:8} {mean:.6g} ± {std:.4g}, {level} interval {low:.6g} to {high:.6g}"
            )
        rates = [
            ("success", self.success_rate, self.success_interval),
            ("once", self.success_once_rate, self.success_once_interval),
        ]
        for name, rate, interval in rates:
            if rate is not None and interval is not None:
                low, high = interval
                lines.append(f"{name:8} {rate:.4g}, {level} interval {low:.4g} to {high:.4g}")
        ended = f"{int(self.terminated.sum())} terminated, {int(self.truncated.sum())} truncated"
        lines.append(f"{'ends':8} {ended}")
        if self.failures.any():
            failed = f"{int(self.failures.sum())} more episodes were cut by failures and dropped"
            lines.append(f"{'failures':8} {failed}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        low, high = self.return_interval
        success = "" if self.success_rate is None else f", success_rate={self.success_rate:.4g}"
        failures = f", failures={int(self.failures.sum())}" if self.failures.any() else ""
        return (
            f"Evaluation({self.num_envs} envs × {self.episodes_per_env} episodes, "
            f"mean_return={self.mean_return:.6g} [{low:.6g}, {high:.6g}], "
            f"mean_length={self.mean_length:.6g}{success}{failures})"
        )


def _rate(successes: NDArray[np.bool_] | None) -> float | None:
    return None if successes is None else float(successes.mean())


def _interval(successes: NDArray[np.bool_] | None, confidence: float) -> tuple[float, float] | None:
    if successes is None:
        return None
    return rate_interval(int(successes.sum()), successes.size, confidence)


def _std(values: NDArray[Any]) -> float:
    return float(values.std(ddof=1)) if values.size > 1 else math.nan


def mean_interval(values: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """A confidence interval for the mean over the environments of each one's expected value.

    Every environment ``i`` of ``N`` is a stratum with ``E`` episodes, mean ``m_i`` and sample
    variance ``s_i²``. The half width is ``t · sqrt(Σ s_i² / E) / N``, with ``t`` from Student's
    distribution with ``(E - 1) · (Σ s_i²)² / Σ s_i⁴`` degrees of freedom. Differences between
    environments do not widen it. Source: W. G. Cochran, Sampling Techniques, 3rd
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
    center = rate + weight / 2
    half = z * math.sqrt(rate * (1 - rate) / episodes + weight / (4 * episodes))
    return (center - half) / (1 + weight), (center + half) / (1 + weight)


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
