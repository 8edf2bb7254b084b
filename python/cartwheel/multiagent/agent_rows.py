"""A row for each agent: environments of several agents for trainers of one agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from cartwheel._internal import nested
from cartwheel._internal.arguments import as_rows, as_values
from cartwheel._internal.closing import ClosesAfterWith
from cartwheel._internal.versions import keep_open
from cartwheel.multiagent.groups import common_space
from cartwheel.vector.infos import FAILURES
from cartwheel.vector.state_dict import check_equal, check_header, new_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cartwheel._internal.literals import FinalNames
    from cartwheel._internal.reset_arguments import Seeds
    from cartwheel.multiagent.base import AgentsBase
    from cartwheel.multiagent.batches import Columns
    from cartwheel.vector.pool_owner import PoolOwner

#: Infos of the last results of agents, in ``SAME_STEP``.
_FINALS = ("final_obs", "_final_obs", "final_info", "_final_info")
#: Masks of infos that are not of agents, and stay where they are.
_OF_ROWS = ("_restarted", *FAILURES)


class AgentRows(ClosesAfterWith, gym.vector.VectorEnv[Any, Any, Any]):
    """The agents of a :class:`~cartwheel.ParallelVectorEnv` as rows of a vector environment.

    Row ``i * agents + j`` is agent ``j`` of environment ``i``. ``infos["present"]``,
    ``infos["acted"]`` and ``infos["episode_over"]`` have an entry for each row. In ``SAME_STEP``,
    an agent that ends before its environment has its last observation in ``infos["final_obs"]`` and
    is absent in its row, unless it is back in the same step. That observation is blank where
    ``infos["final_info"]["present"]`` is false: the agent ended without one. Infos of agents that
    have these two names are left out in ``SAME_STEP``. An agent that leaves without a flag is
    terminated.

    Attributes:
        envs: The environments with several agents.
        absent: The value of absent agents in observations with floating-point numbers.
        num_agents: The number of possible agents.
        rows_per_env: The same number: wrappers know rows of agents by it.
    """

    __del__ = keep_open
    #: The names that infos have for final observations, as ``cartwheel.VectorEnv`` has them.
    final_names: FinalNames = "gymnasium"

    def __init__(self, envs: AgentsBase) -> None:
        """Checks spaces; see :meth:`cartwheel.ParallelVectorEnv.as_rows`."""
        self.envs = envs
        self.num_agents: int = envs.num_agents
        self.rows_per_env = self.num_agents
        self.absent: float = envs._pool.absent
        if envs.batch_size < envs.num_envs:
            raise ValueError(
                "`as_rows` steps all environments at once, got batch_size="
                f"{envs.batch_size} of num_envs={envs.num_envs}: leave `batch_size` out."
            )
        self.num_envs = envs.num_envs * self.num_agents
        self.single_observation_space = _common(envs.single_observation_space, "observation")
        self.single_action_space = _common(envs.single_action_space, "action")
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._is_same_step = envs.autoreset_mode == AutoresetMode.SAME_STEP
        self.metadata = envs.metadata
        self.render_mode = envs.render_mode
        #: Which rows showed no observation in the state that was loaded last.
        self._absent_in_state: NDArray[np.bool_] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.envs!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be pickled or copied: pass a function that makes one.")

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When an environment whose episode is over restarts, with all of its rows."""
        return self.envs.autoreset_mode

    @property
    def _lives(self) -> NDArray[np.bool_]:
        """Which agents are in the ``agents`` of their environment now, one entry for each row."""
        return _flat(self.envs._batches.lives)

    @property
    def _pool_owner(self) -> PoolOwner:
        """The vector environment whose pool counts the steps and resets of all callers."""
        return self.envs._pool.unwrapped

    def reset(
        self, *, seed: Seeds = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets all environments, or those that ``"reset_mask"`` selects with all their rows.

        Args:
            seed: Environment ``i`` gets ``seed + i``, or entry ``i`` of a list, as its agents share
                one seed.
            options: Options of all environments. ``"reset_mask"`` has an entry for each row.

        Returns:
            Observations, one for each row, and infos.

        Raises:
            ValueError: The mask has some, but not all rows of an environment; or there is
                ``"env_index"``.
        """
        columns = self.envs._reset_columns(seed, self._options(options))
        observations, infos = self._flat(columns.observations), self._infos(columns)
        infos["present"] &= ~self._blank_ended(observations, columns.lives)
        return observations, infos

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Steps all environments.

        Args:
            actions: One action for each row; those of absent agents are ignored.

        Returns:
            Observations, rewards (``float64``), terminations, truncations (``bool``), with one
            entry for each row, and infos.

        Raises:
            ValueError: The number or the shape of actions is wrong; nothing was stepped.
            Exception: As for :meth:`cartwheel.ParallelVectorEnv.step`.
        """
        return self._stepped(self.envs._step_columns(self._by_agent(actions), None))

    def step_async(self, actions: Any) -> None:
        """Begins a step with the arguments of :meth:`step`; :meth:`step_wait` returns its result.

        Raises:
            Exception: As :meth:`step`.
        """
        self.envs._begin_step(self._by_agent(actions), None)

    def step_wait(
        self, timeout: float | None = None
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Waits for a step: of :meth:`step_async`, or one that has timed out or was interrupted.

        Args:
            timeout: Seconds to wait, or ``None`` for as long as it takes.

        Returns:
            The same five values as :meth:`step`.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.step_wait`.
        """
        return self._stepped(self.envs._wait_columns(timeout))

    def _by_agent(self, actions: Any) -> dict[str, Any]:
        """Returns actions of rows by agent."""
        shape = (self.envs.num_envs, self.num_agents)

        def by_env(array: Any) -> Any:
            array = nested.as_array("actions", array)
            if len(array.shape) == 0 or len(array) != self.num_envs:
                raise ValueError(
                    f"`actions` must have one entry for each of the {self.num_envs} rows, "
                    f"got the shape {array.shape}."
                )
            return array.reshape((*shape, *array.shape[1:]))

        space = self.single_action_space
        if isinstance(space, nested.ARRAY_SPACES):
            actions = nested.as_array("actions", actions)  # a tuple has an action for each row
            if actions.ndim and actions.shape[1:] != space.shape:
                wanted = self.action_space.shape
                raise ValueError(f"`actions` must have the shape {wanted}, got {actions.shape}.")
        by_agent = nested.apply(by_env, actions)
        return {
            agent: nested.at(by_agent, (slice(None), place))
            for place, agent in enumerate(self.envs.possible_agents)
        }

    def _stepped(
        self, columns: Columns
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Returns the results of a step by row."""
        infos = self._infos(columns)
        # A row that ends without a flag would run on into the next episode of its environment.
        gone = columns.acted & ~columns.lives & ~columns.truncated
        terminated, truncated = _flat(columns.terminated | gone), _flat(columns.truncated)
        observations = self._flat(columns.observations)
        if self._is_same_step:
            self._keep_finals(columns, observations, terminated | truncated, infos)
        return observations, _flat(columns.rewards), terminated, truncated, infos

    @property
    def has_action_masks(self) -> bool:
        """Whether agents show masks of actions; masks in infos are known after a reset."""
        return self.envs.has_action_masks

    def action_masks(self, env_index: Any = None) -> NDArray[np.bool_]:
        """Returns which actions each row may take next, ``bool`` of shape ``(rows, actions)``.

        Args:
            env_index: Row numbers, in any order; by default all rows.

        Raises:
            ValueError: No agent has shown a mask; or a row does not exist or is named twice.
        """
        every = range(self.envs.num_envs)  # the last batch may be one of some environments
        masks = np.stack(list(self.envs.action_masks(every).values()), axis=1)
        by_row: NDArray[np.bool_] = masks.reshape(self.num_envs, -1)
        return by_row if env_index is None else by_row[as_rows(env_index, self.num_envs)]

    def state_dict(self) -> dict[str, Any]:
        """Saves the environments, as :meth:`cartwheel.ParallelVectorEnv.state_dict` does."""
        return new_state("agent_rows", num_envs=self.num_envs, envs=self._rows(envs=True))

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Continues from a state of :meth:`state_dict`.

        Returns:
            What the rows last showed.

        Raises:
            TypeError: ``state`` is not a dictionary.
            ValueError: It is of another version or of something else. Nothing has changed.
            Exception: As for :meth:`cartwheel.ParallelVectorEnv.load_state_dict`.
        """
        check_header(state, "agent_rows", ("num_envs", "envs"))
        check_equal("num_envs", state["num_envs"], self.num_envs)
        return self._load_rows(state)

    # What the states of wrappers have of the rows, as of ``SavedRows``

    def _rows(self, *, envs: bool) -> dict[str, Any] | None:
        return self.envs.state_dict() if envs else None

    def _load_rows(self, state: dict[str, Any]) -> Any:
        columns = None if state["envs"] is None else self.envs._load_columns(state["envs"])
        if columns is None:
            return None
        observations = self._flat(columns.observations)
        ended = self._blank_ended(observations, columns.lives)
        self._absent_in_state = ended | ~_flat(columns.present)
        return observations

    def _options(self, options: Any) -> Any:
        if not isinstance(options, dict):
            return options
        named = [name for name in ("env_index", "env_idx") if name in options]
        if named:
            raise ValueError(
                f"rows of agents are reset by 'reset_mask', which `options[{named[0]!r}]` is not."
            )
        if "reset_mask" not in options:
            return options
        mask = np.asarray(options["reset_mask"])
        if mask.shape != (self.num_envs,):
            raise ValueError(
                f"`options['reset_mask']` must have the shape ({self.num_envs},), got {mask.shape}."
            )
        by_env = mask.reshape(self.envs.num_envs, self.num_agents)
        parts = np.flatnonzero((by_env != by_env[:, :1]).any(axis=1)).tolist()
        if parts:
            raise ValueError(
                "`options['reset_mask']` must have all agents of an environment or none: it has "
                f"some of the agents of the environments {parts}. Pass `infos['episode_over']`."
            )
        return options | {"reset_mask": by_env[:, 0].copy()}

    def _flat(self, groups: dict[str, Any]) -> Any:
        """Returns observations with a row for each agent: a view, as all agents are one group."""
        (values,) = groups.values()
        return nested.apply(lambda array: array.reshape((self.num_envs, *array.shape[2:])), values)

    def _blank_ended(self, observations: Any, lives: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Blanks the rows of agents that ended before their environment, as steps show them.

        Args:
            observations: What rows show again, or since a reset.
            lives: Which agents live, ``(agents, n)``.

        Returns:
            These rows; none in another mode than ``SAME_STEP``.
        """
        ended = ~_flat(lives) & self._is_same_step
        self._blank(observations, np.flatnonzero(ended))
        return ended

    def _blank(self, observations: Any, rows: NDArray[np.intp]) -> None:
        def blank(array: NDArray[Any]) -> None:
            array[rows] = self.absent if array.dtype.kind in "fc" else 0

        nested.apply(blank, observations)

    def _infos(self, columns: Columns) -> dict[str, Any]:
        infos = self._repeated(columns.infos)
        infos.update(self._interleaved(columns.agent_infos))
        infos["present"], infos["acted"] = _flat(columns.present), _flat(columns.acted)
        if columns.episode_over is not None:
            infos["episode_over"] = np.repeat(columns.episode_over, self.num_agents)
        return infos

    def _repeated(self, infos: dict[str, Any]) -> dict[str, Any]:
        """Returns infos of environments as infos of rows; states may be nested, too."""
        repeated: dict[str, Any]
        repeated = nested.apply(lambda array: np.repeat(array, self.num_agents, axis=0), infos)
        return repeated

    def _interleaved(self, by_agent: dict[int, Any]) -> dict[str, Any]:
        """Returns infos of agents as infos of rows."""
        found: dict[str, Any] = {}
        for place, infos in by_agent.items():
            self._put(found, slice(place, None, self.num_agents), infos)
        return found

    def _put(self, found: dict[str, Any], rows: Any, infos: dict[str, Any]) -> None:
        """Puts infos of some rows into infos of all rows, whose arrays are widened for them."""
        for key, value in infos.items():
            there = found.get(key)
            if isinstance(value, dict):
                found[key] = there if isinstance(there, dict) else {}
                self._put(found[key], rows, value)
            elif not isinstance(there, dict):
                found[key] = _with_rows(there, rows, value, self.num_envs)

    def _keep_finals(
        self, columns: Columns, observations: Any, ended: NDArray[np.bool_], infos: dict[str, Any]
    ) -> None:
        """Moves last observations of agents to ``final_obs``, as objects, and blanks their rows."""
        for name in _FINALS:  # an agent's own infos, which would be taken for these
            infos.pop(name, None)
        over, finals = infos["episode_over"], columns.finals
        last, present, mask = observations, infos["present"], ended & infos["acted"]
        final_infos: dict[str, Any] = {}
        if finals is not None:
            last, final_present = self._flat(finals.observations), _flat(finals.present)
            present, mask = np.where(over, final_present, present), mask | final_present
            final_infos = self._repeated(finals.infos) | self._interleaved(finals.agent_infos)
        rows = np.flatnonzero(mask)
        if not len(rows):
            return
        taken = np.empty(self.num_envs, object)
        for row in rows.tolist():
            taken[row] = nested.apply(np.copy, nested.at(last, row))
        early = ended & ~over
        self._move_infos(np.flatnonzero(early), infos, final_infos)
        gone = np.flatnonzero(early & ~_flat(columns.lives))  # others are there again
        self._blank(observations, gone)
        final_infos["present"] = present & mask
        infos["present"][gone] = False
        infos["final_obs"], infos["_final_obs"] = taken, mask
        infos["final_info"], infos["_final_info"] = final_infos, mask.copy()

    def _move_infos(
        self, rows: NDArray[np.intp], infos: dict[str, Any], finals: dict[str, Any]
    ) -> None:
        """Moves the infos of rows whose agents ended early to the final infos."""
        for key in list(infos):
            mask_key = f"_{key}"
            mask = infos.get(mask_key)
            if mask is None or mask_key in _OF_ROWS or isinstance(mask, dict):
                continue
            moved = rows[mask[rows]]
            if not len(moved):
                continue
            if isinstance(infos[key], dict):
                self._move_infos(moved, infos[key], finals.setdefault(key, {}))
            else:
                self._put(finals, moved, {key: infos[key][moved]})
                infos[key][moved] = _blanks(1, infos[key])
            self._put(finals, moved, {mask_key: mask[moved]})
            mask[moved] = False

    def render(self) -> tuple[Any, ...] | None:
        """Renders each environment; all its rows get its frame."""
        return self._each(self.envs.render())

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of each environment once; all its rows get the result."""
        return self._each(self.envs.call(name, *args, **kwargs))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Reads an attribute of each environment; all its rows get the value."""
        return self._each(self.envs.get_attr(name))

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of each environment, once for all of its rows.

        Args:
            name: The attribute, as for :meth:`cartwheel.VectorEnv.set_attr`.
            values: A list or tuple with one value for each row, equal in all rows of an
                environment, as :meth:`get_attr` returns them; any other value is set on each
                environment.

        Raises:
            ValueError: The number of values is wrong, or rows of an environment have several.
            Exception: As :meth:`cartwheel.VectorEnv.set_attr`.
        """
        by_row = as_values(name, values, self.num_envs, None)
        firsts = by_row[:: self.num_agents]
        for row, (value, first) in enumerate(zip(by_row, self._each(firsts), strict=True)):
            if value is not first and not np.array_equal(value, first):
                raise ValueError(
                    f"`values` of `{name}` must be the same for all {self.num_agents} rows of "
                    f"environment {row // self.num_agents}, got {first!r} and {value!r}."
                )
        self.envs.set_attr(name, firsts)

    def _each(self, by_env: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(value for value in by_env for _ in range(self.num_agents))

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the environments and ends the workers."""
        self.envs.close(**kwargs)


def _flat(columns: NDArray[Any]) -> NDArray[Any]:
    """Returns columns ``(agents, n)`` as one entry for each row, as a copy."""
    return columns.T.flatten()


def _with_rows(
    array: NDArray[Any] | None, rows: Any, values: NDArray[Any], count: int
) -> NDArray[Any]:
    """Returns an array of ``count`` rows with other values in some: objects if shapes differ.

    ``array`` may be changed; ``None``: a new one.
    """
    if array is None:
        array = _blanks(count, values)
    if array.shape[1:] != values.shape[1:]:
        array, values = _objects(array), _objects(values)
    array = array.astype(np.promote_types(array.dtype, values.dtype), copy=False)
    array[rows] = values
    return array


def _blanks(count: int, like: NDArray[Any]) -> NDArray[Any]:
    """Returns the values of rows without an info."""
    blanks = np.zeros((count, *like.shape[1:]), like.dtype)
    if like.dtype == object:
        blanks[:] = None
    return blanks


def _objects(array: NDArray[Any]) -> NDArray[Any]:
    objects = np.empty(len(array), object)
    for row, value in enumerate(array):
        objects[row] = value
    return objects


def _common(spaces: gym.spaces.Dict, what: str) -> Any:
    advice = " `by_group` takes agents with different spaces."
    return common_space(spaces, spaces, what, "`as_rows`", advice)
