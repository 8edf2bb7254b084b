"""States of a vector environment: of single rows, and of all that it consists of."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cartwheel._internal.arguments import as_bool
from cartwheel._internal.suggestions import shown
from cartwheel.vector.action_masks import check_kept_masks
from cartwheel.vector.pool_owner import ActType, ObsType
from cartwheel.vector.resets import Resets
from cartwheel.vector.state_dict import (
    as_entries,
    check_described,
    check_header,
    check_keys,
    check_list,
    check_wrappers,
    described,
    from_entries,
    new_state,
)
from cartwheel.vector.states import loaded, restored, saved
from cartwheel.workers.channels import pickled

if TYPE_CHECKING:
    from collections.abc import Sequence


class SavedRows(Resets[ObsType, ActType]):
    """The methods of a vector environment that save rows and load them."""

    def get_state(self, env_index: Any = None) -> list[bytes]:
        """Saves rows: environments, progress of their episodes, and the observations of the rows.

        A native environment's state includes its random numbers, and is valid for the environment's
        id and keywords. A Python environment can be saved if it has methods ``get_state()``, which
        returns anything that can be pickled, and ``set_state(state)``, which restores everything
        that later steps depend on, including random numbers; or if the vector environment was made
        with ``states="pickle"``. Wrappers around it, Gymnasium's and others, are saved by their
        attributes, except spaces and functions. A wrapper with the two methods saves itself and
        everything inside it. States of MuJoCo rows have what ``set_attr`` changed in a row's own
        model.

        A state outlives the process. The autoreset mode, the step limit and the number of
        environments may differ where it is restored. States of Python environments are pickles: do
        not restore states that you do not trust.

        Args:
            env_index: Row numbers, in any order; ``None`` for all rows.

        Returns:
            One state for each row.

        Raises:
            ValueError: A row does not exist, a row is named twice, or an environment cannot be
                saved; the error names the row, the reason and the remedy.
            gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
            Exception: The environment of the lowest failing row raised it.
        """
        self._pool.check("get_state", idle=True)
        numbers = self._numbers(env_index)
        return self._with_models(numbers, saved(self._pool, self._callbacks, numbers))

    def set_state(self, env_index: Any, states: Sequence[bytes]) -> tuple[ObsType, dict[str, Any]]:
        """Continues rows from states that :meth:`get_state` returned.

        Each row continues like the saved row: the same actions give the same results, bit for bit.
        A row may be over, or wait for its autoreset, like the saved one. A state may be restored
        into any row, any number of times. If a state is refused, no row changes.

        Args:
            env_index: Row numbers, in any order; ``None`` for all rows.
            states: One state for each of these rows.

        Returns:
            Observations and infos of these rows, in their order, as from a reset with row numbers.
            They are the last observations of the saved rows (zeros for rows that were never reset),
            and ``infos["env_index"]``.

        Raises:
            ValueError: A row does not exist, a row is named twice, or the number of states is
                wrong. A state was changed, or is of another environment or of other keywords.
            TypeError: A state is not ``bytes``.
            RuntimeError: A :meth:`rollout` has no step yet.
            gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
            Exception: The environment of the lowest failing row raised it, for its old state or the
                new one.
        """
        self._pool.check("set_state", idle=True)
        numbers = self._numbers(env_index)
        if isinstance(states, bytes) or not isinstance(states, Iterable):
            given = "one state" if isinstance(states, bytes) else shown(states)
            raise TypeError(f"`states` must be a list with one state for each row, got {given}.")
        states = list(states)
        if len(states) != len(numbers):
            raise ValueError(
                f"`states` must have one state for each of {len(numbers)} rows, got {len(states)}."
            )
        own, models = self._without_models(numbers, states)
        self._check_row_states(numbers, own)
        next_resets = self._pending_next_resets("set_state")
        before, masks = self._models("set_state", numbers), self._pool.kept_action_masks()
        space = self.single_observation_space
        try:
            self._set_models("set_state", numbers, models)
            return restored(self._pool, self._callbacks, numbers, own, space)
        except BaseException:
            with contextlib.suppress(Exception):  # closed, or broken
                self._pool.keep_action_masks(masks)
                self._set_models("set_state", numbers, before)
                self._keep_next_resets(next_resets)
            raise

    def state_dict(self, *, envs: bool = True) -> dict[str, Any]:
        """Saves the vector environment, to continue it here or in another process.

        The state has all that the next steps depend on: the rows (see :meth:`get_state`), where
        they are in their episodes, whether their reset is pending, and what :meth:`next_reset` gave
        them. Rows that were never reset are saved as such. The docs have a page about it,
        "Checkpoints and resuming".

        Args:
            envs: Whether to save the environments, too. If not, the state has the wrappers around
                them alone, and of these the numbers that are about all rows, such as moments.

        Returns:
            Dictionaries with text as keys, lists, arrays, numbers, text and bytes, for ``pickle``
            or ``torch.save``.

        Raises:
            ValueError: An environment cannot be saved; the error names the row, the reason and the
                remedy.
            TypeError: ``envs`` is not a ``bool``.
            gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
            Exception: The environment of the lowest failing row raised it.
        """
        envs = as_bool("envs", envs)
        self._pool.check("state_dict", idle=True)
        return new_state("vector_env", **described(self), wrappers=[], envs=self._rows(envs=envs))

    def load_state_dict(self, state: dict[str, Any]) -> ObsType | None:
        """Continues from a state of :meth:`state_dict`.

        The next calls return what they would have returned there, bit for bit. The executor, the
        number of workers and the sizes of queues may differ; the number of environments, the
        environments and the autoreset mode may not. Rules of episodes, such as
        ``max_episode_steps``, are those of this vector environment, also for a row that has made
        more steps already: its next one truncates it. If any part of the state is refused, nothing
        changes. A :meth:`rollout` ends; one without a step also where a row refuses its state.

        Args:
            state: The state. It has pickles: do not load states that you do not trust.

        Returns:
            What the rows last showed, all of them in their order; zeros for rows that were never
            reset. ``None`` for a state without environments.

        Raises:
            TypeError: ``state`` is not a dictionary.
            ValueError: It is of another version or of another vector environment.
            gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
            Exception: The environment of the lowest failing row raised it.
        """
        self._pool.check("load_state_dict", idle=True)
        check_header(state, "vector_env", (*described(self), "wrappers", "envs"))
        check_wrappers(state["wrappers"], [])
        check_described(state, self)
        return self._load_rows(state)

    def _rows(self, *, envs: bool) -> dict[str, Any] | None:
        """Returns the part of a state that has the rows."""
        if not envs:
            return None
        next_resets = self._pending_next_resets("state_dict")
        return {
            "states": saved(self._pool, self._callbacks, list(range(self.num_envs)), "state_dict"),
            "next_resets": as_entries(next_resets, pickled),
            "models": self._models("state_dict", range(self.num_envs)),
            "action_masks": self._pool.kept_action_masks(),
        }

    def _load_rows(self, state: dict[str, Any]) -> ObsType | None:
        """Checks and loads the rows of a state, all of them or none; returns what they show."""
        rows = state["envs"]
        if rows is None:
            return None
        check_keys("state['envs']", rows, {"states", "next_resets", "models", "action_masks"})
        check_list("state['envs']['states']", rows["states"], self.num_envs)
        self._check_row_states(range(self.num_envs), rows["states"])
        coming = from_entries(rows["next_resets"], self.num_envs, "state['envs']['next_resets']")
        masks, masks_before = rows["action_masks"], self._pool.kept_action_masks()
        check_kept_masks(masks, self.num_envs, self.single_action_space)
        calling, everything = "load_state_dict", range(self.num_envs)
        before, models = self._pending_next_resets(calling), self._models(calling, everything)
        self._keep_next_resets(coming)  # refuses them before anything changes
        if not self._pool.recorded_steps():  # no row could be sent
            self._pool.stop_recording()
        try:
            self._set_models(calling, everything, rows["models"])
            space = self.single_observation_space
            observations: ObsType = loaded(
                self._pool, self._callbacks, rows["states"], space, calling
            )
        except BaseException:
            with contextlib.suppress(Exception):  # closed, or broken
                self._pool.keep_action_masks(masks_before)
                self._set_models(calling, everything, models)
                self._keep_next_resets({**dict.fromkeys(coming, (None, None)), **before})
            raise
        self._pool.stop_recording()
        self._keep_next_resets(coming)  # loading discards them
        self._pool.keep_action_masks(masks)
        return observations

    def _check_row_states(self, rows: Iterable[int], states: Iterable[bytes]) -> None:
        """Raises if one of the states that rows get was cut or changed; the error names the row."""
        for row, state in zip(rows, states, strict=True):
            if not isinstance(state, bytes):
                raise TypeError(
                    f"row {row}: a state must be bytes from `get_state`, got {type(state)}."
                )
            try:
                self._callbacks.check_state(state)
            except (TypeError, ValueError) as error:
                raise type(error)(f"row {row}: {error}") from None

    def _models(self, calling: str, rows: Sequence[int]) -> list[dict[str, Any]]:  # noqa: ARG002 - for overrides
        """Returns what was set in the models of rows, if rows have models of their own."""
        return []

    def _set_models(self, calling: str, rows: Sequence[int], models: Any) -> None:  # noqa: ARG002 - for overrides
        """Sets all of that, and sets back what was set otherwise."""
        check_list("state['envs']['models']", models, 0)

    def _with_models(self, rows: Sequence[int], states: list[bytes]) -> list[bytes]:  # noqa: ARG002 - for overrides
        """Returns states of rows together with what was set in their models."""
        return states

    def _without_models(
        self,
        rows: Sequence[int],  # noqa: ARG002 - for overrides
        states: Sequence[bytes],
    ) -> tuple[list[bytes], list[dict[str, Any]]]:
        """Returns the two parts of such states."""
        return list(states), []
