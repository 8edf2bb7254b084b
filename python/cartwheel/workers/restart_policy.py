"""Policies for failures of environments and workers: exceptions or restarts."""

from __future__ import annotations

import bdb
import dataclasses
import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal.arguments import as_integer
from cartwheel._internal.literals import OnError, OnTimeout, OnWorkerDeath, check_choice
from cartwheel._internal.logging import LOGGER, log_event
from cartwheel.errors import add_note
from cartwheel.workers.faults import described

if TYPE_CHECKING:
    from cartwheel._internal.arguments import EnvFn

#: The maximum length of the text of an exception in ``infos["env_error"]``, in characters.
MAX_TEXT = 4096


@dataclasses.dataclass(frozen=True)
class RestartPolicy:
    """The policies of a vector environment for failures.

    Attributes:
        on_error: ``"raise"``, or ``"restart"``: an environment that raised is replaced.
        on_worker_death: ``"raise"``, or ``"restart"``: a worker process that died is restarted.
        on_timeout: ``"raise"``, or ``"restart"``: a worker process that hangs is restarted.
        timeout: Seconds without progress after which a worker hangs; also the seconds that the
            construction of a replacement may take. ``None`` for no limit.
        max_restarts: How often each environment may be replaced, and each worker restarted;
            ``None`` for no limit.
        max_episodes_per_worker: Episodes after which a worker of one row is replaced; ``None`` for
            no limit.
        max_worker_memory: Bytes of resident memory above which a worker of one row is replaced
            before its next episode; ``None`` for no limit.
    """

    on_error: OnError = "raise"
    on_worker_death: OnWorkerDeath = "raise"
    on_timeout: OnTimeout = "raise"
    timeout: float | None = None
    max_restarts: int | None = 10
    max_episodes_per_worker: int | None = None
    max_worker_memory: int | None = None

    def __post_init__(self) -> None:
        check_choice("on_error", self.on_error, OnError)
        check_choice("on_worker_death", self.on_worker_death, OnWorkerDeath)
        check_choice("on_timeout", self.on_timeout, OnTimeout)
        if self.on_timeout == "restart" and not self.timeout:
            raise ValueError(
                "`on_timeout='restart'` needs a positive `timeout`: the seconds after which a "
                f"worker counts as hung, got timeout={self.timeout!r}."
            )
        if self.max_restarts is not None:
            as_integer("max_restarts", self.max_restarts, 0)
        if self.max_episodes_per_worker is not None:
            as_integer("max_episodes_per_worker", self.max_episodes_per_worker, 1)

    @property
    def retires(self) -> bool:
        """Whether worker processes are replaced between two episodes, though they did not fail."""
        return self.max_episodes_per_worker is not None or self.max_worker_memory is not None

    @property
    def resumes(self) -> bool:
        """Whether the native pool goes on when a worker process has ended."""
        return self.retires or self.on_worker_death == "restart"

    @property
    def hang_limit(self) -> float | None:
        """Seconds without progress after which a worker process is restarted."""
        return self.timeout if self.on_timeout == "restart" else None

    @property
    def call_timeout(self) -> float | None:
        """Seconds after which a call raises: workers that hang are restarted instead."""
        return None if self.on_timeout == "restart" else self.timeout

    @property
    def replacements(self) -> int:
        """The number of times that a native environment may be replaced after a panic."""
        if self.on_error == "raise":
            return 0
        limit = 2**32 - 1
        return limit if self.max_restarts is None else min(int(self.max_restarts), limit)

    def allows(self, restarts: int) -> bool:
        """Whether one more restart is allowed after ``restarts`` of them."""
        return self.max_restarts is None or restarts < self.max_restarts


