"""The option that says in which span of someone else's trace a change is asked for."""

from __future__ import annotations

import click

from schemas.values.traceparent import BadTraceparent, read_traceparent


def _checked(_context: click.Context, option: click.Parameter, text: str | None) -> str:
    if text is None:
        return ""
    try:
        return str(read_traceparent(text))
    except BadTraceparent as error:
        raise click.BadParameter(str(error), param=option) from error


traceparent_option = click.option(
    "--traceparent",
    metavar="CONTEXT",
    callback=_checked,
    help="The W3C trace context of who applies, as a pipeline has it in TRACEPARENT: the spans of "
    "what changes link to it.",
)
"""Given as `traceparent: str`, "" without."""
