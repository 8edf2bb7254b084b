"""A worker: the environments of one shard.

The native loop steps the environments. This class does everything outside the step path: it makes
the environments, receives resets and control calls, and sends faults and answers.

Workers import this file, so it must not import a trainer.
"""

from __future__ import annotations

import collections
import functools
import os
import pickle
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

from cartwheel._cartwheel import LARGEST_MESSAGE
from cartwheel._internal.logging import LOGGER
from cartwheel._internal.rewards import check_reward_space, reward_space_of
from cartwheel.errors import row_range
from cartwheel.workers.channels import LocalWorkerChannel, pickled
from cartwheel.workers.envs.made_envs import check_spaces, layouts_of, refusal, truncates
from cartwheel.workers.envs.one_env import EnvIdentities
from cartwheel.workers.faults import Fault
from cartwheel.workers.restart_policy import Replacements, RestartPolicy
from cartwheel.workers.retirement import (
    Lifetime,
    continue_statistics,
    flush_streams,
    memory_of_this_process,
    statistics_of,
    write_handoff,
)
from cartwheel.workers.serving.control_calls import ControlCalls, is_ctrl_c
from cartwheel.workers.serving.row_state import CachedEnv, ResetCache, load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from cartwheel._cartwheel import Descriptor, Memory
    from cartwheel._internal.arguments import EnvFn
    from cartwheel.workers.channels import WorkerEnd


