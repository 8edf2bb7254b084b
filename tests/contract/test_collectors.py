"""Every way to collect keeps its contract in every event and in every autoreset mode."""

import inspect
from operator import attrgetter
from typing import get_args

import pytest

import cartwheel
from cartwheel._internal.literals import CollectOrder
from tests.contract.collecting import EVENTS, CollectorPlay
from tests.contract.collector_subjects import NUM_ENVS, SUBJECTS
from tests.contract.play import cases, run

#: Arguments that choose no other way to collect; rollouts on a device have tests of their own.
OTHERS = {"envs", "policy", "seed", "options", "progress", "device"}


def modes_of(subject, event):
    _, modes, _ = EVENTS[event]
    return [mode for mode in subject.modes if mode in modes]


CASES = list(cases(SUBJECTS, EVENTS, modes_of, is_like_another=attrgetter("is_like_another")))


@pytest.mark.parametrize("case", CASES)
def test_every_rollout_is_what_the_plain_model_says(case):
    subject, name, mode = case
    run(EVENTS[name], CollectorPlay, subject, mode, num_envs=NUM_ENVS)


def test_every_way_to_collect_is_in_the_table():
    given = [subject.keywords for subject in SUBJECTS]
    assert {keywords.get("order", "lockstep") for keywords in given} == set(get_args(CollectOrder))
    names = set(inspect.signature(cartwheel.Collector).parameters) - OTHERS
    assert names == {name for keywords in given for name in keywords}
