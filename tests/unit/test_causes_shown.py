"""What is wrong is told by cause: however many errors, a cause once, with where and one example."""

from leafcast.show.causes import causes, causes_form, causes_view
from leafcast.show.faults import SAMPLES_MAX
from leafcast.show.stages import CopyStage

REGIONS, SITES = 5, 100


def sample(name, reason, count, path, severity=0):
    obj = f"configmaps/shop/{name}"
    return {"object": obj, "reason": reason, "count": count, "path": path, "severity": severity}


def node(path, *exceptions):
    role = "edge" if path.count("/") == 2 else "relay"
    return {"path": path, "role": role, "exceptions": list(exceptions)}


def form(name="shop", **said):
    return {"name": name, "exceptions": [], "complete": True, "nodes": [], **said}


def five_hundred():
    """500 sites, each with an object of its own that a quota, a webhook or a policy refuses."""
    reasons = (
        "Forbidden: exceeded quota: q",
        'InternalError: failed calling webhook "w.x": no endpoints',
        "Invalid: spec.replicas",
    )
    nodes, samples = [node("/")], []
    for region in range(REGIONS):
        inside = []
        for site in range(SITES):
            path, reason = f"/r{region}/s{site}", reasons[(region * SITES + site) % 3]
            one = sample(f"c{region}-{site}", reason, 1, path)
            nodes.append(node(path, one))
            inside.append(one)
        nodes.append(node(f"/r{region}", *inside[:SAMPLES_MAX]))
        samples += inside
    # As reports are: some of the errors stand for all.
    return form(exceptions=samples[:SAMPLES_MAX], nodes=nodes)


def test_five_hundred_errors_are_three_causes():
    found = causes([five_hundred()])

    assert [each["cause"] for each in found] == [
        "refused/configmaps/Quota",
        "refused/place/WebhookUnreachable",
        "refused/configmaps/Invalid",
    ]
    assert sum(each["destinations"] for each in found) == REGIONS * SITES
    for each in found:
        by_tier = {tier["tier"]: (tier["nodes"], tier["of"]) for tier in each["tiers"]}
        assert by_tier == {
            1: (REGIONS, REGIONS),
            2: (each["destinations"], REGIONS * SITES),
        }
        assert each["example"]["path"].startswith("/r0/s")
        assert each["remedy"]
        assert not each["exact"]


def test_holds_and_silent_nodes_are_causes_too():
    hold = {"reason": "AwaitingApproval", "message": "wave", "remedy": "approve", "destinations": 3}
    away = {"path": "/r1", "since_ms": 7, "state": "unreachable", "destinations": 100}
    listed = causes([form(held=[hold], unreachable=[away], nodes=[node("/r1"), node("/r2")])])

    assert [(each["cause"], each["destinations"]) for each in listed] == [
        ("mailbox/node/unreachable", 100),
        ("approval/placement/AwaitingApproval", 3),
    ]
    assert listed[0]["tiers"] == [{"tier": 1, "nodes": 1, "of": 2}]
    assert (listed[0]["sinceMs"], listed[1]["remedy"]) == (7, "approve")


def test_a_hold_that_is_made_of_reports_is_no_cause_beside_them():
    for reason, said in (
        ("CustomizationFrozen", "Frozen: no zone"),
        ("Overridden", "Overridden: epl/b says"),
        ("WaitingForPlacement", "Waiting: for namespaces/shop"),
    ):
        held, reports = [{"reason": reason, "message": said}], [sample("a", said, 3, "/r1/s1")]
        [reported] = causes([form(held=held, exceptions=reports)])
        assert (reported["element"], reported["destinations"]) == ("configmaps", 3)
        # As long as no report says it the hold does.
        [alone] = causes([form(held=held)])
        assert alone["category"] == reason
    frozen = form(held=[{"reason": "CustomizationFrozen"}], lack="a path leads nowhere")
    frozen |= {"exceptions": [sample("a", "Frozen: no zone", 3, "/r1/s1")]}
    assert [each["element"] for each in causes([frozen])] == ["configmaps", "placement"]


def test_several_placements_have_one_cause():
    two = [form(name, exceptions=[sample("a", "Invalid: x", 4, "/r1/s1")]) for name in ("a", "b")]
    [one] = causes(two)
    assert (one["placements"], one["destinations"]) == (["a", "b"], 4)
    assert one["stage"] == CopyStage.REFUSED


def test_a_table_fits_a_terminal_and_nothing_is_wrong_says_so():
    lines = shown([five_hundred()], width=100)
    assert lines[0].split()[:4] == ["STAGE", "ELEMENT", "CATEGORY", "AT"]
    assert all(len(line) <= 100 for line in lines)
    assert sum(line.startswith("  do: ") for line in lines) == len(("quota", "webhook", "policy"))
    assert shown([form()]) == ["nothing is wrong"]


def shown(forms, *said, width=80):
    return list(causes_view(causes_form(forms, *said)).lines(width, styled=False))


def test_a_problem_and_a_lack_are_causes_unless_a_hold_says_them():
    said = {"problem": "spec.x is no number", "lack": "no object is there"}
    listed = causes([form(**said)])
    assert [(each["cause"], each["example"]["reason"]) for each in listed] == [
        ("held/placement/Invalid", "spec.x is no number"),
        ("not-selected/placement/Lack", "no object is there"),
    ]
    assert all(each["remedy"] for each in listed)
    holds = [{"reason": "Invalid"}, {"reason": "KindUnreadable"}]
    assert [each["cause"] for each in causes([form(**said, held=holds)])] == [
        "held/placement/Invalid",
        "space/placement/KindUnreadable",
    ]


def test_destinations_that_are_away_count_whoever_is_named():
    [one] = causes([form(states={"unreachable": 10}, unreachable=[])])
    assert (one["cause"], one["destinations"]) == ("mailbox/node/unreachable", 10)
    named = {"path": "/r1", "since_ms": 7, "state": "unreachable", "destinations": 4}
    behind = {"path": "/r2/s1", "since_ms": 9, "state": "unreachable", "destinations": 0}
    [one] = causes([form(states={"unreachable": 10}, unreachable=[named, behind])])
    assert (one["destinations"], one["sinceMs"], one["example"]["path"]) == (10, 7, "/r1")


def test_nothing_is_wrong_is_said_only_once_all_have_answered():
    unheard = form(complete=False, blocking=["/r1", "/r2"])
    assert shown([unheard]) == [
        "nothing is wrong that was heard of; 2 nodes have not answered: /r1, /r2"
    ]
    assert shown([form()], ["/r3"])[0].endswith("1 node has not answered: /r3")
    assert shown([form(complete=False)])[0].endswith("not all nodes have answered")
    found = causes_form([unheard])
    assert (found["complete"], found["unanswered"]) == (False, ["/r1", "/r2"])
    wrong = shown([form(complete=False, blocking=["/r1"], lack="no object is there")])
    assert wrong[-1] == "1 node has not answered: /r1"


def test_what_is_wrong_at_the_centre_is_told_too():
    lines = shown([form()], [], {"s1": "3 placements"}, "the folder is full")
    assert lines[0] == "Backups fail: the folder is full"
    assert "leafcast accept --space s1" in lines
    assert "nothing is wrong" not in " ".join(lines)
