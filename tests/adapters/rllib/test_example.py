"""The example learns, with native environments and with environments in worker processes."""

import pytest

from tests.support.processes import run_script

pytestmark = pytest.mark.ray
EXAMPLE = "examples/trainers/rllib_ppo.py"


def test_ppo_learns_to_balance_the_pole(tmp_path):
    assert "mean return 195 reached" in run_script(EXAMPLE, folder=tmp_path)


def test_environments_in_python_run_in_worker_processes(tmp_path):
    arguments = ["--env", "CartPole-v1", "--executor", "process", "--max-updates", "1"]
    assert "mean return 195 not reached" in run_script(EXAMPLE, *arguments, folder=tmp_path)
