"""What a hub writes, read by kstatus itself: done is what is done, and no tool waits in vain."""

import json

import pytest

from schemas.objects.objects import ObjectKey
from schemas.records.placements import placement_key
from schemas.reports.reports import ExceptionSample, Summary
from tests.argocd import health
from tests.awaiting import until_object
from tests.kube.kstatus_program import kstatus
from tests.kube.test_placement_finalizer import HubCentre, centre, issued
from tests.unit.centre_world import SHOP, condition, config, location, placement, target
from tests.unit.test_own_statuses import BAD, GOOD, WHERE
from tests.unit.test_policies import POLICY, delta, policy
from tests.unit.test_rollout_controller import ROLLOUT, answer, gates, rollout

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

__all__ = ["HubCentre", "centre"]

MANY = 2000
HEALTH = {"InProgress": "Progressing", "Current": "Healthy", "Failed": "Degraded"}
REFUSED = ExceptionSample(0, "configmaps/shop/a", "Forbidden: no right to create it", 1, "/r/s-1")
CRASHES = ExceptionSample(2, "deployments.apps/shop/web", "CrashLoopBackOff", 1, "/r/s-1")
# What the tree reports; what kstatus makes of it; the reason.
STATES = [
    ({"pending": MANY}, {"unknown": MANY}, (), "InProgress", "Pending"),
    ({"synced": 1200, "pending": 800}, {"healthy": 1200}, (), "InProgress", "Pending"),
    ({"synced": MANY}, {"healthy": 10, "progressing": 1990}, (), "InProgress", "Progressing"),
    ({"synced": MANY}, {"healthy": MANY}, (), "Current", "Available"),
    ({"synced": 1800, "unreachable": 200}, {"healthy": 1800}, (), "Current", "Available"),
    ({"synced": 1799, "unreachable": 201}, {"healthy": 1799}, (), "InProgress", "Unreachable"),
    ({"synced": 1799, "pending": 1, "unreachable": 200}, {}, (), "InProgress", "Pending"),
    ({"synced": MANY}, {"healthy": 1999, "degraded": 1}, (CRASHES,), "InProgress", "Degraded"),
    ({"synced": 1999, "failing": 1}, {"healthy": 1999}, (REFUSED,), "Failed", "Failing"),
    ({"synced": 1999, "frozen": 1}, {"healthy": 1999}, (), "Failed", "CustomizationFrozen"),
    ({"synced": MANY, "never joined": 9}, {"healthy": MANY}, (), "Current", "Available"),
    ({}, {}, (), "InProgress", "NoDestinations"),
]


def ready(obj):
    return condition(obj, "Ready") or {}


def for_reason(reason):
    return lambda obj: ready(obj).get("reason") == reason


def of(obj):
    """What kstatus makes of an object; Argo CD's script says the same of it in its own words."""
    [(status, _)] = kstatus([obj])
    if status != "Terminating":
        healthy = "Degraded" if ready(obj).get("reason") == "Degraded" else HEALTH[status]
        person = ready(obj).get("reason") == "AwaitingApproval"
        assert health(obj)[0] == ("Suspended" if person else healthy)
    return status


async def test_a_placement_is_current_when_it_is_where_it_can_be_and_at_no_other_time(centre):
    await centre.apply_all(placement(), config("a"))
    fresh = json.loads(await centre.kubectl("get", "epl", "shop", "-o", "json"))
    assert of(fresh) == "InProgress"
    for wrong in ("101%", -1, "x", "10"):
        form = json.dumps(placement("wrong", readiness={"maxUnavailable": wrong}))
        code, _, said = await centre.kubectl("apply", "-f", "-", stdin=form, check=False)
        assert code
        assert "write a number such as 25, or a share such as 10%" in said
    for right in (0, 7, "0.5%", "100%"):
        await centre.apply_all(placement("right", readiness={"maxUnavailable": right}))
    await centre.kubectl("delete", "epl", "right")
    async with centre.running() as controllers:
        head = await issued(centre)
        unheard = await until_object(centre.wds, SHOP, for_reason("Incomplete"))
        assert (of(unheard), ready(unheard)["status"]) == ("InProgress", "Unknown")
        for states, health, samples, said, reason in STATES:
            summary = Summary(states=states, health=health, exceptions=samples)
            await centre.relay.report(head.source.key, summary)
            await controllers.written(["shop"])
            found = await until_object(
                centre.wds,
                SHOP,
                lambda obj, reason=reason, states=states: (
                    for_reason(reason)(obj)
                    and obj["status"]["destinations"]
                    == sum(states.values()) - states.get("never joined", 0)
                    and obj["status"]["synced"] == states.get("synced", 0)
                    and obj["status"]["complete"]
                ),
            )
            assert (states, of(found)) == (states, said)
        await centre.apply_all(placement(readiness={"allowEmpty": True}))
        assert of(await until_object(centre.wds, SHOP, for_reason("Empty"))) == "Current"
        await centre.kubectl("wait", "epl/shop", "--for=condition=Ready", "--timeout=20s")
        await centre.apply_all(placement(selectors=[{"matchLabels": {"a b": "c"}}]))
        assert of(await until_object(centre.wds, SHOP, for_reason("Invalid"))) == "Failed"
        shown = await centre.kubectl("get", "epl", "shop")
        assert [word in shown for word in ("READY", "Invalid")] == [True, True]
    await centre.apply_all(placement())
    assert of(await seen(centre, "epl", "shop")) == "InProgress"
    await centre.kubectl("delete", "epl", "shop", "--wait=false")
    assert of(await seen(centre, "epl", "shop")) == "Terminating"


