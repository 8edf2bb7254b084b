"""Agents of environments of several agents as rows for Stable-Baselines3."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import create_empty_array
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from cartwheel._cartwheel import TimedEpisodes
from cartwheel._internal import nested
from cartwheel._internal.adapters import check_given, check_is_no_form
from cartwheel._internal.arguments import as_autoreset_mode, as_bool, as_env_fns
from cartwheel._internal.closing import ClosesAfterWith
from cartwheel._internal.reset_arguments import as_seeds
from cartwheel.multiagent import ParallelVectorEnv
from cartwheel.sb3.vec_env import MASKS, batches_of, check_form, has_images, rows_of
from cartwheel.vector.control_calls import ControlCalls
from cartwheel.vector.infos import FAILURES, infos_by_row
from cartwheel.wrappers.batch import RESET, TRANSITION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray
    from stable_baselines3.common.vec_env.base_vec_env import (
        VecEnvIndices,
        VecEnvObs,
        VecEnvStepReturn,
    )

#: Infos of every row, about the agent and its environment.
_STATUS = ("present", "acted", "episode_over")
_FINALS = ("final_obs", "_final_obs", "final_info", "_final_info")
#: Infos of rows that failed: those of their last step, and not of the reset after it.
_FAILURES = tuple(mask.removeprefix("_") for mask in FAILURES)


class CartwheelAgentsVecEnv(ClosesAfterWith, VecEnv):
    """Rows of agents for Stable-Baselines3, whose only policy all agents share.

    Example:
        >>> import pettingzoo
        >>> from cartwheel.sb3 import CartwheelAgentsVecEnv
        >>> make = lambda: pettingzoo.make("parallel", "classic/rps-v2")
        >>> envs = CartwheelAgentsVecEnv([make] * 4, executor="inline")
        >>> envs.reset().shape  # or PPO("MlpPolicy", envs)
        (8,)
        >>> _, rewards, _, infos = envs.step([0, 1] * 4)
        >>> rewards.tolist()[:2], infos[0]["acted"]
        ([-1.0, 1.0], True)
        >>> envs.close()

    Row ``i * agents + j`` is agent ``j`` of environment ``i``, as of
    :meth:`cartwheel.ParallelVectorEnv.as_rows`, so agents have equal spaces. Infos have ``acted``,
    ``present`` and ``episode_over``, and ``terminal_observation`` where an agent has ended. After
    that its row has zeros until its environment is over, and models learn from them. There it ends
    once more, so that values and states of recurrent policies do not go on into the next episode.

    Seeds and options are those of environments: those of its first agent count. Attributes and
    methods are those of the environment of a row, each of which is asked once. ``MaskablePPO`` of
    sb3-contrib finds masks of actions, as for :class:`CartwheelVecEnv`.

    Attributes:
        vector_env: The environments, by agent.

    Args:
        envs: Functions that make environments of PettingZoo; or a
            :class:`cartwheel.ParallelVectorEnv`, native or not, in the mode ``SAME_STEP``, which is
            closed together with this object.
        monitor: Whether infos of steps in which agents end have ``episode``, as for
            :class:`CartwheelVecEnv`: the agent's return, the number of its steps, and the seconds.
            ``VecMonitor`` also counts rows of agents that have ended, as episodes of their own.
        **keywords: Those of :class:`cartwheel.ParallelVectorEnv`, for functions.

    Raises:
        TypeError: There are keywords for a vector environment, or one that does not exist; or
            ``monitor`` is not a ``bool``.
        ValueError: The mode is not ``SAME_STEP``, batches do not have all rows, or spaces of agents
            differ.
        gymnasium.error.ClosedEnvironmentError: ``envs`` is closed.
        Exception: As for :class:`cartwheel.ParallelVectorEnv`.
    """

    #: For evaluations and collectors, which step it.
    _vector_env_instead = "pass its `vector_env`"

    def __init__(
        self,
        envs: Iterable[Callable[[], Any]] | ParallelVectorEnv,
        *,
        monitor: bool = False,
        **keywords: Any,
    ) -> None:
        is_monitored = as_bool("monitor", monitor)
        self.vector_env = own = _as_parallel(envs, keywords)
        try:
            self._rows = rows = own.as_rows()
            self._agents = own.num_agents
            self._as_batch = batches_of(rows.single_action_space, rows.num_envs)
            self._episodes: TimedEpisodes | None = None
            if is_monitored:
                self._record_episodes()
            #: What the row of an absent agent shows, in a batch of one.
            self._blank: Any = create_empty_array(rows.single_observation_space, 1, np.zeros)
            rows._blank(self._blank, np.zeros(1, np.intp))
            super().__init__(rows.num_envs, rows.single_observation_space, rows.single_action_space)
        except BaseException:
            if own is not envs:
                own.close()
            raise
        self.metadata = dict(own.metadata)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.vector_env!r})"

    def reset(self) -> VecEnvObs:
        """Resets all environments, with the seeds of :meth:`seed` and the options that were set.

        A step that was begun and not waited for is waited for and dropped.

        Returns:
            Observations. The infos are in ``reset_infos``.

        Raises:
            ValueError: A list of options has another length than there are rows; nothing was reset.
            Exception: As for :meth:`cartwheel.ParallelVectorEnv.reset`.
        """
        if len(self._options) != self.num_envs:
            raise ValueError(
                "`set_options` takes a dictionary, or a list with one for each of the "
                f"{self.num_envs} rows, got {len(self._options)}."
            )
        self._rows._pool_owner._pool.give_up()
        given = [own or None for own in self._options[:: self._agents]]
        options: Any = given if any(given) else None
        observations, infos = self._rows.reset(seed=self._seeds[:: self._agents], options=options)
        if self._episodes is not None:
            self._episodes.begin(None, np.full(self.num_envs, RESET, np.uint8))
        self.reset_infos = infos_by_row(_without(infos, _STATUS), self.num_envs)
        self._reset_seeds()
        self._reset_options()
        return observations

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Sets the seeds of the next reset.

        Args:
            seed: Environment ``i`` gets ``seed + i``. ``None``: a random number instead.

        Returns:
            The seed of each row, which agents of an environment share.
        """
        as_seeds(seed, range(1), 1)
        seeds = super().seed(seed)
        self._seeds = [seeds[row // self._agents] for row in range(self.num_envs)]
        return self._seeds

    def step_async(self, actions: Any) -> None:
        """Begins a step of all environments.

        Args:
            actions: One action for each row, as for :meth:`CartwheelVecEnv.step_async`.

        Raises:
            ValueError: The number of actions is wrong, or those of a space with integers are not
                whole numbers; nothing was stepped.
            Exception: As for :meth:`cartwheel.ParallelVectorEnv.step`.
        """
        self._rows.step_async(self._as_batch(np.asarray(actions)))

    def step_wait(self) -> VecEnvStepReturn:
        """Waits for a step: of :meth:`step_async`, or one that has timed out or was interrupted.

        Returns:
            Observations; rewards, ``float32`` of shape ``(num_envs,)``; whether agents or their
            environments ended, ``bool`` of the same shape; and a list with one dictionary of infos
            for each row.

        Raises:
            gymnasium.error.NoAsyncCallError: There was no :meth:`step_async`.
            Exception: As for :meth:`cartwheel.VectorEnv.step_wait`.
        """
        step = self._rows.step_wait(self.vector_env.timeout)
        observations, rewards, terminated, truncated, infos = step
        ended = terminated | truncated
        by_row = self._step_infos(infos, ended)
        limited = (truncated & ~terminated).tolist()
        for info, is_limited in zip(by_row, limited, strict=True):
            info["TimeLimit.truncated"] = is_limited
        if self._episodes is not None:
            # An agent that did not act, also in a row that failed, begins with its next step.
            kinds = np.where(infos["acted"], TRANSITION, RESET).astype(np.uint8)
            self._report(self._episodes.step((None, kinds, rewards, terminated, truncated)), by_row)
        done = ended | infos["episode_over"]  # the next observation of the row begins an episode
        return observations, rewards.astype(np.float32), done, by_row

    def _step_infos(self, infos: dict[str, Any], ended: NDArray[np.bool_]) -> list[dict[str, Any]]:
        """Returns the infos of each row, those of its last step where it or its environment ended.

        Infos of resets are kept in ``reset_infos``.
        """
        over = infos["episode_over"]
        by_row = infos_by_row(_without(infos, (*_STATUS, *_FINALS)), self.num_envs)
        has_last = infos.get("_final_obs", np.zeros_like(over))
        last = np.flatnonzero(has_last | over).tolist()
        finals = infos_by_row(infos.get("final_info", {}), self.num_envs) if last else []
        for row in last:
            shown, info = by_row[row], finals[row]
            by_row[row] = info
            if has_last[row]:
                info["terminal_observation"] = infos["final_obs"][row]
            elif not ended[row]:
                info["terminal_observation"] = nested.apply(np.copy, nested.at(self._blank, 0))
            if over[row]:
                info.update((key, shown.pop(key)) for key in _FAILURES if key in shown)
                if "final_state" in shown:
                    info["state"] = shown.pop("final_state")
                self.reset_infos[row] = shown
            elif "state" in shown:  # the agent ended before its environment
                info["state"] = shown["state"]
        for name in _STATUS:
            for info, value in zip(by_row, infos[name].tolist(), strict=True):
                info[name] = value
        return by_row

    def close(self) -> None:
        """Closes the environments and ends their workers; a second call does nothing."""
        self.vector_env.close()

    def state_dict(self) -> dict[str, Any]:
        """Saves the environments, as :meth:`cartwheel.ParallelVectorEnv.state_dict` does."""
        return self._rows.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> VecEnvObs:
        """Continues from a state of :meth:`state_dict`.

        Returns:
            What the rows last showed, for ``model._last_obs``. With ``monitor``, returns, lengths
            and seconds of episodes begin anew.

        Raises:
            Exception: As for :meth:`cartwheel.ParallelVectorEnv.load_state_dict`.
        """
        observations: VecEnvObs = self._rows.load_state_dict(state)
        if self._episodes is not None:
            self._record_episodes()
        return observations

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Renders every environment once; its agents share the frame.

        Returns:
            As :meth:`CartwheelVecEnv.get_images`.
        """
        if not has_images(self.render_mode):
            return [None] * self.num_envs
        return list(self._rows.render() or ())

    # Attributes of environments. `indices` are row numbers; by default all rows.

    def has_attr(self, attr_name: str) -> bool:
        """Whether every environment, or one inside it, has an attribute."""
        owner, is_shown = self._rows._pool_owner, attr_name == MASKS and self._rows.has_action_masks
        if is_shown or not isinstance(owner, ControlCalls):  # which is native
            return is_shown or super().has_attr(attr_name)
        return all(owner._asked("has_attr", "has", attr_name, list(range(owner.num_envs))))

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Reads an attribute of environments; a method is not called."""
        rows = rows_of(indices, self.num_envs)
        if attr_name == "render_mode":
            return [self.vector_env.render_mode] * len(rows)
        if attr_name == MASKS and self._rows.has_action_masks:
            return [lambda row=row: self._rows.action_masks([row])[0] for row in rows]
        owner = self._rows._pool_owner

        def read(envs: list[int]) -> Sequence[Any]:
            if isinstance(owner, ControlCalls):
                return owner._asked("get_attr", "read", attr_name, envs)
            return self.vector_env.get_attr(attr_name, env_index=envs)

        return self._of_rows(rows, read)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Sets an attribute of environments to one value."""
        envs = sorted({row // self._agents for row in rows_of(indices, self.num_envs)})
        if envs:
            self.vector_env.set_attr(attr_name, [value] * len(envs), env_index=envs)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Calls a method of each environment once; its rows share the result."""
        rows = rows_of(indices, self.num_envs)
        if method_name == MASKS and self._rows.has_action_masks:
            return list(self._rows.action_masks(rows)) if rows else []

        def called(envs: list[int]) -> Sequence[Any]:
            return self.vector_env.call(method_name, *method_args, env_index=envs, **method_kwargs)

        return self._of_rows(rows, called)

    def env_is_wrapped(
        self,
        wrapper_class: type[Any],
        indices: VecEnvIndices = None,
    ) -> list[bool]:
        """Whether rows have a wrapper: a ``Monitor`` with ``monitor``, and no others."""
        is_wrapped = self._episodes is not None and issubclass(Monitor, wrapper_class)
        return [is_wrapped] * len(rows_of(indices, self.num_envs))

    def _of_rows(self, rows: list[int], ask: Callable[[list[int]], Sequence[Any]]) -> list[Any]:
        """Asks each environment of these rows once."""
        envs = sorted({row // self._agents for row in rows})
        found = dict(zip(envs, ask(envs), strict=True)) if envs else {}
        return [found[row // self._agents] for row in rows]

    def _record_episodes(self) -> None:
        """Counts the episodes of agents from now on."""
        self._episodes = TimedEpisodes(self._rows.num_envs, True, 1)
        self._began = time.perf_counter()

    def _report(self, ended: tuple[Any, Any] | None, infos: list[dict[str, Any]]) -> None:
        """Adds episodes that ended to the infos of their rows, as the wrapper ``Monitor`` does."""
        if ended is None:
            return
        values, mask = ended
        seconds = round(time.perf_counter() - self._began, 6)
        for row in np.flatnonzero(mask).tolist():
            total, length = round(values["r"].item(row), 6), values["l"].item(row)
            infos[row]["episode"] = {"r": total, "l": length, "t": seconds}


def _as_parallel(envs: Any, keywords: dict[str, Any]) -> ParallelVectorEnv:
    check_is_no_form(CartwheelAgentsVecEnv.__name__, envs)
    if isinstance(envs, ParallelVectorEnv):
        check_given(CartwheelAgentsVecEnv.__name__, envs._pool, keywords)
        check_form(envs.autoreset_mode, envs.batch_size, envs.num_envs)
        return envs
    envs = as_env_fns(envs)
    mode = keywords.setdefault("autoreset_mode", AutoresetMode.SAME_STEP)
    check_form(as_autoreset_mode(mode), keywords.get("batch_size"), len(envs))
    return ParallelVectorEnv(envs, **keywords)


def _without(infos: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in infos.items() if key not in names}
