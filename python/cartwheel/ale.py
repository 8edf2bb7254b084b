"""Atari environments by the vector environment of ale-py, with checked arguments.

The extra is ``ale``: ``pip install 'cartwheel[ale]'``. ale-py is under the GPL-2.0; cartwheel
imports it where it is installed, and contains nothing of it.
"""

from __future__ import annotations

from cartwheel._internal.versions import load

load("ale_py", "ale", "cartwheel.ale")

# ruff: noqa: E402 - they import what was loaded

import inspect
import os
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium as gym
import numpy as np
from ale_py.roms import get_all_rom_ids
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from cartwheel._cartwheel import usable_cpus
from cartwheel._internal.arguments import (
    as_autoreset_mode,
    as_bool,
    as_fraction,
    as_integer,
    as_num_envs,
    check_dictionary,
    check_finals,
)
from cartwheel._internal.process import uninterrupted
from cartwheel._internal.reset_arguments import (
    NUMBERING_OPTIONS,
    as_reset_mask,
    as_seeds,
    check_options,
)
from cartwheel._internal.suggestions import keywords_of, listed, reset_advice, shown, suggest
from cartwheel._internal.versions import keep_open
from cartwheel.errors import EpisodeOverError, ForkedProcessError
from cartwheel.vector.vector_env import VectorEnv

if TYPE_CHECKING:
    from cartwheel._internal.literals import FinalObs, Mode

__all__ = ["AleVectorEnv"]

Reset: TypeAlias = tuple[NDArray[np.uint8], dict[str, Any]]
Step: TypeAlias = tuple[
    NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
]

#: The greatest seed of ale-py, an ``int32``.
_GREATEST_SEED = 2**31 - 1


