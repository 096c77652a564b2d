"""`leafcast node`: add, move, remove and list the nodes of a running tree, and their keys."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from leafcast.cli import shell_completion
from leafcast.cli.command_group import CommandGroup
from leafcast.cli.commands.node_list import add_listed, read_labels
from leafcast.cli.commands.node_requests import approve, deny, requests, tokens
from leafcast.cli.commands.node_table import list_
from leafcast.cli.node_tokens import (
    TokenOptions,
    add_member_token,
    add_token,
    check_writable,
    labels_text,
    replace_member,
    tell_how_to_join,
    tell_if_only_here,
)
from leafcast.cli.options.common import SPAN, NodeAt, NodesAt, data_dir_option
from leafcast.cli.session_calls import call
from leafcast.show.sanitize import sanitize
from relay.adapters.server.leaf_address import LOOPBACK
from schemas.values.identity import NodePath

REMOVE_SECONDS = 90.0
_call = partial(call, seconds=REMOVE_SECONDS)
_valid_option = click.option(
    "--valid",
    type=SPAN,
    default="24h",
    show_default=True,
    help="How long the token may wait until it is used.",
)
_token_file_option = click.option(
    "-o",
    "--output",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the token into this file, for `leafcast join FILE`.",
)
SECONDS = 120.0
ROTATE_FLEET = "leafcast keys rotate fleet"


@click.group(cls=CommandGroup)
def node() -> None:
    """Add nodes to the tree, approve them, move them, remove them, list them."""


def _refuse_bundle(_ctx: click.Context, _param: click.Parameter, given: bool) -> None:  # noqa: FBT001 - click
    """Say what takes the place of a flag that a former release had."""
    if given:
        raise click.UsageError(
            "--bundle: there are no join bundles any more; leave it out for a token, and say "
            "--approved to let its holder in without asking anybody"
        )


@node.command()
@click.argument("path", type=NodesAt(root=True), required=False)
@_token_file_option
@click.option(
    "-f",
    "--filename",
    "sites",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Add the edges that a CSV file lists: a column path, and one for each label.",
)
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="With -f: the folder for the tokens, a file a node.",
)
@click.option("--approved", is_flag=True, help="Approve in advance: who uses the token is in.")
@click.option(
    "--uses",
    type=click.IntRange(min=1),
    default=1,
    help="With a pattern such as /emea/store-*: how many nodes may ask with the token.",
)
@click.option(
    "--bundle",
    is_flag=True,
    hidden=True,
    expose_value=False,
    callback=_refuse_bundle,
    help="What a former release had.",
)
@click.option("--replace", is_flag=True, help="Also if it exists: its key is void then.")
@click.option(
    "--member",
    is_flag=True,
    help="A machine to be a member of the centre (/) or the relay at PATH, which runs on three.",
)
@click.option("--relay", is_flag=True, help="A relay: it has nodes below it, and no cluster.")
@click.option(
    "--labels",
    metavar="K=V,...",
    default="",
    help="Labels of the edge, besides id and region; placements select by them.",
)
@_valid_option
@data_dir_option
def add(  # noqa: PLR0913, PLR0917 - click passes options by name
    path: str | None,
    file: Path | None,
    sites: Path | None,
    folder: Path | None,
    labels: str,
    uses: int,
    valid: int,
    data_dir: Path | None,
    *,
    approved: bool,
    replace: bool,
    member: bool,
    relay: bool,
) -> None:
    """Add a node at PATH: prints the line to run where it is.

    The line has a token, good once and for this path. Whoever runs it asks to be let in, with keys
    made there, and waits for `leafcast node approve`; with --approved nobody is asked. Until then
    there is no such node. A node that exists needs --replace; its key is void once the new one
    is approved. PATH may be a pattern such as /emea/store-*: then as many as --uses says may ask
    with one token, and each names its path with `leafcast join --path`.

    With --member the line makes a machine one of three on which the centre, or a relay, is to run:
    see `leafcast node grow`. A token each for two machines beside the centre's own, and for all
    three of a relay.

    With -f FILE it adds all edges that a CSV file lists, or none if one line is wrong. The first
    line names the columns: `path`, then a label key each. Labels given with --labels are for all.
    """
    given = read_labels(labels)
    if relay and given:
        raise click.UsageError("a relay has no labels; leave out --labels or --relay")
    if (path is None) == (sites is None):
        raise click.UsageError("name a PATH, or a file with -f")
    if member:
        if path is None or relay or labels or folder or approved or uses > 1:
            raise click.UsageError("with --member say PATH, -o, --valid, --replace and no more")
        return add_member_token(data_dir, path, file, valid, replace=replace)
    if path == "/":
        raise click.UsageError("/ is the centre; with --member a machine becomes one of its own")
    options = TokenOptions(valid, approved=approved, replace=replace)
    if sites is not None:
        if relay or file or folder is None or uses > 1:
            raise click.UsageError("with -f say --out FOLDER, and neither --relay, --uses nor -o")
        return add_listed(data_dir, sites, folder, given, options)
    assert path is not None
    if folder is not None:
        raise click.UsageError("--out goes with -f; name the file of one node with -o FILE")
    return add_token(data_dir, path, file, given, options, relay=relay, uses=uses)


@node.command()
@click.argument("path", type=NodeAt(), shell_complete=shell_completion.paths)
@click.option(
    "--labels",
    metavar="K=V,...",
    default="",
    help="Labels of the edge, besides id and region; placements select by them.",
)
@data_dir_option
def register(path: str, labels: str, data_dir: Path | None) -> None:
    """Give the edge at PATH a destination again: its SyncTarget, and its Location.

    An edge whose SyncTarget was deleted stays in the tree, and nothing is meant for it.
    """
    found = _call(data_dir, "node-register", path=path, labels=read_labels(labels))
    click.echo(f'Node {path} is destination "{found["name"]}" now.')


@node.command()
@click.argument("path", type=NodeAt(), shell_complete=shell_completion.paths)
@click.argument("new_path", type=NodeAt(new=True))
@_token_file_option
@click.option(
    "--labels",
    metavar="K=V,...",
    default="",
    help="Labels to change. A label region that names the old region follows by itself.",
)
@_valid_option
@data_dir_option
def move(
    path: str, new_path: str, file: Path | None, labels: str, valid: int, data_dir: Path | None
) -> None:
    """Move the edge at PATH to NEW_PATH, and print the line with which it goes on there.

    It keeps what it has: end it where it runs, and run the line there, with the --data-dir that it
    has. The line has a token, good once and approved. Until then the edge keeps its cluster as it
    is. It stays the same destination, and counts at NEW_PATH alone from now on; the key that it has
    is void. Nodes with others below them, relays, and those that `leafcast up` starts do not move.
    """
    given = read_labels(labels)
    check_writable(file)
    answer = _call(
        data_dir, "node-move", path=path, new_path=new_path, labels=given, valid_seconds=valid
    )
    click.echo(f"Moved {path} to {new_path}.")
    said = labels_text(answer["labels"])
    click.echo(f"Its SyncTarget and Location are {answer['name']} still, with the labels {said}.")
    click.echo("The key it has is void: where it runs, end it. It keeps its cluster meanwhile.")
    tell_how_to_join(answer, file, "")
    click.echo("If it has a --data-dir, say that, too.")
    tell_if_only_here(answer["url"])


@node.command()
@click.argument("path", type=NodeAt(), shell_complete=shell_completion.paths)
@click.option(
    "--force",
    is_flag=True,
    help="Remove it although it does not answer, and all nodes below it as well.",
)
@data_dir_option
def remove(path: str, data_dir: Path | None, *, force: bool) -> None:
    """Take the node at PATH out of the tree, and say what it leaves behind.

    An edge gives back first what it was sent. One that does not answer is removed with --force.
    """
    answer = _call(data_dir, "node-remove", path=path, force=force)
    for gone in answer["removed"]:
        click.echo(f"node {gone} removed")
    for left in answer["left"]:
        click.echo(f"still there: {left}")
    _tell_unconfirmed(path, answer["unconfirmed"])


@node.command()
@click.argument("path", type=NodeAt(root=True), shell_complete=shell_completion.paths)
@click.option(
    "--host",
    metavar="HOST[:PORT]",
    default=LOOPBACK,
    show_default=True,
    help="If it is the centre: where the other members reach this machine.",
)
@data_dir_option
def grow(path: str, host: str, data_dir: Path | None) -> None:
    """Have the centre (/), or a relay, run on the three machines that asked with member tokens.

    The centre stops for that: what it holds is copied to three new stores and compared, and it
    goes on from there. Its former store is kept, in the folder store-alone of the data directory.
    """
    answer = _call(data_dir, "node-grow", path=path, host=host)
    for it in answer["members"]:
        click.echo(f"{it['name']}: {it['hostName']} at {it['host']}")
    click.echo(f"{path} grows; see: leafcast tree --members")


@node.command()
@click.argument("path", type=NodeAt(root=True), shell_complete=shell_completion.paths)
@click.option("--to", required=True, metavar="MEMBER", help="The member where it is to run.")
@data_dir_option
def shrink(path: str, to: str, data_dir: Path | None) -> None:
    """Have the centre (/), which runs on three machines, run once again, at one of them.

    It stops for that: what it holds is copied to a new store there, and compared. The stores of the
    members are kept; once it answers there, end the other two, not before: the copy needs one of
    them. Remove their data directories when you are content.
    """
    _call(data_dir, "node-shrink", path=path, to=to)
    click.echo(f"{path} goes on alone at {to}: once it answers there, end the other two members.")


@node.command()
@click.argument("path", type=NodeAt(root=True), shell_complete=shell_completion.paths)
@click.option("--member", required=True, metavar="MEMBER", help="The member that is lost for good.")
@_token_file_option
@_valid_option
@data_dir_option
def replace(path: str, member: str, file: Path | None, valid: int, data_dir: Path | None) -> None:
    """Have a new machine take the place of a lost member of the centre (/), or of a relay.

    It prints the line to run on that machine, which has a token, good once. Once the machine asks,
    the two members that are left let the lost one in no more, and the new one gets what they have,
    under another name. Nothing stops meanwhile. Both must be well, and the lost one must not run.
    """
    replace_member(data_dir, path, member, file, valid)


@node.command()
@click.argument("path", type=NodeAt(), shell_complete=shell_completion.paths)
@data_dir_option
def rotate(path: str, data_dir: Path | None) -> None:
    """Give the node at PATH a new key, made where it runs.

    Both keys are good until the node is in session with the new one. What is broken off goes on
    with the same command.
    """
    answer = call(data_dir, "node-rotate", seconds=SECONDS, path=path)
    click.echo(f"node {path} has a new key, {answer['nkey'][:12]}...; the old one is void")
    _tell_unconfirmed(path, answer["unconfirmed"])


@node.command()
@click.argument("path", type=NodeAt(), shell_complete=shell_completion.paths)
@data_dir_option
def revoke(path: str, data_dir: Path | None) -> None:
    """Make the key of the node at PATH void, and cut its link.

    It stays a place in the tree, and its cluster keeps what it has. Let it in again with a token:
    leafcast node add PATH.
    """
    answer = call(data_dir, "node-revoke", seconds=SECONDS, path=path)
    if answer["cut"]:
        click.echo(f"node {path} revoked: its link is cut")
    elif answer["unconfirmed"]:
        click.echo(f"node {path} revoked")
    else:
        above = answer["parent"]
        click.echo(
            f"node {path} revoked; {above} does not answer, and cuts its link when it is back"
        )
    if answer["cut"] or answer["unconfirmed"]:
        _tell_unconfirmed(path, answer["unconfirmed"])
    if answer["edge"]:
        click.echo(f"It has the fleet key; to seal under another one: {ROTATE_FLEET}")
    click.echo(f"To let it in again: leafcast node add {path}")


def _tell_unconfirmed(path: str, members: list[str] | None) -> None:
    """Say at which members of its parent a key that is void may still open the door.

    None where nobody knows.
    """
    above = NodePath.parse(path).parent
    if members is None:
        said = f"Not confirmed: {above} does not answer, and may let it in until it heard of this"
        click.echo(sanitize(said))
    elif members:
        who = f"{' and '.join(members)} of {above}"
        said = "the old key may be good there until that answers again; see leafcast tree --members"
        click.echo(sanitize(f"Not confirmed by member {who}: {said}"))


for _command in (list_, requests, tokens, approve, deny):
    node.add_command(_command)
