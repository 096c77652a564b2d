"""What `leafcast doctor` thinks of a tree: facts in, checks out, each failure with its remedy.

Pure: leafcast.daemon.verbs.diagnosis gathers the facts; times are milliseconds since 1970.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from leafcast.data_dir import DataDir
from leafcast.doctor.backup_checks import backup_checks
from leafcast.doctor.common import (
    IN_SESSION,
    behind,
    bytes_text,
    each,
    log,
    revive,
    seconds,
)
from leafcast.doctor.expiry_checks import expiry_checks
from leafcast.doctor.findings import RANK, Check, DoctorFacts, NodeFacts
from leafcast.doctor.link_checks import link_checks
from leafcast.doctor.member_checks import member_checks, unled_checks
from leafcast.doctor.placement_checks import ledger_checks, placement_checks, space_checks
from leafcast.doctor.power_checks import power_checks
from leafcast.doctor.release_checks import release_checks
from leafcast.show.durations import span_text
from relay.adapters.jetstream.server_floor import floor_text, is_too_old, is_unnumbered
from schemas.values.identity import NodePath
from schemas.values.wording import many

_stale_warning = partial(Check, "Staleness", "warning")
_stale_failure = partial(Check, "Staleness", "failure")
FREE_BYTES_MIN, FREE_BYTES_FEW = 200_000_000, 2_000_000_000
LAG_MESSAGES_MAX = 100
CLOCK_MS_MAX = 5_000
CLOCK_MS_WRONG = 60_000
"""From here on its times say nothing."""
SNAPSHOT_MS_MAX = 20 * 60_000
RESTART_MS = 3_600_000
"""So long a server that ended by itself is told of."""
EXPIRED, UNBELIEVED = "Expired", "Unbelieved"
"""The word of a node whose clock is ahead of the centre's, and of one that knows another key."""


def checks(facts: DoctorFacts) -> list[Check]:
    """All checks, group by group, what is well first; those of a tree only if one answers."""
    found = [*_machine(facts), *unled_checks(facts), *space_checks(facts.spaces)]
    if not facts.not_running:
        for group in (_servers, member_checks, cluster_checks, link_checks, _lag, _clock, _disk):
            found += group(facts)
        found += power_checks(facts)
        found += release_checks(facts)
        found += _staleness(facts)
        found += [*placement_checks(facts), *ledger_checks(facts.ledger)]
        found += [*facts.troubles, *expiry_checks(facts), *backup_checks(facts)]
    groups = list(dict.fromkeys(check.group for check in found))
    return sorted(found, key=lambda check: (groups.index(check.group), RANK[check.state]))


def _machine(facts: DoctorFacts) -> Iterator[Check]:
    group, log = "Here", f"{facts.folder}/daemon.log"
    if facts.hangs and facts.has_members:
        cause = "one of the centre's members is active only while two of them reach each other"
        remedy = "see that two of them run and reach each other; daemon.log of each says why not"
        yield Check(group, "failure", facts.not_running, cause, remedy)
    elif facts.hangs:
        cause = "its process, or the centre's nats-server, is starting, overloaded or frozen"
        remedy = f"see {log}; if it stays so: leafcast down, then leafcast up"
        yield Check(group, "failure", facts.not_running, cause, remedy)
    elif facts.not_running:
        cause = "it was not started, it was stopped, or it ended: then its log says why"
        remedy = f"leafcast up; if it does not start, see {log}"
        yield Check(group, "failure", facts.not_running, cause, remedy)
    else:
        yield Check(group, "ok", f"a tree runs on {facts.folder}")
    yield _room(group, "the data directory's disk", facts.free_bytes)


def _servers(facts: DoctorFacts) -> Iterator[Check]:
    mute = {node.path for node in facts.nodes if not node.answers}

    def judge(node: NodeFacts) -> Check | None:
        if node.answers and is_too_old(node.server_version):
            return _too_old(node)
        if node.answers and is_unnumbered(node.server_version):
            return _unnumbered(node)
        if node.answers:
            return _restarted(facts, node)
        if node.state not in IN_SESSION or node.refusal_reason == EXPIRED:
            return None
        return None if behind(node.path, mute) else _mute(facts, node)

    answering = sum(1 for node in facts.nodes if node.answers)
    said = f"{answering} of {many(len(facts.nodes), 'node')} answer{_versions(facts)}"
    yield from each("Servers", facts.nodes, judge, lambda _: said)


def _versions(facts: DoctorFacts) -> str:
    """Which nats-servers those run that answer; how many each, where they differ."""
    seen = Counter(it.server_version for it in facts.nodes if it.answers and it.server_version)
    if not seen:
        return ""
    counted = [name if len(seen) == 1 else f"{name}: {seen[name]}" for name in sorted(seen)]
    return f"; nats-server {', '.join(counted)}"


def _too_old(node: NodeFacts) -> Check:
    return Check(
        "Servers",
        "failure",
        f"the nats-server of {node.path} is {node.server_version}, older than {floor_text()}",
        "strangers can crash or misuse it through its leaf, WebSocket and service ports",
        f"install nats-server {floor_text()} or later there, and start the node again",
        node.path,
    )


