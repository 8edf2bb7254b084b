"""Evaluation by a quota of episodes: ``CheckedPolicy → Stepping → EpisodeCounter → Evaluation``.

Averaging the episodes that happen to end within a number of steps favors short ones. Here every
environment plays the same number of complete episodes, and a row that has played them rests.
"""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:  # before files of them: a package is loaded whole
    import cartwheel.multiagent
    import cartwheel.wrappers  # noqa: F401

from cartwheel.evaluation.agents import AgentsEvaluation
from cartwheel.evaluation.evaluate import evaluate
from cartwheel.evaluation.result import Evaluation

__all__ = ["AgentsEvaluation", "Evaluation", "evaluate"]