async def seen(centre, *words):
    """An object as the server shows it, while no centre runs."""
    return json.loads(await centre.kubectl("get", *words, "-o", "json"))


async def test_a_policy_is_judged_as_a_placement_is_and_keeps_its_words_when_it_is_invalid(centre):
    await centre.inventory.apply(target("s1", "/emea/s1"), "user")
    key = placement_key(POLICY)
    await centre.apply_all(config("a"), policy(clause={"resources": ["configmaps"]}))
    assert of(await seen(centre, "bp", "shop")) == "InProgress"
    async with centre.running():
        await centre.relay.until(lambda relay: delta(relay, POLICY))
        for states, health, said in (
            ({"pending": 1}, {}, "InProgress"),
            ({"synced": 1}, {"healthy": 1}, "Current"),
        ):
            mail = delta(centre.relay, POLICY).source.key
            await centre.relay.report(mail, Summary(states=states, health=health))
            reason = "Available" if said == "Current" else "Pending"
            assert of(await until_object(centre.wds, key, for_reason(reason))) == said
        bad = policy(clause={"resources": ["configmaps"]}, selectors=[{"matchLabels": {"a b": ""}}])
        await centre.apply_all(bad)
        found = await until_object(centre.wds, key, for_reason("Unavailable"))
        assert (of(found), ready(found)["status"]) == ("Failed", "False")
        assert "a b" in ready(found)["message"]


async def test_a_rollout_and_what_it_steers_wait_for_a_person_and_are_current_at_its_end(centre):
    waves = ({"name": "all", "percent": 100, "approval": "before"},)
    await centre.inventory.apply(target("s1", "/s1"), "user")
    await centre.inventory.apply(location("all"), "user")
    async with centre.running():
        await issued(centre)
        await centre.apply_all(rollout(waves))
        fresh = await seen(centre, "rollout", "shop")
        assert of(fresh) == ("Current" if ready(fresh).get("status") == "True" else "InProgress")
        await until_object(centre.wds, ROLLOUT, for_reason("Complete"))
        await centre.apply_all(config("a", value="2"))
        waits = await until_object(centre.wds, ROLLOUT, for_reason("AwaitingApproval"))
        assert (of(waits), waits["status"]["phase"]) == ("Failed", "AwaitingApproval")
        steered = await until_object(centre.wds, SHOP, for_reason("AwaitingApproval"))
        assert of(steered) == "Failed"
        asked = json.dumps({"id": "1", "action": "approve", "wave": "all"})
        annotated = f"leafcast.io/rollout-request={asked}"
        await centre.kubectl("annotate", "rollout", "shop", annotated)
        going = await until_object(centre.wds, ROLLOUT, for_reason("Progressing"))
        assert of(going) == "InProgress"
        await centre.relay.until(lambda relay: any(gate.name for gate in gates(relay)))
        await answer(centre)
        done = await until_object(centre.wds, ROLLOUT, for_reason("Complete"))
        assert of(done) == "Current"
        await centre.apply_all(rollout((waves[0], {"name": "falls", "percent": 5})))
        assert of(await until_object(centre.wds, ROLLOUT, for_reason("Invalid"))) == "Failed"


async def test_what_is_read_at_the_centre_alone_is_current_as_soon_as_it_could_be_read(centre):
    def made(kind, said):
        version, _, _, namespace = WHERE[kind]
        metadata = {"name": "one"} | ({"namespace": namespace} if namespace else {})
        return {"apiVersion": version, "kind": kind, "metadata": metadata, **said[kind]}

    def key(kind):
        _, group, resource, namespace = WHERE[kind]
        return ObjectKey(group, resource, namespace, "one")

    await centre.apply_all(*(made(kind, GOOD) for kind in GOOD))
    kinds = ",".join(kind.lower() for kind in GOOD)
    listed = await seen(centre, kinds, "-A")
    assert [status for status, _ in kstatus(listed["items"])] == ["InProgress"] * len(GOOD)
    async with centre.running():
        for kind in GOOD:
            assert of(await until_object(centre.wds, key(kind), for_reason("Valid"))) == "Current"
        for kind in ("CustomTransform", "Customizer"):
            await centre.apply_all(made(kind, BAD))
            assert of(await until_object(centre.wds, key(kind), for_reason("Invalid"))) == "Failed"
