"""Images without colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.wrappers.images import Images
from cartwheel.wrappers.observation_wrapper import ObservationWrapper

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


class GrayscaleObservation(ObservationWrapper):
    """Makes one grey level of red, green and blue, bit for bit as Gymnasium does.

    The level is ``0.2125 r + 0.7154 g + 0.0721 b``, rounded down. All rows of a batch are one
    native call, on several threads if there is enough to do.

    Example::

        envs = cartwheel.make_vec("CarRacing-v3", 8)
        envs = GrayscaleObservation(envs)  # observations (8, 96, 96)

    Args:
        envs: A vector environment whose observations are images ``[H, W, 3]`` ``uint8``.
        keep_dim: Images keep an axis for their one channel, ``[H, W, 1]``.
        channel_first: This axis is the first one, ``[1, H, W]``; needs ``keep_dim``.

    Raises:
        TypeError: Observations are in no ``Box``.
        ValueError: They are no such images, or ``channel_first`` without ``keep_dim``.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        keep_dim: bool = False,  # noqa: FBT001 - Gymnasium's argument
        channel_first: bool = False,  # noqa: FBT001 - beside it
    ) -> None:
        """Checks the arguments; steps nothing."""
        super().__init__(envs)
        self._images = Images(
            "GrayscaleObservation",
            self._space_before,
            is_grey=True,
            keep_dim=keep_dim,
            channel_first=channel_first,
        )
        self._set_observation_space(self._images.space)

    def _observe(self, observations: Any) -> Any:
        return self._images(observations)
