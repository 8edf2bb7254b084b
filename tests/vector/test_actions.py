"""Actions are checked before anything is stepped, and each environment gets its own copy."""

import itertools
import re
from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from tests.support.cases import POLE, Case
from tests.support.comparison import assert_identical
from tests.support.environments import RecordingEnv
from tests.support.oracle import with_oracle

BOX = Box(-1, 1, (2,), np.float32)
NESTED = Dict(a=Discrete(3), b=Tuple([BOX, MultiBinary(2)]))


def recorders(action_space, num_envs=3, **keywords):
    return [partial(RecordingEnv, action_space, **keywords)] * num_envs


def received(envs):
    """The last action of each environment."""
    return [actions[-1] for actions in envs.get_attr("actions")]


def stepped(envs):
    return [len(actions) for actions in envs.get_attr("actions")]


INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_discrete_action_is_a_scalar_of_the_batchs_dtype(build, dtype):
    envs = build(recorders(Discrete(10)))
    envs.reset()
    envs.step(np.array([1, 2, 3], dtype))
    assert_identical(received(envs), [dtype(1), dtype(2), dtype(3)])


def test_discrete_actions_keep_value_and_dtype_from_step_to_step(build):
    # Scalars of small integers are made once, for the dtype of the last step.
    envs = build(recorders(Discrete(100, start=-50)))
    envs.reset()
    for dtype in (np.int64, np.int32, np.int64):
        for batch in ([0, 31, 0], [1, 2, 32], [-1, 0, 31]):
            envs.step(np.array(batch, dtype))
            assert_identical(received(envs), [dtype(action) for action in batch])


@pytest.mark.parametrize("batch", [[1, 2, 3], (1, 2, 3)], ids=["list", "tuple"])
def test_python_ints_stay_python_ints(build, batch):
    envs = build(recorders(Discrete(10)))
    envs.reset()
    envs.step(batch)
    assert_identical(received(envs), [1, 2, 3])


@pytest.mark.parametrize(
    "form",
    [
        iter,
        lambda batch: (action for action in batch),
        lambda batch: map(int, batch),
        lambda batch: dict(enumerate(batch)).values(),
    ],
    ids=["iterator", "generator", "map", "values of a dictionary"],
)
def test_actions_may_be_any_iterable_with_an_order_as_in_gymnasium(build_any, form):
    envs, oracle = with_oracle(build_any, POLE, 3)
    assert_identical(envs.step(form([0, 1, 0])), oracle.step(form([0, 1, 0])))
    envs.step_async(form([1, 1, 0]))
    assert_identical(envs.step_wait(), oracle.step(form([1, 1, 0])))
    for wrong, text in [
        ([0, 1], "got 2"),
        ([0] * 4, "got more"),
        (itertools.repeat(0), "got more"),
    ]:
        with pytest.raises(
            ValueError, match=rf"expected 3 actions \(one per environment\), {text}"
        ):
            envs.step(form(wrong) if isinstance(wrong, list) else wrong)
    with pytest.raises(ZeroDivisionError):
        envs.step(1 // action for action in (1, 0, 1))
    assert_identical(envs.step([1, 0, 1]), oracle.step([1, 0, 1]))  # nothing else was stepped


def test_iterables_are_parts_of_nested_actions(build):
    envs = build(recorders(NESTED, 2))
    envs.reset()
    boxes = np.zeros((2, 2), np.float32)
    envs.step({"a": (action for action in (1, 2)), "b": (iter(boxes), iter([[0, 1], [1, 1]]))})
    first, second = received(envs)
    assert (first["a"], second["a"]) == (1, 2)
    assert_identical([first["b"][0], second["b"][0]], list(boxes))
    assert [each["b"][1].tolist() for each in (first, second)] == [[0, 1], [1, 1]]


def test_numpy_scalars_in_a_list_keep_their_type(build):
    envs = build(recorders(Discrete(10)))
    envs.reset()
    envs.step([np.int64(1), np.int64(2), np.int64(3)])
    assert_identical(received(envs), [np.int64(1), np.int64(2), np.int64(3)])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.int8])
def test_a_box_action_is_an_array_of_the_callers_dtype(build, dtype):
    envs = build(recorders(BOX))
    envs.reset()
    batch = np.array([[1, 2], [3, 4], [5, 6]], dtype)
    envs.step(batch)
    assert_identical(received(envs), list(batch))


def test_a_box_without_dimensions_gives_scalars(build):
    envs = build(recorders(Box(-1, 1, ())))
    envs.reset()
    envs.step(np.array([0.25, 0.5, 1], np.float32))
    assert_identical(received(envs), [np.float32(0.25), np.float32(0.5), np.float32(1)])