class Replacements:
    """Replaces failed environments of one worker.

    If a row was ever seeded, its replacement gets a seed from the row's last seed and the number of
    replacements since then, so that a run with failures can be reproduced.
    """

    def __init__(self, restart_policy: RestartPolicy, first_row: int) -> None:
        self.restart_policy = restart_policy
        self.first_row = first_row
        self._counts: dict[int, int] = {}
        #: For each row that was seeded, the seed and the number of replacements since then.
        self._seeds: dict[int, tuple[int, int]] = {}

    def hand_over(self) -> tuple[dict[int, int], dict[int, tuple[int, int]]]:
        """Returns what :meth:`take_over` of the worker's next process gets."""
        return self._counts, self._seeds

    def take_over(self, kept: tuple[dict[int, int], dict[int, tuple[int, int]]]) -> None:
        """Continues the counts and seeds of the worker's last process."""
        self._counts, self._seeds = kept

    def note_seeds(self, resets: dict[int, dict[str, Any] | None]) -> None:
        """Remembers the seeds among the keywords of resets, by row of the worker."""
        if self.restart_policy.on_error == "restart" or self.restart_policy.retires:
            seeded = ((row, how["seed"]) for row, how in resets.items() if how)
            self._seeds.update((row, (seed, 0)) for row, seed in seeded if seed is not None)

    def seed_of(self, row: int) -> tuple[int, int] | None:
        """Returns what the next replacement of a row is seeded from, for the state of the row."""
        return self._seeds.get(row)

    def continue_from(self, row: int, seed: tuple[int, int] | None) -> None:
        """Goes on with what :meth:`seed_of` returned when a state was saved."""
        if seed is None:
            self._seeds.pop(row, None)
        else:
            self._seeds[row] = seed

    def replace(
        self, envs: list[Any], env_fn: EnvFn, row: int, failure: BaseException
    ) -> str | None:
        """Closes the environment of a row of the worker and makes a new one.

        Returns:
            A description of the failure; ``None`` if the policy does not replace the environment.

        Raises:
            Exception: The new environment could not be made or reset, or its spaces differ.
        """
        made = self._counts.get(row, 0)
        # A debugger that quits is not a failure of the environment.
        failed = isinstance(failure, Exception) and not isinstance(failure, bdb.BdbQuit)
        if self.restart_policy.on_error != "restart" or not failed:
            return None
        if not self.restart_policy.allows(made):
            add_note(failure, f"the environment was replaced {made} times before (max_restarts)")
            return None
        self._counts[row] = made + 1
        log_event(
            logging.WARNING,
            f"the environment of row {self.first_row + row} failed and is replaced ({made + 1})",
            exc_info=failure,
            event="error",
            env_index=[self.first_row + row],
            replacements=made + 1,
        )
        old = envs[row]
        self._close(old, row)
        env = env_fn()
        try:
            _check_spaces(old, env)
            # The next episode begins with its own reset; this one allows control calls before it.
            env.reset(seed=self.next_seed(row))
        except BaseException:
            self._close(env, row)
            raise
        envs[row] = env
        summary, _ = described(failure)
        # Native code takes no lone surrogates, as names of files have for bytes that are not UTF-8.
        return summary.encode(errors="backslashreplace").decode()[:MAX_TEXT]

    def _close(self, env: Any, row: int) -> None:
        try:
            env.close()
        except (Exception, SystemExit):  # games call `sys.exit`
            LOGGER.exception("closing the environment of row %d", self.first_row + row)

    def next_seed(self, row: int) -> int | None:
        """Returns the seed of the next replacement of a row; ``None`` if it was never seeded."""
        if row not in self._seeds:
            return None
        seed, replaced = self._seeds[row]
        self._seeds[row] = (seed, replaced + 1)
        return int(np.random.SeedSequence([seed, replaced + 1]).generate_state(1)[0])


def _check_spaces(old: Any, env: Any) -> None:
    for kind in ("observation_space", "action_space"):
        before, now = getattr(old, kind), getattr(env, kind)
        if before != now:
            raise RuntimeError(f"the {kind} of a replacement must be {before}, got {now}")
