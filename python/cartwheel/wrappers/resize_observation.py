"""Images of another size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.wrappers.images import Images, as_size
from cartwheel.wrappers.observation_wrapper import ObservationWrapper

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


class ResizeObservation(ObservationWrapper):
    """Gives images another size: each pixel is the exact mean of the area that it covers.

    Where both sides shrink, or both grow, the levels are those of Gymnasium's wrapper, which calls
    OpenCV, up to 1. OpenCV is not needed. All rows of a batch are one native call, on several
    threads if there is enough to do.

    Example::

        envs = cartwheel.make_vec("CarRacing-v3", 8)
        envs = ResizeObservation(envs, (48, 48), channel_first=True)  # (8, 3, 48, 48)

    Args:
        envs: A vector environment whose observations are images ``uint8``, ``[H, W, C]`` or
            ``[H, W]``.
        shape: The new height and width.
        channel_first: Channels are the first axis of an image, ``[C, H, W]``.

    Raises:
        TypeError: Observations are in no ``Box``, or ``shape`` is no tuple.
        ValueError: They are no such images, ``shape`` is not two sides of at least 1, or
            ``channel_first`` for images without channels.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        shape: tuple[int, int],
        channel_first: bool = False,  # noqa: FBT001 - after Gymnasium's arguments
    ) -> None:
        """Checks the arguments; steps nothing."""
        super().__init__(envs)
        self.shape = as_size("shape", shape)
        self._images = Images(
            "ResizeObservation",
            self._space_before,
            size=self.shape,
            channel_first=channel_first,
        )
        self._set_observation_space(self._images.space)

    def _observe(self, observations: Any) -> Any:
        return self._images(observations)
