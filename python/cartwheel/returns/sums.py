"""Discounted sums of rewards: of whole episodes, of n steps, and lambda-returns."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np

import cartwheel._cartwheel as native
from cartwheel._internal.suggestions import checks_keywords
from cartwheel.returns.arrays import as_floats, as_numbers, as_output, as_outputs, as_transitions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel._internal.literals import Bootstrap
    from cartwheel._internal.nested import Array


class NStepReturns(NamedTuple):
    """The result of :func:`n_step_returns`. Rows that are not valid are 0.

    Attributes:
        returns: The sum of the discounted rewards of each window, ``[T, N]``; with ``next_values``,
            plus the discounted value of the observation after the window.
        discounts: The factor of the value of the observation after the window, ``[T, N]``: the
            product of the window's discounts; 0 where nothing is bootstrapped.
        lengths: Steps of each window, ``[T, N]``, ``int64``: the last row of the window at ``t`` is
            ``t + lengths[t] - 1``.
    """

    returns: NDArray[Any]
    discounts: NDArray[Any]
    lengths: NDArray[np.int64]


@checks_keywords
def lambda_returns(
    rewards: Array,
    next_values: Array,
    terminated: Array,
    truncated: Array,
    *,
    valid: Array | None = None,
    gamma: Array,
    lambda_: Array,
    bootstrap: Bootstrap = "truncated",
    num_threads: int | None = None,
    out: Array | None = None,
) -> NDArray[Any]:
    """Computes lambda-returns, the geometric mixture of all n-step returns.

    .. code-block:: text

        G_t = r_t + gamma * (goes_on_t ? (1 - lambda) * v_next_t + lambda * G_{t+1}
                                       : bootstraps_t ? v_next_t : 0)

    An episode continues at ``t`` if it is not over and row ``t + 1`` is in the rollout and valid.
    The results are the returns of :func:`gae` and the targets of TD(lambda). With the greatest
    action values as ``next_values``, they are the targets of Q(lambda) in PQN.

    Source: R. S. Sutton, A. G. Barto, "Reinforcement Learning: An Introduction" (2018), section
    12.8.

    Args:
        rewards: Rewards ``[T, N]``.
        next_values: Values of the true next observations, ``[T, N]``, see :func:`next_values`.
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        valid: Which rows are transitions, ``[T, N]``, see :func:`valid_mask`; ``None``: all.
        gamma: Discount in [0, 1], or one for each row, ``[T, N]``.
        lambda_: Weight of the longer returns in [0, 1], or one for each row, ``[T, N]``.
        bootstrap: ``"truncated"``, ``"always"`` or ``"never"``.
        num_threads: Threads to compute on; ``None``: as many as are faster.
        out: An array ``[T, N]`` for the returns.

    Returns:
        Lambda-returns, ``[T, N]``; 0 where rows are not valid.

    Raises:
        TypeError: A dtype is wrong, or two dtypes differ.
        ValueError: Shapes do not agree, the rollout is empty, a number is outside [0, 1],
            ``bootstrap`` is unknown, or ``out`` cannot be filled.
    """
    dtype, (then,) = as_floats(next_values=next_values)
    transitions = as_transitions(
        rewards, terminated, truncated, valid, gamma, bootstrap, num_threads, dtype=dtype
    )
    lambda_ = as_numbers("lambda_", lambda_, dtype)
    inputs = {**vars(transitions), "next_values": then, "lambda_": lambda_}
    output = as_output("returns", out, transitions.shape, dtype, inputs)
    native.lambda_returns(transitions, then, lambda_, output)
    return output


@checks_keywords
def discounted_returns(
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
    """Computes Monte-Carlo returns: discounted rewards from each row to its episode's end.

    .. code-block:: text

        G_t = r_t + gamma * (goes_on_t ? G_{t+1} : bootstraps_t ? v_next_t : 0)

    An episode continues at ``t`` if it is not over and row ``t + 1`` is in the rollout and valid.

    Source: R. S. Sutton, A. G. Barto, "Reinforcement Learning: An Introduction" (2018), equation
    3.9.

    Args:
        rewards: Rewards ``[T, N]``.
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        next_values: Values of the true next observations, ``[T, N]``, see :func:`next_values`;
            ``None``: nothing is bootstrapped, not even at the end of the rollout.
        valid: Which rows are transitions, ``[T, N]``, see :func:`valid_mask`; ``None``: all.
        gamma: Discount in [0, 1], or one for each row, ``[T, N]``.
        bootstrap: ``"truncated"``, ``"always"`` or ``"never"``.
        num_threads: Threads to compute on; ``None``: as many as are faster.
        out: An array ``[T, N]`` for the sums.

    Returns:
        Discounted sums, ``[T, N]``; 0 where rows are not valid.

    Raises:
        TypeError: A dtype is wrong, or two dtypes differ.
        ValueError: Shapes do not agree, the rollout is empty, a number is outside [0, 1],
            ``bootstrap`` is unknown, or ``out`` cannot be filled.
    """
    dtype, then = _optional(next_values)
    transitions = as_transitions(
        rewards, terminated, truncated, valid, gamma, bootstrap, num_threads, dtype=dtype
    )
    inputs = {**vars(transitions), "next_values": then}
    output = as_output("returns", out, transitions.shape, transitions.rewards.dtype, inputs)
    native.discounted(transitions, then, output)
    return output


@checks_keywords
def n_step_returns(
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
    """Computes n-step returns, the discounts of the values after them, and their lengths.

    A window of ``m`` steps begins at each valid row. It ends after ``n`` steps, at the end of the
    episode, or at the end of the rollout, whichever comes first:

    .. code-block:: text

        R_t    = sum_{k<m} gamma^k * r_{t+k}
        disc_t = bootstraps_{t+m-1} ? gamma^m : 0
        target = R_t + disc_t * v_next_{t+m-1}

    With ``next_values``, the returns are the targets. Without, they are ``R``: use them for a
    replay buffer, where values are known only when a batch is drawn. Store ``discounts`` there,
    too, because they differ from row to row.

    Source: R. S. Sutton, A. G. Barto, "Reinforcement Learning: An Introduction" (2018), equation
    7.1.

    Args:
        rewards: Rewards ``[T, N]``.
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        n: Maximum number of steps of a window, at least 1.
        next_values: Values of the true next observations, ``[T, N]``, see :func:`next_values`; or
            ``None``.
        valid: Which rows are transitions, ``[T, N]``, see :func:`valid_mask`; ``None``: all.
        gamma: Discount in [0, 1], or one for each row, ``[T, N]``.
        bootstrap: ``"truncated"``, ``"always"`` or ``"never"``.
        num_threads: Threads to compute on; ``None``: as many as are faster.
        out: Arrays ``[T, N]`` for returns, discounts and lengths (``int64``).

    Returns:
        Returns, discounts and lengths.

    Raises:
        TypeError: A dtype is wrong, two dtypes differ, or ``n`` is not an integer.
        ValueError: Shapes do not agree, the rollout is empty, a number is outside [0, 1], ``n`` is
            below 1, ``bootstrap`` is unknown, or ``out`` cannot be filled.
    """
    steps = operator.index(n)
    if steps < 1:
        raise ValueError(f"`n` must be at least 1, got {steps}.")
    dtype, then = _optional(next_values)
    transitions = as_transitions(
        rewards, terminated, truncated, valid, gamma, bootstrap, num_threads, dtype=dtype
    )
    floats = transitions.rewards.dtype
    outputs = as_outputs(
        out,
        transitions.shape,
        {"returns": floats, "discounts": floats, "lengths": np.int64},
        {**vars(transitions), "next_values": then},
    )
    longest = len(transitions.rewards) + 1  # longer windows give the same results
    native.n_step(transitions, then, min(steps, longest), outputs)
    return NStepReturns(*outputs)


def _optional(next_values: Array | None) -> tuple[np.dtype[Any] | None, NDArray[Any] | None]:
    if next_values is None:
        return None, None
    dtype, (then,) = as_floats(next_values=next_values)
    return dtype, then
