"""Infos are batched as Gymnasium's `VectorEnv._add_info` does it, value for value.

This file is above 500 lines because every kind of info is held against the same functions.
"""

import threading
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode
from hypothesis.extra import numpy as npst

import cartwheel
from cartwheel.workers.serving.worker import Worker
from tests.support.comparison import assert_identical, text_of
from tests.support.environments import BufferReusingEnv, PuppetEnv, scalar_puppets, transcripts
from tests.support.executors import EXECUTORS
from tests.support.oracle import batched, objects, outcome
from tests.support.processes import resident_kib
from tests.support.random_examples import example, given, settings, st
from tests.support.repetitions import times

OBS = np.float32(0)
ABSENT: dict[str, Any] = {}


def set_infos(envs, rows):
    envs.set_attr("frame", [(OBS, 0.0, False, False, info) for info in rows])
    envs.set_attr("reset_frame", [(OBS, info) for info in rows])


def assert_batched_as_in_gymnasium(envs, rows):
    """Infos of steps and resets equal the oracle's; if it raises, so do ours, until a reset."""
    expected, failure = outcome(lambda: batched(rows))
    set_infos(envs, [ABSENT] * len(rows))
    envs.reset()
    set_infos(envs, rows)
    for call in (lambda: envs.step([0] * len(rows))[4], lambda: envs.reset()[1]):
        if failure is None:
            assert_identical(call(), expected, "infos")
        else:
            with pytest.raises(type(failure)):
                call()
            set_infos(envs, [ABSENT] * len(rows))
            envs.reset()
            set_infos(envs, rows)


