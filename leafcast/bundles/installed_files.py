"""Whether what is installed is what was brought: by the list that lies beside each package.

Such a list (RECORD) has the sum of each file. It is not signed: who may write here may write it,
too. What comes in is verified before, as a bundle, or as a release.
"""

from __future__ import annotations

import csv
import hashlib
import os
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

from schemas.values.faults import Unusable

LIST = "RECORD"
_OF_VIRTUALENV = frozenset({"_virtualenv.py", "_virtualenv.pth"})
"""What virtualenv and uv put into each environment that they make, and list nowhere."""


class NoFileList(Unusable):
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
        why = "what runs was not installed from a package, so there is no list of its files"
        raise NoFileList(folder, why, "a checkout is compared by git: git status")
    differences, known, count = list[ChangedFile](), set[Path](), 0
    for package in packages:
        brought = f"{package.metadata['Name']} {package.version}"
        if package.read_text(LIST) is None:
            differences.append(ChangedFile(folder, f"{brought} has no list of its files ({LIST})"))
        for file, digest in _listed(folder, package).items():
            known.add(file)
            if digest:
                count += 1
                if what := _difference(file, digest):
                    differences.append(ChangedFile(file, f"{what} ({brought})"))
    differences += (ChangedFile(it, "no package brought it") for it in _strange(folder, known))
    return Compared(count, len(packages), tuple(sorted(differences)))


def _listed(folder: Path, package: Distribution) -> dict[Path, str]:
    """Each file of its list, as `sha256=...`, or "" where there is none.

    As it is written: what importlib makes of it leaves out what is missing.
    """
    rows = csv.reader((package.read_text(LIST) or "").splitlines())
    pairs = ((*row, "")[:2] for row in rows if row)
    return {Path(os.path.normpath(folder / at)): digest for at, digest in pairs}


def _difference(file: Path, said: str) -> str:
    """How a file differs from its line of the list, or nothing."""
    kind, _, wanted = said.partition("=")
    try:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, kind).digest()
    except FileNotFoundError:
        return "it is missing"
    except (OSError, ValueError) as error:
        return f"it cannot be read: {error}"
    is_same = urlsafe_b64encode(digest).rstrip(b"=").decode() == wanted
    return "" if is_same else "it was changed"


def _strange(folder: Path, known: set[Path]) -> Iterator[Path]:
    """What lies there and is in no list, but for what Python made of the sources itself."""
    for place, _, names in os.walk(folder):
        at = Path(place)
        for name in names:
            file = at / name
            source = at.parent / f"{name.partition('.')[0]}.py"
            is_made = at.name == "__pycache__" and source in known
            is_usual = at == folder and name in _OF_VIRTUALENV
            if file not in known and not is_made and not is_usual:
                yield file
