"""PettingZoo's environments as rows: one environment of several agents for one row of a batch.

:class:`AgentsEnv` has the methods that a worker calls. Everything of fixed shape of a row, the
observations, rewards and flags of all agents, is in a few arrays, so that it goes through shared
memory and the caller reads columns. PettingZoo itself is imported only to convert an environment
whose agents take turns.

Workers import this file by name, so it must not import a trainer.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Dict, MultiBinary

from cartwheel._internal import nested
from cartwheel.workers.envs.agents_layout import FLAGS, AgentsSettings, layout_of
from cartwheel.workers.envs.attributes import own_attribute
from cartwheel.workers.envs.observation_stack import ObservationStack, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterator, Sequence

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

#: Attributes that hold the environment within one of PettingZoo's wrappers.
_INNER = ("env", "aec_env", "par_env")
#: Stands for an attribute that an object does not have.
_NONE = object()
#: What the methods of an environment return, each a dictionary by agent.
_RETURNED = {
    "reset": ("observations", "infos"),
    "step": ("observations", "rewards", "terminations", "truncations", "infos"),
}


class MakesAgentsEnv:
    """A function that makes a row."""

    def __init__(self, env_fn: Callable[[], Any], settings: AgentsSettings) -> None:
        self.env_fn = env_fn
        self.settings = settings

    def __call__(self) -> AgentsEnv:
        """Makes the environment; one that is refused is closed.

        A further one, which replaces the first, has the same agents in the same order.
        """
        made = self.env_fn()
        try:
            env = AgentsEnv(made, self.settings)
        except BaseException:
            close = getattr(made, "close", None)
            if callable(close) and not isinstance(made, type):
                close()
            raise
        self.settings = dataclasses.replace(self.settings, agents=env.layout.agents)
        return env


class AgentsEnv:
    """An environment of several agents, with the methods that a worker calls.

    An observation has the stacked observations of each group of agents, their flags, and the state
    of the environment if it is asked for. A reward is an array of the rewards of all agents. The
    row is terminated when no agent is left; it is never truncated by itself.

    Attributes:
        made: The environment that the caller's function returned.
        env: The same, or its conversion into a parallel environment.
        layout: The agents and their spaces.
    """

    def __init__(self, made: Any, settings: AgentsSettings) -> None:
        """Reads agents and spaces.

        Raises:
            TypeError: This is not an environment of PettingZoo.
            ValueError: It does not name its agents, has other agents than row 0, or has no state.
        """
        self.made = made
        self.env = as_parallel(made)
        self.layout = layout_of(self.env, settings)
        self._settings = settings
        self._names = list(self.layout.agents)
        self._places = {name: place for place, name in enumerate(self._names)}
        self._of_all = in_order(self._names)
        self._stacks = [
            ObservationStack(group, [self._names[place] for place in group.members], settings)
            for group in self.layout.observation_groups()
        ]
        self._action_groups = self.layout.action_groups()
        spaces_of_arrays = isinstance(self._action_groups[0].space, nested.ARRAY_SPACES)
        #: Whether all actions are in one array.
        self._stacks_all_actions = len(self._action_groups) == 1 and spaces_of_arrays
        #: The flags where every agent acts, is present and lives.
        self._all_act = self._flags_of(self._names)
        #: The agents of the last step in which some act and nothing changes, and their flags.
        self._some = frozenset[Any]()
        self._some_act = self._flags_of(())
        flags = MultiBinary((len(FLAGS), len(self._names)))
        observations = {stack.key: stack.space for stack in self._stacks}
        spaces: dict[str, Space[Any]] = {"agents": Dict(observations), "flags": flags}
        if self.layout.state_space is not None:
            spaces["state"] = self.layout.state_space
        self.observation_space = Dict(spaces)
        self.action_space = Dict(
            {group.key: group.stacked_space() for group in self._action_groups}
        )
        self.reward_space = Box(-np.inf, np.inf, (len(self._names),), np.float64)
        self.metadata = dict(getattr(self.env, "metadata", None) or {})
        self.render_mode = getattr(self.env, "render_mode", None)
        chain = list(self.chain())
        at = next((at for at, one in enumerate(chain) if _saves_itself(one)), None)
        #: The conversions and wrappers around the object with ``get_state``; empty if none has it.
        self.wrappers = chain[: at or 0]
        # Set in every row: once a class has many instances, Python makes a `__dict__` for one with
        # an attribute that the others lack, and reads its attributes more slowly.
        self.get_state: Callable[[], Any] | None = None
        self.set_state: Callable[[Any], None] | None = None
        if at is not None:
            # A function that has this object would keep it until a collection.
            env, saves = self.env, chain[at]
            self.get_state = lambda: (list(env.agents), saves.get_state())
            self.set_state = lambda state: _set_state(env, saves, *state)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Resets the environment.

        Raises:
            ValueError: No agent is there after the reset, or an unknown one; or the environment
                returned something other than two dictionaries.
        """
        results = self.env.reset(seed=seed, options=options)
        _check_by_agent("reset", results)
        observations, infos = results
        agents = list(self.env.agents)
        if not agents:
            raise ValueError(
                f"no agent is in `agents` after a reset: it must have some of {self._names}"
            )
        row = self._observed(observations, (), agents, {}, {})
        return row, self._infos(infos, agents)

    def step(
        self, action: dict[str, Any]
    ) -> tuple[dict[str, Any], list[float], bool, bool, dict[str, Any]]:
        """Steps the agents that are in ``agents``; actions of others are ignored.

        Raises:
            gymnasium.error.ResetNeeded: The environment was never reset, and tells no agents.
            ValueError: An unknown agent appears, or an observation has a wrong shape; or the
                environment returned something other than five dictionaries.
            TypeError: An observation has another kind of dtype.
        """
        # No comprehension reads a variable of this function: each such variable would cost the
        # steps that need none of them a cell.
        env, names = self.env, self._names
        try:
            before = env.agents
        except AttributeError:  # PettingZoo's conversions have no agents before the first reset
            raise ResetNeeded("the environment must be reset before its first step") from None
        all_act = before == names
        before = names if all_act else list(before)  # which the environment may change
        if self._stacks_all_actions:
            # The space has an action for each agent; a check would take longer than the rest.
            actions = dict(zip(names, action["0"]))  # noqa: B905 - `strict` costs 0.2 us
        else:
            actions = self._actions(action)
        if self._settings.action_repeat > 1:
            results = self._repeat(actions)
        else:
            if not all_act:
                actions = dict(zip(before, map(actions.__getitem__, before), strict=True))
            results = env.step(actions)
        try:
            observations, rewards, terminations, truncations, infos = results
            ended = any(terminations.values()) or any(truncations.values())
            if all_act and not ended and env.agents == names:
                # Most steps of most environments: no agent comes, goes or ends.
                stacks = {}
                try:
                    for stack in self._stacks:
                        stacks[stack.key] = stack.stack_all(observations)
                    given = self._of_all(rewards)
                except KeyError:
                    pass  # one has no observation or no reward
                else:
                    row = self._row(stacks, self._all_act)
                    told = self._infos(infos, self._places) if any(infos.values()) else {}
                    return row, _as_floats(names, given), False, False, told
            elif not ended and before == env.agents and observations.keys() >= set(before):
                return self._unchanged(frozenset(before), observations, rewards, infos)
            return self._changed(before, observations, rewards, terminations, truncations, infos)
        except Exception:  # a check of each step would take time
            _check_by_agent("step", results)
            raise

    def _unchanged(
        self,
        living: frozenset[Any],
        observations: dict[Any, Any],
        rewards: dict[Any, Any],
        infos: dict[Any, Any],
    ) -> tuple[dict[str, Any], list[float], bool, bool, dict[str, Any]]:
        """Returns the results of a step in which all agents that live act and live on."""
        names = self._names
        if living != self._some:
            self._some, self._some_act = living, self._flags_of(living)
        stacks = {stack.key: stack.stack(observations, living) for stack in self._stacks}
        own = [rewards.get(name, 0.0) if name in living else 0.0 for name in names]
        told = self._infos(infos, living) if any(infos.values()) else {}
        return self._row(stacks, self._some_act), _as_floats(names, own), False, False, told

    def _flags_of(self, living: Collection[Any]) -> NDArray[np.int8]:
        """Returns the flags where these agents act, are present and live on."""
        flags = np.zeros((len(FLAGS), len(self._names)), np.int8)
        flags[2:, [self._places[name] for name in living]] = 1
        return flags

    def _changed(
        self,
        before: Sequence[Any],
        observations: dict[Any, Any],
        rewards: dict[Any, Any],
        terminations: dict[Any, Any],
        truncations: dict[Any, Any],
        infos: dict[Any, Any],
    ) -> tuple[dict[str, Any], list[float], bool, bool, dict[str, Any]]:
        """Returns the results of a step in which agents come, go or end."""
        names, acted, after = self._names, set(before), list(self.env.agents)
        row = self._observed(observations, before, after, terminations, truncations)
        own = [rewards.get(name, 0.0) if name in acted else 0.0 for name in names]
        return row, _as_floats(names, own), not after, False, self._infos(infos, acted.union(after))

    def _repeat(self, actions: dict[Any, Any]) -> tuple[dict[Any, Any], ...]:
        """Repeats actions; of an agent that ends, the results of its last repetition stay.

        Of one that comes again, observation and info are the new ones.
        """
        merged: tuple[dict[Any, Any], ...] = ({}, {}, {}, {}, {})
        rewards, acting = merged[1], list(self.env.agents)
        for _ in range(self._settings.action_repeat):
            before = list(self.env.agents)
            if not before:
                break
            # An environment that writes into an action must not change the next one.
            results = self.env.step({name: copy.deepcopy(actions[name]) for name in before})
            _check_by_agent("step", results)
            after = self.env.agents
            shown = {*before, *after}
            for name in acting:
                rewards[name] = rewards.get(name, 0.0) + results[1].get(name, 0.0)
            for at, names in ((0, shown), (2, acting), (3, acting), (4, shown)):
                part = results[at]
                for name in names:
                    merged[at].pop(name, None)
                merged[at].update((name, part[name]) for name in names if name in part)
            acting = [name for name in acting if name in after]
            for part in (merged[0], merged[4]):
                for name in part.keys() & shown.difference(after):
                    part[name] = copy.deepcopy(part[name])  # the next repetition may change it
        return merged

    def _actions(self, action: dict[str, Any]) -> dict[Any, Any]:
        """Returns the action of each possible agent, in their order."""
        found = dict.fromkeys(self._names)
        for group in self._action_groups:
            values = action[group.key]
            is_plain = isinstance(values, np.ndarray) or not group.is_fixed
            for at, place in enumerate(group.members):
                found[self._names[place]] = values[at] if is_plain else nested.at(values, at)
        return found

    def _observed(
        self,
        observations: dict[Any, Any],
        before: Sequence[Any],
        after: Sequence[Any],
        terminations: dict[Any, Any],
        truncations: dict[Any, Any],
    ) -> dict[str, Any]:
        """Returns the row's observation."""
        places, count = self._places, len(self._names)
        unknown = set(after).difference(places)
        if unknown:
            raise ValueError(
                f"`agents` has {sorted(unknown, key=str)}, which `possible_agents` does not: it "
                f"has {self._names}"
            )
        present = observations.keys() & {*before, *after}
        # An array of nested lists would take several times as long.
        flags = bytearray(len(FLAGS) * count)
        for name in before:
            place = places[name]
            flags[place] = bool(terminations.get(name, False))
            flags[count + place] = bool(truncations.get(name, False))
            flags[3 * count + place] = True
        for name in present:
            flags[2 * count + places[name]] = True
        for name in after:
            flags[4 * count + places[name]] = True
        stacks = {stack.key: stack.stack(observations, present) for stack in self._stacks}
        return self._row(stacks, np.ndarray((len(FLAGS), count), np.int8, flags))

    def _row(self, stacks: dict[str, Any], flags: NDArray[np.int8]) -> dict[str, Any]:
        row: dict[str, Any] = {"agents": stacks, "flags": flags}
        if self.layout.state_space is not None:
            row["state"] = copy.deepcopy(self.env.state())  # which the environment may change
        return row

    def _infos(self, infos: dict[Any, Any], known: Container[Any]) -> dict[str, Any]:
        """Returns infos that are not empty, by the place of the agent."""
        own = self._places.items()
        return {str(at): infos[name] for name, at in own if name in known and infos.get(name)}

    def render(self) -> Any:
        """Renders the environment."""
        return self.env.render()

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()

    # Attributes, as of Gymnasium's wrappers

    def chain(self) -> Iterator[Any]:
        """Yields the environment and those inside it, from the outermost on."""
        one, seen = self.env, set()
        while one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            inner = (own_attribute(one, name) for name in _INNER)
            one = next((found for found in inner if found is not None), None)

    @property
    def unwrapped(self) -> Any:
        """The innermost environment."""
        return list(self.chain())[-1]

    def has_wrapper_attr(self, name: str) -> bool:
        """Whether the environment, or one inside it, has an attribute."""
        return any(hasattr(one, name) for one in self.chain())

    def get_wrapper_attr(self, name: str) -> Any:
        """Returns an attribute of the environment, or of one inside it.

        Raises:
            AttributeError: None has it.
        """
        for one in self.chain():
            if hasattr(one, name):
                return getattr(one, name)
        raise AttributeError(f"{type(self.unwrapped).__name__} has no attribute {name!r}")

    def set_wrapper_attr(self, name: str, value: Any) -> None:
        """Sets an attribute where it is; a new one on the innermost environment."""
        owner = self.unwrapped
        for one in self.chain():
            if hasattr(type(one), name) or own_attribute(one, name, _NONE) is not _NONE:
                owner = one
                break
        setattr(owner, name, value)

    # States

    def __getstate__(self) -> dict[str, Any]:
        """Returns what is saved of an environment that has no methods to save it."""
        return {"made": self.made, "env": self.env}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def _check_by_agent(method: str, results: Any) -> None:
    """Raises ``ValueError`` unless a method returned its dictionaries by agent."""
    names, got = _RETURNED[method], type(results).__name__
    if isinstance(results, (tuple, list)):
        if len(results) == len(names) and all(isinstance(part, Mapping) for part in results):
            return
        got = f"({', '.join(type(part).__name__ for part in results)})"
    raise ValueError(
        f"{method}() must return dictionaries by agent ({', '.join(names)}), got {got}"
    ) from None