CASES = {
    "int then float": [{"a": 1}, {"a": 2.7}],
    "float then int": [{"a": 1.5}, {"a": 2}],
    "int then a float out of range": [{"a": 1}, {"a": 2.0**63}],
    "int then nan": [{"a": 1}, {"a": float("nan")}],
    "int then a small float": [{"a": 1}, {"a": -(2.0**63)}],
    "float then a large int": [{"a": 1.5}, {"a": 2**53 + 1}],
    "bool then int": [{"a": True}, {"a": 7}],
    "int then bool": [{"a": 5}, {"a": True}],
    "float32": [{"a": np.float32(1.5)}, ABSENT],
    "float16": [{"a": np.float16(1.5)}, {"a": 1.0}],
    "uint8": [{"a": np.uint8(200)}, {"a": np.uint8(3)}],
    "int8 then int": [{"a": np.int8(5)}, {"a": 100}],
    "int8 then a large int": [{"a": np.int8(5)}, {"a": 300}],
    "int64 then float32": [{"a": np.int64(5)}, {"a": np.float32(2.5)}],
    "complex64": [{"a": np.complex64(1 + 2j)}, ABSENT],
    "complex then float": [{"a": np.complex128(1 + 2j)}, {"a": 2.5}],
    "numpy bool": [{"a": np.bool_(True)}, ABSENT],
    "str": [{"a": "x"}, ABSENT],
    "two strs": [{"a": "x"}, {"a": "a longer text, é€𝄞"}],
    "str then int": [{"a": "x"}, {"a": 3}],
    "bytes": [{"a": b"\0\1"}, ABSENT],
    "list": [{"a": [1, 2]}, ABSENT],
    "tuple": [{"a": (1, 2)}, ABSENT],
    "two tuples": [{"a": (1, 2)}, {"a": (3, "x", None)}],
    "set": [{"a": {1, 2}}, ABSENT],
    "complex": [{"a": 1j}, ABSENT],
    "None": [{"a": None}, ABSENT],
    "None then int": [{"a": None}, {"a": 1}],
    "None then array": [{"a": None}, {"a": np.arange(3)}],
    "int then None": [{"a": 1}, {"a": None}],
    "float then None": [{"a": 1.0}, {"a": None}],
    "int then str": [{"a": 1}, {"a": "z"}],
    "int then numeric str": [{"a": 1}, {"a": "12"}],
    "arrays": [{"a": np.array([1, 2], np.int8)}, {"a": np.array([3, 4], np.int8)}],
    "array absent": [{"a": np.array([[1.5, 2.5]])}, ABSENT],
    "absent then array": [ABSENT, {"a": np.array([[1.5, 2.5]])}],
    "array of no dimensions": [{"a": np.array(3.5)}, {"a": np.array(1, np.int8)}],
    "array of 63 dimensions": [{"a": np.ones((1,) * 63)}, ABSENT],
    "array of 64 dimensions": [{"a": np.ones((1,) * 64)}, ABSENT],
    "None then array of 64 dimensions": [{"a": None}, {"a": np.ones((1,) * 64)}],
    "array of no elements": [{"a": np.zeros((0, 2))}, ABSENT],
    "array of a length of more than 32 bits": [{"a": np.zeros((0, 2**33), np.int8)}, ABSENT],
    "array of strs": [{"a": np.array(["ab", "c"])}, ABSENT],
    "array of bools": [{"a": np.array([True, False])}, ABSENT],
    "array of objects": [{"a": np.array([None, "x"], object)}, ABSENT],
    "arrays of shapes that differ": [{"a": np.zeros(2)}, {"a": np.zeros(3)}],
    "arrays that broadcast": [{"a": np.zeros(3)}, {"a": np.ones(1)}],
    "array then scalar": [{"a": np.zeros(3)}, {"a": 2}],
    "array then list": [{"a": np.zeros(3)}, {"a": [1, 2, 3]}],
    "scalar then array": [{"a": 2}, {"a": np.zeros(3)}],
    "scalar then array of one": [{"a": 2}, {"a": np.array([3])}],
    "int array then float array": [{"a": np.arange(2)}, {"a": np.array([0.5, 1.5])}],
    "float32 array then float64 array": [{"a": np.ones(2, np.float32)}, {"a": np.full(2, 0.1)}],
    "array in Fortran order": [{"a": np.asfortranarray([[1, 2], [3, 4]])}, ABSENT],
    "array in the other byte order": [{"a": np.array([1, 2], ">i4")}, ABSENT],
    "array of dates": [{"a": np.array(["2024-01-01"], "M8[D]")}, ABSENT],
    "structured array": [{"a": np.array([(1, 2.0)], [("x", "i4"), ("y", "f8")])}, ABSENT],
    "dict": [{"a": {"b": 1, "c": {"d": 2.0}}}, {"a": {"b": 2}}],
    "dict then scalar": [{"a": {"b": 1}}, {"a": 3}],
    "scalar then dict": [{"a": 3}, {"a": {"b": 1}}],
    "empty dict": [{"a": {}}, ABSENT],
    "dict absent": [ABSENT, {"a": {"b": {"c": "x"}}}],
    "huge int": [{"a": 2**70}, ABSENT],
    "int of 64 bits without a sign": [{"a": 2**63}, ABSENT],
    "the largest int": [{"a": 2**63 - 1}, {"a": -(2**63)}],
    "mask written by the user": [{"a": 1, "_a": 5}, ABSENT],
    "mask written first": [{"_a": 5, "a": 1}, {"a": 2}],
    "mask of both rows": [{"a": 1, "_a": True}, {"a": 2, "_a": False}],
    "int key": [{3: "x"}, {3: "y"}],
    "tuple key": [{(1, 2): 1.5}, ABSENT],
    "key of no letters": [{"": 1}, {"": 2}],
    "key beyond ASCII": [{"größe 𝄞": 1}, ABSENT],
    "many keys": [{f"key {i}": i for i in range(100)}, {f"key {i}": i for i in range(50, 150)}],
    "final_obs": [{"final_obs": 3}, {"final_obs": np.arange(2)}],
    "final_obs in a dict": [{"a": {"final_obs": {"x": 1}}}, ABSENT],
    "final_info": [{"final_info": {"x": 1}}, {"final_info": {"x": 2}}],
    "special floats": [{"a": float("nan"), "b": -0.0}, {"a": float("inf"), "b": 0.0}],
    "a subclass of int": [{"a": AutoresetMode.NEXT_STEP, "b": np.intc(3)}, ABSENT],
    "a long str": [{"a": "x" * 100_000}, {"a": "y"}],
    "a large array": [{"a": np.arange(100_000)}, {"a": np.arange(100_000)}],
}


