"""The doctor says who does not run the release that was chosen for it, why, and what to do."""

from leafcast.doctor.findings import DoctorFacts, ReleaseFact
from leafcast.doctor.release_checks import release_checks
from schemas.reports.running import Running, RunningCount, RunningFault
from schemas.values.wire import convert, to_builtins


def found(*counts, faults=(), releases=()):
    running = Running(tuple(RunningCount(*it) for it in counts), tuple(faults))
    facts = DoctorFacts(now_ms=0, folder="x", free_bytes=1, running=running, releases=releases)
    # As a command has it of the daemon.
    return list(release_checks(convert(DoctorFacts, to_builtins(facts), "facts")))


def test_while_no_release_is_chosen_there_is_nothing_to_say():
    assert found(("0.2.0", "", 0, "idle", 3), ("0.3.0", "", 0, "managed-elsewhere", 1)) == []


def test_who_goes_on_or_is_there_is_well():
    (check,) = found(("0.3.0", "0.3.0", 1, "healthy", 2), ("0.2.0", "0.3.0", 1, "fetching", 1))
    assert (check.state, check.said) == ("ok", "2 of 3 nodes run what was chosen for them")
    (check,) = found(("0.3.0", "0.3.0", 1, "managed-elsewhere", 2))
    assert check.state == "ok"


def test_who_went_back_or_refused_is_named_with_what_its_launcher_says():
    faults = [
        RunningFault("/emea/s1", "0.3.0", "rolled-back", "0.3.0 lost its parent"),
        RunningFault("/emea/s2", "0.3.0", "refused", "disk: 3 MB are free"),
    ]
    counts = [("0.2.0", "0.3.0", 1, "rolled-back", 4), ("0.2.0", "0.3.0", 1, "refused", 1)]
    well, back, refused, others = found(*counts, faults=faults)
    assert (well.state, well.said) == ("warning", "0 of 5 nodes run what was chosen for them")
    assert well.cause == "5 nodes went back from it, or refused it"
    assert (back.about, back.said) == ("/emea/s1", "/emea/s1 went back from 0.3.0")
    assert (back.state, back.cause) == ("warning", "0.3.0 lost its parent")
    assert back.remedy == (
        "mend that there (its launcher's log has what it said), then leafcast upgrade retry 0.3.0; "
        "or leafcast upgrade abort 0.3.0, and let out another release"
    )
    assert refused.remedy.startswith("mend that there, then leafcast upgrade retry 0.3.0; or ")
    assert refused.said == "/emea/s2 refused 0.3.0"
    assert others.said.startswith("3 more nodes ")


def test_a_release_that_goes_no_further_says_why_and_one_that_does_is_well():
    why = "pieces/ab is not what the manifest names as a.whl; give the centre its pieces"
    releases = [
        ReleaseFact("0.2.0", "Complete"),
        ReleaseFact("0.3.0", "Waiting", why),
        ReleaseFact("0.3.1", "Failed", "too many went back"),
        ReleaseFact("0.3.2", "Refused", "it speaks wire 3"),
        ReleaseFact("0.3.3", "Progressing", "the first wave"),
    ]
    waits, failed, refused = found(releases=releases)
    assert (waits.state, waits.said, waits.cause) == ("warning", "release 0.3.0 waits", why)
    assert failed.said == "release 0.3.1 failed, and nothing more begins"
    assert (refused.said, refused.cause) == ("release 0.3.2 is refused", "it speaks wire 3")


def test_who_is_not_upgraded_through_the_tree_is_counted_with_the_way_there():
    _, elsewhere, unpinned = found(
        ("0.1.0", "0.3.0", 1, "managed-elsewhere", 2),
        ("0.2.0", "0.3.0", 2, "managed-elsewhere", 1),
        ("0.2.0", "0.3.0", 2, "pins-no-publisher", 1),
    )
    assert elsewhere.said.startswith("3 nodes did not take 0.3.0")
    assert "0.1.0, 0.2.0" in elsewhere.said
    assert "leafcast-launcher" in elsewhere.remedy
    assert unpinned.said.startswith("1 node did not take 0.3.0")
    assert "leafcast release pin" in unpinned.remedy


def test_nobody_is_told_to_install_what_failed_elsewhere():
    fault = RunningFault("/emea/s1", "0.3.0", "rolled-back", "0.3.0 ended: code 3")
    counts = [
        ("0.2.0", "0.3.0", 1, "rolled-back", 1),
        ("0.2.0", "0.3.0", 1, "managed-elsewhere", 1),
    ]
    elsewhere = found(*counts, faults=[fault])[-1]
    assert elsewhere.remedy.startswith("leave them so until 0.3.0 works where it did not; then ")


def test_who_has_a_newer_package_is_counted_and_stays():
    counts = [("0.3.0", "0.3.0", 1, "healthy", 2), ("0.4.0", "0.3.0", 1, "healthy", 1)]
    well, newer = found(*counts)
    assert well.said == "2 of 3 nodes run what was chosen for them"
    assert newer.said == "1 node with 0.4.0 instead of 0.3.0: it is newer, and stays"
    assert "let 0.4.0 out for all" in newer.remedy
    # On its way back it runs it no longer than that takes.
    assert len(found(("0.4.0", "0.3.0", 1, "fetching", 1))) == 1


def test_who_gets_no_placement_before_it_is_upgraded_is_named_also_if_nothing_is_chosen_there():
    why = "it gets no placement: what is issued needs wire 3, which it does not speak"
    fault = RunningFault("/emea/s1", "", "managed-elsewhere", why)
    (check,) = found(("0.1.0", "", 0, "managed-elsewhere", 1), faults=[fault])
    assert check.said == "/emea/s1 gets no placement before it is upgraded"
    assert (check.state, check.cause) == ("warning", why)
    counts = [("0.2.0", "0.3.0", 1, "rolled-back", 1)]
    others = [check for check in found(*counts, faults=[fault]) if "more node" in check.said]
    assert [it.said[:7] for it in others] == ["1 more "]
