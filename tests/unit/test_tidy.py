"""The tree keeps the house rules: sizes, names, docstrings, links, complete public lists."""

import ast
import re
from collections.abc import Iterable, Iterator
from configparser import ConfigParser
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("schemas", "relay", "controllers", "leafcast")
CODE_FOLDERS = (*PACKAGES, "tests", "benchmarks")
SKIPPED_FOLDERS = {"__pycache__", "build", "dist", "node_modules"}
TEXT_SUFFIXES = {".py", ".md", ".toml", ".yaml", ".yml", ".conf", ".cfg", ".sh", ""}

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
CONSTRUCTOR_ARGUMENTS_MAX = 8
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "manager", "data"}
# Folders that nats-py's own package has: under our nats/ they would be grafted onto it.
NATS_PY_NAMES = {"server", "client", "jetstream", "js", "aio", "micro", "protocol", "key_value"}

# Put together here, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME")) + r")\b")
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]\n]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")


def files_under(*folders: str) -> Iterator[Path]:
    """All files of these folders, without hidden and built ones; those are not even entered."""
    for folder in folders:
        for path in sorted((ROOT / folder).iterdir()):
            if path.name.startswith(".") or path.name in SKIPPED_FOLDERS:
                continue
            if path.is_dir():
                yield from files_under(name(path))
            else:
                yield path


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def modules(*folders: str) -> list[Path]:
    return [path for path in files_under(*folders) if path.suffix == ".py"]


class Facts(NamedTuple):
    """What several tests ask of a module, so that each is parsed once."""

    docstring: str | None
    # Line, name and number of lines of each function.
    functions: tuple[tuple[int, str, int], ...]
    # Line, class and number of arguments of each constructor.
    constructors: tuple[tuple[int, str, int], ...]
    # Lines at which something is raised where a group is caught.
    raised_of_groups: tuple[int, ...]
    # What `__all__` lists, if it is there.
    declared: list[str] | None
    # What the top level defines for others; and that with what it imports.
    public: frozenset[str]
    bound: frozenset[str]


@cache
def facts_of(path: Path) -> Facts:
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    nodes = list(ast.walk(tree))
    bound = frozenset(public_names(tree, reexports=True))
    defined = bound if path.name == "__init__.py" else public_names(tree, reexports=False)
    return Facts(
        ast.get_docstring(tree),
        tuple(
            (node.lineno, node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ),
        tuple(constructors(nodes)),
        tuple(raised_of_groups(nodes)),
        declared_names(tree),
        frozenset(each for each in defined if not each.startswith("_")),
        bound,
    )


def constructors(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str, int]]:
    for holder in nodes:
        for node in holder.body if isinstance(holder, ast.ClassDef) else ():
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                taken = node.args
                count = len(taken.posonlyargs) + len(taken.args) + len(taken.kwonlyargs) - 1
                yield node.lineno, holder.name, count
        if isinstance(holder, ast.ClassDef) and any(map(is_for_state, holder.decorator_list)):
            yield holder.lineno, holder.name, sum(map(is_given, holder.body))


def is_for_state(decorator: ast.expr) -> bool:
    """Whether it makes a dataclass that changes; a frozen one is a value, with what it says."""
    said = ast.unparse(decorator)
    return said.startswith("dataclass") and "frozen=True" not in said


def is_given(node: ast.stmt) -> bool:
    """Whether it is a field of a dataclass that its constructor takes."""
    said = ast.unparse(node)
    return isinstance(node, ast.AnnAssign) and not re.search(r": ClassVar|\binit=False\b", said)


def raised_of_groups(nodes: Iterable[ast.AST]) -> Iterator[int]:
    for caught in nodes:
        for handler in caught.handlers if isinstance(caught, ast.TryStar) else ():
            yield from (it.lineno for it in ast.walk(handler) if isinstance(it, ast.Raise))


def none_of(faults: Iterable[str], rule: str) -> None:
    found = list(faults)
    if found:
        pytest.fail("\n  ".join([f"{rule}:", *found]), pytrace=False)


def test_files_stay_short():
    sizes = {path: len(path.read_text().splitlines()) for path in modules(*CODE_FOLDERS)}
    none_of(
        (f"{name(path)}: {size} lines" for path, size in sizes.items() if size > FILE_LINES_MAX),
        f"a file has at most {FILE_LINES_MAX} lines; split it by idea",
    )


def test_functions_fit_on_a_screen():
    def faults() -> Iterator[str]:
        for path in modules(*CODE_FOLDERS):
            for line, function, size in facts_of(path).functions:
                if size > FUNCTION_LINES_MAX:
                    yield f"{name(path)}:{line}: {function} has {size} lines"

    none_of(faults(), f"a function has at most {FUNCTION_LINES_MAX} lines")