@pytest.mark.parametrize("rows", CASES.values(), ids=CASES)
def test_every_kind_of_info_is_batched_as_in_gymnasium(puppets, rows):
    assert_batched_as_in_gymnasium(puppets, rows)


def test_the_table_of_the_contract_holds_literally(build):
    """Written by hand, so that a change of the oracle is noticed."""
    envs = build(scalar_puppets(2))
    envs.reset()
    first, both = np.array([True, False]), np.array([True, True])
    for rows, expected in [
        ([{"a": 1}, {"a": 2.7}], {"a": np.array([1, 2]), "_a": both}),
        ([{"a": 1.5}, {"a": 2}], {"a": np.array([1.5, 2.0]), "_a": both}),
        ([{"a": True}, {"a": 7}], {"a": np.array([True, True]), "_a": both}),
        ([{"a": np.float32(1.5)}, {}], {"a": np.array([1.5, 0], np.float32), "_a": first}),
        ([{"a": np.bool_(True)}, {}], {"a": objects(np.True_, None), "_a": first}),
        ([{"a": [1, 2]}, {}], {"a": objects([1, 2], None), "_a": first}),
        ([{"a": None}, {"a": 1}], {"a": objects(None, 1), "_a": both}),
        ([{"a": np.array(["ab", "c"])}, {}], {"a": np.array([["ab", "c"], ["", ""]]), "_a": first}),
        ([{"a": {}}, {}], {"a": {}, "_a": first}),
        ([{3: "x"}, {}], {3: objects("x", None), "_3": first}),
        ([{}, {}], {}),
        (
            [{"a": {"b": 1, "c": {"d": 2.0}}}, {"a": {"b": 2}}],
            {
                "a": {
                    "b": np.array([1, 2]),
                    "_b": both,
                    "c": {"d": np.array([2.0, 0.0]), "_d": first},
                    "_c": first,
                },
                "_a": both,
            },
        ),
    ]:
        set_infos(envs, rows)
        assert_identical(envs.step([0, 0])[4], expected, f"infos of {rows}")


def test_an_info_that_only_the_first_rows_have_keeps_their_rows(build_everywhere):
    """Rows are spread over several workers; a worker knows only its own."""
    envs = build_everywhere(scalar_puppets(9))
    for present in (range(9), (0,), (8,), (1, 4, 7), (2, 3)):
        rows = [
            {"row": row, "name": f"row {row}", "deep": {"array": np.full(2, row)}}
            if row in present
            else {"other": row / 2}
            for row in range(9)
        ]
        assert_batched_as_in_gymnasium(envs, rows)


def test_the_first_row_decides_the_dtype_wherever_it_runs(build_everywhere):
    envs = build_everywhere(scalar_puppets(8))
    values = [1, 2.5, np.float32(3.5), True, np.int8(4), 5, 6.75, False]
    for turn in range(8):
        rotated = values[turn:] + values[:turn]
        assert_batched_as_in_gymnasium(envs, [{"a": value} for value in rotated])
        assert_batched_as_in_gymnasium(envs, [{"a": {"b": value}} for value in rotated])


