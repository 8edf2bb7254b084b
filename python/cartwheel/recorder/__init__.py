"""Records episodes and videos of vector environments, and reads the recordings."""

from cartwheel.recorder.agents import RecordParallelEpisode
from cartwheel.recorder.dataset import TrajectoryDataset
from cartwheel.recorder.record_episode import RecordEpisode
from cartwheel.recorder.replay import replay

__all__ = ["RecordEpisode", "RecordParallelEpisode", "TrajectoryDataset", "replay"]
