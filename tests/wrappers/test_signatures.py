"""Wrappers have the parameters and the attributes of Gymnasium's wrappers of the same name."""

import inspect
from functools import partial

import numpy as np
import pytest
from gymnasium import wrappers as single
from gymnasium.spaces import Box, Dict
from gymnasium.vector import (
    SyncVectorEnv,
    VectorActionWrapper,
    VectorObservationWrapper,
    VectorRewardWrapper,
)
from gymnasium.wrappers import vector

from cartwheel import wrappers
from tests.support.environments import SamplingEnv

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


#: The arguments of each wrapper of Gymnasium for vector environments, and the observations.
NUMBERS, IMAGES = Box(-1, 1, (6,), np.float32), Box(0, 255, (8, 6, 3), np.uint8)
ARGUMENTS = {
    "ClipAction": (NUMBERS,),
    "ClipReward": (NUMBERS, 0, 1),
    "DtypeObservation": (NUMBERS, np.float32),
    "FilterObservation": (Dict({"at": NUMBERS, "image": IMAGES}), ["at"]),
    "FlattenObservation": (IMAGES,),
    "GrayscaleObservation": (IMAGES, True),
    "NormalizeObservation": (NUMBERS, 1e-4),
    "NormalizeReward": (NUMBERS, 0.9, 1e-4),
    "RecordEpisodeStatistics": (NUMBERS, 5),
    "RescaleAction": (NUMBERS, 0, 1),
    "RescaleObservation": (NUMBERS, 0, 1),
    "ReshapeObservation": (NUMBERS, (2, 3)),
    "TransformAction": (NUMBERS, np.negative),
    "TransformObservation": (NUMBERS, np.negative),
    "TransformReward": (NUMBERS, np.negative),
}
#: Parts of the ways in which Gymnasium's compute their results.
THEIRS_ALONE = {"normalize", "out", "prev_dones", "same_out", "wrapper"}
BASES = (VectorActionWrapper, VectorObservationWrapper, VectorRewardWrapper)


def test_the_attributes_of_every_wrapper_are_compared():
    both = {*vector.__all__} & {*wrappers.__all__}
    # One needs PyTorch, the other OpenCV, which starts threads.
    assert {*ARGUMENTS} == both - {"NumpyToTorch", "ResizeObservation"}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_wrapper_has_the_attributes_of_gymnasiums(name):
    space, *arguments = ARGUMENTS[name]
    made = partial(SamplingEnv, space, action_space=Box(-1, 1, (2,), np.float32))
    envs = SyncVectorEnv([made] * 2)
    theirs, ours = (getattr(each, name)(envs, *arguments) for each in (vector, wrappers))
    inherited = {name for base in BASES for name in dir(base)}
    public = {each for each in {*dir(theirs)} - inherited if not each.startswith("_")}
    assert {each for each in public - THEIRS_ALONE if not hasattr(ours, each)} == set()
    for each in public - THEIRS_ALONE:  # the arguments; the others are not of this type
        if isinstance(getattr(theirs, each), bool | int | float | str | tuple):
            assert getattr(ours, each) == getattr(theirs, each), each
    envs.close()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("AtariPreprocessing", {"screen_size": 4, "grayscale_newaxis": True, "frame_skip": 1}),
        ("GrayscaleObservation", {"keep_dim": True}),
        ("ResizeObservation", {"shape": (4, 3)}),
        ("FrameStack", {"stack_size": 3, "padding_type": "zero"}),
    ],
)
def test_arguments_that_gymnasiums_wrappers_of_one_environment_show_are_shown(name, arguments):
    envs = SyncVectorEnv([partial(SamplingEnv, IMAGES)])
    wrapped = getattr(wrappers, name)(envs, **arguments)
    shown = {each: getattr(wrapped, each) for each in arguments}
    assert shown == {**arguments, **({"screen_size": (4, 4)} if "screen_size" in shown else {})}
    envs.close()
