"""Options that the commands about objects share, and what they say, as kubectl has them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import click

from leafcast.ask.resource_names import UnknownKind
from leafcast.ask.session import Session
from leafcast.cli import shell_completion
from leafcast.cli.options.common import Command, NodeAt
from leafcast.cli.options.label_selectors import LABELS, SOME_LABELS
from leafcast.cli.resource_arguments import BadResourceArguments, ObjectSelection
from leafcast.manifest_sources import BadManifests, read_manifests

if TYPE_CHECKING:
    from schemas.objects.manifest_files import LoadedObject


namespace_option = click.option(
    "-n",
    "--namespace",
    metavar="NAMESPACE",
    shell_complete=shell_completion.namespaces,
    help="The namespace.  [default: default]",
)
"""Given as `namespace: str | None`."""
all_namespaces_option = click.option(
    "-A", "--all-namespaces", is_flag=True, help="In all namespaces."
)
create_namespaces_option = click.option(
    "--create-namespace",
    "create_namespaces",
    is_flag=True,
    help="With them the Namespaces that they lie in, where these are not there.",
)
at_option = click.option(
    "--at",
    type=NodeAt(root=True),
    metavar="PATH",
    shell_complete=shell_completion.paths,
    help="Read the copy of the edge at this path, such as /region-1/site-1, through the tree. "
    "Data of Secrets are redacted.",
)
"""Given as `at: str | None`."""


def selector_option(*, changes: bool) -> Callable[[Command], Command]:
    """`-l`, given as `selector: LabelSelector | None`; for changes it takes no empty one."""
    return click.option(
        "-l",
        "--selector",
        type=SOME_LABELS if changes else LABELS,
        metavar="SELECTOR",
        help="Only objects with these labels: app=web,tier!=db, env in (a,b), !old.",
    )


def files_options(*, required: bool) -> Callable[[Command], Command]:
    """`-f`, given as `files: tuple[str, ...]`, and `-R`, as `recursive: bool`."""

    def both(command: Command) -> Command:
        recurse = click.option(
            "-R", "--recursive", is_flag=True, help="Look into folders below folders too."
        )
        files = click.option(
            "-f",
            "--filename",
            "files",
            multiple=True,
            required=required,
            metavar="PATH",
            shell_complete=shell_completion.files,
            help="A file, a folder (its *.yaml, *.yml and *.json), or - for standard input.  "
            "Repeatable.",
        )
        return files(recurse(command))

    return both


def objects_options(metavar: str, *, changes: bool = False) -> Callable[[Command], Command]:
    """Which objects are meant: `objects` and `files`, and where and how they are looked for."""

    def all_of_them(command: Command) -> Command:
        words = click.argument(
            "objects", nargs=-1, metavar=metavar, shell_complete=shell_completion.kinds_and_names
        )
        looked_for = namespace_option(
            all_namespaces_option(selector_option(changes=changes)(command))
        )
        return words(files_options(required=False)(looked_for))

    return all_of_them


def dry_run_option(what: str) -> Callable[[Command], Command]:
    """`--dry-run`, given as `dry_run`; bare it is `client`, as it was with kubectl once."""
    return click.option(
        "--dry-run",
        is_flag=False,
        flag_value="client",
        type=click.Choice(["none", "client", "server"]),
        default="none",
        help=f"Say what would be {what}, and do nothing. client and server are the same here.",
    )


def load_files(files: Sequence[str], *, recursive: bool) -> list[LoadedObject]:
    """The objects in the files; raises BadManifests with everything that is wrong."""
    context = click.get_current_context(silent=True)
    verb = context.info_name if context is not None else "apply"
    return read_manifests(
        files, sys.stdin.read, recursive=recursive, command=f"leafcast {verb} -f -"
    )


async def meant_by(
    session: Session, loaded: Sequence[LoadedObject], namespace: str | None
) -> list[tuple[ObjectSelection, str]]:
    """The objects that manifests name, each with its namespace; raises BadManifests."""
    # Most commands read no manifests, and start sooner without.
    from leafcast.changes.asked_batches import complete  # noqa: PLC0415

    wishes = await complete(session, loaded, namespace)
    return [(ObjectSelection(wish.kind, (wish.key.name,)), wish.key.namespace) for wish in wishes]


@contextmanager
def refusals() -> Iterator[None]:
    """End as `refuse` does where arguments, kinds or manifests are wrong."""
    try:
        yield
    except BadManifests as error:
        refuse(error.faults)
    except BadResourceArguments as error:
        raise click.UsageError(str(error)) from error
    except UnknownKind as error:
        refuse([str(error)])


def refuse(faults: Sequence[str]) -> NoReturn:
    """End with these lines on standard error, and exit code 1."""
    raise click.ClickException("\n".join(faults))
