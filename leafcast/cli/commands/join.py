"""`leafcast join`: a new node of a running tree, in the foreground, with a token."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leafcast.cli.options.common import NodeAt
from leafcast.cli.options.kubernetes import (
    context_option,
    kubeconfig_option,
    take_over_option,
)
from leafcast.cli.options.proxy import PROXY_VARIABLE, check_way_out
from leafcast.cli.options.service import service_options
from leafcast.cli.options.serving import health_options, listen_options
from leafcast.cli.options.store import StoreOptions, store_options
from leafcast.daemon.logs import log_format_option, set_up_logs
from leafcast.data_dir import OTHERS, DataDir, make_private
from leafcast.join.default_folder import folder_of_token, take_along
from leafcast.join.folder import (
    JoinedFolder,
    cluster_of,
    joined_folder,
    kept_if_refused,
)
from leafcast.join.former_bundle import joined_by
from leafcast.join.invitation import TOKEN_VARIABLE, Invitation, invitation_of
from leafcast.join.join_request import JoinRequester
from leafcast.join.joined_node import JoinedNode, JoinOptions
from leafcast.join.kept_grant import KeptGrant
from leafcast.node.attached_cluster import attachment
from leafcast.node.credentials.kept_store import KeptStore, keep_store, kept_store
from leafcast.node.health_endpoint import HealthAddress
from leafcast.node.listen_settings import (
    ListenRefused,
    ListenSettings,
    keep_listen_settings,
)
from leafcast.node.options import EdgeCluster
from leafcast.service.watchdog import attended
from leafcast.show.sanitize import sanitize
from leafcast.signals import EndedBySignal, run_until_signal
from leafcast.space_settings import SIMULATED, SpaceSetting
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.durability import StoreSettings

if TYPE_CHECKING:
    from leafcast.join.joining_member import MemberReach

_ON_COMMAND_LINE = click.core.ParameterSource.COMMANDLINE
_READABLE_BY_OTHERS = (
    "Note: other users of this machine can read a token on a command line; they read none in "
    f"{TOKEN_VARIABLE}, or in the file that `leafcast node add -o FILE` writes"
)
_MEMBERS = "leafcast.daemon.local_daemon"
"""It loads a whole centre, which other nodes do without."""
T = TypeVar("T")


def _tell_who_reads(ctx: click.Context, param: click.Parameter, token: str | None) -> str | None:
    """Tell whoever says a token on a command line that others can read it."""
    if param.name and ctx.get_parameter_source(param.name) is _ON_COMMAND_LINE:
        click.echo(_READABLE_BY_OTHERS, err=True)
    return token


def _check_for_service(invited: Invitation, given: Mapping[str, Any]) -> None:
    """Refuse what the service would refuse at each start: UsageError, InvitationUnusable."""
    named = _named(given["kubeconfig"], given["context"], simulated=given["simulated"])
    listens, member_host, proxy = given["listens"], given["member_host"], given["proxy"]
    if invited.token.member:
        _reach(member_host, listens, named, proxy, take_over=given["take_over"])
        return
    # It learns only as it joins whether it is a relay.
    _check_listens(listens, member_host, is_relay=True)
    check_way_out(proxy, invited.urls)


@click.command()
@click.argument("source", metavar="URL|FILE")
@click.option(
    "--token",
    envvar=TOKEN_VARIABLE,
    callback=_tell_who_reads,
    help="What `leafcast node add` printed; with a URL only. On a command line other users of the "
    f"machine can read it.  [environment: {TOKEN_VARIABLE}]",
)
@click.option(
    "--path", type=NodeAt(new=True), help="Which node to be, if the token is for several."
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=None,
    help="Where the node keeps its state.  [default: a folder of its own beside the tree's]",
)
@kubeconfig_option("The cluster that gets what is meant for this edge.")
@context_option
@click.option("--simulated", is_flag=True, help="Take a cluster that only pretends to run things.")
@take_over_option(
    "Work on the cluster though another edge claims it, or this edge worked on another one."
)
@click.option(
    "--proxy",
    default="",
    envvar=PROXY_VARIABLE,
    metavar="URL",
    help=f"An HTTP proxy to go out through, to a wss:// address.  [environment: {PROXY_VARIABLE}]",
)
@click.option(
    "--member-host",
    metavar="HOST[:PORT]",
    default="",
    help="With the token of a member: where the other members reach this machine.  "
    "[default: the host of --listen, else 127.0.0.1]",
)
@click.option(
    "--publisher",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The root of who may sign releases for this machine; as `leafcast release pin` does. "
    "The unit of --service then runs leafcast-launcher, which installs what the tree chooses.",
)
@listen_options
@store_options
@log_format_option
@health_options
@service_options(_check_for_service)
def join(  # noqa: PLR0913, PLR0917 - click passes options by name
    source: str,
    token: str | None,
    path: str | None,
    data_dir: Path | None,
    kubeconfig: str | None,
    context: str | None,
    simulated: bool,  # noqa: FBT001 - click
    take_over: bool,  # noqa: FBT001 - click
    proxy: str,
    member_host: str,
    publisher: Path | None,
    listens: ListenSettings | None,
    store: StoreOptions,
    log_format: str,
    health: HealthAddress | None,
) -> None:
    """Join the tree at URL with a token, or with the FILE that `leafcast node add` wrote.

    With a token it asks to be let in, with keys made here, and waits until that is approved. Then
    it runs until Ctrl-C: it starts a nats-server and, unless it is a relay, works on a cluster: the
    one of --kubeconfig or --context, in a Pod the one that it runs in, else a simulated one.
    Started again with the same line it goes on where it was, with the cluster that it had. A node
    that was moved goes on with the token of its new place, and the folder that it has. A cluster
    is one edge's, by a Lease in namespace leafcast-system: a second edge is refused there.

    A relay whose children are elsewhere says with --listen where they dial in. It gets its
    certificate from the centre when the first of them is added.

    With the token of `leafcast node add PATH --member` this machine becomes a member of that node
    once it grows: it waits for `leafcast node grow PATH`, and then runs as one.

    With --store-key-file what the node stores is encrypted; each start needs it then. With
    --durability disk it is on the disk once it is acknowledged, from this start on.

    With --service it starts a systemd unit that does all this. `leafcast leave` takes that away.
    """
    named = _named(kubeconfig, context, simulated=simulated)
    os.umask(OTHERS)
    say = say_plainly if log_format == "text" else _logging(log_format)
    again = _again(source, path, data_dir)
    invited = _invited(source, token, path, publisher)
    if invited is not None and invited.token.member:
        reach = _reach(member_host, listens, named, proxy, take_over=take_over)
        start = MemberStart(reach, store, health, log_format, publisher)
        return _run_member(invited, data_dir, start, say, again)
    granted = _granted(invited, data_dir, proxy, say, again) if invited is not None else None
    folder, grant = granted or joined_by(Path(source), data_dir)
    with joined_folder(folder, grant, SystemDice()) as place, kept_if_refused(place):
        cluster = None if grant.relay else cluster_of(place, named)
        say(f"Joining as {_role(grant, cluster)}; its state is in {folder}. Ctrl-C ends it.")
        if grant.former and not (place.former or place.admitted):
            say(_anew(grant))
        _check_listens(listens, member_host, is_relay=grant.relay)
        works_on = EdgeCluster(attachment(cluster), take_over) if cluster is not None else None
        settings = _kept(place, store, listens, publisher)
        options = JoinOptions(works_on, health, proxy, listens, settings)
        node = JoinedNode(grant, place, options, SystemClock(), SystemDice(), say)
        _until_ended(node.run(), again)
    return None


def _kept(
    place: JoinedFolder,
    store: StoreOptions,
    listens: ListenSettings | None,
    publisher: Path | None,
) -> StoreSettings:
    """How it stores, noted for later starts, as is where it listens: it may become a member.

    A publisher that is named is pinned, or followed, for the launcher.
    """
    if publisher is not None:
        _pin(place.folder, publisher)
    kept = KeptStore(durability=store.durability or kept_store(place.folder).durability)
    keep_store(place.folder, kept)
    keep_listen_settings(place.folder, listens)
    return StoreSettings(store.key, kept.durability)


def _invited(
    source: str, token: str | None, path: str | None, publisher: Path | None
) -> Invitation | None:
    """Whom it asks; a publisher that is none is refused before a token is spent."""
    if publisher is not None:
        # Here, as it loads what verifies signatures.
        from leafcast.publisher.pinning import named_publisher  # noqa: PLC0415

        named_publisher(publisher)
    return invitation_of(source, token, path)


def _pin(folder: Path, publisher: Path) -> None:
    # Here, as it loads what verifies signatures.
    from leafcast.publisher.pinning import pin_publisher  # noqa: PLC0415

    pin_publisher(folder, publisher)


def _check_listens(listens: ListenSettings | None, member_host: str, *, is_relay: bool) -> None:
    """Refuse addresses that a node of its kind has not: UsageError."""
    if member_host:
        raise click.UsageError("--member-host goes with the token of a member")
    if listens is not None and not is_relay:
        raise click.UsageError("--listen is for relays: nothing hangs below an edge")


def _role(grant: KeptGrant, cluster: SpaceSetting | None) -> str:
    """What the node is, and where it works."""
    on = f" of {cluster.title}" if cluster is not None and cluster.is_kubernetes else ""
    return f"{'relay' if grant.relay else 'edge'} {grant.path}{on}"


def _granted(
    invited: Invitation,
    data_dir: Path | None,
    proxy: str,
    say: Callable[[str], None],
    again: str,
) -> tuple[Path, KeptGrant]:
    """The folder of the node of a token, and what it was granted now, or at an earlier start."""
    check_way_out(proxy, invited.urls)
    folder = (data_dir or folder_of_token(invited.token, invited.path)).absolute()
    requester = JoinRequester(
        invited.urls,
        invited.token,
        invited.path,
        folder,
        SystemClock(),
        SystemDice(),
        say,
        proxy=proxy,
    )
    grant = requester.granted_before() or _until_ended(requester.run(), again)
    return folder if data_dir else take_along(folder, grant), grant


@dataclass(frozen=True, slots=True)
class MemberStart:
    """What a start line says of a member."""

    reach: MemberReach
    store: StoreOptions
    health: HealthAddress | None
    log_format: str
    publisher: Path | None


def _reach(
    host: str,
    listens: ListenSettings | None,
    cluster: SpaceSetting | None,
    proxy: str,
    *,
    take_over: bool,
) -> MemberReach:
    """Where a member is reached; raises UsageError for what no member has."""
    if cluster is not None or take_over:
        said = (
            "a member has no cluster: leave out --kubeconfig, --context, --simulated, --take-over"
        )
        raise click.UsageError(said)
    if proxy:
        raise click.UsageError(
            "a member does not go out through a proxy yet: let it reach its parent itself, and "
            f"leave out --proxy and {PROXY_VARIABLE}"
        )
    # Here, as it loads what makes certificates: an edge has no use for it.
    from leafcast.join.joining_member import member_reach  # noqa: PLC0415
    from leafcast.members.addresses import HostRefused  # noqa: PLC0415

    try:
        return member_reach(host, listens)
    except ListenRefused as error:
        raise click.BadParameter(str(error), param_hint="--listen") from error
    except HostRefused as error:
        raise click.BadParameter(str(error), param_hint="--member-host") from error


def _run_member(
    invited: Invitation,
    data_dir: Path | None,
    start: MemberStart,
    say: Callable[[str], None],
    again: str,
) -> None:
    """Become a member of the node, unless this machine is one already, and run as one."""
    from leafcast.join.joining_member import JoiningMember, default_member_folder  # noqa: PLC0415

    folder = (data_dir or default_member_folder(invited.token, invited.path)).absolute()
    member = JoiningMember(invited, folder, start.reach, SystemClock(), SystemDice(), say)
    make_private(folder)
    with DataDir(folder).locked():
        settings = member.settled()
        if settings is None:
            _until_ended(member.run(), again)
            settings = member.settled()
        assert settings is not None
        if start.publisher is not None:
            _pin(folder, start.publisher)
        say(f"This is member {settings.name} of {settings.path}; its state is in {folder}.")
        set_up_logs(start.log_format)
        keep_store(folder, start.store.over(kept_store(folder)))
        _until_ended(import_module(_MEMBERS).run_here(DataDir(folder), start.health), again)


def _anew(grant: KeptGrant) -> str:
    """That a node that was moved does not find what it had."""
    return (
        f"It begins anew: what it kept as {grant.former[-1]} is in another folder. To take that "
        "along, end this, and name that folder with --data-dir."
    )


def say_plainly(text: str) -> None:
    """Print what a run says; the words of a proxy or a server in it cannot steer the terminal."""
    click.echo(sanitize(text))


def _until_ended(work: Coroutine[Any, Any, T], again: str) -> T:
    """Run the work; a signal ends the program, and how to go on is said."""
    try:
        return run_until_signal(attended(work))
    except EndedBySignal as end:
        click.echo(f"Stopped. `{again}` goes on.", err=True)
        raise click.exceptions.Exit(end.exit_code) from None


def _again(source: str, path: str | None, data_dir: Path | None) -> str:
    """The command that goes on; a token is no text to print."""
    token = " --token ..." if "://" in source else ""
    named = f" --path {path}" if path else ""
    return f"leafcast join {source}{token}{named}" + (f" --data-dir {data_dir}" if data_dir else "")


def _logging(log_format: str) -> Callable[[str], None]:
    """Say things in the log, where programs read them."""
    set_up_logs(log_format)
    return logging.getLogger("leafcast").info


def _named(kubeconfig: str | None, context: str | None, *, simulated: bool) -> SpaceSetting | None:
    """The cluster that was named, None if none was."""
    if not (kubeconfig or context):
        return SIMULATED if simulated else None
    if simulated:
        raise click.UsageError("--simulated is given with a cluster; name one of them")
    return SpaceSetting("kubeconfig", kubeconfig or "", context or "").seen_from(Path.cwd())
