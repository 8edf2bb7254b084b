"""States of a collector: it continues in another process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.rollouts.collecting.session import ENTRIES
from cartwheel.vector.state_dict import check_equal, check_header, new_state

if TYPE_CHECKING:
    import threading

    from gymnasium.vector import VectorEnv

    from cartwheel.rollouts.collecting.background import Background
    from cartwheel.rollouts.collecting.plan import Plan
    from cartwheel.rollouts.collecting.session import Session
    from cartwheel.wrappers._shared.conversion import ConvertsArrays


class SavedCollector:
    """The methods of a :class:`~cartwheel.Collector` that save and load states."""

    _given_envs: VectorEnv[Any, Any, Any]
    _conversion: ConvertsArrays | None
    _plan: Plan
    _session: Session
    _background: Background | None

    @property
    def envs(self) -> VectorEnv[Any, Any, Any]:
        """The vector environments; a collector of others is another one."""
        return self._given_envs

    def _entered(self, calling: str) -> threading.Lock:
        """One thread at a time, while the collector is open."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Saves the collector with its environments and their wrappers, between two rollouts.

        The policy is not saved, and neither is its optimizer. ``num_steps``, ``order`` and
        ``groups`` may differ where the state is loaded.

        Raises:
            ValueError: The collector has ``run_ahead``, ``columns``, ``standby`` or ``background``,
                in which rollouts are unfinished at all times; or an environment cannot be saved.
            RuntimeError: A rollout is unfinished, ``order="auto"`` still measures, another thread
                is in a call of this collector, or it is closed.
            TypeError: The environments, or a wrapper around them, are not cartwheel's.
            Exception: As for :meth:`cartwheel.VectorEnv.state_dict`.
        """
        with self._entered("state_dict"):
            envs = self._saving("state_dict")
            return new_state("collector", **self._session.state(), envs=envs.state_dict())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from a state of :meth:`state_dict`.

        The next :meth:`collect` returns the rollout that it would have returned there, bit for bit,
        without a reset, if the policy is the same. An unfinished rollout is dropped.

        Raises:
            TypeError: ``state`` is not a dictionary, or the environments are not cartwheel's.
            ValueError: It is of another version or of other environments; or as for
                :meth:`state_dict`. Nothing has changed.
            gymnasium.error.AlreadyPendingCallError: Rows are in flight: :meth:`pause` first.
            Exception: As for :meth:`cartwheel.VectorEnv.load_state_dict`.
        """
        with self._entered("load_state_dict"):
            envs = self._saving("load_state_dict")
            check_header(state, "collector", (*ENTRIES, "envs"))
            if isinstance(state["envs"], dict) and "num_envs" in state["envs"]:
                check_equal("num_envs", state["envs"]["num_envs"], self.envs.num_envs)
            self._session.check_state(state)
            if isinstance(state["envs"], dict) and state["envs"].get("envs", ()) is None:
                raise ValueError(
                    "`state['envs']` has no environments: it was saved with envs=False. Load it by "
                    "`collector.envs.load_state_dict`, or save the collector by `state_dict()`."
                )
            with self._session.unchanged_if_refused():
                shown = envs.load_state_dict(state["envs"])
            if self._conversion is not None:
                shown = self._conversion._as_arrays(shown)
            self._session.load(state, shown)

    def _saving(self, calling: str) -> Any:
        """Returns the environments, which have the method ``calling``.

        Raises:
            ValueError: The collector is at no time between two rollouts.
            TypeError: The environments are not cartwheel's.
        """
        plan, is_background = self._plan, self._background is not None
        for name, value, usual in (
            ("run_ahead", plan.run_ahead, 0),
            ("columns", plan.columns, None),
            ("standby", plan.standby, 0),
            ("background", is_background, False),
        ):
            if value != usual:
                raise ValueError(
                    f"`{calling}` needs a collector that ends between two rollouts, which "
                    f"{name}={value} does not."
                )
        if not hasattr(self.envs, calling):
            raise TypeError(
                f"`{calling}` needs vector environments and wrappers of cartwheel, got {self.envs}."
            )
        return self.envs
