"""Wrappers of images, and the native conversion of frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box

from cartwheel._cartwheel import ImagePlan
from cartwheel._internal.arguments import as_bool, as_integer
from cartwheel.wrappers._shared.observation_wrapper import ObservationWrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gymnasium.spaces import Space
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray


class Images:
    """Converts every frame of a batch in one native call.

    Attributes:
        space: The space of an image.
    """

    def __init__(
        self,
        name: str,
        space: Space[Any],
        *,
        size: tuple[int, int] | None = None,
        is_gray: bool = False,
        keep_dim: bool = True,
        channel_first: bool = False,
        scale: bool = False,
    ) -> None:
        """Computes the weights.

        Args:
            name: The wrapper, for errors.
            space: The space of a frame.
            size: Height and width of an image; ``None``: those of a frame.
            is_gray: Make one level of red, green and blue.
            keep_dim: Gray images have an axis for their one channel.
            channel_first: The channels are the first axis of an image, not the last.
            scale: Images are ``float32`` from 0 to 1.

        Raises:
            TypeError: ``space`` is not a ``Box``.
            ValueError: It is not one of images ``uint8`` from 0 to 255, or has another number of
                channels than 3 for gray ones; a size is out of range; or images would have no
                channels to put first.
        """
        shape = _checked_shape(name, space, is_gray=is_gray)
        height, width = shape[:2] if size is None else size
        channels = shape[2] if len(shape) == 3 else None
        has_channels = keep_dim if is_gray else channels is not None
        if channel_first and not has_channels:
            raise ValueError(
                f"{name} got channel_first=True, but its images have no channels: their shape is "
                f"{(height, width)}"
            )
        self._plan = ImagePlan(
            shape[0],
            shape[1],
            channels,
            out_height=height,
            out_width=width,
            gray=is_gray,
            channel_first=channel_first,
        )
        levels = 1 if is_gray else channels
        axes: tuple[Any, ...] = (height, width)
        if has_channels:
            axes = (levels, *axes) if channel_first else (*axes, levels)
        #: Where gray images get an axis for their channel.
        self._axis = (1 if channel_first else -1) if is_gray and keep_dim else None
        self._scale = scale
        high, dtype = (1, np.float32) if scale else (255, np.uint8)
        self.space = Box(0, high, axes, dtype)

    def __call__(
        self, frames: NDArray[np.uint8], second: NDArray[np.uint8] | None = None
    ) -> NDArray[Any]:
        """Returns new images ``[N, ...]`` of frames, or of the maximum of two frames each."""
        images: NDArray[Any] = self._plan.run(frames, second)
        if self._scale:
            images = np.divide(images, np.float32(255), dtype=np.float32)
        return images if self._axis is None else np.expand_dims(images, self._axis)


def _checked_shape(name: str, space: Space[Any], *, is_gray: bool) -> tuple[int, ...]:
    """The shape of a space, which must be one of images."""
    if not isinstance(space, Box):
        raise TypeError(f"{name} needs observations in a Box, got {space}")
    if is_gray and (len(space.shape) != 3 or space.shape[-1] != 3):
        raise ValueError(
            f"{name} needs images with 3 channels, shape (height, width, 3), got {space.shape}"
        )
    if len(space.shape) not in (2, 3):
        raise ValueError(
            f"{name} needs images, shape (height, width) or (height, width, channels), got "
            f"{space.shape}"
        )
    if space.dtype != np.uint8 or np.any(space.low != 0) or np.any(space.high != 255):
        raise ValueError(
            f"{name} needs levels from 0 to 255 of dtype uint8, got {space.dtype} from "
            f"{space.low.min()} to {space.high.max()}"
        )
    return space.shape


def as_size(name: str, size: Any) -> tuple[int, int]:
    """Checks the height and the width of an image.

    Raises:
        TypeError: ``size`` is not a tuple or list of two integers.
        ValueError: It has another length, or a side is below 1.
    """
    if not isinstance(size, tuple | list):
        raise TypeError(f"`{name}` must be a tuple (height, width), got {size!r}")
    if len(size) != 2:
        raise ValueError(f"`{name}` must be a tuple (height, width), got {size!r}")
    height, width = (as_integer(f"{name}[{i}]", side, 1, 65536) for i, side in enumerate(size))
    return height, width


class ResizeObservation(ObservationWrapper):
    """Gives images another size: each pixel is the exact mean of the area that it covers.

    Where both sides shrink, or both grow, the levels are those of Gymnasium's wrapper, which calls
    OpenCV, up to 1. OpenCV is not needed. All rows of a batch are one native call, on several
    threads if there is enough to do.

    Example::

        envs = cartwheel.make_vec("CarRacing-v3", 8)
        envs = ResizeObservation(envs, (48, 48), channel_first=True)  # (8, 3, 48, 48)

    Args:
        env: A vector environment whose observations are images ``uint8``, ``[H, W, C]`` or
            ``[H, W]``.
        shape: The new height and width.
        channel_first: Channels are the first axis of an image, ``[C, H, W]``.
        keys: The parts of nested observations that are changed, such as ``["camera"]`` or
            ``["state.joints"]``; the others pass unchanged. By default the whole observation.

    Raises:
        TypeError: The observation space is not a ``Box``, ``shape`` is not a tuple, or
            ``channel_first`` is not a ``bool``.
        ValueError: ``keys`` do not fit the space. They are not such images, ``shape`` is not two
            sides of at least 1, or ``channel_first`` for images without channels.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        shape: tuple[int, int],
        channel_first: bool = False,  # noqa: FBT001 - after Gymnasium's arguments
        *,
        keys: Sequence[str] | None = None,
    ) -> None:
        super().__init__(env)
        size = self.shape = as_size("shape", shape)
        channel_first = as_bool("channel_first", channel_first)

        def convert(space: Space[Any]) -> tuple[Space[Any], Callable[[Any], Any]]:
            images = Images("ResizeObservation", space, size=size, channel_first=channel_first)
            return images.space, images

        self._convert_parts(keys, convert)


