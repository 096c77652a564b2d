"""Options of `leafcast upgrade start`: what must be so before more nodes take a release."""

from __future__ import annotations

from typing import Any

import click

from leafcast.cli.options.common import gathered


def _of_waves(soak: str | None, *, allow_empty: bool) -> dict[str, Any]:
    """What each wave of the LeafcastRelease has besides, by its fields."""
    found: dict[str, Any] = {"soak": soak} if soak else {}
    return {**found, "allowEmpty": True} if allow_empty else found


wave_options = gathered(
    "of_waves",
    _of_waves,
    click.option("--soak", help="How long each wave must stay good, such as 1h."),
    click.option("--allow-empty", is_flag=True, help="Pass waves in which nobody tries it."),
)
"""All of them, given to the command as `of_waves: dict[str, Any]`."""