class NewKeysEnv(PuppetEnv):
    """Names a vehicle by a key of its infos, another one in every step."""

    def __init__(self, has_text_keys):
        super().__init__(Box(-1, 1, (), np.float32), OBS)
        self.t, self.has_text_keys = 0, has_text_keys

    def info(self):
        image = np.full(2**15, self.t)
        item = f"item {self.t}" if self.has_text_keys else ("item", self.t)
        return {f"vehicle {self.t}": image, "items": {item: image}}

    def step(self, _action):
        self.t += 1
        return OBS, 0.0, False, False, self.info()


@pytest.mark.parametrize("has_text_keys", [True, False])
def test_keys_that_change_in_every_step_take_no_memory(build, has_text_keys):
    steps, make_env = 200, partial(NewKeysEnv, has_text_keys)
    envs = build([make_env] * 2)
    envs.reset()
    example = make_env()
    for example.t in range(1, 20):
        infos = envs.step([0, 0])[4]
        assert_identical(infos, batched([example.info()] * 2))
    before = resident_kib()
    for _ in range(steps):
        infos = envs.step([0, 0])[4]
    kib = 4 * 2**15 * 8 // 1024  # two arrays of two rows
    assert resident_kib() - before < 20 * kib, f"{steps} steps of {kib} KiB"


def test_a_large_array_of_one_row_takes_no_memory_for_the_others(build):
    """Such as the video of an episode: zeros of NumPy take no memory until they are written."""
    rows = [ABSENT] * 63 + [{"video": np.full(2**21, 7, np.uint8)}]
    envs = build(scalar_puppets(64))
    assert_batched_as_in_gymnasium(envs, rows)
    before = resident_kib()
    infos = envs.step([0] * 64)[4]
    assert resident_kib() - before < infos["video"].nbytes // 1024 // 2


