"""Records episodes and videos of vector environments, and reads the recordings."""

from typing import TYPE_CHECKING

# Packages before files of them: threads that import both at once would wait for each other.
if not TYPE_CHECKING:  # type checkers would see a circle
    import cartwheel.multiagent
    import cartwheel.wrappers  # noqa: F401 - for the order

from cartwheel.recorder.agents import RecordParallelEpisode
from cartwheel.recorder.dataset import TrajectoryDataset
from cartwheel.recorder.record_episode import RecordEpisode
from cartwheel.recorder.replay import replay

__all__ = ["RecordEpisode", "RecordParallelEpisode", "TrajectoryDataset", "replay"]
