"""A group of commands whose help cuts no summary, and that guesses only at what is alike."""

from __future__ import annotations

from collections.abc import Iterable

import click

from leafcast.cli.suggestions import close_hint


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
