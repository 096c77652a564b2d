"""What `kubectl explain` says of each field of our kinds: the texts beside the models' fields.

A test holds that every field has one.
"""

from __future__ import annotations

from collections.abc import Mapping

from schemas.crds.rollout_texts import ROLLOUT_TEXTS

Texts = Mapping[str, str]

_TREATED = (
    "createOnly",
    "wantSingletonReportedState",
    "wantMultiWECReportedState",
)

_STATUS: Texts = {
    "selectedObjects": "How many objects the placement selects.",
    "observedGeneration": "The metadata.generation that this status speaks of.",
    "conditions": "Valid: the placement can be read. Synced: every destination holds exactly "
    "what it prescribes. Healthy: all of that works, everywhere. Ready: both are so wherever a "
    "destination can be reached, and enough can be. While it is not ready it is Reconciling, or "
    "Stalled if no waiting helps.",
    "destinations": "How many destinations are meant.",
    "pending": "How many destinations have not applied all of it yet.",
    "waiting": "How many destinations keep what they have until a wave or a window opens, or what "
    "they depend on is healthy.",
    "synced": "How many destinations hold exactly what is prescribed.",
    "healthy": "At how many destinations all of it works.",
    "failing": "How many destinations cannot apply all of it; errors says why.",
    "frozen": "How many destinations keep all of it as it was, as some of it cannot be customized "
    "there; errors says why.",
    "unreachable": "How many destinations are not heard of; they keep what they have.",
    "neverJoined": "How many more are meant that were added, and never joined.",
    "complete": "Whether the counts are exact; if not, each reads 'at least'.",
    "errors": "The worst of what is wrong, each with its object, its reason, how many "
    "destinations have it, and one of them.",
    "held": "What keeps the newest content of this space from destinations; while there is any, "
    "Synced is False.",
    "kept": "Copies that are kept though nothing wants them any more: how many, and some of them.",
    "repairs": "How often copies were put right that others changed or deleted, and the last "
    "times.",
}

_READINESS = "What may be away, or empty, while the condition Ready is True."
_CLEANING = (
    "What is taken off objects before they go out. AsWritten: nothing that a person said. "
    "KubeStellar: what KubeStellar takes off, such as node ports, traffic policies and a Job's "
    "suspend, whoever said it."
)
_OWN_STATUS: Texts = {
    "observedGeneration": "The metadata.generation that this status speaks of.",
    "errors": "What is wrong, by field, and what to do.",
    "conditions": "Ready: it can be read, and counts. Stalled: it is wrong, and no waiting helps.",
}

_CLAUSE: Texts = {
    "apiGroup": 'The API group of the objects; "" is the core group. Any group if absent.',
    "resources": "Lowercase plurals, such as deployments; * for all. All if empty.",
    "namespaces": "Namespaces of the objects; * for all, and for cluster-scoped objects. "
    "All if empty; names without * admit no cluster-scoped object.",
    "namespaceSelectors": "Selects Namespaces by their labels; any one must match the "
    "object's. {} admits cluster-scoped objects, too. All if empty.",
    "objectNames": "Names of the objects; * for all. All if empty.",
    "createOnly": "Create the objects where they are missing, and leave those alone that are "
    "there.",
    "statusCollectors": "Names of StatusCollectors that are applied to these objects.",
    "wantSingletonReportedState": "Copy the status of these objects back here, while exactly "
    "one destination has them.",
    "wantMultiWECReportedState": "Copy an aggregate of the destinations' statuses back here.",
}
_BY_LABELS = "Selects objects by their labels; any one must match. All if empty."

_BOUND: Texts = {
    "group": 'The API group of the object; "" is the core group.',
    "version": "The API version of the object.",
    "resource": "The lowercase plural of the object.",
    "name": "The name of the object.",
    "resourceVersion": "The version of the object whose content is in force.",
    **{name: _CLAUSE[name] for name in _TREATED},
}

_UPSYNC_SET: Texts = {
    "apiGroup": 'The API group of the objects; "" is the core group.',
    "resources": "Lowercase plurals, such as configmaps; * for all.",
    "namespaces": "Namespaces of the objects; * for all. None if empty.",
    "names": "Names of the objects; * for all. None if empty.",
}

