"""Control calls in a worker: attributes, methods, saved states, and the answers to them.

Workers import this file, so it must not import a trainer.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from cartwheel.errors import add_note
from cartwheel.workers.envs import attributes
from cartwheel.workers.envs.agents_env import AgentsEnv
from cartwheel.workers.faults import Fault
from cartwheel.workers.serving.row_state import CachedEnv, sampled, saved

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from cartwheel._cartwheel import Memory
    from cartwheel.workers.channels import WorkerEnd
    from cartwheel.workers.restart_policy import Replacements


class ControlCalls:
    """The control calls of a :class:`~cartwheel.workers.serving.worker.Worker`.

    Attributes:
        drawn: The rows whose terminal states are rendered in ``SAME_STEP``, counted from the first.
    """

    # Of the worker:
    channel: WorkerEnd
    first_row: int
    is_remote: bool
    reserve: bool
    envs: list[Any]
    next_resets: dict[int, Any]
    memory: Memory | None
    _replacements: Replacements
    fault: Callable[[int | None, BaseException], Fault]
    returned_here: Callable[..., Any]

    def __init__(self, drawing: AbstractContextManager[object] | None) -> None:
        """Keeps a lock that is held while an environment renders, if other threads render too."""
        self.drawn: set[int] = set()
        self._answer: list[Any] = []
        #: Whether the present control call saves environments without methods, too.
        self._pickles = False
        self._drawing = drawing or contextlib.nullcontext()

    def answer(self) -> list[int] | None:
        """Carries out a control call on every environment and keeps the answers.

        Returns:
            Rows of the worker that native code has to :meth:`save`, if any.
        """
        task, name, parts = self.channel.receive()
        if task == "skip":  # this worker has answered; the call is repeated for other workers
            self._answer = []
            return None
        if task == "attach_rollout":
            self._answer = [self._attach_rollout(name, parts)]
            return None
        if task == "save":
            self._pickles = name == "pickle"
            self._answer = [None] * len(self.envs)
            return [row for row, saving in enumerate(parts) if saving]
        self._answer = []
        if task == "draw_final_frames":
            self.drawn = {row for row, part in enumerate(parts) if part}
            self._answer = [None] * len(parts)
            return None
        for row, (env, part) in enumerate(zip(self.envs, parts, strict=True), self.first_row):
            self._answer.append(self._carry_out(row, task, env, name, part))
            if is_ctrl_c(self._answer[-1]):
                break  # the caller must not wait for the other environments
        return None

    def save(self, row: int, place: bytes, shown: list[Any], lost: bool) -> bool:  # noqa: FBT001 - called by native code
        """Saves a row of the worker and keeps its state as the answer.

        Args:
            row: The row.
            place: Its place in the episode.
            shown: The observation that it shows; empty if it has none.
            lost: Whether the row lost its environment and has not been stepped or reset since then.

        Returns:
            Whether the other rows are to be saved, too: not after Ctrl-C.
        """
        number = self.first_row + row
        try:
            env, pickles = self.envs[row], self._pickles
            seed = self._replacements.seed_of(row)
            self._answer[row] = self.returned_here(
                saved, env, number, place, shown, lost=lost, pickles=pickles, seed=seed
            )
        except BaseException as error:  # every exception is reported to the caller
            self._answer[row] = self.fault(number, error)
        return not is_ctrl_c(self._answer[row])

    def _attach_rollout(self, index: int, steps: int) -> Fault | None:
        try:
            assert self.memory is not None, "a worker process has memory"
            self.memory.attach_rollout(index, steps, self.channel.take_descriptor())
        except Exception as error:
            return self.fault(None, error)
        return None

    def _carry_out(self, row: int, task: str, env: Any, name: str, part: Any) -> Any:
        if part is None:
            return None  # the call is for other rows
        try:
            return self.returned_here(self._call, row, task, env, name, part)
        except BaseException as error:  # every exception is reported to the caller
            return self.fault(row, error)

    def _call(self, row: int, task: str, env: Any, name: str, part: Any) -> Any:
        own = env.env if isinstance(env, CachedEnv) else env
        if task == "set_attr":
            (value,) = part
            return attributes.write(own, name, value)
        if task == "sample":
            return sampled(own, row, part, pickles=name == "pickle")
        if task == "cache":
            self.envs[row - self.first_row] = CachedEnv(own, row, *part)
            return None
        if task == "has_next_reset":
            return self.next_resets.get(row - self.first_row) is not None
        if task == "draws":
            return env.draw
        if task == "apply":
            function, args, kwargs = part
            with self._guard(name):
                made = own.made if isinstance(own, AgentsEnv) else own
                return function(made, *args, **kwargs)
        if task == "read":
            return attributes.read(own, name, reserve=False)
        if task == "has":
            return attributes.exists(own, name)
        args, kwargs = part
        attribute = attributes.read(own, name, reserve=self.reserve)
        if not callable(attribute):
            return attribute
        with self._guard(name):
            return attribute(*args, **kwargs)

    def _guard(self, name: str) -> AbstractContextManager[object]:
        draws = isinstance(name, str) and name.rpartition(".")[2] == "render"
        return self._drawing if draws else contextlib.nullcontext()

    def answer_failed(self, error: BaseException) -> Any:
        """Packs an error that no environment raised as the answer to the present control call."""
        self._answer = [self.fault(self.first_row, error)]
        return self.pack_answer()

    def pack_answer(self) -> Any:
        """Packs the kept answers; an answer that cannot be sent becomes a fault."""
        answers, self._answer = self._answer, []
        if not self.is_remote:
            return answers  # so that below, only an answer raises, and inline no signal handler
        try:
            return self.channel.pack(answers)
        except BaseException:  # an answer's own methods may raise anything
            for at, answer in enumerate(answers):
                try:
                    self.channel.pack(answer)
                except BaseException as error:
                    kind = type(answer).__name__
                    add_note(error, f"the result, of type {kind}, cannot leave the worker process")
                    answers[at] = self.fault(self.first_row + at, error)
            return self.channel.pack(answers)


def is_ctrl_c(found: Any) -> bool:
    """Whether this is Ctrl-C, or its fault: Python raises it in the main thread alone."""
    return (
        isinstance(found.error if isinstance(found, Fault) else found, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
    )
