"""Vectors of what an edge does to its cluster: marks, whose an object is, when it is put right."""

from __future__ import annotations

from relay.core.destination.claims import Claim, choose
from relay.objects.policies import on_removal
from relay.syncer.losses import pause_left
from relay.syncer.object_marks import (
    MANAGER,
    is_adopted,
    is_left_alone,
    is_ours,
    marked,
    removal_said,
)
from relay.syncer.ownership import hold_of
from relay.syncer.repairs import Repairs
from schemas.content.manifest import ManifestEntry
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Lost
from schemas.values import codec
from schemas.values.identity import MailKey
from tests.conformance.forms import Case, Json

ABOUT = (
    "What is applied of an object (`wish`), whose an object of a cluster is (`live`), which fields "
    "an edge notes as held (`held`), what becomes of an object that is wanted no more (`removed`), "
    "which of several claims counts (`claims`), and when an object is put right (`repairs`), or "
    "made again (`lost`)."
)
TREE = "a" * 26
GIVEN: dict[str, Json] = {"tree": TREE, "key": ["", "configmaps", "shop", "a"]}
PLAIN: dict[str, Json] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "shop"},
}


def cases() -> list[Case]:
    """All vectors, in the order of the file."""
    return [*_wishes(), *_owners(), *_fields(), *_removals(), *_claims(), *_times()]


def _with(**metadata: Json) -> dict[str, Json]:
    return {**PLAIN, "metadata": {**PLAIN["metadata"], **metadata}}


def _wishes() -> list[Case]:
    job: dict[str, Json] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "shop"},
        "spec": {"template": {"metadata": {"labels": {"app": "j"}}}},
    }
    key = ["batch", "jobs", "shop", "j"]
    keeping = _with(annotations={"leafcast.io/on-removal": "orphan"})
    plain = {"adopted": False, "asked": ""}
    return [
        Case("an object that is made", "A1", {"wish": PLAIN, **plain}),
        Case("an object that is adopted", "A5", {"wish": PLAIN, **plain, "adopted": True}),
        Case("a placement asks to keep it", "B7", {"wish": PLAIN, **plain, "asked": "keep"}),
        Case("the object's own word stays", "B7", {"wish": keeping, **plain, "asked": "keep"}),
        Case("a Job without labels", "A3", {"wish": job, **plain, "key": key}),
        Case(
            "a Job with a label",
            "A3",
            {
                "wish": {**job, "metadata": {**job["metadata"], "labels": {"a": "b"}}},
                **plain,
                "key": key,
            },
        ),
    ]


def _owners() -> list[Case]:
    named = {"leafcast.io/object": "configmaps/shop/a"}
    label = {"leafcast.io/tree": TREE}
    listed: list[tuple[str, Json, bool]] = [
        ("with both marks", _with(labels=label, annotations=named), True),
        ("with the label alone", _with(labels=label), False),
        ("with the annotation alone", _with(annotations=named), False),
        (
            "that names another object",
            _with(labels=label, annotations={"leafcast.io/object": "configmaps/shop/b"}),
            False,
        ),
        ("of another tree", _with(labels={"leafcast.io/tree": "b" * 26}, annotations=named), False),
        (
            "that was there before",
            _with(labels=label, annotations={**named, "leafcast.io/adopted": "true"}),
            True,
        ),
        (
            "that is left to its cluster",
            _with(
                labels=label,
                annotations={
                    **named,
                    "edge.kubestellar.io/downsync-overwrite": "false",
                    "leafcast.io/on-removal": "keep",
                },
            ),
            True,
        ),
    ]
    return [
        Case(f"an object {name}", "A1", {"live": live}, {"ours": ours})
        for name, live, ours in listed
    ]


def _fields() -> list[Case]:
    def entry(manager: str, fields: Json, operation: str = "Apply", **more: str) -> Json:
        return {
            "manager": manager,
            "operation": operation,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
            **more,
        }

    mine = {
        "f:data": {"f:a": {}, "f:b.c": {}},
        "f:metadata": {"f:labels": {"f:leafcast.io/tree": {}}},
    }
    listed = {
        "f:spec": {
            "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}}},
            "f:finalizers": {'v:"x/y"': {}},
        }
    }
    return [
        Case(
            "held: fields of a map", "A12", {"held": _with(managedFields=[entry("leafcast", mine)])}
        ),
        Case(
            "held: items of lists",
            "A12",
            {"held": _with(managedFields=[entry("leafcast", listed)])},
        ),
        Case(
            "held: others' fields", "A12", {"held": _with(managedFields=[entry("kubectl", mine)])}
        ),
        Case(
            "held: what was updated",
            "A12",
            {"held": _with(managedFields=[entry("leafcast", mine, "Update")])},
        ),
        Case(
            "held: the status",
            "A12",
            {"held": _with(managedFields=[entry("leafcast", mine, subresource="status")])},
        ),
        Case("held: no manager is told", "A12", {"held": PLAIN}),
    ]


