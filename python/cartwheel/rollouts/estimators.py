"""Values of a rollout's observations, and the estimators of :mod:`cartwheel.returns`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cartwheel.returns as estimators
from cartwheel._device.sending import array_of
from cartwheel._internal.nested import as_array
from cartwheel.returns.arrays import FLOATS
from cartwheel.rollouts.record import Record

if TYPE_CHECKING:
    from typing import SupportsIndex

    import numpy as np
    from numpy.typing import NDArray

    from cartwheel._internal.nested import Array
    from cartwheel.returns import NStepReturns


class Estimators(Record):
    """The part of a rollout that estimates returns; every array is ``[T, N]``.

    Rewards of several objectives, ``[T, N, k]``, have to be weighed first: by :meth:`scalarize`.

    :mod:`cartwheel.returns` has the formulas, the papers and the errors. Discounts and decays are
    numbers in [0, 1], or arrays ``[T, N]`` of them.
    """

    _values: tuple[NDArray[Any], NDArray[Any]] | None = None
    #: A point after all copies to the device, until the caller's stream has waited for it.
    _ready: Any = None

    def set_values(self, values: Array) -> None:
        """Sets the values of the observations that :meth:`Rollout.value_inputs` returned.

        Args:
            values: One number for each input, ``[(T + 1) * N + K]`` or ``[(T + 1) * N + K, 1]``,
                ``float32`` or ``float64``. For :meth:`retrace`: action values, averaged over the
                actions of the learned policy.

        Raises:
            TypeError: The dtype is wrong.
            ValueError: The shape is wrong.
        """
        array = as_array("values", self._on_host(values))
        num_steps, num_envs = self.valid.shape
        shown = (num_steps + 1) * num_envs
        length = shown + len(self.final_index)
        if array.dtype not in FLOATS:
            raise TypeError(f"`values` must be float32 or float64, got {array.dtype}.")
        if array.shape not in ((length,), (length, 1)):
            raise ValueError(
                f"`values` must have shape ({length},): ({num_steps} + 1) * {num_envs} for the "
                f"observations and {len(self.final_index)} for the final ones; got {array.shape}."
            )
        flat = array.reshape(length)
        self._values = flat[:shown].reshape(num_steps + 1, num_envs), flat[shown:]

    @property
    def values(self) -> NDArray[Any]:
        """Values of the observations, ``[T + 1, N]``.

        Raises:
            ValueError: They have not been set.
        """
        return self._known()[0]

    @property
    def final_values(self) -> NDArray[Any]:
        """Values of the final observations, ``[K]``.

        Raises:
            ValueError: They have not been set.
        """
        return self._known()[1]

    @property
    def next_values(self) -> NDArray[Any]:
        """Values of the true next observations, ``[T, N]``, in every mode; a new array.

        Raises:
            ValueError: They have not been set.
        """
        values, finals = self._known()
        after = values[1:].copy()
        after[self.final_index[:, 0], self.final_index[:, 1]] = finals
        return after

    def _known(self) -> tuple[NDArray[Any], NDArray[Any]]:
        if self._values is None:
            raise ValueError(
                "there are no values yet: call `set_values` with the values of `value_inputs()`."
            )
        return self._values

    @property
    def _numbers(self) -> NDArray[np.float64]:
        """The rewards, which must be numbers."""
        if self.rewards.ndim > 2:
            raise ValueError(
                f"rewards have {self.rewards.shape[2]} objectives, and an estimator needs numbers: "
                "call it on `rollout.scalarize(weights)`, with one weight for each objective."
            )
        return self.rewards

    def gae(
        self, gamma: Array, gae_lambda: Array, **options: Any
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Advantages and returns by :func:`cartwheel.returns.gae`.

        Args:
            gamma: The discount, a number in [0, 1] or an array ``[T, N]``.
            gae_lambda: The decay of the traces, likewise.
            **options: ``bootstrap``, ``num_threads`` and ``out`` of the function.

        Returns:
            Two arrays ``[T, N]`` of the dtype of the values. Leave out rows that are not
            :attr:`valid`.

        Raises:
            ValueError: :meth:`set_values` was not called; or as for the function.
            TypeError: As for the function.
        """
        return estimators.gae(
            self._numbers, **self._all(), gamma=gamma, gae_lambda=gae_lambda, **options
        )

    def gae_normalized(
        self, gamma: Array, gae_lambda: Array, **options: Any
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Advantages and returns by :func:`cartwheel.returns.gae_normalized`.

        Args:
            gamma: As for :meth:`gae`.
            gae_lambda: The decay of the weights, likewise.
            **options: As for :meth:`gae`.

        Returns:
            As :meth:`gae`.

        Raises:
            Exception: As :meth:`gae`.
        """
        return estimators.gae_normalized(
            self._numbers, **self._all(), gamma=gamma, gae_lambda=gae_lambda, **options
        )

    def lambda_returns(self, gamma: Array, lambda_: Array, **options: Any) -> NDArray[Any]:
        """Lambda-returns by :func:`cartwheel.returns.lambda_returns`.

        Args:
            gamma: As for :meth:`gae`.
            lambda_: The decay of the traces, likewise.
            **options: As for :meth:`gae`.

        Returns:
            An array ``[T, N]`` of the dtype of the values.

        Raises:
            Exception: As :meth:`gae`.
        """
        return estimators.lambda_returns(
            self._numbers,
            self.next_values,
            **self._flags(),
            gamma=gamma,
            lambda_=lambda_,
            **options,
        )

    def vtrace(
        self, ratios: Array, gamma: Array, lambda_: Array = 1.0, **options: Any
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Value targets and advantages by :func:`cartwheel.returns.vtrace`.

        Args:
            ratios: The probability of each action under the learned policy, divided by that under
                the policy that chose it, ``[T, N]``, in the dtype of the values.
            gamma: As for :meth:`gae`.
            lambda_: The decay of the traces, likewise.
            **options: Those of :meth:`gae`, and ``rho_bar``, ``c_bar`` and ``pg_rho_bar``.

        Returns:
            Two arrays ``[T, N]`` of the dtype of the values.

        Raises:
            Exception: As :meth:`gae`.
        """
        return estimators.vtrace(
            self._numbers,
            **self._all(),
            ratios=self._on_host(ratios),
            gamma=gamma,
            lambda_=lambda_,
            **options,
        )

    def retrace(
        self, q_values: Array, ratios: Array, gamma: Array, lambda_: Array, **options: Any
    ) -> NDArray[Any]:
        """Targets of action values by :func:`cartwheel.returns.retrace`.

        Args:
            q_values: The values of the actions that were taken, ``[T, N]``. The values of
                :meth:`set_values` are averages over actions.
            ratios: As for :meth:`vtrace`.
            gamma: As for :meth:`gae`.
            lambda_: The decay of the traces, likewise.
            **options: Those of :meth:`gae`, and ``c_bar``.

        Returns:
            An array ``[T, N]`` of the dtype of the values.

        Raises:
            Exception: As :meth:`gae`.
        """
        given: dict[str, Any] = {
            "q_values": self._on_host(q_values),
            "next_values": self.next_values,
            "ratios": self._on_host(ratios),
        }
        return estimators.retrace(
            self._numbers, **given, **self._flags(), gamma=gamma, lambda_=lambda_, **options
        )

    def n_step_returns(self, n: SupportsIndex, gamma: Array, **options: Any) -> NStepReturns:
        """Targets by :func:`cartwheel.returns.n_step_returns`; sums of rewards without values.

        Args:
            n: The number of steps, at least 1.
            gamma: As for :meth:`gae`.
            **options: As for :meth:`gae`.

        Returns:
            A named tuple of arrays ``[T, N]``, see the function.

        Raises:
            Exception: As the function.
        """
        return estimators.n_step_returns(
            self._numbers, **self._flags(), **self._after(), n=n, gamma=gamma, **options
        )

    def discounted_returns(self, gamma: Array, **options: Any) -> NDArray[Any]:
        """Sums of rewards by :func:`cartwheel.returns.discounted_returns`.

        If values are set, they bootstrap truncated episodes and the end of the rollout.

        Args:
            gamma: As for :meth:`gae`.
            **options: As for :meth:`gae`.

        Returns:
            An array ``[T, N]``.

        Raises:
            Exception: As the function.
        """
        return estimators.discounted_returns(
            self._numbers, **self._flags(), **self._after(), gamma=gamma, **options
        )

    def _on_host(self, values: Any) -> Any:
        """Returns values of tensors on the rollout's device as arrays."""
        return values if self.device is None else array_of(values)

    def _all(self) -> dict[str, Any]:
        """The flags, and the values before each step and of the true next observations."""
        return {**self._flags(), "values": self.values[:-1], "next_values": self.next_values}

    def _flags(self) -> dict[str, Any]:
        """Returns the keywords of every estimator."""
        return {"terminated": self.terminated, "truncated": self.truncated, "valid": self.valid}

    def _after(self) -> dict[str, Any]:
        """Returns the next values as a keyword, if they are set."""
        return {} if self._values is None else {"next_values": self.next_values}
