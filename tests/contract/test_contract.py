"""Every wrapper keeps its contract in every event and in every autoreset mode."""

import functools
import gc
import inspect
import warnings

import numpy as np
import pytest

import cartwheel
from cartwheel import wrappers
from cartwheel.wrappers.base import VectorWrapper
from tests.contract.events import EVENTS
from tests.contract.model import PlainEnv
from tests.contract.play import NUM_ENVS, SEED, Play
from tests.contract.subjects import SUBJECTS


def pairs():
    """Subjects and events; one parameter, so that no pair is left out."""
    for subject in SUBJECTS:
        for name in EVENTS if subject.is_there else ():
            yield pytest.param((subject, name), id=f"{subject}, {name}")


@pytest.fixture
def _no_collections():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collections")
@pytest.mark.parametrize("pair", list(pairs()))
def test_every_batch_is_what_the_plain_model_says(pair, tmp_path):
    subject, name = pair
    happens, keywords = EVENTS[name]
    for mode in subject.modes:
        folder = tmp_path / mode.name
        play = Play(subject, mode, folder, **given(**keywords))
        try:
            happens(play)
            play.close()
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                play.end()


def given(*, staggered=False, **keywords):
    if not staggered:
        return keywords
    rules = {"staggered_reset": True, "max_episode_steps": 5}
    return {**keywords, **rules, "limits": [(first, 5) for first in first_limits()]}


@functools.cache
def first_limits():
    """The steps of the first episodes of rows that begin at different elapsed steps."""
    make = functools.partial(PlainEnv, endless=True)
    envs = cartwheel.VectorEnv(
        [make] * NUM_ENVS, executor="inline", staggered_reset=True, max_episode_steps=5
    )
    envs.reset(seed=SEED)
    truncations = np.array([envs.step(np.zeros((NUM_ENVS, 1)))[3] for _ in range(5)])
    envs.close()
    return (truncations.argmax(axis=0) + 1).tolist()


def test_every_public_wrapper_is_in_the_table():
    public = {
        name
        for name in wrappers.__all__
        if inspect.isclass(getattr(wrappers, name))
        and issubclass(getattr(wrappers, name), VectorWrapper)
    }
    assert public <= {subject.name for subject in SUBJECTS}
