"""Manifests as `-f` names them: files, folders, standard input; all of them read, or all faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leafcast.manifest_builds import CHART, TEMPLATES, built_from

if TYPE_CHECKING:
    from schemas.objects.manifest_files import LoadedObject

SUFFIXES = (".json", ".yaml", ".yml")
STDIN = "-"
STDIN_ORIGIN = "standard input"


class BadManifests(ValueError):
    """Manifests that cannot be used; `faults` say where, what and the remedy, a line each."""

    def __init__(self, faults: Sequence[str], loaded: Sequence[LoadedObject] = ()) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)
        # The objects that could be read nonetheless.
        self.loaded = tuple(loaded)


def read_manifests(
    paths: Sequence[str],
    read_stdin: Callable[[], str],
    *,
    recursive: bool,
    command: str = "leafcast apply -f -",
) -> list[LoadedObject]:
    """All objects, in the order of `paths` and, in a folder, of names; raises BadManifests.

    `command` takes what other programs build.
    """
    # To read YAML is loaded only by who has some to read.
    from schemas.objects.manifest_files import read_objects  # noqa: PLC0415

    loaded: list[LoadedObject] = []
    faults: list[str] = []
    for path in dict.fromkeys(paths):
        if "://" in path:
            faults.append(f"{path}: an address is not fetched; use `curl -L` in a pipe to `-f -`")
            continue
        try:
            for text, origin in _texts(path, read_stdin, recursive=recursive):
                if build := built_from(origin, text):
                    faults.append(f"{origin}: {build} | {command}")
                    continue
                objects, problems = read_objects(text, origin)
                loaded += objects
                faults += [str(problem) for problem in problems]
        except UnicodeDecodeError as error:
            faults.append(f"{path}: not UTF-8 text: {error.reason}; name manifests only")
        except OSError as error:
            faults.append(f"{error.filename or path}: {error.strerror}; name a file or folder")
    if faults:
        raise BadManifests(faults, loaded)
    if not loaded:
        raise BadManifests([_nothing(paths, recursive=recursive)])
    return loaded


def _texts(
    path: str, read_stdin: Callable[[], str], *, recursive: bool
) -> Iterator[tuple[str, str]]:
    if path == STDIN:
        yield read_stdin(), STDIN_ORIGIN
        return
    place = Path(path)
    if not place.is_dir():
        yield place.read_text(encoding="utf-8"), path
        return
    for file in sorted(place.rglob("*") if recursive else place.iterdir()):
        hidden = any(part.startswith(".") for part in file.relative_to(place).parts)
        if file.suffix in SUFFIXES and file.is_file() and not (hidden or _is_template(file, place)):
            yield file.read_text(encoding="utf-8"), str(file)


def _is_template(file: Path, place: Path) -> bool:
    """Whether it is part of a chart below the folder, of which is told once."""
    return any(
        folder.name == TEMPLATES and (folder.parent / CHART).is_file()
        for folder in file.parents
        if folder.is_relative_to(place) and folder != place
    )


def _nothing(paths: Sequence[str], *, recursive: bool) -> str:
    named = ", ".join(STDIN_ORIGIN if path == STDIN else path for path in paths)
    folders = [path for path in paths if path != STDIN and Path(path).is_dir()]
    remedy = "name YAML or JSON manifests of Kubernetes objects"
    if folders and not recursive:
        remedy += ", or look into the folders below with -R"
    return f"no objects in {named}; {remedy}"
