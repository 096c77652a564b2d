"""What a cell of a table says of an object, in kubectl's words; what is missing has a word too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from leafcast.show.durations import UNKNOWN, moment_seconds, span_text
from schemas.objects.selectors import LabelSelector
from schemas.values.faults import Faulty
from schemas.values.groups import NOTE
from schemas.values.wording import visible

NONE = "<none>"
ENDPOINTS_MAX = 3
UNREPORTED = "-"
"""What only a status could tell, of an object that has none."""

Fields = Mapping[str, Any]


def at(fields: Any, *path: str) -> Any:
    """A field at a path of mappings; None if it is not there."""
    for name in path:
        fields = fields.get(name) if isinstance(fields, Mapping) else None
    return fields


def listed(fields: Any, *path: str) -> list[Any]:
    """A list at a path; empty if there is none."""
    value = at(fields, *path)
    return list(value) if isinstance(value, (list, tuple)) else []


def count(fields: Any, *path: str) -> int:
    """A whole number at a path; 0 if there is none."""
    value = at(fields, *path)
    return value if isinstance(value, int) else 0


def text(value: Any, missing: str = NONE) -> str:
    """A scalar as text, booleans as JSON has them."""
    if value is None or value == "":
        return missing
    return str(value).lower() if isinstance(value, bool) else visible(str(value))


def labels_text(labels: Any) -> str:
    """`app=web,tier=front`, sorted."""
    if not isinstance(labels, Mapping) or not labels:
        return NONE
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def selector_text(form: Any) -> str:
    """A label selector in the form `-l` takes; `<none>` if it is absent, `*` if it selects all."""
    if not isinstance(form, Mapping):
        return NONE
    try:
        selector = LabelSelector.from_kubernetes(form)
    except Faulty:
        return "<invalid>"
    said = []
    for item in selector.requirements:
        match item.operator, item.values:
            case "In", (one,):
                said.append(f"{item.key}={one}")
            case "In" | "NotIn" as operator, values:
                said.append(f"{item.key} {operator.lower()} ({','.join(values)})")
            case "Exists", _:
                said.append(item.key)
            case _:
                said.append(f"!{item.key}")
    return ",".join(said) or "*"


def is_reported(obj: Fields) -> bool:
    """Whether anyone has said how the object is: at the centre nobody does, it lies still there."""
    return bool(at(obj, "status"))


def ready_of(obj: Fields) -> str:
    """`2/3`: ready replicas of those wanted; `-/3` if nobody says how many are."""
    wanted = at(obj, "spec", "replicas")
    ready = count(obj, "status", "readyReplicas") if is_reported(obj) else UNREPORTED
    return f"{ready}/{1 if wanted is None else wanted}"


def active(obj: Fields) -> str:
    """How many Jobs a CronJob runs."""
    return str(len(listed(obj, "status", "active"))) if is_reported(obj) else UNREPORTED


def containers(obj: Fields, field: str) -> str:
    """The names or images of the containers a workload runs."""
    pods = at(obj, "spec") if obj.get("kind") == "Pod" else at(obj, "spec", "template", "spec")
    return ",".join(text(at(one, field)) for one in listed(pods, "containers")) or NONE


def pod_status(obj: Fields) -> str:
    """Why a container waits or ended, init containers first; else what keeps the Pod, or its phase.

    As kubectl says it; of one that no machine takes it says just that.
    """
    if not is_reported(obj):
        return UNREPORTED
    if at(obj, "metadata", "deletionTimestamp"):
        return "Unknown" if at(obj, "status", "reason") == "NodeLost" else "Terminating"
    init = _init_trouble(obj)
    if init:
        return init
    statuses = listed(obj, "status", "containerStatuses")
    reason = next(filter(None, map(_container_reason, statuses)), "")
    if reason == "Completed" and any(at(one, "state", "running") for one in statuses):
        reason = "Running" if _condition_of(obj, "Ready") == "True" else "NotReady"
    unscheduled = _condition_of(obj, "PodScheduled") == "False"
    kept = _condition_of(obj, "PodScheduled", "reason") if unscheduled else ""
    return reason or text(
        at(obj, "status", "reason") or kept or at(obj, "status", "phase"), UNKNOWN
    )


def _init_trouble(obj: Fields) -> str:
    """`Init:0/2`, `Init:CrashLoopBackOff`: at which init container it is; "" if all are done."""
    statuses = listed(obj, "status", "initContainerStatuses")
    for done, one in enumerate(statuses):
        if at(one, "state", "terminated") and not at(one, "state", "terminated", "exitCode"):
            continue
        if at(one, "started") is True and at(one, "state", "running"):
            # It runs beside the others.
            continue
        reason = _container_reason(one)
        whole = len(listed(obj, "spec", "initContainers")) or len(statuses)
        return f"Init:{reason}" if reason not in ("", "PodInitializing") else f"Init:{done}/{whole}"
    return ""


def _container_reason(one: Any) -> str:
    """Why a container waits or ended; "" if it does neither."""
    if reason := at(one, "state", "waiting", "reason"):
        return str(reason)
    ended = at(one, "state", "terminated")
    if not ended:
        return ""
    if reason := at(ended, "reason"):
        return str(reason)
    signal = at(ended, "signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{at(ended, 'exitCode') or 0}"


def pod_ready(obj: Fields) -> str:
    """Ready containers of all; a status without containers goes by the condition Ready."""
    statuses = listed(obj, "status", "containerStatuses")
    ready = sum(at(one, "ready") is True for one in statuses)
    whole = len(listed(obj, "spec", "containers"))
    if not is_reported(obj):
        return f"{UNREPORTED}/{whole}"
    if not statuses and _condition_of(obj, "Ready") == "True":
        ready = whole
    return f"{ready}/{whole}"


def restarts(obj: Fields) -> str:
    if not is_reported(obj):
        return UNREPORTED
    return str(
        sum(count(one, "restartCount") for one in listed(obj, "status", "containerStatuses"))
    )


def _condition_of(obj: Fields, type_: str, field: str = "status") -> str:
    """A condition's status, "" if it is not there."""
    for one in listed(obj, "status", "conditions"):
        if at(one, "type") == type_:
            return str(at(one, field))
    return ""