class AleVectorEnv(AtariVectorEnv):
    """Steps Atari games in the threads of ale-py; made by ``make_vec("ALE/…", executor="ale")``.

    Emulation, preprocessing and random numbers are ale-py's, so observations, rewards and flags are
    those of ``ale_py.vector_env.AtariVectorEnv`` with the same keywords and seeds. What is
    different:

    * Arguments, actions, seeds and the order of calls are checked. (An action that does not exist,
      a second ``recv`` and a ``batch_size`` above ``num_envs`` would wait forever, and
      ``num_envs=0`` would end the program.)
    * Rewards are ``float64``. Every info has its mask (``_lives``).
    * In ``SAME_STEP`` final observations are in the forms of
      :class:`~cartwheel.VectorEnv`, with masks. (ale-py leaves uninitialized memory in rows that go
      on.) ``final_info`` has no entries, because ale-py reports nothing of a row's last step there.
    * ``DISABLED`` works; ale-py does not have it.
    * ``metadata`` is the object's own. (ale-py writes into the dictionary of Gymnasium's class,
      which all vector environments of the process share.)

    Example:
        >>> import cartwheel
        >>> envs = cartwheel.make_vec("ALE/Pong-v5", 2, executor="ale")
        >>> observations, infos = envs.reset(seed=1)
        >>> observations, rewards, terminations, truncations, infos = envs.step([2, 3])
        >>> observations.shape, rewards.dtype
        ((2, 4, 84, 84), dtype('float64'))
        >>> envs.close()

    Row ``i`` is environment ``i``. Observations have the shape ``(rows, stack_num, img_height,
    img_width)``, with a further axis of 3 without ``grayscale``, and the dtype ``uint8``. Infos are
    ale-py's, ``int32``: ``env_id`` (the row), ``lives``, ``frame_number`` and
    ``episode_frame_number``. All arrays are the caller's.

    Args:
        game: The name of the game in snake case, such as ``"ms_pacman"``.
        num_envs: Number of environments.
        autoreset_mode: When a finished environment restarts, as for :class:`~cartwheel.VectorEnv`.
        final_obs: The form of final observations in the mode ``SAME_STEP``, as for
            :class:`~cartwheel.VectorEnv`.
        batch_size: Rows of a batch; 0 for all rows. With fewer, a step returns the rows that finish
            first, and ``infos["env_index"]`` (``int64``) names them: the next actions are for
            these rows. It must divide ``num_envs``, and needs an automatic reset.
        num_threads: Threads of ale-py; 0 for one for each usable processor, and at most one for
            each environment. Results do not depend on it.
        life_loss_info: Whether a lost life is a termination after which the game continues. Only in
            the mode ``NEXT_STEP``; ``episodic_life`` works in all modes.
        **keywords: Other keywords of ``AtariVectorEnv``, with its defaults.

    Raises:
        TypeError: The keyword does not exist, and the message suggests one, or lists all; or a flag
            is not a ``bool``.
        ValueError: There is no such game, a number is out of range, or arguments exclude each
            other.
    """

    #: The native interface of ale-py; ``None`` after :meth:`close`.
    ale: Any

    __del__ = keep_open

    def __init__(
        self,
        game: str,
        num_envs: int = 1,
        *,
        autoreset_mode: Mode = AutoresetMode.NEXT_STEP,
        final_obs: FinalObs = "object",
        batch_size: int = 0,
        num_threads: int = 0,
        life_loss_info: bool = False,
        **keywords: Any,
    ) -> None:
        num_envs = as_num_envs(num_envs)
        mode = as_autoreset_mode(autoreset_mode)
        check_finals(final_obs, "gymnasium", mode)
        check_keywords(keywords)
        as_bool("life_loss_info", life_loss_info)
        _check_game(game)
        batch_size = as_integer("batch_size", batch_size, 0, num_envs) or num_envs
        _check_mode(mode, batch_size, num_envs, life_loss_info=life_loss_info)
        num_threads = as_integer("num_threads", num_threads, 0) or min(usable_cpus(), num_envs)
        self.metadata: dict[str, Any] = dict(AtariVectorEnv.metadata)  # ale-py writes into it
        super().__init__(
            game,
            num_envs,
            autoreset_mode=AutoresetMode.NEXT_STEP if mode is AutoresetMode.DISABLED else mode,
            batch_size=batch_size,
            num_threads=num_threads,
            life_loss_info=life_loss_info,
            **keywords,
        )
        self._mode = mode
        self.metadata["autoreset_mode"] = mode
        self.final_obs = final_obs
        #: Rows that were reset or sent and have not been received; ``None`` before the first reset.
        self._in_flight: int | None = None
        #: Rows that are over, in the mode ``DISABLED``.
        self._over = np.zeros(num_envs, np.bool_)
        self._owner = os.getpid()

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When a finished environment restarts; it cannot be set."""
        return self._mode

    @autoreset_mode.setter
    def autoreset_mode(self, mode: AutoresetMode) -> None:
        if hasattr(self, "_owner"):  # otherwise, it is ale-py's constructor
            raise AttributeError(f"the autoreset mode of {self!r} cannot be set: make another one.")
        self._mode = mode

    def __repr__(self) -> str:
        name = "" if self.spec is None else f"{self.spec.id!r}, "
        mode = self.autoreset_mode.name.lower()
        return f"AleVectorEnv({name}num_envs={self.num_envs}, autoreset_mode={mode!r})"

    @uninterrupted()
    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Reset:
        """Resets every environment, or those of a ``"reset_mask"``.

        Args:
            seed: ``None``: every environment continues its random numbers. An integer ``s``: row
                ``i`` gets the seed ``s + i``. A list: one seed or ``None`` for each row.
            options: ``{"reset_mask": mask}`` resets the rows of the mask, ``bool`` of shape
                ``(num_envs,)``; the others show their last observation again. Games have no options
                of their own.

        Returns:
            Observations and infos. With a ``batch_size`` below ``num_envs``, of the rows that
            finish first; results that were not received before are dropped.

        Raises:
            ValueError: There is another option, or a list of seeds or the mask does not fit.
            TypeError: ``options``, the mask or the seeds have the wrong type.
            gymnasium.error.Error: A seed is negative, above 2147483647, or not an integer.
            gymnasium.error.AlreadyPendingCallError: Sent rows have not been received.
            gymnasium.error.ResetNeeded: The first reset has a mask.
            RuntimeError: Only some rows, while batches have fewer than all rows.
        """
        self._check_usable()
        check_dictionary("options", options)
        check_options(options, self.num_envs)
        for name in () if options is None else options:
            if name != "reset_mask":
                asked = " rows are selected by" if name in NUMBERING_OPTIONS else " there is only"
                raise ValueError(f"`options[{name!r}]` has no effect here:{asked} 'reset_mask'.")
        mask = as_reset_mask(options, self.num_envs)
        seeds = as_seeds(seed, range(self.num_envs), self.num_envs)
        _check_seeds(seeds)
        if mask is None:
            self._drop_results()
            mask = np.ones(self.num_envs, np.bool_)
        else:
            self._check_partial_reset()
        rows = mask.nonzero()[0]
        result: Reset = self.ale.reset(rows, np.array([_as_ale(seeds[row]) for row in rows]))
        self._over[rows] = False
        self._in_flight = self.num_envs - self.batch_size
        return result[0], self._with_masks(result[1])

    @uninterrupted()
    def step(self, actions: Any) -> Step:
        """Steps every environment, or with a smaller ``batch_size`` the rows of the last batch.

        Args:
            actions: Integers of shape ``(batch_size,)``, from 0 to ``single_action_space.n - 1``;
                with ``continuous``, ``float32`` of shape ``(batch_size, 3)``.

        Returns:
            Observations, rewards (``float64``), terminations, truncations (``bool``) and infos.

        Raises:
            Exception: As for :meth:`send`.
        """
        self.send(actions)
        return self.recv()

    @uninterrupted()
    def send(self, actions: Any) -> None:
        """Begins a step of the rows of the last batch; :meth:`recv` returns a batch.

        Args:
            actions: As for :meth:`step`.

        Raises:
            ValueError: The number of actions is wrong, or an action does not exist.
            TypeError: Actions have another kind of dtype than their space.
            EpisodeOverError: Rows are over and the autoreset mode is ``DISABLED``.
            gymnasium.error.ResetNeeded: There was no ``reset``.
            gymnasium.error.AlreadyPendingCallError: The last batch has its actions already.
            ForkedProcessError: In a forked child.
        """
        self._check_usable()
        if self._in_flight is None:
            raise gym.error.ResetNeeded("Call `reset` before the first step.")
        if self._in_flight == self.num_envs:
            raise gym.error.AlreadyPendingCallError(
                "The rows of the last batch were sent already: call `recv` first.", "send"
            )
        if self._over.any():
            raise EpisodeOverError(self._over.nonzero()[0].tolist())
        super().send(self._checked(actions))
        self._in_flight += self.batch_size

    @uninterrupted()
    def recv(self) -> Step:
        """Waits for the next batch: the rows in flight that finish first.

        Returns:
            The same five values as :meth:`step`.

        Raises:
            gymnasium.error.NoAsyncCallError: Too few rows are in flight.
        """
        self._check_usable()
        if self._in_flight is None or self._in_flight < self.batch_size:
            raise gym.error.NoAsyncCallError(
                f"`recv` needs {self.batch_size} rows in flight, and there are "
                f"{self._in_flight or 0}: call `send` first.",
                "recv",
            )
        observations, rewards, terminations, truncations, infos = super().recv()
        self._in_flight -= self.batch_size
        finals = infos.pop("final_obs", None)
        infos = self._with_masks(infos)
        over = terminations | truncations
        if self.autoreset_mode is AutoresetMode.DISABLED:
            self._over = over
        elif self.autoreset_mode is AutoresetMode.SAME_STEP:
            self._add_finals(infos, over, finals, observations)
        return observations, rewards.astype(np.float64), terminations, truncations, infos

    def render(self) -> Any:
        """Raises ``NotImplementedError``: the threads of ale-py draw nothing but observations."""
        raise NotImplementedError(
            "ale-py's vector environment draws no frames: use its observations (with "
            "`grayscale=False` in color), or executor='process' with render_mode='rgb_array'."
        )

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads. Arrays that were returned stay valid."""
        del kwargs
        if self._owner == os.getpid():  # in a forked child there are no threads to wait for
            self.ale = None

    def _check_usable(self) -> None:
        if self.closed:
            raise gym.error.ClosedEnvironmentError("The vector environment is closed.")
        if self._owner != os.getpid():
            raise ForkedProcessError(
                f"a forked child (process {os.getpid()}) has no threads of ale-py: make the vector "
                "environment in this process."
            )

    def _check_partial_reset(self) -> None:
        if self._in_flight is None:
            raise gym.error.ResetNeeded("The first reset must reset all rows, without a mask.")
        if self.batch_size < self.num_envs:
            raise RuntimeError(
                f"ale-py resets only all rows while batch_size={self.batch_size} is below "
                f"num_envs={self.num_envs}: leave 'reset_mask' out, or make the vector environment "
                "without `batch_size`."
            )
        if self._in_flight:
            raise gym.error.AlreadyPendingCallError(
                "Rows are in flight: call `recv` before a reset of some rows.", "reset"
            )

    def _drop_results(self) -> None:
        """Receives what is in flight, which a reset would take for its own results."""
        while self._in_flight:
            super().recv()
            self._in_flight -= self.batch_size

    def _checked(self, actions: Any) -> NDArray[Any]:
        """Returns the actions as ale-py needs them; others would make it wait forever."""
        array = np.asarray(actions)
        shape = (self.batch_size, 3) if self.continuous else (self.batch_size,)
        if array.dtype.kind not in ("iuf" if self.continuous else "iu"):
            wanted = "numbers" if self.continuous else "integers"
            raise TypeError(
                f"actions must be {wanted}, as in {self.single_action_space}, got {array.dtype}."
            )
        if array.shape != shape:
            raise ValueError(f"actions must have the shape {shape}, got {array.shape}.")
        if self.continuous:
            if not np.isfinite(array).all():
                raise ValueError(f"actions must be finite, got {shown(actions)}.")
            return np.ascontiguousarray(array, np.float32)
        n = self.single_action_space.n
        if array.min() < 0 or array.max() >= n:
            place = int(np.argmax((array < 0) | (array >= n)))
            raise ValueError(
                f"action {array[place]} of row {place} does not exist: there are 0 to {n - 1}."
            )
        return np.ascontiguousarray(array, np.int64)

    def _with_masks(self, infos: dict[str, Any]) -> dict[str, Any]:
        rows = {name: np.ones(self.batch_size, np.bool_) for name in infos}
        infos = {**infos, **{f"_{name}": mask for name, mask in rows.items()}}
        if self.batch_size < self.num_envs:
            infos["env_index"] = infos["env_id"].astype(np.int64)
        return infos

    def _add_finals(
        self,
        infos: dict[str, Any],
        over: NDArray[np.bool_],
        finals: NDArray[np.uint8] | None,
        observations: NDArray[np.uint8],
    ) -> None:
        is_dense = self.final_obs == "dense"
        if finals is None and not is_dense:
            return
        values: NDArray[Any]
        if finals is None:
            values = observations.copy()
        elif is_dense:  # rows that continue: the observation itself instead of ale-py's old memory
            values = finals  # of this batch alone
            for row in (~over).nonzero()[0]:
                values[row] = observations[row]
        else:
            values = np.empty(self.batch_size, object)
            for row in over.nonzero()[0]:  # only rows that ended
                values[row] = finals[row].copy()
        infos.update(final_obs=values, _final_obs=over.copy(), final_info={}, _final_info=over)


