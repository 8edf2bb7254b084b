"""The example learns, with native environments and with environments in worker processes."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.ray, pytest.mark.timeout(600)]
EXAMPLE = Path(__file__).parents[2] / "examples/trainers/rllib_ppo.py"


def printed(*arguments):
    return subprocess.run(
        [sys.executable, EXAMPLE, *arguments], check=True, capture_output=True, text=True
    ).stdout.splitlines()


def test_ppo_learns_to_balance_the_pole():
    assert "mean return 195 reached" in printed()[-1]


def test_environments_in_python_run_in_worker_processes():
    lines = printed("--env", "CartPole-v1", "--executor", "process", "--max-updates", "1")
    assert "mean return 195 not reached" in lines[-1]
