"""Generalized advantage estimation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cartwheel._cartwheel as native
from cartwheel._internal.suggestions import checks_keywords
from cartwheel.returns.arrays import as_floats, as_numbers, as_outputs, as_transitions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel._internal.literals import Bootstrap
    from cartwheel._internal.nested import Array


@checks_keywords
def gae(
    rewards: Array,
    values: Array,
    next_values: Array,
    terminated: Array,
    truncated: Array,
    *,
    valid: Array | None = None,
    gamma: Array,
    gae_lambda: Array,
    bootstrap: Bootstrap = "truncated",
    num_threads: int | None = None,
    out: tuple[Array, Array] | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Computes generalized advantages, and the returns to which values are fitted.

    .. code-block:: text

        delta_t = r_t + gamma * (bootstraps_t ? v_next_t : 0) - v_t
        A_t     = delta_t + gamma * lambda * (over_t ? 0 : A_{t+1}),      A_T = 0
        returns = A + v

    Source: J. Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage
    Estimation" (2016), equation 16.

    Args:
        rewards: Rewards ``[T, N]``.
        values: Values of the observations before each step, ``[T, N]``.
        next_values: Values of the true next observations, ``[T, N]``, see :func:`next_values`.
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        valid: Which rows are transitions, ``[T, N]``, see :func:`valid_mask`; ``None``: all.
        gamma: Discount in [0, 1], or one for each row, ``[T, N]``.
        gae_lambda: Decay of the traces in [0, 1], or one for each row, ``[T, N]``.
        bootstrap: ``"truncated"``, ``"always"`` or ``"never"``.
        num_threads: Threads to compute on; ``None``: as many as are faster.
        out: Arrays ``[T, N]`` for advantages and returns.

    Returns:
        Advantages and returns, ``[T, N]``. Rows that are not valid have the advantage 0 and
        their value as their return.

    Raises:
        TypeError: A dtype is wrong, or two dtypes differ.
        ValueError: Shapes do not agree, the rollout is empty, a number is outside [0, 1],
            ``bootstrap`` is unknown, or ``out`` cannot be filled.
    """
    rows = (rewards, terminated, truncated, valid, gamma, bootstrap, num_threads)
    return _gae(rows, values, next_values, gae_lambda, out, normalized=False)


@checks_keywords
def gae_normalized(
    rewards: Array,
    values: Array,
    next_values: Array,
    terminated: Array,
    truncated: Array,
    *,
    valid: Array | None = None,
    gamma: Array,
    gae_lambda: Array,
    bootstrap: Bootstrap = "truncated",
    num_threads: int | None = None,
    out: tuple[Array, Array] | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Computes advantages whose weights of n-step returns sum to one over the known steps.

    ``G^(n)_t`` are the n-step returns that end within the episode and the rollout.

    .. code-block:: text

        A_t = (sum_n lambda^(n-1) G^(n)_t) / (sum_n lambda^(n-1)) - v_t,      returns = A + v

    :func:`gae` instead gives the longest of these returns the weight of all longer ones, so its
    mixture near an end differs from the mixture far from an end.

    Source: the option ``finite_horizon_gae`` of the PPO baseline of S. Tao et al., "ManiSkill3"
    (2024).

    Arguments, results and errors are those of :func:`gae`; ``gae_lambda`` is the decay of the
    weights.
    """
    rows = (rewards, terminated, truncated, valid, gamma, bootstrap, num_threads)
    return _gae(rows, values, next_values, gae_lambda, out, normalized=True)


def _gae(
    rows: tuple[Any, ...],
    values: Array,
    next_values: Array,
    gae_lambda: Array,
    out: tuple[Array, Array] | None,
    *,
    normalized: bool,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Computes :func:`gae`, or :func:`gae_normalized` if ``normalized``."""
    dtype, (now, then) = as_floats(values=values, next_values=next_values)
    transitions = as_transitions(*rows, dtype=dtype)
    gae_lambda = as_numbers("gae_lambda", gae_lambda, dtype)
    outputs = as_outputs(
        out,
        transitions.shape,
        {"advantages": dtype, "returns": dtype},
        {**vars(transitions), "values": now, "next_values": then, "gae_lambda": gae_lambda},
    )
    native.gae(transitions, now, then, gae_lambda, normalized, outputs)
    advantages, returns = outputs
    return advantages, returns
