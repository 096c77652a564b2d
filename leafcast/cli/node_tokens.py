"""What `leafcast node add` and `node move` hand over: a token, and the line to run with it."""

from __future__ import annotations

import datetime as dt
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from leafcast.cli.session_calls import call
from leafcast.join.invitation import TOKEN_VARIABLE
from relay.atomic_file import atomic_write
from schemas.values.wording import many

ADD = "node-token-add"
ADD_SECONDS = 90.0
_URL = re.compile(r"\b(?:nats|tls|ws|wss)://[^\s\",]+")
_LOOPBACK = re.compile(r"//(?:127(?:\.\d{1,3}){3}|localhost|\[::1\])(?:[:/]|$)")


@dataclass(frozen=True, slots=True)
class TokenOptions:
    """What a token lets its holder do, and for how long it may wait."""

    valid_seconds: int
    approved: bool = False
    replace: bool = False

    @property
    def permission(self) -> str:
        """What the holder may do."""
        return "join" if self.approved else "ask to join"

    @property
    def arguments(self) -> dict[str, Any]:
        """As the verb `node-token-add` takes them."""
        return {
            "replace": self.replace,
            "valid_seconds": self.valid_seconds,
            "sure": self.approved,
        }


def add_token(
    data_dir: Path | None,
    path: str,
    file: Path | None,
    labels: dict[str, str],
    options: TokenOptions,
    *,
    relay: bool,
    uses: int,
) -> None:
    """Hand out a token, and say what to run where the node is."""
    check_writable(file)
    nodes = [{"path": path, "labels": labels}]
    answer = call(
        data_dir,
        ADD,
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
    tell_how_to_join(one, file, named)
    if not options.approved:
        click.echo(f"Then here: leafcast node approve {'PATH' if pattern else path}")
    tell_if_only_here(one["url"])


def add_member_token(
    data_dir: Path | None, path: str, file: Path | None, valid_seconds: int, *, replace: bool
) -> None:
    """Hand out a token for a machine to be a member of a node, and say what to run there."""
    check_writable(file)
    one = call(
        data_dir,
        "member-token-add",
        seconds=ADD_SECONDS,
        path=path,
        replace=replace,
        valid_seconds=valid_seconds,
    )
    what = f"{one['name']} of {path}"
    _tell_one_machine(one, file, what, f"Once all have asked, here: leafcast node grow {path}")


def replace_member(
    data_dir: Path | None, path: str, member: str, file: Path | None, valid_seconds: int
) -> None:
    """Hand out a token for a machine to take a lost member's place, and say what to run there."""
    check_writable(file)
    one = call(
        data_dir,
        "member-replace",
        seconds=ADD_SECONDS,
        path=path,
        member=member,
        valid_seconds=valid_seconds,
    )
    what = f"{one['name']} of {path} in the place of {member}"
    then = f"Once it asks, {member} is none any more; see: leafcast tree --members"
    _tell_one_machine(one, file, what, then)


def _tell_one_machine(one: dict[str, Any], file: Path | None, what: str, then: str) -> None:
    """Say what a machine with this token may ask to be, what to run there, and what comes then."""
    until = dt.datetime.fromtimestamp(one["untilMs"] // 1000, dt.UTC)
    click.echo(f"One machine may ask to be {what}, until {until:%Y-%m-%d %H:%M:%S} UTC.")
    tell_how_to_join(one, file, "")
    click.echo(then)
    tell_if_only_here(one["url"])


def tell_how_to_join(added: dict[str, Any], file: Path | None, more: str) -> None:
    """Write a token into the file if there is one, and say what to run where the node is."""
    if file is None:
        # Other users of a machine read its command lines, and no environments.
        variable = f"{TOKEN_VARIABLE}={added['token']}"
        click.echo(f"Run there: {variable} leafcast join {added['url']}{more}")
    else:
        atomic_write(file, invitation(added))
        click.echo(f"Run there: leafcast join {file}{more}")


def invitation(added: dict[str, Any]) -> str:
    """What the file of a token holds: where to ask, and with what."""
    return f"{added['url']} {added['token']}\n"


def check_writable(file: Path | None) -> None:
    """Refuse a file for a token that cannot be written, before anything is done: UsageError."""
    if file is None:
        return
    if not file.parent.is_dir():
        raise click.UsageError(f"there is no folder {file.parent}; make it, or name another file")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise click.UsageError(f"{file} cannot be written; name another file with -o")


def labels_text(labels: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))


def only_here(text: str) -> str:
    """The address in a text if all that it names lead to this machine alone; "" if not."""
    urls = _URL.findall(text)
    return urls[0] if urls and all(map(_LOOPBACK.search, urls)) else ""


def tell_if_only_here(text: str) -> None:
    """Warn of a token's line with which no other machine can join."""
    if url := only_here(text):
        click.echo(
            f"Note: only this machine reaches {url}; for others the tree listens at a name of its "
            "own: leafcast up --listen NAME",
            err=True,
        )