@pytest.mark.parametrize(
    "space",
    [MultiDiscrete([3, 4]), MultiBinary(4), MultiBinary([2, 2]), Box(0, 255, (3, 2), np.uint8)],
    ids=str,
)
def test_each_environment_gets_its_row_of_an_array(build, space):
    envs = build(recorders(space))
    envs.reset()
    envs.action_space.seed(3)
    batch = envs.action_space.sample()
    envs.step(batch)
    assert_identical(received(envs), list(batch))


def test_a_list_of_arrays_is_a_batch(build):
    envs = build(recorders(BOX))
    envs.reset()
    batch = [np.array([row, row + 0.5], np.float32) for row in range(3)]
    envs.step(batch)
    assert_identical(received(envs), batch)


@pytest.mark.parametrize("space", [BOX, MultiDiscrete([9, 9]), MultiBinary(2)], ids=str)
def test_a_list_of_lists_gives_arrays_with_the_dtype_of_the_list(build, space):
    envs = build(recorders(space))
    envs.reset()
    kinds = [int, float] if space is BOX else [int]
    for kind in kinds:
        batch = [[kind(row), kind(0)] for row in range(3)]
        envs.step(batch)
        assert_identical(received(envs), list(np.array(batch)))


def test_nested_actions_are_split_by_row(build):
    envs = build(recorders(NESTED, 2))
    envs.reset()
    envs.step(
        {
            "b": (np.array([[1, 2], [3, 4]], np.float32), np.array([[0, 1], [1, 0]], np.int8)),
            "a": np.array([2, 1]),
        }
    )
    assert_identical(
        received(envs),
        [
            {
                "a": np.int64(2),
                "b": (np.array([1, 2], np.float32), np.array([0, 1], np.int8)),
            },
            {
                "a": np.int64(1),
                "b": (np.array([3, 4], np.float32), np.array([1, 0], np.int8)),
            },
        ],
    )


@pytest.mark.parametrize(
    ("space", "last"),
    [(MultiBinary(2), np.array([[0, 1], [1, 0]], np.int8)), (Text(3), ("ab", "c"))],
    ids=["fixed shapes", "text"],
)
def test_parts_of_actions_that_the_space_does_not_have_are_ignored_as_in_gymnasium(
    build, space, last
):
    env_fns = recorders(Dict(a=Discrete(3), b=Tuple([BOX, space])), 2)
    b = (np.ones((2, 2), np.float32), last, np.arange(5))
    actions = {"c": "more", "a": np.array([2, 1]), "b": b}
    seen = []
    for kind in (build, SyncVectorEnv, AsyncVectorEnv):
        envs = kind(env_fns)
        envs.reset()
        envs.step(actions)
        seen.append([(sorted(own), own["a"], *own["b"]) for own in received(envs)])
        envs.close()
    assert_identical(seen[0], seen[1])
    assert_identical(seen[0], seen[2])
    assert [len(own) for own in seen[0]] == [4, 4]


def test_values_outside_the_space_reach_the_environment(build):
    """Membership in the space is not checked; the environment may do so."""
    envs = build(recorders(Discrete(3)))
    envs.reset()
    envs.step(np.array([-5, 7, 2**62]))
    assert_identical(received(envs), [np.int64(-5), np.int64(7), np.int64(2**62)])
    envs.step([-5, 7, 2])
    assert_identical(received(envs), [-5, 7, 2])


@pytest.mark.parametrize(
    "batch",
    [
        np.arange(12).reshape(3, 4)[:, ::2],
        np.asfortranarray(np.arange(6).reshape(3, 2)),
        np.arange(6).reshape(3, 2)[::-1],
        np.broadcast_to(np.array([1, 2]), (3, 2)),
        np.arange(6).reshape(3, 2).astype(">i4"),
    ],
    ids=["strided", "Fortran", "reversed", "broadcast", "other byte order"],
)
def test_a_batch_may_have_any_layout(build, batch):
    envs = build(recorders(MultiDiscrete([50, 50])))
    envs.reset()
    envs.step(batch)
    assert [action.tolist() for action in received(envs)] == batch.tolist()


def test_a_batch_may_be_read_only(build):
    envs = build(recorders(Discrete(10)))
    envs.reset()
    batch = np.array([1, 2, 3])
    batch.flags.writeable = False
    envs.step(batch)
    assert_identical(received(envs), [np.int64(1), np.int64(2), np.int64(3)])


def test_environments_keep_their_actions_when_the_caller_overwrites_the_batch(build):
    for space, batch in (
        (BOX, np.array([[1, 2], [3, 4], [5, 6]], np.float32)),
        (MultiBinary(2), np.ones((3, 2), np.int8)),
        (Dict(a=BOX), {"a": np.ones((3, 2), np.float32)}),
    ):
        envs = build(recorders(space))
        envs.reset()
        envs.step(batch)
        expected = received(envs)
        for leaf in batch.values() if isinstance(batch, dict) else [batch]:
            leaf[:] = 0
        assert_identical(list(envs.get_attr("held")), expected)
        envs.close()


