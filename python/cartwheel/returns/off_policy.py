"""Off-policy targets: from transitions of another policy than the learned one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cartwheel._cartwheel as native
from cartwheel._internal.suggestions import checks_keywords
from cartwheel.returns.arrays import as_floats, as_numbers, as_output, as_outputs, as_transitions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel._internal.literals import Bootstrap
    from cartwheel._internal.nested import Array


@checks_keywords
def vtrace(
    rewards: Array,
    values: Array,
    next_values: Array,
    ratios: Array,
    terminated: Array,
    truncated: Array,
    *,
    valid: Array | None = None,
    gamma: Array,
    lambda_: Array = 1.0,
    rho_bar: float = 1.0,
    c_bar: float = 1.0,
    pg_rho_bar: float = 1.0,
    bootstrap: Bootstrap = "truncated",
    num_threads: int | None = None,
    out: tuple[Array, Array] | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Computes V-trace value targets, and the advantages of the policy gradient.

    .. code-block:: text

        rho_t = min(rho_bar, w_t),   c_t = lambda * min(c_bar, w_t)
        e_t   = rho_t * (r_t + gamma * (bootstraps_t ? v_next_t : 0) - v_t)
                + gamma * c_t * (over_t ? 0 : e_{t+1}),   e_T = 0,      targets = v + e
        y_t   = goes_on_t ? lambda * targets_{t+1} + (1 - lambda) * v_next_t
                          : bootstraps_t ? v_next_t : 0
        pg_advantage_t = min(pg_rho_bar, w_t) * (r_t + gamma * y_t - v_t)

    An episode continues at ``t`` if it is not over and row ``t + 1`` is in the rollout and valid.

    Source: L. Espeholt et al., "IMPALA: Scalable Distributed Deep-RL with Importance Weighted
    Actor-Learner Architectures" (2018), equation 1 and section 4.2.

    Args:
        rewards: Rewards ``[T, N]``.
        values: Values of the observations before each step, ``[T, N]``.
        next_values: Values of the true next observations, ``[T, N]``, see :func:`next_values`.
        ratios: Importance ratios ``w``, ``[T, N]``: the probability of the action under the policy
            that is learned, divided by its probability under the policy that acted. (Not their
            logarithms.)
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        valid: Which rows are transitions, ``[T, N]``, see :func:`valid_mask`; ``None``: all.
        gamma: Discount in [0, 1], or one for each row, ``[T, N]``.
        lambda_: Decay of the traces in [0, 1], or one for each row, ``[T, N]``.
        rho_bar: Cap of the ratios in the temporal differences, positive, may be infinite.
        c_bar: Cap of the ratios in the traces, positive, may be infinite.
        pg_rho_bar: Cap of the ratios in the advantages, positive, may be infinite.
        bootstrap: ``"truncated"``, ``"always"`` or ``"never"``.
        num_threads: Threads to compute on; ``None``: as many as are faster.
        out: Arrays ``[T, N]`` for targets and advantages.

    Returns:
        Targets and advantages, ``[T, N]``. Rows that are not valid have their value as the target
        and the advantage 0.

    Raises:
        TypeError: A dtype is wrong, or two dtypes differ.
        ValueError: Shapes do not agree, the rollout is empty, a number is outside [0, 1], a cap is
            not positive, ``bootstrap`` is unknown, or ``out`` cannot be filled.
    """
    dtype, arrays = as_floats(values=values, next_values=next_values, ratios=ratios)
    transitions = as_transitions(
        rewards, terminated, truncated, valid, gamma, bootstrap, num_threads, dtype=dtype
    )
    lambda_ = as_numbers("lambda_", lambda_, dtype)
    names = ("values", "next_values", "ratios")
    outputs = as_outputs(
        out,
        transitions.shape,
        {"targets": dtype, "pg_advantages": dtype},
        {**vars(transitions), **dict(zip(names, arrays, strict=True)), "lambda_": lambda_},
    )
    native.vtrace(transitions, arrays, lambda_, (rho_bar, c_bar, pg_rho_bar), outputs)
    targets, pg_advantages = outputs
    return targets, pg_advantages


@checks_keywords
def retrace(
    rewards: Array,
    q_values: Array,
    next_values: Array,
    ratios: Array,
    terminated: Array,
    truncated: Array,
    *,
    valid: Array | None = None,
    gamma: Array,
    lambda_: Array,
    c_bar: float = 1.0,
    bootstrap: Bootstrap = "truncated",
    num_threads: int | None = None,
    out: Array | None = None,
) -> NDArray[Any]:
    """Computes Retrace(lambda) targets of action values.

    .. code-block:: text

        c_t = lambda * min(c_bar, w_t)
        Y_t = r_t + gamma * (bootstraps_t ? q_next_t : 0)
              + gamma * (over_t ? 0 : c_{t+1} * (Y_{t+1} - q_{t+1})),   last term 0 in the last step

    Related methods differ only in ``c``. Importance sampling uses ``c_bar=float("inf")``, tree
    backup uses the policy's probabilities of the actions as ``ratios``, and off-policy Q(lambda)
    uses ones.

    Source: R. Munos et al., "Safe and Efficient Off-Policy Reinforcement Learning" (2016), equation
    4.

    Args:
        rewards: Rewards ``[T, N]``.
        q_values: Values ``q`` of the actions that were taken, ``[T, N]``.
        next_values: Values of the true next observations, in expectation over the actions of the
            policy that is learned, ``q_next``, ``[T, N]``.
        ratios: Importance ratios ``w``, ``[T, N]``: the probability of the action under the policy
            that is learned, divided by its probability under the policy that acted. (Not their
            logarithms.)
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        valid: Which rows are transitions, ``[T, N]``, see :func:`valid_mask`; ``None``: all.
        gamma: Discount in [0, 1], or one for each row, ``[T, N]``.
        lambda_: Decay of the traces in [0, 1], or one for each row, ``[T, N]``.
        c_bar: Cap of the ratios, positive, may be infinite.
        bootstrap: ``"truncated"``, ``"always"`` or ``"never"``.
        num_threads: Threads to compute on; ``None``: as many as are faster.
        out: An array ``[T, N]`` for the targets.

    Returns:
        Targets, ``[T, N]``; 0 where rows are not valid. Ratios and action values of such rows are
        not used.

    Raises:
        TypeError: A dtype is wrong, or two dtypes differ.
        ValueError: Shapes do not agree, the rollout is empty, a number is outside [0, 1], a cap is
            not positive, ``bootstrap`` is unknown, or ``out`` cannot be filled.
    """
    dtype, arrays = as_floats(q_values=q_values, next_values=next_values, ratios=ratios)
    transitions = as_transitions(
        rewards, terminated, truncated, valid, gamma, bootstrap, num_threads, dtype=dtype
    )
    lambda_ = as_numbers("lambda_", lambda_, dtype)
    names = ("q_values", "next_values", "ratios")
    inputs = {**vars(transitions), **dict(zip(names, arrays, strict=True)), "lambda_": lambda_}
    output = as_output("targets", out, transitions.shape, dtype, inputs)
    native.retrace(transitions, arrays, lambda_, c_bar, output)
    return output
