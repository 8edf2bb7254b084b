"""Control calls: attributes and methods of environments, and functions that get an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel._internal.arguments import as_drawn_rows, as_values
from cartwheel._internal.suggestions import shown
from cartwheel.errors import noted
from cartwheel.vector.pool_owner import ActType, ObsType, PoolOwner
from cartwheel.workers.channels import MainFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel._internal.literals import Executor
    from cartwheel.workers.group import WorkerGroup


class ControlCalls(PoolOwner[ObsType, ActType]):
    """The methods of a vector environment that reach into environments, where these are.

    Each worker gets one message, with what its rows need.
    """

    render_mode: str | None
    executor: Executor
    _group: WorkerGroup

    def call(self, name: str, *args: Any, env_index: Any = None, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of environments, or reads an attribute that is not callable.

        Args:
            name: The method or attribute, which may belong to a wrapper. A name with dots, such as
                ``"sim.forward"``, is one of an attribute.
            *args: Arguments of the method.
            env_index: Row numbers, in any order: only these environments are called. By default all
                rows. It is not passed on: a parameter of this name, which a method may have itself,
                can be given by its position in ``args``.
            **kwargs: Keyword arguments of the method.

        Returns:
            One result for each of these rows, in this order.

        Raises:
            AttributeError: An environment has no such attribute. For a name with dots, the error
                names the part that is missing.
            ValueError: ``name`` is ``reset``, ``step`` or ``close``; or ``env_index`` is empty, or
                a row does not exist or is named twice.
            TypeError: ``env_index`` is not a one-dimensional collection of integers.
        """
        return self._called("call", name, env_index, args, kwargs)

    def _called(
        self,
        calling: str,
        name: str,
        env_index: Any = None,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> tuple[Any, ...]:
        """Makes a call for the method ``calling``, which errors name."""
        prepared = self._prepared_call(calling, name, env_index, args, kwargs or {})
        return self._pool.call(*prepared, calling, self._callbacks.timeout)

    def apply(
        self, function: Callable[..., Any], *args: Any, env_index: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Calls a function with each environment, where the environment is.

        The function gets what the row's function in ``env_fns`` returned: the environment with its
        wrappers. It may read and change everything except the progress of the episode: a step or a
        reset that it makes is not seen by the vector environment. Of ``"thread"``, several
        environments may be in the function at the same time.

        Example:
            >>> import gymnasium as gym, cartwheel
            >>> envs = cartwheel.VectorEnv([lambda: gym.make("CartPole-v1")] * 3)
            >>> def heavier(env, factor):
            ...     env.unwrapped.masspole *= factor
            ...     return round(env.unwrapped.masspole, 3)
            >>> envs.apply(heavier, 2, env_index=[2, 0])
            (0.2, 0.2)
            >>> envs.close()

        Args:
            function: Called with the environment, ``args`` and ``kwargs``. For worker processes,
                function, arguments and results are pickled; lambdas and functions within functions
                are sent with the variables that they use.
            *args: Further arguments.
            env_index: Row numbers, in any order; by default all rows.
            **kwargs: Keywords of the function.

        Returns:
            One result for each of these rows, in this order.

        Raises:
            TypeError: ``function`` is not callable, or it or an argument cannot be pickled for the
                worker processes; or ``env_index`` is not a one-dimensional collection of integers.
            ValueError: ``env_index`` is empty, or a row does not exist or is named twice.
            Exception: The function raised it for the lowest row; a note names the row. The function
                was called for the other rows, too.
        """
        self._pool.check("apply", idle=True)
        if not callable(function):
            raise TypeError(
                "`apply` needs a function that is called with each environment, got "
                f"{shown(function)}."
            )
        return self._applied("apply", "", self._numbers(env_index), function, *args, **kwargs)

    def _applied(
        self,
        calling: str,
        name: str,
        rows: list[int],
        function: Callable[..., Any],
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Calls a function with environments, for the method ``calling``, which errors name.

        Args:
            calling: The method.
            name: The attribute that the function calls or reads, if it is known.
            rows: Row numbers, in any order.
            function: As for :meth:`apply`.
            *args: Further arguments.
            **kwargs: Keywords.
        """
        self._pool.check(calling, idle=True)
        sent = MainFunction.wrap(function) if self.executor == "process" else function
        try:
            messages = self._packed("apply", name, rows, [(sent, args, kwargs)] * len(rows))
        except Exception as error:
            called = getattr(function, "__name__", shown(function))
            raise TypeError(
                f"the function of `{calling}`, {called}, or one of its arguments cannot be "
                f"sent to the worker processes: {error}."
            ) from error
        return self._pool.call(messages, rows, calling, self._callbacks.timeout)

    def _asked(self, calling: str, task: str, name: str, rows: list[int]) -> tuple[Any, ...]:
        """Reads an attribute and calls nothing (``"read"``), or asks if it is there (``"has"``).

        Args:
            calling: The method, which errors name.
            task: One of the two.
            name: The attribute.
            rows: Row numbers, in any order.
        """
        self._pool.check(calling, idle=True)
        messages = self._packed(task, name, rows, [True] * len(rows))
        return self._pool.call(messages, rows, calling, self._callbacks.timeout)

    def call_async(self, name: str, /, *args: Any, env_index: Any = None, **kwargs: Any) -> None:
        """Begins a call with the arguments of :meth:`call`; :meth:`call_wait` returns its results.

        Raises:
            gymnasium.error.AlreadyPendingCallError: Another call is pending, or rows are in flight.
            Exception: As for :meth:`call`.
        """
        prepared = self._prepared_call("call_async", name, env_index, args, kwargs)
        self._pool.call_async(*prepared, "call_async")

    def _prepared_call(
        self, calling: str, name: str, env_index: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], list[int]]:
        self._pool.check(calling, idle=True)
        rows = self._numbers(env_index)
        return self._packed("call", name, rows, [(args, kwargs)] * len(rows)), rows

    def _packed(self, task: str, name: str, rows: list[int], parts: list[Any]) -> list[Any]:
        """Packs a control call of some rows, with one part for each row."""
        by_row: list[Any] = [None] * self.num_envs
        for row, part in zip(rows, parts, strict=True):
            by_row[row] = part
        contents = [(task, name, part) for part in self._callbacks.split(by_row)]
        what = "a value of" if task == "set_attr" else "an argument of"
        with noted(f"{what} {name!r} cannot be sent to the worker processes"):
            messages: list[Any] = self._callbacks.pack(contents)
        return messages

    def get_attr(self, name: str, *, env_index: Any = None) -> tuple[Any, ...]:
        """Reads an attribute of environments; like Gymnasium, calls it if it is callable.

        Args:
            name: The attribute, which may belong to a wrapper; with dots as for :meth:`call`.
            env_index: As for :meth:`call`.

        Returns:
            One value for each of these rows, in this order.

        Raises:
            AttributeError: As for :meth:`call`.
            ValueError: As for :meth:`call`.
            TypeError: As for :meth:`call`.
        """
        return self._called("get_attr", name, env_index)

    def set_attr(self, name: str, values: Any, *, env_index: Any = None) -> None:
        """Sets an attribute of environments, on the wrapper that has it.

        Args:
            name: The attribute. A name with dots, such as ``"sim.dt"``, is one that an attribute
                has already; other names may be new.
            values: A list or tuple with one value for each of the rows; any other value is set on
                each of these environments.
            env_index: Row numbers, in any order: only these environments change. By default all
                rows.

        Raises:
            AttributeError: A part of a name with dots does not exist, or the attribute cannot be
                set.
            ValueError: A list or tuple of the wrong length; or as for :meth:`call`.
            TypeError: As for :meth:`call`.
        """
        self._pool.check("set_attr", idle=False)
        by_row = as_values(name, values, self.num_envs, self._named(env_index))
        self._pool.check("set_attr", idle=True)
        rows = self._numbers(env_index)
        messages = self._packed("set_attr", name, rows, [(value,) for value in by_row])
        self._pool.call(messages, rows, "set_attr", self._callbacks.timeout)

    def render(self, env_index: Any = None) -> tuple[Any, ...]:
        """Renders environments.

        Args:
            env_index: Row numbers, in any order: only these environments are called. By default all
                rows.

        Returns:
            What ``render`` of each of these environments returns, in this order: with
            ``render_mode="rgb_array"`` an array ``uint8`` of shape ``(height, width, 3)``.

        Raises:
            TypeError: ``env_index`` is not a one-dimensional collection of integers.
            ValueError: ``env_index`` is empty, or a row does not exist or is named twice.
            Exception: An environment raised it.
        """
        return self._called("render", "render", env_index)

    def draw_final_frames(self, env_index: Any = None) -> None:
        """Chooses the rows whose terminal states are rendered in the mode ``SAME_STEP``.

        From now on, when one of these rows ends an episode, its environment renders before the step
        resets it. ``infos["final_frame"]`` of the step is an array of objects with the frames, and
        ``infos["_final_frame"]`` is its mask; other steps do not have these keys. The same
        holds for rows that are sent. A restarted worker keeps the choice. An exception of
        ``render`` counts as one of the step; an environment that was replaced in the step has no
        frame.

        In the other modes this method has no effect, because the terminal state can be rendered
        after the step.

        Args:
            env_index: Row numbers, which replace earlier ones; ``None`` or an empty list for no
                rows.

        Raises:
            TypeError: ``env_index`` is not a one-dimensional collection of integers.
            ValueError: A row does not exist or is named twice, or the environments return no frames
                in their ``render_mode``.
            gymnasium.error.AlreadyPendingCallError: A call is pending or rows are in flight.
        """
        self._pool.check("draw_final_frames", idle=True)
        rows = as_drawn_rows(env_index, self.num_envs, self.render_mode)
        self._group.drawn = rows
        messages = self._packed("draw_final_frames", "", rows, [True] * len(rows))
        self._pool.call(messages, rows, "draw_final_frames", self._callbacks.timeout)
