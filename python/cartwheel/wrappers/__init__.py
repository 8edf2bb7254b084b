"""Wrappers for every vector environment: cartwheel's and Gymnasium's, in every autoreset mode."""

from cartwheel.recorder import RecordEpisode, TrajectoryDataset

__all__ = [
    "RecordEpisode",
    "TrajectoryDataset",
]
