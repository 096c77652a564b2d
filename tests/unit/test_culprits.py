"""A failed wave says which object, where, and why, of its own members alone."""

from controllers.core.rollout.culprits import NAMED_MAX, REASON_CHARACTERS, culprits, members_at
from controllers.core.rollout.kept_back import count_lacking
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.records import CENTRE, Gate, LocationRecord, Profile, Source
from schemas.records.windows import Window
from schemas.reports.reports import ExceptionSample
from schemas.values.identity import DestinationId, NodePath
from schemas.values.wire import replace
from tests.unit.rollout_world import V2, Fleet

NIGHT = Window("0 0 * * *", 3600, "UTC")
WEB = "deployments.apps/shop/web"


def sample(severity, path, reason="ImagePullBackOff", obj=WEB, count=1):
    return ExceptionSample(severity, obj, reason, count, path)


def everyone(paths):
    return paths


def test_the_worst_comes_first_and_many_are_counted():
    assert culprits([], everyone) == ""
    said = culprits([sample(2, "/a"), sample(0, "/b", "Forbidden")], everyone)
    first, second = said.split("; ")
    assert first == "shop/deployments.apps/web at /b: Forbidden"
    assert second == "shop/deployments.apps/web at /a: ImagePullBackOff"
    said = culprits([sample(2, f"/{at}") for at in range(NAMED_MAX + 2)], everyone)
    assert said.endswith("; and 2 more")
    assert culprits([sample(1, "/a", "NoZone", obj="")], everyone) == "at /a: NoZone"


def test_a_long_reason_is_cut():
    said = culprits([sample(2, "/a", "x" * 1000)], everyone)
    assert len(said) < REASON_CHARACTERS + 50


def test_who_is_of_another_wave_is_not_to_blame():
    listed = [sample(0, "/b"), sample(2, "/a")]
    assert culprits(listed, lambda _: {"/a"}).startswith("shop/deployments.apps/web at /a")


def test_members_are_told_by_labels_of_their_own_and_of_their_locations():
    selector = LabelSelector((Requirement("ring", "In", ("canary",)),))

    def profile(name, **labels):
        source = Source("SyncTarget", "inventory", "", name)
        place = NodePath.parse(f"/{name}")
        return Profile(source, 1, "", "", DestinationId(name * 32), place, labels, {}, {})

    north = LabelSelector((Requirement("zone", "In", ("north",)),))
    source = Source("Location", "inventory", "", "north")
    place = LocationRecord(source, 1, "", "", {"ring": "canary"}, {}, north)
    listed = [profile("a", ring="canary"), profile("b"), profile("c", zone="north"), place]
    records = {str(at): it for at, it in enumerate(listed)}
    paths = {"/a", "/b", "/c", "/d"}
    gates = [Gate(V2, selector=selector, name="2.0", path=CENTRE), Gate(None)]
    assert members_at(records, gates, "2.0", paths) == {"/a"}
    over = [replace(gates[0], over="location"), gates[1]]
    assert members_at(records, over, "2.0", paths) == {"/c"}
    # Who has the newest content by its gate lacks nothing, whatever the hour, or the place.
    assert count_lacking(records, records, gates, V2) == 2
    assert count_lacking(records, ["0", "1", "no-such"], gates, V2) == 1
    assert count_lacking(records, records, over, V2) == 2
    pinned = [Gate(None, path=NodePath.parse("/a")), Gate(V2, windows=(NIGHT,))]
    assert count_lacking(records, records, pinned, V2) == 1


def test_a_wave_that_fails_names_the_object_the_place_and_the_reason():
    fleet = Fleet()
    fleet.turn()
    fleet.facts = {"in_wave": lambda _gate, paths: paths}
    fleet.exceptions = (sample(2, "/emea/s1"),)
    fleet.broken = {V2}
    fleet.want(V2)
    reason = fleet.state.waves[0].reason
    assert reason.endswith(" may: shop/deployments.apps/web at /emea/s1: ImagePullBackOff")
