"""`leafcast orphans` and `withdraw`: what nodes hold and the centre does not know any more."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from leafcast.cli.options.common import data_dir_option
from leafcast.cli.session_calls import call
from leafcast.show.sanitize import sanitize
from schemas.values.wording import many, some_of

SECONDS = 60.0
NAMED_MAX = 10

_call = partial(call, seconds=SECONDS)


@click.command()
@data_dir_option
def orphans(data_dir: Path | None) -> None:
    """List what nodes hold and the centre does not know, by the term that issued it.

    A term is one start of the centre. After the centre lost its ledger, or was restored from a
    backup, what it had issued since then stays in force below it until a person withdraws it. What
    is applied again takes the place of an orphan of the same name.
    """
    for line in _lines(_call(data_dir, "orphans")):
        click.echo(line)


@click.command()
@click.argument("term", required=False, default="")
@click.option("--all", "every", is_flag=True, help="Every term that nodes report now.")
@data_dir_option
def withdraw(term: str, data_dir: Path | None, *, every: bool) -> None:
    """Let what a term issued and nobody says any more go everywhere; `leafcast orphans` lists it.

    It goes wherever a node holds it, also from nodes that are away now. Objects that a placement in
    force wants stay, and so do nodes: they go by `leafcast node remove` alone.
    """
    if bool(term) is every:
        raise click.UsageError("name a TERM, or say --all")
    found = _call(data_dir, "withdraw", term=term, every=every)
    for one in found["terms"]:
        click.echo(f"term {one} withdrawn")
    if found["nodes"]:
        click.echo(f"{many(len(found['nodes']), 'node')} stay, and the centre knows them again")
    if not found["terms"]:
        click.echo("No orphans: nothing to withdraw.")


def _lines(found: dict[str, Any]) -> list[str]:
    by_term: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for orphan in found["orphans"]:
        by_term[orphan["term"]].append(orphan)
    lines = []
    for term, listed in sorted(by_term.items()):
        lines.append(f"term {term}: {many(len(listed), 'record')}")
        lines += [f"  {_said(orphan)}" for orphan in listed[:NAMED_MAX]]
        if more := len(listed) - NAMED_MAX:
            lines += [f"  and {more} more"] if more > 0 else []
        lines.append(f"  {_ended_by(listed)}: leafcast withdraw {term}")
    if silent := found["silent"]:
        lines.append(f"{many(len(silent), 'node')} did not answer: {some_of(silent, NAMED_MAX)}")
    if absent := found["absent"]:
        has = "has" if len(absent) == 1 else "have"
        lines.append(
            f"{many(len(absent), 'node')} {has} never joined: {some_of(absent, NAMED_MAX)}"
        )
    if not by_term:
        lines.insert(0, "No orphans: the centre knows all that nodes hold.")
    return lines


def _ended_by(listed: list[dict[str, Any]]) -> str:
    """What `withdraw` does to these records: nodes go by `leafcast node remove` alone."""
    nodes = sum(orphan["kind"] == "node" for orphan in listed)
    if nodes == len(listed):
        return "nodes stay; to have the centre know them again"
    return "to remove all but the nodes everywhere" if nodes else "to remove them everywhere"


def _said(orphan: dict[str, Any]) -> str:
    holders = orphan["nodes"]
    at = orphan["path"] if holders == 1 else f"{many(holders, 'node')}, e.g. {orphan['path']}"
    # Of a record that the centre has in an older form a person may say which one counts.
    known = ", newer than at the centre: leafcast accept --selector" if orphan.get("known") else ""
    return sanitize(f"{orphan['kind']} {orphan['name']} (at {at}{known})")
