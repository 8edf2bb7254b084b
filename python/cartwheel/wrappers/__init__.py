"""Wrappers for every vector environment: cartwheel's and Gymnasium's, in every autoreset mode."""

import importlib
from typing import TYPE_CHECKING

from cartwheel._internal.suggestions import missing_name
from cartwheel.wrappers.actions import ClipAction, FlattenAction, RescaleAction, TransformAction
from cartwheel.wrappers.atari import AtariPreprocessing
from cartwheel.wrappers.autoreset_adapter import AutoresetAdapter
from cartwheel.wrappers.base import VectorWrapper
from cartwheel.wrappers.cached_reset import CachedReset
from cartwheel.wrappers.frame_stack import FrameStack
from cartwheel.wrappers.images import GrayscaleObservation, ResizeObservation
from cartwheel.wrappers.normalize import NormalizeObservation, NormalizeReward
from cartwheel.wrappers.numpy_to_torch import NumpyToTorch
from cartwheel.wrappers.observations import (
    DtypeObservation,
    FilterObservation,
    FlattenObservation,
    RescaleObservation,
    ReshapeObservation,
    TransformObservation,
)
from cartwheel.wrappers.rewards import ClipReward, TransformReward
from cartwheel.wrappers.sent_actions import DelayAction, SmoothAction, StickyAction
from cartwheel.wrappers.statistics import RecordEpisodeStatistics, RecordMetrics

if TYPE_CHECKING:
    from cartwheel.recorder import RecordEpisode, TrajectoryDataset

__all__ = [
    "AtariPreprocessing",
    "AutoresetAdapter",
    "CachedReset",
    "ClipAction",
    "ClipReward",
    "DelayAction",
    "DtypeObservation",
    "FilterObservation",
    "FlattenAction",
    "FlattenObservation",
    "FrameStack",
    "GrayscaleObservation",
    "NormalizeObservation",
    "NormalizeReward",
    "NumpyToTorch",
    "RecordEpisode",
    "RecordEpisodeStatistics",
    "RecordMetrics",
    "RescaleAction",
    "RescaleObservation",
    "ReshapeObservation",
    "ResizeObservation",
    "SmoothAction",
    "StickyAction",
    "TrajectoryDataset",
    "TransformAction",
    "TransformObservation",
    "TransformReward",
    "VectorWrapper",
]

#: Names of a package that itself is made of wrappers; they are loaded when they are first used.
_LAZY = {"RecordEpisode", "TrajectoryDataset"}

#: What to use instead of names of ``gymnasium.wrappers``.
_INSTEAD = {
    "FrameStackObservation": "it is `cartwheel.wrappers.FrameStack`",
    "RecordVideo": "`cartwheel.RecordEpisode` records episodes and videos",
    "TimeLimit": "vector environments have the keyword `max_episode_steps`",
}

if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> object:
        """Loads a name of the recorder when it is first used."""
        if name not in _LAZY:
            raise missing_name(__name__, name, _INSTEAD.get(name))
        value = getattr(importlib.import_module("cartwheel.recorder"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """All names, with those that are not loaded yet."""
    return sorted({*globals(), *_LAZY})
