"""`leafcast rollout restore`: the centre says again what goes out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import click

from leafcast.ask.asked_space import refusal_of
from leafcast.ask.rollouts import placement_of, rollout_named
from leafcast.ask.session import CallFailed, Session
from leafcast.changes.forms import JUDGE_SECONDS, RESTORE
from leafcast.changes.judged_batch import JudgedBatch
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.placing import rollout_argument
from leafcast.cli.session_calls import in_session
from leafcast.show.sanitize import sanitize
from relay.space_errors import Conflict, SpaceError
from schemas.objects.objects import ObjectKey
from schemas.values.groups import DENATURED_GROUP
from schemas.values.wording import many, namespace_first

NAMED_MAX = 10
COUNTED_SECONDS, LOOK_SECONDS = 5.0, 0.1
Form = Mapping[str, Any]
_FATES = {"left": "was added, and is left: delete it yourself if nobody needs it"}


@click.command("restore")
@rollout_argument
@data_dir_option
def restore_command(name: str, data_dir: Path | None) -> None:
    """Write at the centre what was there before a revision was aborted or undone.

    Only what the placement sends is put back, and what was added is deleted, but for Namespaces,
    definitions, claims and volumes. Nothing is written if an object cannot be put back, or was
    changed meanwhile.
    """
    in_session(data_dir, lambda session: write_back(session, name))


async def write_back(session: Session, name: str) -> None:
    """Restore what a Rollout rejects, and say each object; raises CallFailed."""
    obj = await rollout_named(session, name)
    count = await restore(session, placement_of(obj), lambda said: click.echo(sanitize(said)))
    if not count:
        click.echo("the centre says what goes out: there is nothing to restore")


async def tell_differences(session: Session, name: str, *, restores: bool) -> None:
    """Say which objects are otherwise at the centre than what goes out; or put them back."""
    obj = await rollout_named(session, name)
    title = str(obj["metadata"]["name"])
    said = await rejected_of(session, ObjectKey(DENATURED_GROUP, "rollouts", "", title))
    if said is None:
        return
    if restores:
        await write_back(session, name)
        return
    for line in difference_lines(said, title):
        click.echo(sanitize(line))


def difference_lines(said: Form, rollout: str) -> Iterator[str]:
    """What differs at the centre, and what can be done about it."""
    count = said.get("objects") or 0
    if not count:
        yield "The centre still says what was taken back; it goes out once it is changed."
    else:
        names = list(said.get("names") or ())[:NAMED_MAX]
        verb = "says" if count == 1 else "say"
        yield f"At the centre {many(count, 'object')} still {verb} what was taken back:"
        yield from (f"  {name}" for name in names)
        if count > len(names):
            yield f"  and {count - len(names)} more"
        yield (
            "It goes out once it is changed." if count == 1 else "Each goes out once it is changed."
        )
    yield f"To put the former content there:    leafcast rollout restore {rollout}"
    yield f"To let it out again, by its waves:  leafcast rollout retry {rollout}"


async def rejected_of(session: Session, rollout: ObjectKey) -> Form | None:
    """What a Rollout says is rejected, once it was counted; None if nothing is."""
    until = session.clock.now().seconds + COUNTED_SECONDS
    while True:
        obj = await session.workloads.get(rollout)
        said = ((obj or {}).get("status") or {}).get("rejected")
        if said is None or "objects" in said or session.clock.now().seconds > until:
            return said
        await session.clock.sleep(LOOK_SECONDS)


async def restore(session: Session, placement: str, done: Callable[[str], None]) -> int:
    """Have the former contents of what is rejected written at the centre; how many objects.

    All are judged before the first is written. Raises CallFailed, which says what was done.
    """
    answer = await session.call(RESTORE, seconds=JUDGE_SECONDS, placement=placement)
    if "refused" in answer:
        raise _failure(session, ObjectKey(*answer["key"]), refusal_of(answer["refused"]))
    objects = [(ObjectKey(*key), fate) for key, fate in answer["objects"]]
    if not objects:
        return 0
    async with aclosing(JudgedBatch(session, answer["batch"])) as batch:
        async for number, outcome in batch.written():
            key, fate = objects[number]
            if isinstance(outcome, SpaceError):
                failed = _failure(session, key, outcome)
                text = f"{failed.message}; {number} of {len(objects)} objects are restored"
                raise CallFailed("rollout", failed.code, text, failed.remedy)
            done(f"{_title(key)} {_FATES.get(fate, fate)}")
    return len(objects)


def _failure(session: Session, key: ObjectKey, error: SpaceError) -> CallFailed:
    if isinstance(error, Conflict):
        text = f"{_title(key)}: somebody changed it meanwhile"
        return CallFailed("rollout", "Conflict", text, "look at it, and try again")
    return CallFailed("rollout", error.reason, f"{_title(key)}: {session.why(error)}", "")


def _title(key: ObjectKey) -> str:
    return namespace_first(str(key))
