"""What a lost disk would cost now: what of the centre would be gone, and for how long.

What would be gone is the recovery point (RPO), how long it takes the recovery time (RTO).
"""

from __future__ import annotations

from collections.abc import Iterator

from leafcast.doctor.findings import BackupFacts, Check, DoctorFacts
from leafcast.show.durations import span_text

GROUP = "Backups"
LATE_TIMES = 2
"""A backup that is older than so many intervals is late."""
_KEPT = "the centre's ledger, its objects and the tree's keys are on"
_ELSEWHERE = "leafcast backup --to DIR, on another disk or machine"
_VERIFY = "leafcast backup verify {file} --key FILE, where your private key is"


def backup_checks(facts: DoctorFacts) -> Iterator[Check]:
    """What is known of that; a warning if it is more than is wanted."""
    backups, now_ms = facts.backups, facts.now_ms
    if backups is None:
        return
    # Of several members each keeps all, and one of them may be lost: see the group Members.
    has_members = any(node.path == "/" and node.members for node in facts.nodes)
    loss = "the loss of all members' disks" if has_members else "a lost disk"
    if not (backups.made_ms or backups.whole_ms):
        yield _none(backups, loss, "its members' disks alone" if has_members else "this one disk")
        return
    # What goes with the disk is no backup of it.
    made_ms = 0 if backups.same_disk else backups.made_ms
    newest = max(made_ms, 0 if backups.whole_same_disk else backups.whole_ms)
    age = max(now_ms - newest, 0) / 1000
    said = f"{loss} costs all, also the backups"
    if newest:
        said = f"{loss} costs what was changed in the last {span_text(age)}"
    if backups.trouble:
        since = span_text((now_ms - backups.failing_ms) / 1000)
        why, _, remedy = backups.trouble.rpartition("; ")
        yield Check(GROUP, "warning", f"{said}; backups fail since {since}", why, remedy)
    elif not newest or (backups.seconds and backups.same_disk):
        yield Check(GROUP, "warning", said, _same_disk(backups), _ELSEWHERE)
    elif not backups.seconds:
        cause = "backups on a timer are off"
        yield Check(GROUP, "warning", said, cause, "leafcast backup --every 15m")
    elif age > LATE_TIMES * backups.seconds:
        cause = f"the last backup is older than two times {span_text(backups.seconds)}"
        yield Check(GROUP, "warning", said, cause, "look again in a minute; the log says why")
    else:
        yield Check(GROUP, "ok", said)
    yield _recovery(backups, now_ms)


def _none(backups: BackupFacts, loss: str, where: str) -> Check:
    said = f"{loss} costs all: there is no backup"
    if backups.trouble:
        why, _, remedy = backups.trouble.rpartition("; ")
        return Check(GROUP, "warning", said, why, remedy)
    remedy = "leafcast backup key new FILE, then leafcast backup --every 15m --to DIR"
    return Check(GROUP, "warning", said, f"{_KEPT} {where}", remedy)


def _same_disk(backups: BackupFacts) -> str:
    where = f"those in {backups.to}" if backups.made_ms and backups.same_disk else "they"
    return f"{where} lie on the same disk as the data directory"


def _recovery(backups: BackupFacts, now_ms: int) -> Check:
    if backups.damaged_ms:
        ago = span_text(max(now_ms - backups.damaged_ms, 0) / 1000)
        said = f"a backup that was verified {ago} ago cannot be restored"
        return Check(GROUP, "warning", said, backups.damaged_reason, backups.damaged_remedy)
    if not backups.verified_ms:
        said = "nobody knows whether a backup can be restored, and how long it takes"
        file = f"{backups.to}/{backups.file}" if backups.file else "FILE"
        cause = f"none in {backups.to or 'a folder of the timer'} was verified"
        return Check(GROUP, "warning", said, cause, _VERIFY.format(file=file))
    ago = span_text(max(now_ms - backups.verified_ms, 0) / 1000)
    took = f"{backups.restore_seconds:.1f} s"
    said = f"a restored centre runs after {took}, as {backups.verified_file} did {ago} ago"
    return Check(GROUP, "ok", said)
