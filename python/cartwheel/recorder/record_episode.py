"""Records the episodes of a vector environment.

This file is above 500 lines because it has the documentation of every argument.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import threading
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cartwheel._internal.arguments import as_bool, as_integer, as_positive, as_rows
from cartwheel._internal.literals import check_choice
from cartwheel._internal.process import Finalizer
from cartwheel._internal.rewards import check_rewards_are_numbers
from cartwheel._internal.suggestions import checks_keywords
from cartwheel.multiagent.base import AgentsBase
from cartwheel.recorder.buffer import Episode, infos_of_ended
from cartwheel.recorder.frames import FrameSource, why_no_video
from cartwheel.recorder.h5_file import load_library
from cartwheel.recorder.metadata import Origins, states_of
from cartwheel.recorder.trajectory_recorder import FLAGS, TrajectoryRecorder
from cartwheel.recorder.video import VideoOutput, VideoRecorder, encoder
from cartwheel.recorder.writer import Files, Format, Writer, as_folder, finish, make_files
from cartwheel.wrappers._shared.reports import reported_keys
from cartwheel.wrappers.base import VectorWrapper
from cartwheel.wrappers.batch import FAILED, INCOMPLETE, NOWHERE, RESET, SHOWN, TRANSITION

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel._internal.reset_arguments import ResetOptions
    from cartwheel.wrappers.base import Reset
    from cartwheel.wrappers.batch import ActionBatch, Batch, Finals

    Mask = NDArray[np.bool_]
    Rows = NDArray[np.int64]


class RecordEpisode(VectorWrapper):
    """Writes episodes and videos, with the arguments and files of ManiSkill's class of this name.

    An episode has one observation more than actions: the first is that of its reset, the last the
    true terminal one, in every autoreset mode. It is written when it is over. Episodes that a
    reset or :meth:`close` cuts short are written with both last flags false. Frozen steps are not
    written, and neither are steps in which the environment failed or whose results were lost; such
    an episode ends before them. An episode that began before the wrapper was made is left out.

    Files are written by a thread, at most a quarter of a second after an episode. If the thread
    fails, for instance because the disk is full, the next call raises its error, and so does
    :meth:`close`. If the program is killed, the ``.h5`` file has all finished episodes, and
    :class:`TrajectoryDataset` reads it without the JSON file.

    ``format="maniskill"`` writes ``<trajectory_name>.h5`` and ``.json``. Each group ``traj_i`` has
    ``obs`` with ``T + 1`` entries, ``actions`` ``[T, A]`` in the dtype of the action space or in
    that of wider floats that were passed, ``terminated``, ``truncated``, perhaps ``success`` and
    ``fail`` from the infos, ``rewards`` (``float32``) and ``env_states``. ``format="minari"``
    writes the folder ``<trajectory_name>`` for Minari, with the numbers in the infos (NaN, 0 or
    false where they are missing), rewards as ``float64``, and only the first of the states. Images
    are compressed. Texts of observations are UTF-8, in as many bytes as the longest of the episode
    has; :class:`TrajectoryDataset` and Minari read them as ``str``. ``"/"`` in a key makes groups:
    ``walker/joints`` is ``joints`` in the group ``walker``, also in the space that Minari reads.
    Keys of infos that are not text are written as ``str(key)``. Numbers that cannot be written are
    left out with a warning that names the key and the reason: a key that no file can have or that
    another one has already, shapes that change, and more than 512 keys in the present episodes.

    In addition to ManiSkill's, the metadata of an episode have ``env_index``, ``row_seed`` and
    ``episode_in_row``: the row played its episodes one after the other from ``row_seed``, and this
    is the one with that number, from 0. ``episode_seed`` is null unless a reset gave the seed. Of a
    row that continues from a state (``set_state``), no seed is known until one is given.
    ``return`` is the sum of the rewards, ``terminated`` and ``truncated`` are the last flags,
    ``videos`` the names of its videos.

    The compiled model of a vector environment of :func:`cartwheel.mujoco.make` is written once, as
    ``<trajectory_name>.mjb`` or ``model.mjb``. ``env_info``, in Minari's layout the file of
    metadata, has its hash and XML, the time limit, the keywords, and the names of the functions.
    :func:`cartwheel.recorder.replay` plays episodes again.

    Example:
        envs = cartwheel.make_vec("cartwheel/CartPole-v1", 8, render_mode="rgb_array")
        envs = RecordEpisode(envs, "runs/cartpole", trajectory_name="demo", video_envs="tile")

    Args:
        env: A vector environment of cartwheel or Gymnasium, wrapped or not.
        output_dir: The folder of all files; it is made.
        save_trajectory: Whether episodes are written.
        trajectory_name: Of the files; by default the date and time. No file is overwritten.
        save_video: Whether videos are made; by default, where images can be rendered.
        info_on_video: Whether rewards and numbers of the infos are written on the frames.
        save_on_reset: Whether episodes that are cut short are written.
        save_video_trigger: Called with the number of steps so far; frames of steps for which it
            returns false are left out.
        max_steps_per_video: Videos are cut after this number of steps.
        clean_on_close: For compatibility with ManiSkill; numbers never have gaps.
        record_reward: Whether rewards are written.
        video_fps: Frames per second.
        source_type: The origin of the actions in one word, for the metadata.
        source_desc: A longer text for it.
        record_env_state: Whether states are recorded from ``get_state``: as ``bytes``, padded, and
            ``length``, which is 0 where a state could not be had, such as a terminal one in
            ``SAME_STEP``. By default, where environments can be saved. Each state takes the caller
            some 2 µs, and longer in Python environments; false saves that.
        avoid_overwriting_video: For compatibility with ManiSkill; videos are never overwritten.
        video_envs: Rows that have a video for each episode; or ``"tile"``: one video of all rows.
        episode_filter: Called with the metadata of an ended episode; returns whether the episode
            and its video are written.
        format: ``"maniskill"`` or ``"minari"``.
        queue_mb: Megabytes that may wait for the thread; a step that would exceed them waits.

    Raises:
        TypeError: ``env`` is not a vector environment, or has several agents
            (:class:`RecordParallelEpisode` records these), a space has parts that are neither
            arrays of fixed shape nor, in observations, texts, or a flag is not a ``bool``.
        ValueError: An argument is wrong; nothing can be drawn although ``save_video=True``; or
            rewards are arrays (``reward_space``).
        OSError: Files cannot be written, or exist.
        gymnasium.error.AlreadyPendingCallError: In ``SAME_STEP`` filmed rows are in flight.
        ImportError: ``h5py``, PyAV or Pillow is missing: ``pip install 'cartwheel[record]'``.
    """

    _changes_steps = False
    _prepares_calls = True
    _sends_rows_instead = "it draws rows; record with save_video=False"

    @checks_keywords
    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        output_dir: str | os.PathLike[str],
        save_trajectory: bool = True,  # noqa: FBT001 - ManiSkill's signature
        trajectory_name: str | None = None,
        save_video: bool | None = None,  # noqa: FBT001 - ManiSkill's signature
        info_on_video: bool = False,  # noqa: FBT001 - ManiSkill's signature
        save_on_reset: bool = True,  # noqa: FBT001 - ManiSkill's signature
        save_video_trigger: Callable[[int], bool] | None = None,
        max_steps_per_video: int | None = None,
        clean_on_close: bool = True,  # noqa: FBT001 - ManiSkill's signature
        record_reward: bool = True,  # noqa: FBT001 - ManiSkill's signature
        video_fps: float = 30,
        source_type: str | None = None,
        source_desc: str | None = None,
        *,
        record_env_state: bool | None = None,
        avoid_overwriting_video: bool = False,
        video_envs: Sequence[int] | Literal["tile"] = (0,),
        episode_filter: Callable[[dict[str, Any]], bool] | None = None,
        format: Format = "maniskill",
        queue_mb: float = 256,
    ) -> None:
        if isinstance(env, AgentsBase):
            raise TypeError(
                f"`env` has several agents, {env.possible_agents}: RecordParallelEpisode records "
                "its episodes by agent."
            )
        self._check_rewards(env)
        super().__init__(env)
        del clean_on_close, avoid_overwriting_video  # there is nothing to clean or to overwrite
        as_bool("save_trajectory", save_trajectory)
        as_bool("info_on_video", info_on_video)
        as_bool("save_on_reset", save_on_reset)
        as_bool("record_reward", record_reward)
        if save_video is not None:
            save_video = as_bool("save_video", save_video)
        if record_env_state is not None:
            as_bool("record_env_state", record_env_state)
        check_choice("format", format, Format)
        _check_functions(save_video_trigger=save_video_trigger, episode_filter=episode_filter)
        video_fps, queue_mb = as_positive("video_fps", video_fps), as_positive("queue_mb", queue_mb)
        if max_steps_per_video is not None:
            max_steps_per_video = as_integer("max_steps_per_video", max_steps_per_video, 1)
        video_rows = self._video_rows(video_envs)
        has_videos = self._can_have_videos(save_video=save_video)
        if not save_trajectory and not has_videos:
            raise ValueError(
                "nothing would be recorded: give save_trajectory=True or save_video=True."
            )
        if has_videos:
            encoder()
            if info_on_video:
                load_library("PIL.Image")

        states = states_of(env, self._source.envs, asked=record_env_state)
        self._trajectories = self._make_trajectories(
            saves=save_trajectory,
            keeps_infos=format == "minari",
            get_state=states if save_trajectory else None,
        )
        folder = as_folder(output_dir)
        self._files: Files | None = None
        if save_trajectory:
            source = {"source_type": source_type, "source_desc": source_desc}
            facts = {key: text for key, text in source.items() if text is not None} | self._facts()
            spaces = self._trajectories.spaces
            self._files = make_files(self, spaces, folder, trajectory_name, format, facts)
        self._start_writer(int(queue_mb * 1e6))
        self._videos: VideoRecorder | None = None
        if has_videos:
            self._videos = VideoRecorder(
                self.num_envs,
                video_rows,
                FrameSource(env, video_rows, self._source.autoreset_mode),
                VideoOutput(folder, self._writer, video_fps, max_steps_per_video),
                save_video_trigger,
                is_tiled=isinstance(video_envs, str),
                has_captions=info_on_video,
            )
        #: Rows cannot be drawn while others are in flight.
        self.sends_rows = self._videos is None and getattr(env, "sends_rows", False)
        self._record_reward, self._save_on_reset = record_reward, save_on_reset
        self._filter = episode_filter
        self._control_mode = getattr(env.unwrapped, "control_mode", None)
        #: Keys of infos that are about the episode that ended, in ``SAME_STEP``, too.
        self._reports = reported_keys(env)
        self._begin_recording()

    def _start_writer(self, limit: int) -> None:
        """Starts the thread that writes, which lets so many bytes wait."""
        self._writer = Writer(limit, self._files.flush if self._files else lambda: None)
        #: Ends the thread and the files, also at the end of the program or of the wrapper.
        self._finish = Finalizer(self, finish, self._writer, self._files)
        # At the end of the program before h5py's own end, which the thread would not survive.
        atexit.register(self._finish)

    def _begin_recording(self) -> None:
        """Sets what changes with each batch: nothing is recorded yet."""
        self._rows, self._origins = np.arange(self.num_envs), Origins(self.num_envs)
        #: Rows whose present episode is recorded.
        self._open = np.zeros(self.num_envs, np.bool_)
        self._returns = np.zeros(self.num_envs)
        self._episodes, self._steps = itertools.count(), 0
        #: Whether a reset keeps the episodes that it cuts short.
        self._saves = True
        self._is_closed = False
        #: Held by the thread that records a batch or closes; a filter may close, too.
        self._recording_lock = threading.RLock()

    def _check_rewards(self, env: Any) -> None:
        """Raises ``ValueError`` for rewards that cannot be recorded."""
        check_rewards_are_numbers(env, "RecordEpisode")

    def _make_trajectories(self, *, saves: bool, **keywords: Any) -> TrajectoryRecorder:
        """Makes the recorder of trajectories; of rewards alone unless it ``saves``."""
        observation = self.single_observation_space if saves else None
        return TrajectoryRecorder(self.num_envs, observation, self.single_action_space, **keywords)

    def _facts(self) -> dict[str, Any]:
        """Returns further metadata of the files."""
        return {}

    def _video_rows(self, video_envs: Any) -> list[int]:
        if isinstance(video_envs, str):
            check_choice("video_envs", video_envs, Literal["tile"])
            return list(range(self.num_envs))
        return as_rows(video_envs, self.num_envs, "video_envs")

    def _can_have_videos(self, *, save_video: bool | None) -> bool:
        if save_video is False:
            return False
        wrong = why_no_video(self, self._source.autoreset_mode)
        if save_video and wrong is not None:
            raise ValueError(f"no video of {self.env} can be made: {wrong}.")
        return wrong is None

    # Calls

    def reset(self, *, seed: Any = None, options: ResetOptions = None, save: bool = True) -> Reset:
        """Resets every environment, or the rows that ``options`` select.

        Args:
            seed: As for the wrapped environment.
            options: As for the wrapped environment; not changed.
            save: Whether the episodes that it cuts short are written, if ``save_on_reset``; false
                discards them and their videos.

        Returns:
            Observations and infos.

        Raises:
            TypeError: ``save`` is not a ``bool``; nothing is reset.
            Exception: As for the wrapped environment; or the error of the writing thread.
        """
        self._writer.check()
        self._saves = as_bool("save", save)
        try:
            return super().reset(seed=seed, options=options)
        finally:
            self._saves = True

    def flush(self) -> None:
        """Waits until all episodes that are over are in the files.

        Raises:
            Exception: The error of the writing thread.
        """
        self._writer.drain()

    def close(self, **kwargs: Any) -> None:
        """Writes the rest, and closes the files and the environments.

        Steps of another thread are recorded up to here. A forked child writes nothing.

        Raises:
            Exception: The error of the writing thread, after all is closed.
        """
        if self._is_closed or not self._finish.alive:
            super().close(**kwargs)
            return
        with contextlib.ExitStack() as stack:  # whatever raises; the last one is called first
            stack.callback(self._writer.check)
            stack.callback(super().close, **kwargs)
            stack.callback(self._finish)
            stack.callback(atexit.unregister, self._finish)
            stack.enter_context(self._recording_lock)
            self._is_closed = True
            if self._videos is not None:
                stack.callback(self._videos.close, keep=self._save_on_reset)
            self._cut_short(self._rows[self._open])

    def _loaded(self) -> None:
        """Running episodes are cut short, as by a reset; each row's next one is recorded."""
        super()._loaded()
        self._cut_short(self._rows[self._open])
        self._origins.forget(self._rows)
        if self._videos is not None and self._save_on_reset:
            self._videos.cut(keep=True)

    def act(self, actions: Any, batch: ActionBatch) -> Any:
        """Keeps the actions until their results come."""
        self._writer.check()
        self._trajectories.act(actions, batch.env_index, self._source.in_flight())
        return actions

    def transform(self, batch: Batch) -> None:
        """Records a batch, which stays as it is."""
        if self._finish.alive:  # not in a forked child, which has no thread that writes
            with self._recording_lock:
                if not self._is_closed:
                    self._record_batch(batch)

    def _record_batch(self, batch: Batch) -> None:
        rows = self._rows if batch.env_index is None else np.asarray(batch.env_index, np.int64)
        kinds = batch.kinds
        steps, begins = kinds == TRANSITION, kinds == RESET
        if not steps.all():
            self._stop(batch, rows, begins, (kinds == FAILED) | (kinds == INCOMPLETE))
        if batch.absent is not None:  # agents that are not there begin their episode later
            if batch.rewards is None:
                self._origins.forget(rows[begins & batch.absent])
            begins = begins & ~batch.absent
        if batch.skipped is not None:
            self._origins.skip(rows, batch.skipped)
        steps &= self._open[rows]
        ended, finals = NOWHERE, None
        if batch.rewards is not None:
            self._steps += 1
            over = np.logical_or(batch.terminations, batch.truncations)
            if np.count_nonzero(over):
                if self._source.is_same_step:
                    begins = begins | (over & (kinds != SHOWN))
                    finals = self._finals(batch, rows, steps, over)
                ended = np.flatnonzero(steps & over)
        if self._videos is not None:
            self._videos.draw(self._steps, rows, steps, begins)
        last_infos = infos_of_ended(batch.infos, self._reports)
        before = self._trajectories.lengths(rows[ended])
        try:
            if steps.any():
                self._add(batch, rows, steps, begins, finals, last_infos)
            if self._videos is not None and batch.rewards is not None:
                lengths = self._trajectories.lengths(slice(None))
                self._videos.step(batch, rows, steps, begins, last_infos, lengths, self._returns)
        finally:  # also after Ctrl-C: a later end would not know the flags
            if len(ended):
                has_step = self._trajectories.lengths(rows[ended]) > before
                self._cut_short(rows[ended[~has_step]])
                ended = ended[has_step]
                flags = np.stack([batch.terminations, batch.truncations], axis=1)[ended]
                self._end_each(rows[ended], flags, keep=True)
                self._trajectories.shrink()
        if batch.rejoined is not None:
            begins = begins | batch.rejoined
        if batch.absent is not None:
            begins = begins & ~batch.absent
        if begins.any():
            self._begin(batch, rows, begins)

    def _finals(self, batch: Batch, rows: Rows, steps: Mask, over: Mask) -> Finals | None:
        """Takes final observations; steps that lost theirs with a worker cut episodes short."""
        finals = batch.finals(self.single_observation_space)
        lost = steps & over
        if finals is not None:
            lost[finals.places] = False
        self._cut_short(rows[lost])
        steps &= ~lost
        return finals

    def _stop(self, batch: Batch, rows: Rows, begins: Mask, stops: Mask) -> None:
        """Episodes end that are cut short by resets and failures."""
        self._cut_short(rows[(begins | stops) & self._open[rows]])
        if stops.any():
            self._origins.forget(rows[batch.kinds == FAILED])
        is_full = batch.rewards is None and begins.all() and len(rows) == self.num_envs
        if is_full and self._videos is not None and self._save_on_reset:
            self._videos.cut(keep=self._saves)

    def _cut_short(self, rows: Rows) -> None:
        keep = self._save_on_reset and self._saves
        self._end_each(rows, np.zeros((len(rows), 2), np.bool_), keep=keep)

    def _end_each(self, rows: Rows, flags: Mask, *, keep: bool) -> None:
        """Ends the episodes of rows. Where the filter raises, or Ctrl-C, the others end, too."""
        errors = []
        for row, (terminated, truncated) in zip(rows.tolist(), flags.tolist(), strict=True):
            try:
                self._end(row, (terminated, truncated), keep=keep)
            except BaseException as error:  # of the filter, or Ctrl-C
                errors.append(error)
        if errors:
            raise errors[0]

    def _add(
        self, batch: Batch, rows: Rows, steps: Mask, begins: Mask, finals: Any, last_infos: Any
    ) -> None:
        infos = []
        if batch.infos:
            infos = [(last_infos, steps & begins), (batch.infos, steps & ~begins)]
        places: Any = slice(None) if steps.all() else np.flatnonzero(steps)
        here = rows[places]
        shown = batch.observations if finals is None else finals.among(batch.observations)
        self._trajectories.add(here, places, shown, batch, infos, begins[places])
        self._returns[here] += self._trajectories.totals(shown, batch.rewards)[places]

    def _begin(self, batch: Batch, rows: Rows, begins: Mask) -> None:
        places = np.flatnonzero(begins)
        here = rows[places]
        seeds = None if batch.seeds is None else batch.seeds[places]
        if batch.is_restored:
            self._origins.forget(here)
        self._origins.begin(here, seeds, batch.options)
        infos = {key: value for key, value in batch.infos.items() if key not in self._reports}
        self._trajectories.begin(here, places, batch.observations, infos, len(batch.kinds))
        self._open[here], self._returns[here] = True, 0.0
        if self._videos is not None:
            self._videos.begin(here, is_step=batch.rewards is not None)

    def _end(self, row: int, flags: tuple[bool, bool], *, keep: bool) -> None:
        """Writes the present episode of a row, or discards it; ``flags`` are its last ones."""
        self._open[row] = False
        length = int(self._trajectories.lengths(row))
        keep = keep and length > 0
        arrays: dict[Any, Any] = {}
        metadata: dict[str, Any] = {}
        if keep:
            arrays, flags = self._trajectories.cut(row, flags)
            metadata = self._metadata_of(row, flags, arrays)
            keep = self._filter is None or bool(self._filter(dict(metadata)))
        videos = self._videos.end(row, keep=keep) if self._videos is not None else []
        if not keep or self._files is None:
            return
        metadata = {"episode_id": next(self._episodes), **metadata}
        for name, last in zip(("terminated", "truncated"), flags, strict=True):
            arrays[name,] = np.zeros(length, np.bool_)
            arrays[name,][-1] = last
        arrays = self._trajectories.placed(arrays, rewards=self._record_reward)
        groups = self._trajectories.groups
        write, episode = self._files.write, Episode(metadata, arrays, groups)

        def task() -> bool:
            if videos:  # they are complete: their tasks came before this one
                metadata["videos"] = [video.name for video in videos if video.name is not None]
            return write(episode)

        self._writer.put(task, episode.nbytes)

    def _metadata_of(
        self, row: int, flags: tuple[bool, bool], arrays: dict[Any, Any]
    ) -> dict[str, Any]:
        origin = self._origins.metadata(row)
        flagged = {
            flag: bool(np.all(arrays[path][-1]))
            for flag in FLAGS
            for path in ((flag,), ("infos", flag))
            if path in arrays
        }
        return {
            "episode_seed": origin.pop("episode_seed"),
            "control_mode": self._control_mode,
            "elapsed_steps": int(self._trajectories.lengths(row)),
            **origin,
            "env_index": row,
            "return": float(self._returns[row]),
            "terminated": flags[0],
            "truncated": flags[1],
            **flagged,
        }


def _check_functions(**functions: Any) -> None:
    """Raises ``TypeError`` unless these arguments are functions or ``None``."""
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise TypeError(f"`{name}` must be a function, got {function!r}.")
