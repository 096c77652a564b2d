"""No part of a node writes another part's fields, or reads what that one may still change.

Parts are the classes of `relay.core` that hold state; values (frozen records, events, enums,
errors) have fields for all. A part asks another by its methods and properties. What it reads of
another one is a value, such as a number or a frozen record, and never that one's tables or the
records in them.
Within a room the parts that make one thing up know each other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "relay" / "core"
VALUES = {"Value", "NamedTuple", "Enum", "IntEnum", "StrEnum", "Protocol", "WireRecord"}
HANDED_OUT = {"Standings"}
"""What the judge says of a snapshot: whoever asks reads it, as it was when it was said."""
TABLES = ("dict", "list", "set", "deque", "defaultdict", "Counter", "OrderedDict")


@dataclass
class Part:
    """A class with state: what it offers, its fields, and the classes of what it holds."""

    room: str
    tree: ast.ClassDef
    offered: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)
    # Those of them that hold tables.
    tables: set[str] = field(default_factory=set)
    types: dict[str, str] = field(default_factory=dict)


def room_of(path: Path) -> str:
    """The folder of a module; of one that lies in none its own name."""
    inner = path.relative_to(CORE)
    return inner.parts[0] if len(inner.parts) > 1 else inner.stem


def classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    for path in sorted(CORE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                yield path, node


def is_value(tree: ast.ClassDef) -> bool:
    bases = {ast.unparse(base).split("[")[0] for base in tree.bases}
    frozen = any("frozen=True" in ast.unparse(each) for each in tree.decorator_list)
    errors = any(base.endswith(("Error", "Exception")) for base in bases)
    return bool(bases & VALUES) or frozen or errors


def read_parts() -> dict[str, Part]:
    found = {tree.name: Part(room_of(path), tree) for path, tree in classes() if not is_value(tree)}
    for part in found.values():
        learn(part, found)
    rooms = next(tree for _, tree in classes() if tree.name == "Rooms")
    given = {
        each.target.id: class_of(each.annotation, found)
        for each in rooms.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    for part in found.values():
        for name, _, source in assigned(part.tree):
            if isinstance(source, ast.Attribute) and ast.unparse(source.value) == "rooms":
                part.types.setdefault(name, given.get(source.attr, ""))
    inherit(found)
    return found


def inherit(found: dict[str, Part]) -> None:
    for part in found.values():
        for base in map(ast.unparse, part.tree.bases):
            if base in found:
                part.offered |= found[base].offered
                part.types = {**found[base].types, **part.types}


def learn(part: Part, found: dict[str, Part]) -> None:
    """What a class offers, and of what class its fields are, as far as its text says."""
    for each in part.tree.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            learn_method(part, each, found)
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            learn_field(part, each.target.id, each.annotation, each.value, found)
    for name, annotation, source in assigned(part.tree):
        learn_field(part, name, annotation, source, found)


def learn_method(
    part: Part, method: ast.FunctionDef | ast.AsyncFunctionDef, found: dict[str, Part]
) -> None:
    part.offered.add(method.name)
    if method.returns is not None:
        part.types.setdefault(f"{method.name}()", class_of(method.returns, found))
    for each in (*method.args.args, *method.args.kwonlyargs):
        if each.annotation is not None:
            part.types[f"{method.name}:{each.arg}"] = class_of(each.annotation, found)


def learn_field(
    part: Part,
    name: str,
    annotation: ast.expr | None,
    source: ast.expr | None,
    found: dict[str, Part],
) -> None:
    part.fields.add(name)
    note_table(part, name, annotation, source)
    if annotation is not None:
        part.types[name] = class_of(annotation, found)
    match source:
        case ast.Call(func=ast.Name(id=made)) if made in found:
            part.types[name] = made
        case ast.Name(id=argument) if f"__init__:{argument}" in part.types:
            part.types[name] = part.types[f"__init__:{argument}"]


def note_table(part: Part, name: str, annotation: ast.expr | None, source: ast.expr | None) -> None:
    """Note that a field holds a table, as its annotation or what is assigned to it says."""
    said = ast.unparse(annotation or source or ast.Constant(None))
    if said.startswith(TABLES) or isinstance(source, ast.Dict | ast.List | ast.Set):
        part.tables.add(name)


def assigned(tree: ast.ClassDef) -> Iterator[tuple[str, ast.expr | None, ast.expr | None]]:
    """The fields of `self` that a class assigns to, their annotations, and what it assigns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and is_own(node.target):
            assert isinstance(node.target, ast.Attribute)
            yield node.target.attr, node.annotation, node.value
        for pair in pairs(node):
            if is_own(pair[0]):
                assert isinstance(pair[0], ast.Attribute)
                yield pair[0].attr, None, pair[1]


def pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def is_own(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def class_of(annotation: ast.expr, found: dict[str, Part]) -> str:
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)} & found.keys()
    return min(names) if len(names) == 1 else ""


def reaches(parts: dict[str, Part]) -> Iterator[str]:
    """Each place where a part reaches into a part of another room."""
    for name, part in sorted(parts.items()):
        for method in part.tree.body:
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                for node, owner in typed(method, name, parts):
                    other = parts[owner]
                    if other.room != part.room and is_reach(node, other, owner):
                        yield f"{name}.{method.name}: {ast.unparse(node)}"


def is_reach(node: ast.Attribute, other: Part, owner: str) -> bool:
    if node.attr not in other.fields or node.attr in other.offered:
        return False
    if not isinstance(node.ctx, ast.Load):
        return True
    # Of a record that may change each field may be another the next time.
    is_record = bool(other.tree.decorator_list)
    return owner not in HANDED_OUT and (is_record or node.attr in other.tables)


@dataclass
class Names:
    """The classes of what the names of one method stand for, as far as its text says."""

    parts: dict[str, Part]
    known: dict[str, str]

    def type_of(self, node: ast.expr) -> str:
        """The part that an expression gives; "" if that is none, or if nothing tells."""
        match node:
            case ast.Name(id=name):
                return self.known.get(name, "")
            case ast.Attribute(value=value, attr=attr):
                return self._member(value, attr) or self._member(value, f"{attr}()")
            case ast.Call(func=ast.Attribute(value=value, attr="get" | "pop")):
                return self.type_of(value)
            case ast.Call(func=ast.Attribute(value=value, attr=attr)):
                return self._member(value, f"{attr}()")
            case ast.Subscript(value=value):
                return self.type_of(value)
            case _:
                return ""

    def _member(self, value: ast.expr, name: str) -> str:
        owner = self.parts.get(self.type_of(value))
        return owner.types.get(name, "") if owner is not None else ""


def typed(
    method: ast.FunctionDef | ast.AsyncFunctionDef, name: str, parts: dict[str, Part]
) -> Iterator[tuple[ast.Attribute, str]]:
    """The attributes that a method takes of parts, with the classes of these."""
    types, arguments = parts[name].types, (*method.args.args, *method.args.kwonlyargs)
    given = {each.arg: types.get(f"{method.name}:{each.arg}", "") for each in arguments}
    names = Names(parts, {**given, "self": name})
    for node in ast.walk(method):
        for target, value in pairs(node):
            if isinstance(target, ast.Name) and (known := names.type_of(value)):
                names.known[target.id] = known
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and (owner := names.type_of(node.value)) in parts:
            yield node, owner


def test_no_part_takes_a_field_of_another_room_s_part():
    assert sorted(set(reaches(read_parts()))) == []


def test_a_planted_reach_is_seen(monkeypatch, tmp_path):
    room = tmp_path / "link"
    room.mkdir()
    (tmp_path / "rooms.py").write_text("class Rooms:\n    children: Children\n")
    (room / "children.py").write_text(
        "class Children:\n    def __init__(self):\n        self.refused = 0\n"
        "        self.by_name: dict[str, Child] = {}\n"
        "    def note(self):\n        self.refused += 1\n"
        "class Child:\n    has_copies: bool = False\n"
    )
    (tmp_path / "downstream.py").write_text(
        "class Downstream:\n    def __init__(self, rooms):\n"
        "        self._children = rooms.children\n"
        "    def write(self):\n        self._children.refused += 1\n"
        "    def take(self, name):\n        child = self._children.by_name[name]\n"
        "        child.has_copies = True\n"
        "    def ask(self):\n        self._children.note()\n"
    )
    monkeypatch.setattr("tests.unit.test_parts_of_a_node.CORE", tmp_path)
    assert sorted(set(reaches(read_parts()))) == [
        "Downstream.take: child.has_copies",
        "Downstream.take: self._children.by_name",
        "Downstream.write: self._children.refused",
    ]
