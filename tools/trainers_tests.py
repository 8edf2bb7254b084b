"""Runs the tests of trainers for their own vector environments, with cartwheel's in their place.

``python -m tools.trainers_tests agilerl CHECKOUT`` needs AgileRL, which ``make test-trainers``
installs in ``.venv-agilerl``, and a clone of https://github.com/AgileRL/AgileRL, which is not
changed. Options of pytest may follow. Tests that cannot run are skipped, each with its reason.
"""

import importlib
import os
import sys
from pathlib import Path

import pytest

_PARTS = "of the pipes, states and shared arrays that AgileRL's class is made of"
#: Tests of AgileRL, by their class or name, that ask for something else than an interface.
AGILERL = {
    "test_create_async_pz_vector_env": _PARTS,
    "test_get_observations_no_copy": "of `copy=False`: arrays are never overwritten",
    "test_env_order_preserved": _PARTS,
    "test_async_vector_subenv_init_error": "an environment that cannot be made is an error at once",
    "test_reset_async_exception": _PARTS,
    "test_reset_wait_exception": _PARTS,
    "test_step_async_exception": _PARTS,
    "test_call_async_exception": _PARTS,
    "test_set_attr_exception": _PARTS,
    "TestAsyncPettingZooVecEnvCloseExtras": _PARTS,
    "TestAsyncPettingZooVecEnvPollPipeEnvs": _PARTS,
    "TestAsyncPettingZooVecEnvAssertIsRunning": _PARTS,
    "test_step_wait_timeout_async_pz_vector_env": _PARTS,
    "TestAsyncPettingZooVecEnvCallWait": _PARTS,
    "TestAsyncPettingZooVecEnvAddInfo": "of a method that merges infos",
    "TestAsyncWorker": "of AgileRL's function of worker processes",
    "TestObservations": _PARTS,
    "test_delete_async_pz_vec_env": "the processes of an environment that is closed are closed",
}


class Replaced:
    """A plugin of pytest that skips tests."""

    def __init__(self, skipped):
        self.skipped = skipped

    def pytest_collection_modifyitems(self, items):
        unknown = set(self.skipped)
        for item in items:
            names = {item.originalname, item.cls.__name__ if item.cls else ""}
            unknown -= names
            for name in names & self.skipped.keys():
                item.add_marker(pytest.mark.skip(reason=self.skipped[name]))
        if unknown:
            raise pytest.UsageError(f"the trainer has no tests {sorted(unknown)} any more")


def agilerl():
    """Puts our class into AgileRL's modules; returns the file of tests and those to skip."""
    ours = importlib.import_module("cartwheel.agilerl").CartwheelPettingZooVecEnv
    for name in ("agilerl.vector", "agilerl.vector.pz_async_vec_env"):
        importlib.import_module(name).AsyncPettingZooVecEnv = ours
    return "tests/test_vector/test_vector.py", AGILERL


TRAINERS = {"agilerl": agilerl}


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in TRAINERS:
        sys.exit(
            f"usage: python -m tools.trainers_tests {{{','.join(TRAINERS)}}} CHECKOUT [options]"
        )
    trainer, checkout, *options = sys.argv[1:]
    top = Path(checkout).resolve()
    file, skipped = TRAINERS[trainer]()
    if not (top / file).is_file():
        sys.exit(f"{checkout} has no {file}: it must be a clone of the repository of {trainer}")
    os.chdir(top)
    sys.path = [
        str(top),
        *(path for path in sys.path if Path(path).resolve() != Path(__file__).parents[1]),
    ]
    plain = ["--noconftest", "-c", os.devnull, f"--rootdir={top}", "-p", "no:cacheprovider"]
    sys.exit(pytest.main([*plain, "-rs", file, *options], plugins=[Replaced(skipped)]))


if __name__ == "__main__":
    main()
