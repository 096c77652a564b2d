"""A library does without a module while it is loaded; all others get that as ever."""

import importlib
import sys
from types import ModuleType

import pytest

from schemas.lean_import import load_without

SEES = "try:\n    import leafcast_unneeded as seen\nexcept ImportError:\n    seen = None\n"


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library that takes a module where it is installed, which it is."""
    (tmp_path / "leafcast_library.py").write_text(SEES)
    (tmp_path / "leafcast_unneeded.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield tmp_path / "leafcast_library.py"
    for name in ("leafcast_library", "leafcast_unneeded", "leafcast_rare"):
        sys.modules.pop(name, None)


def loaded():
    return importlib.import_module("leafcast_library")


def test_the_library_finds_none_and_whoever_asks_afterwards_does(library):
    load_without("leafcast_library", "leafcast_unneeded")
    assert loaded().seen is None
    assert importlib.import_module("leafcast_unneeded").__file__ is not None


def test_the_library_gets_what_stands_in(library):
    instead = ModuleType("leafcast_unneeded")
    load_without("leafcast_library", "leafcast_unneeded", instead)
    assert loaded().seen is instead
    assert "leafcast_unneeded" not in sys.modules


def test_a_library_may_do_without_several(library):
    library.write_text(
        SEES + SEES.replace("unneeded as seen", "rare as other").replace("seen =", "other =")
    )
    library.with_name("leafcast_rare.py").write_text("")
    load_without("leafcast_library", "leafcast_unneeded")
    load_without("leafcast_library", "leafcast_rare")
    found = loaded()
    assert (found.seen, found.other) == (None, None)
    assert importlib.import_module("leafcast_rare").__file__ is not None


def test_what_is_loaded_already_is_what_the_library_gets(library):
    there = importlib.import_module("leafcast_unneeded")
    load_without("leafcast_library", "leafcast_unneeded")
    assert loaded().seen is there
    assert sys.modules["leafcast_unneeded"] is there


def test_a_library_that_fails_leaves_nothing_behind(library):
    library.write_text(SEES + "raise ValueError(0)\n")
    load_without("leafcast_library", "leafcast_unneeded")
    with pytest.raises(ValueError, match="0"):
        loaded()
    assert "leafcast_unneeded" not in sys.modules


def test_the_import_system_is_as_before_once_the_library_is_loaded(library):
    before = list(sys.meta_path)
    for _ in range(2):
        load_without("leafcast_library", "leafcast_unneeded")
    assert len(sys.meta_path) == len(before) + 1
    loaded()
    load_without("leafcast_library", "leafcast_unneeded")
    assert sys.meta_path == before
