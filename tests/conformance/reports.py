"""Vectors of reports: what a parent takes of what lies in a child's slots, and how it merges."""

from __future__ import annotations

from typing import Any

from relay.core.gates import GateNames
from relay.core.reports.digest import digest_bytes, report_term, run_number
from relay.core.reports.intake import ReportIntake
from relay.core.reports.reduce import as_former_step, as_older_generation, merge_all, merge_results
from schemas.objects.objects import ObjectKey
from schemas.records.records import Source
from schemas.reports import reports
from schemas.reports.link import Progress
from schemas.reports.reports import (
    ExceptionSample,
    ObjectResult,
    RepairSample,
    Report,
    ReportPart,
    Summary,
)
from schemas.values import codec
from schemas.values.identity import MailKey, NodePath
from schemas.values.refusals import RecordRefused
from schemas.values.wire import convert, encode, replace
from tests.conformance.forms import Case, Json, fields_of, from_json

ABOUT = (
    "What a parent makes of the bytes in a slot of a child (`slot`, `message`); the digest over "
    "slots (`slots`); and how summaries and results of several children merge (`merge`, "
    "`results`), or count under a later generation (`older`) or step (`former`)."
)
KEY = Source("edge.kubestellar.io/EdgePlacement", "wds", "", "shop").key
UNSENT = Source("edge.kubestellar.io/EdgePlacement", "wds", "", "other").key
ARM = codec.address("manifest", b"m")
OTHER_ARM = codec.address("manifest", b"n")
GIVEN: dict[str, Json] = {
    "parent": "/emea",
    "child": "s1",
    "sent": {KEY: 200},
    "named": {KEY: {"arms": [ARM], "waves": ["7.0", "7.1"]}},
}
SAMPLE = ExceptionSample(0, "configmaps/shop/a", "Forbidden: no right", 2, "/emea/s1")
SUMMARY = Summary(
    {"synced": 2, "failing": 1},
    {"healthy": 2, "degraded": 1},
    {ARM: 3},
    (SAMPLE,),
    1_000,
    {"7.0/synced/healthy": 2},
)
REPORT = Report(KEY, 0, "run-1", 4, 200, False, 1, SUMMARY)
RESULT = ObjectResult(ObjectKey("apps", "deployments", "shop", "web"), 1, "inv-mb-u", b"\x80")
PART = ReportPart(KEY, 1, "run-1", 4, 200, (RESULT,))
PROGRESS = Progress("run-1", "inc-1", 12, bytes(range(16)), b"", 9)


def slot(name: str, rule: str, said: object, verdict: str, at: str = KEY, **given: Json) -> Case:
    data = said if isinstance(said, bytes) else encode(said)
    return Case(name, rule, {**given, "slot": at, "message": data.hex()}, {"verdict": verdict})


def of_summary(name: str, rule: str, verdict: str, **changes: Any) -> Case:
    return slot(name, rule, replace(REPORT, summary=replace(SUMMARY, **changes)), verdict)


def cases() -> list[Case]:
    """All vectors, in the order of the file."""
    return [
        *_slots(),
        *_counts(),
        *_samples(),
        *_arms(),
        *_progress(),
        *_digests(),
        *_merged_counts(),
        *_merged_results(),
        *_later(),
    ]


