"""What a lost disk would cost, as `leafcast doctor` says it."""

from dataclasses import replace

import pytest

from leafcast.doctor.backup_checks import backup_checks
from leafcast.doctor.findings import BackupFacts, DoctorFacts, NodeFacts

NOW, MINUTE = 1_800_000_000_000, 60_000
GOOD = BackupFacts(
    900,
    96,
    "/mnt",
    "key",
    NOW - 3 * MINUTE,
    "a.backup",
    100,
    0.5,
    verified_ms=NOW - 60 * MINUTE,
    verified_file="a.backup",
    restore_seconds=4.25,
)


def told(backups, **more):
    facts = DoctorFacts(NOW, "/data", 0, backups=backups, **more)
    return [(it.state, it.said, it.cause, it.remedy) for it in backup_checks(facts)]


def test_a_backup_on_time_that_was_verified_says_both_figures():
    assert [it[:2] for it in told(GOOD)] == [
        ("ok", "a lost disk costs what was changed in the last 3m"),
        ("ok", "a restored centre runs after 4.2 s, as a.backup did 60m ago"),
    ]


@pytest.mark.parametrize(
    ("backups", "said"),
    [
        (BackupFacts(), "costs all: there is no backup"),
        (GOOD, "costs what was changed in the last 3m"),
        (replace(GOOD, same_disk=True), "costs all, also the backups"),
    ],
)
def test_of_a_centre_with_members_one_lost_disk_is_not_said_to_cost_anything(backups, said):
    members = tuple({"name": name} for name in ("m1", "m2", "m3"))
    centre = NodeFacts("/", "centre", "up", members=members)
    found = told(backups, nodes=(centre,))
    assert found[0][1] == f"the loss of all members' disks {said}"
    assert "this one disk" not in found[0][2]


def test_where_nobody_can_back_up_nothing_is_said():
    assert told(None) == []


@pytest.mark.parametrize(
    ("change", "said", "cause", "remedy"),
    [
        ({"made_ms": NOW - 31 * MINUTE}, "last 31m", "older than two times 15m", "the log"),
        ({"seconds": 0}, "last 3m", "off", "leafcast backup --every"),
        (
            {"failing_ms": NOW - 5 * MINUTE, "trouble": "/mnt: full; make room"},
            "last 3m; backups fail since 5m",
            "/mnt: full",
            "make room",
        ),
        ({"made_ms": 0, "verified_ms": 0}, "costs all", "one disk", "leafcast backup key new"),
        (
            {"made_ms": 0, "verified_ms": 0, "trouble": "/mnt: gone; mount it"},
            "costs all",
            "/mnt: gone",
            "mount it",
        ),
        (
            {"same_disk": True},
            "costs all",
            "/mnt lie on the same disk",
            "--to DIR, on another disk",
        ),
        (
            {"same_disk": True, "whole_ms": NOW - 5 * MINUTE},
            "in the last 5m",
            "/mnt lie on the same disk",
            "--to DIR",
        ),
        (
            {"same_disk": True, "failing_ms": NOW - 5 * MINUTE, "trouble": "/mnt: full; make room"},
            "costs all, also the backups; backups fail since 5m",
            "/mnt: full",
            "make room",
        ),
        (
            {"same_disk": True, "whole_ms": NOW, "whole_same_disk": True},
            "costs all",
            "same disk",
            "--to DIR",
        ),
        (
            {"seconds": 0, "made_ms": 0, "whole_ms": NOW, "whole_same_disk": True},
            "costs all",
            "they lie on the same disk",
            "--to DIR",
        ),
    ],
)
def test_what_costs_more_than_is_wanted_is_warned_of(change, said, cause, remedy):
    (state, *words), *_ = told(replace(GOOD, **change))
    assert state == "warning"
    for word, part in zip(words, (said, cause, remedy), strict=True):
        assert part in word


def test_a_verification_that_failed_is_warned_of():
    failed = replace(
        GOOD,
        damaged_ms=NOW - 5 * MINUTE,
        damaged_reason="/mnt/pieces/ab: damaged",
        damaged_remedy="remove this piece",
    )
    said = "a backup that was verified 5m ago cannot be restored"
    assert told(failed)[1] == ("warning", said, "/mnt/pieces/ab: damaged", "remove this piece")


def test_an_older_one_on_another_disk_counts_before_a_newer_one_on_the_same():
    found = told(replace(GOOD, whole_ms=NOW - MINUTE, whole_same_disk=True))
    assert found[0][:2] == ("ok", "a lost disk costs what was changed in the last 3m")


def test_a_file_of_its_own_counts_for_what_would_be_lost():
    found = told(BackupFacts(whole_ms=NOW - 10 * MINUTE))
    assert "last 10m" in found[0][1]
    assert found[1][0] == "warning"
