"""The centre takes a release before all waves, or after them; or a person upgrades it."""

import pytest

from controllers.core.rollout.centre_order import centre_order, why_no_order
from controllers.core.rollout.centre_turn import CentreTurn, step_of_tree
from controllers.core.rollout.release_steps import release_members, release_waves
from relay.core.release_waves import wave_of_centre, wave_of_relay
from schemas.records.signing import WIRE_LOWEST
from schemas.releases.release_manifest import Piece, ReleaseManifest, read_manifest
from schemas.releases.release_refused import ReleaseRefused
from schemas.releases.release_wires import Wires
from schemas.reports.running import Running, merged, running_here
from schemas.values.identity import NodePath
from schemas.values.wire import replace
from tests.unit.releases_world import signed_manifest
from tests.unit.test_release_steps import records, says, spec

ALL = {"name": "all", "percent": 100}


def own(state, version="1.0.0", wanted="9.0.0", why=""):
    return running_here("/", version, wanted, 0, state, why)


SAME = centre_order(Wires(2, 2), Wires(2, 2))


def step(
    release, centre, before=(), below=None, order="first", *, is_over=False, wires=SAME, why_none=""
):
    members = release_members(release_waves(release), records())
    running = merged([centre, *([below] if below else [])])
    turn = CentreTurn(order, wires, why_none, centre, is_over)
    return step_of_tree(release, members, before, running, None, 0, turn)


def through(release):
    """All waves, open, as the record has them once every node has the release."""
    return release_waves(release)


def test_no_wave_begins_before_the_centre_has_the_release():
    release = spec(ALL)
    assert step(release, Running()).all_waves == (), "nothing is known of it"
    first = step(release, own("idle", wanted=""))
    (wave,) = first.all_waves
    assert (wave_of_centre([wave]), first.phase) == (wave, "Progressing")
    assert wave_of_relay([wave], NodePath.parse("/emea"), ()) is None
    trying = step(release, own("soaking", "9.0.0"), first.all_waves)
    assert (trying.all_waves, trying.message) == ((wave,), "the centre goes first: soaking")
    done = step(release, own("healthy", "9.0.0"), first.all_waves)
    assert [(it.number, it.relays) for it in done.all_waves] == [(1, 1), (2, 0)]
    assert done.centre_says == "healthy"


def test_a_centre_that_goes_last_waits_for_all_waves_and_ends_the_release():
    release = spec(ALL)
    healthy = says(1, healthy=6)
    begun = step(release, own("idle", wanted=""), order="last")
    assert (begun.centre, begun.waves[0].relays) == (None, 1)
    opened = step(release, own("idle", wanted=""), through(release), healthy, "last")
    assert (opened.phase, opened.message) == ("Progressing", "the centre: it runs 1.0.0")
    last = step(release, own("healthy", "9.0.0"), opened.all_waves, healthy, "last")
    assert (last.phase, last.all_waves) == ("Complete", opened.all_waves)
    # Its run began anew since, and it said nothing yet.
    assert step(release, Running(), last.all_waves, healthy, "last", is_over=True).phase == (
        "Complete"
    )


def test_a_centre_that_went_back_stops_all_that_comes_after():
    release = spec(ALL)
    back = own("rolled-back", why="9.0.0 ended")
    begun = step(release, own("idle", wanted="")).all_waves
    failed = step(release, back, begun)
    assert (failed.phase, failed.waves) == ("Failed", ())
    assert failed.centre_says == "rolled-back: 9.0.0 ended"
    opened = (*through(release), *begun)
    assert step(release, back, opened, says(1, healthy=6), "last").phase == "Failed"


@pytest.mark.parametrize("state", ["managed-elsewhere", "pins-no-publisher"])
@pytest.mark.parametrize("order", ["first", "last"])
def test_a_centre_that_a_person_upgrades_is_waited_for_by_nobody(state, order):
    release, centre = spec(ALL), own(state)
    begun = step(release, centre, order=order)
    assert (begun.waves[0].relays, begun.phase) == (1, "Progressing")
    assert "by hand" in begun.centre_says
    assert "install 9.0.0 there" in begun.centre_says
    done = step(release, centre, through(release), says(1, healthy=6), order)
    assert done.phase == "Complete"


def test_a_centre_that_a_person_upgrades_is_not_to_get_what_failed_elsewhere():
    release = spec(ALL)
    failed = step(release, own("managed-elsewhere"), through(release), says(1, rolled_back=2))
    assert failed.phase == "Failed"
    assert failed.centre_says == (
        "by hand, as no launcher runs it; it runs 1.0.0; leave it so, as 9.0.0 failed elsewhere"
    )
    there = step(release, own("managed-elsewhere", "9.0.0"), through(release), says(1, refused=2))
    assert there.centre_says == "by hand, as no launcher runs it; it runs 9.0.0"


