"""Return estimators for rollouts of vector environments, right in every autoreset mode.

A rollout is ``T`` steps of ``N`` environments, and every array of it is time-major: ``[T, N]``. Row
``(t, i)`` is step ``t`` of environment ``i``: the reward and flags that ``step`` returned for the
action of step ``t``. Which rows are transitions, and where their next observation is, depends on
the autoreset mode; two functions turn it into arrays, and after that one formula serves all modes::

    from cartwheel import returns

    # values[T + 1, N] of the observations, the last of which follows the rollout
    next_values = returns.next_values(
        mode, values, terminated, truncated, final_values=final_values, final_index=final_index
    )
    valid = returns.valid_mask(mode, terminated, truncated, prev_done)
    advantages, targets = returns.gae(
        rewards, values[:-1], next_values, terminated, truncated, valid=valid, gamma=0.99, lam=0.95
    )
    advantages = returns.masked_normalize(advantages, valid)

* **Ends.** An episode that is terminated is worth nothing afterwards, one that is truncated the
  value of its last observation: that is ``bootstrap="truncated"``. ``"always"`` bootstraps at every
  end, ``"never"`` at none. A row with both flags set is terminated. Where no episode ends, also at
  the end of the rollout, the next observation's value always counts. No trace runs over an end of
  either kind.
* **Valid rows.** What rows hold that are not valid is not looked at (not even NaN gets out), apart
  from their ``values`` where those are the next values of rows before them. Their outputs are 0; a
  target that goes with ``values`` (of ``gae``, ``gae_normalized``, ``vtrace``) is the value itself.
  Leave them out of losses and statistics: ``advantages[valid]``.
* **Discounts.** ``gamma`` and ``lam`` are numbers in [0, 1], or arrays ``[T, N]`` of them.
* **Arrays.** NumPy arrays, and what speaks DLPack and is on the CPU, as torch and JAX arrays.
  Floats are all ``float32`` or all ``float64``, and results are of the same dtype. Rewards alone
  may differ, because Gymnasium's are ``float64`` whatever a policy computes in: they are converted
  to the dtype of the other arrays. Flags are ``bool``; ``uint8`` is converted. An array that is not
  C-contiguous is copied, once. Results are NumPy arrays; ``torch.from_numpy`` shows them to torch
  without a copy.
* **out.** C-contiguous, writable arrays of the right shape and dtype that share no memory with an
  input; they are filled and returned. They too may be torch tensors (with NumPy 2.1 or newer).
* **Threads.** A rollout of 100 000 rows or more is split over threads by environment;
  ``num_threads`` sets how many. The results have the same bits for any number, and the GIL is
  released.

Every function raises ``TypeError`` for a dtype and ``ValueError`` for a shape, a number or a name
that it cannot use, before anything is written.
"""

from cartwheel.returns.advantages import gae, gae_normalized
from cartwheel.returns.off_policy import retrace, vtrace
from cartwheel.returns.rows import is_first, next_values, valid_mask
from cartwheel.returns.statistics import masked_mean, masked_normalize
from cartwheel.returns.sums import NStepReturns, discounted, lambda_returns, n_step

__all__ = [
    "NStepReturns",
    "discounted",
    "gae",
    "gae_normalized",
    "is_first",
    "lambda_returns",
    "masked_mean",
    "masked_normalize",
    "n_step",
    "next_values",
    "retrace",
    "valid_mask",
    "vtrace",
]
