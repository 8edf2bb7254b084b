"""Discounted sums of rewards: whole, of n steps, and the mixture of all of them."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np

import cartwheel._cartwheel as native
from cartwheel.returns.arrays import as_floats, as_numbers, as_output, as_outputs
from cartwheel.returns.transitions import as_transitions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel.choices import Bootstrap
    from cartwheel.spaces.arrays import Array


class NStepReturns(NamedTuple):
    """What :func:`n_step` gives. Rows that are not valid hold 0.

    Attributes:
        returns: Sums of the discounted rewards of each window, ``[T, N]``; with ``next_values``
            also the value that follows, discounted.
        discounts: By what the value of the observation after the window counts, ``[T, N]``: a
            product of as many discounts as the window is long, 0 where nothing is bootstrapped.
        lengths: Steps of each window, ``[T, N]``, ``int64``: the last row of the window at ``t`` is
            ``t + lengths[t] - 1``.
    """

    returns: NDArray[Any]
    discounts: NDArray[Any]
    lengths: NDArray[np.int64]


def lambda_returns(
    rewards: Array,
    next_values: Array,
    terminated: Array,
    truncated: Array,
    *,
    valid: Array | None = None,
    gamma: Array,
    lam: Array,
    bootstrap: Bootstrap = "truncated",
    num_threads: int | None = None,
    out: Array | None = None,
) -> NDArray[Any]:
    """The geometric mixture of all n-step returns.

    .. code-block:: text

        G_t = r_t + gamma * (goes_on_t ? (1 - lam) * v_next_t + lam * G_{t+1}
                                       : bootstraps_t ? v_next_t : 0)

    where an episode goes on at ``t`` if it is not over and row ``t + 1`` is in the rollout and
    valid. They are the returns of :func:`gae`, the targets of TD(lambda), and with the greatest
    action value in the place of ``next_values`` those of Q(lambda) in PQN.

    Source: R. S. Sutton, A. G. Barto, "Reinforcement Learning: An Introduction" (2018), section
    12.8.

    Args:
        rewards: Rewards ``[T, N]``.
        next_values: Values of the true next observations, ``[T, N]``, see :func:`next_values`.
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        valid: Which rows are transitions, ``[T, N]``, see :func:`valid_mask`; ``None``: all.
        gamma: Discount in [0, 1], or one for each row, ``[T, N]``.
        lam: Weight of the longer returns in [0, 1], or one for each row, ``[T, N]``.
        bootstrap: ``"truncated"``, ``"always"`` or ``"never"``.
        num_threads: Threads to compute on; ``None``: as many as pay.
        out: An array ``[T, N]`` for the returns.

    Returns:
        Lambda-returns, ``[T, N]``; 0 where rows are not valid.

    Raises:
        TypeError: A wrong dtype, or two that differ.
        ValueError: Shapes that do not agree, an empty rollout, a number outside of [0, 1], an
            unknown ``bootstrap``, or an ``out`` that cannot be filled.
    """
    dtype, (then,) = as_floats(next_values=next_values)
    transitions = as_transitions(
        rewards,
        terminated,
        truncated,
        valid=valid,
        gamma=gamma,
        bootstrap=bootstrap,
        num_threads=num_threads,
        dtype=dtype,
    )
    lam = as_numbers("lam", lam, dtype)
    inputs = {**vars(transitions), "next_values": then, "lam": lam}
    output = as_output("returns", out, transitions.shape, dtype, inputs)
    native.lambda_returns(transitions, then, lam, output)
    return output


def discounted(
    rewards: Array,
    terminated: Array,
    truncated: Array,
    *,
    next_values: Array | None = None,
    valid: Array | None = None,
    gamma: Array,
    bootstrap: Bootstrap = "truncated",
    num_threads: int | None = None,
    out: Array | None = None,
) -> NDArray[Any]:
    """The discounted rewards of each row's episode from that row on: Monte-Carlo returns.

    .. code-block:: text

        G_t = r_t + gamma * (goes_on_t ? G_{t+1} : bootstraps_t ? v_next_t : 0)

    where an episode goes on at ``t`` if it is not over and row ``t + 1`` is in the rollout and
    valid.

    Source: R. S. Sutton, A. G. Barto, "Reinforcement Learning: An Introduction" (2018), equation
    3.9.

    Args:
        rewards: Rewards ``[T, N]``.
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        next_values: Values of the true next observations, ``[T, N]``, see :func:`next_values`;
            ``None``: nothing is bootstrapped, at the end of the rollout neither.
        valid: Which rows are transitions, ``[T, N]``, see :func:`valid_mask`; ``None``: all.
        gamma: Discount in [0, 1], or one for each row, ``[T, N]``.
        bootstrap: ``"truncated"``, ``"always"`` or ``"never"``.
        num_threads: Threads to compute on; ``None``: as many as pay.
        out: An array ``[T, N]`` for the sums.

    Returns:
        Discounted sums, ``[T, N]``; 0 where rows are not valid.

    Raises:
        TypeError: A wrong dtype, or two that differ.
        ValueError: Shapes that do not agree, an empty rollout, a number outside of [0, 1], an
            unknown ``bootstrap``, or an ``out`` that cannot be filled.
    """
    dtype, then = _optional(next_values)
    transitions = as_transitions(
        rewards,
        terminated,
        truncated,
        valid=valid,
        gamma=gamma,
        bootstrap=bootstrap,
        num_threads=num_threads,
        dtype=dtype,
    )
    inputs = {**vars(transitions), "next_values": then}
    output = as_output("returns", out, transitions.shape, transitions.rewards.dtype, inputs)
    native.discounted(transitions, then, output)
    return output


def n_step(
    rewards: Array,
    terminated: Array,
    truncated: Array,
    *,
    n: SupportsIndex,
    next_values: Array | None = None,
    valid: Array | None = None,
    gamma: Array,
    bootstrap: Bootstrap = "truncated",
    num_threads: int | None = None,
    out: tuple[Array, Array, Array] | None = None,
) -> NStepReturns:
    """n-step returns, the discount of the value that follows each, and how many steps it spans.

    A window of ``m`` steps begins at each valid row. It ends after ``n`` steps, at the end of the
    episode or of the rollout, whatever comes first:

    .. code-block:: text

        R_t    = sum_{k<m} gamma^k * r_{t+k}
        disc_t = bootstraps_{t+m-1} ? gamma^m : 0
        target = R_t + disc_t * v_next_{t+m-1}

    With ``next_values`` the returns are the targets. Without, they are ``R``, for a replay buffer,
    whose values are known only when a batch is drawn: then store ``discounts``, which are no
    constant.

    Source: R. S. Sutton, A. G. Barto, "Reinforcement Learning: An Introduction" (2018), equation
    7.1.

    Args:
        rewards: Rewards ``[T, N]``.
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        n: Most steps of a window, at least 1.
        next_values: Values of the true next observations, ``[T, N]``, see :func:`next_values`; or
            ``None``.
        valid: Which rows are transitions, ``[T, N]``, see :func:`valid_mask`; ``None``: all.
        gamma: Discount in [0, 1], or one for each row, ``[T, N]``.
        bootstrap: ``"truncated"``, ``"always"`` or ``"never"``.
        num_threads: Threads to compute on; ``None``: as many as pay.
        out: Arrays ``[T, N]`` for returns, discounts and lengths (``int64``).

    Returns:
        Returns, discounts and lengths.

    Raises:
        TypeError: A wrong dtype, or two that differ; ``n`` is no integer.
        ValueError: Shapes that do not agree, an empty rollout, a number outside of [0, 1], ``n``
            below 1, an unknown ``bootstrap``, or an ``out`` that cannot be filled.
    """
    steps = operator.index(n)
    if steps < 1:
        raise ValueError(f"`n` must be at least 1, got {steps}.")
    dtype, then = _optional(next_values)
    transitions = as_transitions(
        rewards,
        terminated,
        truncated,
        valid=valid,
        gamma=gamma,
        bootstrap=bootstrap,
        num_threads=num_threads,
        dtype=dtype,
    )
    floats = transitions.rewards.dtype
    outputs = as_outputs(
        out,
        transitions.shape,
        {"returns": floats, "discounts": floats, "lengths": np.int64},
        {**vars(transitions), "next_values": then},
    )
    longest = len(transitions.rewards) + 1  # any window beyond the rollout is the same
    native.n_step(transitions, then, min(steps, longest), outputs)
    return NStepReturns(*outputs)


def _optional(next_values: Array | None) -> tuple[np.dtype[Any] | None, NDArray[Any] | None]:
    """Next values and their dtype, if there are any."""
    if next_values is None:
        return None, None
    dtype, (then,) = as_floats(next_values=next_values)
    return dtype, then
