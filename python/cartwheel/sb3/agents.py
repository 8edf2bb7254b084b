"""Agents of environments of several agents as rows for Stable-Baselines3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from cartwheel._internal.adapters import check_given
from cartwheel._internal.arguments import as_autoreset_mode, as_env_fns
from cartwheel._internal.closing import ClosesAfterWith
from cartwheel._internal.reset_arguments import as_seeds
from cartwheel.multiagent import ParallelVectorEnv
from cartwheel.sb3.vec_env import MASKS, batches_of, check_form, has_images, rows_of
from cartwheel.vector.infos import FAILURES, infos_by_row

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
    that its row has zeros until its environment is over, and models learn from them.

    Seeds and options are those of environments: those of its first agent count. Attributes and
    methods are those of the environment of a row, each of which is asked once. ``MaskablePPO`` of
    sb3-contrib finds masks of actions, as for :class:`CartwheelVecEnv`.

    Attributes:
        vector_env: The environments, by agent.

    Args:
        envs: Functions that make environments of PettingZoo; or a
            :class:`cartwheel.ParallelVectorEnv` in the mode ``SAME_STEP``, which is closed together
            with this object.
        **keywords: Those of :class:`cartwheel.ParallelVectorEnv`, for functions.

    Raises:
        TypeError: There are keywords for a vector environment, or one that does not exist.
        ValueError: The mode is not ``SAME_STEP``, batches do not have all rows, or spaces of agents
            differ.
        gymnasium.error.ClosedEnvironmentError: ``envs`` is closed.
        Exception: As for :class:`cartwheel.ParallelVectorEnv`.
    """

    def __init__(
        self, envs: Iterable[Callable[[], Any]] | ParallelVectorEnv, **keywords: Any
    ) -> None:
        self.vector_env = own = _as_parallel(envs, keywords)
        try:
            self._rows = rows = own.as_rows()
            self._agents = own.num_agents
            self._actions: Any = None
            self._as_batch = batches_of(rows.single_action_space, rows.num_envs)
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

        Returns:
            Observations. The infos are in ``reset_infos``.
        """
        given = [own or None for own in self._options[:: self._agents]]
        options: Any = given if any(given) else None
        observations, infos = self._rows.reset(seed=self._seeds[:: self._agents], options=options)
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
        """Keeps the actions of a step, one for each row; :meth:`step_wait` makes it.

        Args:
            actions: As for :meth:`CartwheelVecEnv.step_async`.

        Raises:
            ValueError: Actions of a space with integers are not whole numbers.
        """
        self._actions = self._as_batch(np.asarray(actions))

    def step_wait(self) -> VecEnvStepReturn:
        """Steps all environments.

        Returns:
            Observations; rewards, ``float32`` of shape ``(num_envs,)``; whether agents ended,
            ``bool`` of the same shape; and a list with one dictionary of infos for each row.

        Raises:
            ValueError: The number of actions is wrong; nothing was stepped.
            Exception: As for :meth:`cartwheel.ParallelVectorEnv.step`.
        """
        observations, rewards, terminated, truncated, infos = self._rows.step(self._actions)
        done, over = terminated | truncated, infos["episode_over"]
        by_row = infos_by_row(_without(infos, (*_STATUS, *_FINALS)), self.num_envs)
        has_last = infos.get("_final_obs", np.zeros_like(over))
        ended = np.flatnonzero(has_last | over).tolist()
        finals = infos_by_row(infos.get("final_info", {}), self.num_envs) if ended else []
        for row in ended:
            shown, info = by_row[row], finals[row]
            by_row[row] = info
            if has_last[row] and done[row]:
                info["terminal_observation"] = infos["final_obs"][row]
            if over[row]:
                info.update((key, shown.pop(key)) for key in _FAILURES if key in shown)
                if "final_state" in shown:
                    info["state"] = shown.pop("final_state")
                self.reset_infos[row] = shown
            elif "state" in shown:  # the agent ended before its environment
                info["state"] = shown["state"]
        status = {name: infos[name].tolist() for name in _STATUS}
        status["TimeLimit.truncated"] = (truncated & ~terminated).tolist()
        for row, info in enumerate(by_row):
            info.update((name, values[row]) for name, values in status.items())
        return observations, rewards.astype(np.float32), done, by_row

    def close(self) -> None:
        """Closes the environments and ends their workers; a second call does nothing."""
        self.vector_env.close()

    def state_dict(self) -> dict[str, Any]:
        """Saves the environments, as :meth:`cartwheel.ParallelVectorEnv.state_dict` does."""
        return self._rows.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> VecEnvObs:
        """Continues from a state of :meth:`state_dict`.

        Returns:
            What the rows last showed, for ``model._last_obs``.

        Raises:
            Exception: As for :meth:`cartwheel.ParallelVectorEnv.load_state_dict`.
        """
        return self._rows.load_state_dict(state)

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Renders every environment once; its agents share the frame.

        Returns:
            As :meth:`CartwheelVecEnv.get_images`.
        """
        if not has_images(self.render_mode):
            return [None] * self.num_envs
        return list(self._rows.render() or ())

    # Attributes of environments. `indices` are row numbers; by default all rows.

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Reads an attribute of environments; a method is not called."""
        rows = rows_of(indices, self.num_envs)
        if attr_name == "render_mode":
            return [self.vector_env.render_mode] * len(rows)
        if attr_name == MASKS and self._rows.has_action_masks:
            return [lambda row=row: self._rows.action_masks([row])[0] for row in rows]
        return self._of_rows(rows, lambda envs: self.vector_env.get_attr(attr_name, env_index=envs))

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
        wrapper_class: type[Any],  # noqa: ARG002 - Gymnasium's wrappers have one agent
        indices: VecEnvIndices = None,
    ) -> list[bool]:
        """Returns false for each row."""
        return [False] * len(rows_of(indices, self.num_envs))

    def _of_rows(self, rows: list[int], ask: Callable[[list[int]], Sequence[Any]]) -> list[Any]:
        """Asks each environment of these rows once."""
        envs = sorted({row // self._agents for row in rows})
        found = dict(zip(envs, ask(envs), strict=True)) if envs else {}
        return [found[row // self._agents] for row in rows]


def _as_parallel(envs: Any, keywords: dict[str, Any]) -> ParallelVectorEnv:
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
