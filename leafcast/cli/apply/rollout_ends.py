"""A Rollout that is deleted under way: a person says what becomes of its placement."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from leafcast.ask.session import Session
from leafcast.changes.targets import Fate
from leafcast.cli.options.common import Command
from leafcast.cli.options.objects import refuse
from leafcast.show.sanitize import sanitize
from schemas.records.placements import short_title
from schemas.values.wording import many


def fate_options(command: Command) -> Command:
    """`--freeze` or `--let-go`, given as `fate: str`."""
    freeze = click.option(
        "--freeze",
        "fate",
        flag_value="freeze",
        help="Of a Rollout under way: each destination keeps what it has.",
    )
    let_go = click.option(
        "--let-go",
        "fate",
        flag_value="let-go",
        help="Of a Rollout under way: everyone gets what the centre says now.",
    )
    return freeze(let_go(command))


def placements_left(
    rollouts: Collection[str], keeping: Sequence[Mapping[str, Any]], fate: Fate
) -> list[str]:
    """The placements that these Rollouts leave behind frozen, unless they are let go.

    Refuses what is under way and of which nobody said what becomes of it.
    """
    if not rollouts:
        return []
    if keeping and not fate:
        refuse([*_question(keeping)])
    if fate == "freeze" and not keeping:
        said = f"--freeze: rollout {', '.join(sorted(rollouts))} keeps nothing back, so that its"
        remedy = "keep the Rollout, and: leafcast rollout freeze NAME --at /"
        refuse([f"{said} placement follows its space again; to keep what is there {remedy}"])
    return [form["placement"] for form in keeping]


async def let_go(session: Session, placements: Iterable[str], fate: Fate) -> None:
    """Do as was said of the placements that were left behind."""
    for name in placements:
        title = short_title(name)
        if fate == "freeze":
            click.echo(f"{title} stays as it is, until: leafcast rollout release {title}")
        else:
            click.echo(released(await session.call("release", placement=name, seconds=30)))


def released(answer: Mapping[str, Any]) -> str:
    """What came of a placement that was let go."""
    title = short_title(answer["placement"])
    if not answer["released"]:
        return f"{title} follows its space already"
    news = f": everyone gets {sanitize(answer['news'])}" if answer["news"] else ""
    return f"{title} follows its space again{news}"


def _question(keeping: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for form in keeping:
        lack = form["destinations"]
        who = "not everyone has"
        if lack is not None:
            who = f"{many(lack, 'destination')} {'lacks' if lack == 1 else 'lack'}"
        title = short_title(form["placement"])
        yield (
            f"rollout/{form['rollout']}: revision {form['revision']} of {title} is "
            f"{form['phase']}: {who} what the centre says"
        )
        yield f"  --freeze  each destination keeps what it has, until: {_release(title)}"
        news = form["news"] or "what the centre says now"
        yield f"  --let-go  everyone gets it at once: {sanitize(news)}"
    yield "nothing was deleted: say --freeze or --let-go"


def _release(title: str) -> str:
    return f"leafcast rollout release {title}"
