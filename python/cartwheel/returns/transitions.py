"""Which rows of a rollout are transitions, which begin an episode, and their next values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import cartwheel._cartwheel as native
from cartwheel._internal.arguments import as_autoreset_mode
from cartwheel._internal.literals import Bootstrap, OnDone, check_choice
from cartwheel._internal.nested import as_array
from cartwheel.returns.arrays import as_flags, as_floats, as_output, as_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel._internal.literals import Mode
    from cartwheel._internal.nested import Array


def valid_mask(
    autoreset_mode: Mode,
    terminated: Array,
    truncated: Array,
    prev_done: Array,
    *,
    on_done: OnDone = "raise",
    out: Array | None = None,
) -> NDArray[np.bool_]:
    """Returns which rows are transitions of an environment.

    In ``NEXT_STEP``, the row after the end of an episode is not a transition: its action is ignored
    and its reward is 0. In ``DISABLED`` with ``on_done="freeze"``, all rows after the end are not,
    until the end of the rollout; the caller must not have reset them earlier. All other rows are
    transitions.

    Args:
        autoreset_mode: An ``AutoresetMode``, its value (``"NextStep"``) or its name
            (``"next_step"``).
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        prev_done: Which episodes ended in the last step before this rollout, ``[N]``:
            ``(terminated | truncated)[-1]`` of the rollout before. All false after a ``reset``.
        on_done: What stepping a finished environment does in ``DISABLED``, as for
            :class:`~cartwheel.VectorEnv`.
        out: A ``bool`` array ``[T, N]``.

    Returns:
        The mask, ``[T, N]``, ``bool``.

    Raises:
        TypeError: A dtype is wrong.
        ValueError: Shapes do not agree, the rollout is empty, a name is unknown, or two consecutive
            rows both end an episode in ``NEXT_STEP``, which is impossible.
    """
    native_mode = _native_mode(autoreset_mode, on_done)
    flags = (as_flags("terminated", terminated), as_flags("truncated", truncated))
    before = as_flags("prev_done", prev_done, 1)
    inputs = {"terminated": flags[0], "truncated": flags[1], "prev_done": before}
    output = as_output("the mask", out, flags[0].shape, np.bool_, inputs)
    native.valid_mask(native_mode, flags, before, output)
    return output


def is_first(
    autoreset_mode: Mode,
    terminated: Array,
    truncated: Array,
    prev_done: Array,
    initial: Array,
    *,
    on_done: OnDone = "raise",
    out: Array | None = None,
) -> NDArray[np.bool_]:
    """Returns which observations begin an episode, for the state of a recurrent policy.

    Set the state to zero before the policy gets a marked observation. In ``NEXT_STEP``, the row
    after the end of an episode is not marked: it still shows the final observation, whose value
    needs the state of that episode. The row after that one is marked.

    Args:
        autoreset_mode: An ``AutoresetMode``, its value (``"NextStep"``) or its name
            (``"next_step"``).
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        prev_done: As for :func:`valid_mask`, ``[N]``.
        initial: Whether the first observation of this rollout begins an episode, ``[N]``: the last
            row of the result for the rollout before. All true after a ``reset``.
        on_done: What stepping a finished environment does in ``DISABLED``, as for
            :class:`~cartwheel.VectorEnv`.
        out: A ``bool`` array ``[T + 1, N]``.

    Returns:
        The marks, ``[T + 1, N]``, ``bool``: one for each observation, including the observations
        after the last step.

    Raises:
        TypeError: A dtype is wrong.
        ValueError: Shapes do not agree, the rollout is empty, a name is unknown, or two consecutive
            rows both end an episode in ``NEXT_STEP``, which is impossible.
    """
    native_mode = _native_mode(autoreset_mode, on_done)
    flags = (as_flags("terminated", terminated), as_flags("truncated", truncated))
    before, first = as_flags("prev_done", prev_done, 1), as_flags("initial", initial, 1)
    names = ("terminated", "truncated", "prev_done", "initial")
    inputs = dict(zip(names, (*flags, before, first), strict=True))
    steps, num_envs = flags[0].shape
    output = as_output("the marks", out, (steps + 1, num_envs), np.bool_, inputs)
    native.is_first(native_mode, flags, before, first, output)
    return output


def next_values(
    autoreset_mode: Mode,
    values: Array,
    terminated: Array,
    truncated: Array,
    *,
    final_values: Array | None = None,
    final_index: Array | None = None,
    bootstrap: Bootstrap = "truncated",
    on_done: OnDone = "raise",
    out: Array | None = None,
) -> NDArray[Any]:
    """Returns the value of the true next observation of each row.

    While an episode continues, this is the value of the next row. At the end of an episode, this
    still holds in ``NEXT_STEP`` and with ``on_done="freeze"``, because the next row shows the final
    observation. In ``SAME_STEP``, and in ``DISABLED`` without ``"freeze"``, the next row begins
    another episode. There, pass the values of the final observations: of ``infos["final_obs"]``, or
    of the observations that ``step`` returned before the masked reset. One call of the value
    function can evaluate all ``(T + 1) * N + K`` observations.

    Example:
        >>> import numpy as np
        >>> from cartwheel.returns import next_values
        >>> values, terminated = np.array([[1.0], [2.0], [3.0]]), np.array([[False], [False]])
        >>> truncated = np.array([[True], [False]])
        >>> final_index = np.argwhere(truncated & ~terminated)  # [K, 2]
        >>> final_values = np.array([9.0])  # [K], in the same order
        >>> finals = {"final_values": final_values, "final_index": final_index}
        >>> next_values("same_step", values, terminated, truncated, **finals)[:, 0]
        array([9., 3.])

    Args:
        autoreset_mode: An ``AutoresetMode``, its value (``"SameStep"``) or its name
            (``"same_step"``).
        values: Values of the observations, ``[T + 1, N]``; the last row has the values after the
            last step.
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        final_values: Values of final observations, ``[K]``, in the dtype of ``values``. One for
            each row that is bootstrapped; other rows that are over may have one.
        final_index: Step and environment of each final value, ``[K, 2]``, integers.
        bootstrap: ``"truncated"``, ``"always"`` or ``"never"``, as for the estimator: it decides
            which final values are required.
        on_done: What stepping a finished environment does in ``DISABLED``, as for
            :class:`~cartwheel.VectorEnv`.
        out: An array ``[T, N]``.

    Returns:
        Next values, ``[T, N]``. Where an episode ends without bootstrapping, the value is
        undefined.

    Raises:
        TypeError: A dtype is wrong, or two dtypes differ.
        ValueError: Shapes do not agree, the rollout is empty, or a name is unknown. A final value
            is missing, given twice, or given for a row that does not exist or does not end an
            episode. Final values are given although the mode needs none.
    """
    native_mode = _native_mode(autoreset_mode, on_done)
    check_choice("bootstrap", bootstrap, Bootstrap)
    if (final_values is None) != (final_index is None):
        raise ValueError("`final_values` and `final_index` go together: give both or none.")
    dtype, (observed,) = as_floats(values=values)
    flags = (as_flags("terminated", terminated), as_flags("truncated", truncated))
    inputs: dict[str, Any] = {"values": observed}
    finals = None
    if final_values is not None and final_index is not None:
        finals = _finals(final_values, final_index, dtype)
        inputs["final_values"] = finals[0]
    output = as_output("next values", out, flags[0].shape, dtype, inputs)
    native.next_values(native_mode, observed, flags, bootstrap, finals, output)
    return output


def _finals(
    values: Array, index: Array, dtype: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Checks final values and their rows."""
    numbers, rows = as_array("final_values", values), as_array("final_index", index)
    if numbers.dtype != dtype:
        raise TypeError(f"`final_values` must be {dtype} like `values`, got {numbers.dtype}.")
    if rows.dtype.kind not in "iu":
        raise TypeError(f"`final_index` must be integers, got {rows.dtype}.")
    if numbers.ndim != 1:
        raise ValueError(f"`final_values` must have shape (K,), got {numbers.shape}.")
    if rows.shape != (len(numbers), 2):
        expected = (len(numbers), 2)
        raise ValueError(f"`final_index` must have shape {expected}, got {rows.shape}.")
    return as_rows("final_values", numbers, 1), rows.astype(np.int64, copy=False)


def _native_mode(autoreset_mode: Mode, on_done: str) -> tuple[str, bool]:
    """Returns the value of the mode, and whether finished rows are frozen."""
    check_choice("on_done", on_done, OnDone)
    return as_autoreset_mode(autoreset_mode).value, on_done == "freeze"