_PLACEMENT: Mapping[str, Texts] = {
    "EdgePlacement": {
        "spec": "Which objects of this space go to which destinations.",
        "status": "What became of the placement at its destinations. Leafcast writes it.",
    },
    "EdgePlacementSpec": {
        "locationSelectors": "Selects Locations by their labels: those that any one of these "
        "selectors matches. An empty list selects none. Every SyncTarget at a selected Location "
        "is a destination.",
        "downsync": "Which objects go down: those that any one of these clauses admits.",
        "wantSingletonReportedState": "Copy the status of each selected object back here, while "
        "exactly one destination has it.",
        "upsync": "Which objects that arise at destinations come up; they are never sent down.",
        "readiness": _READINESS,
        "cleaning": _CLEANING,
        "namespaceSelector": "Of v1alpha1: all namespaced objects go down of the Namespaces whose "
        "labels it matches. None if absent.",
        "nonNamespacedObjects": "Of v1alpha1: which cluster-scoped objects go down: those that "
        "any one of these sets holds.",
    },
    "Readiness": {
        "maxUnavailable": "How many destinations may be unreachable, or which share of them, "
        "rounded down: 10% if absent.",
        "allowEmpty": "Whether it is ready while it selects no destination, or no object.",
    },
    "NonNamespacedObjectSet": {
        "apiGroup": 'The API group of the objects; "" is the core group.',
        "resources": "Lowercase plurals, such as clusterroles; * for all. None if empty.",
        "resourceNames": "Names of the objects; * for all. An object is in the set by its name "
        "or by its labels.",
        "labelSelectors": "Selects objects by their labels; any one must match.",
    },
    "DownsyncClause": {**_CLAUSE, "labelSelectors": _BY_LABELS},
    "UpsyncSet": _UPSYNC_SET,
    "PlacedUpsyncSet": {
        **_UPSYNC_SET,
        "statusCollectors": "Names of StatusCollectors with a source: over what comes up.",
    },
    "EdgePlacementStatus": {
        **_STATUS,
        "specGeneration": "The metadata.generation that this status speaks of.",
        "matchingLocationCount": "How many Locations the selectors match.",
    },
    "SinglePlacementSlice": {
        "destinations": "The pairs of a Location that the EdgePlacement of the same name selects "
        "and a SyncTarget at it; empty with a note if there are too many to list.",
    },
    "Destination": {
        "cluster": "The identity of the inventory space that holds the Location.",
        "locationName": "The name of the Location.",
        "syncTargetName": "The name of the SyncTarget.",
        "syncTargetUID": "The UID of the SyncTarget.",
    },
}

_POLICY: Mapping[str, Texts] = {
    "BindingPolicy": {
        "spec": "Which objects of this space go to which destinations.",
        "status": "What became of the policy at its destinations. Leafcast writes it.",
    },
    "BindingPolicySpec": {
        "clusterSelectors": "Selects SyncTargets by their labels: those that any one of these "
        "selectors matches. An empty list selects none.",
        "downsync": "Which objects go down: those that any one of these clauses admits. Of all "
        "clauses that admit an object each true option counts.",
        "readiness": _READINESS,
        "cleaning": _CLEANING,
    },
    "PolicyClause": {**_CLAUSE, "objectSelectors": _BY_LABELS},
    "BindingPolicyStatus": {**_STATUS},
    "Binding": {"spec": "What the BindingPolicy of the same name comes to. Leafcast writes it."},
    "BindingSpec": {
        "workload": "The objects in force; empty with a note if there are too many to list.",
        "destinations": "The SyncTargets; empty with a note if there are too many to list.",
    },
    "BindingWorkload": {
        "clusterScope": "Cluster-scoped objects.",
        "namespaceScope": "Namespaced objects.",
    },
    "ClusterScopeObject": {**_BOUND},
    "NamespaceScopeObject": {**_BOUND, "namespace": "The namespace of the object."},
    "BindingDestination": {"clusterId": "The name of the SyncTarget."},
    "CustomTransform": {
        "spec": "What is taken off which objects.",
        "status": "What is wrong with it. Leafcast writes it.",
    },
    "CustomTransformSpec": {
        "apiGroup": 'The API group of the objects; "" is the core group.',
        "resource": "The lowercase plural of the objects, such as deployments.",
        "remove": "JSONPaths (RFC 9535) of what is taken off each object, wherever it is there.",
    },
    "CustomTransformStatus": {
        **_OWN_STATUS,
        "errors": "What is wrong; objects of the kind stay as they went out last.",
        "warnings": "What else is there for the same kind: all of it applies.",
    },
}

