"""What is the matter where something fails: the closed table of causes, each with its remedy.

A reason is what an edge reported: `Forbidden: ...`, `ImagePullBackOff: ...`. Samples of one cause
are one fault, however many objects it befalls.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.reports.causes import causes_first
from schemas.reports.missing_rights import MissingRight, missing_right
from schemas.reports.states import NOT_WORKING
from schemas.values.wording import many, namespace_first, some_of

Form = Mapping[str, Any]

SAMPLES_MAX = 20
"""So many objects a report names: of more nobody knows how many they are."""
KINDS_NAMED_MAX = 6
OBJECTS_NAMED_MAX = 3
EDGE_ACCOUNT = "system:serviceaccount:leafcast-system:leafcast-edge"
VERBS = "get,list,watch,create,patch,update,delete"
_ACCOUNT = r"system:serviceaccount:([^:]+):(.+)"
_NAME = re.compile(r"[A-Za-z0-9](?:[-\w.:]*[A-Za-z0-9])?", re.ASCII)
"""A name that may stand in a command; names of roles may be longer, and are not repeated there."""
_PATH = re.compile(r"(?:/[a-z0-9][-a-z0-9]*)+|/")


@dataclass(frozen=True, slots=True)
class FaultKind:
    """One row of the table; `{see}`, `{at}`, `{described}` and `{what}` stand for what differs."""

    name: str
    # How the reason begins or what is in it; the first group, if there is one, names the culprit.
    pattern: str
    cause: str
    remedy: str
    # Whether it is the place's fault, whatever was to be done there: one for all placements.
    of_place: bool = False


RIGHTS = FaultKind(
    "MissingRight",
    r"^Forbidden: no right to ",
    "the account that the edge uses in that cluster lacks a right; the objects are not at fault",
    "{grant}",
    of_place=True,
)
_NOT_RUNNING = (
    FaultKind(
        "ImagePull",
        r"(?:ImagePullBackOff|ErrImagePull|InvalidImageName|ErrImageNeverPull|ImageInspectError|"
        r"RegistryUnavailable)",
        "it was delivered, and an image that it names cannot be had there",
        "correct the image's name or tag; else see whether its registry is reached from there, and "
        "an imagePullSecret: leafcast describe {described} --at {at}",
    ),
    FaultKind(
        "Crash",
        r"CrashLoopBackOff",
        "it was delivered, and its program ends again and again",
        "see its log there: kubectl logs {logged} --previous; leafcast describe {described} "
        "--at {at}",
    ),
    FaultKind(
        "ContainerConfig",
        r"(?:CreateContainer\w*Error|RunContainerError|PreStartHookError)",
        "it was delivered, and a container cannot be made: a Secret or ConfigMap may be missing",
        "have the placement select what it needs: leafcast describe {described} --at {at}",
    ),
    FaultKind(
        "Unschedulable",
        r"Unschedulable",
        "it was delivered, and no machine there has room for its Pods, or may take them",
        "ask for less, or add machines; taints and labels: leafcast get nodes --at {at}",
    ),
    FaultKind(
        "Volume",
        r"not bound to a volume|the volume is lost|unbound immediate PersistentVolumeClaims",
        "it was delivered, and its claim has no volume there",
        "see the storage class and the volumes there: leafcast get sc,pv --at {at}",
    ),
    FaultKind(
        "Metrics",
        r"FailedGet\w*Metric",
        "it was delivered, and the autoscaler gets no figures there",
        "run a metrics server there, or leave the autoscaler out of the placement",
    ),
)
"""Faults of what was delivered and does not work."""
_TABLE = (
    # Faults above an edge.
    FaultKind(
        "OldView",
        r"^(?:StaleView|Withheld)",
        "a node above withholds what is in force, or shows an old view; it keeps what it has",
        "start the relays above {at} again; if it stays, do not trust them",
    ),
    FaultKind(
        "ContentRefused",
        r"^(?:ContentRefused|ContentMissing)",
        "a node above lacks a part of its new content; what was there before stays",
        "it is asked for again and again; if it stays, apply the placement again",
    ),
    FaultKind(
        "Overridden",
        r"^Overridden",
        "two placements say the same object, from different spaces, and the other counts",
        "leafcast accept names spaces that are lost; or rename the object; {see}",
    ),
    FaultKind(
        "Frozen",
        r"^Frozen",
        "it cannot be customized there, so all of the placement stays there as it was",
        "say what is missing, or mend the object; {see}",
    ),
    FaultKind(
        "Waiting",
        r"^Waiting: for ",
        "what has to be there first is not, or is not healthy",
        "mend what it waits for, or wait; {see}",
    ),
    FaultKind(
        "Clash",
        r"^Clash",
        "two Locations of one destination disagree on a property that an object uses",
        "say it in one of them, or as an annotation of the SyncTarget",
    ),
    FaultKind(
        "NoZone",
        r"^NoZone",
        "its Rollout opens at times of the place, and nobody says in which zone that is",
        "label its SyncTarget or Location with the zone, as the reason says",
    ),
    FaultKind(
        "Sealed",
        r"^Sealed",
        "the edge cannot open its content yet; what was there before stays",
        "it heals once the edge's key is known at the centre: leafcast keys list",
    ),
    # What stands in the way of the cluster's answer.
    FaultKind(
        "WebhookUnreachable",
        r'failed calling webhook "([^"]*)',
        "an admission webhook of that cluster does not answer, so its API server refuses all that "
        "it would look at; the objects are not at fault",
        "have the webhook run again there, or remove its configuration; it is tried again",
        of_place=True,
    ),
    FaultKind(
        "Unauthorized",
        r"^Unauthorized",
        "the cluster does not know the account of the edge; its token may have expired",
        "renew the credentials in the kubeconfig of the edge at {at}",
        of_place=True,
    ),
    FaultKind(
        "ApiMissing",
        r"see kubectl get apiservices",
        "an extension of that cluster's API server does not answer; the objects are not at fault",
        "there: kubectl get apiservices; it is tried again by itself",
        of_place=True,
    ),
    FaultKind(
        "Unreachable",
        r"^(?:Timeout|ServiceUnavailable|TooManyRequests|GatewayTimeout|ServerTimeout)|cannot be "
        r"reached|etcdserver|context deadline exceeded|connection refused",
        "the API server there does not answer, or not in time; the objects are not at fault",
        "see whether it answers where {at} runs: kubectl get --raw /readyz; it is tried again by "
        "itself",
        of_place=True,
    ),
    # What the cluster refuses.
    FaultKind(
        "WebhookDenied",
        r'admission webhook "([^"]*)" denied',
        "an admission webhook of that cluster refuses the object; it is tried again, ever more "
        "seldom",
        "change the object as the webhook says, or the webhook's rules there; {see}",
    ),
    FaultKind(
        "PolicyDenied",
        r"(ValidatingAdmissionPolicy '[^']*'|violates PodSecurity \"[^\"]*\"?)",
        "a policy of that cluster refuses the object; it is tried again, ever more seldom",
        "change the object as the policy says, or the policy there; {see}",
    ),
    FaultKind(
        "Quota",
        r"(?:exceeded quota:? ([\w.-]+)|failed quota:? ([\w.-]+)|maximum \w+ usage per|minimum \w+ "
        r"usage per)",
        "a quota or a limit of that cluster leaves no room for it; it is tried again, ever more "
        "seldom",
        "raise the quota there (kubectl describe quota), or ask for less in the object; {see}",
    ),
    FaultKind(
        "Terminating",
        r"^Terminating|because it is being terminated",
        "what was there before is still being deleted there; it is made again once that is gone",
        "if it hangs, have who set the finalizers run there, or take them off: leafcast describe "
        "{described} --at {at}",
    ),
    FaultKind(
        "Escalation",
        r"attempting to grant RBAC permissions not currently held",
        "an account may give no rights that it has not; the edge's has not those in the object",
        "give the account of the edge these rights, or the verbs bind and escalate, in the cluster "
        "of {at}",
    ),
    FaultKind(
        "Forbidden",
        r"^Forbidden",
        "the cluster refuses it; it is tried again, ever more seldom, and holds up no other",
        "do as it says there, or mend the object and apply it; {see}",
    ),
    FaultKind(
        "NotServed",
        r"(no matches for kind \"[^\"]*\"|have a resource type \"[^\"]*\"|ensure CRDs are)",
        "the cluster does not serve this kind",
        "install its definition there, or have the placement select it, too: it goes first",
    ),
    FaultKind(
        "NamespaceMissing",
        r"^NotFound: namespaces (\"[^\"]*\")",
        "its namespace is not there, and could not be made",
        "make the namespace there, or have the placement select it, too; {see}",
    ),
    FaultKind(
        "Conflict",
        r"^(?:AlreadyExists|Conflict)",
        "an object of this name is there and is not ours, or somebody else holds fields of it; it "
        "is left as it is",
        "do as it says: leave that to them, or take it over by the annotation that it names; {see}",
    ),
    FaultKind(
        "TakenAgain",
        r"^Contended: deleted there",
        "something there deletes the object each time, and it is made again, ever more seldom",
        "have that stop, mend what fails, or leave the object out of the placement; {see}",
    ),
    FaultKind(
        "Contended",
        r"^Contended",
        "somebody there changes the object again and again, and it is put right again",
        "have the other stop, or leave these fields out of the object; {see}",
    ),
    FaultKind(
        "Immutable",
        r"field is immutable|never recreated|it was there before, so it is not replaced|"
        r"leafcast\.io/on-immutable",
        "a field was changed that cannot be changed of what is there",
        "undo the change, or do as it says; {see}",
    ),
    FaultKind(
        "Invalid",
        r"^(?:Invalid|BadRequest|UnsupportedMediaType|NotAcceptable|MethodNotAllowed)|"
        r"^metadata\.annotations\[",
        "the object is not valid for that cluster; it is tried again, ever more seldom, and holds "
        "up no other",
        "mend the object and apply it; {see}",
    ),
    FaultKind(
        "TooLarge",
        r"^RequestEntityTooLarge",
        "the object is larger than that cluster takes",
        "make it smaller, or split it, and apply it; {see}",
    ),
    FaultKind(
        "NotEmpty",
        r"holds objects that are to be removed first|not empty: ",
        "it still holds objects, and goes once they are gone",
        "see what holds them: leafcast describe {described} --at {at}",
    ),
    FaultKind(
        "ServerFault",
        r"^InternalError",
        "the API server there failed at it; the objects are probably not at fault",
        "see that server's log where {at} runs; it is tried again by itself",
    ),
    *_NOT_RUNNING,
)
PLACE = FaultKind(
    "Place",
    r"",
    "what it asks of the place is not all done there",
    "do as it says, if it is not meant so; {see}",
)
NOT_WELL = FaultKind(
    "NotWorking",
    r"",
    "it was delivered, and does not work there",
    "leafcast describe {described} --at {at}",
)
REFUSED = FaultKind(
    "Refused",
    r"",
    "the cluster refuses it; it is tried again, ever more seldom, and holds up no other",
    "mend the object and apply it; {see}",
)


@dataclass(frozen=True, slots=True)
class FaultSample:
    """Something wrong with an object of a placement: why, at how many places, and one of them."""

    placement: str
    severity: int
    object: str
    reason: str
    count: int
    path: str


@dataclass(frozen=True, slots=True)
class FaultGroup:
    """One cause, and all that it befalls."""

    kind: FaultKind
    samples: Sequence[FaultSample]

    @property
    def severity(self) -> int:
        return min(sample.severity for sample in self.samples)

    @property
    def first(self) -> FaultSample:
        return self.samples[0]

    @property
    def placements(self) -> list[str]:
        return sorted({sample.placement for sample in self.samples})

    @property
    def count(self) -> int:
        """How many places have it, at least."""
        paths = {sample.path for sample in self.samples}
        return max(len(paths), *(sample.count for sample in self.samples))

    @property
    def objects(self) -> str:
        """The objects by name; of more than a few how many there are, and one of them."""
        named = self._named()
        if len(named) <= OBJECTS_NAMED_MAX:
            return ", ".join(named)
        return f"{self._number()}, such as {named[0]}"

    @property
    def line(self) -> str:
        """All of it in one line: the object, or how many they are, and the reason."""
        named = self._named()
        what = self._number() if named[1:] else "".join(named)
        return ": ".join(filter(None, (what, self.reason)))

    @property
    def reason(self) -> str:
        """What is said of it; of several rights what they have in common."""
        rights = self._rights()
        if len(rights) < 2:
            return self.first.reason
        verbs = ", ".join(sorted({right.verb for right in rights}))
        kinds = some_of(sorted({right.kind for right in rights}), KINDS_NAMED_MAX)
        wheres = " and ".join(sorted({right.where for right in rights}))
        return f"Forbidden: no right to {verbs} {kinds} {wheres}, as {rights[0].user}"

    def remedy(self, see: str) -> str:
        """What to do; `see` is where to look for more."""
        at = _at(self.first.path)
        return self.kind.remedy.format(
            see=see,
            at=at,
            described=described(self.first.object),
            logged=_logged(self.first.object),
            grant=_grant(self._rights(), at),
        )

    def _named(self) -> list[str]:
        return sorted({namespace_first(sample.object) for sample in self.samples} - {""})

    def _number(self) -> str:
        least = "at least " if len(self.samples) >= SAMPLES_MAX else ""
        return f"{least}{many(len(self._named()), 'object')}"

    def _rights(self) -> list[MissingRight]:
        found = (missing_right(sample.reason) for sample in self.samples)
        return sorted({right for right in found if right is not None})


def faults(samples: Iterable[FaultSample]) -> list[FaultGroup]:
    """One fault for each cause, the worst first, and none after what follows from it."""
    found: dict[tuple[object, ...], tuple[FaultKind, list[FaultSample]]] = {}
    for sample in causes_first(samples, lambda it: (it.severity, it.count, it.object, it.reason)):
        kind, culprit = _judged(sample)
        of = "" if kind.of_place else sample.placement
        key = (kind.name, culprit, of, sample.severity >= NOT_WORKING)
        found.setdefault(key, (kind, []))[1].append(sample)
    return [FaultGroup(kind, listed) for kind, listed in found.values()]


def keeps_from_running(reason: str) -> bool:
    """Whether more keeps an object at work than that it takes its time."""
    return any(re.search(kind.pattern, reason) for kind in _NOT_RUNNING)


def samples_of(form: Form) -> list[FaultSample]:
    """What a placement's form says is wrong, or still at work."""
    return [FaultSample(form.get("name", ""), **_said(item)) for item in form["exceptions"]]


