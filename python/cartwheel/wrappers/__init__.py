"""Wrappers for every vector environment: cartwheel's and Gymnasium's, in every autoreset mode."""

from cartwheel.recorder import RecordEpisode, TrajectoryDataset
from cartwheel.wrappers.atari_preprocessing import AtariPreprocessing
from cartwheel.wrappers.autoreset_adapter import AutoresetAdapter
from cartwheel.wrappers.cached_reset import CachedReset
from cartwheel.wrappers.clip_action import ClipAction
from cartwheel.wrappers.clip_reward import ClipReward
from cartwheel.wrappers.dtype_observation import DtypeObservation
from cartwheel.wrappers.filter_observation import FilterObservation
from cartwheel.wrappers.flatten_action import FlattenAction
from cartwheel.wrappers.flatten_observation import FlattenObservation
from cartwheel.wrappers.frame_stack import FrameStack
from cartwheel.wrappers.grayscale_observation import GrayscaleObservation
from cartwheel.wrappers.normalize_observation import NormalizeObservation
from cartwheel.wrappers.normalize_reward import NormalizeReward
from cartwheel.wrappers.numpy_to_torch import NumpyToTorch
from cartwheel.wrappers.record_episode_statistics import RecordEpisodeStatistics
from cartwheel.wrappers.record_metrics import RecordMetrics
from cartwheel.wrappers.rescale_action import RescaleAction
from cartwheel.wrappers.rescale_observation import RescaleObservation
from cartwheel.wrappers.reshape_observation import ReshapeObservation
from cartwheel.wrappers.resize_observation import ResizeObservation
from cartwheel.wrappers.transform_action import TransformAction
from cartwheel.wrappers.transform_observation import TransformObservation
from cartwheel.wrappers.transform_reward import TransformReward

__all__ = [
    "AtariPreprocessing",
    "AutoresetAdapter",
    "CachedReset",
    "ClipAction",
    "ClipReward",
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
    "TrajectoryDataset",
    "TransformAction",
    "TransformObservation",
    "TransformReward",
]
