"""Wrappers take the parameters of Gymnasium's wrappers of the same name, in the same order."""

import inspect

import pytest
from gymnasium import wrappers as single
from gymnasium.wrappers import vector

from cartwheel import wrappers

#: Gymnasium's wrapper of each class: the one for vector environments, otherwise the one for one
#: environment.
COUNTERPARTS = {
    name: getattr(vector, name, None) or getattr(single, name)
    for name in wrappers.__all__
    if name != "NumpyToTorch"  # Gymnasium's needs packages that most users lack
    if name != "StickyAction"  # Gymnasium's repeats actions for several steps, at random
    if name in (*vector.__all__, *single.__all__)
}
COUNTERPARTS["FrameStack"] = single.FrameStackObservation
#: Parameters that only one environment can have: an environment of a vector has its own wrapper.
NOT_FOR_VECTORS = {"AtariPreprocessing": {"noop_max", "terminal_on_life_loss"}}
OURS_ALONE = {
    *("AutoresetAdapter", "CachedReset", "FlattenAction", "RecordEpisode", "RecordMetrics"),
    *("DelayAction", "SmoothAction", "StickyAction", "TrajectoryDataset", "VectorWrapper"),
}


def parameters_of(kind):
    """Names, kinds and defaults of the parameters of a constructor."""
    found = list(inspect.signature(kind.__init__).parameters.values())[1:]
    return {each.name: (each.kind, each.default) for each in found}


def test_every_wrapper_is_compared():
    assert set(wrappers.__all__) == {*COUNTERPARTS, *OURS_ALONE, "NumpyToTorch"}


@pytest.mark.parametrize("name", COUNTERPARTS)
def test_a_wrapper_takes_the_parameters_of_gymnasiums(name):
    theirs = parameters_of(COUNTERPARTS[name])
    for left_out in NOT_FOR_VECTORS.get(name, ()):
        del theirs[left_out]
    ours = parameters_of(getattr(wrappers, name))
    if name == "AtariPreprocessing":  # two parameters are missing, so the others have no order
        assert all(kind is inspect.Parameter.KEYWORD_ONLY for kind, _ in list(ours.values())[1:])
        assert {each: ours[each][1] for each in theirs} == {
            each: default for each, (_, default) in theirs.items()
        }
    else:
        assert dict(list(ours.items())[: len(theirs)]) == theirs


@pytest.mark.parametrize("name", sorted({*wrappers.__all__} - {"TrajectoryDataset"}))
def test_the_first_parameter_of_every_wrapper_is_env(name):
    assert next(iter(parameters_of(getattr(wrappers, name)))) == "env"
