"""A public name of a class or of a type stands for one thing in the whole product."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("schemas", "relay", "controllers", "leafcast")
DEFINED_TWICE: dict[str, str] = {}
"""Names that two modules define as two things nevertheless, and why."""


def names_in(module: str, text: str):
    """The public classes and types that a module defines at its top, each with what it stands for.

    A class stands for itself. Two modules that call one type by one name mean the same. A variable
    for types has no meaning outside its module.
    """
    for node in ast.parse(text).body:
        match node:
            case ast.ClassDef(name=name):
                meaning = f"class of {module}"
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_type(value):
                meaning = meaning_of(value)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                meaning = meaning_of(node.value)
            case _:
                continue
        if name[0].isupper() and not name.isupper():
            yield name, meaning


def is_type(value: ast.expr) -> bool:
    return not ast.unparse(value).startswith(("TypeVar(", "ParamSpec("))


def meaning_of(value: ast.expr) -> str:
    """A type's own text; whoever only reads a mapping may say so."""
    return ast.unparse(value).replace("dict[", "Mapping[")


def meanings_in(modules: dict[str, str]) -> dict[str, set[str]]:
    """By name what it stands for."""
    meanings = defaultdict(set)
    for module, text in modules.items():
        for name, meaning in names_in(module, text):
            meanings[name].add(meaning)
    return meanings


def ambiguous(meanings: dict[str, set[str]]) -> set[str]:
    return {name for name, meant in meanings.items() if len(meant) > 1}


def test_no_name_stands_for_two_classes_or_types():
    meanings = meanings_in(
        {
            str(path.relative_to(ROOT)): path.read_text()
            for top in PRODUCT
            for path in sorted((ROOT / top).rglob("*.py"))
        }
    )
    assert len(meanings) > 1000
    assert ambiguous(meanings) == DEFINED_TWICE.keys()


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ("class Slot: pass", "class Slot: pass"),
        ("class Slot: pass", "Slot = tuple[str, int]"),
        ("Slot = tuple[str, int]", "Slot = tuple[str, str]"),
        ("Slot: TypeAlias = str", "Slot = NewType('Slot', bytes)"),
    ],
)
def test_a_second_meaning_is_seen(one, another):
    assert ambiguous(meanings_in({"one": one, "another": another})) == {"Slot"}


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ("Json = dict[str, Any]", "Json = Mapping[str, Any]"),
        ("T = TypeVar('T')", "class T: pass"),
        ("class _Slot: pass", "class _Slot: pass"),
    ],
)
def test_one_meaning_is_none_too_many(one, another):
    assert ambiguous(meanings_in({"one": one, "another": another})) == set()
