"""Evaluation by a quota of episodes: ``CheckedPolicy → Stepping → EpisodeCounter → Evaluation``.

Averaging the episodes that happen to end within a number of steps favors short ones. Here every
environment plays the same number of complete episodes, and a row that has played them rests.
"""

from typing import TYPE_CHECKING

# Packages before files of them: threads that import both at once would wait for each other.
if not TYPE_CHECKING:  # type checkers would see a circle
    import cartwheel.multiagent
    import cartwheel.wrappers  # noqa: F401 - for the order

from cartwheel.evaluation.agents import AgentsEvaluation
from cartwheel.evaluation.evaluate import evaluate
from cartwheel.evaluation.result import Evaluation

__all__ = ["AgentsEvaluation", "Evaluation", "evaluate"]