def is_ready(obj: Fields) -> str:
    """Whether an object of ours is as its spec asks: True, False or Unknown."""
    return _condition_of(obj, "Ready") or NONE


def standing(obj: Fields) -> str:
    """Why an object of ours is ready, or is not, in one word."""
    return _condition_of(obj, "Ready", "reason") or NONE


def problem(obj: Fields) -> str:
    """All that is wrong with an object of ours."""
    return _condition_of(obj, "Stalled", "message") or NONE


def held(obj: Fields) -> str:
    """What keeps the newest content of a placement from destinations, in words."""
    found = [str(at(one, "reason")) for one in listed(obj, "status", "held")]
    return ",".join(found) or NONE


def job_status(obj: Fields) -> str:
    if not is_reported(obj):
        return UNREPORTED
    for type_, word in (("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended")):
        if _condition_of(obj, type_) == "True":
            return word
    return "Running"


def job_completions(obj: Fields) -> str:
    wanted = at(obj, "spec", "completions")
    done = count(obj, "status", "succeeded") if is_reported(obj) else UNREPORTED
    return f"{done}/{1 if wanted is None else wanted}"


def job_duration(obj: Fields, now_seconds: float) -> str:
    began = moment_seconds(at(obj, "status", "startTime"))
    ended = moment_seconds(at(obj, "status", "completionTime"))
    return "" if began is None else span_text((ended or now_seconds) - began)


def addresses(obj: Fields) -> str:
    """What a load balancer or an ingress is reached at."""
    found = listed(obj, "status", "loadBalancer", "ingress")
    return ",".join(text(at(one, "ip") or at(one, "hostname")) for one in found)


def external_ip(obj: Fields) -> str:
    given = [str(address) for address in listed(obj, "spec", "externalIPs")]
    match at(obj, "spec", "type"):
        case "LoadBalancer":
            return addresses(obj) or ",".join(given) or "<pending>"
        case "ExternalName":
            return text(at(obj, "spec", "externalName"))
        case _:
            return ",".join(given) or NONE


def ports(obj: Fields) -> str:
    """`80/TCP,443:30443/TCP`."""
    return ",".join(map(_port, listed(obj, "spec", "ports"))) or NONE


def hosts(obj: Fields) -> str:
    found = [at(rule, "host") for rule in listed(obj, "spec", "rules")]
    return ",".join(str(host) for host in found if host) or "*"


def entries(obj: Fields, *fields: str) -> str:
    """How many keys these mappings or lists have together."""
    sizes = (at(obj, field) for field in fields)
    return str(sum(len(one) for one in sizes if isinstance(one, (Mapping, list, tuple))))


def bounded(obj: Fields, what: str, counted: str) -> str:
    """How many an object lists; `>1000` of what it says there are too many of to be listed."""
    note = str(at(obj, "metadata", "annotations", NOTE) or "")
    more = re.search(rf"more than (\d+) {what}:", note)
    return f">{more[1]}" if more else counted


