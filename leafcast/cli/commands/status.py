"""`leafcast status`: what became of the placements, delivered and working, worst first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from leafcast.ask.pages import LISTED_MAX
from leafcast.ask.session import Session
from leafcast.cli import shell_completion
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.output import Output, output_options
from leafcast.cli.printing import show, watch
from leafcast.show.causes import causes_form, causes_view
from leafcast.show.placement_order import worst_first
from leafcast.show.tree_tables import placement_view, placements_view

LIMIT = 1000


@click.command()
@click.argument(
    "placement",
    metavar="[PLACEMENT]",
    required=False,
    default="",
    shell_complete=shell_completion.placements,
)
@click.option("--tree", "by_node", is_flag=True, help="Every node of the tree, not only the first.")
@click.option("--destinations", is_flag=True, help="Every destination, worst first.")
@click.option(
    "--filter",
    "where",
    metavar="CEL",
    default="",
    help="With --destinations, only those of which this is true, such as "
    "'health != \"healthy\"'; over path, state, health, wave, complete, object, reason.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, LISTED_MAX),
    help=f"With --filter, so many at most.  [default: {LIMIT}]",
)
@click.option(
    "--causes", "by_cause", is_flag=True, help="What is wrong, by cause: where, and one example."
)
@click.option("-w", "--watch", "stays", is_flag=True, help="Go on until Ctrl-C.")
@output_options
@data_dir_option
def status(
    *,
    stays: bool,
    output: Output,
    data_dir: Path | None,
    **said: Any,
) -> None:
    """Show what became of all placements, or of one.

    DELIVERED counts the destinations that hold what they should, WORKING those where it is healthy.
    Counts are exact unless they say "at least": then not all nodes have answered yet.
    """
    asked = StatusRequest(**said)
    asked.check()
    placement = _named(asked.placement) if asked.placement else ""

    async def ask(session: Session) -> Any:
        if asked.by_cause:
            return await asked.causes_of(session, placement)
        if not placement:
            found = await session.call("status")
            return {**found, "placements": worst_first(found["placements"])}
        return await asked.form_of(session, placement)

    def draw(found: Any, now_ms: int) -> Any:
        if asked.by_cause:
            return causes_view(found)
        if not placement:
            lost = found.get("lostSpaces", {})
            trouble, wide = found.get("backupTrouble", ""), output.is_wide
            listed = found["placements"]
            return placements_view(listed, now_ms, lost, wide=wide, backup_trouble=trouble)
        return placement_view(found, now_ms)

    def titles(found: Any) -> list[str]:
        from schemas.records.placements import long_title  # noqa: PLC0415 - tables need no kinds

        if asked.by_cause:
            return [each["cause"] for each in found["causes"]]
        forms = [found] if placement else found["placements"]
        return [long_title(form["name"]) for form in forms]

    (watch if stays else show)(data_dir, ask, draw, output, titles)


def _named(words: str) -> str:
    """The placement that is meant; raises UsageError."""
    # Here, as kinds are of no use to who wants to see all placements.
    from leafcast.cli.commands.wait import placement_named  # noqa: PLC0415

    return placement_named(words)


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """What a user wants to see."""

    placement: str
    by_node: bool
    destinations: bool
    where: str
    limit: int | None
    by_cause: bool = False

    def check(self) -> None:
        """Refuse what does not go together, or is no expression; raises UsageError."""
        if self.by_cause and (self.by_node or self.destinations):
            raise click.UsageError("--causes alone, or --tree, or --destinations")
        if (self.by_node or self.destinations) and not self.placement:
            raise click.UsageError("name a placement; `leafcast status` lists them")
        if self.by_node and self.destinations:
            raise click.UsageError("--tree or --destinations, not both")
        if self.limit and not self.where:
            raise click.UsageError("--limit goes with --filter; 'true' takes every destination")
        if self.where:
            _check(self.where, destinations=self.destinations)

    async def causes_of(self, session: Session, placement: str) -> dict[str, Any]:
        """What is wrong with a placement, or with all, by cause; raises CallFailed."""
        # Here, as who asks for counts does not ask the tree.
        from leafcast.ask.destinations import status_by_node  # noqa: PLC0415

        found, silent = await status_by_node(session, placement)
        trouble = found.get("backupTrouble", "")
        return causes_form(found["placements"], silent, found.get("lostSpaces", {}), trouble)

    async def form_of(self, session: Session, placement: str) -> dict[str, Any]:
        """A placement's form, with what was asked for besides; raises CallFailed."""
        # Here, as only who asks for more than counts has to ask the tree.
        from leafcast.ask import destinations as asks  # noqa: PLC0415

        found = await session.call("status", placement=placement, by_node=self.by_node)
        form: dict[str, Any] = found["placements"][0]
        if self.by_node and form.get("elsewhere"):
            below, silent = await asks.nodes_below(session, form["key"], form["elsewhere"])
            form |= {"nodes": form["nodes"] + below, "elsewhere": silent}
        if not self.destinations:
            return form
        found = await session.call("destinations", placement=placement, seconds=60)
        if self.where:
            listed, silent, more = await asks.destinations_where(
                session, found["key"], self.where, self.limit or LIMIT
            )
            return form | {"destinationList": listed, "elsewhere": silent, "more": more}
        below, silent = await asks.destinations_below(session, found["key"], found["elsewhere"])
        return form | {"destinationList": found["destinations"] + below, "elsewhere": silent}


def _check(where: str, *, destinations: bool) -> None:
    """Refuse an expression before the tree is asked; raises UsageError."""
    if not destinations:
        raise click.UsageError("--filter goes with --destinations")
    # Here, as nobody else needs CEL.
    from relay.objects.expressions.cel import ExpressionRefused  # noqa: PLC0415
    from relay.objects.expressions.filters import DESTINATION, Filter  # noqa: PLC0415

    try:
        Filter(where, DESTINATION)
    except ExpressionRefused as error:
        raise click.UsageError(f"--filter: {error}") from error
