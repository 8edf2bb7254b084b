"""The files of a recording, and the thread that writes them."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from cartwheel._internal.process import News, name_this_thread, slices
from cartwheel.recorder.h5_file import load_library
from cartwheel.recorder.layouts import ManiSkillFiles, MinariFiles, as_dataset_id
from cartwheel.recorder.metadata import compiled_model, env_info
from cartwheel.workers.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

#: A task of the thread; returns whether a flush is needed afterwards.
Task: TypeAlias = "Callable[[], bool]"

#: The maximum number of seconds between a write and its flush.
FLUSH_S = 0.25


class Writer:
    """Runs tasks in their order in a thread of its own, and flushes from time to time.

    The queue is bounded by the bytes that its tasks hold: :meth:`put` waits and drops nothing. An
    error of a task ends the work: the tasks after it are dropped, and :meth:`check` raises it. So
    are tasks of another thread after :meth:`close`, which would never end otherwise.

    Args:
        limit: The bytes that may wait; a single task may be larger.
        flush: Called in the thread, at most :data:`FLUSH_S` seconds after a task that needs it.
    """

    def __init__(self, limit: int, flush: Callable[[], None]) -> None:
        self._limit, self._flush = limit, flush
        self._tasks: deque[tuple[Task, int]] = deque()
        self._bytes = 0
        self._busy = False
        self._is_closed = self._has_ended = False
        self._wants_flush = False
        #: The error that ended the work. An exception that is raised by each call would keep the
        #: frames of the last one, and so the environments.
        self._fault: Fault | None = None
        self._lock = threading.RLock()  # a handler of a signal may close
        #: Wakes the thread, which wakes the others.
        self._changed, self._news = threading.Condition(self._lock), News()
        # Ends with the program even if `close` is never called; the recorder's finalizer calls it.
        self._thread = threading.Thread(target=self._run, name="cartwheel-recorder", daemon=True)
        self._thread.start()

    def put(self, task: Task, nbytes: int) -> None:
        """Adds a task, then waits while the queue is too long."""
        with self._lock:
            if self._fault is not None or self._is_closed:
                return  # `check` raises the error
            self._tasks.append((task, nbytes))
            self._bytes += nbytes
            self._changed.notify_all()
        # A task that is alone may be larger than the limit.
        self._await(
            lambda: self._bytes <= self._limit or len(self._tasks) <= 1 or self._has_failed()
        )

    def check(self) -> None:
        """Raises the error of the thread, if there was one."""
        if self._fault is not None:
            raise self._fault.take_exception()

    def drain(self) -> None:
        """Waits until everything is written and flushed.

        Raises:
            Exception: As for :meth:`check`.
        """
        with self._lock:
            self._wants_flush = True
            self._changed.notify_all()
        self._await(
            lambda: (
                not (self._busy or self._wants_flush)  # which the thread does when no task waits
                or self._has_ended
                or not self._thread.is_alive()  # in a forked child
            )
        )
        self.check()

    def close(self) -> None:
        """Writes the rest of the queue and ends the thread; raises nothing."""
        with self._lock:
            self._is_closed = True
            self._changed.notify_all()
        for left in slices():
            self._thread.join(left)
            if not self._thread.is_alive():
                return

    def _await(self, is_over: Callable[[], bool]) -> None:
        """Waits for the thread, as long as the disk takes."""
        while True:
            with self._lock:
                if is_over():
                    return
                self._news.expect()
            self._news.wait()

    def _has_failed(self) -> bool:
        return self._fault is not None

    def _run(self) -> None:
        name_this_thread("cartwheel-rec")
        due: float | None = None  # when to flush
        while True:
            with self._lock:
                patience = None if due is None else max(0.0, due - time.monotonic())
                self._changed.wait_for(
                    lambda: bool(self._tasks or self._wants_flush or self._is_closed), patience
                )
                task, nbytes = self._tasks.popleft() if self._tasks else (None, 0)
                is_last = task is None and self._is_closed
                hurry = task is None and (self._wants_flush or self._is_closed)
                if hurry:
                    self._wants_flush = False
                self._busy = True
                self._news.tell()  # a task less waits
            try:
                if task is not None and task() and due is None:
                    due = time.monotonic() + FLUSH_S
                if due is not None and (hurry or time.monotonic() >= due):
                    self._flush()
                    due = None
            except BaseException as error:
                self._fail(error)
                due = None
            del task  # and what it holds, before it waits
            with self._lock:
                self._bytes -= nbytes
                self._busy = False
                self._has_ended = is_last
                self._news.tell()
            if is_last:
                return

    def _fail(self, error: BaseException) -> None:
        try:
            self._flush()  # what was written before is good
        except BaseException as second:
            error.__context__ = error.__context__ or second
        with self._lock:
            self._fault = self._fault or Fault.from_exception(None, error, is_remote=True)
            self._bytes -= sum(nbytes for _, nbytes in self._tasks)
            self._tasks.clear()


Format = Literal["maniskill", "minari"]
Files: TypeAlias = ManiSkillFiles | MinariFiles


def as_folder(output_dir: str | os.PathLike[str]) -> Path:
    """Makes a folder, if it does not exist.

    Raises:
        TypeError: ``output_dir`` is not a path.
        OSError: It cannot be made, or nothing can be written into it.
    """
    try:
        folder = Path(output_dir)
    except TypeError:
        raise TypeError(f"`output_dir` must be the path of a folder, got {output_dir!r}.") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise FileExistsError(
            error.errno, "`output_dir` must be a folder, and this is a file", str(folder)
        ) from error
    probe = folder / f".{os.getpid()}.part"
    probe.touch()
    probe.unlink()
    return folder


def make_files(
    envs: Any,
    spaces: tuple[Any, Any],
    folder: Path,
    name: str | None,
    form: Format,
    source: dict[str, Any],
) -> Files:
    """Makes the files of trajectories.

    Args:
        envs: The recorded vector environment.
        spaces: The recorded spaces of observations and actions.
        folder: The folder of the files.
        name: Their name; ``None``: date and time, and a number if that is taken.
        form: The layout.
        source: Entries of the metadata.

    Raises:
        TypeError: ``name`` is not a string.
        ValueError: It does not name a file in the folder.
        FileExistsError: There is a recording of this name.
        OSError: The files cannot be made.
        ImportError: ``h5py`` is missing.
    """
    load_library("h5py")
    if name is not None:
        _check_name(name, form)
    stem = name or time.strftime("%Y%m%d_%H%M%S")
    for number in itertools.count():
        numbered = f"{stem}_{number}" if number else stem
        try:
            if form == "maniskill":
                info, model = env_info(envs), compiled_model(envs)
                return ManiSkillFiles(folder / numbered, info, source, model)
            dataset_id = as_dataset_id(numbered)
            return MinariFiles(folder / dataset_id, dataset_id, envs, spaces, source)
        except FileExistsError as error:
            if name is not None:
                raise FileExistsError(
                    error.errno,
                    "this recording exists already: give another `trajectory_name`",
                    str(error.filename or folder / stem),
                ) from error
    raise AssertionError("numbers do not end")


def _check_name(name: Any, form: Format) -> None:
    if not isinstance(name, str):
        raise TypeError(f"`trajectory_name` must be a string or None, got {name!r}.")
    # Names of Minari's datasets may have a namespace, and are checked as such.
    if not name or (form == "maniskill" and name != Path(name).name):
        raise ValueError(
            f"`trajectory_name` must be the name of a file in `output_dir`, got {name!r}."
        )


def finish(writer: Writer, files: Files | None) -> None:
    """Ends the thread, then closes the files."""
    writer.close()
    if files is not None:
        files.close()
