"""Atari frames as trainers want them: fewer, smaller, grey, stacked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.arguments import as_integer
from cartwheel.near_misses import explains_keywords
from cartwheel.wrappers.frame_stack import FrameStack
from cartwheel.wrappers.images import Images, as_size
from cartwheel.wrappers.observation_wrapper import ObservationWrapper
from cartwheel.wrappers.skipped_frames import SkippedFrames
from cartwheel.wrapping.state import KeepsState
from cartwheel.wrapping.wrapper import VectorWrapper

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


class AtariPreprocessing(KeepsState, VectorWrapper):
    """Repeats actions, and shows the maximum of the last two frames, grey, smaller and stacked.

    A step repeats the action of each row ``frame_skip`` times, or until the episode of the row
    ends. Its reward is their sum, and everything else is that of the last frame. Its observation is
    an image of the maximum of the last two frames of the step; where the step had one frame only,
    as after a reset or with ``frame_skip=1``, an image of this frame. ``final_obs`` has the image
    of the terminal frame. A row that ``NEXT_STEP`` resets takes no further frame in that step.

    Maximum, grey and size are one native call for all rows. Grey is that of
    :class:`~cartwheel.wrappers.GrayscaleObservation`, the size that of
    :class:`~cartwheel.wrappers.ResizeObservation`, the stack is a
    :class:`~cartwheel.wrappers.FrameStack`.

    Unlike Gymnasium's wrapper, which needs ALE, it works with any images, greys after the maximum
    and by the weights of Gymnasium's ``GrayscaleObservation``, shows the frame in which an episode
    ends, and takes ``screen_size`` as height and width. Random no-ops and lives are left to the
    environment.

    Example::

        envs = cartwheel.VectorEnv([lambda: gym.make("ALE/Pong-v5", frameskip=1)] * 8)
        envs = AtariPreprocessing(envs, stack=4)  # observations (8, 4, 84, 84)

    Args:
        envs: A vector environment whose observations are images ``uint8``, ``[H, W, 3]``; for
            ``grayscale_obs=False`` with any channels. With ``frame_skip`` above 1 its rows must be
            steppable apart, as those of cartwheel's are, and its batches have all rows.
        frame_skip: Frames of a step, at least 1.
        max_pool: Take the maximum of the last two frames, against sprites that are drawn in every
            second one.
        screen_size: Side of the square image, or its height and width.
        grayscale_obs: Make one grey level of three channels.
        grayscale_newaxis: Grey images keep an axis for their one channel.
        scale_obs: Images are ``float32`` from 0 to 1.
        stack: Show so many images, ``[k, ...]``, oldest first; ``None``: one, without that axis.
        channel_first: Channels are the first axis of an image.

    Raises:
        TypeError: Observations are in no ``Box``; or ``frame_skip`` is above 1, and rows cannot be
            stepped apart.
        ValueError: Observations are no such images, a number is out of range, images have no
            channels to put first; or ``frame_skip`` is above 1, and batches are smaller than
            ``num_envs``.
    """

    _changes_steps = False  # the wrappers inside do

    @explains_keywords
    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        *,
        frame_skip: int = 4,
        max_pool: bool = True,
        screen_size: int | tuple[int, int] = 84,
        grayscale_obs: bool = True,
        grayscale_newaxis: bool = False,
        scale_obs: bool = False,
        stack: int | None = None,
        channel_first: bool = False,
    ) -> None:
        """Checks the arguments; steps nothing."""
        frame_skip = as_integer("frame_skip", frame_skip, 1)
        if stack is not None:
            stack = as_integer("stack", stack, 1, most=65536)
        if isinstance(screen_size, tuple | list):
            size = as_size("screen_size", screen_size)
        else:
            side = as_integer("screen_size", screen_size, 1, 65536)
            size = side, side
        bare = VectorWrapper(envs)  # refuses what no wrapper takes
        images = Images(
            "AtariPreprocessing",
            bare.single_observation_space,
            size=size,
            is_grey=grayscale_obs,
            keep_dim=grayscale_newaxis,
            channel_first=channel_first,
            scale=scale_obs,
        )
        if frame_skip == 1:
            inner: VectorWrapper = _EveryFrame(envs, images)
        else:
            inner = SkippedFrames(envs, frame_skip, images, max_pool=max_pool)
        self._parts: dict[str, Any] = {} if frame_skip == 1 else {"frames": inner}
        if stack is not None:
            self._parts["stack"] = inner = FrameStack(inner, stack)
        super().__init__(inner)

    def get_wrapper_state(self) -> dict[str, Any]:
        """The states of the parts, by name.

        ``"frames"``: what each environment last showed, if ``frame_skip`` is above 1; ``"stack"``:
        that of the :class:`~cartwheel.wrappers.FrameStack`, if there is one.
        """
        return {name: part.get_wrapper_state() for name, part in self._parts.items()}

    def _go_on(self, state: dict[str, Any]) -> None:
        for name, part in self._parts.items():
            part.set_wrapper_state(state[name])


class _EveryFrame(ObservationWrapper):
    """Shows an image of every frame."""

    def __init__(self, envs: VectorEnv[Any, Any, Any], images: Images) -> None:
        super().__init__(envs)
        self._images = images
        self._set_observation_space(images.space)

    def _observe(self, observations: Any) -> Any:
        return self._images(observations)
