"""Environments of other packages give in worker processes what they give in Gymnasium's loop."""

import pytest

from tests.zoo.environments import CASES, PLAYERS, Players
from tests.zoo.table import run

pytestmark = pytest.mark.zoo


@pytest.mark.parametrize("case", [*CASES, *PLAYERS], ids=str)
def test_every_mode_and_every_frame_is_the_same_or_refused(case):
    """The program makes a fifth of the steps of the table in ``docs/environments.md``."""
    for cell, outcome in run(case, 0.2).items():
        assert "error" not in outcome, f"{cell}: {outcome}"
        is_refused = cell == "SameStep" and isinstance(case, Players)
        assert "autoreset_mode" in outcome["refused"] if is_refused else outcome["values"] > 0
