"""`leafcast upgrade`: which release of Leafcast the nodes run, by waves."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from leafcast.ask.session import CallFailed, Session
from leafcast.changes.forms import ApplyBatch
from leafcast.cli.command_group import CommandGroup
from leafcast.cli.commands.apply import apply_all
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.objects import refuse
from leafcast.cli.options.output import Output, output_options
from leafcast.cli.options.release_limits import ReleaseLimits, limit_options
from leafcast.cli.printing import show, watch
from leafcast.cli.session_calls import in_session
from leafcast.data_dir import DataDir
from leafcast.manifest_sources import BadManifests
from leafcast.show.upgrade_notes import plan_notes
from leafcast.show.upgrade_tables import planned_view, upgrades_view
from relay.atomic_file import DRAFT, make_folder, move_file
from schemas.objects.manifest_files import LoadedObject
from schemas.releases.release_folder import PIECES
from schemas.releases.release_folder import RELEASES as FOLDER
from schemas.releases.release_manifest import Piece, ReleaseManifest, read_manifest
from schemas.releases.release_phases import (
    UNDER_WAY,
    accepted_manifests,
    has_ended,
    takes_back,
)
from schemas.releases.release_refused import ReleaseRefused
from schemas.releases.release_version import check_version
from schemas.values.groups import RELEASES
from schemas.values.names import LABEL_MAX, label_key_fault, label_value_fault
from schemas.values.wording import some_of

WAVES = "canary,10%,100%"
NAMED_MAX = 3
"""So many files are named at most."""
_NO_NAME = re.compile(r"[^a-z0-9-]+")
"""What labels may have, and the name of a wave may not."""


def _checked_version(_context: click.Context, _parameter: click.Parameter, said: str) -> str:
    """The version, if it is one; raises UsageError."""
    try:
        return check_version(said, "VERSION")
    except ReleaseRefused as refused:
        raise click.UsageError(str(refused)) from refused


_version = click.argument("version")
_new_version = click.argument("version", callback=_checked_version)
_WAVES_HELP = "In order: a share such as 10%, a label that SyncTargets have, or KEY=VALUE."
_waves_option = click.option(
    "--waves", help=f"{_WAVES_HELP}  [default: as it was let out before, or {WAVES}]"
)
_path_option = click.option(
    "--path", help="At and below it.  [default: as it was let out before, or /]"
)


@click.group(cls=CommandGroup)
def upgrade() -> None:
    """Have the nodes of the tree run another release of Leafcast, by waves.

    A node takes only what the publisher signed whom its owner pinned, and needs a launcher for it.
    """


@upgrade.command()
@_new_version
@_waves_option
@_path_option
@click.option(
    "--manifest",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The signed manifest.  [default: that of the release, if it was let out]",
)
@output_options
@data_dir_option
def plan(
    version: str,
    waves: str | None,
    path: str | None,
    manifest: Path | None,
    *,
    output: Output,
    data_dir: Path | None,
) -> None:
    """Show whom each wave would admit, when the centre goes, and what runs now.

    Nothing is changed. What `leafcast upgrade start` would refuse by who signed it is refused.
    """
    new = _asked(version, waves, path, manifest)

    async def ask(session: Session) -> Any:
        listed = await releases(session)
        spec = spec_to_plan(version, new, listed)
        text, form = str(spec.get("manifest", "")), spec["waves"]
        if text:
            check_publisher(_source(manifest), text, data_dir, listed)
        found = await session.call(
            "upgrades", waves=form, path=spec["path"], version=version, manifest=text
        )
        found = {**found, "version": version, "path": spec["path"]}
        return {**found, "notes": plan_notes(_upgrades_from(text), form, found, listed)}

    show(data_dir, ask, planned_view, output)


@upgrade.command()
@_new_version
@click.option(
    "--manifest",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The signed manifest, as `leafcast release sign` left it.  [default: that of the release, "
    "if it was let out, with its waves and all else]",
)
@click.option(
    "--pieces",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder with its wheels.  [default: those that the centre has]",
)
@_waves_option
@_path_option
@limit_options
@data_dir_option
def start(
    version: str,
    manifest: Path | None,
    pieces: Path | None,
    waves: str | None,
    path: str | None,
    limits: ReleaseLimits,
    data_dir: Path | None,
) -> None:
    """Let a release out: relays before the edges below them, wave by wave.

    One that went out before begins anew, also if that takes nodes back from a newer one: then its
    version is enough.
    """
    new = {**_asked(version, waves, path, manifest), **limits.spec}
    listed = in_session(data_dir, releases)
    spec = spec_to_begin(version, new, limits.waves, listed)
    check_publisher(_source(manifest), str(spec["manifest"]), data_dir, listed)
    give_pieces(_said_by(spec), pieces, DataDir.at(data_dir).folder / FOLDER / PIECES)
    _apply(data_dir, {"metadata": {"name": name_of(version)}, "spec": spec})


@upgrade.command()
@click.option("-w", "--watch", "stays", is_flag=True, help="Go on until Ctrl-C.")
@output_options
@data_dir_option
def status(*, stays: bool, output: Output, data_dir: Path | None) -> None:
    """Show how far each release is, wave by wave, and who could not take it."""
    (watch if stays else show)(data_dir, releases, upgrades_view, output, _names)


def _steer(name: str, change: Mapping[str, bool], help_text: str) -> None:
    def steer(version: str, data_dir: Path | None) -> None:
        async def found(session: Session) -> Any:
            return await release_named(session, version)

        _apply_spec(data_dir, in_session(data_dir, found), change)

    upgrade.command(name, help=help_text)(_version(data_dir_option(steer)))


_steer("pause", {"paused": True}, "Let nothing more begin. Who began goes on.")
_steer("resume", {"paused": False}, "Go on with a release that is paused.")
_steer("abort", {"aborted": True}, "End it. Who runs the release already goes on with it.")


@upgrade.command()
@_version
@data_dir_option
def retry(version: str, data_dir: Path | None) -> None:
    """Have who went back or refused it try a release once more, as far as its waves are open."""

    async def found(session: Session) -> Any:
        obj = await release_named(session, version)
        check_takes_nobody_back(obj, await releases(session))
        return obj

    obj = in_session(data_dir, found)
    _apply_spec(data_dir, obj, {"attempt": obj["spec"].get("attempt", 0) + 1})


async def releases(session: Session) -> list[Any]:
    """All LeafcastReleases, by name."""
    listing = await session.workloads.list(*RELEASES)
    return sorted(listing.objects, key=lambda obj: str(obj["metadata"]["name"]))


async def release_named(session: Session, version: str) -> Any:
    """The LeafcastRelease of a version; raises CallFailed."""
    listed = await releases(session)
    for obj in listed:
        if version in (obj["spec"]["version"], obj["metadata"]["name"]):
            return obj
    known = ", ".join(str(obj["spec"]["version"]) for obj in listed)
    remedy = f"there are: {known}" if known else "let one out: leafcast upgrade start VERSION"
    raise CallFailed("upgrade", "NotFound", f"no release {version} goes out", remedy)


def check_takes_nobody_back(obj: Any, listed: Sequence[Any]) -> None:
    """Raise CallFailed if to try a release once more would take the tree back to it."""
    version = obj["spec"]["version"]
    if (obj.get("status") or {}).get("phase") in UNDER_WAY:
        return
    for other in listed:
        newer = other["spec"]["version"]
        if takes_back(version, newer, other.get("status") or {}):
            remedy = f"to go back: leafcast upgrade start {version}"
            said = f"{version} does not go out now, and {newer} did, which is newer"
            raise CallFailed("upgrade", "Ended", said, remedy)


def _asked(
    version: str, waves: str | None, path: str | None, manifest: Path | None
) -> dict[str, Any]:
    """What a person says of a spec; raises UsageError or ClickException."""
    new: dict[str, Any] = {"path": path} if path else {}
    if waves is not None:
        new["waves"] = read_waves(waves)
    if manifest is not None:
        new["manifest"] = _read(version, manifest)[0].decode()
    return new


def _source(manifest: Path | None) -> str:
    """Where the manifest of a release was found."""
    return str(manifest) if manifest is not None else "spec.manifest"


def spec_to_plan(version: str, new: Mapping[str, Any], listed: Sequence[Any]) -> dict[str, Any]:
    """The spec with which `start` would let a release out, also of one that nobody knows yet."""
    names = {str(it["metadata"]["name"]) for it in listed}
    if "manifest" in new or name_of(version) in names:
        return spec_to_begin(version, new, {}, listed)
    return {"path": "/", "waves": read_waves(WAVES), **new}


def spec_to_begin(
    version: str, new: Mapping[str, Any], of_waves: Mapping[str, Any], listed: Sequence[Any]
) -> dict[str, Any]:
    """The spec with which a release goes out, and each wave with that; raises ClickException.

    Without a new manifest it is that which was let out, and what is not `new` stays.
    """
    former = next((it for it in listed if it["metadata"]["name"] == name_of(version)), None)
    if former is None and "manifest" not in new:
        remedy = f"leafcast upgrade start {version} --manifest FILE --pieces FOLDER"
        raise click.ClickException(f"no release {version} was let out here before; {remedy}")
    kept = {} if former is None or "manifest" in new else former["spec"]
    ended = {"paused", "aborted", "attempt"}
    spec: dict[str, Any] = {"path": "/", "waves": read_waves(WAVES)}
    spec |= {name: said for name, said in kept.items() if name not in ended}
    for name, said in {"version": version, **new}.items():
        spec[name] = {**spec.get(name, {}), **said} if isinstance(said, Mapping) else said
    # Those of a wave would go before those of all.
    over = {"windows"} if "windows" in new else set()
    spec["waves"] = [
        {**{name: said for name, said in wave.items() if name not in over}, **of_waves}
        for wave in spec["waves"]
    ]
    attempt = attempt_to_begin(version, listed)
    return {**spec, "attempt": attempt} if attempt else spec


def attempt_to_begin(version: str, listed: Sequence[Any]) -> int:
    """The `spec.attempt` with which a release goes out, though it, or a newer one, did before."""
    former: Mapping[str, Any] = next(
        (obj for obj in listed if obj["metadata"]["name"] == name_of(version)), {}
    )
    status = former.get("status") or {}
    attempt = int(former.get("spec", {}).get("attempt", 0))
    is_back = any(
        takes_back(version, obj["spec"]["version"], obj.get("status") or {}) for obj in listed
    )
    is_new = attempt > status.get("attempt", 0)
    return attempt + 1 if (is_back or has_ended(status)) and not is_new else attempt


def read_waves(text: str) -> list[dict[str, Any]]:
    """Waves as a LeafcastRelease has them; raises UsageError."""
    waves = [_wave(word.strip()) for word in text.split(",")]
    names = [wave["name"] for wave in waves]
    if twice := next((it for it in names if names.count(it) > 1), ""):
        raise click.UsageError(f'--waves: "{twice}" is there twice; take one out')
    return waves


def _wave(word: str) -> dict[str, Any]:
    if word.endswith("%"):
        share = word.removesuffix("%")
        if not share.isascii() or not share.isdecimal() or not 1 <= int(share) <= 100:
            raise click.UsageError(f'--waves: "{word}" is no share; write 1% to 100%')
        # A small share of few nodes may be nobody.
        return {"name": f"share-{share}", "percent": int(share), "allowEmpty": True}
    key, is_pair, value = word.partition("=")
    if key.isdecimal() and not is_pair:
        raise click.UsageError(f'--waves: "{word}" is no share; write {word}%')
    if why := label_key_fault(key) or (label_value_fault(value) if is_pair else None):
        forms = "a share such as 10%, a label, or KEY=VALUE"
        raise click.UsageError(f'--waves: "{word}" is no label: {why}; write {forms}')
    name = _NO_NAME.sub("-", (value or key).lower())[:LABEL_MAX].strip("-")
    if is_pair:
        return {"name": name, "selector": {"matchLabels": {key: value}}}
    expressions = [{"key": key, "operator": "Exists"}]
    return {"name": name, "selector": {"matchExpressions": expressions}}


def name_of(version: str) -> str:
    """The name of the LeafcastRelease of a version."""
    return version.lower().replace("+", "-").replace("_", "-")


def _read(version: str, file: Path) -> tuple[bytes, ReleaseManifest]:
    """The manifest of a version, and what it says; raises ClickException."""
    try:
        data = file.read_bytes()
        said = read_manifest(data)
    except ReleaseRefused as refused:
        raise click.ClickException(f"{file}: {refused}") from refused
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from error
    if said.version != version:
        raise click.ClickException(f"{file} is of {said.version}; say that, not {version}")
    return data, said


def _upgrades_from(text: str) -> str:
    """The lowest version that a release follows; "" if its manifest is not known."""
    return read_manifest(text.encode()).upgrades_from if text else ""


def _said_by(spec: Mapping[str, Any]) -> ReleaseManifest:
    """The manifest of a release; raises ClickException."""
    try:
        return read_manifest(str(spec["manifest"]).encode())
    except ReleaseRefused as refused:
        remedy = "name its file: --manifest FILE"
        raise click.ClickException(f"spec.manifest: {refused}; {remedy}") from refused


def check_publisher(source: str, text: str, data_dir: Path | None, listed: Sequence[Any]) -> None:
    """Raise ClickException for a release that the nodes would refuse by who signed it."""
    # Here, as it takes a while to load, and what only asks needs none of it.
    from leafcast.publisher.letting_out import check_may_go_out  # noqa: PLC0415
    from leafcast.publisher.pinning import pinned_publisher  # noqa: PLC0415

    try:
        pinned = pinned_publisher(DataDir.at(data_dir).folder)
        check_may_go_out(text.encode(), pinned, accepted_manifests(listed))
    except ReleaseRefused as refused:
        raise click.ClickException(f"{source}: {refused}") from refused


def give_pieces(manifest: ReleaseManifest, folder: Path | None, target: Path) -> None:
    """Put the pieces of a release where the centre looks for them; those whole there stay.

    Without a folder all have to be there.
    """
    try:
        make_folder(target)
        pieces = manifest.all_pieces
        lacking = {at: it for at, it in pieces.items() if not _is_piece(target / at, it)}
        for file in sorted(folder.rglob("*")) if folder is not None and lacking else ():
            sha256 = _sha256(file) if file.is_file() else ""
            if lacking.pop(sha256, None) is not None:
                _copy(file, target / sha256)
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
        raise click.ClickException(f"{why}; make room or mend it, then say it again") from error
    if lacking:
        where = folder if folder is not None else target
        remedy = "name the folder with all wheels of the release"
        said = _what_lacks(lacking.values(), folder, target)
        raise click.ClickException(f"--pieces {where}: {said}; {remedy}")


def _is_piece(file: Path, piece: Piece) -> bool:
    """Whether it is there with its bytes; raises OSError."""
    return file.is_file() and file.stat().st_size == piece.size and _sha256(file) == piece.sha256


def _what_lacks(lacking: Iterable[Piece], folder: Path | None, target: Path) -> str:
    """Which pieces are not found, some by name, and which of them are there with other bytes."""
    found = {it.name for it in folder.rglob("*.whl")} if folder is not None else set()
    other, gone = set[str](), set[str]()
    for piece in lacking:
        is_there = piece.name in found or (folder is None and (target / piece.sha256).exists())
        (other if is_there else gone).add(piece.name)
    said = []
    if other:
        are = "is" if len(other) == 1 else "are"
        said.append(f"{some_of(sorted(other), NAMED_MAX)} {are} there, but with other bytes")
    if gone:
        said.append(f"{some_of(sorted(gone), NAMED_MAX)} not found")
    return "; ".join(said)


def _copy(file: Path, target: Path) -> None:
    """Have a file there whole, or nothing of it; raises OSError."""
    draft = target.with_name(f"{target.name}{DRAFT}")
    try:
        shutil.copyfile(file, draft)
        move_file(draft, target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        error.filename = target.parent
        raise


def _sha256(file: Path) -> str:
    with file.open("rb") as read:
        return hashlib.file_digest(read, "sha256").hexdigest()


def _apply_spec(data_dir: Path | None, obj: Any, change: Mapping[str, Any]) -> None:
    """Apply a release again, with something changed."""
    metadata = {"name": obj["metadata"]["name"]}
    _apply(data_dir, {"metadata": metadata, "spec": {**obj["spec"], **change}})


def _apply(data_dir: Path | None, form: Mapping[str, Any]) -> None:
    obj = {"apiVersion": "leafcast.io/v1alpha1", "kind": "LeafcastRelease", **form}
    asked = ApplyBatch([LoadedObject(obj, "upgrade", 1)])
    try:
        refused = in_session(data_dir, lambda session: apply_all(session, asked))
    except BadManifests as error:
        refuse([*error.faults])
    if refused:
        raise click.exceptions.Exit(1)


def _names(listed: Sequence[Any]) -> list[str]:
    return [f"leafcastrelease.leafcast.io/{obj['metadata']['name']}" for obj in listed]
