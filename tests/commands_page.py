"""The page docs/commands.md, made from the program itself: `make docs` writes it anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

import click

from leafcast.cli.main import cli

_HEAD = """\
# Commands

This page is made from the program by `make docs`; `leafcast COMMAND --help` says the same.

Every command ends with 0 if it did what it was told, with 1 if that did not come to be, with 2 if
it was called wrongly, and with 130 after Ctrl-C. `diff` and `plan` end with 1 if there is a
difference, and with 2 if that cannot be told. Errors are one line each on standard error, with what
to do next.
`LEAFCAST_DATA_DIR` names the data directory for all commands, `LEAFCAST_TRACEBACK=1` shows where an
error arose, and colours are left out in a pipe. As `kubectl leafcast` the program is a plugin of
kubectl.
"""
_AS_IT_STANDS = "\b"
"""Click's mark for a paragraph whose lines stay as they are."""


def commands_page() -> str:
    """All commands with their usage, text and options, as Markdown."""
    root = click.Context(cli, info_name="leafcast")
    found = list(commands(root))
    rows = [
        f"| [`{one.command_path}`](#{_anchor(one)}) | {one.command.get_short_help_str(200)} |"
        for one in found
    ]
    table = "\n".join(["| command | what it does |", "| --- | --- |", *rows])
    return "\n".join([_HEAD, table, "", *map(_section, found)])


def commands(parent: click.Context) -> Iterator[click.Context]:
    """Those that do something; most groups only gather others."""
    assert isinstance(parent.command, click.Group)
    for name in parent.command.list_commands(parent):
        command = parent.command.get_command(parent, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=parent)
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield context
        if isinstance(command, click.Group):
            yield from commands(context)


def _section(context: click.Context) -> str:
    command = context.command
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    texts = (f"```text\n{text}\n```" if as_is else text for text, as_is in paragraphs(command))
    parts = [f"## {context.command_path}", f"```text\n{usage}\n```", *texts]
    rows = [f"| `{_cell(names)}` | {_cell(said)} |" for names, said in options(context)]
    if rows:
        parts.append("\n".join(["| option | what it does |", "| --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"


def paragraphs(command: click.Command) -> Iterator[tuple[str, bool]]:
    """The text of a command, and of each part whether its lines stay as they are."""
    for paragraph in cleandoc(command.help or "").split("\n\n"):
        first, _, rest = paragraph.partition("\n")
        as_it_stands = first.strip() == _AS_IT_STANDS
        yield (rest if as_it_stands else " ".join(paragraph.split())), as_it_stands


def options(context: click.Context) -> Iterator[tuple[str, str]]:
    """How each option of a command is written, and what it does."""
    found = [param for param in context.command.params if isinstance(param, click.Option)]
    return filter(None, (option.get_help_record(context) for option in found))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("*.", "\\*.").replace("<", "&lt;")


def _anchor(context: click.Context) -> str:
    return re.sub(r"[^a-z0-9-]", "", context.command_path.replace(" ", "-"))


if __name__ == "__main__":
    click.echo(commands_page(), nl=False)