def _said(item: Form) -> dict[str, Any]:
    names = ("object", "reason", "count", "path")
    return {"severity": item.get("severity", 0), **{name: item[name] for name in names}}


def _judged(sample: FaultSample) -> tuple[FaultKind, str]:
    """Which kind of fault it is, and by whom or what."""
    right = missing_right(sample.reason)
    if right is not None:
        return RIGHTS, right.user
    # A kind alone is one that does not come up.
    of_kind = sample.severity >= NOT_WORKING and sample.object and "/" not in sample.object
    if of_kind:
        return PLACE, f"{sample.object} {sample.reason}"
    for kind in _TABLE:
        found = re.search(kind.pattern, sample.reason)
        if found is not None:
            named = next(filter(None, found.groups()), "")
            return kind, named or ("" if kind.of_place else sample.reason)
    # Nobody knows whether they have one cause.
    well = NOT_WELL if sample.object else PLACE
    other = REFUSED if sample.severity < NOT_WORKING else well
    return other, f"{sample.object} {sample.reason}"


def described(obj: str) -> str:
    """`deployments.apps web -n shop` of `deployments.apps/shop/web`.

    Whoever runs a node chose these words, and a person may paste the command: what is no name
    stands as a word to be replaced.
    """
    match obj.split("/"):
        case [kind, namespace, name] if _are_names(kind, namespace, name):
            return f"{kind} {name} -n {namespace}"
        case [kind, name] if _are_names(kind, name):
            return f"{kind} {name}"
        case _:
            return "KIND NAME"