def _slots() -> list[Case]:
    part_slot = reports.part_key(KEY, 1)
    short = codec.pack(codec.unpack(encode(REPORT))[:8])
    longer = codec.pack([*codec.unpack(encode(REPORT), lists=True), "later"])
    return [
        slot("a report", "U5", REPORT, "taken"),
        slot("a report as it was said before its last fields were added", "E4", short, "taken"),
        slot("a report with fields of a later version", "E4", longer, "taken"),
        slot("an emptied slot", "U5", b"", "empty"),
        slot("nothing that is msgpack", "U7", b"\xc1", "refused"),
        slot("a report in the slot of another placement", "U7", REPORT, "refused", UNSENT),
        slot("of a generation that was sent", "U7", replace(REPORT, generation=199), "taken"),
        slot(
            "of a generation above what was sent", "U7", replace(REPORT, generation=201), "refused"
        ),
        slot(
            "on a placement that was never sent", "U7", replace(REPORT, key=UNSENT), "taken", UNSENT
        ),
        slot("without a run", "U7", replace(REPORT, run=""), "refused"),
        slot("a run of 65 bytes", "U7", replace(REPORT, run="r" * 65), "refused"),
        slot("257 parts", "U7", replace(REPORT, parts=257), "refused"),
        slot("gone", "U5", Report(KEY, 0, "run-1", 5, 200, True, 0, Summary()), "taken"),
        slot("a part", "U4", PART, "taken", part_slot),
        slot("a part in the slot of part 0", "U7", PART, "refused", KEY),
        slot("a part in the slot of another part", "U7", PART, "refused", reports.part_key(KEY, 2)),
        slot("part 257", "U7", replace(PART, part=257), "refused", reports.part_key(KEY, 257)),
        slot(
            "a destination of 801 bytes",
            "U7",
            replace(PART, results=(replace(RESULT, destination="d" * 801),)),
            "refused",
            part_slot,
        ),
    ]


def _counts() -> list[Case]:
    {f"7.0/{state}/healthy": 1 for state in ("synced", "pending")}
    many = tuple(replace(SAMPLE, reason=f"Why: {n}") for n in range(21))
    return [
        of_summary("a state that there is not", "U7", "refused", states={"fine": 1}, health={}),
        of_summary("a health that there is not", "U7", "refused", health={"fine": 1}),
        of_summary("a count of 10^9", "U7", "taken", states={"synced": 10**9}),
        of_summary("a count above 10^9", "U7", "refused", states={"synced": 10**9 + 1}),
        of_summary(
            "health of fewer destinations than states",
            "U7",
            "taken",
            health={"healthy": 1},
            cells={},
        ),
        of_summary(
            "health of more destinations than states", "U7", "refused", health={"healthy": 4}
        ),
        of_summary("21 exceptions", "U7", "refused", exceptions=many),
        of_summary("20 exceptions", "U7", "taken", exceptions=many[:20]),
    ]


def _samples() -> list[Case]:
    tuple(replace(SAMPLE, reason=f"Why: {n}") for n in range(21))
    return [
        of_summary("severity 9", "U7", "taken", exceptions=(replace(SAMPLE, severity=9),)),
        of_summary("severity 10", "U7", "refused", exceptions=(replace(SAMPLE, severity=10),)),
        of_summary(
            "a reason of 800 bytes", "U7", "taken", exceptions=(replace(SAMPLE, reason="é" * 400),)
        ),
        of_summary(
            "a reason of 802 bytes",
            "U7",
            "refused",
            exceptions=(replace(SAMPLE, reason="é" * 401),),
        ),
        of_summary(
            "an exception below the child",
            "U7",
            "taken",
            exceptions=(replace(SAMPLE, path="/emea/s1/a"),),
        ),
        of_summary(
            "an exception beside the child",
            "U7",
            "refused",
            exceptions=(replace(SAMPLE, path="/emea/s10"),),
        ),
        of_summary(
            "an exception at no path", "U7", "refused", exceptions=(replace(SAMPLE, path="emea"),)
        ),
        of_summary(
            "a kept copy more than is counted", "U7", "refused", kept=1, kept_copies=(SAMPLE,)
        ),
        of_summary(
            "as many kept copies as are counted", "U7", "taken", kept=2, kept_copies=(SAMPLE,)
        ),
    ]