class GrayscaleObservation(ObservationWrapper):
    """Makes one gray level of red, green and blue, bit for bit as Gymnasium does.

    The level is ``0.2125 r + 0.7154 g + 0.0721 b``, rounded down. All rows of a batch are one
    native call, on several threads if there is enough to do.

    Example::

        envs = cartwheel.make_vec("CarRacing-v3", 8)
        envs = GrayscaleObservation(envs)  # observations (8, 96, 96)

    Args:
        env: A vector environment whose observations are images ``[H, W, 3]`` ``uint8``.
        keep_dim: Images keep an axis for their one channel, ``[H, W, 1]``.
        channel_first: This axis is the first one, ``[1, H, W]``; needs ``keep_dim``.
        keys: The parts of nested observations that are changed, such as ``["camera"]`` or
            ``["state.joints"]``; the others pass unchanged. By default the whole observation.

    Raises:
        TypeError: The observation space is not a ``Box``, or a flag is not a ``bool``.
        ValueError: ``keys`` do not fit the space. They are not such images, or ``channel_first``
            without ``keep_dim``.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        keep_dim: bool = False,  # noqa: FBT001 - Gymnasium's argument
        channel_first: bool = False,  # noqa: FBT001 - as `keep_dim`
        *,
        keys: Sequence[str] | None = None,
    ) -> None:
        super().__init__(env)
        keep_dim = self.keep_dim = as_bool("keep_dim", keep_dim)
        channel_first = as_bool("channel_first", channel_first)

        def convert(space: Space[Any]) -> tuple[Space[Any], Callable[[Any], Any]]:
            images = Images(
                "GrayscaleObservation",
                space,
                is_gray=True,
                keep_dim=keep_dim,
                channel_first=channel_first,
            )
            return images.space, images

        self._convert_parts(keys, convert)
