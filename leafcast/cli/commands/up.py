"""`leafcast up`: a tree on this machine that keeps running until `leafcast down`."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from subprocess import Popen
from typing import NoReturn

import click
from rich.console import Console
from rich.status import Status

from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.kubernetes import take_over_option
from leafcast.cli.options.serving import health_options, listen_options
from leafcast.cli.options.spaces import spaces_options
from leafcast.cli.options.store import StoreOptions, store_options
from leafcast.daemon.logs import daemon_log_option
from leafcast.daemon.process import (
    DaemonEnded,
    NotUpInTime,
    prepare_folder,
    start_daemon,
    stop_daemon,
    stop_started,
    until_ended,
    until_ready,
)
from leafcast.data_dir import ENVIRONMENT, DataDir
from leafcast.doctor.space_checks import SpacesUnusable, check_spaces
from leafcast.local.kube_servers.binaries import KUBECTL, find_binaries
from leafcast.local.tree_kube import CENTRE, CHOICES, binaries_for, contexts, kubeconfig
from leafcast.local.views import (
    DEPTH_MAX,
    DEPTH_MIN,
    REGIONS_MAX,
    SERVERS_MAX,
    SITES_MAX,
    TIMEOUT_SECONDS_MAX,
    TreeShape,
)
from leafcast.members.settings import kept_member
from leafcast.node.credentials.kept_store import keep_store, kept_store
from leafcast.node.credentials.own_certificate import check_files
from leafcast.node.health_endpoint import HealthAddress
from leafcast.node.kept_health import kept_health
from leafcast.node.listen_settings import (
    ListenRefused,
    ListenSettings,
    keep_listen_settings,
    kept_listen_settings,
)
from leafcast.service.watchdog import manager
from leafcast.signals import EndedBySignal, run_until_signal
from leafcast.space_settings import CentreSpaces
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.cluster_settings import MEMBERS
from relay.adapters.server.store_key import CHECK_FILE, check_key
from schemas.values.identity import NodePath
from schemas.values.wording import many

CONTEXTS_SHOWN = 8
_NOT_OF_TRIOS = {
    "--listen": (
        "it names one address, and each member has one of its own; leave it out, or let nodes "
        "elsewhere join a centre that runs once (--members 1)"
    ),
}
"""Why trees of members cannot have an option, and what to do instead."""
SHOP = Path(__file__).resolve().parents[2] / "shop"


@click.command()
@click.option(
    "--regions",
    type=click.IntRange(0, REGIONS_MAX),
    help="Relays below the centre; 0: the centre alone.  [default: 2]",
)
@click.option(
    "--sites",
    type=click.IntRange(1, SITES_MAX),
    help="Edges below each region, each with a simulated cluster.  [default: 3]",
)
@click.option(
    "--depth",
    type=click.IntRange(DEPTH_MIN, DEPTH_MAX),
    help="Tiers in all: 3 are centre, regions and sites.  [default: 3]",
)
@click.option(
    "--members",
    type=click.Choice(["1", "3"]),
    help="On how many servers the centre and each relay run: with 3 one may fail.  [default: 1]",
)
@click.option(
    "--kube",
    is_flag=False,
    flag_value=CENTRE,
    type=click.Choice(CHOICES),
    help="Use a Kubernetes API server for the centre; --kube=all: one for each site, too.",
)
@spaces_options
@take_over_option("Work on the API server though another tree has it as its hub, and is silent.")
@listen_options
@store_options
@health_options
@data_dir_option
@click.option(
    "--timeout",
    "timeout_seconds",
    metavar="SECONDS",
    default=120.0,
    show_default=True,
    type=click.FloatRange(0, TIMEOUT_SECONDS_MAX, min_open=True),
    help="How long to wait until every node is in session; with --foreground it is stopped then.",
)
@daemon_log_option
@click.option(
    "--foreground",
    is_flag=True,
    help="Stay until the tree ends, and stop it on SIGTERM or Ctrl-C: for a service.",
)
def up(  # noqa: PLR0913 - its options
    *,
    regions: int | None,
    sites: int | None,
    depth: int | None,
    members: str | None,
    kube: str | None,
    spaces: CentreSpaces | None,
    take_over: bool,
    listens: ListenSettings | None,
    store: StoreOptions,
    health: HealthAddress | None,
    data_dir: Path | None,
    timeout_seconds: float,
    foreground: bool,
) -> None:
    """Start a tree on this machine, in the background.

    A nats-server for the centre, for each region and for each site, with a simulated cluster at
    each site. `leafcast down` stops it and keeps its data; the next `up` finds all as it was.
    With --members 3 the centre and each region run three times, as one node: one may be lost.

    With --kube people write workloads with kubectl into a real API server. It needs the programs
    etcd, kube-apiserver and kube-controller-manager, and 0.4 GB; with --kube=all kube-scheduler and
    kwok as well, and 0.6 GB for each site. They are looked for in $LEAFCAST_KUBE_ASSETS,
    $KUBEBUILDER_ASSETS, where `make kube` builds them, and in $PATH.

    With --listen nodes join from elsewhere: relays of this machine take their links with TLS, by
    certificates of the tree's own that are renewed in time, or by yours. The centre is at the port
    named (7422), the relays below it at those that follow. A proxy is in front of wss://NAME/PATH,
    and passes WebSockets on to port 8422 of 127.0.0.1 and those that follow.

    With --store-key-file all that its servers store is encrypted. The key goes to them alone; each
    start needs the file. With --durability disk all have on disk what they acknowledge.

    With --workloads-kubeconfig they write into an API server of yours, prepared by `leafcast
    install`; the next `up` goes on with it. It is the hub of one centre: a second one is refused.

    With --foreground it stays until the tree ends: with code 1, unless it was told to.
    """
    place = DataDir.at(data_dir)
    kept = place.tree() if place.folder.is_dir() else None
    shape = _shape(place, kept, {"--regions": regions, "--sites": sites, "--depth": depth})
    kube = _kube(place, kept, kube)
    trios = _trios(place, kept, shape, members, spaces, (listens,))
    running, listens = place.in_use(), _listens_as_member(place, listens)
    _check_spaces(place, kube, spaces, running=running, take_over=take_over)
    _prepare(place, shape, spaces, listens, store, health, running=running)
    start = partial(start_daemon, outlives=not foreground)
    run = partial(start, place, shape, kube, take_over=take_over, trios=trios, health=health)
    if is_up := running and bool((place.daemon() or {}).get("ready")):
        _already_up(place, shape, foreground=foreground)
    else:
        begin = None if running else run
        wait = partial(_wait, place, shape, SystemClock(), timeout_seconds, begin)
        _bring_up(place, shape, partial(wait, foreground=foreground), known=bool(kept))
    if foreground and not is_up:
        _stay(place)
    else:
        click.echo(_next_steps(place, shape, kube, data_dir))


def _listens_as_member(place: DataDir, listens: ListenSettings | None) -> ListenSettings | None:
    """What is to be kept of --listen: nothing at a member of a centre, where all have theirs."""
    member = kept_member(place.folder) if listens is not None else None
    if listens is None or member is None:
        return listens
    if listens != ListenSettings(member.listens):
        own = ", ".join(member.listens) or "its machine alone"
        raise click.UsageError(
            f"--listen: {place.folder} is of member {member.name} of {member.path}, which listens "
            f"at {own}; leave it out"
        )
    return None


def _already_up(place: DataDir, shape: TreeShape, *, foreground: bool) -> None:
    if foreground:
        said = f"a tree runs on {place.folder} already; run `leafcast down` first"
        raise click.ClickException(said)
    click.echo(f"The tree is already up: {_servers(place, shape)}.")


def _prepare(
    place: DataDir,
    shape: TreeShape,
    spaces: CentreSpaces | None,
    listens: ListenSettings | None,
    store: StoreOptions,
    health: HealthAddress | None,
    *,
    running: bool,
) -> None:
    """Refuse what the folder, or the tree that runs there, cannot be told; or make it ready."""
    if running:
        _check_running(place, listens, store, health)
    else:
        _make_ready(place, shape, spaces, listens, store)


def _make_ready(
    place: DataDir,
    shape: TreeShape,
    spaces: CentreSpaces | None,
    listens: ListenSettings | None,
    store: StoreOptions,
) -> None:
    """Make the folder ready for a start, and keep what was said for this and those that follow.

    Raises what refuses it, as StoreKeyRefused, and CertificateUnusable for files that were named
    earlier, and are good no more.
    """
    prepare_folder(place)
    if listens is not None:
        try:
            # Behind its port there is to be one for each relay that follows.
            listens.leaf_address(shape.nodes - shape.destinations - 1, NodePath(), None)
        except ListenRefused as error:
            raise click.BadParameter(str(error), param_hint="--listen") from error
    if store.key is not None:
        checks = (f"*/{CHECK_FILE}", f"members/*/*/{CHECK_FILE}")
        for file in chain.from_iterable(map(place.folder.glob, checks)):
            check_key(file.parent, store.key)
    kept_before = kept_store(place.folder)
    if store.over(kept_before) != kept_before:
        keep_store(place.folder, store.over(kept_before))
    if listens is not None:
        keep_listen_settings(place.folder, listens)
    if spaces is not None:
        place.write_spaces(spaces)
    try:
        kept = kept_listen_settings(place.folder)
    except ListenRefused as error:
        raise click.ClickException(str(error)) from error
    if kept is not None:
        check_files(kept, SystemClock().now().wall_ms)


def _bring_up(
    place: DataDir,
    shape: TreeShape,
    wait: Callable[[], None],
    *,
    known: bool,
) -> None:
    """Wait until the tree is up, and say how long that took."""
    clock = SystemClock()
    began = clock.now().seconds
    wait()
    said = "The tree is up again, with its data" if known else "The tree is up"
    click.echo(f"{said}, after {clock.now().seconds - began:.1f} s: {_servers(place, shape)}.")


def _stay(place: DataDir) -> None:
    """Stay as long as the tree does; a signal ends it. Raises DaemonEnded if it ends by itself."""
    clock = SystemClock()

    async def stay() -> NoReturn:
        # Who is told this may end it at once. Its daemon says that it goes on.
        manager().tell("READY=1\nSTATUS=The tree is up")
        await until_ended(place, clock)

    try:
        run_until_signal(stay())
    except EndedBySignal:
        run_until_signal(stop_daemon(place, clock))
        click.echo(f"Stopped. The data is kept in {place.folder}.")


def _wait(
    place: DataDir,
    shape: TreeShape,
    clock: SystemClock,
    seconds: float,
    start: Callable[[], Popen[bytes]] | None,
    *,
    foreground: bool,
) -> None:
    """Start the daemon, or without `start` join the wait for one, until it is ready.

    In the foreground one that is late is stopped: nobody would look after it.
    """
    console = Console(stderr=True)
    starting = (
        f"Starting {shape.nodes} nats-servers" if place.tree() is None else "Starting the tree"
    )
    status = Status(starting, console=console)
    if console.is_terminal:
        status.start()
    daemon = start() if start else None

    def doing(what: str) -> None:
        said = f"{starting}: {what}"
        if foreground and said != status.status:
            manager().tell(f"STATUS={said}")
        status.update(said)

    try:
        outlives = daemon is None or not foreground
        run_until_signal(until_ready(place, daemon, clock, seconds, doing, outlives=outlives))
    except NotUpInTime as late:
        if daemon is None or not foreground:
            raise
        status.stop()
        _too_late(place, daemon, clock, late)
    except EndedBySignal as end:
        status.stop()
        _interrupted(daemon, clock, end)
    except DaemonEnded:
        # Of two that were started at the same time one gives way.
        if start is None or not place.in_use():
            raise
        _wait(place, shape, clock, seconds, None, foreground=foreground)
    finally:
        status.stop()


def _too_late(
    place: DataDir, daemon: Popen[bytes], clock: SystemClock, late: NotUpInTime
) -> NoReturn:
    """What this command started is stopped, and the data stays; raises ClickException."""
    manager().tell("STATUS=The tree is not up in time, and is stopped")
    with suppress(EndedBySignal):
        run_until_signal(stop_started(daemon, clock))
    raise click.ClickException(
        f"{late.late}; it is stopped, and its data is kept; where it only needs longer, say "
        f"--timeout; all it said: {place.log}"
    ) from late


def _interrupted(daemon: Popen[bytes] | None, clock: SystemClock, end: EndedBySignal) -> NoReturn:
    """Ctrl-C: what this command started is stopped, and the data stays."""
    if daemon is not None:
        said = "stopped; the data is kept, and `leafcast up` goes on"
        try:
            run_until_signal(stop_started(daemon, clock))
        except EndedBySignal:
            said = "the tree is told to stop, and goes on stopping"
        click.echo(f"leafcast: {said}", err=True)
    raise click.exceptions.Exit(end.exit_code)


def _shape(
    place: DataDir, kept: dict[str, object] | None, asked: dict[str, int | None]
) -> TreeShape:
    """The shape of the tree there is, or the one asked for."""
    if kept is None:
        regions, sites, depth = asked.values()
        return TreeShape(2 if regions is None else regions, sites or 3, depth or 3)
    figures = kept["shape"]
    assert isinstance(figures, list)
    for (option, wanted), had in zip(asked.items(), figures, strict=True):
        if wanted is not None and wanted != had:
            raise click.ClickException(
                f"the tree in {place.folder} was made with {option} {had}, not {wanted}; "
                f"leave {option} out, make another tree with --data-dir, or run `leafcast down` "
                "and remove the folder for a new one"
            )
    return TreeShape(*figures)


def _check_size(shape: TreeShape, *, trios: bool) -> None:
    """Refuse a tree of more servers than one machine carries."""
    servers = shape.servers(MEMBERS if trios else 1)
    if servers > SERVERS_MAX:
        raise click.UsageError(
            f"this tree has {servers} nats-servers; one machine carries about {SERVERS_MAX}: lower "
            "--regions, --sites, --depth or --members"
        )


def _trios(
    place: DataDir,
    kept: dict[str, object] | None,
    shape: TreeShape,
    asked: str | None,
    spaces: CentreSpaces | None,
    others: Sequence[object],
) -> bool:
    """Whether the centre and the relays of the tree have three members each.

    `others` are the options that go with one member only, as _NOT_OF_TRIOS names them.
    """
    had = str(kept.get("members", 1)) if kept is not None else None
    if asked is not None and had is not None and asked != had:
        raise click.ClickException(
            f"the tree in {place.folder} was made with --members {had}, not {asked}; leave "
            "--members out, or make another tree with --data-dir"
        )
    trios = (had or asked) == str(MEMBERS)
    for option, given in zip(_NOT_OF_TRIOS, others, strict=True):
        if trios and given:
            said = f"a tree with --members 3 cannot have {option}: {_NOT_OF_TRIOS[option]}"
            raise click.UsageError(said)
    _check_same_spaces(place, spaces)
    _check_size(shape, trios=trios)
    return trios


def _kube(place: DataDir, kept: dict[str, object] | None, asked: str | None) -> str | None:
    """On which API servers the tree there is works, or the one asked for."""
    if kept is None:
        return asked
    had = str(kept["kube"]) if kept.get("kube") else None
    if asked is not None and asked != had:
        made = f"with --kube={had}" if had else "without --kube"
        raise click.ClickException(
            f"the tree in {place.folder} was made {made}; leave --kube out, or make another tree "
            "with --data-dir"
        )
    return had


def _check_running(
    place: DataDir,
    listens: ListenSettings | None,
    store: StoreOptions,
    health: HealthAddress | None,
) -> None:
    """Refuse what a tree that runs cannot be told."""
    other = ""
    if health is not None and (runs := kept_health(place.folder)) != health:
        other = f"its health port at {runs}" if runs is not None else "no health port"
    if listens is not None and kept_listen_settings(place.folder) != listens:
        other = "other addresses"
    kept = kept_store(place.folder)
    if store.over(kept).key_file != kept.key_file:
        other = "another store key"
    if store.over(kept).durability is not kept.durability:
        other = f"durability {kept.durability.value}"
    if other:
        said = f"the tree in {place.folder} runs with {other}; run `leafcast down` first"
        raise click.ClickException(said)


def _check_spaces(
    place: DataDir,
    kube: str | None,
    spaces: CentreSpaces | None,
    *,
    running: bool,
    take_over: bool,
) -> None:
    """Refuse spaces with which the tree cannot work, before anything is started."""
    if kube and not running:
        binaries_for(kube)
    if spaces is None:
        return
    if kube is not None:
        said = "--kube brings an API server of its own; leave it out, or name no other"
        raise click.UsageError(said)
    if running and place.spaces() != spaces:
        said = f"the tree in {place.folder} runs with other spaces; run `leafcast down` first"
        raise click.ClickException(said)
    try:
        # Whether one is a tree's that there is already is for that tree to say.
        new = place.tree() is None and not take_over
        run_until_signal(check_spaces(spaces, SystemClock(), SystemDice(), free=new))
    except SpacesUnusable as error:
        raise click.ClickException(str(error)) from error


def _check_same_spaces(place: DataDir, spaces: CentreSpaces | None) -> None:
    """Refuse others than a centre of several members has: they are its state, at all of them."""
    if spaces is None or not place.has_members() or spaces == place.spaces():
        return
    made = ", ".join(dict.fromkeys(it.title for it in place.spaces().named()))
    raise click.ClickException(
        f"the tree in {place.folder} was made with {made}, and keeps that at all members; leave "
        "--workloads-kubeconfig and --inventory-kubeconfig out, or name another --data-dir"
    )


def _servers(place: DataDir, shape: TreeShape) -> str:
    """The nodes that run here, by the daemon's word: some may have been removed since."""
    made = [*[shape.regions] * (shape.depth - 2), shape.destinations]
    regions, *below, sites = (place.daemon() or {}).get("nodes") or made
    relays = f"{many(sum(below), 'relay')} below, " if sum(below) else ""
    return f"a centre, {many(regions, 'region')}, {relays}{many(sites, 'site')}"


