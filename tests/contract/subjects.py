"""The wrappers and adapters of which the contract is tested: one line for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

from cartwheel import wrappers
from cartwheel.wrappers import numpy_to_torch
from cartwheel.wrappers.base import VectorWrapper
from tests.contract import expected
from tests.contract.model import MODES, NEXT, OFF, SAME

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Subject:
    """A wrapper, and what it must show.

    Attributes:
        name: Of the test.
        wrap: Wraps a vector environment. It may take ``mode`` and ``folder``.
        plain: What the wrapper shows of what the rows do, a class of ``expected``.
        form: The observations of the environments, one of ``model.FORMS``.
        moves: Their actions, one of ``model.MOVES``.
        modes: The modes that the wrapper can have.
        inside: The mode of the environments, if it is another one.
        sends: Whether rows can be sent and received.
        has_one_start: Whether each reset leads to the same place, where all rows are at first.
        objectives: Whether rewards of the environments are arrays.
        needs_torch: Whether PyTorch must be installed.
        is_cut_by_states: Whether a state ends the episodes for it.
        is_like_another: Whether it is one above it with another function of single values.
    """

    name: str
    wrap: Callable[..., Any]
    plain: Any = expected.Plain
    form: str = "vector"
    moves: str = "box"
    modes: tuple[Any, ...] = MODES
    inside: Any = None
    sends: bool = True
    has_one_start: bool = False
    objectives: bool = False
    needs_torch: bool = False
    is_cut_by_states: bool = False
    is_like_another: bool = False

    def __str__(self):
        return self.name


def _on_a_device(envs):
    """Sends batches to a fake of a device."""
    from tests.support.fake_device import ImmediateDevice

    with mock.patch.object(numpy_to_torch, "Cuda", return_value=ImmediateDevice()):
        return wrappers.NumpyToTorch(envs, "cuda")


E, W = expected, wrappers
SUBJECTS = [
    Subject("bare", lambda envs: envs),
    Subject("VectorWrapper", VectorWrapper),
    Subject("two objectives", lambda envs: envs, E.Objectives, objectives=True),
    # Observations
    Subject(
        "TransformObservation",
        lambda envs: W.TransformObservation(envs, lambda found: found * 2),
        E.mapped(lambda found: found * 2),
    ),
    Subject(
        "DtypeObservation",
        lambda envs: W.DtypeObservation(envs, np.int16),
        E.mapped(lambda found: found.astype(np.int16)),
        is_like_another=True,
    ),
    Subject(
        "ReshapeObservation",
        lambda envs: W.ReshapeObservation(envs, (3, 1)),
        E.mapped(lambda found: found[:, None]),
        is_like_another=True,
    ),
    Subject(
        "RescaleObservation",
        lambda envs: W.RescaleObservation(envs, 0, 1),
        E.mapped(lambda found: found / np.float32(128)),
        is_like_another=True,
    ),
    Subject(
        "FilterObservation",
        lambda envs: W.FilterObservation(envs, ["at"]),
        E.mapped(lambda found: {"at": found["at"]}),
        form="nested",
        is_like_another=True,
    ),
    Subject(
        "FlattenObservation",
        W.FlattenObservation,
        E.mapped(E.flattened),
        form="nested",
        is_like_another=True,
    ),
    Subject(
        "GrayscaleObservation",
        W.GrayscaleObservation,
        E.mapped(E.gray),
        form="image",
        is_like_another=True,
    ),
    Subject(
        "ResizeObservation",
        lambda envs: W.ResizeObservation(envs, (2, 3)),
        E.mapped(lambda image: image[:2, :3]),
        form="image",
        is_like_another=True,
    ),
    Subject(
        "AtariPreprocessing",
        lambda envs: W.AtariPreprocessing(envs, frame_skip=1, screen_size=(2, 3)),
        E.mapped(lambda image: E.gray(image)[:2, :3]),
        form="image",
    ),
    Subject("NormalizeObservation", W.NormalizeObservation, E.NormalObservations),
    Subject("FrameStack", lambda envs: W.FrameStack(envs, 3), E.stacked(3)),
    Subject("NumpyToTorch", W.NumpyToTorch, needs_torch=True),
    Subject("NumpyToTorch on a device", _on_a_device, needs_torch=True),
    # Rewards
    Subject(
        "TransformReward",
        lambda envs: W.TransformReward(envs, lambda rewards: rewards - 3),
        E.rewarded(lambda reward: reward - 3),
    ),
    Subject(
        "TransformReward of two objectives",
        lambda envs: W.TransformReward(envs, lambda rewards: rewards @ [1, 1]),
        E.rewarded(lambda reward: -reward),
        objectives=True,
    ),
    Subject(
        "ClipReward",
        lambda envs: W.ClipReward(envs, 1, 3),
        E.rewarded(lambda reward: np.clip(reward, 1, 3)),
        is_like_another=True,
    ),
    Subject("NormalizeReward", W.NormalizeReward, E.NormalRewards),
    # Actions
    Subject(
        "TransformAction",
        lambda envs: W.TransformAction(envs, lambda actions: actions / 2),
        E.acting(lambda move: 2 * move),
    ),
    Subject(
        "ClipAction",
        W.ClipAction,
        E.acting(lambda move: 2 * move, lambda move: float(np.clip(2 * move, -2, 2))),
        is_like_another=True,
    ),
    Subject(
        "RescaleAction",
        lambda envs: W.RescaleAction(envs, -1, 1),
        E.acting(lambda move: move / 2),
        is_like_another=True,
    ),
    Subject("FlattenAction", W.FlattenAction, E.FlatActions, moves="nested", is_like_another=True),
    Subject("SmoothAction", lambda envs: W.SmoothAction(envs, 0.5), E.SmoothMoves),
    Subject("DelayAction", lambda envs: W.DelayAction(envs, 2, [1]), E.delayed(2, 1)),
    Subject(
        "StickyAction", lambda envs: W.StickyAction(envs, E.STICKY, E.STICKY_SEED), E.StickyMoves
    ),
    Subject(
        "delayed, smooth actions in an adapter",
        lambda envs, mode: W.DelayAction(W.AutoresetAdapter(W.SmoothAction(envs, 0.5), mode), 1),
        type(
            "SmoothDelay",
            (E.SmoothMoves, E.delayed(1, 0)),
            {
                "move_after": lambda self, now, move: E.SmoothMoves.move_after(
                    self, now, E.delayed(1, 0).move_after(self, now, move)
                )
            },
        ),
        modes=(NEXT, SAME),
        inside=OFF,
        sends=False,
    ),
    # Episodes
    Subject("RecordEpisodeStatistics", W.RecordEpisodeStatistics, E.Statistics),
    Subject(
        "RecordEpisodeStatistics of two objectives",
        W.RecordEpisodeStatistics,
        E.StatisticsOfObjectives,
        objectives=True,
    ),
    Subject("RecordMetrics", W.RecordMetrics, E.Metrics),
    Subject(
        "RecordEpisode",
        lambda envs, folder: W.RecordEpisode(envs, folder, save_video=False),
        E.Recorded,
        is_cut_by_states=True,
    ),
    # Resets
    Subject("CachedReset", lambda envs: W.CachedReset(envs, 1, seed=5), has_one_start=True),
    Subject(
        "AutoresetAdapter",
        lambda envs, mode: W.AutoresetAdapter(envs, mode),
        modes=(NEXT, SAME),
        inside=OFF,
        sends=False,
    ),
    # Several
    Subject(
        "statistics of stacks in an adapter",
        lambda envs, mode: W.RecordEpisodeStatistics(
            W.AutoresetAdapter(W.FrameStack(envs, 3), mode)
        ),
        type("StackStatistics", (E.stacked(3, sees_resets=True), E.Statistics), {}),
        modes=(NEXT, SAME),
        inside=OFF,
        sends=False,
    ),
    Subject(
        "four wrappers in one pass",
        lambda envs: W.RecordEpisodeStatistics(
            W.FrameStack(W.ClipReward(W.TransformReward(envs, lambda found: found * 1), -99, 99), 3)
        ),
        type("StackedStatistics", (E.stacked(3), E.Statistics), {}),
    ),
    Subject(
        "metrics around clipped, normal observations",
        lambda envs: W.RecordMetrics(W.ClipAction(W.NormalizeObservation(envs))),
        E.NormalObservations,
    ),
]