def _logged(obj: str) -> str:
    """`deployments/web -n shop`, as `kubectl logs` takes it."""
    match obj.split("/"):
        case [kind, namespace, name] if _are_names(kind, namespace, name):
            return f"{kind.partition('.')[0]}/{name} -n {namespace}"
        case _:
            return "KIND/NAME"


def _at(path: str) -> str:
    return path if _PATH.fullmatch(path) else "PATH"


def _are_names(*words: str) -> bool:
    return all(_NAME.fullmatch(word) for word in words)


def _grant(rights: Sequence[MissingRight], path: str) -> str:
    """How to give an account the rights that it lacks; in words where a part is no name."""
    if not rights:
        return ""
    user, namespaces = rights[0].user, sorted({right.namespace for right in rights})
    there = f"in the cluster of {path}"
    parts = [*namespaces, *(right.kind for right in rights)]
    if not user.isprintable() or not _are_names(*filter(None, parts)):
        return f"{there}: give the account the right that it lacks"
    if user == EDGE_ACCOUNT and namespaces[0]:
        each = "".join(f" --namespace {name}" for name in namespaces)
        return f"{there}: leafcast install --role edge{each} | kubectl apply -f -"
    kinds = ",".join(sorted({right.kind for right in rights}))
    account = re.match(_ACCOUNT, user)
    said = f"{account[1]}:{account[2]}" if account else user
    whom = f"--{'serviceaccount' if account else 'user'}={shlex.quote(said)}"
    role = f"kubectl create clusterrole leafcast-more --verb={VERBS} --resource={kinds}"
    if not namespaces[0]:
        bound = (
            f"kubectl create clusterrolebinding leafcast-more --clusterrole=leafcast-more {whom}"
        )
        # Whoever confined the edge to namespaces wants to give it no more than this.
        whole = "leafcast install --role edge | kubectl apply -f -" if user == EDGE_ACCOUNT else ""
        more = f"; or, if it may have the whole cluster: {whole}" if whole else ""
        return f"{there}: {role}; {bound}{more}"
    bound = "; ".join(
        f"kubectl create rolebinding leafcast-more -n {name} --clusterrole=leafcast-more {whom}"
        for name in namespaces
    )
    return f"{there}: {role}; {bound}"
