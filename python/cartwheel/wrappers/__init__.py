"""Wrappers for every vector environment: cartwheel's and Gymnasium's, in every autoreset mode."""

from cartwheel.wrappers.frame_stack import FrameStack
from cartwheel.wrappers.normalize_observation import NormalizeObservation
from cartwheel.wrappers.normalize_reward import NormalizeReward
from cartwheel.wrappers.numpy_to_torch import NumpyToTorch
from cartwheel.wrappers.record_episode_statistics import RecordEpisodeStatistics
from cartwheel.wrappers.record_metrics import RecordMetrics

__all__ = [
    "FrameStack",
    "NormalizeObservation",
    "NormalizeReward",
    "NumpyToTorch",
    "RecordEpisodeStatistics",
    "RecordMetrics",
]
