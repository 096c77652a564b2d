"""`leafcast keys`: which keys sign, their rotation and revocation, and roots that are offline."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from leafcast.cli.command_group import CommandGroup
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.session_calls import call
from leafcast.key_files import (
    read_public,
    read_request,
    read_root,
    request_form,
    requested,
    write_root,
)
from leafcast.key_form import write_key_form
from leafcast.show.object_tables import laid_out
from leafcast.show.sanitize import sanitize
from relay.adapters.clock import SystemClock, SystemDice
from schemas.records.placements import said_placement
from schemas.records.records import KeysRecord
from schemas.records.signing import Signer
from schemas.values.identity import KeyId, TreeId, random_id
from schemas.values.wording import many

SECONDS = 600.0
LACKING_MAX = 10
_WAITS = {
    "told": "another certificate authority is made, and signs once it is known to",
    "renewed": "another certificate authority signs; the former one is believed until it does for",
    "left": "another certificate authority signs alone; the former one is still believed by",
}
GENERATION_MAX = 2**63 - 1

_call = partial(call, seconds=SECONDS)
_path = click.Path(dir_okay=False, path_type=Path)
_request = click.argument("request", type=_path)
_request_option = click.option(
    "--request",
    "request",
    type=_path,
    help="Where roots are kept elsewhere: write to this file what they are to sign.",
)


@click.group(cls=CommandGroup)
def keys() -> None:
    """Show, rotate and revoke the keys that nodes believe.

    A root key signs only which other keys are in force; a signing key signs all that travels down.
    """


@keys.command("list")
@data_dir_option
def list_keys(data_dir: Path | None) -> None:
    """List root keys and signing keys, and how much in force each has signed."""
    found = _call(data_dir, "keys")
    rows = [_row(key) for key in found["keys"]]
    header = ("ID", "KIND", "SIGNS", "FROM", "TO", "STATE", "RECORDS", "HERE")
    for line in laid_out([header, *rows]):
        click.echo(sanitize(line))
    roots = sum(key["kind"] == "root" for key in found["keys"])
    if not found["seals"]:
        click.echo(NOT_SEALED)
    needed = f"{found['threshold']} of {many(roots, 'root')} must sign a change of keys"
    click.echo(f"{needed}; the roots are at version {found['version']}")
    if _call(data_dir, "keys-authority-state")["changing"]:
        hint = "leafcast keys rotate authority says what it waits for"
        click.echo(f"another certificate authority is on its way: {hint}")


@keys.command()
@click.argument("what", type=click.Choice(["signing", "root", "authority", "fleet", "placement"]))
@click.argument("name", required=False)
@click.option(
    "--root", "roots", type=_path, multiple=True, help="A public root key; name all new ones."
)
@click.option("--threshold", type=click.IntRange(1, 16), help="How many roots must sign a change.")
@click.option("--force", is_flag=True, help="Wait for no node to know the new authority.")
@_request_option
@data_dir_option
def rotate(
    what: str,
    name: str | None,
    roots: tuple[Path, ...],
    threshold: int | None,
    force: bool,  # noqa: FBT001 - click
    request: Path | None,
    data_dir: Path | None,
) -> None:
    """Put a new signing key in force, new roots, another authority, or other keys of content.

    What is in force stays so, and is not signed anew. Without --root each root that the centre has
    itself is made anew. Roots change by the word of those before and of their own.

    The authority signs the certificates of servers. All nodes get to know the new one before it
    signs; for those that are away that waits, and goes on by itself.

    `fleet` is the key that all edges have: with it each placement gets another key, too, and all
    content goes out anew, sealed with that. Clusters notice nothing. `placement NAME` does it for
    one.
    """
    if what != "root" and (roots or threshold):
        raise click.UsageError("--root and --threshold are of `keys rotate root`")
    if (what == "placement") is not bool(name):
        raise click.UsageError("`keys rotate placement` is of one: name it, and nothing else")
    if request is not None and what not in ("signing", "root"):
        raise click.UsageError("--request is for what roots sign")
    if what == "authority":
        return _rotate_authority(data_dir, force=force)
    if force:
        raise click.UsageError("--force is of `keys rotate authority`")
    if what in ("fleet", "placement"):
        return _rotate_content(data_dir, name)
    named = {key: public.hex() for key, public in map(read_public, roots)}
    said = {"what": what, "roots": named, "threshold": threshold or 0}
    return _change(data_dir, request, f"the {what} key is rotated", **said)


def _rotate_authority(data_dir: Path | None, *, force: bool) -> None:
    done = _call(data_dir, "keys-authority", force=force)
    for where in done["void"]:
        click.echo(sanitize(f"the token for {where} is void: it names the former authority"))
    if done["doing"] == "done":
        return click.echo("the certificate authority is another one, and nodes believe that alone")
    lacking = done["lacking"]
    click.echo(f"{_WAITS[done['doing']]} {many(len(lacking), 'node')}:")
    for path, why in list(lacking.items())[:LACKING_MAX]:
        click.echo(sanitize(f"  {path}: {why}"))
    if len(lacking) > LACKING_MAX:
        click.echo(f"  and {len(lacking) - LACKING_MAX} more")
    click.echo(
        "It goes on by itself when they are back; `leafcast keys list` says whether it still does. "
        "With --force it goes on now, and who does not know the new one has to be let in anew."
    )
    return None


@keys.command()
@data_dir_option
def seal(data_dir: Path | None) -> None:
    """Seal all content of a tree that was made before content was sealed.

    It goes out anew, and nothing is applied again. What a rollout lets out follows with its next
    revision.
    """
    made = _call(data_dir, "keys-seal")
    placements, destinations = made["placements"], made["destinations"]
    click.echo(
        f"{many(placements, 'placement')} sealed for {many(destinations, 'destination')}; "
        "write a new backup: it holds the keys"
    )
    for name in made["later"]:
        click.echo(sanitize(f"{name} stays in clear until its rollout has another revision"))
    for name in made["keyless"]:
        click.echo(sanitize(f"{name} can open nothing: its node did not join yet"))


@keys.command()
@click.argument("key", metavar="ID")
@_request_option
@data_dir_option
def revoke(key: str, request: Path | None, data_dir: Path | None) -> None:
    """Have no node believe a key any more: it was stolen, or may have been.

    All in force that it signed is signed anew by another one. The beginning of an id will do.
    """
    _change(data_dir, request, f"key {key} is revoked", key=key)


@keys.command()
@click.argument("file", type=_path)
def make(file: Path) -> None:
    """Make a root key in FILE, and its public half in FILE.pub, where it is to be kept.

    Nothing is asked of a tree: run it on a machine without network.
    """
    dice = SystemDice()
    made = Signer(TreeId(""), KeyId(random_id(dice.entropy(16))), dice.entropy(32))
    public = write_root(file, made.key_id, made.seed, made.public_key)
    click.echo(f"{file}: root key {made.key_id}; keep it, and hand on {public}")


@keys.command()
@_request
@click.option("--key", "key", type=_path, required=True, help="The root key's file.")
def sign(request: Path, key: Path) -> None:
    """Sign with a root key what REQUEST asks for, and say what that is.

    The signature is added to the file, which then goes on to the next holder, or back.
    """
    found = read_request(request)
    signer, record = read_root(key, found.tree), requested(found)
    for line in _asked(found.tree, record):
        click.echo(line)
    signature = signer.seal("keys", found.payload).signature
    signed = replace(found, signatures={**found.signatures, signer.key_id: signature})
    write_key_form(request, request_form(signed))
    click.echo(f"{request}: signed by {', '.join(sorted(signed.signatures))}")


@keys.command()
@_request
@data_dir_option
def publish(request: Path, data_dir: Path | None) -> None:
    """Put in force what enough roots have signed."""
    _call(data_dir, "keys-publish", request=request_form(read_request(request)))
    click.echo("The keys are in force. " + BACKUP)


NOT_SEALED = "Content is not sealed: leafcast keys seal"
BACKUP = "Write a new backup: an older one brings the old keys back."


def _rotate_content(data_dir: Path | None, name: str | None) -> None:
    if name is None:
        _call(data_dir, "keys-rotate-fleet")
        click.echo(f"The fleet key is rotated, and all content is sealed anew. {BACKUP}")
    else:
        found = _call(data_dir, "keys-rotate-placement", placement=said_placement(name))
        click.echo(f"The key of {found['placement']} is rotated. {BACKUP}")


def _change(data_dir: Path | None, request: Path | None, done: str, **said: Any) -> None:
    if request is not None and request.exists():
        # It is written anew; another file, as a root's key, may be the only one of its kind.
        read_request(request)
    found = _call(data_dir, "keys-change", may_wait=request is not None, **said)
    if found["request"] is None:
        click.echo(f"{done[0].upper()}{done[1:]}. {BACKUP}")
        return
    assert request is not None
    write_key_form(request, found["request"])
    click.echo(f"{request}: nothing is changed yet. It lacks signatures")
    for lack in found["lacks"]:
        click.echo(f"  of {lack}")
    click.echo(f"Then: leafcast keys publish {request}")


def _row(key: dict[str, Any]) -> tuple[str, ...]:
    signing = key["kind"] == "signing"
    first, last = key["first"], key["last"]
    # The centre signs nothing more with it, and until then nodes believe it.
    ending = key["state"] == "ended" and last > SystemClock().now().wall_ms
    return (
        key["id"],
        key["kind"],
        key["scope"],
        _when(first) if signing and first else "-",
        _when(last) if signing and last < GENERATION_MAX else "-",
        "ending" if ending else key["state"],
        str(key["records"]) if signing else "-",
        "yes" if key["here"] else "no",
    )


def _asked(tree: str, record: KeysRecord) -> list[str]:
    """What a holder of a root signs."""
    roots = ", ".join(root.key_id for root in record.roots)
    lines = [
        f"tree {tree}",
        f"roots, version {record.version}: {record.threshold} of {roots}",
    ]
    for grant in record.grants:
        if grant.is_revoked:
            lines.append(f"revoked: {grant.key_id}")
        elif grant.last < GENERATION_MAX:
            lines.append(f"signs until {_when(grant.last)}: {grant.key_id}")
        else:
            lines.append(f"signs: {grant.key_id}")
    return lines


def _when(generation: int) -> str:
    """The time of a generation: milliseconds since 1970, or little more."""
    try:
        return datetime.fromtimestamp(generation // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(generation)
