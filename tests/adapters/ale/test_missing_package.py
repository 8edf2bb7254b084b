"""The errors of a program without ale-py."""

import sys

import pytest

import cartwheel


@pytest.fixture
def _no_ale_py(monkeypatch):
    for name in list(sys.modules):
        if name.partition(".")[0] == "ale_py" or name.startswith("cartwheel.ale"):
            monkeypatch.delitem(sys.modules, name)
    for name in ("ale_py", "ale_py.roms", "ale_py.vector_env"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("_no_ale_py")
@pytest.mark.parametrize("keywords", [{"executor": "ale"}, {"vector_kwargs": {"executor": "ale"}}])
def test_the_error_says_what_to_install(keywords):
    with pytest.raises(ImportError, match=r"pip install 'cartwheel\[ale\]'"):
        cartwheel.make_vec("ALE/Pong-v5", 2, **keywords)


def test_single_vector_environments_have_no_such_executor():
    with pytest.raises(ValueError, match="'auto', 'inline', 'thread', 'process', got 'ale'"):
        cartwheel.VectorEnv([dict], executor="ale")
