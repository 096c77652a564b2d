"""`leafcast install`: definitions, namespace and rights of a space, for `kubectl apply -f -`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack

import click

from leafcast.cli.install_manifests import (
    ROLES,
    STATUSES,
    InstalledObject,
    InstallOptions,
    manifests,
)
from leafcast.cli.options.kubernetes import context_option, kubeconfig_option
from leafcast.doctor.live_cluster import check_inert
from leafcast.signals import run_until_signal
from leafcast.space_settings import SpaceSetting
from leafcast.spaces import open_kubernetes
from relay.adapters.clock import SystemClock, SystemDice
from schemas.objects.yaml_writing import write_yaml

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_KIND = re.compile(r"[a-z0-9-]+(\.[a-z0-9.-]+)?\Z")


@click.command()
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="all",
    show_default=True,
    help="What the space is: of workload objects, of Locations and SyncTargets, both (all), or the "
    "cluster of an edge.",
)
@kubeconfig_option("The API server to look at first.")
@context_option
@click.option(
    "--allow-live-cluster",
    is_flag=True,
    help="Also where objects come to life, so that a Deployment starts Pods beside the centre.",
)
@click.option(
    "--kind",
    "kinds",
    metavar="RESOURCE[.GROUP]",
    multiple=True,
    help="Let the centre read only this, as deployments.apps; repeat it.  [default: every kind]",
)
@click.option(
    "--singleton-status",
    "statuses",
    type=click.Choice(STATUSES),
    default="built-in",
    show_default=True,
    help="Of which kinds the centre may write the status that a placement wants back.",
)
@click.option(
    "--namespace",
    "namespaces",
    metavar="NAME",
    multiple=True,
    help="Let an edge read and write only there; repeat it.  [default: the whole cluster]",
)
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml")
def install(  # noqa: PLR0913 - one argument for each option
    *,
    role: str,
    kubeconfig: str | None,
    context: str | None,
    allow_live_cluster: bool,
    kinds: tuple[str, ...],
    statuses: str,
    namespaces: tuple[str, ...],
    output: str,
) -> None:
    """Print what Leafcast needs on an API server.

    Definitions of its kinds, a namespace, and accounts with the rights that they need. Nothing is
    changed: `leafcast install --context hub | kubectl --context hub apply -f -`. With --context or
    --kubeconfig that server is looked at first: one that runs workloads is refused, as objects of a
    workload description space are to be inert.
    """
    wish = InstallOptions(
        role, tuple(map(_kind, kinds)), statuses, _spaces_of_edge(role, namespaces)
    )
    if (kubeconfig or context) and wish.workloads and not allow_live_cluster:
        _look(SpaceSetting("kubeconfig", kubeconfig or "", context or ""))
    listed = manifests(wish)
    if output == "json":
        form = {"apiVersion": "v1", "kind": "List", "items": [one.object for one in listed]}
        click.echo(json.dumps(form, indent=2))
    else:
        click.echo("---\n".join(map(_text, listed)), nl=False)


def _look(setting: SpaceSetting) -> None:
    async def look() -> None:
        clock = SystemClock()
        async with AsyncExitStack() as stack:
            space = open_kubernetes(setting, clock, SystemDice(), stack)
            await check_inert(space, setting.title, clock.now().wall_ms)

    run_until_signal(look())


def _spaces_of_edge(role: str, namespaces: tuple[str, ...]) -> tuple[str, ...]:
    """The namespaces that were named, each once; refuses what names none."""
    if namespaces and role != "edge":
        raise click.UsageError("--namespace is for an edge: say --role edge, too")
    for name in namespaces:
        if not _NAME.match(name):
            remedy = "write lower-case letters, digits and dashes, at most 63, as in shop-1"
            said = f'"{name}" is no name of a namespace; {remedy}'
            raise click.BadParameter(said, param_hint="--namespace")
    return tuple(dict.fromkeys(namespaces))


def _kind(text: str) -> tuple[str, str]:
    if not _KIND.match(text):
        remedy = "write the plural and its group, as deployments.apps, or configmaps"
        raise click.BadParameter(f'"{text}" is no resource; {remedy}', param_hint="--kind")
    resource, _, group = text.partition(".")
    return group, resource


def _text(manifest: InstalledObject) -> str:
    return "".join([*_comment(manifest.why), write_yaml(manifest.object)])


def _comment(text: str) -> Iterator[str]:
    line = "#"
    for word in text.split():
        if len(line) + len(word) >= 100:
            yield f"{line}\n"
            line = "#"
        line += f" {word}"
    yield f"{line}\n"