def _unnumbered(node: NodeFacts) -> Check:
    return Check(
        "Servers",
        "warning",
        f"the nats-server of {node.path} says that it is {node.server_version}",
        f"whether that is as new as {floor_text()}, which strangers cannot misuse, is not known",
        f"run a release of nats-server there, {floor_text()} or later",
        node.path,
    )


def _mute(facts: DoctorFacts, node: NodeFacts) -> Check:
    said = f"{node.path} does not answer"
    if node.heard_ms:
        said += f"; it was last heard of {span_text(seconds(facts, node.heard_ms))} ago"
    else:
        said += f": {node.refusal or 'no answer in time'}"
    cause = (
        "its program or its server ended, is frozen or overloaded, or is cut off; "
        "after 90s of silence it counts as unreachable"
    )
    remedy = revive(facts, node)
    if node.refusal_reason == UNBELIEVED:
        cause = (
            "the key that the centre signs with is none to it: another one is on its way, or a "
            "backup brought one back that has ended"
        )
        remedy = (
            "look again in a moment; if it stays so: leafcast keys revoke ID, of the signing key "
            "in use, which leafcast keys list shows"
        )
    return Check("Servers", "failure", said, cause, remedy, node.path)


def _restarted(facts: DoctorFacts, node: NodeFacts) -> Check | None:
    if (node.starts or 0) <= 1 or node.server_up_ms > RESTART_MS:
        return None
    if node.removals:
        return _emptied(facts, node)
    times = many((node.starts or 0) - 1, "time")
    ago = f", {span_text(node.server_up_ms / 1000)} ago last" if node.server_up_ms else ""
    return Check(
        "Servers",
        "warning",
        f"the nats-server of {node.path} was started again {times}{ago}",
        "it was killed, it crashed, or its disk was full; nothing that was accepted is lost",
        f"see {log(facts, node)}; dmesg names what was killed for want of memory",
        node.path,
    )


def _emptied(facts: DoctorFacts, node: NodeFacts) -> Check:
    """That a node began again with nothing: at the centre objects are lost, elsewhere none is."""
    ago = f"{span_text(node.server_up_ms / 1000)} ago" if node.server_up_ms else "lately"
    said = f"what {node.path} stores was removed while it ran, {ago}; it began again with nothing"
    if node.path == "/":
        cause = (
            "someone or something removed its folder, and with it all objects that were applied; "
            "every edge keeps what it has, as an orphan"
        )
        remedy = (
            "leafcast restore brings a backup back; or apply your manifests again, and then "
            "leafcast orphans lists what is left, to be withdrawn"
        )
    else:
        cause = "someone or something removed its folder; its parent sends it again what is meant"
        remedy = f"nothing for what is delivered; {log(facts, node)} names the folder"
    return Check("Servers", "warning", said, cause, remedy, node.path)


def _lag(facts: DoctorFacts) -> Iterator[Check]:
    known = [node for node in facts.nodes if node.state in IN_SESSION]

    def judge(node: NodeFacts) -> Check | None:
        if node.lag <= LAG_MESSAGES_MAX:
            return None
        return Check(
            "Lag",
            "warning",
            f"{node.path} has {node.lag} messages to read",
            "its link is slow, it just came back, or it cannot write to its own store",
            f"look again in a minute; if the number does not fall, see {log(facts, node)}, "
            "and its disk",
            node.path,
        )

    def fine(good: Sequence[NodeFacts]) -> str:
        most = max((node.lag for node in good), default=0)
        read = "all mail is read" if len(good) == len(known) else "others have read all mail"
        return f"at most {many(most, 'message')} unread" if most else read

    yield from each("Lag", known, judge, fine)


def _clock(facts: DoctorFacts) -> Iterator[Check]:
    if facts.ahead_ms > CLOCK_MS_MAX:
        yield Check(
            "Clock",
            "failure",
            f"the centre's clock is {span_text(facts.ahead_ms / 1000)} behind what it signed last",
            "the clock was set back, or it was ahead when records were signed",
            "set it right (NTP); until then changes go out in order, but times and ages are wrong",
            "/",
        )
    asked = [node for node in facts.nodes if node.answers or node.refusal_reason == EXPIRED]

    def judge(node: NodeFacts) -> Check | None:
        off = abs(node.clock_ms)
        word = "ahead of" if node.clock_ms > 0 else "behind"
        said = f"the clock of {node.path} is {span_text(off / 1000)} {word} the centre's"
        if not node.answers:
            said = f"the clock of {node.path} is more than two minutes ahead of the centre's"
        elif off <= CLOCK_MS_MAX:
            return None
        return Check(
            "Clock",
            "failure" if off > CLOCK_MS_WRONG or not node.answers else "warning",
            said,
            "the machine's clock is not kept (no NTP), or was set by hand",
            "set it right there (NTP). What is delivered does not depend on it; but times are "
            "wrong, and a node two minutes ahead refuses questions for it and those below",
            node.path,
        )

    def fine(good: Sequence[NodeFacts]) -> str:
        # That of the centre is what the others are compared with.
        below = [node for node in good if node.path != "/"]
        if not below:
            return "no other clock is compared with the centre's"
        most = max(abs(node.clock_ms) for node in below)
        differ = "clock differs" if len(below) == 1 else "clocks differ"
        return f"{len(below)} {differ} from the centre's by {most} ms at most"

    yield from each("Clock", asked, judge, fine)


