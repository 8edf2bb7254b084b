"""The base class of cartwheel's vector wrappers: every way to step, and the wrapped environment.

Its bases in ``_stack`` have the other methods: states, rollouts and frozen statistics.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from gymnasium.vector.utils import batch_space

from cartwheel._internal import nested
from cartwheel._internal.closing import ClosesAfterWith
from cartwheel._internal.suggestions import names_methods
from cartwheel._internal.versions import AnyVectorWrapper, keep_open
from cartwheel.wrappers._stack.freezing import Freezes
from cartwheel.wrappers._stack.source import Source
from cartwheel.wrappers._stack.state import SavedWrapper
from cartwheel.wrappers._stack.step_recording import RecordsRollouts, StepRecording
from cartwheel.wrappers.batch import Batch, Finals, check_acted, refuse_transformed

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from gymnasium.spaces import Space
    from gymnasium.vector import AutoresetMode, VectorEnv
    from numpy.typing import NDArray

    from cartwheel._internal.reset_arguments import ResetOptions
    from cartwheel.wrappers.batch import ActionBatch

    #: The name of an operation, and its parts.
    Operation = tuple[str, tuple[Any, ...]]
    Reset = tuple[Any, dict[str, Any]]
    Step = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]
    Plan = tuple[Source, Callable[[Any, Any], Any] | None, Callable[..., Step]]

#: The methods through which environments are called.
_CALLS = (
    *("reset", "reset_async", "reset_wait", "send_reset", "set_state"),
    *("step", "step_async", "step_wait", "send", "recv", "rollout", "end_rollout"),
)


def rows_of_batch(envs: Any) -> int:
    """Returns the number of rows of a batch, which the batched spaces have."""
    return int(getattr(envs, "batch_size", envs.num_envs))


@names_methods
class VectorWrapper(SavedWrapper, RecordsRollouts, Freezes, ClosesAfterWith, AnyVectorWrapper):
    """Changes the actions or the results of a vector environment, batch by batch.

    A wrapper of your own is a subclass that overrides :meth:`act`, :meth:`transform` or both. Every
    way to step goes through these two: ``step``, ``step`` of some rows, ``send`` and ``recv``,
    ``step_async``, resets of all or some rows, rollouts. All other public names are those of the
    wrapped environment: ``call``, ``get_attr``, ``set_attr``, ``stats``, ``in_flight``,
    ``batch_size``, ``get_state`` and so on.

    Wrappers around wrappers share one source: a call is made once, the kind of each row is
    determined once, and then the wrappers transform the batch one after the other, from the
    innermost to the outermost.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import VectorWrapper
        >>> from cartwheel.wrappers.batch import TRANSITION
        >>> class StepCost(VectorWrapper):
        ...     def transform(self, batch):
        ...         if batch.rewards is not None:  # a reset has none
        ...             batch.rewards = batch.rewards - 0.1 * (batch.kinds == TRANSITION)
        >>> envs = StepCost(cartwheel.NativeVectorEnv("CartPole-v1", 2))
        >>> observations, infos = envs.reset(seed=1)
        >>> envs.step(envs.action_space.sample())[1]
        array([0.9, 0.9])
        >>> envs.close()

    Args:
        env: A vector environment: of cartwheel or Gymnasium, wrapped or not.

    Raises:
        TypeError: ``env`` is not a vector environment.
        ValueError: The metadata of ``env`` has no autoreset mode.
    """

    #: Whether the calls that this class itself overrides prepare arguments and nothing else. Then
    #: wrappers around it need not make them. A subclass that overrides a call does not have it.
    _prepares_calls = False
    __del__ = keep_open

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Shares the source of a wrapper inside, if there is one; steps nothing."""
        inner = env if isinstance(env, VectorWrapper) and not env._makes_calls() else None
        self._source: Source = Source(env) if inner is None else inner._source
        super().__init__(env)
        # Of the wrappers inside alone: one that kept a method of its own would keep itself, and the
        # environments, until a garbage collection.
        #: Those that change results, from the innermost to the outermost.
        self._inner_wrappers: tuple[VectorWrapper, ...] = ()
        #: From the outermost to the innermost.
        self._inner_acts: tuple[Callable[[Any, ActionBatch], Any], ...] = ()
        if inner is not None:
            kind = type(inner)
            wrappers = () if kind.transform is VectorWrapper.transform else (inner,)
            acts = () if kind.act is VectorWrapper.act else (inner.act,)
            self._inner_wrappers = (*inner._inner_wrappers, *wrappers)
            self._inner_acts = (*acts, *inner._inner_acts)
            if type(self).transform is not VectorWrapper.transform:
                self._source.add_wrapper(len(self._inner_wrappers))
        #: Whether any wrapper changes actions, or looks at them.
        self._acts = bool(self._inner_acts) or type(self).act is not VectorWrapper.act
        self._recording: StepRecording | None = None
        #: Of a step of all rows: the source, the function of actions, if any, and the pass of the
        #: batch through the wrappers. ``()``: there is none; ``None``: it is not known yet.
        self._plan: Plan | tuple[()] | None = None

    def _set_observation_space(self, single: Space[Any]) -> None:
        self.single_observation_space = single
        self.observation_space = batch_space(single, rows_of_batch(self.env))

    # What subclasses override

    def act(self, actions: Any, batch: ActionBatch) -> Any:
        """Returns the actions for the wrapped environment. Override it to change them.

        It is called before a call that steps rows, from the outermost wrapper to the innermost. The
        call may then be refused: what belongs to a step is kept in :meth:`transform`, with its
        result.

        Args:
            actions: One action for each of ``batch.rows``, as the caller or the wrapper outside
                gave them; they are not written into.
            batch: The rows that are about to be stepped: ``rows``, and what each is about to do,
                ``kinds``.

        Returns:
            As many actions.
        """
        del batch
        return actions

    def transform(self, batch: Batch) -> None:
        """Replaces arrays of the results of a call. Override it to change them.

        It is called with each batch that the caller gets, from the innermost wrapper to the
        outermost. An array is replaced, never written into: it may belong to others.

        Args:
            batch: The rows, their kinds, observations, rewards, flags and infos. The batch of a
                reset has no rewards and flags: they are ``None``. In ``SAME_STEP`` final
                observations are in :meth:`~cartwheel.wrappers.batch.Batch.finals`.
        """

    def _loaded(self) -> None:
        """The environments and the states of all wrappers were loaded."""
        self._recording = self._plan = None

    def _present(self) -> Any:
        """Returns the present observations of all rows."""
        return self._called(self._source.present).observations

    @classmethod
    def _makes_calls(cls) -> bool:
        """Whether the class overrides a call: wrappers around it call it as an environment."""
        owners = {next(base for base in cls.__mro__ if name in vars(base)) for name in _CALLS}
        return any(
            not issubclass(VectorWrapper, owner) and not vars(owner).get("_prepares_calls", False)
            for owner in owners
        )

    # Every way to step

    def reset(self, *, seed: Any = None, options: ResetOptions = None) -> Reset:
        """Resets every environment, or the rows that ``options`` select.

        The arguments are those of the wrapped environment. ``options`` are not changed.

        Returns:
            Observations and infos. Rows that are not reset show again what they last showed.

        Raises:
            ValueError: A vector environment of Gymnasium does not know row numbers.
            TypeError: The infos are not a dictionary.
            RuntimeError: Row numbers select rows before the first step of a :meth:`rollout`.
            Exception: As for the wrapped environment.
        """
        self._check_reset(options)
        batch = self._called(self._source.reset, seed, options)
        return self._begin_rollout(self._as_reset(batch))

    def reset_async(self, seed: Any = None, options: ResetOptions = None) -> None:
        """Begins a reset; :meth:`reset_wait` returns its result."""
        self._check_reset(options)
        self._source.reset_async(seed, options)

    def reset_wait(self, timeout: float | None = None) -> Reset:
        """Waits for a reset, at most ``timeout`` seconds."""
        batch = self._called(self._source.reset_wait, timeout)
        return self._begin_rollout(self._as_reset(batch))

    def step(self, actions: Any, env_index: Any = None) -> Step:
        """Steps every environment, or the rows of ``env_index``.

        Args:
            actions: One action for each row, in the form of :attr:`action_space`; not changed.
            env_index: One row number for each action; needs an environment of cartwheel.

        Returns:
            Observations, rewards, terminations, truncations and infos. The arrays are the caller's.

        Raises:
            TypeError: Rows cannot be stepped apart, or the infos are not a dictionary.
            RuntimeError: Only some rows, during a :meth:`rollout`.
            Exception: As for the wrapped environment.
        """
        # One attribute, because reading one of a class with `__getattr__` takes a while.
        plan = self._plan
        if plan is None:
            plan = self._planned()
        if not plan or env_index is not None:
            return self._step_apart(actions, env_index)
        source, act, pass_on = plan
        if act is not None:
            actions = act(self, actions)
        try:
            return pass_on(self, source.envs.step(actions))
        except BaseException as error:
            source.lose_step(error)
            raise

    def _step_apart(self, actions: Any, env_index: Any) -> Step:
        """Steps without a plan."""
        recording = self._recording
        if recording is not None:
            recording.check_step(env_index)
        if self._acts:
            actions = self._acted(actions, env_index)
        source = self._source
        try:  # not by `_called`, since subclasses prepare for other calls there
            batch = source.step(actions, env_index)
            source.pass_on(batch, self._inner_wrappers, self)
        except BaseException as error:
            source.lose_batch(error)
            raise
        step = batch.as_step()
        if recording is not None:
            self._record(step)
        return step

    def _planned(self) -> Plan | tuple[()]:
        """Makes the plan of a step; there is none while a rollout is copied."""
        wrappers, inner = [self], self.env
        while isinstance(inner, VectorWrapper) and inner._source is self._source:
            wrappers.append(inner)
            inner = inner.env
        operations = [
            (None if wrapper is self else wrapper, *operation)
            for wrapper in reversed(wrappers)
            if wrapper is self or type(wrapper).transform is not VectorWrapper.transform
            if (operation := wrapper._found_operation()) is not None
        ]
        fused = None if self._recording else self._source.fused(operations)
        act = self._act_of_all() if self._acts else None
        self._plan = () if fused is None else (self._source, act, fused.pass_on)
        return self._plan

    def _act_of_all(self) -> Callable[[Any, Any], Any]:
        """Returns a function of this wrapper, which it does not keep, and of actions."""
        return _act_in_turn

    def _operation(self) -> Operation:
        """The name of what :meth:`transform` does to a plain batch, and its parts.

        A class that overrides it overrides :meth:`transform`, too, which does the same to every
        batch. See ``FusedStep`` for the names.
        """
        return "transform", ()

    def _found_operation(self) -> Operation | None:
        """The operation; ``None`` if :meth:`transform` does nothing."""
        transform = getattr(self.transform, "__func__", None)  # the object may have one of its own
        if transform is VectorWrapper.transform:
            return None
        classes = type(self).__mro__
        knows = next(kind for kind in classes if "_operation" in vars(kind))
        changes = next(kind for kind in classes if "transform" in vars(kind))
        is_own = transform is vars(changes)["transform"]
        if not is_own or classes.index(changes) < classes.index(knows):
            return "transform", ()  # a subclass overrides what the operation is of
        return self._operation()

    def _pass_on(self, result: Any) -> Step:
        """Passes the result of a step on that is not plain."""
        source = self._source
        batch = source.stepped(result)
        source.pass_on(batch, self._inner_wrappers, self)
        return batch.as_step()

    def _transformed(self, finals: Finals | None, *parts: Any) -> Batch:
        """Returns a plain batch of all rows after :meth:`transform` of this wrapper alone.

        Args:
            finals: Final observations that were taken out of the infos.
            *parts: The other parts of the batch.
        """
        batch = self._source.plain_batch(parts)
        if finals is not None:
            batch.set_finals(finals)
        transform: Any = self.transform
        returned = transform(batch)
        if returned is not None or batch.observations is None or batch.rewards is None:
            refuse_transformed(self, batch, returned)
        return batch

    def _taken(self, *parts: Any) -> tuple[Finals | None, dict[str, Any]]:
        """Takes final observations out of a plain batch; returns them and the other infos."""
        batch = self._source.plain_batch(parts)
        return batch.finals(self.env.single_observation_space), batch.infos

    @staticmethod
    def _as_finals(finals: Finals | None, form: tuple[list[str], bool], *parts: Any) -> Finals:
        """Returns final observations that native code has, as an object.

        Args:
            finals: The object that they were taken with; ``None`` if native code took them.
            form: Then their keys in infos, and whether they are dense.
            *parts: Their places; the final observations, which are ignored without places; the
                observations of the batch; and the space of one observation.
        """
        places, last, observations, space = parts
        if not len(places):
            last = nested.take(space, observations, places)
        if finals is None:
            names, is_dense = form
            return Finals(places, last, names, is_dense=is_dense, space=space)
        finals.observations, finals.space = last, space
        return finals

    def _lose_at(self, seen_by: int, kinds: Any, *results: Any) -> None:
        """Notes that a wrapper raised for a plain batch, which ``seen_by`` wrappers have seen."""
        parts = [*results, {}]
        self._source.on_its_way = Batch(None, kinds, *parts)
        self._source.seen_by = seen_by

    def step_async(self, actions: Any, env_index: Any = None) -> None:
        """Begins a step; :meth:`step_wait` returns its result."""
        if self._recording is not None:
            self._recording.check_step(env_index)
        self._source.step_async(self._acted(actions, env_index), env_index)

    def step_wait(self, timeout: float | None = None) -> Step:
        """Waits for a step, at most ``timeout`` seconds."""
        step = self._called(self._source.step_wait, timeout).as_step()
        if self._recording is not None:
            self._record(step)
        return step

    def send(self, actions: Any, env_index: Any = None) -> None:
        """Sends actions and returns at once; :meth:`recv` returns the results.

        Raises:
            TypeError: The wrapped environment cannot send and receive.
            RuntimeError: A :meth:`rollout` is being recorded.
            Exception: As for the wrapped environment.
        """
        self._source.check_steps_rows("send")
        if self._recording is not None:
            self._recording.check_step(() if env_index is None else env_index)
        self._source.envs.send(self._acted(actions, env_index), env_index)

    def recv(self, timeout: float | None = None, **bounds: int | None) -> Step:
        """Receives the next batch of rows that were sent; ``infos["env_index"]`` names them.

        Args:
            timeout: Seconds to wait.
            bounds: ``min_rows`` and ``max_rows``, as for :meth:`cartwheel.VectorEnv.recv`.

        Raises:
            TypeError: The wrapped environment cannot send and receive.
            Exception: As for the wrapped environment.
        """
        self._source.check_steps_rows("recv")
        return self._called(partial(self._source.recv, **bounds), timeout).as_step()

    def send_reset(self, seed: Any = None, options: ResetOptions = None) -> None:
        """Begins a reset and returns at once; :meth:`recv` returns the results.

        Raises:
            TypeError: The wrapped environment cannot send and receive.
            Exception: As for the wrapped environment.
        """
        self._source.check_steps_rows("send_reset")
        if self._recording is not None:
            self._recording.check_reset(in_parts=True)
        self._source.send_reset(seed, options)

    def _acted(self, actions: Any, env_index: Any) -> Any:
        batch = self._source.ahead(env_index)
        for act in (self.act, *self._inner_acts):
            acted = act(actions, batch)
            if acted is not actions:
                check_acted(act, actions, acted)
            actions = acted
        return actions

    def _called(self, call: Callable[..., Batch], *arguments: Any) -> Batch:
        """Makes a call of the source and passes its batch on."""
        source = self._source
        try:
            batch = call(*arguments)
            source.pass_on(batch, self._inner_wrappers, self)
        except BaseException as error:
            source.lose_batch(error)
            raise
        return batch

    # Names of the wrapped environment

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When a finished environment restarts."""
        return self._source.autoreset_mode

    @property
    def steps_rows(self) -> bool:
        """Whether some rows can be stepped apart, sent and received."""
        return self._source.steps_rows

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets a public name of a wrapped environment there, where it is read from.

        A name that no wrapped environment has, or that this class has itself, is set here, and so
        is everything that a method of this object sets.
        """
        # Without `__dict__`: an object that was asked for it once is slower from then on.
        if not (name[:1] == "_" or hasattr(type(self), name) or _has(self, name)):
            caller = sys._getframe(1)  # an attribute that a subclass adds is its own
            code = caller.f_code
            # Of methods alone: before Python 3.13, `f_locals` keeps every local of a function, as
            # they are now, until it returns, even those that it deletes.
            first = code.co_varnames[:1] if hasattr(type(self), code.co_name) else ()
            envs: Any = None if first and caller.f_locals.get(first[0]) is self else self
            while envs is not None and _has(envs, "env"):
                envs = object.__getattribute__(envs, "env")
                if hasattr(type(envs), name) or _has(envs, name):
                    setattr(envs, name, value)
                    return
        object.__setattr__(self, name, value)  # as `super()` does, which takes twice as long
        # A wrapper of one's own may count steps: its attributes do not belong to an operation.
        has_parts = type(self)._operation is not VectorWrapper._operation or name == "transform"
        if name[:1] != "_" and has_parts and _has(self, "_source"):
            self._source.note_change()

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Renders as the wrapped environment does."""
        return self.env.render(*args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"{type(self).__name__} cannot be pickled or copied: make it anew, and give it the "
            "states of `state_dict()`."
        )

    def __getattr__(self, name: str) -> Any:
        """Other public names are those of the wrapped environment."""
        if name.startswith("_") or name == "env":
            has_begun = _has(self, "_source")
            why = "" if has_begun else ": its `__init__` must call `super().__init__(env)` first"
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{why}")
        try:
            return getattr(self.env, name)
        except AttributeError as error:
            if isinstance(self.env, VectorWrapper) or not hasattr(self.unwrapped, name):
                raise
            raise AttributeError(
                f"{error}; its environments have it, as `envs.unwrapped.{name}`"
            ) from None


def _act_in_turn(wrapper: VectorWrapper, actions: Any) -> Any:
    return wrapper._acted(actions, None)


def _has(envs: Any, name: str) -> bool:
    """Whether the object itself has an attribute, and not only an environment in it."""
    try:
        object.__getattribute__(envs, name)
    except AttributeError:
        return False
    return True
