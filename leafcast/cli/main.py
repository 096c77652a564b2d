"""The program `leafcast`: every error is one line with its remedy, and an exit code.

Codes: 0 done, 1 it did not come to be, 2 wrong usage, 128 + n ended by signal n (Ctrl-C is 130).
`LEAFCAST_TRACEBACK=1` shows where an error arose.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NoReturn


@contextmanager
def uncollected() -> Iterator[None]:
    """Modules are loaded without a search for cycles in between, which takes a tenth of it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _not_whole(lacking: ImportError) -> int:
    """Say what an installation lacks of which a part was removed; asked to, compare all of it."""
    if os.environ.get("LEAFCAST_TRACEBACK"):
        raise lacking
    sys.stderr.write(f"error: leafcast is not whole: {lacking}\n")
    if sys.argv[1:] == ["version", "--verify"]:
        # It stands on Python alone.
        checker = import_module("leafcast.bundles.installed_files")
        return int(checker.say_compared(Path(__file__).parents[1]))
    remedy = "`leafcast version --verify` names what differs; or install it anew"
    sys.stderr.write(f"error: {remedy}\n")
    return 1


try:
    with uncollected():
        import click

        from leafcast.cli.command_group import CommandGroup, command_hint, option_hint
        from leafcast.errors import FROM_SERVER, said
except KeyboardInterrupt:
    # Starting takes a moment, in which Ctrl-C is to be as silent as later on.
    raise SystemExit(130) from None
except ImportError as lacking:
    raise SystemExit(_not_whole(lacking)) from None

_GROUPS = {
    "Every day": "demo up down apply delete place label diff plan wait rollout",
    "Look": "ui mcp status why trace get describe render tree events proof verify kubeconfig",
    "Nodes": "node check-host join leave maintenance upgrade keys",
    "Repair": "doctor support-bundle accept orphans withdraw backup restore recover version",
    "Run it yourself": "run install layout nats-config crds denature release bundle completion",
}
_COMMANDS = sorted(" ".join(_GROUPS.values()).split())
_MODULES = {"restore": "backup", "withdraw": "orphans"}
"""Whose commands stand beside another one; each other has a module of its name."""
_INTERRUPTED = 130
_NAMESPACE = ("-n", "--namespace")
_IN_FRONT = (*_NAMESPACE, "--data-dir")
"""Options of commands that may stand before the command, each with a value."""


class _Commands(CommandGroup):
    """Commands are loaded when they are asked for, inside `main`'s handling of errors."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return _COMMANDS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module = _MODULES.get(cmd_name, cmd_name).replace("-", "_")
        with uncollected():
            loaded = import_module(f"leafcast.cli.commands.{module}")
        command = getattr(loaded, cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`help get` is `get --help`, as with kubectl."""
        match args:
            case ["help", *rest]:
                args = [*rest, "--help"]
            case _:
                args = self._with_options_behind(ctx, args)
        return super().parse_args(ctx, args)

    def _with_options_behind(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`-n shop get deploy` is `get deploy -n shop`, as with kubectl."""
        front, rest = _options_in_front(args)
        if not front:
            return args
        command: click.Command | None = self
        words = 0
        while isinstance(command, click.Group) and words < len(rest):
            command = command.get_command(ctx, rest[words])
            words += 1
        if command is None or isinstance(command, click.Group):
            return rest
        taken = {name for option in command.params for name in option.opts}
        for option, _ in front:
            if option not in taken:
                said = f"{' '.join(rest[:words])} takes no {option}"
                ctx.fail(f"{said}: it is in no namespace" if option in _NAMESPACE else said)
        return [*rest[:words], *(word for _, given in front for word in given), *rest[words:]]

    def hint(self, word: str, names: Iterable[str]) -> str:
        return command_hint(word, names)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """In groups, what one needs every day first; no summary is cut."""
        for title, names in _GROUPS.items():
            self.format_section(ctx, formatter, title, names.split())


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="leafcast", message="leafcast %(version)s")
def cli() -> None:
    """Deliver Kubernetes workloads to very many edge clusters, and bring their status back."""


def _options_in_front(args: Sequence[str]) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """The options before the command, each with its words, and what follows."""
    found, at = list[tuple[str, list[str]]](), 0
    while at < len(args):
        option, equals, _ = args[at].partition("=")
        if args[at].startswith("-n") and not args[at].startswith("--") and len(args[at]) > 2:
            found.append(("-n", [args[at]]))
            at += 1
        elif option in _IN_FRONT and equals:
            found.append((option, [args[at]]))
            at += 1
        elif option in _IN_FRONT and at + 1 < len(args):
            found.append((option, list(args[at : at + 2])))
            at += 2
        else:
            break
    return found, list(args[at:])


def main() -> NoReturn:
    """Run the command line in `sys.argv`, and exit."""
    # What is there at the end needs no search for cycles: that would take 0.1 s.
    atexit.register(gc.freeze)
    try:
        code = cli.main(prog_name=_program(), standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as end:
        code = end.exit_code
    except click.ClickException as error:
        code = _usage(error)
    except (click.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except BrokenPipeError:
        # Who read our output has gone. Python would say so once more as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:  # noqa: BLE001 - the top of the program
        code = _failed(error)
    sys.exit(code if isinstance(code, int) else 0)


def _program() -> str:
    """What the user typed: as a plugin, kubectl runs `kubectl-leafcast`."""
    return "kubectl leafcast" if "kubectl-" in os.path.basename(sys.argv[0]) else "leafcast"  # noqa: PTH119


def _usage(error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message())
        return 0
    # Manifests may have many faults: each has its own line, and its own file and line number.
    text = error.format_message()
    if isinstance(error, click.exceptions.NoSuchOption):
        hint = option_hint(error.option_name, error.possibilities or ())
        text = f"{error.message.rstrip('.')}{hint}"
    lines = text.rstrip(".").splitlines()
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else _said()
        lines = [f"{' '.join(' '.join(lines).split())}; see: {where} --help"]
    _tell(lines)
    return error.exit_code


def _said() -> str:
    """The command as it was typed, for an error that does not know it."""
    return " ".join([_program(), *(word for word in sys.argv[1:2] if word in _COMMANDS)])


def _failed(error: Exception) -> int:
    if os.environ.get("LEAFCAST_TRACEBACK"):
        raise error
    _tell(said(error))
    return 1


def _tell(lines: Iterable[str]) -> None:
    """As kubectl says errors; what belongs to the line before it is indented."""
    for line in lines:
        plain = line.startswith((FROM_SERVER, "  "))
        click.echo(line if plain else f"error: {line}", err=True)
