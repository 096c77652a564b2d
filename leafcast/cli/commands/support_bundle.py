"""`leafcast support-bundle`: one file about the tree for who helps, without a secret in it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from leafcast.ask.failures import CallFailed, NotRunning
from leafcast.ask.session import Session
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.session_calls import in_session, until_signal
from leafcast.data_dir import DataDir
from leafcast.doctor.asking import free_bytes
from leafcast.doctor.checks import checks
from leafcast.doctor.findings import DoctorFacts
from leafcast.doctor.space_checks import look_at_spaces
from leafcast.show.sanitize import sanitize
from relay.adapters.clock import SystemClock, SystemDice
from schemas.values.wording import many

MISSING_NAMED_MAX = 8


@click.command("support-bundle")
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The new file.  [default: leafcast-support-TIME.tar.gz, here]",
)
@data_dir_option
def support_bundle(to: Path | None, data_dir: Path | None) -> None:
    """Write one file about the tree for who helps you: no secret is in it.

    Versions, settings, what the doctor finds, placements, events, metrics, and logs of the nodes of
    this machine; of all other nodes what they answer. Secrets are hidden by field, by form, and
    wherever their values are known. It says what is missing. Of a tree that does not run, or
    a joined node, it has what lies in the data directory.
    """
    # Here, as no other command redacts anything.
    from leafcast.support.bundle import refuse_to_replace, write_bundle  # noqa: PLC0415

    now_ms = SystemClock().now().wall_ms
    at = dt.datetime.fromtimestamp(now_ms / 1000, dt.UTC)
    file = to or Path(f"leafcast-support-{at:%Y%m%dT%H%M%SZ}.tar.gz")
    refuse_to_replace(file)
    made = _Made(DataDir.at(data_dir), now_ms)
    try:
        in_session(data_dir, made.of_tree)
    except (NotRunning, CallFailed) as error:
        made.without_tree(str(error))
    data = made.bundle.packed()
    write_bundle(file, data)
    for what, why in list(made.bundle.missing.items())[:MISSING_NAMED_MAX]:
        click.echo(sanitize(f"missing: {what}: {why}"), err=True)
    if made.unsure:
        click.echo("Note: the values of Secrets could not be read; look through it", err=True)
    lacking = len(made.bundle.missing)
    said = f"{lacking} missing, see CONTENTS.json in it" if lacking else "nothing is missing"
    size, parts = -(-len(data) // 1024), many(len(made.bundle.parts), "part")
    click.echo(sanitize(f"{file}: {size} KB, {parts}, secrets hidden; {said}"))


class _Made:
    """A bundle in the making."""

    def __init__(self, place: DataDir, now_ms: int) -> None:
        # Here, as no other command redacts anything.
        from leafcast.support.bundle import SupportBundle  # noqa: PLC0415
        from leafcast.support.known_secrets import secrets_here  # noqa: PLC0415
        from leafcast.support.redaction import Redaction  # noqa: PLC0415

        self._place, self._now_ms = place, now_ms
        self._here: Sequence[str] = secrets_here(place)
        self.bundle = SupportBundle(Redaction(self._here), now_ms)
        # Whether Secrets of the tree are not known.
        self.unsure = True

    async def of_tree(self, session: Session) -> None:
        """All there is of a tree that runs."""
        from leafcast.support.bundle import SupportBundle  # noqa: PLC0415
        from leafcast.support.gathering import (  # noqa: PLC0415
            facts_of_tree,
            gather_from_tree,
            gather_here,
            secrets_of_tree,
        )
        from leafcast.support.known_secrets import secrets_of_objects  # noqa: PLC0415
        from leafcast.support.redaction import Redaction  # noqa: PLC0415

        objects = await secrets_of_tree(self.bundle, session)
        if objects is not None:
            known = [*self._here, *secrets_of_objects(objects)]
            self.bundle, self.unsure = SupportBundle(Redaction(known), self._now_ms), False
        gather_here(self.bundle, self._place)
        facts = await facts_of_tree(self.bundle, session)
        if facts is not None:
            spaces = await look_at_spaces(self._place.spaces(), SystemClock(), SystemDice())
            self._judged(replace(facts, spaces=spaces))
        await gather_from_tree(self.bundle, session)

    def without_tree(self, why: str) -> None:
        """What there is of a tree that does not answer."""
        from leafcast.support.gathering import gather_here  # noqa: PLC0415

        place = self._place
        if "versions.json" not in self.bundle.parts:
            gather_here(self.bundle, place)
        self.bundle.lacks("the running tree", why)
        if "doctor.json" not in self.bundle.parts:
            facts = DoctorFacts(
                self._now_ms,
                str(place.folder),
                free_bytes(place),
                not_running=why,
                hangs=place.in_use(),
                has_members=place.asks_members(),
            )
            spaces = until_signal(look_at_spaces(place.spaces(), SystemClock(), SystemDice()))
            self._judged(replace(facts, spaces=spaces))

    def _judged(self, facts: DoctorFacts) -> None:
        from leafcast.cli.commands.doctor import doctor_form  # noqa: PLC0415

        self.bundle.add("doctor.json", doctor_form(checks(facts)))