def _check_game(game: Any) -> None:
    games = get_all_rom_ids()
    if game not in games:
        meant = suggest(str(game), games)
        hint = "" if meant is None else f": did you mean {meant!r}?"
        raise ValueError(f"ale-py has no game {shown(game)}{hint}")


def _check_mode(
    mode: AutoresetMode, batch_size: int, num_envs: int, *, life_loss_info: bool
) -> None:
    if num_envs % batch_size:
        raise ValueError(
            f"`batch_size` must divide num_envs={num_envs}, got {batch_size}: rows that are left "
            "over could never be received."
        )
    if life_loss_info and mode is not AutoresetMode.NEXT_STEP:
        raise ValueError(
            "`life_loss_info=True` needs autoreset_mode='next_step', because ale-py does not reset "
            f"after a lost life; got {mode.name.lower()!r}. `episodic_life` works in all modes."
        )
    if mode is AutoresetMode.DISABLED and batch_size < num_envs:
        raise ValueError(
            "autoreset_mode='disabled' needs batches of all rows, because ale-py resets no single "
            f"rows otherwise; got batch_size={batch_size} of num_envs={num_envs}."
        )


def _check_seeds(seeds: list[int | None]) -> None:
    for row, seed in enumerate(seeds):
        if seed is not None and seed > _GREATEST_SEED:
            raise gym.error.Error(
                f"seeds of ale-py are at most {_GREATEST_SEED}, row {row} has {seed}."
            )


