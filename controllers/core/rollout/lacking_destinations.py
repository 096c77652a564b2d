"""Which of some destinations the gates keep from the newest content, whatever the hour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from controllers.core.rollout.culprits import locations_of
from relay.core.gates import Candidate
from schemas.content.blobs import Reference
from schemas.records.records import Gate, Profile, Record
from schemas.values.identity import MailKey


def count_lacking(
    records: Mapping[MailKey, Record],
    destinations: Iterable[MailKey],
    gates: Sequence[Gate],
    newest: Reference | None,
) -> int:
    """How many of these destinations the gate that is meant for them gives another content.

    A gate outside its windows counts as open: who waits for one is counted elsewhere.
    """
    located = locations_of(records.values())
    profiles = (records.get(key) for key in destinations)
    return sum(
        _arm(gates, Candidate(profile, located)) != newest
        for profile in profiles
        if isinstance(profile, Profile)
    )


def _arm(gates: Sequence[Gate], who: Candidate) -> Reference | None:
    return next((gate.arm for gate in gates if who.matches(gate)), None)
