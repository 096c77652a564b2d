"""`leafcast run center|relay|edge`: one node in the foreground, on a nats-server run elsewhere."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

import click

from leafcast.cli.options.kubernetes import take_over_option
from leafcast.cli.options.page import served_page_options
from leafcast.cli.options.serving import health_options
from leafcast.daemon.logs import log_format_option, set_up_logs
from leafcast.data_dir import OTHERS, DataDir, make_private
from leafcast.join.external_node import run_node
from leafcast.members.settings import FILE as MEMBER_FILE
from leafcast.members.settings import kept_member
from leafcast.node.credentials.own_certificate import read_pem
from leafcast.node.health_endpoint import HealthAddress
from leafcast.node.run_config import RunConfig, RunConfigRefused, read_run_config
from leafcast.signals import EndedBySignal, run_until_signal
from leafcast.ui.page_place import PagePlace
from relay.adapters.clock import SystemClock

_CENTRE = "leafcast.cli.run_centre"
"""Loaded for a centre, and for members, only: a relay or an edge would take 25 MB more by it."""


@click.command()
@click.argument("role", type=click.Choice(["center", "relay", "edge"]))
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path),
    required=True,
    help="The node's file; what it keeps lies in the same folder.",
)
@take_over_option(
    "Work on the hub, or the cluster, though another tree or edge that is gone still claims it."
)
@click.option(
    "--publisher",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The root of who may sign releases for this machine; as `leafcast release pin` does. "
    "leafcast-launcher, which runs this command, then installs what the tree chooses.",
)
@log_format_option
@health_options
@served_page_options
def run(
    *,
    role: str,
    file: Path,
    take_over: bool,
    publisher: Path | None,
    log_format: str,
    health: HealthAddress | None,
    page: PagePlace | None,
) -> None:
    """Run one node until it is told to end, on a nats-server that you run.

    `leafcast layout` writes the files of a whole tree, for the nodes and for their servers. The
    file names the spaces of a centre (workloads, inventory) and the cluster of an edge: embedded or
    simulated, in-cluster, or kubeconfig and context.

    It runs one member of a node that runs on three machines, with a server of its own: the file is
    member.json in that one's data directory. /readyz says whether it is active or stands by.

    With --ui a centre serves the page, as `leafcast ui` does. The address that lets the next
    browser in is in the file page-address of its data directory.
    """
    if page is not None and (role != "center" or file.name == MEMBER_FILE):
        said = "--ui is of a centre on one machine; elsewhere run `leafcast ui` beside the node"
        raise click.UsageError(said)
    if file.name == MEMBER_FILE:
        _run_member(file, role, log_format, health, publisher, take_over=take_over)
        return
    config = read_run_config(file)
    _check(file, config, role)
    set_up_logs(log_format)
    folder = file.absolute().parent
    _check_certificate(config, folder)
    os.umask(OTHERS)
    make_private(folder)
    _pin(folder.parent if role == "center" else folder, publisher)
    asked = health or (config.health.address if config.health else None)
    try:
        if role == "center":
            import_module(_CENTRE).run_centre(config, folder, asked, page, take_over=take_over)
        else:
            with DataDir(folder).locked():
                run_until_signal(run_node(config, folder, asked, take_over=take_over))
    except EndedBySignal:
        # To be told to end is how such a program ends.
        return


def _pin(folder: Path, publisher: Path | None) -> None:
    """Have the launcher believe a publisher, if one is named."""
    if publisher is not None:
        # Here, as it loads what verifies signatures.
        from leafcast.publisher.pinning import pin_publisher  # noqa: PLC0415

        pin_publisher(folder, publisher)


def _run_member(
    file: Path,
    role: str,
    log_format: str,
    health: HealthAddress | None,
    publisher: Path | None,
    *,
    take_over: bool,
) -> None:
    """Run the member of a node in whose data directory the file is."""
    place = DataDir(file.absolute().parent)
    settings = kept_member(place.folder)
    if settings is None:
        raise RunConfigRefused(file, "it is not there")
    if role != (meant := "center" if settings.path.is_root else "relay"):
        raise RunConfigRefused(file, _other_role(meant, role))
    set_up_logs(log_format)
    os.umask(OTHERS)
    make_private(place.folder)
    with suppress(EndedBySignal), place.locked():
        _pin(place.folder, publisher)
        import_module(_CENTRE).run_member(place, health, take_over=take_over)


def _check_certificate(config: RunConfig, folder: Path) -> None:
    """Refuse a certificate that no child would take; raises CertificateUnusable."""
    place = config.server_place(folder)
    if place.tls is None:
        return
    # Here, as it loads what reads certificates.
    from relay.adapters.tls.certificate_checks import check_pair  # noqa: PLC0415

    host = urlsplit(place.leaf_url).hostname or ""
    file = str(place.tls.certificate)
    certificate, key = read_pem(file), read_pem(str(place.tls.key))
    trusted = read_pem(str(place.authorities)) if place.authorities else ""
    check_pair(certificate, key, trusted, [host], SystemClock().now().wall_ms, file)


def _check(file: Path, config: RunConfig, role: str) -> None:
    meant = "center" if config.node.is_root else "edge" if config.edge else "relay"
    if role != meant:
        raise RunConfigRefused(file, _other_role(meant, role))


def _other_role(meant: str, role: str) -> str:
    return f"it is of a node that runs as {meant}, not {role}"
