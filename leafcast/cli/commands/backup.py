"""`leafcast backup` and `restore`: what a centre holds, in one file, or on a timer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from leafcast.ask.failures import CallFailed, NotRunning
from leafcast.backups.operator_keys import read_operator_public, write_operator_key
from leafcast.backups.refusals import BackupUnusable
from leafcast.backups.restoring import newest_in, place_backup
from leafcast.cli.command_group import CommandGroup
from leafcast.cli.options.common import Parsed, data_dir_option, span_seconds
from leafcast.cli.options.operator_key import key_options, operator_key, passphrase
from leafcast.cli.session_calls import call
from leafcast.data_dir import DataDir, DataDirUnusable
from leafcast.show.durations import span_text
from leafcast.show.sanitize import sanitize
from relay.adapters.clock import SystemClock, SystemDice
from schemas.values.identity import NodePath
from schemas.values.wording import many, some_of

SECONDS = 3600.0
KEEP_MAX = 100_000
NODES_NAMED = 8

_call = partial(call, seconds=SECONDS)
_KUBERNETES = "The objects of a centre whose spaces are API servers are theirs to back up."
_VERIFICATION = "leafcast.cli.commands.backup_verify"
"""It loads a whole centre, which the other commands do without."""
_TRIO = "leafcast.daemon.restored_trio"
"""It loads what runs members, likewise."""


class _Backup(CommandGroup):
    """A word that is none of its commands is the FILE to be written."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put what is no command behind `--file`, so that it may stand among the options."""
        rest, words, takes_value = list[str](), list[str](), False
        valued = {
            name for it in self.params if not getattr(it, "is_flag", False) for name in it.opts
        }
        for at, word in enumerate(args):
            if takes_value or word.startswith("-"):
                takes_value = not takes_value and word in valued
                rest.append(word)
            elif word in self.list_commands(ctx):
                return super().parse_args(ctx, [*rest, *args[at:]])
            else:
                words.append(word)
        for word in words:
            # A command that is misspelt is no name for a file.
            hint = "" if "/" in word else self.hint(word, self.list_commands(ctx))
            if hint:
                ctx.fail(f'no such command "{word}" ({hint}); a FILE of this name is ./{word}')
        if len(words) > 1:
            ctx.fail(f'one FILE at a time, and "{words[1]}" is none of its commands')
        return super().parse_args(ctx, [*rest, *(f"--file={word}" for word in words)])


_EVERY = Parsed("duration", lambda text: 0 if text == "off" else span_seconds(text))


@click.group(
    cls=_Backup,
    invoke_without_command=True,
    subcommand_metavar="[FILE | COMMAND [ARGS]...]",
    epilog=_KUBERNETES,
)
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path), hidden=True)
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@click.option("--every", type=_EVERY, metavar="SPAN", help="So often, such as 15m; or off.")
@click.option("--keep", type=click.IntRange(1, KEEP_MAX), help="So many.  [default: 96]")
@click.option(
    "--to",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder, on another disk: a new or empty one, or one with backups of this tree.",
)
@click.option(
    "--key",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.pub",
    help="The public key for which they are closed, of `leafcast backup key new`.",
)
@data_dir_option
@click.pass_context
def backup(
    ctx: click.Context,
    /,
    file: Path | None,
    data_dir: Path | None,
    *,
    force: bool,
    **said: Any,
) -> None:
    """Write the running centre's ledger, content, objects and keys: into FILE, or on a timer.

    FILE is in clear, and holds the keys of the tree: keep it where nobody else reads it. On a timer
    (--every, --keep, --to) backups share what did not change, and are closed for your key: the
    centre cannot open them. What is said once stays, over restarts, until it is said anew. Without
    any word it says how backups stand.
    """
    changes = any(value is not None for value in said.values())
    if ctx.invoked_subcommand is not None:
        if file or force or changes:
            raise click.UsageError(f"say nothing before `{ctx.invoked_subcommand}`")
        return
    if file is not None:
        if changes:
            raise click.UsageError(
                "FILE is one backup; --every, --keep, --to, --key are the timer's"
            )
        _write(file, data_dir, force=force)
    elif changes:
        _change(data_dir, **said)
    elif force:
        raise click.UsageError("--force is about a FILE")
    else:
        for line in standing_lines(_call(data_dir, "backups"), SystemClock().now().wall_ms):
            click.echo(sanitize(line))


