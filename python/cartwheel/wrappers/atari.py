"""Atari preprocessing: fewer, smaller, gray and stacked frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal.arguments import as_bool, as_integer
from cartwheel._internal.rewards import check_rewards_are_numbers
from cartwheel._internal.suggestions import checks_keywords
from cartwheel.wrappers._shared.kept_state import KeepsState
from cartwheel.wrappers._shared.merging import chosen_actions, merged_infos, take_infos
from cartwheel.wrappers._shared.observation_wrapper import ObservationWrapper
from cartwheel.wrappers._shared.reports import reported_keys
from cartwheel.wrappers._shared.whole_batches import WholeBatches
from cartwheel.wrappers.base import VectorWrapper
from cartwheel.wrappers.batch import (
    FAILED,
    INCOMPLETE,
    RESET,
    SHOWN,
    TRANSITION,
    Batch,
)
from cartwheel.wrappers.frame_stack import FrameStack
from cartwheel.wrappers.images import Images, as_size

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.wrappers.base import Reset, Step
    from cartwheel.wrappers.batch import Finals

    #: The places that one call stepped, ascending, and its batch.
    Frame = tuple[NDArray[np.intp], Batch]
    #: Actions and rows of a step, its frames so far, and the places of the next one, of whose rows
    #: the actions are; ``None``: all.
    Waiting = tuple[Any, Any, list[Frame], NDArray[np.intp] | None]
    #: Rows that ended at one call: their places in the step, the call's batch, their places in
    #: that, their images.
    Part = tuple[NDArray[np.intp], Batch, NDArray[np.intp], Any]


class SkippedFrames(KeepsState, WholeBatches):
    """Repeats each action, and shows an image of the last two frames; of `AtariPreprocessing`.

    A step is ``frame_skip`` calls of the environments. Each call steps the rows whose episode goes
    on. A row that a call reset, or left alone, or whose episode is over, is not stepped again.
    """

    row_entries = ("images",)

    def __init__(
        self, env: VectorEnv[Any, Any, Any], frame_skip: int, images: Images, *, max_pool: bool
    ) -> None:
        """Checks the environment; steps nothing.

        Raises:
            TypeError: Rows cannot be stepped apart.
            ValueError: Batches are smaller than ``num_envs``.
        """
        super().__init__(env)
        if not self._source.steps_rows:
            raise TypeError(
                f"frame_skip={frame_skip} needs a vector environment whose rows can be stepped "
                "apart, which are cartwheel's without wrappers of Gymnasium around them; this is "
                f"{env}. frame_skip=1 works with it."
            )
        self._check_batches(
            env,
            f"frame_skip={frame_skip} needs batches of all rows that are stepped. frame_skip=1 "
            "works with it.",
        )
        self._frame_skip, self._image, self._max_pool = frame_skip, images, max_pool
        self._frame_space = env.single_observation_space
        #: Infos that every call has of every row that it steps.
        self.metrics = reported_keys(env, in_every_step=True)
        space = images.space
        self._set_observation_space(space)
        #: Whether rows whose episode ended show the next one already.
        self.ends_in_steps = self._source.is_same_step
        #: The image that each environment last showed, for rows that show it again.
        self._shown = np.zeros((env.num_envs, *space.shape), space.dtype)
        #: The step that a pending call belongs to.
        self._waits_for: Waiting = None, None, [], None

    def _as_reset(self, batch: Batch) -> Reset:
        """The images of a reset, one frame each."""
        self._drop_frames()
        images = self._image(batch.observations)
        self._show(batch.env_index, batch.kinds, images)
        batch.observations = images
        self._step_rows = None
        return batch.as_reset()

    # Steps

    def step(self, actions: Any, env_index: Any = None) -> Step:
        """Steps every environment, or the rows of ``env_index``, ``frame_skip`` times.

        Raises:
            WorkerTimeoutError: The step is still pending: :meth:`step_wait` goes on with it.
            Exception: As for the wrapped environment; rows may have taken some of the steps.
        """
        if self._recording is not None:
            self._recording.check_step(env_index)
        return self._finish(actions, env_index, [], None)

    def step_async(self, actions: Any, env_index: Any = None) -> None:
        """Begins the first of the calls of a step; :meth:`step_wait` makes the others."""
        if self._recording is not None:
            self._recording.check_step(env_index)
        self._source.step_async(self._acted(actions, env_index), env_index)
        self._wait_for(actions, env_index, [], None)

    def step_wait(self, timeout: float | None = None) -> Step:
        """Waits for a call of a step, at most ``timeout`` seconds, and makes those after it."""
        return self._finish(*self._waits_for, waits=(timeout,))

    def _refusal(self, calling: str) -> TypeError:
        return TypeError(
            f"`{calling}` needs frame_skip=1, got frame_skip={self._frame_skip}; "
            "`step(actions, env_index)` steps some rows"
        )

    def _wait_for(self, actions: Any, env_index: Any, frames: list[Frame], places: Any) -> None:
        """The call for the next frame was begun: :meth:`step_wait` goes on with it."""
        rows = env_index if places is None else places
        size = self.num_envs if rows is None else len(rows)
        space = self.single_action_space
        kept = chosen_actions(space, actions, np.arange(size), size)  # which is a copy
        self._waits_for = kept, None if env_index is None else np.array(env_index), frames, places

    def _drop_frames(self) -> None:
        """Wrappers outside do not get the frames of a step that waited."""
        frames, self._waits_for = self._waits_for[2], (None, None, [], None)
        for _, frame in frames:
            over = np.logical_or(frame.terminations, frame.truncations)
            new = frame.kinds != SHOWN
            self._source.drop(frame.rows[new], frame.kinds[new] == RESET, over[new])

    def _finish(
        self,
        actions: Any,
        env_index: Any,
        frames: list[Frame],
        places: NDArray[np.intp] | None,
        *,
        waits: tuple[float | None] | None = None,
    ) -> Step:
        """Makes the calls of a step that are left, and returns its result.

        Args:
            actions: As of :data:`Waiting`, as the next three.
            env_index: The rows of the step.
            frames: Those that were made.
            places: Those of the next frame.
            waits: The time-out of the wait for the next frame, whose call was begun already.
        """
        try:
            while True:
                if waits is not None:
                    batch = self._called(self._source.wait_again, self._source, *waits)
                    waits = None
                else:
                    rows = env_index if places is None else self._rows(env_index, places)
                    batch = self._called(self._source.step, self._acted(actions, rows), rows)
                frames.append((np.arange(len(batch.kinds)) if places is None else places, batch))
                goes_on = self._goes_on(batch)
                is_last = len(frames) == self._frame_skip or not goes_on.any()
                if is_last or actions is None:  # after Ctrl-C, what went on is one frame
                    break
                if not goes_on.all():
                    space = self.single_action_space
                    actions = chosen_actions(space, actions, np.flatnonzero(goes_on), len(goes_on))
                    places = frames[-1][0][goes_on]
            batch = _Step(self, frames).joined()
        except BaseException as error:
            if self._source.in_flight():
                is_interrupted = not isinstance(error, Exception)
                if isinstance(error, TimeoutError) or (is_interrupted and not frames):
                    self._wait_for(actions, env_index, frames, places)
                    raise
                if waits is not None or not frames:  # refused: another call goes on
                    raise
            self._waits_for = None, None, [], None
            for _, frame in frames:  # the wrappers inside have seen these
                self._source.lose(frame, len(self._inner_wrappers))
            raise
        self._waits_for = None, None, [], None
        self._show(batch.env_index, batch.kinds, batch.observations)
        self._step_rows = batch.rows
        step = batch.as_step()
        if self._recording is not None:
            self._record(step)
        return step

    @staticmethod
    def _goes_on(batch: Batch) -> NDArray[np.bool_]:
        """Which rows take another frame."""
        goes_on: NDArray[np.bool_] = ~(batch.terminations | batch.truncations)
        goes_on &= (batch.kinds == TRANSITION) | (batch.kinds == INCOMPLETE)
        return goes_on

    def _rows(self, env_index: Any, places: NDArray[np.intp]) -> NDArray[np.int64]:
        return places if env_index is None else np.asarray(env_index)[places]

    def image_of(self, frames: Any, before: Any) -> Any:
        """The images of frames; with the frames before them, if the two are pooled."""
        return self._image(frames, before if self._max_pool else None)

    def final_frames(self, batch: Batch) -> Finals | None:
        """Takes the true last frames of ``SAME_STEP`` out of a batch."""
        return batch.finals(self._frame_space)

    def last_shown(self, rows: Any) -> Any:
        """Returns the images that rows last showed; ``None`` for all rows."""
        return self._shown if rows is None else self._shown[rows]

    def _show(self, rows: Any, kinds: NDArray[np.uint8], images: Any) -> None:
        """Keeps images; rows that were left alone get the one that they last showed."""
        again = np.flatnonzero(kinds == SHOWN)
        if len(again):
            images[again] = self.last_shown(rows)[again]
        self._shown[slice(None) if rows is None else rows] = images

    def _present(self) -> Any:
        self._source.present()  # raises the errors of the environments
        return self._shown

    # The state of the wrapper

    def get_own_state(self) -> dict[str, Any]:
        """The state: ``"images"``, what each environment last showed."""
        return {"images": self._shown.copy()}

    def _restore(self, state: dict[str, Any]) -> None:
        self._shown = state["images"].copy()

    def _show_again(self, observations: Any) -> Any:
        del observations  # images of two frames cannot be made of one
        return self._shown.copy()

    def _loaded(self) -> None:
        super()._loaded()
        self._waits_for = None, None, [], None


class _Step:
    """One step, of frames whose rows ended at different calls."""

    def __init__(self, wrapper: SkippedFrames, frames: list[Frame]) -> None:
        self._wrapper, self._frames = wrapper, frames
        self._first = frames[0][1]
        #: The number of the last frame of each row, by place.
        self._ends = np.zeros(len(self._first.kinds), np.intp)
        for number, (places, _) in enumerate(frames):
            self._ends[places] = number
        #: Places of rows and their final images; and the form in which infos have these.
        self._finals: list[tuple[Any, Any]] = []
        self._form: Finals | None = None

    def joined(self) -> Batch:
        """The batch of all rows: sums of rewards, the last of everything else."""
        first, size = self._first, len(self._ends)
        rewards = np.zeros(size)
        for places, batch in self._frames:
            rewards[places] += batch.rewards
        found = map(self._part, range(len(self._frames)))
        parts = [part for part in found if part is not None]
        if len(parts) == 1:  # all rows ended at the same call, so every call stepped all of them
            _, last, _, images = parts[0]
            flags, kinds, infos = (last.terminations, last.truncations), last.kinds, last.infos
        else:
            images, kinds, flags, infos = self._assembled(parts)
        rewards[kinds == FAILED] = 0.0
        batch = Batch(first.env_index, kinds, images, rewards, *flags, infos)
        if self._form is not None:
            batch.set_finals(self._form.like(*self._all_finals()))
        return batch

    def _part(self, number: int) -> Part | None:
        """The rows that ended at one call, with their images; ``None`` if there are none."""
        places, batch = self._frames[number]
        chosen = np.flatnonzero(self._ends[places] == number)
        if not len(chosen) and len(places):
            return None
        wrapper, there = self._wrapper, places[chosen]
        finals, frames = wrapper.final_frames(batch), _rows(batch.observations, chosen)
        before = None
        if number:
            earlier, batch_before = self._frames[number - 1]
            before = _rows(batch_before.observations, np.searchsorted(earlier, there))
        failed = batch.kinds[chosen] == FAILED
        if not wrapper.ends_in_steps:
            images = wrapper.image_of(frames, before)
            if failed.any():
                images[failed] = self._shown(there[failed])
            return there, batch, chosen, images
        # The rows that ended show the first frame of their next episode, which stands alone.
        over = (batch.terminations | batch.truncations)[chosen]
        pairs = before
        if before is not None and over.any():
            pairs = before.copy()
            pairs[over] = frames[over]  # the maximum of a frame and itself
        images = wrapper.image_of(frames, pairs)
        if finals is not None:
            kept = np.isin(finals.places, chosen)
            ended = np.searchsorted(chosen, finals.places[kept])
            last = wrapper.image_of(
                _rows(finals.observations, np.flatnonzero(kept)),
                None if before is None else before[ended],
            )
            lost = failed[ended]
            if lost.any():
                last[lost] = self._shown(there[ended[lost]])
            self._finals.append((there[ended], last))
            self._form = finals
        return there, batch, chosen, images

    def _shown(self, places: NDArray[np.intp]) -> Any:
        rows = self._first.env_index
        return self._wrapper.last_shown(places if rows is None else rows[places])

    def _all_finals(self) -> tuple[Any, Any]:
        if not self._finals:
            return np.zeros(0, np.intp), self._wrapper.last_shown(np.zeros(0, np.intp))
        places = np.concatenate([places for places, _ in self._finals])
        images = np.concatenate([images for _, images in self._finals])
        order = np.argsort(places)
        return places[order], images[order]

    def _assembled(self, parts: list[Part]) -> tuple[Any, Any, Any, dict[str, Any]]:
        size = len(self._ends)
        images = np.empty((size, *parts[0][3].shape[1:]), parts[0][3].dtype)
        kinds, flags = np.empty(size, np.uint8), np.zeros((2, size), np.bool_)
        by_row = []
        for there, batch, chosen, part in parts:
            images[there], kinds[there] = part, batch.kinds[chosen]
            flags[0, there], flags[1, there] = batch.terminations[chosen], batch.truncations[chosen]
            infos = {key: value for key, value in batch.infos.items() if key != "env_index"}
            by_row.append((there, take_infos(infos, chosen, self._wrapper.metrics)))
        infos = merged_infos(size, by_row)
        if self._first.env_index is not None:
            infos["env_index"] = self._first.env_index
        return images, kinds, (flags[0], flags[1]), infos


def _rows(array: Any, places: NDArray[np.intp]) -> Any:
    return array if len(places) == len(array) else array[places]


class AtariPreprocessing(VectorWrapper):
    """Repeats actions, and shows the maximum of the last two frames, gray, smaller and stacked.

    A step repeats the action of each row ``frame_skip`` times, or until the episode of the row
    ends. Its reward is their sum, and everything else is that of the last frame. Its observation is
    an image of the maximum of the last two frames of the step; where the step had one frame only,
    as after a reset or with ``frame_skip=1``, an image of this frame. ``final_obs`` has the image
    of the terminal frame. A row that ``NEXT_STEP`` resets takes no further frame in that step.
    Wrappers inside see each frame, and wrappers around it each step.

    Maximum, gray and size are one native call for all rows. Gray is that of
    :class:`~cartwheel.wrappers.GrayscaleObservation`, the size that of
    :class:`~cartwheel.wrappers.ResizeObservation`, the stack is a
    :class:`~cartwheel.wrappers.FrameStack`.

    Unlike Gymnasium's wrapper, which needs ALE, it works with any images, grays after the maximum
    and by the weights of Gymnasium's ``GrayscaleObservation``, shows the frame in which an episode
    ends, and takes ``screen_size`` as height and width. Random no-ops and lives are left to the
    environment.

    Example::

        envs = cartwheel.VectorEnv([lambda: gym.make("ALE/Pong-v5", frameskip=1)] * 8)
        envs = AtariPreprocessing(envs, stack_size=4)  # observations (8, 4, 84, 84)

    Args:
        env: A vector environment whose observations are images ``uint8``, ``[H, W, 3]``; for
            ``grayscale_obs=False`` with any channels. With ``frame_skip`` above 1 its rows must be
            steppable apart, as those of cartwheel's are, and its batches have all rows.
        frame_skip: Frames of a step, at least 1.
        max_pool: Take the maximum of the last two frames, against sprites that are drawn in every
            second one.
        screen_size: Side of the square image, or its height and width.
        grayscale_obs: Make one gray level of three channels.
        grayscale_newaxis: Gray images keep an axis for their one channel.
        scale_obs: Images are ``float32`` from 0 to 1.
        stack_size: The number of images, ``[stack_size, ...]``, oldest first; ``None``: one,
            without that axis.
        channel_first: Channels are the first axis of an image.

    Raises:
        TypeError: The observation space is not a ``Box``; a flag is not a ``bool``; or
            ``frame_skip`` is above 1, and rows cannot be stepped apart.
        ValueError: Observations are not such images, a number is out of range, images have no
            channels to put first; or ``frame_skip`` is above 1, and batches are smaller than
            ``num_envs``.
    """

    _changes_steps = False  # the wrappers inside do

    @checks_keywords
    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        *,
        frame_skip: int = 4,
        max_pool: bool = True,
        screen_size: int | tuple[int, int] = 84,
        grayscale_obs: bool = True,
        grayscale_newaxis: bool = False,
        scale_obs: bool = False,
        stack_size: int | None = None,
        channel_first: bool = False,
    ) -> None:
        frame_skip = as_integer("frame_skip", frame_skip, 1)
        if stack_size is not None:
            stack_size = as_integer("stack_size", stack_size, 1, limit=65536)
        if isinstance(screen_size, tuple | list):
            size = as_size("screen_size", screen_size)
        else:
            side = as_integer("screen_size", screen_size, 1, 65536)
            size = side, side
        max_pool, scale_obs = as_bool("max_pool", max_pool), as_bool("scale_obs", scale_obs)
        grayscale_obs = as_bool("grayscale_obs", grayscale_obs)
        grayscale_newaxis = as_bool("grayscale_newaxis", grayscale_newaxis)
        channel_first = as_bool("channel_first", channel_first)
        bare = VectorWrapper(env)  # refuses environments that no wrapper takes
        check_rewards_are_numbers(env, "AtariPreprocessing")
        images = Images(
            "AtariPreprocessing",
            bare.single_observation_space,
            size=size,
            is_gray=grayscale_obs,
            keep_dim=grayscale_newaxis,
            channel_first=channel_first,
            scale=scale_obs,
        )
        if frame_skip == 1:
            inner: VectorWrapper = _EveryFrame(env, images)
        else:
            inner = SkippedFrames(env, frame_skip, images, max_pool=max_pool)
        super().__init__(inner if stack_size is None else FrameStack(inner, stack_size))
        self.frame_skip, self.screen_size, self.scale_obs = frame_skip, size, scale_obs
        self.grayscale_obs, self.grayscale_newaxis = grayscale_obs, grayscale_newaxis


class _EveryFrame(ObservationWrapper):
    """Shows an image of every frame."""

    def __init__(self, env: VectorEnv[Any, Any, Any], images: Images) -> None:
        super().__init__(env)
        self._observe = images
        self._set_observation_space(images.space)
