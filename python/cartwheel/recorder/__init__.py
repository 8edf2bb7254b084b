"""Records episodes and videos of vector environments, and reads the records."""

from cartwheel.recorder.record_episode import RecordEpisode
from cartwheel.recorder.trajectories import TrajectoryDataset

__all__ = ["RecordEpisode", "TrajectoryDataset"]
