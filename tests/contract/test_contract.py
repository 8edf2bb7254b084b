"""Every wrapper keeps its contract in every event and in every autoreset mode."""

import inspect
from operator import attrgetter
from pathlib import Path

import pytest

import cartwheel
from cartwheel import wrappers
from cartwheel.wrappers.base import VectorWrapper
from tests.contract.events import EVENTS
from tests.contract.play import Play, cases, run
from tests.contract.subjects import SUBJECTS
from tests.contract.trainers import TRAINERS


def modes_of(subject, _):
    return subject.modes


def marks_of(subject):
    return (pytest.mark.torch,) if subject.needs_torch else ()


CASES = list(cases(SUBJECTS, EVENTS, modes_of, marks_of, attrgetter("is_like_another")))


@pytest.mark.parametrize("case", CASES)
def test_every_batch_is_what_the_plain_model_says(case, tmp_path):
    subject, name, mode = case
    run(EVENTS[name], Play, subject, mode, tmp_path / mode.name, last=Play.close)


def test_every_public_wrapper_is_in_the_table():
    public = {
        name
        for name in wrappers.__all__
        if inspect.isclass(getattr(wrappers, name))
        and issubclass(getattr(wrappers, name), VectorWrapper)
    }
    assert public <= {subject.name for subject in SUBJECTS}


def test_every_adapter_of_a_trainer_is_in_the_table():
    """They are the modules of the package that load another one, and step its environments."""
    folder = Path(cartwheel.__file__).parent
    loading = {
        path.relative_to(folder).parts[0].removesuffix(".py")
        for path in [*folder.glob("[a-z]*.py"), *folder.glob("[a-z]*/__init__.py")]
        if "\nload(" in path.read_text()
    }
    # `ale` has environments, `jax` has functions, and Ray's workers and AgileRL's several agents
    # have tests of their own.
    assert loading - {"agilerl", "ale", "jax", "ray", "rllib"} == {
        name.split()[0] for name in TRAINERS
    }
