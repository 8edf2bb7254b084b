"""A vector environment for Tianshou 2: ``pip install 'cartwheel[tianshou]'``."""

from __future__ import annotations

from cartwheel._internal.versions import load

load("tianshou", "tianshou", "cartwheel.tianshou", "2")

# ruff: noqa: E402 - they import what was loaded

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict, Tuple
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv
from tianshou.env import BaseVectorEnv

from cartwheel._internal import nested
from cartwheel._internal.adapters import check_given, check_mode, check_names, check_one_agent
from cartwheel._internal.arguments import as_autoreset_mode, as_env_fns, as_integer, as_integers
from cartwheel._internal.reset_arguments import as_seeds, check_chooses_no_rows
from cartwheel._internal.rewards import check_rewards_are_numbers
from cartwheel._internal.spaces import batch_of_actions, describe
from cartwheel._internal.suggestions import keywords_of, shown
from cartwheel.native.vector_env import NativeVectorEnv
from cartwheel.vector.control_calls import ControlCalls
from cartwheel.vector.infos import infos_by_row
from cartwheel.vector.vector_env import VectorEnv
from cartwheel.workers.envs.turns_env import MakesTurns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from cartwheel._internal.arguments import EnvFn

    #: Row numbers, as Tianshou has them.
    Rows = int | list[int] | NDArray[np.int64] | None
    #: Observations, rewards, terminations, truncations and one info for each row.
    Steps = tuple[
        Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], list[dict[str, Any]]
    ]

__all__ = ["CartwheelVectorEnv"]


