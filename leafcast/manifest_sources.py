"""Manifests as `-f` names them: files, folders, standard input; all of them read, or all faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schemas.objects.manifest_files import LoadedObject


SUFFIXES = (".json", ".yaml", ".yml")
STDIN = "-"
STDIN_ORIGIN = "standard input"
_KUSTOMIZE_GROUP = "kustomize.config.k8s.io/"
_CHART_FIELDS = frozenset({"apiVersion", "name", "version"})
CHART = "Chart.yaml"
TEMPLATES = "templates"


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


def built_from(origin: str, text: str) -> str:
    """What such a file is, and how its manifests are made; empty for a file of manifests."""
    file = PurePath(origin)
    stem, named = file.stem, file.suffix in (".yaml", ".yml")
    folder = str(file.parent)
    if _KUSTOMIZE_GROUP in text or (named and stem in ("kustomization", "Chart", "values")):
        root = _root(text, origin)
        if str(root.get("apiVersion", "")).startswith(_KUSTOMIZE_GROUP) or (
            stem == "kustomization" and not _is_typed(root)
        ):
            return f"Kustomize builds objects from it: kubectl kustomize {folder}"
        if stem == "Chart" and "kind" not in root and root.keys() >= _CHART_FIELDS:
            return f"a Helm chart: helm template NAME {folder}"
        if stem == "values" and not _is_typed(root):
            return f"values of a Helm chart: helm template NAME CHART -f {origin}"
    return ""


def _root(text: str, origin: str) -> Mapping[str, Any]:
    """The first document; nothing if it cannot be read, or is no mapping."""
    # To read YAML is loaded only by who has some to read.
    from schemas.objects.yaml_documents import InvalidManifest, read_documents  # noqa: PLC0415

    try:
        document = next(read_documents(text, origin), None)
    except InvalidManifest:
        return {}
    return document.root if document is not None and isinstance(document.root, dict) else {}


def _is_typed(root: Mapping[str, Any]) -> bool:
    return "apiVersion" in root and "kind" in root
