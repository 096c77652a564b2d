"""Finds what opens bytes or text that came from elsewhere, so that none is left unfuzzed."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("schemas", "relay", "controllers", "leafcast")

NAMED = re.compile(r"_?(decode|parse|read|load|open|unpack|from)(_\w+)?\Z|\w+_(from|named)\Z")
"""Functions that are called like decoders. Where they wait for something, others decode."""
OPENERS = frozenset(
    {
        "b32decode",
        "b64decode",
        "decode_seed",
        "decompress",
        "frame_content_size",
        "from_json",
        "fromhex",
        "fromisoformat",
        "loads",
        "model_validate",
        "read_bytes",
        "read_text",
        "unpack",
        "unpackb",
    }
)
"""And those that call one of these, whatever they are called."""


def decoders() -> Iterator[str]:
    """Each as `path::Class.function`."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for name, function in _functions(tree, ""):
                if _is_decoder(function):
                    yield f"{path}::{name}"


def _functions(
    node: ast.AST, within: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for inner in ast.iter_child_nodes(node):
        match inner:
            case ast.ClassDef(name=name):
                yield from _functions(inner, f"{within}{name}.")
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield within + inner.name, inner


def _is_decoder(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    arguments = [it.arg for it in function.args.args if it.arg not in ("self", "cls")]
    named = isinstance(function, ast.FunctionDef) and NAMED.match(function.name)
    if named and arguments and not _is_declared_only(function):
        return True
    calls = (it.func for it in ast.walk(function) if isinstance(it, ast.Call))
    return any(_called(it) in OPENERS for it in calls)


def _is_declared_only(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Of a Protocol: its body is its docstring, and dots."""
    return all(
        isinstance(it, ast.Expr) and isinstance(it.value, ast.Constant) for it in function.body
    )


def _called(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def reached(run: Callable[[], None]) -> set[str]:
    """The functions of ours that a run calls, each as `decoders` names it."""
    codes: set[tuple[str, str]] = set()

    def see(frame, event, argument):
        if event == "call":
            codes.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    _forget()
    before = sys.getprofile()
    sys.setprofile(see)
    try:
        run()
    finally:
        sys.setprofile(before)
    ours = f"{ROOT}/"
    return {f"{file.removeprefix(ours)}::{name}" for file, name in codes if file.startswith(ours)}


def _forget() -> None:
    """What a cache knows already would not be called."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in PACKAGES:
            for held in list(vars(module).values()):
                if callable(clear := getattr(held, "cache_clear", None)):
                    clear()
