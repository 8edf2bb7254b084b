"""Runs a policy in vector environments, rollout after rollout.

This file is above 500 lines because it has the documentation of every argument.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from typing import TYPE_CHECKING, Any

from cartwheel._internal.arguments import as_bool, as_integer, check_progress
from cartwheel._internal.closing import ClosesAfterWith
from cartwheel._internal.process import Finalizer
from cartwheel._internal.reset_arguments import check_chooses_no_rows
from cartwheel._internal.suggestions import checks_keywords, names_methods
from cartwheel.rollouts.collecting.arguments import (
    check_agents,
    check_background,
    check_spaces,
    checked_mode,
    checked_steps,
    conversion_to,
    quota,
)
from cartwheel.rollouts.collecting.background import Background
from cartwheel.rollouts.collecting.plan import Plan
from cartwheel.rollouts.collecting.policy_calls import Actor, Stopped
from cartwheel.rollouts.collecting.saved import SavedCollector
from cartwheel.rollouts.collecting.session import Session
from cartwheel.vector.calls import Calls
from cartwheel.wrappers._shared.conversion import without_conversion

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel._internal.literals import CollectOrder, Until
    from cartwheel._internal.policy import Policy
    from cartwheel._internal.reset_arguments import ResetOptions
    from cartwheel.rollouts.collecting.session import CollectorStats
    from cartwheel.rollouts.rollout import Rollout


@names_methods
class Collector(SavedCollector, ClosesAfterWith):
    """Runs a policy in vector environments and returns :class:`Rollout` objects.

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
      step is repeated. An episode that is over restarts by the autoreset mode; in
      ``DISABLED`` the collector resets the row (``options={"reset_mask": …}``) right after the step
      that ended the episode.
    * ``until="all_done"``: one episode of each environment. Every rollout begins with a reset. A
      row whose episode is over rests until the last row is over: it repeats its last observation
      and flags with reward 0 and is not ``valid``.
    * ``num_episodes``: this number of episodes in all, at least one of each environment. They are
      divided evenly; if there is a remainder, the first rows play one more. Every rollout
      begins with a reset, and rows that have played theirs rest. (Taking the first episodes to end
      instead would favor short episodes.)

    With the last two, ``num_steps`` is an upper bound, and ``DISABLED`` with ``on_done="freeze"``
    is the cheapest mode, because resting rows cost nothing there. In any other mode the
    environments continue, and their steps are dropped.

    **Policy.** A callable from observations (as ``envs.step`` returns them) to actions, one for
    each environment, or to actions and a dictionary of extras: numbers or flags ``[N, …]`` by name,
    such as ``{"value": …, "log_prob": …}``. Actions and extras may be NumPy arrays or any arrays
    that support DLPack and are on the CPU. They are copied. The policy must not write into the
    observations. ``policy`` is an attribute that may be set at any time.
    :func:`~cartwheel.evaluate` takes the same policies.

    A policy may also be an object with a method ``predict``, such as a model of Stable-Baselines3:
    ``predict(observations)`` is called, and may return ``(actions, None)``. (By default such a
    model samples its actions. ``lambda observations: model.predict(observations,
    deterministic=True)`` takes the best ones.) ``predict`` is called even if the object is
    callable. A pair with a recurrent state as its second entry is a ``TypeError``.

    If the action space is a ``Tuple``, actions are a tuple too. A tuple of two whose second entry
    is a dictionary is then read as actions and extras, as in any other space. It is read as actions
    only if the space has two parts, the second part is a ``Dict``, and the tuple is nested as the
    space is. In other spaces, other tuples are a ``TypeError``.

    A recurrent policy keeps a state for each row and needs to know where episodes begin. With
    ``recurrent=True`` it is called as ``policy(observations, env_index, first)``, as ``evaluate``
    does with ``recurrent=True``. Here ``env_index`` is always all rows, and ``first`` is
    :attr:`is_first`, which a policy of one argument may read instead. ``evaluate`` leaves out rows
    that have finished or that reset. The policy itself must be callable then.

    **Masks of actions.** A policy with a parameter ``action_masks`` gets
    :meth:`~cartwheel.VectorEnv.action_masks` of its rows in this keyword, ``bool`` of shape
    ``(rows, actions)``; so does the ``predict`` of a ``MaskablePPO`` of sb3-contrib. The rollout
    keeps them as the extra ``"action_masks"``, which is true where the policy was not masked. If
    the environments show no masks, a policy whose parameter has a default is called without them.

    **Errors.** If the policy raises, or if its actions do not fit, nothing is stepped and nothing
    is lost: :meth:`collect` continues the same rollout when it is called again. The same holds for
    actions that cartwheel's environments refuse before anything is stepped. If an environment
    raises, the rollout is lost, and the next one begins with a reset. Where the environment is
    replaced instead (``on_error="restart"``, ``on_worker_death="restart"``), the step that failed
    is not ``valid``, the step before it is bootstrapped, and the episode counts as played. A step
    that terminated an episode did not fail, even if the reset after it did.

    **Other callers.** Between two calls of :meth:`collect` you may step, reset and evaluate the
    environments. The next rollout then begins with a reset, and the logger ``cartwheel`` reports it
    once. (Of vector environments that are not cartwheel's, only calls through wrappers of
    ``cartwheel.wrappers``, evaluations and other collectors are noticed; after others call
    :meth:`reset`.) If another caller comes while a rollout is collected, as the policy itself
    might, or ends the :meth:`~cartwheel.VectorEnv.rollout` that is filled, :meth:`collect` raises
    ``RuntimeError`` and the rollout is lost. The collector does not close the environments.

    **Order.** ``"lockstep"`` steps all rows together: every batch waits for its slowest row, and
    the policy for the environments. The other orders send and receive rows apart
    (:meth:`~cartwheel.VectorEnv.send`), so the policy works while environments step. A column of a
    rollout is always one row's next ``num_steps`` steps, in order; none is lost and none is
    repeated.

    * ``"groups"``: fixed groups of rows in turn. The policy gets the same batches in the same order
      whatever the executor, the workers and the timing, so rollouts have the same bits.
    * ``"free"``: the policy gets the rows that are done, from ``min_rows`` to ``max_rows`` of them.
      A slow row or a slow reset does not delay the others. A policy that treats each row alone
      gives the same rollouts as in lockstep; matrix products of another size may round differently.
    * ``"auto"``: measures the policy and the environments in the first rollouts, tries the orders
      that may be faster, and keeps the fastest; :meth:`stats` has the choice and its reason.

    In these three orders the policy is called with some rows (a recurrent one gets their numbers),
    and rows that only reset (``NEXT_STEP``) are left out: their action is the one nearest to 0,
    their extras are 0, and their masks of actions true.
    ``docs/collecting.md`` compares the orders for common training loops.

    **Ahead.** With ``run_ahead=0`` a rollout is strictly on-policy, and without ``standby`` nothing
    is in flight between two calls of :meth:`collect`. With more, rows that have their steps begin
    the next rollouts. With ``columns=B`` a rollout has the first ``B`` rows to have their steps
    (:attr:`Rollout.env_index`), and no row is more than ``run_ahead + 1`` columns ahead of the
    slowest. Nothing is dropped, so fast rows are not favored. With ``background=True`` a thread
    collects, at most ``queue`` rollouts ahead. :attr:`Rollout.policy_version` is the version of the
    policy that made each action. With one :meth:`update` after each rollout and without
    ``columns``, an action is at most ``run_ahead`` updates old, and in the background
    ``run_ahead + queue + 1``.

    **While rows are in flight** (``run_ahead``, ``columns``, ``standby``, ``background``),
    ``envs.step``, ``envs.reset`` and :func:`~cartwheel.evaluate` are errors: call :meth:`pause`
    first. After an exception of :meth:`collect`, unless a thread still collects, and when the
    collector is gone, ``envs.reset`` and ``evaluate`` drop what is in flight instead. If an
    environment raises, complete rollouts are returned, the unfinished one is lost, and the next one
    begins with a reset. In the background the next :meth:`collect` raises the exception of the
    policy or the environments, after the complete rollouts; :meth:`collect` continues when it is
    called again.

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
        options: For every reset of all rows; as for ``envs.reset``, without a choice of rows.
        order: ``"lockstep"``, ``"groups"``, ``"free"`` or ``"auto"``; see above. All but
            ``"lockstep"`` need ``num_steps``.
        groups: Number of groups of ``"groups"``, which ``"auto"`` tries, too; divides the number of
            rows. Other orders have none.
        min_rows: ``"free"``: the minimum number of rows of a call of the policy.
        max_rows: ``"free"``: the maximum number of rows of a call; ``None``: all.
        deadline: ``"free"``: seconds, counted from the first row on, after which fewer than
            ``min_rows`` suffice, or ``None``.
        run_ahead: Rollouts that a row may be ahead of the slowest.
        columns: Columns of a rollout, if not all rows.
        standby: Number of spare environments, the last ones: they are reset in advance, and play
            for a row whose episode is over. For long resets, in the mode ``DISABLED``. A rollout
            has ``N - standby`` columns, and episode ``k`` of column ``n`` is reset with the first
            word of ``numpy.random.SeedSequence((seed, n, k))``, so results do not depend
            on which environment played.
        background: Collect in a thread, from the first :meth:`collect` on.
        queue: The maximum number of rollouts that wait for :meth:`collect` in the background.
        device: A name or a ``torch.device``, on which the policy gets PyTorch tensors, and rollouts
            have observations, actions, extras and final observations (:meth:`Rollout.to`). On CUDA
            each batch is copied once, to its place in the rollout. If ``envs`` are wrapped in
            :class:`~cartwheel.wrappers.NumpyToTorch`, it has the same device. ``None``: rollouts
            have NumPy arrays.
        progress: ``True``: draw a progress bar for a rollout that takes longer than a second, if
            stderr is a terminal. A function: it is called before each call of the policy with the
            steps that the rollout has already, in all columns, and with ``T × N``; or with ended
            episodes and all episodes. ``False``: neither. In the background nothing is drawn, and
            no function is called.

    Raises:
        TypeError: A keyword does not exist, ``envs`` is not a vector environment, ``policy`` is
            neither callable nor has a method ``predict``, a space has parts that are not arrays of
            fixed shape, or the order needs ``send`` and ``recv``, and ``envs`` has none.
        ValueError: The length is given in none of these ways or in several, a number is out of
            range, arguments do not go together, ``options`` choose rows, there is no autoreset
            mode, ``batch_size`` is less than ``num_envs``, or ``device`` is not that of
            ``NumpyToTorch``.
        gymnasium.error.DependencyNotInstalled: ``device`` without PyTorch.
        RuntimeError: PyTorch does not have the device.
    """

    @checks_keywords
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
        order: CollectOrder = "lockstep",
        groups: int = 2,
        min_rows: int = 1,
        max_rows: int | None = None,
        deadline: float | None = 0.002,
        run_ahead: int = 0,
        columns: int | None = None,
        standby: int = 0,
        background: bool = False,
        queue: int = 1,
        device: Any = None,
        progress: bool | Callable[[int, int], object] = True,
    ) -> None:
        self.autoreset_mode = checked_mode(envs)
        self._given_envs = envs
        envs, conversion = without_conversion(envs)
        on_device = None if device is None else conversion_to(device, envs, conversion)
        self._conversion = conversion = conversion if on_device is None else on_device
        if self._conversion is not None:
            options = self._conversion._options_as_arrays(options)
        self._actor = Actor(
            envs,
            policy,
            recurrent=recurrent,
            conversion=conversion,
            mirror=None if on_device is None else on_device._mirror,
        )
        #: Episodes of each environment in one rollout, ``[N]``; ``None`` if steps are counted.
        self.episodes_per_env = quota(envs.num_envs, until, num_episodes)
        by_episodes = self.episodes_per_env is not None
        check_agents(envs, by_episodes=by_episodes)
        check_chooses_no_rows(options)
        steps = checked_steps(num_steps, by_episodes=by_episodes)
        check_spaces(envs)
        plan = Plan(order, groups, min_rows, max_rows, deadline, run_ahead, columns, standby)
        self._plan = plan
        plan.check(envs, self.autoreset_mode, counts_episodes=by_episodes)
        queue = as_integer("queue", queue, 1)
        check_progress(progress)
        self._progress = progress
        if as_bool("background", background):
            check_background(envs)
        calls = Calls(envs)
        where = envs, self.autoreset_mode, self._actor, calls, steps, self.episodes_per_env
        source, spares = plan.source(*where)
        self._session = Session(
            envs, self._actor, source, calls, order, spares, seed, options, on_device
        )
        self._background: Background | None = None
        self._is_closed = False
        self._door = threading.Lock()
        if background:
            self._background = Background(self._session.collect, self._actor, queue)
            self._ending = Finalizer(self, self._background.end)

    def __repr__(self) -> str:
        name = getattr(self.policy, "__qualname__", type(self.policy).__qualname__)
        parts = [repr(self.envs), name]
        if self.num_steps is not None:
            parts.append(f"num_steps={self.num_steps}")
        if self.episodes_per_env is not None:
            parts.append(f"num_episodes={self.episodes_per_env.sum()}")
        if self._plan.order != "lockstep":
            parts.append(f"order={self._plan.order!r}")
        if self._background is not None:
            parts.append("background=True")
        return f"Collector({', '.join(parts)})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"{type(self).__name__} cannot be pickled or copied: make it anew with the vector "
            "environment and the policy."
        )

    @property
    def policy(self) -> Policy:
        """The policy; one that was set acts from the next call on.

        Raises:
            TypeError: What was set cannot be called; the policy stays.
        """
        return self._actor.policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self._actor.policy = policy

    @property
    def recurrent(self) -> bool:
        """Whether the policy gets row numbers and beginnings of episodes."""
        return self._actor.recurrent

    @property
    def num_steps(self) -> int | None:
        """Steps of a rollout, or their upper bound; may be set for the next rollout.

        Raises:
            ValueError: The new value is out of range, or ``None`` although it is required.
            RuntimeError: The order is not ``"lockstep"``, and rows have begun their next steps.
        """
        steps: int | None = self._session.source.num_steps
        return steps

    @num_steps.setter
    def num_steps(self, num_steps: int | None) -> None:
        steps = checked_steps(num_steps, by_episodes=self.episodes_per_env is not None)
        source = self._session.source
        running = self._background is not None and self._background.is_running
        if self._plan.order != "lockstep" and (running or not source.is_between_rollouts):
            raise RuntimeError(
                f"`num_steps` cannot change from {source.num_steps} to {steps}: rows have begun "
                "their next steps. It can after `reset`, and between rollouts with run_ahead=0."
            )
        source.num_steps = steps

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Which of the policy's present observations begin an episode, ``bool``, ``[N]``.

        A recurrent policy sets the state of these rows to zero before it uses the observations.
        :attr:`Rollout.is_first` has these flags for every step.
        """
        return self._session.source.is_first

    def reset(
        self, *, seed: Any = None, options: ResetOptions = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets every environment, and drops unfinished rollouts, and those that wait.

        Args:
            seed: As for ``envs.reset``; with ``standby`` an integer or ``None``.
            options: As for ``envs.reset``, without a choice of rows; by default the ``options`` of
                the collector.

        Returns:
            Observations and infos. The caller may write into both.

        Raises:
            TypeError: The infos are not a dictionary.
            ValueError: ``options`` choose rows. Nothing has changed then, nor where cartwheel's
                environments refuse the seed or the options.
            RuntimeError: The collector is closed, or another thread is in one of its calls.
            Exception: The environments raised it.
        """
        check_chooses_no_rows(options)
        with self._entered("reset"):
            if self._conversion is not None:
                options = self._conversion._options_as_arrays(options)
            if self._background is not None:
                self._background.stop()
            self._session.check_reset(seed, options)
            if self._background is not None:
                self._background.drop()
            observations, infos = self._session.reset(seed, options)
            observations = copy.deepcopy(observations)
            if self._conversion is not None:
                return self._conversion._shown(observations), self._conversion._shown_infos(infos)
            return observations, infos

    def collect(self) -> Rollout:
        """Collects the next rollout, or completes one that an error of the policy interrupted.

        In the background, it waits for the next rollout of the thread.

        Returns:
            The rollout. When no reference to it is left, a later rollout uses its memory.

        Raises:
            TypeError: Actions do not fit the action space, the policy returned a recurrent state,
                extras are not numbers or have another kind of dtype than before, or the infos are
                not a dictionary, as with the wrapper ``DictInfoToList``.
            ValueError: The number of actions or extras is not the number of rows, or the names of
                extras differ from before.
            RuntimeError: ``infos`` have no final observations in the mode ``SAME_STEP``; another
                caller used the environments meanwhile; the collector is closed, or was meanwhile;
                or another thread is in one of its calls.
            cartwheel.ForkedProcessError: The thread of the background lives in the parent process.
            Exception: The policy or the environments raised it.
        """
        door = self._entered("collect")
        try:
            with door:
                session, background = self._session, self._background
                if background is None:
                    rollout = session.collect(progress=self._progress)
                else:
                    rollout = background.take()
                session.count(rollout)
                session.deliver(rollout)
                return rollout
        except Stopped:
            raise RuntimeError(
                "the collector was closed while it collected: the rollout is lost."
            ) from None
        finally:
            if self._is_closed:  # meanwhile: `close` found the door locked
                self._drop()

    def update(self, change: Callable[[], Any] | None = None) -> int:
        """Changes the policy between two of its calls.

        It waits for the call that is in progress, calls ``change``, and counts a version. So every
        call of the policy sees one version. The policy must not be a module that a learner
        changes in place, but a copy:
        ``collector.update(lambda: actor.load_state_dict(learner.state_dict()))``.

        Args:
            change: Called once, in this thread; ``None`` only counts.

        Returns:
            The :attr:`Rollout.policy_version` of actions from now on.

        Raises:
            RuntimeError: The policy itself calls this method.
            Exception: ``change`` raised it; the version stays.
        """
        return self._actor.update(change)

    def pause(self) -> None:
        """Waits until nothing is in flight, so that others can use the environments.

        The background thread ends after the call that it is in. Complete rollouts wait, and
        unfinished ones continue with the next :meth:`collect`, unless the environments were stepped
        or reset meanwhile: then they are dropped, and the next rollout begins with a reset.

        Raises:
            RuntimeError: Another thread is in a call of this collector; the collector is closed; or
                the background thread does not end within 30 seconds.
            Exception: An environment raised it; the next rollout begins with a reset.
        """
        with self._entered("pause"):
            if self._background is not None:
                self._background.stop()
            self._session.source.rest()

    def close(self) -> None:
        """Ends the background thread and drops unfinished rollouts; may be called again.

        A ``with`` statement calls it at its end. It does not close the environments, in which
        nothing of this collector is in flight afterwards. Where the policy or another thread calls
        it, the :meth:`collect` that is in progress ends with the next call of the policy, and drops
        them.

        Raises:
            RuntimeError: The thread does not end within 30 seconds, or it is the policy's own.
        """
        if self._background is not None:
            if self._actor.is_called_here:
                raise RuntimeError(
                    "`close` was called by the policy, in the thread that it would wait for: call "
                    "it in another thread."
                )
            self._background.close()
        if not self._is_closed:
            self._is_closed = self._actor.is_stopping = True
            if not self._door.locked():
                self._drop()
            if self._background is not None:
                self._ending.detach()

    def _drop(self) -> None:
        with contextlib.suppress(Exception):  # the environments are closed or broken
            self._session.source.drop()

    def stats(self) -> CollectorStats:
        """Returns the counts and times so far; at any time, from any thread."""
        return self._session.stats()

    def _entered(self, calling: str) -> threading.Lock:
        """One thread at a time, while the collector is open.

        The lock itself is what ``with`` enters: so no Ctrl-C comes between taking it and leaving
        it. Of two threads that come at the same instant, one may wait for the other.
        """
        if self._is_closed:
            raise RuntimeError(f"`{calling}` of a closed collector: make another one.")
        if self._door.locked() or self._actor.is_called_here:
            raise RuntimeError(
                f"`{calling}` while another call of this collector is in progress: one thread at a "
                "time, and not from within the policy."
            )
        return self._door