def test_constructors_take_few_arguments():
    none_of(
        (
            f"{name(path)}:{line}: {holder} takes {count}"
            for path in modules(*PACKAGES)
            for line, holder, count in facts_of(path).constructors
            if count > CONSTRUCTOR_ARGUMENTS_MAX
        ),
        f"a constructor takes at most {CONSTRUCTOR_ARGUMENTS_MAX} arguments; give it values",
    )


def test_every_module_says_what_it_promises():
    none_of(
        (name(path) for path in modules(*PACKAGES) if not facts_of(path).docstring),
        "every module begins with a docstring",
    )


def test_modules_are_named_for_what_they_hold():
    none_of(
        (name(path) for path in modules(*PACKAGES) if path.stem in EMPTY_NAMES),
        "a module is named for a concept of the domain",
    )


def test_every_room_of_the_core_has_a_contract_and_lists_each_room_once():
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter")
    told = [{k: v.split() for k, v in contracts[name].items()} for name in contracts.sections()]
    rooms = {f"relay.core.{path.parent.name}" for path in (ROOT / "relay/core").glob("*/*.py")}
    bound = {it for each in told if "forbidden_modules" in each for it in each["source_modules"]}
    assert rooms <= bound
    lists = [each.get(k, []) for each in told for k in ("source_modules", "forbidden_modules")]
    assert all(len(listed) == len(set(listed)) for listed in lists)


def test_the_folder_nats_cannot_be_taken_for_the_library():
    def faults() -> Iterator[str]:
        for path in sorted((ROOT / "nats").rglob("*")):
            if path.suffix == ".py":
                yield f"{name(path)}: Python here becomes importable as part of nats-py"
            if path.is_dir() and path.name in NATS_PY_NAMES:
                yield f"{name(path)}/: a folder of this name hides a part of nats-py"

    none_of(faults(), "nats/ holds server configuration only")


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """The names by which links know the headings of a page."""
    plain = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    headings = re.findall(r"^#+ (.*)$", plain, re.MULTILINE)
    return frozenset(
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    )


def test_relative_links_in_documents_lead_somewhere():
    def faults() -> Iterator[str]:
        for path in files_under("."):
            if path.suffix != ".md":
                continue
            for target in LINK.findall(CODE.sub("", path.read_text(encoding="utf-8"))):
                if re.match(r"[a-z][a-z0-9+.-]*:", target):
                    continue
                file, _, anchor = target.partition("#")
                there = (path.parent / file) if file else path
                if not there.exists() or (anchor and anchor not in anchors_of(there)):
                    yield f"{name(path)}: {target}"

    none_of(
        faults(), "every relative link leads to a file that exists, and to a heading that it has"
    )


def test_nothing_is_raised_where_groups_are_caught():
    none_of(
        (
            f"{name(path)}:{line}"
            for path in modules(*CODE_FOLDERS)
            for line in facts_of(path).raised_of_groups
        ),
        "before Python 3.11.4 it comes out in a group; note it, and raise it after the block",
    )


def test_nothing_is_left_marked_as_unfinished():
    def faults() -> Iterator[str]:
        for path in files_under("."):
            if path.suffix not in TEXT_SUFFIXES:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                if UNFINISHED.search(line):
                    yield f"{name(path)}:{number}: {line.strip()}"

    none_of(faults(), "finish it, or say in the documents what is not there yet")


def public_names(tree: ast.Module, *, reexports: bool) -> Iterator[str]:
    """What a module's top level defines for others; a package's face also what it imports."""
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=assigned)):
                yield assigned
            case ast.ImportFrom(names=aliases) if reexports:
                yield from (alias.asname or alias.name for alias in aliases)
            case ast.If(test=ast.Attribute(attr="TYPE_CHECKING"), body=body) if reexports:
                # What a face loads only when it is asked for.
                yield from public_names(ast.Module(body, []), reexports=True)


def declared_names(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return list(ast.literal_eval(value))
    return None


def test_declared_public_lists_are_complete():
    def faults() -> Iterator[str]:
        for path in modules(*PACKAGES):
            facts = facts_of(path)
            if facts.declared is None:
                continue
            declared = set(facts.declared)
            yield from (f"{name(path)}: lacks {missing}" for missing in facts.public - declared)
            yield from (
                f"{name(path)}: names {extra}, which is not there"
                for extra in declared - facts.bound
            )

    none_of(sorted(faults()), "__all__ lists exactly what is public")
