"""`leafcast node requests`, `tokens`, `approve`, `deny`: who may become a node, who is let in."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path

import click

from leafcast.cli.options.common import NodeAt, data_dir_option
from leafcast.cli.options.objects import refuse
from leafcast.cli.session_calls import call
from leafcast.show.object_tables import laid_out
from leafcast.show.sanitize import sanitize
from schemas.values.wording import many

SECONDS = 20.0
APPROVE_SECONDS = 300.0
KEY_SHOWN = 12
_output = click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")


@click.command()
@_output
@data_dir_option
def requests(output: str, data_dir: Path | None) -> None:
    """List who asks to be let in, and waits for `leafcast node approve`.

    MACHINE is what it calls itself, KEY how its public key begins: `leafcast join` says the same
    there.
    """
    found = call(data_dir, "node-requests", seconds=SECONDS)["requests"]
    if output == "json":
        return click.echo(json.dumps(found, indent=2))
    if not found:
        return click.echo("Nobody asks to be let in.")
    rows = [("PATH", "MACHINE", "KEY", "SINCE")]
    rows += [
        (it["path"], it["said"] or "-", it["nkey"][:KEY_SHOWN], _moment(it["askedMs"]))
        for it in found
    ]
    return _table(rows)


@click.command()
@_output
@data_dir_option
def tokens(output: str, data_dir: Path | None) -> None:
    """List the tokens that were handed out, the newest first; nobody can join with what is shown.

    STATE is open, asked (someone waits to be let in), used, expired or void.
    """
    found = call(data_dir, "node-tokens", seconds=SECONDS)["tokens"]
    if output == "json":
        return click.echo(json.dumps(found, indent=2))
    if not found:
        return click.echo("No tokens. Hand one out: leafcast node add /region-1/store-7")
    rows = [("ID", "PATH", "STATE", "USED", "APPROVED", "UNTIL")]
    rows += [
        (
            it["id"],
            it["path"],
            it["state"],
            f"{it['used']}/{it['uses']}",
            "yes" if it["approved"] else "no",
            _moment(it["untilMs"]),
        )
        for it in found
    ]
    return _table(rows)


@click.command()
@click.argument("paths", metavar="PATH...", type=NodeAt(new=True), nargs=-1)
@click.option("--all", "everyone", is_flag=True, help="All who ask now, and can be let in.")
@data_dir_option
def approve(paths: Sequence[str], data_dir: Path | None, *, everyone: bool) -> None:
    """Let in the nodes that ask to be at PATH..., all of these or none."""
    if bool(paths) == everyone:
        raise click.UsageError("name paths, or say --all; leafcast node requests shows who asks")
    answer = call(
        data_dir, "node-approve", seconds=APPROVE_SECONDS, paths=list(paths), everyone=everyone
    )
    for path in answer["approved"]:
        click.echo(f"node {path} approved")
    if everyone and not answer["approved"] and not answer["faults"]:
        click.echo("Nobody asks to be let in.")
    if answer["faults"]:
        faults = [f"{sanitize(it['message'])}; {it['remedy']}" for it in answer["faults"]]
        refuse([*faults, f"{many(len(faults), 'request')} cannot be approved as it is"])


@click.command()
@click.argument("which", metavar="PATH|ID...", nargs=-1, required=True)
@data_dir_option
def deny(which: Sequence[str], data_dir: Path | None) -> None:
    """Refuse who asks to be at PATH, or by the token ID; a token that nobody used is void then."""
    answer = call(data_dir, "node-deny", seconds=SECONDS, paths=list(which))
    for path in answer["denied"]:
        click.echo(f"node {path} denied")
    for token in answer["void"]:
        click.echo(f"token {token} is void")


def _moment(wall_ms: int) -> str:
    return f"{dt.datetime.fromtimestamp(wall_ms // 1000, dt.UTC):%Y-%m-%dT%H:%M:%SZ}"


def _table(rows: Sequence[Sequence[str]]) -> None:
    for line in laid_out([[sanitize(cell) for cell in row] for row in rows]):
        click.echo(line)
