"""The library of MuJoCo is the one that Python has loaded; what does not fit is an error."""

import ctypes
import logging
import shutil
from pathlib import Path
from types import SimpleNamespace

import mujoco
import pytest

from cartwheel.native.mujoco.library import OLDEST, SYMBOLS, _loaded, addresses, logged_warnings


def test_every_symbol_has_an_address_of_its_own():
    found = addresses(mujoco)
    assert list(found) == list(SYMBOLS)
    assert all(found.values())
    assert len(set(found.values())) == len(SYMBOLS)


def test_a_function_at_its_address_is_that_of_pythons_library():
    model = mujoco.MjModel.from_xml_string("<mujoco><worldbody/></mujoco>")
    ours, theirs = mujoco.MjData(model), mujoco.MjData(model)
    step = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(addresses(mujoco)["mj_step"])
    for _ in range(3):
        step(model._address, ours._address)
        mujoco.mj_step(model, theirs)
    assert ours.time == theirs.time > 0


def test_a_second_copy_of_the_library_that_is_not_loaded_is_not_taken(tmp_path):
    package = Path(mujoco.__path__[0])
    for file in package.glob("libmujoco*"):
        shutil.copy(file, tmp_path)
    both = SimpleNamespace(__path__=[str(tmp_path), str(package)], __version__="4")
    assert addresses(both) == addresses(mujoco)
    other = SimpleNamespace(__path__=[str(tmp_path)], __version__="4")
    with pytest.raises(ImportError, match=rf"loaded without its library \({tmp_path}"):
        addresses(other)


def test_a_package_without_its_library_is_an_import_error(tmp_path):
    empty = SimpleNamespace(__path__=[str(tmp_path)], __version__="4.1.0")
    with pytest.raises(ImportError, match=r"mujoco 4\.1\.0 is loaded without its library"):
        addresses(empty)


def test_a_library_without_a_symbol_is_an_import_error_that_names_it(monkeypatch):
    monkeypatch.setattr("cartwheel.native.mujoco.library.SYMBOLS", ("mj_step", "mj_walk"))
    with pytest.raises(ImportError, match=r"libmujoco.*has no symbol `mj_walk`"):
        addresses(mujoco)


def test_the_oldest_version_is_that_of_the_extra():
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert f'mujoco = ["mujoco>={OLDEST}", ' in project


def test_warnings_of_loading_are_logged_and_written_to_no_file(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.WARNING, "cartwheel"), logged_warnings(mujoco, logging.WARNING):
        _loaded(mujoco).mju_warning(b"the robot has %d legs", 5)
    assert [record.getMessage() for record in caplog.records] == ["MuJoCo: the robot has 5 legs"]
    assert not list(tmp_path.iterdir())


def test_the_handler_of_warnings_is_put_back_after_an_error():
    variable = ctypes.c_void_p.from_address(addresses(mujoco)["mju_user_warning"])
    before = variable.value
    with logged_warnings(mujoco, logging.WARNING):
        assert variable.value != before
    assert variable.value == before
    with pytest.raises(ValueError, match="XML"), logged_warnings(mujoco, logging.WARNING):
        mujoco.MjModel.from_xml_string("<robot>")
    assert variable.value == before


def test_the_handler_of_warnings_is_put_back_by_the_last_of_several_threads():
    variable = ctypes.c_void_p.from_address(addresses(mujoco)["mju_user_warning"])
    before = variable.value
    first, last = (logged_warnings(mujoco, logging.WARNING) for _ in range(2))
    first.__enter__()
    last.__enter__()
    first.__exit__(None, None, None)
    assert variable.value != before
    last.__exit__(None, None, None)
    assert variable.value == before
