"""Whether what is installed is what was brought: by the list that lies beside each package.

Such a list (RECORD) has the sum of each file. It is not signed: who may write here may write it,
too. What comes in is verified before, as a bundle, or as a release.

This file imports nothing but the standard library, and runs as a program of its own: what it looks
at, it does not load.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import marshal
import os
import re
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path
from types import CodeType

LIST = "RECORD"
_OF_VIRTUALENV = frozenset({"_virtualenv.py", "_virtualenv.pth", "pipx_shared.pth"})
"""What virtualenv, uv and pipx put into each environment that they make, and list nowhere."""
_OF_PIPX = b" -E\n"
"""How pipx ends the first line of a program: it reads no variables of Python then."""
_OF_ENVIRONMENT = "pyvenv.cfg"
_PROGRAM = re.compile(
    r"(python|pypy)w?[\d.]*t?|\U0001d70bthon|pip-?[\d.]*|(de)?[Aa]ctivate(_this)?(\.\w+)?|pydoc\.bat"
)
"""What venv, virtualenv and uv put beside the programs of packages, and list nowhere."""
_UNSUMMED = frozenset({LIST, f"{LIST}.jws", f"{LIST}.p7s"})
"""What a list says no sum of: itself, and who signed it."""
_ISOLATED = ("-I", "-S", "-B", "-W", "ignore", "-X", f"pycache_prefix={os.devnull}")
"""No variables of Python, no site-packages and what starts with them, nothing compiled before."""
_CACHE, _HEADER_BYTES, _CHECKED = "__pycache__", 16, 0b11
_LEVELS = {"": 0, "opt-1": 1, "opt-2": 2}
_OF_CODE = (
    "argcount",
    "cellvars",
    "code",
    "exceptiontable",
    "firstlineno",
    "flags",
    "freevars",
    "kwonlyargcount",
    "name",
    "names",
    "nlocals",
    "posonlyargcount",
    "qualname",
    "stacksize",
    "varnames",
)
"""What makes out a code object, but for where its source lay, and its lines in tracebacks."""
_SHOWN_MAX = 20


class NoFileList(Exception):
    """There is no list of what runs; says why, and what to do."""


@dataclass(frozen=True, slots=True, order=True)
class ChangedFile:
    """A file that is not as it was brought."""

    file: Path
    what: str


@dataclass(frozen=True, slots=True)
class Compared:
    """What was compared, and what differs, by name."""

    files: int
    packages: int
    differences: tuple[ChangedFile, ...]


def compare_installed(running: Path, name: str = "leafcast") -> Compared:
    """Compare all packages of the environment in which a package lies; raises NoFileList.

    `running` is the folder that this package was loaded from: each other one beside it counts.
    """
    folder = running.parent
    packages = tuple(Distribution.discover(path=[str(folder)]))
    own = next((one for one in packages if one.metadata["Name"] == name), None)
    if own is None or running / "__init__.py" not in _listed(folder, own):
        why = f"{folder}: what runs was not installed from a package, so there is no list of its "
        raise NoFileList(f"{why}files; a checkout is compared by git: git status")
    differences, known, count = list[ChangedFile](), set[Path](), 0
    for package in packages:
        brought = f"{package.metadata['Name']} {package.version}"
        if package.read_text(LIST) is None:
            differences.append(ChangedFile(folder, f"{brought} has no list of its files ({LIST})"))
        for file, digest in _listed(folder, package).items():
            if not digest and _is_compiled(file, folder):
                # It is compared with its source, as one that is in no list.
                continue
            known.add(file)
            count += bool(digest)
            if what := _difference(file, digest):
                differences.append(ChangedFile(file, f"{what} ({brought})"))
    differences += (*_strange(folder, known), *_strange_programs(_bin_of(folder, own), known))
    return Compared(count, len(packages), tuple(sorted(differences)))


def _listed(folder: Path, package: Distribution) -> dict[Path, str]:
    """Each file of its list, as `sha256=...`, or "" where there is none.

    As it is written: what importlib makes of it leaves out what is missing.
    """
    rows = csv.reader((package.read_text(LIST) or "").splitlines())
    pairs = ((*row, "")[:2] for row in rows if row)
    return {Path(os.path.normpath(folder / at)): digest for at, digest in pairs}


def _is_compiled(file: Path, folder: Path) -> bool:
    """Whether it is what Python made of a source as that was installed.

    Where PYTHONPYCACHEPREFIX was set that lies elsewhere, and is not what is loaded without it.
    """
    return file.parent.name == _CACHE or (file.suffix == ".pyc" and folder not in file.parents)


def _difference(file: Path, said: str) -> str:
    """How a file differs from its line of the list, or nothing."""
    if file.is_symlink():
        # What it leads to may change later; no wheel has one.
        return "a link lies in its place"
    if not said:
        is_usual = file.name in _UNSUMMED and file.parent.suffix == ".dist-info"
        return "" if is_usual else "the list has no sum of it"
    kind, _, wanted = said.partition("=")
    try:
        with file.open("rb") as opened:
            digests = {hashlib.file_digest(opened, kind).digest()}
            opened.seek(0)
            if opened.read(2) == b"#!":
                opened.seek(0)
                first, rest = opened.readline(), opened.read()
                digests.add(hashlib.new(kind, first.replace(_OF_PIPX, b"\n") + rest).digest())
    except FileNotFoundError:
        return "it is missing"
    except (OSError, ValueError) as error:
        return f"it cannot be read: {error}"
    sums = {urlsafe_b64encode(digest).rstrip(b"=").decode() for digest in digests}
    return "" if wanted in sums else "it was changed"


def _strange(folder: Path, known: set[Path]) -> Iterator[ChangedFile]:
    """What lies there and is in no list, but for what Python made of the sources itself."""
    for place, folders, names in os.walk(folder):
        at = Path(place)
        # What they lead to would be looked at nowhere.
        links = [name for name in folders if (at / name).is_symlink()]
        for name in (*names, *links):
            file = at / name
            is_usual = at == folder and name in _OF_VIRTUALENV
            if file in known or is_usual:
                continue
            source = at.parent / f"{name.partition('.')[0]}.py"
            if at.name != _CACHE or source not in known:
                yield ChangedFile(file, "no package brought it")
            elif what := _compiled_otherwise(file, source):
                yield ChangedFile(file, what)


def _bin_of(folder: Path, own: Distribution) -> Path | None:
    """Where the programs of this environment lie; None if it has no such folder of its own."""
    found = (file.parent for file in _listed(folder, own) if file.parent.name == "bin")
    place = next(found, None)
    return place if place and (place.parent / _OF_ENVIRONMENT).is_file() else None


def _strange_programs(place: Path | None, known: set[Path]) -> Iterator[ChangedFile]:
    """What lies there and is in no list, but for what each environment has."""
    for file in sorted(place.iterdir()) if place and place.is_dir() else ():
        is_folder = file.is_dir() and not file.is_symlink()
        if file not in known and not is_folder and not _PROGRAM.fullmatch(file.name):
            yield ChangedFile(file, "no package brought it")


def _compiled_otherwise(file: Path, source: Path) -> str:
    """How what lies there as compiled differs from what its source compiles to, or nothing.

    Whatever says when it was made: who changes one says that, too.
    """
    match file.name.split("."):
        case [_, sys.implementation.cache_tag, *level, "pyc"] if ".".join(level) in _LEVELS:
            optimize = _LEVELS[".".join(level)]
        case _:
            return "no package brought it, and this Python did not make it"
    try:
        data, text = file.read_bytes(), source.read_bytes()
    except OSError as error:
        return f"it cannot be read: {error}"
    flags = int.from_bytes(data[4:8], "little")
    if data[:4] != importlib.util.MAGIC_NUMBER or flags & ~_CHECKED:
        return "this Python did not make it"
    try:
        made = compile(text, str(source), "exec", dont_inherit=True, optimize=optimize)
        is_same = _form(marshal.loads(data[_HEADER_BYTES:])) == _form(made)  # noqa: S302 - not run
    except (ValueError, TypeError, EOFError, SyntaxError, RecursionError, MemoryError):
        is_same = False
    return "" if is_same else f"it is not what {source.name} compiles to"


def _form(value: object) -> object:
    """A constant of a program, to be compared with its kind: 0 is not False, and not 0.0."""
    match value:
        case CodeType():
            said = (getattr(value, f"co_{name}") for name in _OF_CODE)
            return ("code", *said, *map(_form, value.co_consts))
        case tuple():
            return ("tuple", *map(_form, value))
        case frozenset():
            return ("frozenset", frozenset(map(_form, value)))
        case slice():
            return ("slice", *map(_form, (value.start, value.stop, value.step)))
        case float() | complex():
            return (type(value).__name__, repr(value))
        case _:
            return (type(value).__name__, value)


def say_compared(running: Path) -> int:
    """Compare in a Python of its own, which loads nothing of what it compares; its exit code."""
    words = (sys.executable, *_ISOLATED, __file__, str(running))
    code = subprocess.run(words, check=False).returncode  # noqa: S603 - this Python
    if code not in (0, 1):
        _tell(f"comparing ended with {code}: what lies there ends Python")
    return code and 1


def _tell(text: str) -> None:
    """Say an error; names of files in it cannot steer a terminal."""
    plain = (it if it.isprintable() else it.encode("unicode_escape").decode() for it in text)
    sys.stderr.write(f"error: {''.join(plain)}\n")


def _main(running: str) -> int:
    try:
        found = compare_installed(Path(running))
    except NoFileList as error:
        _tell(f"{error}")
        return 1
    for one in found.differences[:_SHOWN_MAX]:
        _tell(f"{one.file}: {one.what}")
    if more := len(found.differences[_SHOWN_MAX:]):
        _tell(f"and {more} more")
    if found.differences:
        _tell("install the release anew, from what you verified")
        return 1
    sys.stdout.write(f"{found.files} files of {found.packages} packages are what was installed\n")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
