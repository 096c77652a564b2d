"""A group of commands that cuts no summary, and knows what other words, as kubectl's, mean."""

from __future__ import annotations

from collections.abc import Iterable

import click

from schemas.values.alike import most_alike

ALIKE = 0.75
"""How like a word must be to one that there is to be taken for it: `aply`, but not `autoscale`."""
_APPLY = "change your file, then leafcast apply -f FILE"
_THERE = (
    "Pods run at the edges: use kubectl there; from here, what is wrong with one: leafcast get "
    "pods --at PATH, leafcast describe pod NAME --at PATH, leafcast get events --at PATH"
)
_INSTEAD = {
    **dict.fromkeys(
        ("annotate", "autoscale", "create", "edit", "expose", "patch", "replace"), _APPLY
    ),
    **dict.fromkeys(("scale", "set"), _APPLY),
    **dict.fromkeys(("attach", "cp", "debug", "exec", "logs", "port-forward", "top"), _THERE),
    **dict.fromkeys(
        ("pause", "resume", "undo"),
        "leafcast rollout steers how far a change goes: see leafcast rollout --help",
    ),
    **dict.fromkeys(
        ("api-resources", "api-versions", "explain"),
        "leafcast crds prints the definitions of our own kinds",
    ),
    **dict.fromkeys(("cordon", "drain", "taint", "uncordon"), "leafcast node remove takes one out"),
    "auth": "who may read the tree's admin.json may do everything",
    "certificate": "each node has a key of its own: leafcast node add --replace makes a new one",
    "cluster-info": "leafcast tree and leafcast doctor show how the tree is",
    "config": "say --data-dir, or LEAFCAST_DATA_DIR, for which tree is meant",
    "kustomize": "kubectl kustomize DIR | leafcast apply -f -",
    "list": "leafcast get KIND",
    "ls": "leafcast get KIND",
    "proxy": "leafcast ui shows the tree in a browser",
    "dashboard": "leafcast ui",
    "start": "leafcast up",
    "stop": "leafcast down",
}
_OPTIONS = {
    "--prune": "delete what you took out of the files by name: leafcast delete -f OLD_FILE",
    "--server-side": "every apply is one: leave it out",
    "--force-conflicts": "an apply never conflicts here: leave it out",
    "--kustomize": "kubectl kustomize DIR | leafcast apply -f -",
    "-k": "kubectl kustomize DIR | leafcast apply -f -",
    "--context": "say --data-dir for which tree is meant",
    "--kubeconfig": "say --data-dir for which tree is meant",
}


class CommandGroup(click.Group):
    """Lists its commands with the whole of what each says first of itself."""

    def hint(self, word: str, names: Iterable[str]) -> str:
        """What to type instead of a word that is none of these commands; "" if nobody can tell."""
        return close_hint(word, names)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word, names = args[0], self.list_commands(ctx)
        if word not in names:
            hint = self.hint(word, names)
            ctx.fail(f'no such command "{word}"' + (f" ({hint})" if hint else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_section(ctx, formatter, "Commands", self.list_commands(ctx))

    def format_section(
        self, ctx: click.Context, formatter: click.HelpFormatter, title: str, names: Iterable[str]
    ) -> None:
        """Write these commands under a title; nothing if there is none."""
        commands = [(name, self.get_command(ctx, name)) for name in names]
        rows = [(name, it.get_short_help_str(10**6)) for name, it in commands if it is not None]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows, col_spacing=3)


def command_hint(word: str, commands: Iterable[str]) -> str:
    """What to type instead of a word that is no command; "" if nobody can tell."""
    if instead := _INSTEAD.get(word):
        return f"instead: {instead}"
    return close_hint(word, commands)


def close_hint(word: str, commands: Iterable[str]) -> str:
    """The command that a typo meant; "" if none is like it."""
    close = most_alike(word, commands, ALIKE)
    return f'did you mean "{close}"?' if close else ""


def option_hint(option: str, options: Iterable[str]) -> str:
    """The same of an option, to be put behind what is wrong."""
    if instead := _OPTIONS.get(option):
        return f"; instead: {instead}"
    close = most_alike(option, options, ALIKE)
    return f"; did you mean {close}?" if close else ""