def _as_floats(names: Sequence[Any], rewards: Sequence[Any]) -> list[float]:
    try:
        return list(map(float, rewards))
    except (TypeError, ValueError):
        by_agent = dict(zip(names, rewards, strict=True))
        raise TypeError(f"the rewards of agents must be numbers, got {by_agent}") from None


def _set_state(env: Any, saves: Any, agents: list[Any], state: Any) -> None:
    saves.set_state(state)
    # A conversion has a list of its own, and none before its first reset.
    if list(getattr(env, "agents", ())) != agents:
        env.agents = agents


def _saves_itself(env: Any) -> bool:
    """Whether the class of an environment has both methods of states."""
    return all(callable(getattr(type(env), name, None)) for name in ("get_state", "set_state"))


def as_parallel(env: Any) -> Any:
    """Returns a parallel environment of PettingZoo; converts one whose agents take turns.

    Raises:
        TypeError: It is something else.
    """
    if hasattr(env, "agent_iter"):
        from pettingzoo.utils.conversions import aec_to_parallel, turn_based_aec_to_parallel

        if env.metadata.get("is_parallelizable", False):
            return aec_to_parallel(env)
        return turn_based_aec_to_parallel(env)
    names = ("reset", "step", "observation_space", "action_space")
    if isinstance(env, type) or not all(callable(getattr(env, name, None)) for name in names):
        advice = ""
        if not isinstance(env, type) and all(hasattr(env, name) for name in names):
            takes = "VectorEnv steps environments of one agent"
            if hasattr(env, "get_observation_space"):
                takes = "rllib.AsyncVectorMultiAgentEnv steps RLlib's environments"
            advice = f": cartwheel.{takes}"
        raise TypeError(
            "the function of a row must return a parallel or an AEC environment of PettingZoo, got "
            f"{env if isinstance(env, type) else type(env)}{advice}"
        )
    return env