def test_paused_or_aborted_the_centre_begins_as_little_as_all_others():
    centre = own("idle", wanted="")
    assert step(spec(ALL, paused=True), centre).all_waves == ()
    begun = step(spec(ALL), centre).all_waves
    held = step(spec(ALL, paused=True), own("fetching"), begun)
    assert (held.phase, held.all_waves) == ("Paused", begun)
    healthy = step(spec(ALL, paused=True), own("healthy", "9.0.0"), begun)
    assert (healthy.phase, healthy.all_waves) == ("Paused", begun)
    assert step(spec(ALL, aborted=True), own("fetching"), begun).all_waves == ()
    waits = step(
        spec(ALL, paused=True), centre, through(spec(ALL)), says(1, healthy=6), order="last"
    )
    assert (waits.phase, waits.centre) == ("Paused", None)


def test_what_takes_the_tree_back_is_taken_by_the_centre_last():
    newer = own("idle", "9.1.0", wanted="")
    assert step(spec(ALL), newer).centre is None
    opened = step(spec(ALL), newer, through(spec(ALL)), says(1, healthy=6))
    assert opened.centre is not None
    # On trial it runs the older one.
    trying = step(spec(ALL), own("soaking", "9.0.0"), opened.all_waves, says(1, healthy=6))
    assert (trying.phase, trying.all_waves) == ("Progressing", opened.all_waves)


def test_a_release_that_is_over_or_for_a_part_of_the_tree_leaves_the_centre_as_it_is():
    centre = own("idle", wanted="")
    over = step(spec(ALL), centre, through(spec(ALL)), says(1, healthy=6), is_over=True)
    assert (over.phase, over.centre) == ("Complete", None)
    part = step(spec(ALL, path="/emea"), centre)
    assert (part.centre, part.centre_says) == (None, "left as it is: the release is for /emea")


def test_what_is_over_takes_no_centre_back_that_a_person_upgraded_since():
    release, healthy = spec(ALL), says(1, healthy=6)
    opened = step(release, own("managed-elsewhere"), through(release), healthy).all_waves
    for state in ("managed-elsewhere", "idle"):
        over = step(release, own(state, "9.1.0"), opened, healthy, is_over=True)
        assert (over.phase, over.all_waves) == ("Complete", through(release))
        assert over.centre_says == "left as it is: it runs 9.1.0, which is newer"
    # One that got its launcher late, and runs an older one, takes it.
    late = step(release, own("fetching"), opened, healthy, is_over=True)
    assert (late.phase, late.all_waves) == ("Complete", opened)


def test_the_centre_begins_in_the_windows_of_the_wave_beside_it():
    window = {"cron": "0 1 * * 1", "duration": "1h"}
    release = spec({**ALL, "windows": [window]})
    (wave,) = step(release, own("idle", wanted="")).all_waves
    assert len(wave.windows) == 1


def test_a_manifest_says_when_the_centre_goes():
    assert read_manifest(signed_manifest("9.0.0").encode()).centre == "first"
    last = signed_manifest("9.0.0").replace('"upgrades_from"', '"centre": "last", "upgrades_from"')
    manifest = read_manifest(last.encode())
    assert (manifest.centre, manifest.form["leafcast"]["centre"]) == ("last", "last")
    with pytest.raises(ReleaseRefused, match="'later' is no order"):
        read_manifest(last.replace('"last"', '"later"').encode())


@pytest.mark.parametrize(
    ("now", "release", "may", "says"),
    [
        ((2, 2), (2, 2), ("first", "last"), ""),
        ((2, 3), (2, 3), ("first", "last"), ""),
        ((2, 2), (2, 3), ("first",), "nodes with it say wire 3, which the centre now"),
        ((2, 3), (3, 3), ("first",), "the centre now issues wire 2, which nodes with it"),
        ((2, 3), (3, 4), ("first",), "nodes with it say wire 4"),
        ((2, 3), (2, 2), ("last",), "nodes now say wire 3, which a centre with it does not read"),
        ((3, 3), (2, 3), ("last",), "a centre with it issues wire 2, which nodes now"),
        ((3, 4), (2, 3), ("last",), "a centre with it issues wire 2"),
        ((2, 2), (3, 3), (), ""),
        ((3, 3), (2, 2), (), ""),
        ((2, 4), (3, 3), (), ""),
    ],
)
def test_the_wires_say_which_order_works(now, release, may, says):
    found = centre_order(Wires(*now), Wires(*release))
    assert found.may == may
    assert found.why.startswith(says)
    for asked in ("first", "last"):
        assert found.chosen(asked) == (asked if asked in may else (may or ("",))[0])


def test_a_relay_that_goes_before_those_below_it_reads_no_less_than_it_did():
    """One of 0.2.0 knows no `relays_from`, and reads wire 2 alone: so the tree issues that."""
    wires = [Wires(low, high) for low in range(1, 6) for high in range(low, 6)]
    last_ones = [
        (now, release)
        for now in wires
        for release in wires
        if now.lowest == WIRE_LOWEST and centre_order(now, release).forced == "last"
    ]
    assert last_ones
    assert all(release.reads(WIRE_LOWEST) for _, release in last_ones)