SCALARS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-3, 3),
    st.floats(),
    st.booleans(),
    st.complex_numbers(),
    st.none(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.sampled_from([np.float32(0.1), np.int8(-3), np.uint16(9), np.bool_(False), np.float16(2)]),
)
ARRAYS = npst.arrays(
    st.one_of(
        npst.integer_dtypes(),
        npst.unsigned_integer_dtypes(),
        npst.floating_dtypes(sizes=(16, 32, 64)),
        npst.boolean_dtypes(),
        npst.unicode_string_dtypes(max_len=3),
    ),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
KEYS = st.one_of(
    st.sampled_from(["a", "b", "_a", "__a", "final_obs", "final_info", "c"]),
    st.text(max_size=3),
    st.integers(0, 2),
)
VALUES = st.recursive(
    SCALARS | ARRAYS,
    lambda inner: st.one_of(
        st.dictionaries(KEYS, inner, max_size=3),
        st.dictionaries(KEYS, inner, max_size=3),
        st.lists(inner, max_size=2),
        st.lists(inner, max_size=2).map(tuple),
    ),
    max_leaves=6,
)
INFOS = st.dictionaries(KEYS, VALUES, max_size=4)


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_any_infos_are_batched_as_in_gymnasium(executor):
    envs = executor(scalar_puppets(3))

    @settings(max_examples=times(30, with_full=160))
    @given(rows=st.lists(INFOS, min_size=3, max_size=3))
    @example([{"a": 1}, {"_a": {"b": 1}}, {"a": 2}])
    @example([{"a": {"_b": 1, "b": 2}}, {"a": {"b": None}}, {}])
    def check(rows):
        assert_batched_as_in_gymnasium(envs, rows)

    try:
        check()
    finally:
        envs.close()


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_infos_of_one_kind_in_all_rows_are_batched_as_in_gymnasium(executor):
    """Rows whose infos have the same type are the usual case, which takes a faster path."""
    envs = executor(scalar_puppets(3))
    alike = st.one_of(
        *[
            st.lists(kind, min_size=3, max_size=3)
            for kind in (
                st.integers(-(2**63), 2**63 - 1),
                st.floats(),
                st.booleans(),
                st.text(),
                npst.arrays(np.float32, (2, 2)),
                npst.arrays(np.int64, ()),
                st.floats(width=32).map(np.float32),
            )
        ]
    )

    @settings(max_examples=times(20, with_full=100))
    @given(
        columns=st.dictionaries(st.text(max_size=3), alike, max_size=5),
        present=st.lists(st.booleans(), min_size=3, max_size=3),
    )
    def check(columns, present):
        rows = [
            {key: values[row] for key, values in columns.items() if present[row]}
            for row in range(3)
        ]
        assert_batched_as_in_gymnasium(envs, rows)

    try:
        check()
    finally:
        envs.close()


def test_arrays_in_infos_are_not_overwritten_by_later_steps(build):
    envs = build([partial(BufferReusingEnv, 100)] * 2)
    envs.reset()
    kept = [envs.step([0, 0])[4] for _ in range(5)]
    for t, infos in enumerate(kept, start=1):
        assert infos["array"].tolist() == [[t, t]] * 2
        assert infos["nested"]["array"].tolist() == [[t]] * 2
        assert_identical(infos["dates"], np.full((2, 1), t, "M8[D]"))
        assert infos["objects"].tolist() == [[None, t]] * 2


def test_infos_may_be_changed_by_the_caller(build):
    envs = build(transcripts(5, 5))
    envs.reset()
    infos = envs.step([1, 2])[4]
    infos["t"][:] = 77
    infos["_t"][:] = False
    infos["mine"] = 1
    assert_identical(envs.step([1, 2])[4], {"t": np.array([2, 2]), "_t": np.array([True, True])})


def test_a_value_that_cannot_be_pickled_is_passed_on_where_nothing_is_pickled(build):
    envs = build([lambda: UnpicklableInfoEnv()] * 2)
    if build.executor == "process":
        with pytest.raises(Exception, match="pickle") as failure:
            envs.reset()
        assert "row 0" in text_of(failure.value)
        assert 'at info["camera"]["lock"], which cannot be sent' in text_of(failure.value)
        envs.set_attr("reset_frame", [(OBS, {"a": 1})] * 2)
        assert_identical(envs.reset()[1], batched([{"a": 1}] * 2))
    else:
        _obs, infos = envs.reset()
        assert [type(value) for value in infos["camera"]["lock"]] == [type(threading.Lock())] * 2


class UnpicklableInfoEnv(PuppetEnv):
    def __init__(self):
        super().__init__(Box(-1, 1, (), np.float32), OBS)
        self.reset_frame = (OBS, {"camera": {"lock": threading.Lock()}})


@pytest.mark.parametrize("info", [None, 3, [("a", 1)]], ids=repr)
def test_an_info_that_is_not_a_dict_is_an_error_of_its_row(build, info):
    envs = build(scalar_puppets(2))
    envs.reset()
    envs.set_attr("frame", [(OBS, 0.0, False, False, value) for value in ({}, info)])
    with pytest.raises((TypeError, AttributeError)) as failure:
        envs.step([0, 0])
    assert "row 1" in text_of(failure.value)
    envs.reset()
    envs.set_attr("frame", [(OBS, 1.0, False, False, {})] * 2)
    assert envs.step([0, 0])[1].tolist() == [1, 1]


class Meddling:
    """Changes an info, when it is pickled or copied."""

    def __init__(self, change):
        self.change = change

    def __reduce__(self):
        self.change()
        return str, ()

    def __deepcopy__(self, memo):
        self.change()
        return self


def add(info):
    info["more"] = 1


def replace_all(info):
    """Puts other keys in the place of all: as many as before, in a table of their own."""
    count = len(info)
    info.clear()
    info.update({f"other {key}": key for key in range(2, count + 2)})


class MeddlingEnv(PuppetEnv):
    """One of its infos is changed by a value of it, at the end of an episode."""

    def __init__(self, change, path):
        super().__init__(Box(-1, 1, (), np.float32), OBS)
        self.change, self.path = change, path

    def step(self, action):
        info = {"first": 0, "nested": {"first": 0, "last": 1}, "last": 1}
        if action:
            changed = info
            for key in self.path:
                changed = changed[key]
            values = changed
            values["meddling"] = Meddling(lambda: self.change(changed))
            values["last"] = values.pop("last")
        return OBS, 1.0, bool(action), False, info


@pytest.mark.parametrize("change", [add, replace_all, dict.clear], ids=["add", "replace", "clear"])
@pytest.mark.parametrize("path", [(), ("nested",)], ids=["own", "nested"])
@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_an_info_that_changes_while_it_is_passed_on_fails_its_row_alone(build, mode, path, change):
    """Pickling changes it where it is pickled, and a copy in ``SAME_STEP`` elsewhere."""
    envs = build([partial(MeddlingEnv, change, path)] * 3, autoreset_mode=mode)
    envs.reset()
    envs.step([0, 0, 0])
    if build.executor != "process" and mode != "same_step":
        envs.step([0, 1, 0])  # the value is passed on as it is
    else:
        with pytest.raises(RuntimeError, match="an info changed while its values") as failure:
            envs.step([0, 1, 0])
        assert "row 1" in text_of(failure.value)
    envs.reset()
    assert envs.step([0, 0, 0])[1].tolist() == [1, 1, 1]


class OwnInfosEnv(cartwheel.VectorEnv):
    """Collects infos in a list through Gymnasium's own hook, as some libraries do."""

    def _add_info(self, vector_infos, env_info, env_num):
        vector_infos.setdefault("rows", [None] * self.num_envs)[env_num] = env_info
        return vector_infos


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_a_subclass_may_batch_infos_its_own_way(executor):
    envs = OwnInfosEnv(transcripts(2, 3), executor=executor.name, **executor.keywords)
    reset = {"ep": 1, "opt": "None"}
    assert_identical(envs.reset()[1], {"rows": [reset, reset]})
    assert_identical(envs.step([1, 2])[4], {"rows": [{"t": 1}, {"t": 1}]})
    envs.close()


class HugeInfoEnv(gym.Env):
    """After the action 2, has an array of 8 GiB in its info, whose memory is one byte."""

    observation_space = action_space = gym.spaces.Discrete(3)

    def reset(self, **_):
        return 0, {}

    def step(self, action):
        huge = np.broadcast_to(np.uint8(0), (1 << 17, 1 << 16))
        return 0, 1.0, False, False, {"huge": huge} if action == 2 else {}


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_an_info_above_4_gib_is_passed_on_or_fails_its_row_alone(executor):
    envs = OwnInfosEnv([HugeInfoEnv] * 3, executor=executor.name, **executor.keywords)
    envs.reset()
    if executor.name == "process":
        with pytest.raises(ValueError, match=r"have 85899\d+ bytes .* can send 10") as failure:
            envs.step([0, 2, 0])
        assert "row 1" in text_of(failure.value)
        envs.reset()
    else:
        assert envs.step([0, 2, 0])[4]["rows"][1]["huge"].nbytes == 1 << 33
    assert envs.step([0, 0, 0])[1].tolist() == [1, 1, 1]
    envs.close()


class CountingInfosEnv(cartwheel.VectorEnv):
    """Keeps something of every info, and fails on demand."""

    calls = 0

    def _add_info(self, vector_infos, env_info, env_num):
        self.calls += 1
        self.last = env_info
        if env_info.get("fails"):
            raise RuntimeError("on demand")
        return super()._add_info(vector_infos, env_info, env_num)


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_a_subclass_may_count_its_infos_in_batches_of_any_size(executor):
    envs = CountingInfosEnv(
        transcripts(2, 3, 9), batch_size=2, executor=executor.name, **executor.keywords
    )
    envs.send_reset()
    sizes = [len(envs.recv()[4]["ep"]) for _ in range(2)]
    assert (sizes, envs.calls, envs.num_envs) == ([2, 1], 3, 3)
    infos = envs.step([5], [1])[4]
    assert_identical(infos["t"], np.array([1]))
    assert (envs.calls, envs.last, envs.num_envs) == (4, {"t": 1}, 3)
    envs.close()


def test_a_hook_that_raises_does_not_change_num_envs():
    envs = CountingInfosEnv(scalar_puppets(3), executor="inline")
    envs.reset()
    envs.set_attr("frame", [(OBS, 1.0, False, False, {"fails": True})] * 3)
    with pytest.raises(RuntimeError, match="on demand"):
        envs.step([0], [1])
    assert envs.num_envs == 3
    envs.close()


def test_the_inherited_hook_can_be_called(build):
    envs = build(transcripts(2, 3))
    infos = envs._add_info(envs._add_info({}, {"a": 1}, 0), {"b": "x"}, 1)
    assert_identical(infos, batched([{"a": 1}, {"b": "x"}]))


def test_infos_that_contain_themselves_arrive_as_they_are(build):
    """Value by value, two references to itself would be written billions of times."""
    ring = [1]
    ring += [ring, ring]
    scene = {"name": "scene"}
    scene["parts"] = [{"name": str(part), "within": scene} for part in range(3)]
    envs = build(scalar_puppets(2))
    envs.reset()
    set_infos(envs, [ABSENT, {"ring": ring, "scenes": (scene,)}])
    infos = envs.step([0, 0])[4]
    got, (shown,) = infos["ring"][1], infos["scenes"][1]
    assert got[0] == 1
    assert got[1] is got
    assert got[2] is got
    assert [part["name"] for part in shown["parts"]] == ["0", "1", "2"]
    assert all(part["within"] is shown for part in shown["parts"])
    set_infos(envs, [ABSENT, {"scene": scene}])  # whose entries become columns, as in Gymnasium
    columns = envs.step([0, 0])[4]["scene"]
    assert columns["name"].tolist() == [None, "scene"]
    parts = columns["parts"][1]
    assert all(part["within"]["parts"] is parts for part in parts)


class WordyEnv(gym.Env):
    """The info of a step has as many characters as its action says."""

    observation_space, action_space = Discrete(2), Box(0, 2**20, (), np.int64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return 0, {}

    def step(self, action):
        return 1, 1.0, False, False, {"words": "x" * int(action)}


@pytest.fixture
def wordy(build_processes, monkeypatch):
    """Three rows of one worker, which sends 300,000 bytes of infos at most."""
    monkeypatch.setattr(Worker, "largest_infos", 300_000)

    def build(**keywords):
        envs = build_processes([WordyEnv] * 3, context="fork", num_workers=1, **keywords)
        envs.reset()
        return envs

    return build


def lengths(infos):
    return [len(words or "") for words in infos["words"]]


def test_infos_too_large_to_be_sent_fail_the_row_that_is_too_much(wordy):
    envs = wordy()
    with pytest.raises(ValueError, match=r"have 40\d{4} bytes with those of this row, .* 300000"):
        envs.step([0, 200_000, 200_000])
    with pytest.raises(gym.error.ResetNeeded, match=r"\[2\]"):
        envs.step([0, 0, 0])
    envs.reset()
    assert lengths(envs.step([1, 200_000, 3])[4]) == [1, 200_000, 3]


def test_infos_too_large_to_be_sent_replace_an_environment_and_keep_those_of_others(wordy):
    envs = wordy(on_error="restart")
    *_, truncations, infos = envs.step([5, 200_000, 200_000])
    assert truncations.tolist() == [False, False, True]
    assert lengths(infos) == [5, 200_000, 0]
    assert infos["env_error"][2].startswith("ValueError: the infos of this worker's rows")


def test_infos_of_rows_that_were_sent_are_sent_one_by_one(wordy):
    envs = wordy()
    envs.send([200_000] * 3, [0, 1, 2])
    assert lengths(envs.recv()[4]) == [200_000] * 3
