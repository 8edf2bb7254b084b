"""Every way to collect keeps its contract in every event and in every autoreset mode."""

import inspect
import warnings
from typing import get_args

import pytest

import cartwheel
from cartwheel._internal.literals import CollectOrder
from tests.contract.collecting import EVENTS, NUM_ENVS, SUBJECTS, CollectorPlay
from tests.contract.play import staggered

#: Arguments that choose no other way to collect.
OTHERS = {"envs", "policy", "seed", "options", "progress"}


def pairs():
    """Subjects and events; one parameter, so that no pair is left out."""
    for subject in SUBJECTS:
        for name in EVENTS:
            yield pytest.param((subject, name), id=f"{subject}, {name}")


@pytest.mark.parametrize("pair", list(pairs()))
def test_every_rollout_is_what_the_plain_model_says(pair):
    subject, name = pair
    happens, modes, keywords = EVENTS[name]
    if keywords.get("staggered"):
        keywords = staggered(NUM_ENVS)
    for mode in subject.modes:
        if mode not in modes:
            continue
        play = CollectorPlay(subject, mode, **keywords)
        try:
            happens(play)
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                play.end()


def test_every_way_to_collect_is_in_the_table():
    given = [subject.keywords for subject in SUBJECTS]
    assert {keywords.get("order", "lockstep") for keywords in given} == set(get_args(CollectOrder))
    names = set(inspect.signature(cartwheel.Collector).parameters) - OTHERS
    assert names == {name for keywords in given for name in keywords}
