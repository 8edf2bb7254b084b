"""Return estimators for rollouts of vector environments, correct in every autoreset mode.

A rollout is ``T`` steps of ``N`` environments, and all its arrays are time-major: ``[T, N]``. Row
``(t, i)`` is step ``t`` of environment ``i``: the reward and flags that ``step`` returned for the
action of step ``t``. The autoreset mode decides which rows are transitions, and where their next
observations are. :func:`valid_mask` and :func:`next_values` turn these rules into arrays, and after
that all modes use the same formulas.

Example:
    One environment in the mode ``NEXT_STEP``. Its episode ends in step 1, so step 2 only resets.

    >>> import numpy as np
    >>> from cartwheel import returns
    >>> rewards, values = np.array([[1.0], [1.0], [0.0]]), np.zeros((4, 1))
    >>> terminated, truncated = np.array([[False], [True], [False]]), np.zeros((3, 1), bool)
    >>> next_values = returns.next_values("next_step", values, terminated, truncated)
    >>> valid = returns.valid_mask("next_step", terminated, truncated, np.array([False]))
    >>> valid[:, 0]
    array([ True,  True, False])
    >>> advantages, targets = returns.gae(
    ...     *(rewards, values[:-1], next_values, terminated, truncated),
    ...     valid=valid,
    ...     gamma=0.5,
    ...     gae_lambda=1,
    ... )
    >>> targets[:, 0]
    array([1.5, 1. , 0. ])

* **Ends.** With ``bootstrap="truncated"``, nothing is added after a terminated episode, and the
  value of the last observation is added after a truncated one. ``"always"`` adds the value at every
  end, ``"never"`` at no end. A row with both flags is terminated. Where no episode ends, also at
  the end of the rollout, the value of the next observation is always added. No trace crosses an end
  of either kind.
* **Valid rows.** Rows that are not valid are not read, so NaN in them does no harm; only their
  ``values`` are read, where they are the next values of the rows before. The outputs of such rows
  are 0, but targets of ``gae``, ``gae_normalized`` and ``vtrace`` are the row's value. Leave these
  rows out of losses and statistics: ``advantages[valid]``.
* **Discounts.** ``gamma``, ``gae_lambda`` and ``lambda_`` are numbers in [0, 1], or arrays
  ``[T, N]`` of such numbers.
* **Arrays.** NumPy arrays, or arrays on the CPU that support DLPack, such as torch and JAX arrays.
  Floats are all ``float32`` or all ``float64``, and results have the same dtype. Only rewards may
  have another dtype, because Gymnasium's are always ``float64``; they are converted. Flags are
  ``bool``; ``uint8`` is converted. An array that is not C-contiguous is copied once. Results are
  NumPy arrays, which ``torch.from_numpy`` converts to torch without a copy.
* **out.** C-contiguous, writable arrays of the right shape and dtype that share no memory with an
  input; they are filled and returned. They may be torch tensors (with NumPy 2.1 or newer).
* **Threads.** A rollout of 800 000 rows or more is split by environment over ``num_threads``
  threads. The results have the same bits for any number of threads. The GIL is released.

Every function raises ``TypeError`` for an invalid dtype, and ``ValueError`` for an invalid shape,
number or name, before it writes anything.
"""

from cartwheel.returns.advantages import gae, gae_normalized
from cartwheel.returns.off_policy import retrace, vtrace
from cartwheel.returns.statistics import masked_mean, masked_normalize
from cartwheel.returns.sums import NStepReturns, discounted_returns, lambda_returns, n_step_returns
from cartwheel.returns.transitions import is_first, next_values, valid_mask

__all__ = [
    "NStepReturns",
    "discounted_returns",
    "gae",
    "gae_normalized",
    "is_first",
    "lambda_returns",
    "masked_mean",
    "masked_normalize",
    "n_step_returns",
    "next_values",
    "retrace",
    "valid_mask",
    "vtrace",
]