def test_environments_keep_their_actions_while_later_ones_arrive(build):
    envs = build(recorders(BOX))
    envs.reset()
    for step in range(20):
        envs.step(np.full((3, 2), step, np.float32))
        held = envs.get_attr("held")
        assert_identical(held, tuple(np.full(2, step, np.float32) for _ in range(3)))
    first = [actions[0] for actions in envs.get_attr("actions")]
    assert_identical(first, [np.zeros(2, np.float32)] * 3)


def test_an_environment_that_overwrites_its_action_does_not_change_the_callers(build):
    envs = build(recorders(BOX, scribbles=True))
    envs.reset()
    batch = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    envs.step(batch)
    assert batch.tolist() == [[1, 2], [3, 4], [5, 6]]
    rows = list(batch)
    envs.step(rows)
    assert [row.tolist() for row in rows] == [[1, 2], [3, 4], [5, 6]]


def test_the_caller_may_overwrite_the_batch_before_the_step_is_over(build_any):
    envs, oracle = with_oracle(build_any, Case("Pendulum-v1"), 3)
    for step in range(5):
        actions = np.full((3, 1), step / 4, np.float32)
        expected = oracle.step(actions.copy())
        envs.step_async(actions)
        actions[:] = np.nan
        assert_identical(envs.step_wait(), expected)


def refused(space, batch, error, text=""):
    return pytest.param(space, batch, error, text, id=f"{space}: {batch!r}"[:70])


@pytest.mark.parametrize(
    ("space", "batch", "error", "text"),
    [
        refused(Discrete(3), np.array([1, 2]), ValueError),
        refused(Discrete(3), np.array([1, 2, 0, 1]), ValueError),
        refused(Discrete(3), np.array([], int), ValueError),
        refused(Discrete(3), [1, 2], ValueError),
        refused(Discrete(3), [1, 2, 0, 1], ValueError),
        refused(Discrete(3), [], ValueError),
        refused(Discrete(3), (1, 2), ValueError),
        refused(Discrete(3), 0, TypeError, "Unable to iterate over the following elements: 0"),
        refused(Discrete(3), None, TypeError, "Unable to iterate over the following elements: N"),
        refused(Discrete(3), 1.5, TypeError, "Unable to iterate over the following elements: 1.5"),
        refused(Discrete(3), np.array(1), TypeError, "Unable to iterate"),
        refused(Discrete(3), np.int64(1), TypeError, "Unable to iterate"),
        refused(Discrete(3), {0, 1, 2}, TypeError, "Unable to iterate"),
        refused(Discrete(3), {0: 1, 1: 2, 2: 0}, TypeError, "Unable to iterate"),
        refused(Discrete(3), b"012", TypeError, "Unable to iterate"),
        refused(Discrete(3), np.array([1.0, 2.0, 0.0]), TypeError),
        refused(Discrete(3), np.array(["1", "2", "0"]), TypeError),
        refused(Discrete(3), np.array([[1], [2], [0]]), ValueError),
        refused(BOX, np.zeros((2, 2), np.float32), ValueError),
        refused(BOX, np.zeros((4, 2), np.float32), ValueError),
        refused(BOX, np.zeros((3, 3), np.float32), ValueError),
        refused(BOX, np.zeros((3, 1), np.float32), ValueError),
        refused(BOX, np.zeros(3, np.float32), ValueError),
        refused(BOX, np.zeros((3, 2, 1), np.float32), ValueError),
        refused(BOX, np.zeros((3, 2), complex), TypeError),
        refused(BOX, [np.zeros(2, np.float32), np.zeros(3, np.float32)] * 2, ValueError),
        refused(MultiBinary(2), np.zeros((3, 2)), TypeError),
        refused(MultiDiscrete([3, 4]), np.zeros((3, 2)), TypeError),
        refused(MultiDiscrete([3, 4]), np.zeros((3, 3), int), ValueError),
        refused(Box(0, 255, (2,), np.uint8), np.zeros((3, 2), np.float32), TypeError),
        refused(Dict(a=Discrete(3), b=Discrete(3)), {"a": np.zeros(3, int)}, KeyError, "'b'"),
        refused(Dict(a=Discrete(3)), {"a": np.zeros(2, int)}, ValueError),
        refused(Dict(a=Discrete(3)), {"a": np.zeros(4, int)}, ValueError),
        refused(Dict(a=Discrete(3)), {"a": np.zeros(3)}, TypeError),
        refused(Dict(a=Discrete(3)), {"a": 1}, TypeError, "Unable to iterate"),
        refused(
            Dict(a=Discrete(3), b=BOX),
            {"a": np.zeros(3, int), "b": np.zeros((2, 2), np.float32)},
            ValueError,
        ),
        refused(
            Tuple([Discrete(3), Discrete(3)]), (np.zeros(3, int), np.zeros(2, int)), ValueError
        ),
        refused(Tuple([Discrete(3), Discrete(3)]), (np.zeros(3, int),), IndexError),
        refused(Text(3), ("a", "b"), ValueError),
        refused(Text(3), ("a", "b", "c", "d"), ValueError),
    ],
)
def test_wrong_actions_are_refused_before_anything_is_stepped(build, space, batch, error, text):
    envs = build(recorders(space))
    envs.reset()
    envs.action_space.seed(1)
    for turn in range(1, 3):
        with pytest.raises(error, match=re.escape(text) or None):
            envs.step(batch)
        assert stepped(envs) == [turn - 1] * 3
        actions = envs.action_space.sample()
        observations, *_ = envs.step(actions)
        assert observations[:, 0].tolist() == [turn] * 3
    with pytest.raises(error, match=re.escape(text) or None):
        envs.step_async(batch)
    envs.step_async(envs.action_space.sample())
    observations, *_ = envs.step_wait()
    assert observations[:, 0].tolist() == [3] * 3