def _disk(facts: DoctorFacts) -> Iterator[Check]:
    known = [node for node in facts.nodes if node.free_bytes is not None]

    def judge(node: NodeFacts) -> Check | None:
        where = f" ({DataDir(Path(facts.folder)).node(NodePath.parse(node.path))})"
        what = f"the disk of {node.path}{where if node.here else ''}"
        room = _room("Disk", what, node.free_bytes or 0, node.path)
        return None if room.state == "ok" else room

    def fine(good: Sequence[NodeFacts]) -> str:
        stored = sum(node.store_bytes or 0 for node in good)
        said = f"room at {many(len(good), 'node')}"
        return said + (f", which store {bytes_text(stored)}" if stored else "")

    yield from each("Disk", known, judge, fine)


def _staleness(facts: DoctorFacts) -> Iterator[Check]:
    known = [node for node in facts.nodes if node.answers]

    def judge(node: NodeFacts) -> Check | None:
        age = node.snapshot_age_ms
        if node.disbelieved:
            return _lied_to(facts, node)
        if node.withheld:
            return _stale_warning(
                f"{node.path} holds {many(node.withheld, 'record')} that its mailbox lacks",
                "its parent lost its memory, or withholds them; they are kept and enforced",
                "look again in two minutes; if it stays: is its parent what you think it is?",
                node.path,
            )
        if node.orphaned:
            return _stale_warning(
                f"{node.path} holds {many(node.orphaned, 'record')} that the centre does not know",
                "the centre lost its ledger, or was restored from a backup; they stay in force",
                "apply what is still wanted, and let the rest go: leafcast orphans lists them",
                node.path,
            )
        if age is not None and age > SNAPSHOT_MS_MAX:
            if node.path == "/":
                return _signs_nothing(facts, age)
            return _stale_failure(
                f"{node.path} was shown no snapshot for {span_text(age / 1000)}",
                "a node above it does not pass on what is new, or shows it an old view",
                f"start the relays above {node.path} again; if it stays, do not trust them",
                node.path,
            )
        return None

    def fine(good: Sequence[NodeFacts]) -> str:
        ages = [node.snapshot_age_ms for node in good if node.snapshot_age_ms]
        return f"no snapshot is older than {span_text(max(ages, default=0) / 1000)}"

    yield from each("Staleness", known, judge, fine)


def _signs_nothing(facts: DoctorFacts, age: int) -> Check:
    return _stale_failure(
        f"/ has signed no snapshot for {span_text(age / 1000)}",
        "its controllers are held up, or it cannot write its ledger; it signs one every 10 minutes",
        f"see {facts.folder}/daemon.log; if it stays so: leafcast down, then leafcast up",
        "/",
    )


def _lied_to(facts: DoctorFacts, node: NodeFacts) -> Check:
    messages = many(node.disbelieved, "message")
    return _stale_failure(
        f"{node.path} was sent {messages} that the centre did not sign, or not for it",
        "a node above it invents, alters or misdirects what it passes on; nothing came of it",
        f"{log(facts, node)} says what. If the centre was restored from a backup of before its "
        f"keys changed, it was that: start {node.path} again. Else do not trust the relays above "
        f"{node.path}: run them on new machines, with new tokens",
        node.path,
    )


def _room(group: str, what: str, free: int, about: str = "") -> Check:
    said = f"{what} has {bytes_text(free)} free"
    if free >= FREE_BYTES_FEW:
        return Check(group, "ok", said)
    cause = "a server that cannot write takes no change in; its node keeps what it has and waits"
    remedy = "make room there; it goes on by itself, and nothing that was accepted is lost"
    return Check(
        group, "failure" if free < FREE_BYTES_MIN else "warning", said, cause, remedy, about
    )


def cluster_checks(facts: DoctorFacts) -> Iterator[Check]:
    """A failure for each hub or cluster that its centre or edge may not work on; else nothing."""
    for hub, why in facts.hubs.items():
        cause, _, remedy = why.partition("; nothing is written there: ")
        said = f"the centre writes nothing to its {hub}"
        yield Check("Clusters", "failure", said, cause, remedy or "look again in a minute", "/")
    for node in facts.nodes:
        if node.unclaimed:
            said = f"{node.path} does nothing in the cluster that it was given"
            # The edge tells what the cluster is, and what to do about that.
            cause, _, remedy = node.unclaimed.partition("; nothing is applied or deleted there: ")
            yield Check("Clusters", "failure", said, cause, remedy, node.path)