def _next_steps(place: DataDir, shape: TreeShape, kube: str | None, named: Path | None) -> str:
    """What to type next, as it can be typed here."""
    lines = _kube_lines(place, shape, kube) if kube else []
    shop = min((str(SHOP), os.path.relpath(SHOP)), key=len)
    steps = [
        ("leafcast tree", "show the nodes and their state"),
        (f"leafcast apply -f {shlex.quote(shop)}", "deliver a small shop"),
        ("leafcast status", "show how far it got"),
        ("leafcast down", "stop the tree, and keep its data"),
    ]
    if named is not None and os.environ.get(ENVIRONMENT) != str(named):
        steps.insert(0, (f"export {ENVIRONMENT}={shlex.quote(str(place.folder))}", "this tree"))
    width = max((len(line) for line, _ in steps if len(line) < 44), default=0)
    steps_shown = [f"  {line:<{width}}   {what}" for line, what in steps]
    return "\n".join([*lines, "", "Next:", *steps_shown])


def _kube_lines(place: DataDir, shape: TreeShape, kube: str) -> list[str]:
    """How to get into its API servers."""
    names = list(contexts(shape, kube).values())
    file = kubeconfig(place)
    listed = ", ".join(names if len(names) <= CONTEXTS_SHOWN else [*names[:CONTEXTS_SHOWN], "..."])
    program = "kubectl"
    if shutil.which(program) is None and (built := find_binaries().found.get(KUBECTL)):
        program = shlex.quote(str(built))
    return [
        "",
        f"API servers of Kubernetes, with {many(len(names), 'context')} ({listed}):",
        f"  export KUBECONFIG={shlex.quote(str(file))}",
        f"  {program} --context {names[0]} get edgeplacements",
    ]