class CartwheelVectorEnv(BaseVectorEnv):
    """Replaces Tianshou's ``DummyVectorEnv``, ``SubprocVectorEnv`` and ``ShmemVectorEnv``.

    Collectors get the same transitions as from ``DummyVectorEnv``, bit for bit, with every
    executor. Tianshou resets environments itself, so the autoreset mode is ``DISABLED``.

    Example:
        >>> import gymnasium as gym
        >>> from cartwheel.tianshou import CartwheelVectorEnv
        >>> envs = CartwheelVectorEnv([lambda: gym.make("CartPole-v1")] * 4, executor="inline")
        >>> observations, infos = envs.reset()
        >>> observations, rewards, terminated, truncated, infos = envs.step([0, 1], id=[1, 3])
        >>> [info["env_id"] for info in infos]
        [1, 3]
        >>> envs.close()

    Several agents. Functions may make Tianshou's ``PettingZooEnv``: each step is the turn of the
    agent that ``observations["agent_id"]`` names, and rewards have the shape ``(K, agents)``.

    Args:
        envs: Functions that make the environments; or a vector environment of cartwheel, native
            or not, with ``autoreset_mode="disabled"``, which :meth:`close` closes.
        wait_num: For ``AsyncCollector``: :meth:`step` returns as soon as so many of the
            environments that are being stepped are done. By default it waits for all that it
            steps. A vector environment has its own, the ``batch_size``.
        **keywords: Those of :class:`cartwheel.VectorEnv`, for functions only: ``executor``,
            ``num_workers`` and so on. ``timeout`` is cartwheel's: seconds after which a call is an
            error. (Tianshou's, after which a step returns fewer environments, does not exist here.)

    Raises:
        ValueError: ``envs`` is in another mode than ``DISABLED``, or ``wait_num`` does not fit.
        TypeError: Observations are tuples, which Tianshou does not take; ``envs`` is a vector
            environment that is not cartwheel's; or there are keywords next to a vector environment.
        gymnasium.error.ClosedEnvironmentError: The vector environment is closed.
        Exception: As for :class:`cartwheel.VectorEnv`.
    """

    def __init__(  # no call of super: it would start Tianshou's workers
        self,
        envs: Iterable[EnvFn] | GymnasiumVectorEnv[Any, Any, Any],
        wait_num: int | None = None,
        **keywords: Any,
    ) -> None:
        check_one_agent("CartwheelVectorEnv", envs, "pass functions that make a PettingZooEnv")
        if isinstance(envs, GymnasiumVectorEnv):
            vector = _checked(envs, wait_num, keywords)
        else:
            vector = _made(envs, wait_num, keywords)
        try:
            if not _has_turns(vector):
                check_rewards_are_numbers(vector, "CartwheelVectorEnv")
            _check_observations(vector)
        except (TypeError, ValueError):
            if vector is not envs:
                vector.close()
            raise
        self._envs: Any = vector
        self.env_num: int = vector.num_envs
        self.wait_num: int = vector.batch_size
        self.timeout = None
        self.is_async = self.wait_num < self.env_num
        self.is_closed = False
        #: Rows that can be stepped and reset, and rows that are being stepped.
        self.ready_id = list(range(self.env_num))
        self.waiting_id: list[int] = []
        #: Steps that were done before resets whose results were awaited.
        self._early: list[tuple[list[int], Steps]] = []
        self._rows = list(range(self.env_num))
        self._has_array_actions = describe(vector.single_action_space)[0] == "leaf"
        #: Tianshou draws random actions of each environment from a space of its own.
        self._action_spaces = [copy.deepcopy(vector.single_action_space) for _ in self._rows]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._envs!r})"

    # Attributes

    def get_env_attr(self, key: str, id: Rows = None) -> list[Any]:
        """Returns an attribute of environments, in the order of ``id``; by default of all.

        A method is not called. Spaces are those of the vector environment, and so are ``metadata``
        and ``spec`` of native environments.

        Raises:
            AttributeError: An environment has no such attribute.
            ValueError: A row does not exist or is named twice.
        """
        rows = self._ready(id)
        if key == "action_space":
            return [self._action_spaces[row] for row in rows]
        if key == "observation_space":
            return [self._envs.single_observation_space] * len(rows)
        if key in ("metadata", "spec") and isinstance(self._envs.unwrapped, NativeVectorEnv):
            return [getattr(self._envs, key)] * len(rows)
        inner = self._envs.unwrapped
        if isinstance(inner, ControlCalls):
            return list(inner._asked("get_env_attr", "read", key, rows))
        return list(self._envs.get_attr(key, env_index=rows))

    def set_env_attr(self, key: str, value: Any, id: Rows = None) -> None:
        """Sets an attribute of environments to one value, on the wrapper that has it.

        Raises:
            AttributeError: Native environments have no such parameter.
            ValueError: A row does not exist or is named twice; or native environments refuse the
                value.
        """
        rows = self._ready(id)
        self._envs.set_attr(key, [value] * len(rows), env_index=rows)

    # Resets

    def reset(
        self, env_id: Rows = None, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, NDArray[Any]]:
        """Resets environments.

        Args:
            env_id: The environments; by default all.
            seed: As in Tianshou, every environment gets this same seed; :meth:`seed` gives each
                its own.
            options: For every environment.

        Returns:
            Observations ``[K, …]`` and an array of dictionaries, in the order of ``env_id``.

        Raises:
            ValueError: Options choose rows; or a row does not exist or is named twice.
            Exception: As for :meth:`cartwheel.VectorEnv.reset`.
        """
        rows = self._ready(env_id)
        return self._reset(rows, None if seed is None else [seed] * len(rows), options)

    def seed(self, seed: int | list[int] | None = None) -> list[list[int] | None]:
        """Seeds environments and their action spaces, and resets all, as Tianshou does.

        Args:
            seed: ``s``: environment ``i`` gets ``s + i``. A list: one for each. ``None``: the
                environments continue their random numbers.

        Returns:
            The seed of each environment, in a list of its own.
        """
        rows = self._ready(None)
        seeds: list[Any] = as_seeds(seed, rows, self.env_num)
        self._reset(rows, seeds, None)
        for space, own in zip(self._action_spaces, seeds, strict=True):
            space.seed(own)
        return [[own] for own in seeds]

    def _reset(self, rows: list[int], seeds: Any, options: Any) -> tuple[Any, NDArray[Any]]:
        check_chooses_no_rows(options, "`env_id` does")
        chosen = options if self._are_all(rows) else {**(options or {}), "env_index": rows}
        space = self._envs.single_observation_space
        if not self.is_async:
            observations, infos = self._envs.reset(seed=seeds, options=chosen)
            returns_all = self._envs.unwrapped.full_batch
            by_row = infos_by_row(infos, self.env_num if returns_all else len(rows))
            if returns_all:
                observations = nested.take(space, observations, np.array(rows))
                by_row = [by_row[row] for row in rows]
        else:
            if set(rows).intersection(self._envs.in_flight):  # Ctrl-C came before they were awaited
                self._envs.unwrapped._pool.give_up()
            self._envs.send_reset(seed=seeds, options=chosen)
            self._end_lost()  # of what this has dropped, after a reset that was interrupted
            parts = self._receive_resets(rows)
            order = np.argsort([rows.index(row) for found, _ in parts for row in found])
            whole = nested.join(space, [part[0] for _, part in parts])
            observations = nested.take(space, whole, order)
            received = [info for _, part in parts for info in part[4]]
            by_row = [received[place] for place in order]
        return _stacked(space, observations), np.array(by_row)

    def _receive_resets(self, rows: list[int]) -> list[tuple[list[int], Steps]]:
        """Receives until these rows are reset; keeps the steps of others that come before.

        If a reset raises, the other ones are waited for first, so that all can be reset again.
        """
        parts: list[tuple[list[int], Steps]] = []
        error = None
        while rows_left := set(rows).intersection(flying := self._envs.in_flight):
            try:
                found, batch = self._receive()
            except Exception as raised:
                error = error or raised
                if len(self._envs.in_flight) == len(flying):  # a time-out, or no worker is left
                    raise
                continue
            self._keep(parts, found, batch, rows_left)
            self._keep(self._early, found, batch, set(self.waiting_id))
        if error is not None:
            raise error
        return parts

    # Steps

    def step(
        self, action: Any, id: Rows = None
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], NDArray[Any]]:
        """Steps environments.

        Args:
            action: One action for each of them: an array, a tensor or a list. With ``wait_num``
                also ``None``: then all that are still being stepped are waited for; or no action
                for no environment: then ``wait_num`` of them are, as far as there are so many.
            id: The environments; by default all.

        Returns:
            Observations ``[K, …]``, rewards, terminations, truncations, and an array of
            dictionaries whose ``"env_id"`` names the environment: in the order of ``id``, or with
            ``wait_num`` in the order in which they were done.

        Raises:
            cartwheel.EpisodeOverError: An episode is over and the environment was not reset.
            ValueError: The number of actions is wrong, or nothing is being stepped.
            Exception: As for :meth:`cartwheel.VectorEnv.step`. With ``wait_num``, steps of other
                environments that were done are returned by the next call.
        """
        self._assert_is_not_closed()
        if self.is_async:
            rows, step = self._step_some(action, id)
        else:
            if action is None:
                raise ValueError("`action` must not be None: there is no `wait_num`")
            rows = self._ready(id)
            actions = self._batch(action, len(rows))
            *arrays, infos = self._envs.step(actions, None if self._are_all(rows) else rows)
            step = (*arrays, infos_by_row(infos, len(rows)))
        observations, rewards, terminations, truncations, by_row = step
        for row, info in zip(rows, by_row, strict=True):
            info["env_id"] = row
        space = self._envs.single_observation_space
        return (_stacked(space, observations), rewards, terminations, truncations, np.array(by_row))

    def _step_some(self, action: Any, id: Rows) -> tuple[list[int], Steps]:
        if action is not None:
            rows = self._ready(id)
            if rows or len(action):  # with neither, Tianshou only waits
                self._envs.send(self._batch(action, len(rows)), rows)
            self.waiting_id += rows
            self.ready_id = [row for row in self.ready_id if row not in rows]
        wanted = len(self.waiting_id) if action is None else self.wait_num
        while self._envs.in_flight and sum(len(found) for found, _ in self._early) < wanted:
            # Kept for the next call, if the next batch raises. An interrupted reset is not a step.
            self._keep(self._early, *self._receive(), set(self.waiting_id))
        parts, self._early = self._early, []
        if not parts:
            raise ValueError("no environment is being stepped: pass actions to `step`")
        rows = [row for found, _ in parts for row in found]
        self._end_waiting(rows)
        space = self._envs.single_observation_space
        columns = list(zip(*(part for _, part in parts), strict=True))
        arrays = [np.concatenate(column) for column in columns[1:4]]
        infos = [info for column in columns[4] for info in column]
        return rows, (nested.join(space, columns[0]), *arrays, infos)

    def _end_waiting(self, rows: Iterable[int]) -> None:
        """These rows are ready again."""
        ended = set(rows)
        self.ready_id += ended
        self.waiting_id = [row for row in self.waiting_id if row not in ended]

    def _end_lost(self) -> None:
        """Rows whose results were dropped are ready again: they cannot be awaited."""
        done = [row for found, _ in self._early for row in found]
        self._end_waiting(set(self.waiting_id).difference(self._envs.in_flight, done))

    def _receive(self) -> tuple[list[int], Steps]:
        try:
            *arrays, infos = self._envs.recv()
        except Exception:
            self._end_lost()
            raise
        rows = infos["env_index"].tolist()
        return rows, (*arrays, infos_by_row(infos, len(rows)))

    def _keep(
        self, parts: list[tuple[list[int], Steps]], rows: list[int], batch: Steps, wanted: set[int]
    ) -> None:
        places = [place for place, row in enumerate(rows) if row in wanted]
        if 0 < len(places) < len(rows):
            observations, *flags, infos = batch
            rows = [rows[place] for place in places]
            batch = (
                nested.take(self._envs.single_observation_space, observations, np.array(places)),
                *(column[places] for column in flags),
                [infos[place] for place in places],
            )
        if places:
            parts.append((rows, batch))

    def _batch(self, action: Any, num_rows: int) -> Any:
        if self._has_array_actions:
            return np.asarray(action)
        return batch_of_actions(self._envs.single_action_space, action, num_rows)

    def _ready(self, id: Rows) -> list[int]:
        """The rows of ``id``, which are not being stepped.

        Raises:
            AssertionError: The environments are closed, as Tianshou says it.
            TypeError: They are not integers: a mask of rows would name the rows 0 and 1.
        """
        self._assert_is_not_closed()
        rows: list[int] = as_integers("id", self._wrap_id(id)).tolist()
        if self.is_async:
            self._assert_id(rows)
        return rows

    def _are_all(self, rows: list[int]) -> bool:
        """Whether the rows are all, in their order."""
        return rows == self._rows

    # The rest

    def render(self, **kwargs: Any) -> list[Any]:
        """Renders all environments: one frame for each, in the form that ``render`` returns.

        Raises:
            RuntimeError: Environments are being stepped.
        """
        self._assert_is_not_closed()
        if self.waiting_id:
            raise RuntimeError(
                f"environments {self.waiting_id} are being stepped: step(None) first"
            )
        return list(self._envs.call("render", **kwargs))

    def close(self) -> None:
        """Closes all environments and ends the workers."""
        self._assert_is_not_closed()
        self.is_closed = True
        self._envs.close()


