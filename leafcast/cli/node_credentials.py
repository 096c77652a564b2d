"""What `leafcast node add` hands over to a new node: a token, or a bundle with its key."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from leafcast.cli.reachable_addresses import parents_of, tell_if_only_here
from leafcast.cli.session_calls import call
from leafcast.join.invitation import TOKEN_VARIABLE
from relay.atomic_file import atomic_write
from schemas.values.identity import NodePath
from schemas.values.wording import many

ADD_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class CredentialOptions:
    """What is handed over, and for how long that may wait."""

    valid_seconds: int
    bundle: bool = False
    approved: bool = False
    replace: bool = False

    @property
    def permission(self) -> str:
        """What the holder of a token may do."""
        return "join" if self.approved else "ask to join"

    @property
    def verb(self) -> str:
        """What makes it for many."""
        return "node-add-all" if self.bundle else "node-token-add"

    @property
    def arguments(self) -> dict[str, Any]:
        more = {"replace": self.replace, "valid_seconds": self.valid_seconds}
        return more if self.bundle else {**more, "sure": self.approved}


def add_token(
    data_dir: Path | None,
    path: str,
    file: Path | None,
    labels: dict[str, str],
    options: CredentialOptions,
    *,
    relay: bool,
    uses: int,
) -> None:
    """Hand out a token, and say what to run where the node is."""
    if file is not None:
        writable(file, path)
    nodes = [{"path": path, "labels": labels}]
    answer = call(
        data_dir,
        options.verb,
        seconds=ADD_SECONDS,
        nodes=nodes,
        relay=relay,
        uses=uses,
        **options.arguments,
    )
    for fault in answer["faults"]:
        raise click.ClickException(f"{fault['message']}; {fault['remedy']}")
    (one,) = answer["added"]
    until = dt.datetime.fromtimestamp(one["untilMs"] // 1000, dt.UTC)
    # Of several nodes each names its own path.
    pattern = "*" in path
    times, named = (many(uses, "time"), " --path PATH") if pattern else ("once", "")
    click.echo(f"{path} may {options.permission}, {times}, until {until:%Y-%m-%d %H:%M:%S} UTC.")
    if one["void"]:
        click.echo("The token made for it earlier is void.")
    if file is None:
        # Other users of a machine read its command lines, and no environments.
        variable = f"{TOKEN_VARIABLE}={one['token']}"
        click.echo(f"Run there: {variable} leafcast join {one['url']}{named}")
    else:
        atomic_write(file, invitation(one))
        click.echo(f"Run there: leafcast join {file}{named}")
    if not options.approved:
        click.echo(f"Then here: leafcast node approve {'PATH' if pattern else path}")
    tell_if_only_here(one["url"])


def add_bundle(
    data_dir: Path | None,
    path: str,
    file: Path | None,
    labels: dict[str, str],
    options: CredentialOptions,
    *,
    relay: bool,
) -> None:
    """Add a node, and write the bundle with its key."""
    target = writable(file, path)
    more = {"relay": relay, **options.arguments}
    answer = call(data_dir, "node-add", seconds=ADD_SECONDS, path=path, labels=labels, **more)
    atomic_write(target, answer["bundle"])
    what = "A new bundle for" if answer["again"] else "Added"
    click.echo(f"{what} {path}: {target}")
    if answer["labels"]:
        click.echo(f"Its SyncTarget and Location have the labels {labels_text(answer['labels'])}.")
    if answer["again"]:
        click.echo("Bundles made for it earlier are void: who runs with one is cut off.")
    click.echo(f"Next: leafcast join {target}")
    tell_if_only_here(parents_of(answer["bundle"]))


def invitation(added: dict[str, Any]) -> str:
    """What the file of a token holds: where to ask, and with what."""
    return f"{added['url']} {added['token']}\n"


def writable(file: Path | None, path: str) -> Path:
    """The file for what is handed over, before anything is done; raises UsageError."""
    target = file or Path(f"{NodePath.parse(path).name}.join.json")
    if not target.parent.is_dir():
        raise click.UsageError(f"there is no folder {target.parent}; make it, or name another file")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise click.UsageError(f"{target} cannot be written; name another file with -o")
    return target


def labels_text(labels: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