def _write(file: Path, data_dir: Path | None, *, force: bool) -> None:
    if file.exists() and not force:
        raise BackupUnusable(file, "it is there already", "say --force to replace it")
    _call(data_dir, "backup", file=str(file.absolute()))
    click.echo(f"{file}: {file.stat().st_size} bytes written; it holds the tree's keys")


def _change(
    data_dir: Path | None,
    every: int | None,
    keep: int | None,
    to: Path | None,
    key: Path | None,
) -> None:
    public = read_operator_public(key).hex() if key else ""
    folder = str(to.absolute()) if to else ""
    done = _call(data_dir, "backup-timer", every=every, keep=keep, to=folder, public=public)
    if written := done["written"]:
        messages = many(written["messages"], "message")
        click.echo(f"{written['file']}: {messages}, {written['bytes']} bytes written")
    for line in standing_lines(done["facts"], SystemClock().now().wall_ms):
        click.echo(sanitize(line))


def standing_lines(facts: dict[str, Any], now_ms: int) -> list[str]:
    """How backups are set, and how the last ones went."""
    if not facts["seconds"]:
        lines = ["No backups on a timer."]
    else:
        every = span_text(facts["seconds"])
        kept = f"{facts['keep']} are kept, closed for key {facts['key']}"
        lines = [f"Every {every} to {facts['to']}; {kept}."]
    if facts["made_ms"]:
        ago = span_text((now_ms - facts["made_ms"]) / 1000)
        took = f"{facts['bytes']} bytes in {facts['took_seconds']:.1f} s"
        lines.append(f"The last one {ago} ago: {facts['file']}, {took}.")
    if facts["made_ms"] and facts.get("same_disk"):
        lines.append("They lie on the centre's own disk, which takes them with it: --to another.")
    if facts["trouble"]:
        lines.append(f"They fail: {facts['trouble']}")
    if facts["verified_ms"]:
        ago = span_text((now_ms - facts["verified_ms"]) / 1000)
        took = f"{facts['restore_seconds']:.1f} s"
        lines.append(f"Verified {ago} ago: {facts['verified_file']} ran after {took}.")
    if facts["damaged_ms"]:
        ago = span_text((now_ms - facts["damaged_ms"]) / 1000)
        why = f"{facts['damaged_reason']}; {facts['damaged_remedy']}"
        lines.append(f"One that was verified {ago} ago cannot be restored: {why}")
    return lines


@backup.command()
@click.argument("file", type=click.Path(path_type=Path))
@key_options
@click.option(
    "--scratch",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="DIR",
    help="Where there is room for what is restored.  [default: the folder of temporary files]",
)
def verify(
    file: Path, key: Path | None, passphrase_file: Path | None, scratch: Path | None
) -> None:
    """Restore a backup into an empty folder, start it there without links, and compare.

    It reaches no node and no API server, and a tree that runs here is not touched. FILE is one
    backup; of a folder of backups the newest is taken. How long it took stands in `leafcast doctor`
    as the time that a restore takes.
    """
    opens = operator_key(key, passphrase_file)
    for line in import_module(_VERIFICATION).run_verification(file, opens, scratch):
        click.echo(sanitize(line))


@backup.group("key", cls=CommandGroup)
def key_group() -> None:
    """The key for which backups are closed: its private half stays with you."""


