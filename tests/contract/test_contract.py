"""Every wrapper keeps its contract in every event and in every autoreset mode."""

import inspect
import warnings
from pathlib import Path

import pytest

import cartwheel
from cartwheel import wrappers
from cartwheel.wrappers.base import VectorWrapper
from tests.contract.events import EVENTS
from tests.contract.play import NUM_ENVS, Play, staggered
from tests.contract.subjects import SUBJECTS
from tests.contract.trainers import TRAINERS
from tests.support.repetitions import in_turn


def cases():
    """Subjects, events and modes; one parameter, so that no pair of the first two is left out."""
    for row, subject in enumerate(SUBJECTS):
        torch = (pytest.mark.torch,) if subject.needs_torch else ()
        for column, name in enumerate(EVENTS):
            for mode, marks in in_turn(subject.modes, row + column):
                named = f"{subject}, {name}, {mode.name}"
                yield pytest.param((subject, name, mode), id=named, marks=(*marks, *torch))


@pytest.mark.parametrize("case", list(cases()))
def test_every_batch_is_what_the_plain_model_says(case, tmp_path):
    subject, name, mode = case
    happens, keywords = EVENTS[name]
    if keywords.get("staggered"):
        keywords = staggered(NUM_ENVS)
    play = Play(subject, mode, tmp_path / mode.name, **keywords)
    try:
        happens(play)
        play.close()
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            play.end()


def test_every_public_wrapper_is_in_the_table():
    public = {
        name
        for name in wrappers.__all__
        if inspect.isclass(getattr(wrappers, name))
        and issubclass(getattr(wrappers, name), VectorWrapper)
    }
    assert public <= {subject.name for subject in SUBJECTS}


def test_every_adapter_of_a_trainer_is_in_the_table():
    """They are the modules of the package that load another one; ``ale`` has environments."""
    folder = Path(cartwheel.__file__).parent
    loading = {path.stem for path in folder.glob("[a-z]*.py") if "\nload(" in path.read_text()}
    assert loading - {"ale"} == {name.split()[0] for name in TRAINERS}
