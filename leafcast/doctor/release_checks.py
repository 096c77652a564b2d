"""Whether nodes run the release of Leafcast that was chosen for them, and who could not take it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from leafcast.doctor.findings import Check, DoctorFacts, ReleaseFact
from schemas.releases.release_version import age_of
from schemas.reports.running import FAILED, ReleaseState, Running, RunningFault
from schemas.values.identity import NodePath
from schemas.values.wording import many, some_of

GROUP, NAMED_MAX = "Releases", 3
_warning = partial(Check, GROUP, "warning")
_NOT_THROUGH_THE_TREE = {
    ReleaseState.ELSEWHERE: (
        "no launcher runs them: an image or a package manager says what they run",
        "install that release there as this one was, or run them below leafcast-launcher",
    ),
    ReleaseState.UNPINNED: (
        "their owners named no publisher whose releases they take",
        "where each runs: leafcast release pin FILE --data-dir DIR, of a publisher you trust",
    ),
}
_STAYS = {
    "Waiting": ("waits", "do what it says, or wait; leafcast upgrade status says how far it is"),
    "Failed": ("failed, and nothing more begins", "leafcast upgrade status says what helps"),
    "Refused": ("is refused", "let out another release, or mend what it says"),
}


def release_checks(facts: DoctorFacts) -> Iterator[Check]:
    """Who runs another release than was chosen, and why; nothing while none is chosen."""
    running = facts.running
    chosen = [each for each in running.counts if each.wanted]
    failed = [it for it in running.faults if it.state in FAILED]
    yield from map(_held_back, (it for it in running.faults if it.state not in FAILED))
    yield from (_stays(it) for it in facts.releases if it.phase in _STAYS)
    if not chosen:
        return
    total, current = sum(it.count for it in chosen), 0
    elsewhere, newer = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for each in chosen:
        if each.version == each.wanted:
            current += each.count
        elif each.state == ReleaseState.HEALTHY and age_of(each.version) > age_of(each.wanted):
            newer[each.version, each.wanted] += each.count
        elif each.state in _NOT_THROUGH_THE_TREE:
            elsewhere[each.state, each.wanted] += each.count
    run = f"{current} of {many(total, 'node')} run what was chosen for them"
    if could_not := sum(it.count for it in chosen if it.state in FAILED):
        cause = f"{many(could_not, 'node')} went back from it, or refused it"
        yield _warning(run, cause, "leafcast upgrade status names them; below is what helps")
    else:
        yield Check(GROUP, "ok", run)
    yield from map(_could_not, failed)
    if unnamed := _unnamed(running):
        yield _others(unnamed)
    yield from (_newer(*versions, count) for versions, count in sorted(newer.items()))
    for (state, wanted), count in sorted(elsewhere.items()):
        cause, remedy = _NOT_THROUGH_THE_TREE[ReleaseState(state)]
        own = "itself" if count == 1 else "themselves"
        said = f"{many(count, 'node')} did not take {wanted}, and will not by {own}"
        if any(it.wanted == wanted for it in failed):
            remedy = f"leave them so until {wanted} works where it did not; then {remedy}"
        versions = {it.version for it in chosen if (it.state, it.wanted) == (state, wanted)}
        run = some_of(sorted(versions - {wanted}), NAMED_MAX)
        yield _warning(f"{said} ({state}): now {run}", cause, remedy)


def _stays(release: ReleaseFact) -> Check:
    said, remedy = _STAYS[release.phase]
    cause = release.message or "its status does not say why"
    return _warning(f"release {release.version} {said}", cause, remedy)


def _could_not(fault: RunningFault) -> Check:
    did = "refused" if fault.state == ReleaseState.REFUSED else "went back from"
    name = "the centre" if fault.path == str(NodePath()) else fault.path
    retry, abort = (
        f"leafcast upgrade retry {fault.wanted}",
        f"leafcast upgrade abort {fault.wanted}",
    )
    # What a program said as it ended its launcher passes on, and does not keep.
    more = "" if fault.state == ReleaseState.REFUSED else " (its launcher's log has what it said)"
    return _warning(
        f"{name} {did} {fault.wanted}",
        fault.why or "its launcher does not say why",
        f"mend that there{more}, then {retry}; or {abort}, and let out another release",
        fault.path,
    )


def _newer(version: str, wanted: str, count: int) -> Check:
    return _warning(
        f"{many(count, 'node')} with {version} instead of {wanted}: it is newer, and stays",
        f"a package brought {version} there after the tree chose {wanted}",
        f"let {version} out for all; or install the package of {wanted} there again",
    )


def _held_back(fault: RunningFault) -> Check:
    return _warning(
        f"{fault.path} gets no placement before it is upgraded",
        fault.why,
        "upgrade it where it runs, or let the tree do it; then what waits for it comes",
        fault.path,
    )


def _others(count: int) -> Check:
    return _warning(
        f"{many(count, 'more node')} went back from what was chosen, or refused it",
        "only some are named up here",
        "once those that are named are mended, leafcast upgrade retry VERSION; then look again",
    )


def _unnamed(running: Running) -> int:
    """How many could not take a release beyond those that are named."""
    failed = sum(each.count for each in running.counts if each.wanted and each.state in FAILED)
    return max(0, failed - sum(it.state in FAILED for it in running.faults))
