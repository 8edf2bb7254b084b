"""Members that all forms of an environment of several agents use: calls, states, conversions."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from gymnasium.spaces import Dict, Space
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from cartwheel._internal.arguments import as_rows
from cartwheel._internal.closing import ClosesAfterWith
from cartwheel._internal.reset_arguments import as_reset_rows
from cartwheel.errors import is_raised_by_env
from cartwheel.multiagent.batches import by_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from cartwheel._internal.literals import Executor, RecvOrder
    from cartwheel.multiagent.batches import AgentBatches, Columns
    from cartwheel.multiagent.pool import AgentsPool
    from cartwheel.vector.stats import Stats

#: Advice for names of other interfaces.
_ADVICE = {
    "action_spaces": "the spaces of agents are in `single_action_space`",
    "agent_iter": "`step` takes the actions of all agents, as in PettingZoo's parallel API",
    "agents": "`possible_agents` are all, and infos['present'] tells in which rows each one is",
    "env_fns": "the environments of the executor 'inline' are in `envs`",
    "last": "`step` returns the observations, rewards, flags and infos of all agents",
    "max_num_agents": "`num_agents` is the number of possible agents",
    "observation_spaces": "the spaces of agents are in `single_observation_space`",
    "rollout": "a Collector records `as_rows()`",
    "state": "make it with state=True, and read infos['state']",
}

#: Keywords of vector environments that those of several agents do not have, and why.
REFUSED_KEYWORDS = {
    "final_names": "final observations are dictionaries by agent",
    "final_obs": "final observations are dictionaries by agent",
    "ignore_terminations": "an environment cannot be stepped when its agents are gone",
}
#: Results by agent.
ByAgent = dict[Any, Any]
#: Above those of all wrappers, whose errors drop results, too.
_ANY_LEVEL = 2**32 - 1


class AgentsBase(ClosesAfterWith):
    """A pool of rows with several agents, its spaces, and conversions of its batches.

    Attributes:
        possible_agents: All agents that may appear, in the order of all dictionaries.
        single_observation_space: The observation spaces of one environment, by agent.
        single_action_space: The action spaces of one environment, by agent.
        observation_space: Those of a batch.
        action_space: Those of a batch.
        state_space: The space of the state of one environment; ``None`` without ``state=True``.
        num_envs: The number of environments.
        batch_size: The number of rows of a batch.
        executor: Where environments run; never ``"auto"``.
        metadata: Those of the first environment, and the autoreset mode.
        render_mode: That of the first environment.
        action_mask: The key of masks of actions.
    """

    #: Keywords that it lacks, and the reasons that errors give.
    _refused_keywords = REFUSED_KEYWORDS

    def __init__(self, pool: Any) -> None:
        self._pool: AgentsPool = pool
        self.action_mask: str | None = pool.mask_key
        self._batches: AgentBatches = pool.batches()
        layout = self._pool.layout
        self.possible_agents: list[Any] = list(layout.agents)
        self.single_observation_space = _dict_space(layout.agents, layout.observation_spaces)
        self.single_action_space = _dict_space(layout.agents, layout.action_spaces)
        rows = self._pool.batch_size
        self.observation_space = _batched(self.single_observation_space, rows)
        self.action_space = _batched(self.single_action_space, rows)
        self.state_space: Space[Any] | None = layout.state_space
        self.num_envs: int = self._pool.num_envs
        self.batch_size: int = rows
        self.executor: Executor = self._pool.executor
        self.metadata: dict[str, Any] = self._pool.metadata
        self.render_mode: str | None = self._pool.render_mode
        is_disabled = self.autoreset_mode == AutoresetMode.DISABLED
        self._freezes = is_disabled and pool.unwrapped.on_done == "freeze"
        self._drops_read = 0

    def __repr__(self) -> str:
        inner = repr(self._pool.unwrapped).partition("(")[2]
        return f"{type(self).__name__}(agents={len(self.possible_agents)}, {inner}"

    if not TYPE_CHECKING:  # type checkers would accept every name

        def __getattr__(self, name: str) -> Any:
            """Gives advice for names that PettingZoo's environments, or rows, have.

            Raises:
                AttributeError: Always; for a property that raised one, as :attr:`envs` may, again.
            """
            if name not in _ADVICE:
                return object.__getattribute__(self, name)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}: {_ADVICE[name]}",
                name=name,
                obj=self,
            )

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be pickled or copied: pass a function that makes one.")

    # Attributes and calls

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When a row whose episode is over restarts. Workers have read it, so it cannot be set."""
        return self._pool.autoreset_mode

    @property
    def num_agents(self) -> int:
        """The number of possible agents."""
        return len(self.possible_agents)

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return bool(self._pool.unwrapped.closed)

    @property
    def timeout(self) -> float | None:
        """Seconds that a reset, a step or a control call may take; ``None``: no limit."""
        return self._pool.timeout

    @property
    def in_flight(self) -> list[int]:
        """The rows that were sent and have not been received, in ascending order."""
        return self._pool.in_flight

    @property
    def recv_order(self) -> RecvOrder:
        """The order in which :meth:`recv` returns rows: ``"sent"`` or ``"done"``."""
        return self._pool.recv_order

    @recv_order.setter
    def recv_order(self, order: RecvOrder) -> None:
        self._pool.recv_order = order

    @property
    def envs(self) -> list[Any]:
        """The environments themselves, for the ``inline`` executor; also after :meth:`close`."""
        return [env.made for env in self._pool.envs]

    @property
    def processes(self) -> list[Any]:
        """The worker processes; empty for other executors."""
        return self._pool.processes

    def call(self, name: str, *args: Any, env_index: Any = None, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of environments, or reads an attribute that is not callable.

        Args:
            name: The method or attribute, which may belong to an environment within a wrapper.
            *args: Arguments of the method.
            env_index: Row numbers; by default all rows.
            **kwargs: Keyword arguments of the method.

        Returns:
            One result for each of these rows.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.call`.
        """
        return self._pool.call(name, *args, env_index=env_index, **kwargs)

    def get_attr(self, name: str, *, env_index: Any = None) -> tuple[Any, ...]:
        """Reads an attribute of environments; calls it if it is callable.

        Args:
            name: The attribute, as for :meth:`call`.
            env_index: Row numbers; by default all rows.

        Returns:
            One value for each of these rows.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.get_attr`.
        """
        return self._pool.get_attr(name, env_index=env_index)

    def set_attr(self, name: str, values: Any, *, env_index: Any = None) -> None:
        """Sets an attribute of environments.

        Args:
            name: The attribute, as for :meth:`cartwheel.VectorEnv.set_attr`.
            values: A list or tuple with one value for each of the rows; any other value is set on
                each of these environments.
            env_index: Row numbers; by default all rows.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.set_attr`.
        """
        self._pool.set_attr(name, values, env_index=env_index)

    def apply(
        self, function: Callable[..., Any], *args: Any, env_index: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Calls a function with what each function of ``env_fns`` returned, where it is.

        Args:
            function: As for :meth:`cartwheel.VectorEnv.apply`, like all that follow.
            *args: Further arguments.
            env_index: Row numbers; by default all rows.
            **kwargs: Keywords of the function.

        Returns:
            One result for each of these rows.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.apply`.
        """
        return self._pool.apply(function, *args, env_index=env_index, **kwargs)

    def render(self, env_index: Any = None) -> tuple[Any, ...]:
        """Renders environments.

        Args:
            env_index: Row numbers; by default all rows.

        Returns:
            What ``render`` of each of these environments returns: with
            ``render_mode="rgb_array"`` an array ``uint8`` of shape ``(height, width, 3)``.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.render`.
        """
        return self._pool.render(env_index)

    @property
    def has_action_masks(self) -> bool:
        """Whether agents show masks of actions; masks in infos are known after a reset."""
        return self._batches.masks.is_shown

    def action_masks(self, env_index: Any = None) -> dict[Any, NDArray[np.bool_]]:
        """Returns which actions agents may take next, in the rows of the last batch.

        Masks come from the part of an agent's observations, or of its infos, that the argument
        ``action_mask`` of the constructor names. An agent may take every action in rows in which it
        is absent or has ended, and as described in :meth:`cartwheel.VectorEnv.action_masks`.

        Args:
            env_index: Row numbers; by default the rows of the last batch, in its order.

        Returns:
            ``bool`` of shape ``(rows, actions)`` for each agent whose actions are discrete.

        Raises:
            ValueError: No agent has shown a mask; or a row does not exist or is named twice.
        """
        rows = None if env_index is None else as_rows(env_index, self.num_envs)
        self._forget_dropped()
        return self._batches.masks.by_agent(self, rows)

    def stats(self) -> Stats:
        """Returns steps, resets and times of each row and worker, as of ``VectorEnv``."""
        return self._pool.stats()

    def close(self, timeout: float | None = None, *, terminate: bool = False) -> None:
        """Closes the environments and ends the workers, in any state.

        Args:
            timeout: Seconds that environments get to finish a pending call and to close.
            terminate: Do not wait at all.
        """
        self._pool.close(timeout=timeout, terminate=terminate)

    # States

    def get_state(self, env_index: Any = None) -> list[bytes]:
        """Saves rows.

        An environment, or one within it, has ``get_state()`` and ``set_state(state)``, or
        ``states="pickle"`` saves it by its attributes.

        Args:
            env_index: Row numbers; by default all rows.

        Returns:
            The bytes of each of these rows, for :meth:`set_state` of any row.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.get_state`.
        """
        states = self._pool.get_state(env_index)
        rows = range(self.num_envs) if env_index is None else as_rows(env_index, self.num_envs)
        return self._batches.with_flags(rows, states)

    def set_state(self, env_index: Any, states: Sequence[bytes]) -> tuple[ByAgent, dict[str, Any]]:
        """Continues rows from states of :meth:`get_state`.

        Args:
            env_index: Row numbers.
            states: One state for each of these rows.

        Returns:
            Observations and infos of these rows, as of a :meth:`reset` with row numbers.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.set_state`.
        """
        is_list = isinstance(states, Iterable) and not isinstance(states, bytes)
        own, flags = self._batches.without_flags(list(states)) if is_list else (states, [])
        with self._masks_if_refused():
            shown, infos = self._pool.set_state(env_index, own)
        self._forget_dropped()
        self._batches.forget_shown(infos["env_index"], flags)
        return self._shown(self._batches.reset(shown, infos, self._rows_over()))

    def state_dict(self, *, envs: bool = True) -> dict[str, Any]:
        """Saves all rows, to continue here or in another process, as of ``VectorEnv``.

        Args:
            envs: Whether to save the environments, too.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.state_dict`.
        """
        state = self._pool.state_dict(envs=envs)
        if not envs:
            return state
        self._forget_dropped()
        rows = state["envs"]
        rows["states"] = self._batches.with_flags(range(self.num_envs), rows["states"])
        kept = self._batches.masks.kept()
        return state if kept is None else state | {"agent_masks": kept}

    def load_state_dict(self, state: dict[str, Any]) -> ByAgent | None:
        """Continues from a state of :meth:`state_dict`, as of ``VectorEnv``.

        Returns:
            The observations by agent that the rows last showed; ``None`` for a state without
            environments.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.load_state_dict`.
        """
        columns = self._load_columns(state)
        return None if columns is None else self._observations(columns.observations)

    def _load_columns(self, state: dict[str, Any]) -> Columns | None:
        kept = state.get("agent_masks") if isinstance(state, dict) else None
        masks = self._batches.masks
        if kept is not None:
            if state.get("num_envs") == self.num_envs:  # other numbers are refused below
                masks.check(kept)
            state = {key: value for key, value in state.items() if key != "agent_masks"}
        flags: list[bytes] = []
        rows = state.get("envs") if isinstance(state, dict) else None
        if isinstance(rows, dict) and isinstance(rows.get("states"), list):
            own, flags = self._batches.without_flags(rows["states"])
            state = state | {"envs": rows | {"states": own}}
        with self._masks_if_refused():
            shown: Any = self._pool.load_state_dict(state)
        if shown is None:
            return None
        self._batches.forget_shown(slice(None), flags)
        columns = self._batches.reset(shown, {}, self._rows_over())
        if kept is not None:
            masks.keep(kept)
        return columns

    # Conversions

    def _prepared(self, actions: Any, env_index: Any) -> dict[str, Any]:
        """Returns the actions of the pool."""
        count = self.num_envs if env_index is None else np.size(env_index)
        return self._batches.actions(actions, count)

    def _reset_columns(self, seed: Any, options: Any, **keywords: Any) -> Columns:
        shown, infos = self._pool.reset(seed=seed, options=options, **keywords)
        self._forget_dropped()
        self._batches.masks.clear(as_reset_rows(options, self.num_envs))
        return self._batches.reset(shown, infos, self._rows_over())

    def _dropped(self) -> Any:
        """Returns the rows of which results were dropped since the last look; ``None``: of none."""
        dropped = self._pool.unwrapped._pool.dropped(self._drops_read, _ANY_LEVEL)
        if dropped is None:
            return None
        self._drops_read, rows, _, _ = dropped
        return rows

    def _forget_dropped(self) -> None:
        """Forgets masks of rows of which results were dropped: a step timed out, or raised."""
        rows = self._dropped()
        if rows is not None:
            self._batches.masks.clear(rows)

    @contextlib.contextmanager
    def _masks_if_refused(self) -> Iterator[None]:
        """Loads states; where a row refuses its own, all rows have their old ones, and masks."""
        self._forget_dropped()
        try:
            yield
        except Exception as error:
            if is_raised_by_env(error):
                self._dropped()  # which keep their masks
            raise

    def _rows_over(self) -> NDArray[np.bool_]:
        """Which rows are over; those in flight whose reset was sent count as over, too."""
        over = np.zeros(self.num_envs, np.bool_)
        over[np.array(self._pool.unwrapped._pool.rows_over(), np.int64)] = True
        return over

    def _step_columns(self, actions: Any, env_index: Any) -> Columns:
        batch = self._prepared(actions, env_index)
        return self._received(lambda: self._pool.step(batch, env_index))

    def _begin_step(self, actions: Any, env_index: Any) -> None:
        self._pool.step_async(self._prepared(actions, env_index), env_index)

    def _wait_columns(self, timeout: float | None) -> Columns:
        return self._received(lambda: self._pool.step_wait(timeout))

    def _received(self, receive: Callable[[], Any]) -> Columns:
        """Receives results of steps; rows that were over before were not stepped, if rows freeze.

        Results of a reset that was sent say of no agent that it acted, whether its row was over.
        """
        frozen = self._rows_over() if self._freezes else None
        result = receive()
        self._forget_dropped()
        rows = result[4].get("env_index")
        if frozen is not None and rows is not None:
            frozen = frozen[rows]
        return self._batches.step(result, frozen)

    def _by_agent(self, columns: Any) -> ByAgent:
        # Columns have an entry for each agent; a check would take longer than the rest.
        return dict(zip(self.possible_agents, columns))  # noqa: B905 - see above

    def _observations(self, groups: dict[str, Any]) -> ByAgent:
        return self._by_agent(self._batches.all_observations(groups))

    def _shown(self, columns: Columns) -> tuple[ByAgent, dict[str, Any]]:
        return self._observations(columns.observations), self._infos(columns)

    def _stepped(
        self, columns: Columns
    ) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, dict[str, Any]]:
        return (
            self._observations(columns.observations),
            self._by_agent(columns.rewards),
            self._by_agent(columns.terminated),
            self._by_agent(columns.truncated),
            self._infos(columns),
        )

    def _infos(self, columns: Columns) -> dict[str, Any]:
        infos = columns.infos
        infos["present"] = self._by_agent(columns.present)
        infos["acted"] = self._by_agent(columns.acted)
        if columns.episode_over is not None:
            infos["episode_over"] = columns.episode_over
        names = self._batches.layout.agents
        if columns.agent_infos:
            infos.update(by_name(names, columns.agent_infos))
        finals = columns.finals
        if finals is not None:
            infos["final_obs"] = self._observations(finals.observations)
            infos["_final_obs"] = self._by_agent(finals.present)
            infos["final_info"] = finals.infos | by_name(names, finals.agent_infos)
            infos["_final_info"] = self._by_agent(finals.present.copy())
        return infos


def _dict_space(names: tuple[Any, ...], spaces: Iterable[Space[Any]]) -> Dict:
    # An ordered dictionary keeps its order, which Gymnasium would change otherwise.
    return Dict(OrderedDict(zip(names, spaces, strict=True)))


def _batched(space: Dict, count: int) -> Dict:
    return Dict(OrderedDict((name, batch_space(part, count)) for name, part in space.items()))