_INVENTORY: Mapping[str, Texts] = {
    "Location": {
        "spec": "Which SyncTargets are at this Location.",
        "status": "How many SyncTargets are at it. Leafcast writes it.",
    },
    "LocationSpec": {
        "resource": "What it is a location of: synctargets of edge.kubestellar.io/v2alpha1.",
        "description": "A text for people.",
        "availableSelectorLabels": "Labels by which users may select it; for people, not used "
        "in matching.",
        "instanceSelector": "Selects SyncTargets of the same inventory space by their labels. "
        "Absent it selects none, {} selects all.",
    },
    "LocationResource": {
        "group": "edge.kubestellar.io",
        "version": "v2alpha1",
        "resource": "synctargets",
    },
    "AvailableSelectorLabel": {
        "key": "The key of the label.",
        "values": "The values that it may have.",
        "description": "What the label means.",
    },
    "LocationStatus": {
        "instances": "How many SyncTargets are at it.",
        "availableInstances": "How many of them take work.",
    },
    "SyncTarget": {
        "spec": "What an operator says of the cluster.",
        "status": "What is known of the cluster. Leafcast writes it.",
    },
    "SyncTargetSpec": {
        "unschedulable": "Not honoured, but kept: Leafcast places by labels alone.",
        "evictAfter": "Not honoured, but kept: a time as in 2026-01-02T15:04:05Z.",
        "supportedAPIExports": "The APIs that the cluster supports.",
        "cells": "Kept for those who read it: who has equal ones behaves as one cluster.",
    },
    "ApiExport": {
        "export": "The name of the API export.",
        "path": "The kcp workspace that exports it.",
    },
    "SyncTargetStatus": {
        "allocatable": "What of each resource can be allocated.",
        "capacity": "What of each resource there is.",
        "conditions": "Ready: the node at its path is in session, and its path is its own.",
        "syncedResources": "Which resources the cluster takes, and in which versions.",
        "lastSyncerHeartbeatTime": "When the cluster was heard of last.",
        "virtualWorkspaces": "Where a kcp syncer would read and write.",
    },
    "SyncedResource": {
        "group": 'The API group; "" is the core group.',
        "resource": "The lowercase plural.",
        "versions": "The versions that the cluster takes.",
        "identityHash": "The identity of the API export.",
        "state": "Whether the cluster takes it.",
    },
    "VirtualWorkspace": {
        "syncerURL": "Where it would read what goes down.",
        "upsyncerURL": "Where it would write what comes up.",
    },
}

_COLLECTORS: Mapping[str, Texts] = {
    "StatusCollector": {
        "spec": "Which rows count, and what becomes of them.",
        "status": "What is wrong with it. Leafcast writes it.",
    },
    "StatusCollectorSpec": {
        "filter": "CEL, true or false for each destination; null is false. All count if absent.",
        "groupBy": "Columns by which the rows are grouped; needs combinedFields.",
        "combinedFields": "Columns of each group, combined of its rows.",
        "select": "Columns of each destination, as they are; not with the other two.",
        "limit": "How many rows, or groups, are kept, 1,000 at most: the first by destination, "
        "or by group. The rest is in one more row.",
        "scope": "Object: over each object alone. Placement: over all objects that the placement "
        "names it for.",
        "source": "Over which objects, in the place of copies of what was sent: one row for each.",
    },
    "CollectorSource": {
        "upsync": "Objects that come up from destinations; returned is the object.",
    },
    "NamedExpression": {
        "name": "The column's name.",
        "def": "CEL over obj, returned, inventory and propagation.",
    },
    "NamedAggregator": {
        "name": "The column's name.",
        "type": "How it is combined. A QUANTILE is off by 1 % at most, a DISTINCT is an estimate.",
        "subject": "CEL, a number, or for DISTINCT any value; null does not count. Not for COUNT.",
        "quantile": 'Of a QUANTILE: which one, as "0.95".',
        "top": "Of a TOP: how many destinations are named.",
    },
    "StatusCollectorStatus": {
        **_OWN_STATUS,
        "errors": "What is wrong, by field. A collector with errors counts as one that is missing.",
    },
    "HealthRule": {
        "spec": "Of which kind, and what its objects count as.",
        "status": "What is wrong with it. Leafcast writes it.",
    },
    "HealthRuleSpec": {
        "apiGroup": 'The API group of the objects; "" is the core group.',
        "resource": "The lowercase plural of their kind.",
        "healthy": "CEL over obj, the object at its edge: true if it is healthy. Without it its "
        "kind says so. What gives nothing, as over a status that is not there yet, is false.",
        "degraded": "CEL: true if it is degraded. It comes first.",
        "message": "CEL, a text: what is said of one that is not healthy.",
        "done": "CEL: true once it came to a good end, and is not made again when it is gone.",
        "ignore": "Whether all count as healthy once they are applied.",
    },
    "HealthRuleStatus": {
        **_OWN_STATUS,
        "errors": "What is wrong, by field. A rule with errors counts as it was last.",
        "warnings": "What is to be known of it.",
    },
    "CombinedStatus": {
        "results": "What each collector collected.",
    },
    "CombinedResult": {
        "name": "The collector's name.",
        "columnNames": "The names of the columns, of groups first.",
        "rows": "The rows, in order.",
        "rest": "The rows beyond the limit, as one.",
        "rowErrors": "The first row that could not be computed, by column.",
        "aggregationErrors": "What is wrong with values, by column.",
        "notes": "What is to be known of a column's values.",
        "truncated": "Whether not all found room on its way: fewer rows, or values told apart.",
    },
    "CombinedRow": {
        "columns": "The values, by column.",
    },
    "CombinedRest": {
        "columns": "The values, by column.",
        "count": "How many rows it stands for.",
    },
    "CombinedValue": {
        "type": "Which of the other fields holds the value.",
        "string": "A text.",
        "float": "A number, as a text.",
        "bool": "True or false.",
        "object": "A map.",
        "array": "A list.",
    },
    "CombinedCluster": {"clusterId": "The name of the destination's SyncTarget."},
    "RowError": {
        "wec": "The destination.",
        "columnName": "The column; empty is the filter.",
        "error": "Why it could not be computed.",
        "count": "How many destinations have no row for such a reason.",
    },
    "ColumnNote": {
        "columnName": "The column.",
        "error": "What is wrong.",
        "note": "What is to be known.",
    },
}

