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


def pairs():
    """Subjects and events; one parameter, so that no pair is left out."""
    for subject in SUBJECTS:
        marks = pytest.mark.torch if subject.needs_torch else ()
        for name in EVENTS:
            yield pytest.param((subject, name), id=f"{subject}, {name}", marks=marks)


@pytest.mark.parametrize("pair", list(pairs()))
def test_every_batch_is_what_the_plain_model_says(pair, tmp_path):
    subject, name = pair
    happens, keywords = EVENTS[name]
    if keywords.get("staggered"):
        keywords = staggered(NUM_ENVS)
    for mode in subject.modes:
        folder = tmp_path / mode.name
        play = Play(subject, mode, folder, **keywords)
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