class Worker(ControlCalls):
    """The environments of one shard, and the answers to control calls.

    Attributes:
        envs: The environments, in the order of their rows.
        next_resets: For rows of the worker, the packed keywords of their next automatic reset.
        pickle: Pickles the values for which a stream of infos has no format.
        retires: Whether :meth:`retire` is called before each episode.
        handoff: What a worker process that retired left to this one: the observation that its row
            shows, and the last step of its episode or ``None``.
    """

    pickle = staticmethod(pickled)

    def __init__(
        self,
        channel: WorkerEnd,
        first_row: int,
        *,
        is_remote: bool,
        reserve: bool = True,
        restart_policy: RestartPolicy | None = None,
        drawing: AbstractContextManager[object] | None = None,
    ) -> None:
        """Makes a worker that has no environments yet.

        Args:
            channel: The worker's end of the channel.
            first_row: The row of its first environment.
            is_remote: Whether faults and answers are sent to another process.
            reserve: Whether ``call`` refuses ``reset``, ``step`` and ``close``.
            restart_policy: How failures of environments are handled.
            drawing: A lock that is held while an environment renders, if other threads of this
                process render too.
        """
        super().__init__(drawing)
        self.channel = channel
        self.first_row = first_row
        self.is_remote = is_remote
        self.reserve = reserve
        self.envs: list[Any] = []
        self._env_fns: list[EnvFn] = []
        self._replacements = Replacements(restart_policy or RestartPolicy(), first_row)
        self.retires = False
        self._handoff_file: Descriptor | None = None
        self._lifetime = Lifetime(restart_policy or RestartPolicy())
        self.handoff: tuple[Any, Any] | None = None
        #: The seed of the first reset, and a frame of the last state, which a worker left.
        self._first_seed: int | None = None
        self._last_frame: list[Any] = []
        #: The shared memory, in a worker process.
        self.memory: Memory | None = None
        #: Whether the worker serves; until then, the caller waits for a message.
        self.serving = False
        #: The process of a worker; ``None`` if the calling thread steps the environments.
        self._pid: int | None = None
        #: Environments that are still to be closed, with their rows, and Ctrl-C meanwhile.
        self._unclosed: collections.deque[tuple[int, Any]] = collections.deque()
        self._interrupt: BaseException | None = None
        #: Whether Ctrl-C has ended a call of `close`.
        self.is_half_closed = False
        #: For each row that was sent and is not yet begun: a function that unpacks its message,
        #: which has a part for each of its rows. If unpacking raises, it raises for each of them.
        self._sent: dict[str, dict[int, Callable[[], dict[int, Any]]]]
        self._sent = {"resets": {}, "actions": {}, "next": {}}
        #: Messages to rows that were sent, which are not noted there yet.
        self._messages: collections.deque[Any] = collections.deque()
        self.next_resets: dict[int, Any] = {}

    def build(self, env_fns: bytes | Sequence[EnvFn]) -> dict[str, Any]:
        """Makes the environments and describes them.

        Args:
            env_fns: One function for each environment; pickled if this process was not forked.

        Returns:
            ``fault`` alone when an environment could not be made or described; all environments are
            closed then. Otherwise ``metadata`` and ``render_mode`` of the first environment, and
            the ``spaces`` of each: a pair of observation and action space, or ``None`` when the
            pair equals the first one; ``reward_spaces``: that of each, ``None`` for numbers;
            ``limits``: whether each truncates its episodes itself; ``same``: the identities of the
            environments, for ``check_distinct``; ``layouts``: that of each with several agents; and
            ``memory``: the resident memory of a process that may retire.
        """
        row = self.first_row
        try:
            self._env_fns = pickle.loads(env_fns) if isinstance(env_fns, bytes) else list(env_fns)
            pairs: list[tuple[Any, Any] | None] = []
            reward_spaces: list[Any] = []
            known = EnvIdentities(self.first_row, is_remote=self.is_remote)
            for row, env_fn in enumerate(self._env_fns, self.first_row):
                known.begin(env_fn)
                env = self.returned_here(env_fn)
                self._add(env, row, known)
                check_reward_space(reward_space := reward_space_of(env))
                reward_spaces.append(reward_space)
                pair = (env.observation_space, env.action_space)
                pairs.append(None if pairs and pair == pairs[0] else pair)
            row, first = self.first_row, self.envs[0]
            return {
                "metadata": dict(getattr(first, "metadata", None) or {}),
                "render_mode": getattr(first, "render_mode", None),
                "spaces": pairs,
                "reward_spaces": reward_spaces,
                "limits": [truncates(env) for env in self.envs],
                "same": known.same,
                "layouts": layouts_of(self.envs),
                "memory": memory_of_this_process() if self.retires else 0,
            }
        except BaseException as error:  # the environments' own code may raise anything
            self.close()
            return {"fault": self.fault(row, error)}

    def _add(self, env: Any, row: int, known: EnvIdentities) -> None:
        """Adds what a function returned, if it is an environment that no earlier row has."""
        self.envs.append(env)  # before its attributes, which may raise: so it is closed
        refused = refusal(env, row)
        if refused is not None:
            self.envs.pop()
            raise refused
        check_spaces(env, row)
        try:
            known.add(env)
        except ValueError:  # an earlier row has it, and closes it
            self.envs.pop()
            raise

    def fault(self, row: int | None, error: BaseException) -> Fault:
        """Describes an exception of a row, or of the whole worker, for the caller."""
        return Fault.from_exception(row, error, is_remote=self.is_remote)

    def introduce(self, env_fns: bytes | Sequence[EnvFn]) -> None:
        """Makes the environments and sends the caller their description, or the fault."""
        self._pid = os.getpid()
        description = self.build(env_fns)
        try:
            message = self.channel.pack(description)
        except BaseException as error:  # pickling spaces and metadata may raise anything
            row = self._unsendable_row(description["spaces"])
            self.close()
            message = self.channel.pack({"fault": self.fault(row, error)})
        self.channel.post(message)

    def _unsendable_row(self, pairs: list[Any]) -> int:
        """Returns the first row whose spaces cannot be sent; if all can, the worker's first row."""
        rows = enumerate(pairs, self.first_row)
        return next((row for row, pair in rows if not self._can_be_sent(pair)), self.first_row)

    def _can_be_sent(self, content: Any) -> bool:
        try:
            self.channel.pack(content)
        except BaseException:
            return False
        return True

    @property
    def largest_infos(self) -> int:
        """The maximum size of a stream of infos that a worker process can send, in bytes.

        The rest of a message is for its pickle, and for what is told about failures.
        """
        return LARGEST_MESSAGE - (1 << 20)

    def ready(self) -> None:
        """Sends the caller the message that this worker serves. Native code calls it."""
        self.channel.post(self.channel.pack({}))
        self.serving = True

    def fail(self, error: BaseException) -> None:
        """Sends the caller the error that keeps this worker from serving; closes everything."""
        self.channel.post(self.channel.pack({"fault": self.fault(None, error)}))
        self.close()

    def resume(
        self,
        rollouts: list[tuple[int, int]],
        resets: dict[int, dict[str, Any]],
        drawn: list[int],
        cached: list[tuple[ResetCache, tuple[int, int]]] | None,
        left: dict[str, Any] | None,
    ) -> None:
        """Takes over from a worker process that died or retired.

        Args:
            rollouts: Index and steps of each rollout to attach; the descriptors came with them.
            resets: The keywords of resets that were sent to the dead worker, by its rows.
            drawn: The rows of the worker whose terminal states are rendered.
            cached: If resets load states from a cache: for each row the cache, and its draws.
            left: What it left in :meth:`retire`; ``None`` if it died.
        """
        if left is not None:
            self._take_over(left)
        for row, own in enumerate(cached or []):
            self.envs[row] = env = CachedEnv(self.envs[row], self.first_row + row, *own)
            if self._first_seed is not None:
                env.begin_numbers(self._first_seed)
        if cached is not None:
            self._first_seed = None  # a reset with a seed would draw other states
        self.drawn = set(drawn)
        assert self.memory is not None, "a worker process has memory"
        for index, steps in rollouts:
            self.memory.attach_rollout(index, steps, self.channel.take_descriptor())
        self._sent["resets"].update(dict.fromkeys(resets, lambda: resets))

    def may_retire(self, file: Descriptor) -> None:
        """Lets this process end between two episodes; ``file`` is for what it leaves then."""
        self.retires, self._handoff_file = True, file

    def retire(self, row: int, shown: Any, ended: Any) -> None:
        """Ends this process before the next episode of its only row, if it has served long enough.

        Args:
            row: The row, counted from the worker's first.
            shown: The observation that it shows; ``None`` if it was never reset.
            ended: The last step of the episode, if the task is that step: observation, reward,
                terminated, truncated, the reward as a list if rewards are arrays, and info.

        Raises:
            Exception: What the next process needs cannot be pickled.
        """
        reason = self._lifetime.reason_to_end()
        if reason is None:
            return
        assert self._handoff_file is not None, "a worker that may retire has a file"
        env = self.envs[row]
        own = env.env if isinstance(env, CachedEnv) else env
        frame = [self.draw(row)] if ended is not None and row in self.drawn else []
        left = {
            "reason": reason,
            "handoff": (shown, ended),
            "frame": frame,
            "seed": self._replacements.next_seed(row),
            "replacements": self._replacements.hand_over(),
            "next_resets": self.next_resets,
            "statistics": statistics_of(own, self.first_row + row),
            "draw": env.draw if isinstance(env, CachedEnv) else None,
        }
        write_handoff(self._handoff_file, pickled(left))
        try:
            self.close()
            flush_streams()
        finally:
            os._exit(0)  # the native loop below cannot be left otherwise in the middle of a task

    def _take_over(self, left: dict[str, Any]) -> None:
        """Continues with what :meth:`retire` of the last process left."""
        self.handoff = left["handoff"]
        self._last_frame = left["frame"]
        self._first_seed = left["seed"]
        self._replacements.take_over(left["replacements"])
        self.next_resets.update(left["next_resets"])
        if self._first_seed is not None:
            self.next_resets.setdefault(0, None)  # native code asks for the keywords
        continue_statistics(self.envs[0], left["statistics"])

    def _with_seed(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Returns the keywords of a reset, with the seed of the first one after a retirement."""
        seed, self._first_seed = self._first_seed, None
        return (
            keywords if seed is None or keywords["seed"] is not None else {**keywords, "seed": seed}
        )

    def receive_actions(self) -> list[Any]:
        """Receives the actions of a step whose action space has no fixed shape."""
        actions: list[Any] = self.channel.receive()
        return actions

    def receive_reset(self) -> list[dict[str, Any] | None]:
        """Receives for each row the keywords of its ``reset``, or ``None`` for no reset."""
        resets: list[dict[str, Any] | None] = self.channel.receive()
        if self.next_resets:
            for row, keywords in enumerate(resets):
                if keywords is not None:
                    self.next_resets.pop(row, None)
        if self._first_seed is not None:
            resets = [None if one is None else self._with_seed(one) for one in resets]
        self._replacements.note_seeds(dict(enumerate(resets)))
        return resets

    def take_reset(self, row: int) -> dict[str, Any] | bytes:
        """Returns the keywords of a reset that ``send`` started, or the state to restore.

        Rows count from the worker's first.
        """
        keywords: dict[str, Any] | bytes = self._take("resets", row)
        self.next_resets.pop(row, None)
        if isinstance(keywords, bytes):
            return keywords
        keywords = self._with_seed(keywords)
        self._replacements.note_seeds({row: keywords})
        return keywords

    def take_action(self, row: int) -> Any:
        """Returns the action of a step that ``send`` started, if its space has no fixed shape."""
        return self._take("actions", row)

    def receive_next_resets(self, rows: list[int]) -> None:
        """Receives the keywords of the next automatic resets of these rows."""
        for row in rows:
            packed = self._take("next", row)
            if packed is not None:
                self.next_resets[row] = packed

    def take_next_reset(self, row: int) -> dict[str, Any] | None:
        """Returns the keywords of an automatic reset, if the caller has chosen some for it."""
        packed = self.next_resets.pop(row, None)
        if packed is None and self._first_seed is None:
            return None
        keywords: dict[str, Any] = {"seed": None, "options": None}
        if packed is not None:
            keywords = self.channel.unpack(packed)
        keywords = self._with_seed(keywords)
        self._replacements.note_seeds({row: keywords})
        return keywords

    def _take(self, kind: str, row: int) -> Any:
        """Takes what was sent to a row.

        Inline, the exception of a signal handler may have ended an earlier call anywhere. So a
        message stays in the list until all of it is noted, and what is left of a row is replaced by
        what was sent to it later.
        """
        messages = self._messages
        if isinstance(self.channel, LocalWorkerChannel):
            self.channel.take_all(messages)
        while messages or row not in self._sent[kind]:
            if not messages:
                messages.append(self.channel.receive())
            kind_of_message, rows, packed = messages[0]
            parts = functools.cache(functools.partial(self.channel.unpack, packed))
            self._sent[kind_of_message].update(dict.fromkeys(rows, parts))
            messages.popleft()
        return self._sent[kind].pop(row)()[row]

    def returned_here(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls code of an environment; a process that it forked and that comes back is ended."""
        try:
            result = function(*args, **kwargs)
        except BaseException as failure:
            if self._pid not in (None, os.getpid()):
                self.end_copy(failure)
            raise
        if self._pid not in (None, os.getpid()):
            self.end_copy(None)
        return result

    def end_copy(self, failure: BaseException | None) -> NoReturn:
        """Ends this process, which an environment forked and which returned from its call.

        Otherwise this process would serve as a second copy of the worker, and outlive it.

        Args:
            failure: The exception that the environment raised in this process, if any.
        """
        try:
            if failure is not None:
                traceback.print_exception(failure)
            LOGGER.error(
                "process %d, which an environment forked, returned from the environment and is "
                "ended: forked processes must end by os._exit",
                os.getpid(),
            )
        finally:
            os._exit(1)

    def replace(self, row: int, failure: BaseException) -> str | None:
        """Replaces the environment of a row, counted from the worker's first.

        Returns:
            A description of the failure; ``None`` if the failure is to be raised.
        """
        old = self.envs[row]
        text = self._replacements.replace(self.envs, self._env_fns[row], row, failure)
        if isinstance(old, CachedEnv) and text is not None:
            self.envs[row] = old.around(self.envs[row])
        return text

    def restore(self, row: int, state: bytes) -> tuple[bytes, list[Any]]:
        """Restores a row of the worker; returns its place in the episode and its observation."""
        body = load(self.envs[row], self.first_row + row, state)
        self._replacements.continue_from(row, body.get("seed"))  # older states have none
        return body["place"], body["shown"]

    def draw(self, row: int) -> Any:
        """Returns a frame of the environment of a row, counted from the worker's first."""
        if self._last_frame:
            return self._last_frame.pop()
        with self._drawing:
            return self.envs[row].render()

    def pack_faults(self, faults: list[tuple[int, BaseException]]) -> Any:
        """Packs the exceptions of a task."""
        return self.channel.pack([self.fault(row, error) for row, error in faults])

    def pack_in_advance(self) -> tuple[Any, Any]:
        """Packs what is sent instead of a message that cannot be packed, because memory ran out.

        Returns:
            The message instead of exceptions or answers, which raises here, and that instead of
            infos.
        """
        first, last = self.first_row, self.first_row + len(self.envs) - 1
        text = (
            f"an exception of {row_range(first, last)}, or an answer, could not be sent: their "
            "worker has written the reason to stderr"
        )
        return self.channel.pack([Fault.from_text(text)]), self.channel.pack(None)

    def pack_rest(self, stream: bytes | None) -> Any:
        """Packs infos that do not fit into shared memory; ``None`` if they are lost."""
        return self.channel.pack(stream)

    def close(self) -> None:
        """Closes every environment; an exception is logged, and the others are still closed.

        After Ctrl-C they are left to another call, which raises it first: native code, which calls
        this method, cannot.

        Raises:
            KeyboardInterrupt: Ctrl-C has ended the last call.
        """
        if (interrupt := self._interrupt) is not None:
            self._interrupt = None
            raise interrupt
        self._unclosed.extend(enumerate(self.envs, self.first_row))
        self.envs = []
        while self._unclosed:
            row, env = self._unclosed.popleft()
            try:
                self.returned_here(env.close)
            except BaseException as error:
                if not self.is_remote and is_ctrl_c(error):
                    self._interrupt, self.is_half_closed = error, True
                    return
                LOGGER.exception("closing the environment of row %d", row)