_OTHERS: Mapping[str, Texts] = {
    "KeptCopies": {
        "count": "How many copies are kept.",
        "copies": "Some of them, one for each object.",
    },
    "KeptCopy": {
        "object": "The object that is kept.",
        "destinations": "At how many destinations it is kept.",
        "path": "One of these.",
        "reason": "What keeps it.",
    },
    "RepairedCopies": {
        "count": "How often copies were put right since each was made.",
        "last": "The last of these, the newest first, one for each copy.",
    },
    "RepairedCopy": {
        "time": "When, by the clock of its edge.",
        "object": "The object that was put right.",
        "path": "At which destination.",
        "count": "How often so far.",
        "field": "The field that differed; absent if the copy had been deleted.",
        "manager": "Who held that field then, as far as known.",
    },
    "Hold": {
        "reason": "What keeps it, in one word, for programs.",
        "since": "Since when it is kept.",
        "destinations": "How many destinations lack the newest content by it; absent if nobody "
        "can tell exactly.",
        "message": "What keeps it, for people.",
        "until": "When it ends by itself, if that is known.",
        "remedy": "The command to run next.",
    },
    "Customizer": {
        "replacements": "What is replaced, in this order, after expressions were expanded in the "
        'object. With the annotation edge.kubestellar.io/expand-parameters: "true" on the '
        "Customizer its own paths and values are expanded first.",
        "status": "What is wrong with it. Leafcast writes it.",
    },
    "CustomizerStatus": _OWN_STATUS,
    "DenaturedStatus": _OWN_STATUS,
    "Replacement": {
        "path": "A JSONPath (RFC 9535) that names parts of the object, such as "
        "$.spec.replicas; a last field that is missing is made.",
        "value": "What to put there, in JSON: a text has quotes of its own.",
    },
    "Denatured": {
        "spec": "The object that it holds.",
        "status": "What is wrong with it. Leafcast writes it.",
    },
    "DenaturedSpec": {
        "template": "The whole object, with apiVersion, kind and metadata, as it is to be at "
        "destinations. Placements select it by its own group, resource, namespace, name and "
        "labels, not by those of the Denatured.",
    },
    "Condition": {
        "type": "What is said to be so, or not.",
        "status": "True, False or Unknown.",
        "severity": "How grave it is, as kcp writes it.",
        "reason": "Why, in one word, for programs.",
        "message": "Why, for people.",
        "lastTransitionTime": "Since when the status is as it is.",
        "lastUpdateTime": "When it was written last.",
        "observedGeneration": "The metadata.generation that it speaks of.",
    },
}

TEXTS: Mapping[str, Texts] = {
    **_PLACEMENT,
    **_POLICY,
    **_INVENTORY,
    **_COLLECTORS,
    **_OTHERS,
    **ROLLOUT_TEXTS,
}


def text_of(model: str, field: str) -> str | None:
    """What a field of a model is for."""
    return TEXTS.get(model, {}).get(field)
