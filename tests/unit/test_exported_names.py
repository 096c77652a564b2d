"""What `leafcast` offers to programs: the names of its client, loaded when they are asked for."""

import inspect
import subprocess
import sys

import pytest

import leafcast
import leafcast.client


def test_leafcast_exports_just_what_its_client_does():
    assert leafcast.__all__ == leafcast.client.__all__
    for name in leafcast.__all__:
        assert getattr(leafcast, name) is getattr(leafcast.client, name)
    assert set(leafcast.__all__) <= set(dir(leafcast))


@pytest.mark.parametrize("name", leafcast.client.__all__)
def test_each_exported_name_says_what_it_is(name):
    assert inspect.getdoc(getattr(leafcast, name))


def test_each_method_of_a_tree_says_what_it_does_and_hides_no_type():
    methods = {
        name: method
        for name, method in vars(leafcast.Tree).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    assert {"apply", "causes", "destinations", "get", "wait", "watch", "why"} <= set(methods)
    for method in methods.values():
        assert inspect.getdoc(method)
        signature = inspect.signature(method)
        assert signature.return_annotation is not inspect.Signature.empty


def test_a_name_that_is_not_there_is_told_as_python_tells_it():
    with pytest.raises(AttributeError, match="module 'leafcast' has no attribute 'nonsense'"):
        leafcast.nonsense  # noqa: B018 - that it is asked for is what is tried


def test_who_imports_leafcast_loads_nothing_else_of_it():
    loaded = "import sys, leafcast; print([n for n in sys.modules if n.startswith('leafcast')])"
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['leafcast']\n"