@key_group.command("new")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--passphrase", "asks", is_flag=True, help="Ask for a passphrase, and lock FILE.")
@click.option(
    "--passphrase-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Lock it with what this file says.",
)
@data_dir_option
def new_key(file: Path, passphrase_file: Path | None, data_dir: Path | None, *, asks: bool) -> None:
    """Make a key: the private half in FILE, the public one in FILE.pub.

    A centre that runs here and has no such key gets the public half; another one gets it by
    `leafcast backup --key FILE.pub`. Keep FILE elsewhere, twice: without it no backup opens.
    """
    locked = asks or passphrase_file is not None
    said = passphrase(passphrase_file, twice=True) if locked else ""
    public, name = write_operator_key(file, SystemDice().entropy(48), said)
    click.echo(f"key {name}: {file} opens backups: keep it away from the centre, and twice")
    if _handed_over(public, data_dir):
        click.echo("the centre here closes backups for it from now on")
    else:
        click.echo(f"`leafcast backup --key {public}` has a centre close backups for it")


def _handed_over(public: Path, data_dir: Path | None) -> bool:
    """Whether the centre here has the key now, as it had none."""
    try:
        if _call(data_dir, "backups")["key"]:
            return False
        _call(data_dir, "backup-timer", public=read_operator_public(public).hex())
    except (NotRunning, CallFailed, DataDirUnusable):
        return False
    return True


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace what the data directory's centre holds.")
@click.option("--yes", is_flag=True, help="Do not ask where another tree lies there.")
@click.option(
    "--members",
    type=click.Choice(["1", "3"]),
    default="1",
    help="On how many servers of this machine the centre runs then.  [default: 1]",
)
@key_options
@data_dir_option
def restore(
    file: Path,
    members: str,
    key: Path | None,
    passphrase_file: Path | None,
    data_dir: Path | None,
    *,
    force: bool,
    yes: bool,
) -> None:
    """Put a backup into the data directory of a tree that is stopped; its next start uses it.

    FILE is one backup; of a folder of backups the newest is taken. What the centre issued after the
    backup stays in force at the nodes until somebody says it again, accepts the former state or
    withdraws it: see `leafcast accept` and `leafcast orphans`.

    With --force over another tree its keys go, too: without a backup of it nobody has them any
    more, and its nodes believe no other. So it asks.

    With --members 3 its centre is one of three members, and so is each relay that ran on its
    machine, as `leafcast up --members 3` makes them, whatever the backup is of. That wants an empty
    or a new data directory. Nodes that run elsewhere join anew: they are named.
    """
    is_trio = members != "1"
    if is_trio and force:
        raise click.UsageError(
            "--force replaces what is there, and --members 3 begins anew: name an empty --data-dir"
        )
    place, opens = DataDir.at(data_dir), operator_key(key, passphrase_file)
    more: list[str] = []
    if is_trio:
        trio = import_module(_TRIO).restore_trio(newest_in(file), place, opens, SystemDice())
        found, more = trio.backup, joining_anew(trio.elsewhere)
    else:
        asks = partial(_other_goes, yes=yes)
        found = place_backup(newest_in(file), place, opens, force=force, other_goes=asks)
    when = datetime.fromtimestamp(found.time_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    where = ", for a centre of three members" if is_trio else ""
    click.echo(f"The backup of {when} is in place{where}; start the tree: leafcast up")
    for line in more:
        click.echo(sanitize(line))


def _other_goes(what: str, *, yes: bool) -> None:
    """Say of another tree that it is replaced; ends the command unless that is meant."""
    click.echo(sanitize(f"{what[0].upper()}{what[1:]}."), err=True)
    click.echo("Its keys are replaced: without a backup of it nobody has them any more.", err=True)
    if not yes and not click.confirm("Go on?", default=False, err=True):
        raise click.exceptions.Exit(1)


def joining_anew(paths: Sequence[NodePath]) -> list[str]:
    """Which nodes do not come up with a restored tree, and what to do; nothing if all do."""
    if not paths:
        return []
    named = some_of([str(it) for it in paths], NODES_NAMED)
    return [
        f"{many(len(paths), 'node')} elsewhere will not find it: {named}.",
        "Once it runs, let each join anew: leafcast node add PATH --replace",
    ]
