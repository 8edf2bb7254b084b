"""The environment of an awaited row, in its worker process.

A worker process of an awaited row begins to serve before there is an environment: a request makes
it. Requests for anything but a step of fixed shape reach the worker as the keywords of a reset, and
their replies leave it as an info.

Workers import this file by name, so it must not import a trainer.
"""

from __future__ import annotations

import dataclasses
import inspect
import operator
import os
import pickle
import time
from typing import TYPE_CHECKING, Any, Literal

import gymnasium as gym
from gymnasium.spaces import Space

from cartwheel._internal.logging import LOGGER
from cartwheel._internal.suggestions import shown
from cartwheel.workers.envs import attributes
from cartwheel.workers.envs.observation_form import ObservationForms, shared
from cartwheel.workers.faults import Fault
from cartwheel.workers.restart_policy import Replacements
from cartwheel.workers.retirement import (
    Lifetime,
    check_memory,
    continue_statistics,
    flush_streams,
    memory_of_this_process,
    statistics_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel.workers.restart_policy import RestartPolicy

#: The key of the reply in an info.
REPLY = "cartwheel.reply"


@dataclasses.dataclass
class Asked:
    """A request to an awaited row.

    Attributes:
        kind: ``"make"`` only makes the environment, which every other request does as well.
        arguments: Seed and options of a reset; the action of a step; name, arguments and keywords
            of a call.
        remake: Whether an environment that failed is closed and made again before.
        left: What the last process left, which retired before this reset.
        form: The form of observations that the caller knows. It does not know that of a reset whose
            reply could not be loaded.
    """

    kind: Literal["make", "reset", "step", "call"]
    arguments: tuple[Any, ...] = ()
    remake: bool = False
    left: Left | None = None
    form: Any = None


@dataclasses.dataclass
class Left:
    """The state that a process leaves at a limit, instead of the result of a reset.

    Attributes:
        seed: The seed of the next reset, if that names none.
        replacements: The seeds of the row so far.
        statistics: What wrappers of the environment gathered over many episodes.
    """

    seed: int | None
    replacements: Any
    statistics: dict[int, bytes]


@dataclasses.dataclass
class Reply:
    """The reply to a request.

    Attributes:
        value: The result, the :class:`~cartwheel.workers.faults.Fault` of an exception, or a
            :class:`Left`.
        form: The form of the observation of a reset.
        spaces: Observation and action space, in the reply to the request that made the environment;
            ``None`` for an object without spaces.
        is_made: Whether there is an environment now.
        seconds: The time of a step that reached the worker as a message.
    """

    value: Any
    form: Any = None
    spaces: tuple[Any, Any] | None = None
    is_made: bool = True
    seconds: float | None = None


@dataclasses.dataclass(frozen=True)
class MakesAwaitedEnv:
    """A function that makes the environment of a worker.

    Attributes:
        env_fn: The caller's function, pickled.
        row: The row.
        nice: The amount by which the process lowers its priority.
        spaces: The spaces of the memory; ``None``: the environment is made at once, and its spaces
            become those of the memory.
        limits: The limits of the process.
    """

    env_fn: bytes
    row: int
    nice: int
    spaces: tuple[Any, Any] | None
    limits: RestartPolicy

    def __call__(self) -> AwaitedEnv:
        """Makes it."""
        if self.nice:
            os.nice(self.nice)
        return AwaitedEnv(self)


class AwaitedEnv:
    """The methods that a worker calls.

    Attributes:
        env: The caller's environment; ``None`` until a request makes it.
        observation_space: That of the memory.
        action_space: That of the memory.
    """

    def __init__(self, made_by: MakesAwaitedEnv) -> None:
        """Makes the caller's environment if it is to describe itself, otherwise none."""
        self._made_by = made_by
        self.env: Any = None
        self._has_told = False
        self._lifetime = Lifetime(made_by.limits)
        self._seeds = Replacements(made_by.limits, made_by.row)
        spaces = made_by.spaces
        if spaces is None:
            self._make()
            spaces = self._spaces() or (None, None)
        self.observation_space: Space[Any] = shared(spaces[0])
        self.action_space: Space[Any] = shared(spaces[1])
        self._forms = ObservationForms(self.observation_space)
        #: The form of the observation that the last reset returned.
        self._form: Any = None
        self._is_as_shown = self._forms.test_of(None)

    def _make(self, *, is_first: bool = True) -> None:
        """Makes the environment; ``is_first``: the process did not replace one at a limit."""
        env = pickle.loads(self._made_by.env_fn)()
        if not callable(getattr(env, "reset", None)) or isinstance(env, type):
            raise TypeError(
                f"env_fns[{self._made_by.row}] must return an environment or another object with a "
                f"method `reset`, got {env!r}"
            )
        self.env, self._has_told = env, False
        limit = self._made_by.limits.max_worker_memory
        if limit is not None and is_first and self._lifetime.episodes <= 1:
            try:
                check_memory({self._made_by.row: memory_of_this_process()}, limit)
            except ValueError:
                self.close()
                self._lifetime.episodes = 0  # none has begun
                raise

    def _spaces(self) -> tuple[Any, Any] | None:
        found = [getattr(self.env, name, None) for name in ("observation_space", "action_space")]
        # Those of PettingZoo's environments are methods.
        return (found[0], found[1]) if all(isinstance(one, Space) for one in found) else None

    def step(self, action: Any) -> Any:
        """Steps the environment; an observation of another form leaves as a reply."""
        result = self.env.step(action)
        if type(result) is not tuple or len(result) != 5 or self._is_as_shown(result[0]):
            return result  # native code describes what is wrong
        observation, reward, terminated, truncated, info = result
        reply = Reply((observation, info))
        return self._forms.blank, reward, terminated, truncated, {REPLY: reply}

    def reset(self, *, asked: Asked | None = None) -> tuple[Any, dict[str, Any]]:
        """Carries out a request; without one, this process replaced another, whose task it has."""
        if asked is None:
            return self._forms.blank, {}
        try:
            reply = self._reply(asked)
        except Exception as error:
            fault = Fault.from_exception(self._made_by.row, error, is_remote=True)
            reply = Reply(fault, is_made=self.env is not None)
        if reply.form is not None and reply.form == asked.form and reply.spaces is None:
            shown: tuple[Any, dict[str, Any]] = reply.value
            return shown  # nothing that the caller does not know: as quick as a step
        return self._forms.blank, {REPLY: reply}

    def _reply(self, asked: Asked) -> Reply:
        if asked.kind == "reset" and self._made_by.limits.retires:
            if self._lifetime.reason_to_end() is not None:
                return Reply(self._leave(asked), is_made=False)
            asked = self._with_seed(asked)
        if asked.remake:
            self.close()
        if self.env is None:
            self._make(is_first=asked.left is None)
            if asked.left is not None and asked.left.statistics:
                continue_statistics(self.env, asked.left.statistics)
        reply = _REPLIES[asked.kind](self, *asked.arguments)
        if asked.left is not None:
            shown, info = reply.value
            reply.value = shown, {**info, "restarted": True}
        if not self._has_told:
            reply.spaces, self._has_told = self._spaces(), True
        return reply

    def _leave(self, asked: Asked) -> Left:
        """Closes the environment, before the process is replaced."""
        env, row = self.env, self._made_by.row
        keeps = isinstance(env, gym.Env) and not asked.remake
        statistics = statistics_of(env, row) if keeps else {}
        left = Left(self._seeds.next_seed(0), self._seeds.hand_over(), statistics)
        self.close()
        flush_streams()
        return left

    def _with_seed(self, asked: Asked) -> Asked:
        """Returns a reset with the seed that the last process left, if it has none."""
        seed, options = asked.arguments
        if asked.left is not None:
            self._seeds.take_over(asked.left.replacements)
            seed = asked.left.seed if seed is None else seed
        self._seeds.note_seeds({0: {"seed": seed}})
        return dataclasses.replace(asked, arguments=(seed, options))

    def _made(self) -> Reply:
        return Reply(None)

    def _reset(self, seed: int | None, options: dict[str, Any] | None) -> Reply:
        keywords = {"seed": seed, "options": options}
        if self._spaces() is None:  # not an environment: its `reset` may have other parameters
            keywords = {name: value for name, value in keywords.items() if value is not None}
        result = _done("reset", self.env.reset(**keywords))
        is_pair = type(result) is tuple and len(result) == 2 and isinstance(result[1], dict)
        if not is_pair and self._spaces() is not None:
            raise TypeError(
                f"`reset` must return an observation and a dictionary of infos, got {result!r}"
            )
        observation, info = result if is_pair else (result, {})
        form = self._forms.form_of(observation)
        if form != self._form:
            self._form, self._is_as_shown = form, self._forms.test_of(form)
        return Reply((observation, info), form)

    def _step(self, action: Any) -> Reply:
        began = time.perf_counter()
        result = _done("step", self.env.step(action))
        seconds = time.perf_counter() - began
        try:
            observation, reward, terminated, truncated, info = result
            step = observation, float(reward), bool(terminated), bool(truncated), info
        except (TypeError, ValueError):  # as of an environment of several agents
            raise TypeError(
                "`step` must return (observation, reward, terminated, truncated, info) of one "
                f"environment, got {shown(result)}: `call(row, 'step', action)` returns what a "
                "method of another object returns"
            ) from None
        return Reply(step, seconds=seconds)

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Reply:
        if isinstance(self.env, gym.Env):
            attribute = attributes.read(self.env, name, reserve=True)
        else:
            attribute = operator.attrgetter(name)(self.env)
        if not callable(attribute):
            return Reply(attribute)
        return Reply(_done(name, attribute(*args, **kwargs)))

    def close(self) -> None:
        """Closes the environment, if there is one with a method ``close``."""
        env, self.env = self.env, None
        close = getattr(env, "close", None)
        if callable(close):
            try:
                close()
            except (Exception, SystemExit):  # games call `sys.exit`
                LOGGER.exception("closing the environment of row %d", self._made_by.row)


def _done(name: str, result: Any) -> Any:
    if not inspect.iscoroutine(result):
        return result
    result.close()
    raise TypeError(
        f"`{name}` is an `async def`, and the process of a row has no event loop: make it a plain "
        "`def`, which blocks no other row, or call `asyncio.run` in it"
    )


_REPLIES: dict[str, Callable[..., Reply]] = {
    "make": AwaitedEnv._made,
    "reset": AwaitedEnv._reset,
    "step": AwaitedEnv._step,
    "call": AwaitedEnv._call,
}