def _made(env_fns: Iterable[EnvFn], wait_num: Any, keywords: dict[str, Any]) -> Any:
    mode = as_autoreset_mode(keywords.pop("autoreset_mode", AutoresetMode.DISABLED))
    _check_mode(mode)
    own = {"wait_num": "wait_num"}
    check_names("CartwheelVectorEnv", keywords, keywords_of(VectorEnv), own)
    fns: Any = [MakesTurns(env_fn) for env_fn in as_env_fns(env_fns)]
    if wait_num is not None:
        batch_size = as_integer("wait_num", wait_num, 1, len(fns))
        return VectorEnv(fns, autoreset_mode=mode, batch_size=batch_size, **keywords)
    return VectorEnv(fns, autoreset_mode=mode, **keywords)


def _checked(envs: Any, wait_num: Any, keywords: dict[str, Any]) -> Any:
    if not getattr(envs, "steps_rows", False):
        raise TypeError(
            "Tianshou steps some of the environments, which needs a vector environment of "
            f"cartwheel, without wrappers of Gymnasium around it; this is {envs}"
        )
    check_given("CartwheelVectorEnv", envs, keywords)
    _check_mode(envs.autoreset_mode)
    batch_size = envs.batch_size
    if wait_num not in (None, batch_size):
        raise ValueError(
            f"`wait_num` is the batch_size of a vector environment, {batch_size} here, got "
            f"{shown(wait_num)}: make it with batch_size={shown(wait_num)}"
        )
    return envs


def _check_mode(mode: AutoresetMode) -> None:
    check_mode(mode, AutoresetMode.DISABLED, "Tianshou resets finished environments itself")


def _has_turns(envs: Any) -> bool:
    """Whether rows have several agents that take turns, and so a reward for each of them."""
    space = envs.single_observation_space
    return isinstance(space, Dict) and "agent_id" in space.spaces


def _check_observations(envs: Any) -> None:
    space = envs.single_observation_space
    if isinstance(space, Tuple):
        raise TypeError(
            f"Tianshou takes no tuples as observations, got {space}: put a wrapper around each "
            "environment that makes an array or a dictionary of them"
        )


def _stacked(space: Any, batch: Any) -> Any:
    """Observations as Tianshou's vector environments stack them."""
    if isinstance(batch, np.ndarray):
        return batch
    rows = nested.rows(space, batch, nested.count(space, batch))
    try:
        return np.stack(rows)
    except ValueError:  # of several shapes
        stacked = np.empty(len(rows), object)
        stacked[:] = rows
        return stacked