def _as_ale(seed: int | None) -> int:
    """Returns ale-py's seed; -1 continues the random numbers."""
    return -1 if seed is None else seed


#: The keywords that :class:`~cartwheel.ale.AleVectorEnv` has in addition to ale-py's.
_OWN = {"final_obs"}
#: What ale-py has instead of the keywords of other vector environments.
_INSTEAD = {
    "max_episode_steps": "`max_num_frames_per_episode` counts frames, `frameskip` of them a step",
    "num_workers": "threads are `num_threads`",
    "render_mode": "ale-py's vector environment draws nothing, executor='process' does",
    "frame_skip": "ale-py's name is `frameskip`",
    "frame_stack": "ale-py's name is `stack_num`",
    "mode": "executor='process' has modes and difficulties of games",
    "difficulty": "executor='process' has modes and difficulties of games",
    "obs_type": "ale-py's choice is `grayscale`",
}
#: The minimum of each keyword that is an integer.
_MINIMUMS = {
    "frameskip": 1,
    "img_height": 1,
    "img_width": 1,
    "max_num_frames_per_episode": 0,
    "noop_max": 0,
    "stack_num": 1,
    "thread_affinity_offset": -1,
}


def check_keywords(keywords: dict[str, Any]) -> None:
    """Raises if ale-py has no such keyword, or would not notice that a value makes no sense.

    Raises:
        TypeError: The keyword does not exist, and the message suggests one, or lists all; or a flag
            is not a ``bool``.
        ValueError: A number is out of range.
    """
    known = keywords_of(AtariVectorEnv) | _OWN
    parameters = inspect.signature(AtariVectorEnv).parameters
    for name, value in keywords.items():
        if name not in known:
            raise TypeError(f"`{name}` is not a keyword of AleVectorEnv{_hint(name, value, known)}")
        if name in _MINIMUMS:
            as_integer(name, value, _MINIMUMS[name])
        if name in parameters and isinstance(parameters[name].default, bool):
            as_bool(name, value)
    as_fraction("repeat_action_probability", keywords.get("repeat_action_probability", 0))


def _hint(name: str, value: Any, known: frozenset[str]) -> str:
    instead = _INSTEAD.get(name) or reset_advice(name, value)
    if instead is not None:
        return f": {instead}."
    if name in keywords_of(VectorEnv):
        return ": it belongs to executors of cartwheel, and ale-py has nothing like it."
    meant = suggest(name, known)
    if meant is not None:
        return f": did you mean `{meant}`?"
    return f" ({shown(value)}), which has {listed(sorted(known))}."
