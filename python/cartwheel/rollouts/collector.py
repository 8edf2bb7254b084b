"""Runs a policy in vector environments, rollout after rollout."""

from __future__ import annotations

import contextlib
import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from cartwheel.arguments import as_integer, mode_of
from cartwheel.policy import as_function
from cartwheel.rollouts.carry import Carry
from cartwheel.rollouts.recording import MAX_STEPS, EpisodeRecording, Recording, carry_after
from cartwheel.spaces import nested
from cartwheel.vector.infos import check_infos

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.vector import AutoresetMode
    from numpy.typing import NDArray

    from cartwheel.arguments import ResetOptions
    from cartwheel.choices import Until
    from cartwheel.policy import Policy
    from cartwheel.rollouts.rollout import Rollout

#: The number of steps for which memory is made first if the length of episodes is unknown.
FIRST_STEPS = 32


class Collector:
    """Runs a policy in vector environments and returns what happened as :class:`Rollout`.

    Example:
        >>> import cartwheel
        >>> envs = cartwheel.NativeVectorEnv("CartPole-v1", 8)
        >>> policy = lambda observations: (observations[:, 2] > 0).astype(int)
        >>> collector = cartwheel.Collector(envs, policy, num_steps=16, seed=1)
        >>> rollout = collector.collect()
        >>> rollout.observations.shape, rollout.rewards.shape
        ((17, 8, 4), (16, 8))
        >>> envs.close()

    It works with every autoreset mode and executor, with wrapped vector environments and with
    Gymnasium's own. Steps of a :class:`~cartwheel.VectorEnv` or
    :class:`~cartwheel.NativeVectorEnv` land in the rollout's arrays without a copy
    (:meth:`~cartwheel.VectorEnv.rollout`), also in wrappers of ``cartwheel.wrappers`` that change
    neither observations nor rewards nor flags; steps of any other are copied there.

    **Length of a rollout.** One of:

    * ``num_steps``: this number of steps. The next rollout continues where this one ends, without a
      reset: its first observations are the last observations of this one, no step is lost, and no
      step is there twice. An episode that is over restarts as the autoreset mode says; in
      ``DISABLED`` the collector resets the row (``options={"reset_mask": …}``) right after the step
      that ended the episode.
    * ``until="all_done"``: one episode of each environment. Every rollout begins with a reset. A
      row whose episode is over rests until the last row is over: it repeats its last observation
      and flags with reward 0 and is not ``valid``.
    * ``num_episodes``: this number of episodes in all, at least one of each environment. They are
      dealt evenly; if the number does not divide, rows of low numbers play one more. Every rollout
      begins with a reset, and rows that have played theirs rest. (Taking the first episodes to end
      instead would favour short episodes.)

    With the last two, ``num_steps`` is an upper bound, and ``DISABLED`` with ``on_done="freeze"``
    is the cheapest mode, because resting rows cost nothing there. In any other mode the
    environments continue, and their steps are thrown away.

    **Policy.** A callable from observations (as ``envs.step`` returns them) to actions, one for
    each environment, or to actions and a dictionary of extras: arrays ``[N, …]`` by name, such as
    ``{"value": …, "log_prob": …}``. Actions and extras may be NumPy arrays or any arrays that
    support DLPack and are on the CPU. They are copied. The policy must not write into the
    observations. ``policy`` is an attribute that may be set at any time.
    :func:`~cartwheel.evaluate` takes the same policies.

    A policy may also be an object with a method ``predict``, such as a model of Stable-Baselines3:
    ``predict(observations)`` is called, and may return ``(actions, None)``. (By default such a
    model samples its actions. ``lambda observations: model.predict(observations,
    deterministic=True)`` takes the best ones.) An object with ``predict`` that is callable, too, is
    asked by ``predict``. A pair with a recurrent state as its second entry is a ``TypeError``.

    If the action space is a ``Tuple``, actions are a tuple too. A tuple of two whose second entry
    is a dictionary is then read as actions and extras, as in any other space. It is read as actions
    only if the space has two parts, the second part is a ``Dict``, and the tuple is nested as the
    space is. In other spaces, other tuples are a ``TypeError``.

    A recurrent policy keeps a state for each row and needs to know where episodes begin. With
    ``recurrent=True`` it is called as ``policy(observations, env_index, first)``, as ``evaluate``
    does with ``recurrent=True``. Here ``env_index`` is always all rows, and ``first`` is
    :attr:`is_first`, which a policy of one argument may read instead. ``evaluate`` leaves out rows
    that have finished or that reset. The policy itself must be callable then.

    **Errors.** If the policy raises, or if its actions do not fit, nothing is stepped and nothing
    is lost: :meth:`collect` continues the same rollout when it is called again. The same holds for
    actions that cartwheel's environments refuse before anything is stepped. If an environment
    raises, the rollout is lost, and the next one begins with a reset. Where the environment is
    replaced instead (``on_error="restart"``, ``on_worker_death="restart"``), the step that failed
    is not ``valid``, the step before it is bootstrapped, and the episode counts as played. A step
    that terminated an episode did not fail, even if the reset after it did.

    Only the collector may step and reset the environments; if you do, call :meth:`reset`
    afterwards. The collector does not close them.

    Args:
        envs: Vector environments whose observations and actions are arrays of fixed shape, or
            nested dictionaries and tuples of such arrays.
        policy: See above.
        num_steps: Steps of a rollout, from 1 to 65534; their upper bound with one of the others.
        until: ``"all_done"`` or ``None``.
        num_episodes: Episodes of a rollout, at least one for each environment.
        recurrent: Call the policy with the rows (integers, ``[N]``) and with whether each begins an
            episode (``bool``, ``[N]``) too. Both arrays are the policy's own.
        seed: For the first reset, which :meth:`collect` makes; as for ``envs.reset``.
        options: For every reset of all rows; as for ``envs.reset``.

    Raises:
        TypeError: ``envs`` is not a vector environment, ``policy`` is neither callable nor has a
            method ``predict``, or a space has parts that are not arrays of fixed shape.
        ValueError: The length is given in none of these ways or in several, a number is out of
            range, there is no autoreset mode, or ``batch_size`` is less than ``num_envs``.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        policy: Policy,
        num_steps: int | None = None,
        *,
        until: Until | None = None,
        num_episodes: int | None = None,
        recurrent: bool = False,
        seed: Any = None,
        options: ResetOptions = None,
    ) -> None:
        """Checks the arguments; steps and resets nothing."""
        self.mode = _mode_of(envs)
        as_function(policy, recurrent=recurrent)
        self.envs, self.policy, self.recurrent = envs, policy, recurrent
        #: Episodes of each environment in one rollout, ``[N]``; ``None`` if steps are counted.
        self.episodes_per_env = _quota(envs.num_envs, until, num_episodes)
        self.num_steps = num_steps
        for space, name in (
            (envs.single_observation_space, "observations"),
            (envs.single_action_space, "actions"),
        ):
            nested.empty(batch_space(space, envs.num_envs), 1, name)
        self._seed, self._options = seed, options
        self._carry: Carry | None = None
        self._shown: Any = None
        self._recording: Recording | None = None
        self._capacity = FIRST_STEPS

    def __repr__(self) -> str:
        """Environments, name of the policy and length of a rollout, in one line."""
        name = getattr(self.policy, "__qualname__", type(self.policy).__qualname__)
        parts = [repr(self.envs), name]
        if self.num_steps is not None:
            parts.append(f"num_steps={self.num_steps}")
        if self.episodes_per_env is not None:
            parts.append(f"num_episodes={self.episodes_per_env.sum()}")
        return f"Collector({', '.join(parts)})"

    @property
    def num_steps(self) -> int | None:
        """Steps of a rollout, or their upper bound; may be set for the next rollout.

        Raises:
            ValueError: The new value is out of range, or ``None`` although it is required.
        """
        return self._num_steps

    @num_steps.setter
    def num_steps(self, num_steps: int | None) -> None:
        if num_steps is None and self.episodes_per_env is None:
            raise ValueError(
                "say how long a rollout is: give `num_steps`, `until='all_done'` or `num_episodes`."
            )
        if num_steps is not None:
            num_steps = as_integer("num_steps", num_steps, 1, MAX_STEPS)
        self._num_steps = num_steps

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Which of the policy's present observations begin an episode, ``[N]``.

        A recurrent policy sets the state of these rows to zero before it uses the observations.
        :attr:`Rollout.is_first` has these flags for every step.
        """
        if self._recording is not None:
            return self._recording.is_first.copy()
        carry = self._carry or Carry.after_reset(self.envs.num_envs)
        return carry.is_first.copy()

    def reset(
        self, *, seed: Any = None, options: ResetOptions = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets every environment, and drops an unfinished rollout.

        Args:
            seed: As for ``envs.reset``.
            options: As for ``envs.reset``; by default the ``options`` of the collector.

        Returns:
            Observations and infos. The caller may write into both.

        Raises:
            TypeError: The infos are not a dictionary.
            Exception: The environments raised it.
        """
        observations, infos = self._reset(seed, options)
        self._shown = copy.deepcopy(observations)
        return observations, infos

    def _reset(self, seed: Any, options: Any) -> tuple[Any, dict[str, Any]]:
        """Resets every environment; the policy gets the returned observations next."""
        if self._recording is not None:
            self._recording.end()
        self._carry = self._recording = None
        options = self._options if options is None else options
        observations, infos = self.envs.reset(seed=seed, options=options)
        check_infos(infos)
        self._shown = observations
        self._carry, self._seed = Carry.after_reset(self.envs.num_envs), None
        return observations, infos

    def collect(self) -> Rollout:
        """Collects the next rollout, or completes one that an error of the policy interrupted.

        Returns:
            The rollout. When no reference to it is left, a later rollout uses its memory.

        Raises:
            TypeError: Actions do not fit the action space, the policy returned a recurrent state,
                extras have another dtype than before, or the infos are not a dictionary, as with
                the wrapper ``DictInfoToList``.
            ValueError: The number of actions or extras is not the number of environments, or the
                names of extras differ from before.
            RuntimeError: ``infos`` have no final observations in the mode ``SAME_STEP``.
            Exception: The policy or the environments raised it.
        """
        function = as_function(self.policy, recurrent=self.recurrent)
        if self.recurrent:
            function = self._with_rows(function)
        recording = self._recording or self._begin()
        try:
            recording.record(function)
        except BaseException:
            if recording.is_lost:
                with contextlib.suppress(Exception):  # closed or broken: no rollout to end
                    recording.end()
                self._carry = self._recording = None
            raise
        recording.end()
        self._recording, self._carry = None, None  # set again below, if the rollout is complete
        rollout = recording.rollout()
        if self.episodes_per_env is None:
            self._carry, self._shown = carry_after(rollout), recording.shown
        else:
            self._capacity = max(FIRST_STEPS, 1 << (rollout.num_steps - 1).bit_length())
        return rollout

    def _with_rows(self, policy: Callable[..., Any]) -> Callable[[Any], Any]:
        """Returns a function of the observations that calls a recurrent policy."""
        return lambda observations: policy(
            observations, np.arange(self.envs.num_envs), self.is_first
        )

    def _begin(self) -> Recording:
        """Begins a recording, after a reset if one is needed."""
        if self._carry is None:
            self._reset(self._seed, None)
        carry = self._carry or Carry.after_reset(self.envs.num_envs)
        most = self.num_steps or MAX_STEPS
        capacity = most if self.episodes_per_env is None else min(self._capacity, most)
        where = (self.envs, self.mode, carry, self._shown, capacity)
        if self.episodes_per_env is None:
            self._recording = Recording(*where)
        else:
            self._recording = EpisodeRecording(
                *where, episodes=self.episodes_per_env, num_steps=self.num_steps
            )
        return self._recording


def _mode_of(envs: Any) -> AutoresetMode:
    """Returns the autoreset mode of vector environments.

    Raises:
        TypeError: ``envs`` is not a vector environment.
        ValueError: There is no mode, or ``batch_size`` is less than ``num_envs``.
    """
    if not isinstance(envs, VectorEnv):
        raise TypeError(
            f"`envs` must be a vector environment, got {type(envs)}: see cartwheel.make_vec."
        )
    mode = mode_of(envs)
    batch_size = getattr(envs.unwrapped, "batch_size", envs.num_envs)
    if batch_size < envs.num_envs:
        raise ValueError(
            f"a rollout needs batches of all {envs.num_envs} environments, but `batch_size` is "
            f"{batch_size}."
        )
    return mode


def _quota(num_envs: int, until: Any, num_episodes: Any) -> NDArray[np.int64] | None:
    """Returns the number of episodes of each environment in one rollout; ``None``: no limit.

    Raises:
        ValueError: Both arguments are given, or one is invalid.
    """
    if until is not None and num_episodes is not None:
        raise ValueError("`until` and `num_episodes` exclude each other: give one of them.")
    if until not in (None, "all_done"):
        raise ValueError(f"`until` must be 'all_done' or None, got {until!r}.")
    if until is None and num_episodes is None:
        return None
    episodes = num_envs
    if num_episodes is not None:
        episodes = as_integer("num_episodes", num_episodes, num_envs)
    each, more = divmod(episodes, num_envs)
    return each + (np.arange(num_envs) < more).astype(np.int64)
