"""Of several reasons the cause is told before its consequences, wherever one is told first."""

import itertools
import random

import pytest

from controllers.core.rollout.culprits import culprits
from leafcast.show.faults import FaultSample, faults
from relay.core.destination.tally import ObjectTally
from relay.core.reports.reduce import merge_all
from schemas.objects.objects import ObjectKey
from schemas.reports.causes import causes_first
from schemas.reports.reports import ExceptionSample, Summary

DENIED = 'Forbidden: admission webhook "quota.example.com" denied the request: no more namespaces'
MISSING = 'NotFound: namespaces "shop" not found'
NAMESPACE = ("namespaces/shop", DENIED)
CRD = "customresourcedefinitions.apiextensions.k8s.io"
CAUSED = [
    (NAMESPACE, ("rolebindings.rbac.authorization.k8s.io/shop/a", MISSING)),
    (NAMESPACE, ("configmaps/shop/a", MISSING)),
    (
        ("namespaces/shop", "Terminating: terminating since 2026, finalizers: kubernetes"),
        (
            "secrets/shop/a",
            (
                'Forbidden: secrets "a" is forbidden: unable to create new content in namespace '
                "shop because it is being terminated"
            ),
        ),
    ),
    (
        (f"{CRD}/oxen.example.com", "Invalid: spec.names.kind is taken"),
        ("oxen.example.com/shop/ox", 'NotFound: no matches for kind "Ox" in version "v1"'),
    ),
    (
        ("clusterroles.rbac.authorization.k8s.io/reader", "Forbidden: attempting to grant"),
        (
            "rolebindings.rbac.authorization.k8s.io/shop/a",
            'NotFound: clusterroles.rbac.authorization.k8s.io "reader" not found',
        ),
    ),
    (
        ("serviceaccounts/shop/web", "Forbidden: no right to create serviceaccounts"),
        (
            "deployments.apps/shop/web",
            (
                'FailedCreate: pods "web-" is forbidden: error looking up service account '
                'shop/web: serviceaccount "web" not found'
            ),
        ),
    ),
    (
        ("persistentvolumeclaims/shop/data", "not bound to a volume"),
        ("statefulsets.apps/shop/db", "Unschedulable: unbound immediate PersistentVolumeClaims"),
    ),
    (
        ("jobs.batch/shop/migrate", "BackoffLimitExceeded: it failed"),
        ("deployments.apps/shop/web", "Waiting: for jobs.batch/shop/migrate of wave -1: failed"),
    ),
]
HOOK_DOWN = (
    'InternalError: failed calling webhook "v.example.com": failed to call webhook: Post '
    '"https://hook.guard.svc:443/v": connect: connection refused'
)


def sample(said, severity=0, count=1, path="/r/s"):
    return ExceptionSample(severity, *said, count, path)


def first_of(samples):
    return causes_first(samples, lambda it: (it.severity, it.count, it.object, it.reason))


@pytest.mark.parametrize(("cause", "effect"), CAUSED)
def test_a_cause_stands_before_what_follows_from_it_in_any_order_and_whatever_the_counts(
    cause, effect
):
    for counts in ((1, 1), (1, 9), (9, 1)):
        both = [sample(cause, count=counts[0]), sample(effect, count=counts[1])]
        for listed in itertools.permutations(both):
            assert [it.object for it in first_of(listed)] == [cause[0], effect[0]]


@pytest.mark.parametrize(("cause", "effect"), CAUSED)
def test_what_an_edge_keeps_of_many_has_the_cause_first(cause, effect):
    tally = ObjectTally()
    effects = [(f"{effect[0]}{at}", effect[1]) for at in range(60)]
    said = {ObjectKey("", "x", "", obj): sample((obj, why)) for obj, why in [*effects, cause]}
    tally.mark_dirty(said)
    tally.refresh(lambda key: ("failing", "unknown", said[key]))
    assert next(iter(tally.worst(20))).object == cause[0]
    parts = [Summary({"failing": 1}, exceptions=(it,)) for it in said.values()]
    random.Random(7).shuffle(parts)
    assert merge_all(parts).exceptions[0].object == cause[0]


def test_what_runs_a_webhook_stands_before_what_that_cannot_look_at():
    hook = sample(("deployments.apps/guard/hook", "ImagePullBackOff: no such image"), severity=2)
    refused = [sample((f"configmaps/shop/{at}", HOOK_DOWN), count=5) for at in range(3)]
    assert first_of([*refused, hook])[0] == hook
    other = sample(("deployments.apps/shop/web", "ImagePullBackOff: no such image"), severity=2)
    assert first_of([*refused, other])[-1] == other


def test_what_follows_from_nothing_goes_by_severity_then_by_count():
    many = sample(("deployments.apps/shop/web", "Invalid: no"), count=9)
    few = sample(("configmaps/shop/a", "Invalid: no"), count=1)
    ill = sample(("deployments.apps/shop/web", "Crash"), severity=2, count=99)
    assert first_of([ill, few, many]) == [many, few, ill]


def test_a_circle_of_reasons_is_told_whole():
    ring = [
        sample((f"configmaps/shop/{at}", f"Waiting: for configmaps/shop/{(at + 1) % 3}"))
        for at in range(3)
    ]
    assert sorted(first_of(ring), key=str) == sorted(ring, key=str)
    many = [
        sample((f"configmaps/shop/{at}", f"Waiting: for configmaps/shop/{at + 1}"))
        for at in range(500)
    ]
    assert len(first_of(many)) == 500


def test_commands_and_rollouts_name_the_cause():
    effect = ("rolebindings.rbac.authorization.k8s.io/shop/a", MISSING)
    shown = [
        FaultSample("shop", 0, *effect, 4, "/r/s"),
        FaultSample("shop", 0, *NAMESPACE, 2, "/r/s"),
    ]
    assert faults(shown)[0].line.startswith("namespaces/shop: Forbidden")
    both = [sample(effect, count=4), sample(NAMESPACE, count=2)]
    assert culprits(both, lambda paths: paths).startswith("namespaces/shop at /r/s")