def manifest(version, lowest, highest, follows="0.1.0"):
    wheels = {"linux-amd64": (Piece("a.whl", "0" * 64, 1),)}
    return ReleaseManifest(version, wheels, "2.15.1", lowest, highest, follows)


def test_what_neither_can_take_first_names_what_to_go_through():
    far = manifest("0.4.0", 3, 3, "0.3.0")
    assert why_no_order(Wires(2, 2), "0.2.0", far, []) == (
        "it speaks wire 3, and the centre wire 2: a centre with it issues wire 3, which nodes now "
        "do not read; go through 0.3.0 first, which it follows"
    )
    between, other = manifest("0.3.5", 2, 3), manifest("0.3.6", 3, 3)
    said = why_no_order(Wires(2, 2), "0.3.0", far, [far, other, between])
    assert said.endswith("; go through 0.3.5 first")
    said = why_no_order(Wires(2, 2), "0.3.0", far, [far])
    assert said.endswith("; go through a release first that speaks wire 2 to 3")
    assert why_no_order(Wires(2, 3), "0.3.0", far, []) == ""


def test_the_wire_goes_before_the_manifest_and_before_going_back():
    idle, release = own("idle", wanted=""), spec(ALL)
    first = centre_order(Wires(2, 2), Wires(2, 3))
    begun = step(release, idle, order="last", wires=first)
    assert (begun.waves, begun.centre is not None) == ((), True)
    assert "which the centre now does not read" in begun.message
    last = centre_order(Wires(2, 3), Wires(2, 2))
    begun = step(release, idle, order="first", wires=last)
    assert begun.centre is None
    assert begun.centre_says.startswith("it goes last, after all waves, as nodes now say wire 3")


def test_a_centre_that_a_person_upgrades_holds_what_it_could_not_read_and_nothing_else():
    release, by_hand = spec(ALL), own("managed-elsewhere")
    held = step(release, by_hand, wires=centre_order(Wires(2, 2), Wires(2, 3)))
    assert (held.waves, held.phase) == ((), "Progressing")
    assert "install 9.0.0 there, as nodes with it say wire 3" in held.message
    # Once it is there, both speak the same.
    there = own("managed-elsewhere", "9.0.0")
    assert step(release, there, held.all_waves, wires=centre_order(Wires(2, 3), Wires(2, 3))).waves


def test_what_cannot_go_on_stops_where_it_is():
    release = spec(ALL)
    opened = through(release)[:1]
    step_now = step(release, own("idle", wanted=""), opened, why_none="it speaks wire 9")
    assert (step_now.phase, step_now.waves) == ("Failed", opened)
    over = step(release, own("idle"), opened, says(1, healthy=6), is_over=True, why_none="no wire")
    assert (over.phase, over.centre_says) == ("Complete", "left as it is: no wire")


def test_where_edges_go_first_the_relays_of_all_waves_follow_up_to_the_centre():
    wires = centre_order(Wires(2, 3), Wires(2, 2))
    release, opened, seen = spec(), (), []
    told = [(0, 0), (1, 0), (1, 2), (2, 2), (3, 3)]
    for first, second in told:
        said = merged([says(1, healthy=first), says(2, healthy=second)])
        found = step(release, own("idle", wanted=""), opened, said, wires=wires)
        opened = found.all_waves
        seen.append([(it.number, it.relays_from, it.relays, it.edges) for it in found.waves])
    assert seen[0] == [(1, 0, 0, True)]
    assert seen[1] == [(1, 0, 0, True), (2, 0, 0, True)]
    assert seen[2] == [(1, 2, 255, True), (2, 2, 255, True)]
    assert seen[3] == [(1, 1, 255, True), (2, 1, 255, True)]
    assert (found.phase, found.centre is not None) == ("Progressing", True)
    # The deepest relays alone are admitted before those above them.
    deep = release_waves(release)[0]
    deep = replace(deep, relays_from=2)
    assert wave_of_relay([replace(deep, selector=None)], NodePath.parse("/emea"), ()) is None
    assert wave_of_relay([replace(deep, selector=None)], NodePath.parse("/emea/de"), ())


def test_a_centre_that_gets_its_launcher_late_undoes_no_release_that_is_complete():
    release, healthy = spec(ALL), says(1, healthy=6)
    opened = step(release, own("managed-elsewhere"), through(release), healthy).all_waves
    late = step(release, own("rolled-back", why="code 3"), opened, healthy, is_over=True)
    assert (late.phase, late.all_waves) == ("Complete", opened)
    assert late.centre_says == "rolled-back: code 3"
    assert "but for the centre; mend" in late.message