def _removals() -> list[Case]:
    listed: list[tuple[str, list[str], list[str], str]] = [
        ("a ConfigMap", ["", "configmaps"], ["", "", ""], "delete"),
        ("a claim", ["", "persistentvolumeclaims"], ["", "", ""], "keep"),
        (
            "a snapshot of a volume",
            ["snapshot.storage.k8s.io", "volumesnapshots"],
            ["", "", ""],
            "keep",
        ),
        (
            "a claim that says delete",
            ["", "persistentvolumeclaims"],
            ["delete", "", "keep"],
            "delete",
        ),
        ("a ConfigMap whose placement says keep", ["", "configmaps"], ["", "", "keep"], "keep"),
        (
            "a ConfigMap whose DONE says orphan",
            ["", "configmaps"],
            ["", "orphan", "keep"],
            "orphan",
        ),
    ]
    return [
        Case(
            f"removed: {name}",
            "B7",
            {"removed": [*kind, "shop", "a"], "words": words},
            {"word": word},
        )
        for name, kind, words, word in listed
    ]


def _claims() -> list[Case]:
    def claim(placement: str, content: bytes, **more: Json) -> Json:
        return {
            "placement": placement * 32,
            "address": codec.address("object", content),
            "space": "wds",
            "revision": 3,
            "flags": 0,
            "gated": False,
            **more,
        }

    one, two = claim("1", b"one"), claim("2", b"two", revision=4)
    listed: list[tuple[str, list[Json], Json]] = [
        ("the higher revision", [one, two], two),
        ("a rollout before it", [{**one, "gated": True}, two], one),
        ("what is not cleaned as KubeStellar does before it", [one, {**two, "flags": 128}], one),
        ("another source: the least mail key", [one, {**two, "space": "other"}], one),
        ("made once only if all say so", [{**one, "flags": 1}, {**two, "flags": 2}], two),
        ("made once if all say so", [{**one, "flags": 1}, {**two, "flags": 1}], two),
        ("words of removal add up", [{**one, "flags": 16}, {**two, "flags": 64}], two),
    ]
    return [
        Case(f"claims: {name}", "W5", {"claims": claims}, {"address": best["address"]})
        for name, claims, best in listed
    ]


def _times() -> list[Case]:
    five = [0.0, 10.0, 20.0, 30.0, 40.0]
    listed: list[tuple[str, list[float], list[float], float]] = [
        ("never", [], [100.0], 100.0),
        ("four times in a minute", five[:4], [40.0], 40.0),
        ("five times in a minute", five, [50.0], 100.0),
        ("five times in more than a minute", [0.0, 20.0, 40.0, 60.0, 80.0], [90.0], 90.0),
        ("five times, after a minute", five, [61.0], 61.0),
        ("five times, and once more when it was due", five, [50.0, 100.0, 110.0], 220.0),
        ("five times, and calm since", five, [50.0, 160.0], 160.0),
    ]
    found = [
        Case(f"repaired: {name}", "A13", {"repairs": made, "drifted": drifted}, {"due": due})
        for name, made, drifted, due in listed
    ]
    lost = [(0, 0.0), (2, 0.0), (3, 30.0), (4, 60.0), (9, 1920.0), (40, 21600.0)]
    return found + [
        Case(f"made again {count} times", "A14", {"lost": count, "seconds": 0}, {"wait": wait})
        for count, wait in lost
    ]


def answer(given: Json) -> Json:
    """What our program makes of one case."""
    key = ObjectKey(*given["key"])
    match given:
        case {"wish": obj}:
            return {
                "applied": marked(
                    obj, key, given["tree"], adopted=given["adopted"], asked=given["asked"]
                )
            }
        case {"live": live}:
            return {
                "ours": is_ours(live, key, given["tree"]),
                "adopted": is_adopted(live),
                "stay": is_left_alone(live),
                "on_removal": removal_said(live),
            }
        case {"held": live}:
            held = hold_of(live, MANAGER)
            return {"fields": None if held is None else held.fields.hex()}
        case {"removed": kind}:
            return {"word": on_removal(ObjectKey(*kind), *given["words"])}
        case {"claims": claims}:
            return _chosen(key, claims)
        case {"repairs": made}:
            return {"due": _due(made, given["drifted"])}
    at = None if not given["lost"] else Lost(given["lost"], 1_000_000, "")
    return {"wait": pause_left(at, 1_000_000 + given["seconds"] * 1000)}


def _due(made: list[float], drifted: list[float]) -> float:
    """When it is repaired, seen to have drifted at the last moment; at those before it was."""
    repairs, key = Repairs(), ObjectKey("", "configmaps", "shop", "a")
    for at in made:
        repairs.due(key, at)
        repairs.made(key, at)
    for at in drifted[:-1]:
        if repairs.due(key, at) <= at:
            repairs.made(key, at)
    return repairs.due(key, drifted[-1])


def _chosen(key: ObjectKey, claims: Json) -> Json:
    made = [
        Claim(
            MailKey(it["placement"]),
            ManifestEntry(
                key.group,
                key.resource,
                key.namespace,
                key.name,
                it["address"],
                3,
                it["space"],
                it["revision"],
                it["flags"],
            ),
            gated=it["gated"],
        )
        for it in claims
    ]
    decision = choose(key, made)
    return {
        "address": decision.wanted.address,
        "flags": decision.wanted.flags,
        "placements": list(decision.wanted.placements),
        "losers": sorted(decision.losers),
    }
