"""A group of commands whose help cuts no summary."""

from __future__ import annotations

from collections.abc import Iterable

import click


class CommandGroup(click.Group):
    """Lists its commands with the whole of what each says first of itself."""

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
