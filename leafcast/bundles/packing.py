"""A bundle is a tar of files that are packed already: any machine opens it, with nothing of ours.

The same files give the same bytes: names in order, no owner, one time. Its list of sums comes
first, so that whoever reads it knows from each file's first byte what it should be.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Final

from leafcast.bundles.keys import PrivateKey
from leafcast.bundles.sums import (
    FILES_MAX,
    INSTALLER,
    SIGNATURE,
    SUMS,
    BundleUnusable,
    is_bundle_name,
    sums_text,
)
from relay.atomic_file import sync_folder

_WHEEL = re.compile(r"leafcast-([0-9][A-Za-z0-9.+!]*)-py3-none-any\.whl")
FORMAT: Final = tarfile.GNU_FORMAT
_AT = 315_532_800
"""1980, as in wheels: of no file does the time count."""
_BUILD = "name the folder that `make dist` wrote"
BUNDLE_FILE: Final = "leafcast-bundle.tar"
"""What a bundle is called; one that lies among packages does not go into the next."""

_OF_FOLDER = frozenset({BUNDLE_FILE, SUMS, SIGNATURE})
"""What is of the folder as a whole: a bundle has sums of its own."""


class BundlePart(StrEnum):
    """What is large in a bundle, and may be left out of it."""

    IMAGES = "images"
    PACKAGES = "packages"


_LACKING = {
    BundlePart.IMAGES: (
        "it has no container images",
        "make bundle IMAGE=NAME puts one there, as docker save NAME | gzip > images/NAME.tar.gz",
    ),
    BundlePart.PACKAGES: (
        "it has no Debian package, and no wheels of what Leafcast needs",
        "make dist and make bundle put them there",
    ),
}


@dataclass(frozen=True, slots=True)
class Made:
    """A bundle that was written."""

    version: str
    files: int
    size: int
    sha256: str


def make_bundle(
    folder: Path, file: Path, key: PrivateKey | None, asked: frozenset[BundlePart] = frozenset()
) -> Made:
    """Write the files of a folder into one new file; with a key the list of sums is signed.

    What is asked for has to be there, and kinds that are not asked for stay out; nothing asked for
    is all that is there. It is written whole or not at all, and replaces nothing. Raises
    BundleUnusable.
    """
    _refuse_to_replace(file)
    found = _files(folder)
    version = _version(folder, found)
    found = _asked(folder, found, asked)
    installer = resources.files(__package__).joinpath(INSTALLER).read_bytes()
    sums = {name: file_sum(at) for name, at in found.items()}
    sums[INSTALLER] = hashlib.sha256(installer).hexdigest()
    said = sums_text(sums).encode()
    small = {SUMS: said}
    if key is not None:
        small[SIGNATURE] = key.sign(said)
    small[INSTALLER] = installer
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with draft.open("xb") as out:
            with tarfile.open(fileobj=out, mode="w", format=FORMAT) as tar:
                for name, data in small.items():
                    tar.addfile(entry_of(version, name, len(data)), io.BytesIO(data))
                for name, at in found.items():
                    with at.open("rb") as content:
                        tar.addfile(entry_of(version, name, at.stat().st_size), content)
            out.flush()
            os.fsync(out.fileno())
        # Unlike a move this replaces nothing that came meanwhile.
        os.link(draft, file)
        sync_folder(file.parent)
        return Made(version, len(sums), file.stat().st_size, file_sum(file))
    except FileExistsError:
        _refuse_to_replace(file)
        raise
    except OSError as error:
        why = error.strerror or str(error)
        raise BundleUnusable(file, why, "name another place: -o FILE") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def entry_of(version: str, name: str, size: int) -> tarfile.TarInfo:
    """How a file stands in a bundle: by its name and size alone."""
    entry = tarfile.TarInfo(f"leafcast-{version}/{name}")
    entry.size, entry.mtime = size, _AT
    entry.mode = 0o755 if name == INSTALLER else 0o644
    return entry


def _refuse_to_replace(file: Path) -> None:
    if os.path.lexists(file):
        raise BundleUnusable(file, "it is there already", "remove it, or name another: -o FILE")


def _asked(folder: Path, found: dict[str, Path], asked: frozenset[BundlePart]) -> dict[str, Path]:
    """What was asked for of these files; raises BundleUnusable where a kind has none."""
    kinds = {name: _kind(name) for name in found}
    for kind in BundlePart:
        if kind in asked and kind not in kinds.values():
            raise BundleUnusable(folder, *_LACKING[kind])
    wanted = {None, *(asked or BundlePart)}
    return {name: at for name, at in found.items() if kinds[name] in wanted}


def _kind(name: str) -> BundlePart | None:
    """What is large; the wheel of Leafcast, chart, sources and bills go with anything."""
    if name.startswith("images/"):
        return BundlePart.IMAGES
    return BundlePart.PACKAGES if name.startswith("wheels/") or name.endswith(".deb") else None


def _files(folder: Path) -> dict[str, Path]:
    """What is in a folder, by the names that it is to have; raises BundleUnusable."""
    found = dict[str, Path]()
    for at in sorted(folder.rglob("*")):
        name = at.relative_to(folder).as_posix()
        if (at.is_dir() and not at.is_symlink()) or name in _OF_FOLDER:
            continue
        if at.is_symlink() or not at.is_file():
            raise BundleUnusable(at, "it is no plain file", "take it out of the folder")
        if not is_bundle_name(name) or name == INSTALLER:
            raise BundleUnusable(at, "no file of a bundle has such a name", "rename it")
        found[name] = at
        if len(found) >= FILES_MAX:
            raise BundleUnusable(folder, f"it has {FILES_MAX:,} files or more", _BUILD)
    return found


def _version(folder: Path, names: dict[str, Path]) -> str:
    versions = [wheel[1] for name in names if (wheel := _WHEEL.fullmatch(name))]
    if len(versions) != 1:
        why = f"it has {len(versions)} wheels of Leafcast, and not one"
        raise BundleUnusable(folder, why, _BUILD)
    return versions[0]


def file_sum(at: Path) -> str:
    """The SHA-256 of a file, as lists of sums have it."""
    with at.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
