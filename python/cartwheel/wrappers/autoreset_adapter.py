"""Restarts the episodes of environments that do not restart themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel.arguments import as_autoreset_mode, as_reset_rows, as_rows
from cartwheel.spaces import nested
from cartwheel.vector.infos import FAILURES, check_infos
from cartwheel.wrappers.partial_batches import chosen_actions, joined, put
from cartwheel.wrappers.partial_infos import merged, take
from cartwheel.wrappers.whole_batches import WholeBatches

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.arguments import ResetOptions
    from cartwheel.choices import Mode
    from cartwheel.wrapping.wrapper import Reset, Step

#: Infos of a row that failed stay where they are in ``SAME_STEP``.
_STAYING = frozenset(name.removeprefix("_") for name in FAILURES)


class AutoresetAdapter(WholeBatches):
    """Gives a vector environment of the mode ``DISABLED`` another autoreset mode.

    So wrappers that need each episode's end for themselves can be put inside, and code that expects
    an autoreset outside. Results equal those of environments that are made with the mode:
    observations, rewards, flags and infos, with ``final_obs`` and ``final_info``.

    ``SAME_STEP`` works over every vector environment: rows whose episode ends are reset by a
    ``reset_mask`` right after the step. ``NEXT_STEP`` needs environments whose rows can be stepped
    apart, which are cartwheel's (``steps_rows``): a row whose episode is over is reset while the
    others are stepped.

    A value of a ``Discrete`` space in ``final_obs`` is a Python integer.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import AutoresetAdapter
        >>> envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, autoreset_mode="disabled")
        >>> envs = AutoresetAdapter(envs, "same_step")
        >>> envs.metadata["autoreset_mode"]
        <AutoresetMode.SAME_STEP: 'SameStep'>
        >>> envs.close()

    Args:
        envs: A vector environment of the mode ``DISABLED``, whose ``batch_size`` is ``num_envs``.
        mode: ``SAME_STEP`` or ``NEXT_STEP``.

    Raises:
        ValueError: ``envs`` is in another mode than ``DISABLED``, its batches are smaller than
            ``num_envs``, or ``mode`` is ``DISABLED`` or unknown.
        TypeError: ``mode`` is ``NEXT_STEP``, and rows of ``envs`` cannot be stepped apart.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], mode: Mode) -> None:
        """Checks the modes; steps nothing."""
        super().__init__(envs)
        self._mode = as_autoreset_mode(mode, "mode")
        if self._mode == AutoresetMode.DISABLED:
            raise ValueError(
                "`mode` must be SAME_STEP or NEXT_STEP: `envs` are in DISABLED already"
            )
        if self._source.mode != AutoresetMode.DISABLED:
            raise ValueError(
                f"`envs` must be made with autoreset_mode='disabled', got {envs} in the mode "
                f"{self._source.mode.name}."
            )
        self._check_batches(envs, "an AutoresetAdapter needs batches of all rows that it steps.")
        self._steps_apart: bool = getattr(envs, "steps_rows", False)
        if self._mode == AutoresetMode.NEXT_STEP and not self._steps_apart:
            raise TypeError(
                "NEXT_STEP needs a vector environment whose rows can be stepped apart, which are "
                f"cartwheel's without wrappers of Gymnasium around them; this is {envs}. SAME_STEP "
                "works with it."
            )
        self.metadata = {**envs.metadata, "autoreset_mode": self._mode}
        #: Rows whose episode is over and that their next step resets, in ``NEXT_STEP``.
        self._over = np.zeros(envs.num_envs, np.bool_)
        #: Of a pending ``step_async``: the rows of the batch, and those that are stepped.
        self._waits_for: tuple[Any, Any] = None, None
        self._resets: ResetOptions = None

    # Resets

    def reset(self, *, seed: Any = None, options: ResetOptions = None) -> Reset:
        """Resets every environment, or the rows that ``options`` select.

        Raises:
            TypeError: The infos are not a dictionary.
            Exception: As for the wrapped environment.
        """
        self._check_reset(options)
        result = self.env.reset(seed=seed, options=_copied(options))
        return self._began(result, options)

    def reset_async(self, seed: Any = None, options: ResetOptions = None) -> None:
        """Begins a reset; :meth:`reset_wait` returns its result."""
        self._check_reset(options)
        self._inner.reset_async(seed=seed, options=_copied(options))
        self._resets = options

    def reset_wait(self, timeout: float | None = None) -> Reset:
        """Waits for a reset, at most ``timeout`` seconds."""
        wait = self._inner.reset_wait
        return self._began(wait(timeout) if timeout is not None else wait(), self._resets)

    def set_state(self, rows: Any, states: Any) -> Reset:
        """Continues rows from states; they are no longer over."""
        if self._recording is not None:
            self._recording.check_reset(in_parts=True)
        result: Reset = self._inner.set_state(rows, states)
        self._over[slice(None) if rows is None else np.asarray(rows)] = False
        return result

    def _began(self, result: Reset, options: ResetOptions) -> Reset:
        check_infos(result[1])
        self._over[as_reset_rows(options, self.num_envs)] = False
        return self._begin_rollout(result)

    # Steps

    def step(self, actions: Any, env_index: Any = None) -> Step:
        """Steps every environment, or the rows of ``env_index``, and restarts finished episodes.

        Raises:
            TypeError: Rows cannot be stepped apart.
            Exception: As for the wrapped environment.
        """
        rows, stepped, actions = self._shares(actions, env_index)
        result = None
        if stepped is None:
            result = self.env.step(actions)
        elif len(stepped):
            result = self._inner.step(actions, stepped)
        return self._finish(rows, stepped, result)

    def step_async(self, actions: Any, env_index: Any = None) -> None:
        """Begins a step; :meth:`step_wait` returns its result."""
        rows, stepped, actions = self._shares(actions, env_index)
        if stepped is None:
            self._inner.step_async(actions)
        elif len(stepped):
            self._inner.step_async(actions, stepped)
        self._waits_for = rows, stepped

    def step_wait(self, timeout: float | None = None) -> Step:
        """Waits for a step, at most ``timeout`` seconds; rows are reset after that."""
        rows, stepped = self._waits_for
        wait = self._inner.step_wait
        result = None
        if stepped is None or len(stepped):
            result = wait(timeout) if timeout is not None else wait()
        self._waits_for = None, None
        return self._finish(rows, stepped, result)

    def _refusal(self, calling: str) -> TypeError:
        return TypeError(
            f"an AutoresetAdapter has no `{calling}`: make the environments with "
            f"autoreset_mode={self._mode.name.lower()!r} instead, or use `step(actions, env_index)`"
        )

    def _shares(self, actions: Any, env_index: Any) -> tuple[Any, Any, Any]:
        """Tells rows that are stepped from rows whose reset is due.

        Returns:
            The rows of the batch, ``None`` for all; those that are stepped, ``None`` for all of all
            rows; and the actions of these.
        """
        if self._recording is not None:
            self._recording.check_step(env_index)
        if env_index is None:
            if not np.count_nonzero(self._over):
                return None, None, actions
            rows = np.arange(self.num_envs)
        else:
            if not self._steps_apart:
                self._source.check_steps_rows("step")
            rows = np.array(as_rows(env_index, self.num_envs), np.int64)
        waiting = self._over[rows]
        if not np.count_nonzero(waiting):
            return rows, rows, actions
        space = self.single_action_space
        chosen = np.flatnonzero(~waiting)
        return (
            (None if env_index is None else rows),
            rows[chosen],
            chosen_actions(space, actions, chosen),
        )

    def _finish(self, rows: Any, stepped: Any, result: Any) -> Step:
        """Makes the resets of a step, and returns its result."""
        if result is not None:
            check_infos(result[4])
        if self._mode == AutoresetMode.SAME_STEP:
            step = self._same_step(rows, result)
        else:
            step = self._next_step(rows, stepped, result)
        if self._recording is not None:
            self._record(step)
        return step

    def _same_step(self, rows: Any, step: Step) -> Step:
        observations, rewards, terminations, truncations, infos = step
        over = np.logical_or(terminations, truncations)
        if not np.count_nonzero(over):
            return step
        size, places = len(over), np.flatnonzero(over)
        space = self.single_observation_space
        shown, reset_infos = self._reset_rows(places if rows is None else rows[places])
        observations = put(space, observations, places, shown)
        infos = _without_rows(infos)
        ended, going = take(infos, places), np.flatnonzero(~over)
        staying = {key: ended.pop(key) for key in tuple(ended) if key.removeprefix("_") in _STAYING}
        parts = [(going, take(infos, going)), (places, reset_infos), (places, staying)]
        batch = merged(size, parts)
        finals = np.full(size, None, object)
        rows_over = nested.rows(space, nested.take(space, step[0], places), len(places))
        for place, row in zip(places.tolist(), rows_over, strict=True):
            finals[place] = row
        batch |= {"final_obs": finals, "_final_obs": over.copy()}
        batch |= {"final_info": merged(size, [(places, ended)]), "_final_info": over.copy()}
        if rows is not None:
            batch["env_index"] = rows
        return observations, rewards, terminations, truncations, batch

    def _next_step(self, rows: Any, stepped: Any, step: Step | None) -> Step:
        if step is not None:
            over = np.logical_or(step[2], step[3])
        at: Any = slice(None) if stepped is None else stepped
        whole = self.num_envs if rows is None else len(rows)
        if stepped is None or len(stepped) == whole:
            assert step is not None
            self._over[at] = over
            return step
        numbers = np.arange(self.num_envs) if rows is None else rows
        waiting = self._over[numbers]
        if step is not None:
            self._over[at] = over
        due, going = np.flatnonzero(waiting), np.flatnonzero(~waiting)
        shown, reset_infos = self._reset_rows(numbers[due])
        self._over[numbers[due]] = False
        space = self.single_observation_space
        parts = [(due, reset_infos)]
        observations = shown
        rewards, flags = np.zeros(whole), np.zeros((2, whole), np.bool_)
        if step is not None:
            order = np.argsort(np.concatenate([going, due]), kind="stable")
            observations = joined(space, step[0], shown, order)
            rewards[going], flags[0, going], flags[1, going] = step[1:4]
            parts.append((going, _without_rows(take(step[4], np.arange(len(going))))))
        batch = merged(whole, parts)
        if rows is not None:
            batch["env_index"] = rows
        return observations, rewards, flags[0], flags[1], batch

    def _reset_rows(self, rows: NDArray[np.int64]) -> tuple[Any, dict[str, Any]]:
        """Resets rows; returns their observations and infos in this order."""
        mask = np.zeros(self.num_envs, np.bool_)
        mask[rows] = True
        observations, infos = self.env.reset(options={"reset_mask": mask})
        check_infos(infos)
        taken = nested.take(self.single_observation_space, observations, rows)
        return taken, take(infos, rows)

    def _present(self) -> Any:
        present = nested.at(self._inner.rollout(1).observations, 0)
        self._inner.end_rollout()
        return present

    # Names of the wrapped environment

    @property
    def _inner(self) -> Any:
        """The wrapped environment, which may have more methods than Gymnasium's."""
        return self.env

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When a finished environment restarts."""
        return self._mode

    @property
    def steps_rows(self) -> bool:
        """Whether some rows can be stepped apart."""
        return self._steps_apart


def _copied(options: Any) -> Any:
    """A copy, from which Gymnasium's environments may remove the mask."""
    return dict(options) if isinstance(options, dict) else options


def _without_rows(infos: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in infos.items() if key != "env_index"}
