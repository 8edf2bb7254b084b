"""Steps a vector environment and records the traces of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel._internal.rewards import reward_shape_of
from cartwheel._internal.versions import autoreset_mode_of
from cartwheel.errors import noted
from cartwheel.testing.traces import (
    Event,
    final_at,
    final_of,
    info_of,
    reward_of,
    row_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.testing.traces import Actions, Trace

Batch = tuple[Any, Any, Any, Any, dict[str, Any]]


class Player:
    """Steps a vector environment, all rows at once, with actions that depend on the row's seed.

    Rows that are over are reset as the autoreset mode requires.

    Attributes:
        traces: For each traced row, its trace since its last seed.
        observations: The last batch of observations.
        over: Rows that are over and have not been reset, ``bool`` of shape ``(num_envs,)``.
        step_counts: The number of steps of each row since its last seed, ``int64``.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        seed: int,
        actions: Actions,
        traced: Iterable[int] | None = None,
        *,
        restarts: bool = True,
        inspect: Callable[[int, Batch], None] | None = None,
    ) -> None:
        """Keeps the environments; :meth:`reset` begins.

        Args:
            envs: The vector environment.
            seed: Row ``i`` gets the seed ``seed + i``.
            actions: The actions of the rows.
            traced: The rows whose traces are recorded; by default all.
            restarts: Whether rows that are over are reset in the mode ``DISABLED``.
            inspect: Called with the number of the call and its result.
        """
        self.envs = envs
        self.mode: AutoresetMode = autoreset_mode_of(envs)
        self.actions = actions
        self.restarts = restarts
        self.inspect = inspect
        self.traces: dict[int, Trace] = {
            row: [] for row in (range(envs.num_envs) if traced is None else traced)
        }
        self.over = np.zeros(envs.num_envs, np.bool_)
        self.step_counts = np.zeros(envs.num_envs, np.int64)
        self.seeds = seed + np.arange(envs.num_envs)
        self.observations: Any = None
        self.calls = 0

    def reset(
        self, mask: NDArray[np.bool_] | None = None, *, seed: int | None = None
    ) -> dict[str, Any]:
        """Resets all rows or some; a row that gets a seed begins a new trace.

        Args:
            mask: The rows; ``None`` for all.
            seed: Row ``i`` gets ``seed + i``; ``None``: rows continue with their random numbers.

        Returns:
            The infos.
        """
        options = None if mask is None else {"reset_mask": mask.copy()}
        with noted(f"in `reset(seed={seed}{', of some rows' if options else ''})`"):
            self.observations, infos = self.envs.reset(seed=seed, options=options)
        rows = np.ones(self.envs.num_envs, np.bool_) if mask is None else mask
        self.over &= ~rows
        if seed is not None:
            self.step_counts[rows] = 0
            self.seeds[rows] = seed + np.flatnonzero(rows)
        flags = np.zeros(self.envs.num_envs, np.bool_)
        rewards = np.zeros((self.envs.num_envs, *reward_shape_of(self.envs)))
        result = self.observations, rewards, flags, flags, infos
        for row in self.traces:
            if rows[row]:
                if seed is not None:
                    self.traces[row] = []
                self.traces[row].append(self._event(result, row, is_reset=True))
        self._inspect(result)
        return infos

    def step(self) -> Batch:
        """Steps every row, and resets rows that are over in the mode ``DISABLED``."""
        actions = self.actions.batch(self.seeds, self.step_counts)
        with noted(f"in step {self.calls}, all rows"):
            result: Batch = self.envs.step(actions)
        self._inspect(result)
        self._record(np.arange(self.envs.num_envs), result, self.over)
        self.observations = result[0]
        self.over = np.asarray(result[2] | result[3])
        if self.mode is AutoresetMode.SAME_STEP:
            self.over = np.zeros_like(self.over)
        if self.mode is AutoresetMode.DISABLED and self.restarts and self.over.any():
            self.reset(None if self.over.all() else self.over.copy())
        return result

    def render(self) -> Any:
        """Draws every row, and returns the frames."""
        with noted(f"in `render()`, after {self.calls} calls"):
            return self.envs.render()

    def run(self, steps: int) -> Player:
        """Steps every row ``steps`` times."""
        for _ in range(steps):
            self.step()
        return self

    def run_in_parts(self, steps: int) -> None:
        """Begins at a reset with the seeds and steps every row ``steps`` times, by send and recv.

        The rows of each batch are sent again at once, so rows soon are at different steps.
        """
        envs: Any = self.envs
        left = np.full(envs.num_envs, steps)
        resetting = np.ones(envs.num_envs, np.bool_)
        envs.send_reset(seed=int(self.seeds[0]))
        while envs.in_flight:
            with noted(f"in call {self.calls} of `recv`"):
                result = envs.recv()
            self._inspect(result)
            rows = result[4]["env_index"]
            self._record(rows, result, resetting)
            left[rows] -= ~resetting[rows]
            over = np.asarray(result[2] | result[3])
            resetting[rows] = over & (self.mode is not AutoresetMode.SAME_STEP)
            again = left[rows] > 0
            if self.mode is AutoresetMode.DISABLED and (over & again).any():
                envs.send_reset(options={"env_index": rows[over & again]})
                again &= ~over
            if again.any():
                chosen = rows[again]
                envs.send(self.actions.batch(self.seeds[chosen], self.step_counts[chosen]), chosen)

    def _inspect(self, result: Batch) -> None:
        if self.inspect is not None:
            self.inspect(self.calls, result)
        self.calls += 1

    def _record(self, rows: NDArray[np.int64], result: Batch, resetting: NDArray[np.bool_]) -> None:
        """Appends the events of a batch; rows that are ``resetting`` ignored their action."""
        infos = result[4]
        for place, row in enumerate(rows.tolist()):
            trace = self.traces.get(row)
            if trace is None:
                continue
            over = result[2][place] or result[3][place]
            if self.mode is AutoresetMode.SAME_STEP and over and not resetting[row]:
                reward, terminated, truncated = (each[place] for each in result[1:4])
                final_info = info_of(infos.get("final_info", {}), place)
                space = self.envs.single_observation_space
                final = final_of(space, final_at(infos["final_obs"], place))
                ending = bool(terminated), bool(truncated)
                trace.append(Event(False, final, reward_of(reward), *ending, final_info))
                observation = row_of(space, result[0], place)
                none = reward_of(np.zeros_like(reward))
                trace.append(Event(True, observation, none, False, False, info_of(infos, place)))
            else:
                trace.append(self._event(result, place, is_reset=bool(resetting[row])))
        self.step_counts[rows] += ~resetting[rows]

    def _event(self, result: Batch, place: int, *, is_reset: bool) -> Event:
        observations, rewards, terminations, truncations, infos = result
        return Event(
            is_reset,
            row_of(self.envs.single_observation_space, observations, place),
            reward_of(rewards[place]),
            bool(terminations[place]),
            bool(truncations[place]),
            info_of(infos, place),
        )