def modes(names: Iterable[object]) -> str:
    """Access modes in their short forms: `RWO,ROX`."""
    short = {
        "ReadWriteOnce": "RWO",
        "ReadOnlyMany": "ROX",
        "ReadWriteMany": "RWX",
        "ReadWriteOncePod": "RWOP",
    }
    return ",".join(short.get(str(name), str(name)) for name in names)


def _port(port: Any) -> str:
    node = at(port, "nodePort")
    number = f"{at(port, 'port')}:{node}" if node else str(at(port, "port"))
    return f"{number}/{text(at(port, 'protocol'), 'TCP')}"


def collected_object(obj: Fields) -> str:
    """What a CombinedStatus is about: `deployments/web`."""
    # What is too long for a label is an annotation in full.
    found = [at(obj, "metadata", field) for field in ("labels", "annotations")]
    said = {k: v for pairs in found if isinstance(pairs, Mapping) for k, v in pairs.items()}
    named = (said.get(f"status.kubestellar.io/{name}") for name in ("resource", "name"))
    return "/".join(str(word) for word in named if word) or NONE


def collectors(obj: Fields) -> str:
    """The collectors that a CombinedStatus has results of."""
    return " ".join(str(each.get("name", "")) for each in _results(obj)) or NONE


def collected_rows(obj: Fields) -> str:
    """How many rows each of them has."""
    return " ".join(str(len(each.get("rows") or ())) for each in _results(obj)) or NONE


def _results(obj: Fields) -> list[Fields]:
    results = obj.get("results")
    listed = results if isinstance(results, list) else []
    return [each for each in listed if isinstance(each, Mapping)]


def event_seen(obj: Fields) -> Any:
    """When an event was seen last."""
    moments = (
        at(obj, "series", "lastObservedTime"),
        at(obj, "lastTimestamp"),
        at(obj, "deprecatedLastTimestamp"),
        at(obj, "firstTimestamp"),
        at(obj, "deprecatedFirstTimestamp"),
        at(obj, "eventTime"),
    )
    return next((moment for moment in moments if moment), None)


def event_object(obj: Fields) -> str:
    """What an event is about: `pod/web-1`."""
    about = at(obj, "involvedObject") or at(obj, "regarding")
    return f"{text(at(about, 'kind')).lower()}/{text(at(about, 'name'))}"


def event_message(obj: Fields) -> str:
    """What it says, on one line."""
    return " ".join(str(at(obj, "message") or at(obj, "note") or "").split())


def event_source(obj: Fields) -> str:
    """Who says it, and where."""
    source = at(obj, "source") or at(obj, "deprecatedSource") or {}
    who = at(source, "component") or at(obj, "reportingComponent") or at(obj, "reportingController")
    return ", ".join(str(word) for word in (who, at(source, "host")) if word)


def event_count(obj: Fields) -> str:
    """How often it was seen."""
    counts = (at(obj, "series", "count"), at(obj, "count"), at(obj, "deprecatedCount"))
    return str(next((count for count in counts if count), 1))


def node_status(obj: Fields) -> str:
    """`Ready`, `NotReady` or `Unknown`; whether it takes new Pods."""
    ready = _condition_of(obj, "Ready")
    word = {"True": "Ready", "False": "NotReady", "": "Unknown"}.get(ready, "NotReady")
    return f"{word},SchedulingDisabled" if at(obj, "spec", "unschedulable") else word


def node_roles(obj: Fields) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = at(obj, "metadata", "labels")
    names = sorted(labels) if isinstance(labels, Mapping) else []
    return ",".join(str(it)[len(prefix) :] for it in names if str(it).startswith(prefix)) or NONE


def node_address(obj: Fields, type_: str) -> str:
    for one in listed(obj, "status", "addresses"):
        if at(one, "type") == type_:
            return text(at(one, "address"))
    return NONE


def claim(obj: Fields) -> str:
    """The claim that a volume is bound to."""
    named = at(obj, "spec", "claimRef")
    return f"{at(named, 'namespace')}/{at(named, 'name')}" if isinstance(named, Mapping) else ""


def endpoints(obj: Fields) -> str:
    """Addresses with their ports, three at most, as kubectl shows them."""
    found = [
        f"{at(address, 'ip')}:{at(port, 'port')}"
        for subset in listed(obj, "subsets")
        for port in listed(subset, "ports")
        for address in listed(subset, "addresses")
    ]
    more = f" + {len(found) - ENDPOINTS_MAX} more..." if len(found) > ENDPOINTS_MAX else ""
    return ",".join(found[:ENDPOINTS_MAX]) + more if found else NONE
