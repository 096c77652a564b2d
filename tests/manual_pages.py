"""Manual pages and completions in deploy/share, from the program: `make docs` writes them anew."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from leafcast.cli.main import cli
from tests.commands_page import commands, options, paragraphs

SHARE = Path(__file__).resolve().parents[1] / "deploy" / "share"
COMPLETIONS = {
    "bash": "bash-completion/completions/leafcast",
    "zsh": "zsh/site-functions/_leafcast",
    "fish": "fish/vendor_completions.d/leafcast.fish",
}
"""Where each shell looks for them, below a `share` of its own."""
# Signs that roff takes for something else, or draws as something else that one cannot copy.
_SIGNS = {
    "\\": r"\(rs",
    "-": r"\-",
    "'": r"\(aq",
    "`": r"\(ga",
    "^": r"\(ha",
    "~": r"\(ti",
    '"': r"\(dq",
}
_EXITS = """\
0 if it did what it was told, 1 if that did not come to be, 2 if it was called wrongly, 130 after \
Ctrl-C. diff and plan end with 1 if there is a difference, and with 2 if that cannot be told."""
_ENVIRONMENT = {
    "LEAFCAST_DATA_DIR": "The data directory, for all commands.",
    "LEAFCAST_TRACEBACK": "With 1, an error shows where it arose.",
    "NO_COLOR": "With any value, nothing is coloured.",
}


def files() -> dict[str, str]:
    """Each file by its name below `share`."""
    root = click.Context(cli, info_name="leafcast")
    found = list(commands(root))
    pages = {"leafcast": _overview(root, found), **{_name(one): _page(one) for one in found}}
    manual = {f"man/man1/{name}.1": text for name, text in pages.items()}
    return {**manual, **{file: _completion(shell) for shell, file in COMPLETIONS.items()}}


def _completion(shell: str) -> str:
    kind = get_completion_class(shell)
    assert kind is not None
    source = kind(cli, {}, "leafcast", "_LEAFCAST_COMPLETE").source().strip()
    # What an option does may have a comma of its own; other shells split nothing.
    return source.replace('string split ","', 'string split -m1 ","') + "\n"


def _name(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _overview(root: click.Context, found: list[click.Context]) -> str:
    """What the program is, and which pages there are."""
    environment = (part for name, said in _ENVIRONMENT.items() for part in _entry(name, said))
    pages = (
        part
        for one in found
        for part in _entry(f"{_name(one)}(1)", one.command.get_short_help_str(200))
    )
    return _joined(
        *_head("leafcast", cli.get_short_help_str(200)),
        *_synopsis(root),
        ".SH DESCRIPTION",
        *_text(root.command),
        *_options(root),
        ".SH COMMANDS",
        *pages,
        ".SH EXIT STATUS",
        _plain(_EXITS),
        ".SH ENVIRONMENT",
        *environment,
    )


def _page(context: click.Context) -> str:
    """The page of one command."""
    return _joined(
        *_head(_name(context), context.command.get_short_help_str(200)),
        *_synopsis(context),
        ".SH DESCRIPTION",
        *_text(context.command),
        *_options(context),
        ".SH SEE ALSO",
        _bold("leafcast") + "(1)",
    )


def _head(name: str, said: str) -> Iterator[str]:
    yield '.\\" Made from the program by `make docs`.'
    yield f'.TH {_plain(name.upper())} 1 "" Leafcast Leafcast'
    # Neither words broken at the end of a line, nor gaps: both hinder who copies.
    yield ".nh"
    yield ".ad l"
    yield ".SH NAME"
    yield f"{_plain(name)} \\- {_plain(said.rstrip('.'))}"


def _synopsis(context: click.Context) -> Iterator[str]:
    yield ".SH SYNOPSIS"
    pieces = " ".join(context.command.collect_usage_pieces(context))
    yield f"{_bold(context.command_path)} {_plain(pieces)}"


def _text(command: click.Command) -> Iterator[str]:
    for text, as_it_stands in paragraphs(command):
        yield ".PP"
        if as_it_stands:
            yield ".nf"
            yield from map(_plain, text.splitlines())
            yield ".fi"
        else:
            yield _plain(text)


def _options(context: click.Context) -> Iterator[str]:
    found = list(options(context))
    if found:
        yield ".SH OPTIONS"
        for names, said in found:
            yield from _entry(names, said)


def _entry(term: str, said: str) -> Iterator[str]:
    yield ".TP"
    yield _bold(term)
    yield _plain(" ".join(said.split()))


def _bold(text: str) -> str:
    return rf"\fB{_plain(text)}\fR"


def _plain(text: str) -> str:
    """The text as roff draws it to the letter; a line that begins with a dot is no request."""
    drawn = "".join(_SIGNS.get(sign) or _ascii(sign) for sign in text)
    return rf"\&{drawn}" if drawn.startswith(".") else drawn


def _ascii(sign: str) -> str:
    return sign if sign.isascii() else rf"\[u{ord(sign):04X}]"


def _joined(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def write() -> None:
    """All of them anew; what the program has no more goes."""
    shutil.rmtree(SHARE, ignore_errors=True)
    for name, text in files().items():
        file = SHARE / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    sys.stderr.write(f"{SHARE}\n")


if __name__ == "__main__":
    write()
