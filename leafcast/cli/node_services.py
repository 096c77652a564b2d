"""What `join --service` and `leave` share: a node of this machine under its service manager."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from leafcast.cli.options.service import ServiceCheck
from leafcast.join.invitation import Invitation, InvitationUnusable, invitation_of
from leafcast.service.installed import Services, ServiceUnusable
from leafcast.service.unit import NodeUnit, service_name
from leafcast.service.unit_view import file_for, launcher_for, own_program, program_for
from relay.claims.leases import EDGE_LEASE
from schemas.values.identity import NodePath

_FILES = ("--kubeconfig", "--publisher", "--store-key-file", "--tls-cert", "--tls-key", "--tls-ca")
_NOT_TAKEN = ("--token", "--service", "--service-root")
"""They are in other words in the unit, or have no meaning there."""
_ELSEWHERE = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Fields of a kubeconfig that name further files, if there is no such field with -data."""
_PROGRAMS = ("exec", "auth-provider")
"""Fields of its user that name a program."""
_SAID = (click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT)


def install_service(
    ctx: click.Context, root: Path, given: Mapping[str, Any], check: ServiceCheck
) -> None:
    """Write the unit of the node that the command line is about, start it, and say what is next.

    Raises UsageError for what no unit can have, InvitationUnusable, and ServiceUnusable.
    """
    source = str(given["source"])
    if given["data_dir"]:
        raise click.UsageError("--data-dir: a service has its own; leave it out")
    invitation = invitation_of(source, given["token"], given["path"])
    if invitation is None:
        said = "no service joins with it" if Path(source).exists() else "there is no such file"
        remedy = "name the file that `leafcast node add -o` wrote, or an address with a token"
        raise InvitationUnusable(source, said, remedy)
    check(invitation, given)
    _check_cluster(given)
    _check_password(given["proxy"])
    services = Services(root.absolute())
    files = {
        option: file_for(services.root, option, Path(file)) for option, file in _named_files(ctx)
    }
    program = program_for(services.root, own_program())
    kept = _kept_publisher(services, service_name(invitation.path), files)
    unit = NodeUnit(
        invitation.path,
        program,
        str(services.invitation_of(invitation.path)),
        (*_options(ctx), *_path_option(invitation)),
        files,
        launcher_for(services.root, program) if "--publisher" in files else "",
    )
    services.install(unit, f"{','.join(invitation.urls)} {invitation.token.text}")
    if kept:
        click.echo(f"Its publisher stays the one in {kept}; `leafcast leave` takes it away, too.")
    click.echo(_next(services, unit))


def _kept_publisher(services: Services, name: str, files: dict[str, str]) -> str:
    """Whom the unit that is replaced believes goes on if nobody is named; that file, or "".

    Raises ReleaseRefused or PublisherFileUnusable unless the file has a publisher's root.
    """
    kept = "" if "--publisher" in files else services.publisher_of(name)
    if kept:
        files["--publisher"] = kept
    if file := files.get("--publisher"):
        # Here, as it loads what verifies signatures.
        from leafcast.publisher.pinning import named_publisher  # noqa: PLC0415

        named_publisher(services.root / file.lstrip("/"))
    return kept


def _next(services: Services, unit: NodeUnit) -> str:
    if not services.is_live:
        return f"{services.unit_file(unit.name)} is written, and starts with that system."
    steps = [
        (f"systemctl status {unit.name}", "whether it runs"),
        (f"journalctl -fu {unit.name}", "what it says"),
        (f"leafcast leave {unit.path}", "take it away again"),
    ]
    width = max(len(line) for line, _ in steps)
    lines = [f"  {line:<{width}}   {what}" for line, what in steps]
    return "\n".join(
        [f"{unit.name} is started, and starts with this machine.", "", "Next:", *lines]
    )


def _path_option(invitation: Invitation) -> tuple[str, ...]:
    """The place, where the token does not say it."""
    return () if invitation.token.path is not None else ("--path", str(invitation.path))


def _options(ctx: click.Context) -> Iterator[str]:
    """The options that were said, but for files and for what a unit says in other words."""
    for option in _said(ctx):
        name, value = option.opts[0], ctx.params[option.name or ""]
        if name in (*_FILES, *_NOT_TAKEN, "--path"):
            continue
        if option.is_flag:
            yield name
            continue
        for one in value if option.multiple else (value,):
            yield name
            yield str(one)


def _named_files(ctx: click.Context) -> Iterator[tuple[str, str]]:
    for option in _said(ctx):
        if option.opts[0] in _FILES:
            yield option.opts[0], str(ctx.params[option.name or ""])


def _said(ctx: click.Context) -> Iterator[click.Option]:
    for option in ctx.command.params:
        if (
            isinstance(option, click.Option)
            and ctx.get_parameter_source(option.name or "") in _SAID
        ):
            yield option


def _check_cluster(given: Mapping[str, Any]) -> None:
    """Refuse a cluster that the service would not reach, or would take from another edge."""
    config, context = given["kubeconfig"], given["context"]
    again = "" if config is None else f"--kubeconfig {config} "
    if given["take_over"]:
        reason = "the service would take the cluster from another edge at each start"
        remedy = (
            f"once the other edge is gone, `kubectl {again}-n leafcast-system delete lease "
            f"{EDGE_LEASE}`, and leave it out"
        )
        raise ServiceUnusable("--take-over", reason, remedy)
    if config is None:
        if context:
            reason = "a service does not see the file that kubectl takes"
            raise ServiceUnusable("--context", reason, "name that file with --kubeconfig, too")
        return
    # Most commands need none of this, which takes long to load.
    from relay.adapters.kubernetes.kubeconfig import Kubeconfig, read_access  # noqa: PLC0415
    from relay.space_errors import SpaceError  # noqa: PLC0415

    try:
        access = read_access(Kubeconfig(str(Path(config).expanduser()), context or ""))
    except SpaceError as error:
        raise ServiceUnusable("--kubeconfig", error.message, "or name another file") from error
    for section in (access.cluster, access.user):
        for name in _ELSEWHERE:
            if section.get(name) and not section.get(f"{name}-data"):
                reason = f"its field {name} names a file, which a service does not see"
                remedy = (
                    "write one that holds all: "
                    f"kubectl --kubeconfig {config} config view --minify --flatten"
                )
                raise ServiceUnusable(config, reason, remedy)
    if program := next((name for name in _PROGRAMS if access.user.get(name)), None):
        reason = f"its user has {program}, a program that logs in as a person does"
        remedy = "name one with the token or the certificate of an account for the edge"
        raise ServiceUnusable(config, reason, remedy)


def _check_password(proxy: str) -> None:
    """Refuse a proxy that lets in by one."""
    if urlsplit(proxy).username:
        remedy = "have the proxy let this machine in by its address, and leave the password out"
        raise ServiceUnusable(
            "--proxy", "every user of this machine reads what a unit says", remedy
        )


def service_of(services: Services, path: str | None) -> str:
    """The service of a node, or the only one that there is; raises ServiceUnusable."""
    names = services.names()
    wanted = service_name(NodePath.parse(path)) if path is not None else None
    if wanted in names:
        assert wanted is not None
        return wanted
    if wanted is None and len(names) == 1:
        return names[0]
    there = f"there are {', '.join(names)}" if names else "there is none"
    reason = f"{there}, by `leafcast join --service`"
    remedy = "name the node by its path" if names else "end a `leafcast join` of your own by Ctrl-C"
    raise ServiceUnusable(wanted or "of this machine", reason, remedy)