def _arms() -> list[Case]:
    full = {codec.address("manifest", bytes([n])): 1 for n in range(63)}
    words = {"older": 1, "nothing": 1}
    cells = {f"7.0/{state}/healthy": 1 for state in ("synced", "pending")}
    return [
        of_summary(
            "an arm that is none of the placement's", "U8", "taken", arms={ARM: 1, OTHER_ARM: 2}
        ),
        of_summary("words beside arms", "U8", "taken", arms={ARM: 1, **words}),
        of_summary("64 arms", "U8", "taken", arms={**full, "older": 1}),
        of_summary("65 arms", "U8", "refused", arms={**full, **words}),
        of_summary(
            "a cell of more than is in its state", "W8", "refused", cells={"7.0/synced/healthy": 3}
        ),
        of_summary(
            "a cell of more than is of its health",
            "W8",
            "refused",
            cells={"7.0/failing/degraded": 2},
        ),
        of_summary("a cell that is none", "W8", "refused", cells={"7.0/synced": 1}),
        of_summary(
            "a cell of a wave that there is not", "W8", "taken", cells={"6.0/synced/healthy": 1}
        ),
        of_summary("cells of two states", "W8", "refused", cells=cells),
        slot(
            "of a placement whose names are not known",
            "U8",
            replace(REPORT, summary=replace(SUMMARY, arms={ARM: 1, OTHER_ARM: 1, "odd": 1})),
            "taken",
            named={},
        ),
    ]


def _progress() -> list[Case]:
    at = "_progress"
    longer = codec.pack([*codec.unpack(encode(PROGRESS), lists=True), 1])
    short = codec.pack(codec.unpack(encode(PROGRESS))[:4])
    return [
        slot("a progress", "U6", PROGRESS, "taken", at),
        slot("a progress of four fields", "E4", short, "taken", at),
        slot("a progress with a field more", "E4", longer, "taken", at),
        slot("a digest of 15 bytes", "U6", replace(PROGRESS, digest=bytes(15)), "refused", at),
        slot("a mail digest of 16 bytes", "U6", replace(PROGRESS, mail=bytes(16)), "taken", at),
        slot("a mail digest of 8 bytes", "U6", replace(PROGRESS, mail=bytes(8)), "refused", at),
        slot("a progress of no run", "U6", replace(PROGRESS, run=""), "refused", at),
        slot("a progress below 0", "E6", codec.pack(["r", "i", -1, bytes(16)]), "refused", at),
    ]


def _digests() -> list[Case]:
    one, two = [KEY, "run-1", 4], [reports.part_key(KEY, 1), "run-1", 4]
    return [
        Case("the digest of nothing", "U1", {"slots": []}, {"digest": "00" * 16}),
        Case("the digest of one report", "U1", {"slots": [one]}),
        Case("the digest of a report and its part", "U1", {"slots": [one, two]}),
        Case("the digest does not depend on the order", "U1", {"slots": [two, one]}),
    ]


def _merged_counts() -> list[Case]:
    other = Summary(
        {"synced": 1, "pending": 4},
        {"healthy": 1, "progressing": 4},
        {ARM: 1, "older": 4},
        (
            replace(SAMPLE, count=1, path="/emea/s0"),
            ExceptionSample(2, "pods/shop/p", "Failed: x", 1, "/emea/s2"),
        ),
        900,
        {"7.0/synced/healthy": 1, "7.1/pending/progressing": 4},
        kept=1,
        kept_copies=(
            ExceptionSample(
                0, "persistentvolumeclaims/shop/d", "kept: it holds data", 1, "/emea/s2"
            ),
        ),
        repaired=3,
        repairs=(RepairSample(800, "configmaps/shop/a", "/emea/s2", 3, "data.x", "kubectl"),),
    )
    big = Summary({"synced": 10**9}, {"healthy": 10**9}, {ARM: 10**9})
    severities = [
        Summary(
            {"failing": 1},
            {"unknown": 1},
            {},
            (ExceptionSample(n % 4, f"configmaps/shop/c{n}", f"Why: {n}", 1, "/emea/s1"),),
        )
        for n in range(24)
    ]
    ranked = (
        ExceptionSample(
            0, "deployments.apps/shop/web", 'Invalid: secrets "key" not found', 1, "/emea/s1"
        ),
        ExceptionSample(0, "deployments.apps/shop/api", "Invalid: no", 1, "/emea/s1"),
        ExceptionSample(0, "secrets/shop/key", "Forbidden: no right", 1, "/emea/s1"),
        ExceptionSample(0, "namespaces/shop", "Terminating: it goes", 1, "/emea/s1"),
        ExceptionSample(0, "", "ContentRefused: a blob", 1, "/emea/s1"),
    )
    arms = [
        Summary({"synced": 1}, {"healthy": 1}, {codec.address("manifest", bytes([n])): 1})
        for n in range(66)
    ]
    ObjectResult(RESULT.key, 1, "inv-mb-v", b"\x81\xa1a\x01", bytes(16), 3)
    return [
        _merge("nothing merged", []),
        _merge("one alone", [SUMMARY]),
        _merge("two children", [SUMMARY, other]),
        _merge("the same the other way round", [other, SUMMARY]),
        _merge("counts stop at 10^9", [big, big]),
        _merge("of 24 exceptions 20 are kept", severities),
        _merge(
            "what follows from another object comes last",
            [Summary({"failing": 1}, {"unknown": 1}, {}, (it,)) for it in ranked],
        ),
        _merge("of 66 arms the first 63 are kept", arms),
    ]


