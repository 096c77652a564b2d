"""A public class name stands for one thing in the whole product."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("schemas", "relay", "controllers", "leafcast")
DEFINED_TWICE: dict[str, str] = {}
"""Names that two modules define nevertheless, and why."""


def definitions() -> dict[str, list[str]]:
    """By public name of a class, the modules that define one at their top."""
    modules = defaultdict(list)
    for top in PRODUCT:
        for path in sorted((ROOT / top).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    modules[node.name].append(str(path.relative_to(ROOT)))
    return modules


def test_no_two_modules_define_a_class_of_one_name():
    found = definitions()
    assert len(found) > 1000
    assert {name: paths for name, paths in found.items() if len(paths) > 1}.keys() == (
        DEFINED_TWICE.keys()
    )
