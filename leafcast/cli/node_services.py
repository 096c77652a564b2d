"""What `join --service` and `leave` share: a node of this machine under its service manager."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from functools import wraps
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import click

from leafcast.cli.options.common import Command
from leafcast.join.invitation import Invitation, InvitationUnusable, invitation_of
from leafcast.service.installed import Services, ServiceUnusable
from leafcast.service.unit import NodeUnit, service_name
from schemas.values.identity import NodePath

_FILES = ("--kubeconfig", "--store-key-file", "--tls-cert", "--tls-key", "--tls-ca")
_NOT_TAKEN = ("--token", "--service", "--service-root")
"""They are in other words in the unit, or have no meaning there."""
_ELSEWHERE = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Fields of a kubeconfig that name further files."""
_SAID = (click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT)


def service_options(command: Command) -> Command:
    """Have the command take --service: it then writes a service that joins as it would, itself."""

    @click.option(
        "--service",
        is_flag=True,
        help="Write a systemd unit that joins with these options, and start it; as root.",
    )
    @click.option(
        "--service-root",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default="/",
        metavar="DIR",
        help="With --service: the file system to write it to, as of an image; nothing is started.",
    )
    @wraps(command)
    def either(*, service: bool, service_root: Path, **given: Any) -> Any:
        if service:
            return install_service(click.get_current_context(), service_root)
        if service_root != Path("/"):
            raise click.UsageError("--service-root goes with --service")
        return command(**given)

    return cast("Command", either)


def install_service(ctx: click.Context, root: Path) -> None:
    """Write the unit of the node that the command line is about, start it, and say what is next.

    Raises UsageError for what no unit can have, InvitationUnusable, and ServiceUnusable.
    """
    source = str(ctx.params["source"])
    invitation = invitation_of(source, ctx.params["token"], ctx.params["path"])
    if ctx.params.get("data_dir"):
        raise click.UsageError("--data-dir: a service has its own; leave it out")
    if invitation is None:
        remedy = "name the file that `leafcast node add -o` wrote, or an address with a token"
        raise InvitationUnusable(source, "no service joins with it", remedy)
    files = {option: str(Path(value).absolute()) for option, value in _named_files(ctx)}
    if config := files.get("--kubeconfig"):
        _check_kubeconfig(Path(config))
    if urlsplit(ctx.params.get("proxy") or "").password:
        remedy = "have the proxy let this machine in by its address, and leave the password out"
        raise ServiceUnusable(
            "--proxy", "every user of this machine reads what a unit says", remedy
        )
    services = Services(root)
    unit = NodeUnit(
        invitation.path,
        _program(),
        str(services.invitation_of(invitation.path)),
        (*_options(ctx), *_path_option(invitation)),
        files,
    )
    services.install(unit, f"{','.join(invitation.urls)} {invitation.token.text}")
    click.echo(_next(services, unit))


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


def _program() -> str:
    """This program, absolute, as a service manager starts it."""
    beside = Path(sys.executable).absolute().parent / "leafcast"
    found = str(beside) if beside.exists() else shutil.which("leafcast")
    if found is None:
        remedy = "install Leafcast as a program, as in /opt/leafcast"
        raise ServiceUnusable("leafcast", "the program is not in PATH", remedy)
    return found


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


def _check_kubeconfig(file: Path) -> None:
    """Refuse one that leads to further files: the service finds none of them."""
    # PyYAML takes longer to load than most commands take.
    from schemas.objects.yaml_documents import read_documents  # noqa: PLC0415

    try:
        forms = [it.root for it in read_documents(file.read_text(encoding="utf-8"), str(file))]
    except (OSError, ValueError) as error:
        raise ServiceUnusable(
            file, f"it cannot be read: {error}", "name another --kubeconfig"
        ) from error
    for name in _named(forms):
        remedy = (
            f"write one that holds all: kubectl --kubeconfig {file} config view --minify --flatten"
        )
        raise ServiceUnusable(
            file, f"its field {name} names a file, which a service does not see", remedy
        )


def _named(form: object) -> Iterator[str]:
    if isinstance(form, dict):
        for key, value in form.items():
            if key in _ELSEWHERE:
                yield str(key)
            yield from _named(value)
    elif isinstance(form, list):
        for item in form:
            yield from _named(item)


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
