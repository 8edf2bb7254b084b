"""Records episodes and videos of vector environments, and reads the recordings."""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:  # before files of them: a package is loaded whole
    import cartwheel.multiagent
    import cartwheel.wrappers  # noqa: F401

from cartwheel.recorder.agents import RecordParallelEpisode
from cartwheel.recorder.dataset import TrajectoryDataset
from cartwheel.recorder.record_episode import RecordEpisode
from cartwheel.recorder.replay import replay

__all__ = ["RecordEpisode", "RecordParallelEpisode", "TrajectoryDataset", "replay"]
