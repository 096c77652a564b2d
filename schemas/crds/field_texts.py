"""What `kubectl explain` says of a field: the docstring under it, read from its model's source.

pydantic could read these itself, but would do so in each process that loads the models.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache

from pydantic import BaseModel


def field_texts(model: type[BaseModel]) -> Mapping[str, str]:
    """The text of each field that has one, by its alias, those of inherited fields too."""
    texts: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        texts |= _texts_of_module(owner.__module__).get(owner.__name__, {})
    aliases = {name: field.alias or name for name, field in model.model_fields.items()}
    return {aliases[name]: text for name, text in texts.items() if name in aliases}


@cache
def _texts_of_module(module: str) -> Mapping[str, Mapping[str, str]]:
    """The texts of all classes of a module, by class and attribute; none of who is not ours."""
    if not module.startswith(__name__.partition(".")[0]):
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: _texts_in(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _texts_in(node: ast.ClassDef) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for field, below in zip(node.body, node.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        match below:
            case ast.Expr(value=ast.Constant(value=str(text))):
                texts[field.target.id] = " ".join(text.split())
            case _:
                pass
    return texts
