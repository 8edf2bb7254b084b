"""Every way to collect keeps its contract in every event and in every autoreset mode."""

import inspect
import warnings
from typing import get_args

import pytest

import cartwheel
from cartwheel._internal.literals import CollectOrder
from tests.contract.collecting import EVENTS, NUM_ENVS, SUBJECTS, CollectorPlay
from tests.contract.play import staggered
from tests.support.repetitions import in_turn

#: Arguments that choose no other way to collect.
OTHERS = {"envs", "policy", "seed", "options", "progress"}


def cases():
    """Subjects, events and modes; one parameter, so that no pair of the first two is left out."""
    for row, subject in enumerate(SUBJECTS):
        for column, (name, (_, modes, _)) in enumerate(EVENTS.items()):
            both = [mode for mode in subject.modes if mode in modes]
            for mode, marks in in_turn(both, row + column):
                named = f"{subject}, {name}, {mode.name}"
                yield pytest.param((subject, name, mode), id=named, marks=marks)


@pytest.mark.parametrize("case", list(cases()))
def test_every_rollout_is_what_the_plain_model_says(case):
    subject, name, mode = case
    happens, _, keywords = EVENTS[name]
    if keywords.get("staggered"):
        keywords = staggered(NUM_ENVS)
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