def _merged_results() -> list[Case]:
    alone = ObjectResult(RESULT.key, 1, "inv-mb-v", b"\x81\xa1a\x01", bytes(16), 3)
    return [
        Case(
            "results of two destinations", "U4", {"results": [fields_of(RESULT), fields_of(alone)]}
        ),
        Case("a result of one destination", "U4", {"results": [fields_of(alone)]}),
        Case(
            "a result that counts nobody", "U4", {"results": [fields_of(replace(alone, count=0))]}
        ),
    ]


def _merge(name: str, summaries: list[Summary]) -> Case:
    return Case(name, "U9", {"merge": [fields_of(it) for it in summaries]})


def _later() -> list[Case]:
    return [
        Case(
            "of an older generation, where it is expected",
            "U14",
            {"older": fields_of(SUMMARY), "state": "pending"},
        ),
        Case(
            "of an older generation, where it is expected no more",
            "U14",
            {"older": fields_of(SUMMARY), "state": "leaving"},
        ),
        Case("of a former step of a rollout", "W9", {"former": fields_of(SUMMARY), "arms": [ARM]}),
        Case(
            "of a former step, of a content that is none any more",
            "W9",
            {"former": fields_of(SUMMARY), "arms": [OTHER_ARM]},
        ),
    ]


def answer(given: Json) -> Json:
    """What our program makes of one case."""
    if "slots" in given:
        terms = (report_term(at, run_number(run), revision) for at, run, revision in given["slots"])
        return {"digest": digest_bytes(sum(terms)).hex()}
    if "merge" in given:
        return {"summary": fields_of(merge_all(_summary(it) for it in given["merge"]))}
    if "results" in given:
        results = (convert(ObjectResult, from_json(it), "result") for it in given["results"])
        return {"results": [fields_of(it) for it in merge_results(results).values()]}
    if "older" in given:
        return {"summary": fields_of(as_older_generation(_summary(given["older"]), given["state"]))}
    if "former" in given:
        return {
            "summary": fields_of(
                as_former_step(_summary(given["former"]), frozenset(given["arms"]))
            )
        }
    return _taken(given)


def _taken(given: Json) -> Json:
    sent, named = given["sent"], given["named"]
    intake = ReportIntake(
        NodePath.parse(given["parent"]),
        lambda _child, key: sent.get(key),
        lambda key: _names(named[key]) if key in named else None,
    )
    try:
        said = intake.read(given["child"], MailKey(given["slot"]), bytes.fromhex(given["message"]))
    except RecordRefused:
        return {"verdict": "refused"}
    if said is None:
        return {"verdict": "empty"}
    return {
        "verdict": "taken",
        "counts": given["slot"] == "_progress" or said.key in sent,
        "says": fields_of(said),
    }


def _names(said: Json) -> GateNames:
    return GateNames(arms=frozenset(said["arms"]), waves=frozenset(said["waves"]))


def _summary(said: Json) -> Summary:
    return convert(Summary, from_json(said), "summary")