@pytest.mark.parametrize(
    "change",
    [
        lambda array: array.resize((0, 2), refcheck=False),
        lambda array: setattr(array, "shape", (2, 3)),
        lambda array: setattr(array, "dtype", np.int32),
    ],
)
def test_actions_that_another_part_changes_while_it_is_converted_are_refused(build, change):
    class Changing:
        def __array__(self, dtype=None, copy=None):
            change(array)
            return np.zeros(3, np.int64)

    envs = build(recorders(Dict(a=BOX, b=Discrete(3))))
    envs.reset()
    array = np.zeros((3, 2), np.float32)
    with pytest.raises(ValueError, match="changed while another part of the actions"):
        envs.step({"a": array, "b": Changing()})
    assert stepped(envs) == [0] * 3
    envs.step(envs.action_space.sample())
    assert stepped(envs) == [1] * 3


@pytest.mark.parametrize(
    ("batch", "part"),
    [
        ({"a": np.zeros(3, int)}, "['b']"),
        ({"a": np.zeros(3, int), "b": (np.zeros((3, 2), np.float32),)}, "['b'][1]"),
        ({"a": np.zeros(2, int)}, "['a']"),
        ([{"a": 0, "b": (np.zeros(2, np.float32), 0)}] * 3, "['a']"),
        ([0, 1, 2], "['a']"),
    ],
)
def test_an_error_about_a_part_of_actions_names_the_part_and_the_form(build, batch, part):
    envs = build(recorders(Dict(a=Discrete(3), b=Tuple([BOX, Discrete(3)]))))
    envs.reset()
    with pytest.raises((KeyError, IndexError, TypeError, ValueError)) as refusal:
        envs.step(batch)
    assert refusal.value.__notes__ == [
        f"at actions{part}: a batch has the form of `envs.action_space.sample()`, with an entry "
        "for each row in each part"
    ]
    assert stepped(envs) == [0] * 3


def test_the_message_says_how_many_actions_were_expected_and_given(build):
    envs = build(recorders(Discrete(3)))
    envs.reset()
    for batch in (np.zeros(5, int), [0] * 5):
        with pytest.raises(ValueError, match=r"3.*5|5.*3"):
            envs.step(batch)


def test_actions_are_checked_in_the_step_that_only_resets(build):
    """NEXT_STEP ignores the action of a row that it resets, but still refuses a wrong batch."""
    envs = build(recorders(Discrete(3)), autoreset_mode="NextStep")
    envs.reset()
    with pytest.raises(ValueError, match=r"\d"):
        envs.step(np.zeros(4, int))
    envs.step(np.zeros(3, int))
    assert stepped(envs) == [1, 1, 1]


def test_batches_of_every_form_may_follow_one_another(build_everywhere):
    envs = build_everywhere(recorders(Discrete(10)))
    envs.reset()
    batches = [
        np.array([1, 2, 3]),
        [4, 5, 6],
        np.array([1, 2, 3], np.uint8),
        (np.int64(7), np.int64(8), np.int64(9)),
        np.array([0, 0, 1]),
        np.array([3, 2, 1]),
    ]
    for batch in batches * 2:
        expected = list(batch)
        envs.step(batch)
        assert_identical(received(envs), expected)


def test_large_actions_arrive_whole(build):
    envs = build(recorders(Box(0, 1, (300, 500), np.float64)))
    envs.reset()
    for seed in range(3):
        batch = np.random.default_rng(seed).random((3, 300, 500))
        envs.step(batch)
        assert_identical(list(envs.get_attr("held")), list(batch))
