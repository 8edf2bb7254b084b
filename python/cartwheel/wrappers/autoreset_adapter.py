"""Restarts the episodes of environments that do not restart themselves."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel._internal import nested
from cartwheel._internal.arguments import as_autoreset_mode, as_rows
from cartwheel._internal.reset_arguments import as_reset_rows, kept_options, shallow_copy
from cartwheel._internal.rewards import reward_shape_of
from cartwheel.vector.infos import FAILURES, check_infos
from cartwheel.wrappers._shared.kept_state import KeepsState
from cartwheel.wrappers._shared.merging import chosen_actions, joined, merged_infos, take_infos
from cartwheel.wrappers._shared.reports import blank_reports, reported_keys
from cartwheel.wrappers._shared.whole_batches import WholeBatches
from cartwheel.wrappers.batch import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel._internal.literals import Mode
    from cartwheel._internal.reset_arguments import ResetOptions
    from cartwheel.wrappers.base import Reset, Step


class Shares(NamedTuple):
    """The division of the rows of a step.

    Attributes:
        rows: The rows of the batch; ``None`` for all rows.
        stepped: Those of them that are stepped; ``None`` for all of all rows.
        due: Those of them that are reset, because their episode is over.
    """

    rows: NDArray[np.int64] | None
    stepped: NDArray[np.int64] | None
    due: NDArray[np.int64]


#: A step of all rows.
_ALL = Shares(None, None, NOWHERE)
#: Infos of a row that failed stay where they are in ``SAME_STEP``.
_STAYING = frozenset(name.removeprefix("_") for name in FAILURES)


class AutoresetAdapter(KeepsState, WholeBatches):
    """Gives a vector environment of the mode ``DISABLED`` another autoreset mode.

    So wrappers that need the end of each episode can be put inside, and code that expects an
    autoreset outside. Results equal those of environments that are made with the mode:
    observations, rewards, flags and infos, with ``final_obs`` and ``final_info``.

    ``SAME_STEP`` works over every vector environment: rows whose episode ends are reset by a
    ``reset_mask`` right after the step. ``NEXT_STEP`` needs environments whose rows can be stepped
    apart, which are cartwheel's except those of ``cartwheel.mujoco.make``: a row whose episode is
    over is reset while the others are stepped.

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
        env: A vector environment of the mode ``DISABLED``, whose ``batch_size`` is ``num_envs``.
        autoreset_mode: ``SAME_STEP`` or ``NEXT_STEP``.

    Raises:
        ValueError: ``env`` is in another mode than ``DISABLED``, its batches are smaller than
            ``num_envs``, its rows are agents, or ``autoreset_mode`` is ``DISABLED`` or unknown.
        TypeError: The mode is ``NEXT_STEP``, and rows of ``env`` cannot be stepped apart.
    """

    row_entries = ("over",)
    _sends_rows_instead = "make the environments in the autoreset mode itself"

    def __init__(self, env: VectorEnv[Any, Any, Any], autoreset_mode: Mode) -> None:
        super().__init__(env)
        self._mode = as_autoreset_mode(autoreset_mode)
        if self._mode == AutoresetMode.DISABLED:
            raise ValueError(
                "`autoreset_mode` must be SAME_STEP or NEXT_STEP: `env` are in DISABLED already"
            )
        if self._source.autoreset_mode != AutoresetMode.DISABLED:
            raise ValueError(
                f"`env` must be made with autoreset_mode='disabled', got {env} in the mode "
                f"{self._source.autoreset_mode.name}."
            )
        if self._source.rows_per_env is not None:
            raise ValueError(
                "rows of agents cannot be reset one by one: make the environments with "
                f"autoreset_mode={self._mode.name.lower()!r}."
            )
        self._check_batches(env, "an AutoresetAdapter needs batches of all rows that it steps.")
        #: Infos that every step has of every row that it steps.
        self._metrics = reported_keys(env, in_every_step=True)
        self._steps_apart: bool = getattr(env, "steps_rows", False)
        steps_apart = self._steps_apart and getattr(env.unwrapped, "sends_rows", False)
        if self._mode == AutoresetMode.NEXT_STEP and not steps_apart:
            raise TypeError(
                "NEXT_STEP needs a vector environment whose rows can be stepped apart, which are "
                "cartwheel's except those of `cartwheel.mujoco.make`, without wrappers of "
                f"Gymnasium around them; this is {env}. SAME_STEP works with it."
            )
        self.metadata = {**env.metadata, "autoreset_mode": self._mode}
        #: Rows that their next step resets: their episode is over.
        self._over = np.zeros(env.num_envs, np.bool_)
        self._over[self._source.rows_over()] = True
        #: The rows of a step that was begun, and its results while the resets after it are awaited.
        self._waits_for: Shares | None = None
        self._unfinished: tuple[Shares, Step | None] | None = None
        self._resets: ResetOptions = None

    # Resets

    def reset(self, *, seed: Any = None, options: ResetOptions = None) -> Reset:
        """Resets every environment, or the rows that ``options`` select.

        Raises:
            TypeError: The infos are not a dictionary.
            Exception: As for the wrapped environment.
        """
        self._check_reset(options)
        with self._recovering():
            return self._began(self.env.reset(seed=seed, options=_copied(options)), options)

    def reset_async(self, seed: Any = None, options: ResetOptions = None) -> None:
        """Begins a reset; :meth:`reset_wait` returns its result."""
        self._check_reset(options)
        self._inner.reset_async(seed=seed, options=_copied(options))
        self._resets = kept_options(options)
        self._forget_unfinished()

    def reset_wait(self, timeout: float | None = None) -> Reset:
        """Waits for a reset, at most ``timeout`` seconds."""
        arguments = () if timeout is None else (timeout,)
        with self._recovering():
            return self._began(self._inner.reset_wait(*arguments), self._resets)

    def set_state(self, env_index: Any, states: Any) -> Reset:
        """Continues rows from states; their next step resets those that are over."""
        if self._recording is not None:
            self._recording.check_reset(in_parts=True)
        with self._recovering():
            result: Reset = self._inner.set_state(env_index, states)
        self._step_rows = None
        numbers = np.arange(self.num_envs) if env_index is None else np.asarray(env_index)
        self._over[numbers] = np.isin(numbers, self._source.rows_over())
        return result

    def _began(self, result: Reset, options: ResetOptions) -> Reset:
        check_infos(result[1])
        is_whole = not self._source.resets_parts(options)
        self._step_rows = None if is_whole else result[1]["env_index"]
        self._over[as_reset_rows(options, self.num_envs)] = False
        self._forget_unfinished()
        dropped = np.setdiff1d(self._source.rows_over(), np.flatnonzero(self._over))
        if self._mode == AutoresetMode.NEXT_STEP:
            self._over[dropped] = True
        elif len(dropped):  # they ended in a step whose results this reset dropped
            with contextlib.suppress(Exception):  # a row that fails now has to be reset
                shown, _ = self._reset_rows(dropped)
                if is_whole:
                    space = self.single_observation_space
                    result = nested.put(space, result[0], dropped, shown), result[1]
        return self._begin_rollout(result)

    def get_own_state(self) -> dict[str, Any]:
        """The state: ``"over"``, which rows the next step resets."""
        return {"over": self._over.copy()}

    def _restore(self, state: dict[str, Any]) -> None:
        self._over[:] = state["over"]

    def _loaded(self) -> None:
        super()._loaded()
        self._waits_for = self._unfinished = None

    # Steps

    def step(self, actions: Any, env_index: Any = None) -> Step:
        """Steps every environment, or the rows of ``env_index``, and restarts finished episodes.

        If the environment of a row raises, the other rows continue as in environments that are made
        with the mode.

        Raises:
            TypeError: Rows cannot be stepped apart.
            WorkerTimeoutError: The step is still pending: :meth:`step_wait` goes on with it.
            Exception: As for the wrapped environment.
        """
        shares, actions = self._shares(actions, env_index)
        with self._recovering():
            self._waits_for = shares
            result = None
            if shares.stepped is None:
                result = self.env.step(actions)
            elif len(shares.stepped):
                result = self._inner.step(actions, shares.stepped)
            return self._finish(shares, result)

    def step_async(self, actions: Any, env_index: Any = None) -> None:
        """Begins a step; :meth:`step_wait` returns its result."""
        shares, actions = self._shares(actions, env_index)
        if shares.stepped is None:
            self._inner.step_async(actions)
        elif len(shares.stepped):
            self._inner.step_async(actions, shares.stepped)
        self._waits_for = shares

    def step_wait(self, timeout: float | None = None) -> Step:
        """Waits for a step and the resets after it, each at most ``timeout`` seconds."""
        with self._recovering():
            if self._unfinished is not None:
                return self._finish(*self._unfinished, timeout, is_resetting=True)
            shares = _ALL if self._waits_for is None else self._waits_for
            result = None
            if shares.stepped is None or len(shares.stepped):
                given = () if timeout is None else (timeout,)
                result = self._source.wait_again(self._inner, *given)
            return self._finish(shares, result, timeout)

    def _refusal(self, calling: str) -> TypeError:
        return TypeError(
            f"an AutoresetAdapter has no `{calling}`: make the environments with "
            f"autoreset_mode={self._mode.name.lower()!r} instead, or use `step(actions, env_index)`"
        )

    def _shares(self, actions: Any, env_index: Any) -> tuple[Shares, Any]:
        """Separates rows that are stepped, with their actions, from rows whose reset is due."""
        if self._recording is not None:
            self._recording.check_step(env_index)
        if env_index is None:
            if not np.count_nonzero(self._over):
                return _ALL, actions
            rows = np.arange(self.num_envs)
        else:
            if not self._steps_apart:
                self._source.check_steps_rows("step")
            rows = np.array(as_rows(env_index, self.num_envs), np.int64)
        waiting = self._over[rows]
        named = None if env_index is None else rows
        if not np.count_nonzero(waiting):
            return Shares(named, rows, NOWHERE), actions
        chosen = np.flatnonzero(~waiting)
        actions = chosen_actions(self.single_action_space, actions, chosen, len(rows))
        return Shares(named, rows[chosen], rows[waiting]), actions

    # Errors

    @contextlib.contextmanager
    def _recovering(self) -> Iterator[None]:
        """Lets the other rows continue if a call raises, because its results are lost.

        Rows that the mode would have reset in the call are reset, those of an interrupted call by
        their next step.
        """
        before = self._source.pool_state()
        try:
            yield
        except BaseException as error:
            now = self._source.pool_state()
            if now != before and not now.flying:
                self._forget_unfinished()
                self._continue_rows(is_interrupted=not isinstance(error, Exception))
            raise

    def _continue_rows(self, *, is_interrupted: bool) -> None:
        shares, self._waits_for = self._waits_for, None
        resets = self._source.rows_over()
        if self._mode == AutoresetMode.NEXT_STEP:
            resets = NOWHERE if shares is None else np.intersect1d(resets, shares.due)
        if len(resets) and not is_interrupted:
            with contextlib.suppress(Exception):  # the first error is raised
                self._reset_rows(resets)
            self._source.drop(resets, True, False)
        self._over[:] = False
        self._over[self._source.rows_over()] = True

    def _forget_unfinished(self) -> None:
        """No caller gets the results of a step whose resets were awaited."""
        if self._unfinished is not None:
            (shares, result), self._unfinished = self._unfinished, None
            self._over[shares.due] = np.isin(shares.due, self._source.rows_over())
            if result is not None:
                rows = np.arange(self.num_envs) if shares.stepped is None else shares.stepped
                self._source.drop(rows, False, np.logical_or(result[2], result[3]))

    # Results

    def _finish(
        self,
        shares: Shares,
        result: Step | None,
        timeout: float | None = None,
        *,
        is_resetting: bool = False,
    ) -> Step:
        """Makes the resets of a step, or waits for them, and returns its result."""
        ended = NOWHERE
        if result is not None:
            check_infos(result[4])
            over = np.logical_or(result[2], result[3])
            if self._mode == AutoresetMode.SAME_STEP:
                ended = np.flatnonzero(over)
            else:
                self._over[slice(None) if shares.stepped is None else shares.stepped] = over
        rows = ended if shares.stepped is None else shares.stepped[ended]
        resets = np.concatenate([shares.due, rows])
        shown: Any = None
        infos: dict[str, Any] = {}
        if len(resets):
            self._unfinished = shares, result
            shown, infos = self._reset_rows(resets, timeout, is_resetting=is_resetting)
            self._unfinished = None
            self._over[shares.due] = False
        self._waits_for = None
        self._step_rows = np.arange(self.num_envs) if shares.rows is None else shares.rows
        step = self._joined(shares, result, ended, shown, infos)
        if self._recording is not None:
            self._record(step)
        return step

    def _joined(
        self,
        shares: Shares,
        step: Step | None,
        ended: NDArray[np.intp],
        shown: Any,
        infos: dict[str, Any],
    ) -> Step:
        """The results of rows that were stepped, and of those that were reset."""
        space, due = self.single_observation_space, len(shares.due)
        if step is not None and shares.stepped is not None and (due or len(ended)):
            step = *step[:4], _without_rows(step[4])
        if len(ended):
            assert step is not None, "rows that ended were stepped"
            at = np.arange(due, due + len(ended))
            step = self._same_step(
                step, ended, nested.take(space, shown, at), take_infos(infos, at)
            )
        if due:
            at = np.arange(due)
            step = self._with_resets(
                shares, step, nested.take(space, shown, at), take_infos(infos, at)
            )
        assert step is not None, "a row was stepped or reset"
        if shares.rows is not None and (due or len(ended)):
            step[4]["env_index"] = shares.rows
        return step

    def _same_step(
        self, step: Step, places: NDArray[np.intp], shown: Any, reset_infos: dict[str, Any]
    ) -> Step:
        """A step in which the rows of some places were reset."""
        observations, rewards, terminations, truncations, infos = step
        size, space = len(rewards), self.single_observation_space
        observations = nested.put(space, observations, places, shown)
        over = np.zeros(size, np.bool_)
        over[places] = True
        ended, going = take_infos(infos, places), np.flatnonzero(~over)
        kept = [key for key in ended if str(key).removeprefix("_") in _STAYING]
        staying = {key: ended.pop(key) for key in kept}
        still = take_infos(infos, going, self._metrics)
        parts = [(going, still), (places, reset_infos), (places, staying)]
        batch = merged_infos(size, parts)
        finals = np.full(size, None, object)
        rows_over = nested.rows(space, nested.take(space, step[0], places), len(places))
        for place, row in zip(places.tolist(), rows_over, strict=True):
            finals[place] = row
        batch |= {"final_obs": finals, "_final_obs": over}
        batch |= {"final_info": merged_infos(size, [(places, ended)]), "_final_info": over.copy()}
        return observations, rewards, terminations, truncations, batch

    def _with_resets(
        self, shares: Shares, step: Step | None, shown: Any, reset_infos: dict[str, Any]
    ) -> Step:
        """The results of a step, and those of the rows that it only reset."""
        numbers = np.arange(self.num_envs) if shares.rows is None else shares.rows
        waited = np.isin(numbers, shares.due)
        due, going, whole = np.flatnonzero(waited), np.flatnonzero(~waited), len(numbers)
        parts = [(due, reset_infos)]
        observations = shown
        rewards = np.zeros((whole, *reward_shape_of(self)))
        flags = np.zeros((2, whole), np.bool_)
        if step is not None:
            order = np.argsort(np.concatenate([going, due]), kind="stable")
            observations = joined(self.single_observation_space, step[0], shown, order)
            rewards[going], flags[0, going], flags[1, going] = step[1:4]
            still = take_infos(step[4], np.arange(len(going)), self._metrics)
            parts.append((going, still))
        infos = merged_infos(whole, parts)
        if step is None:  # no wrapper inside saw a step that it could report on
            infos |= blank_reports(self.env, whole)
        return observations, rewards, flags[0], flags[1], infos

    def _reset_rows(
        self, rows: NDArray[np.int64], timeout: float | None = None, *, is_resetting: bool = False
    ) -> tuple[Any, dict[str, Any]]:
        """Resets rows, or waits for their reset; returns observations and infos in this order."""
        mask = np.zeros(self.num_envs, np.bool_)
        mask[rows] = True
        options = {"reset_mask": mask}
        if timeout is None and not is_resetting:
            observations, infos = self.env.reset(options=options)
        else:
            if not is_resetting:
                self._inner.reset_async(options=options)
            wait = self._inner.reset_wait
            observations, infos = wait(timeout) if timeout is not None else wait()
        check_infos(infos)
        return nested.take(self.single_observation_space, observations, rows), take_infos(
            infos, rows
        )

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
    return shallow_copy(options) if isinstance(options, dict) else options


def _without_rows(infos: dict[str, Any]) -> dict[str, Any]:
    """Infos without the rows that the pool names where it steps some, and without their mask.

    The environments may have a key and a mask of that name, whose values are gone then.
    """
    return {key: value for key, value in infos.items() if key not in ("env_index", "_env_index")}
