"""What the API server itself refuses of our kinds: patterns, bounds, and rules in CEL.

The models refuse the same, and more; a bound is here because a rule's cost must be bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.api.leafcast_release import MANIFEST_MAX_CHARACTERS
from schemas.api.rollout_spec import WAVES_MAX
from schemas.api.shared import CLAUSES_MAX, LISTED_MAX, REQUIREMENTS_MAX, SELECTORS_MAX
from schemas.objects.json_paths import EXPRESSION_MAX
from schemas.releases.release_version import VERSION_MAX
from schemas.reports.collectors import EXPRESSION_MAX_BYTES, QUANTILE_PATTERN
from schemas.values import names

Form = dict[str, Any]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"


def _text(pattern: str, longest: int) -> Form:
    return {"pattern": f"^({pattern})$", "maxLength": longest}


def _listed(pattern: str, longest: int) -> Form:
    return {"maxItems": LISTED_MAX, "items": _text(pattern, longest)}


_RESOURCES = _listed(rf"\*|{_LABEL}", names.LABEL_MAX)
_NAMES = _listed(r"[^/%]+", names.SUBDOMAIN_MAX)
_COLLECTORS = _listed(_SUBDOMAIN, names.SUBDOMAIN_MAX)
_GROUP = _text(f"|{_SUBDOMAIN}", names.SUBDOMAIN_MAX)
_UPSYNC_SET: Form = {
    "apiGroup": _GROUP,
    "resources": _RESOURCES,
    "namespaces": _RESOURCES,
    "names": _NAMES,
}


def _tells_apart(by_labels: str) -> Form:
    """That one field of a clause tells objects apart; `by_labels` is how its selectors go."""
    rule = " || ".join(
        [
            "has(self.apiGroup)",
            *(
                f"(has(self.{field}) && size(self.{field}) > 0 && !('*' in self.{field}))"
                for field in ("resources", "namespaces", "objectNames")
            ),
            *(
                f"(has(self.{field}) && size(self.{field}) > 0 && self.{field}.all(s, "
                "(has(s.matchLabels) && size(s.matchLabels) > 0) || "
                "(has(s.matchExpressions) && size(s.matchExpressions) > 0)))"
                for field in ("namespaceSelectors", by_labels)
            ),
        ]
    )
    return _rule(
        rule,
        "no field tells objects apart: it means every object; narrow apiGroup, resources, "
        f"namespaces, namespaceSelectors, objectNames or {by_labels}",
    )


_VALUES = (
    "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 "
    ": !has(self.values) || size(self.values) == 0"
)
_NOT_OURS = (
    "!self.apiVersion.startsWith('edge.kubestellar.io/') "
    "&& !self.apiVersion.startsWith('control.kubestellar.io/') "
    "&& !self.apiVersion.startsWith('leafcast.io/')"
)

_NAMED = "has(self.metadata) && has(self.metadata.name) && size(self.metadata.name) > 0"


def _rule(rule: str, message: str) -> Form:
    return _rules((rule, message))


def _rules(*said: tuple[str, str]) -> Form:
    return {
        "x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in said]
    }


_CEL: Form = {"minLength": 1, "maxLength": EXPRESSION_MAX_BYTES}
_COLUMN: Form = {"minLength": 1, "maxLength": names.LABEL_MAX}


def _any(field: str) -> str:
    """That a list is there and has items."""
    return f"(has(self.{field}) && size(self.{field}) > 0)"


def _alike(field: str, other: str) -> str:
    """That no column of one list has the name of another one of the other."""
    alone = f"self.{other}.exists_one(b, b.name == a.name)"
    if field != other:
        alone = f"!self.{other}.exists(b, b.name == a.name)"
    return f"(!{_any(field)} || !{_any(other)} || self.{field}.all(a, {alone}))"


_IGNORES = "(has(self.ignore) && self.ignore)"
_HEALTH_RULE = _rules(
    (
        f"{_IGNORES} || has(self.healthy) || has(self.degraded) || has(self.done)",
        "it says nothing of health; write healthy, degraded or done, or ignore: true",
    ),
    (
        f"!{_IGNORES} || !(has(self.healthy) || has(self.degraded) || has(self.message))",
        "nothing is asked of what is ignored; leave out healthy, degraded and message, or ignore",
    ),
)
_COLLECTOR = _rules(
    (
        f"!{_any('select')} || !({_any('groupBy')} || {_any('combinedFields')})",
        "groupBy and combinedFields must be empty if select is not; write two collectors",
    ),
    (
        f"!{_any('groupBy')} || {_any('combinedFields')}",
        "groupBy must be empty if combinedFields is; say what is combined of each group",
    ),
    (
        f"{_any('select')} || {_any('combinedFields')} || {_any('groupBy')}",
        "nothing is collected; write select, or combinedFields",
    ),
    (
        " && ".join(
            [
                _alike("select", "select"),
                _alike("groupBy", "groupBy"),
                _alike("combinedFields", "combinedFields"),
                _alike("groupBy", "combinedFields"),
            ]
        ),
        "two columns have one name; rename one",
    ),
)
_AGGREGATOR = _rules(
    ("(self.type == 'COUNT') != has(self.subject)", "a COUNT has no subject, all others need one"),
    (
        "(self.type == 'QUANTILE') == has(self.quantile)",
        'a QUANTILE, and nothing else, needs a quantile, as "0.95"',
    ),
    ("!has(self.top) || self.type == 'TOP'", "only a TOP has top; leave it out"),
)


SELECTOR: Form = {
    "x-kubernetes-map-type": "atomic",
    "properties": {
        "matchExpressions": {
            "maxItems": REQUIREMENTS_MAX,
            "items": _rule(
                _VALUES, "In and NotIn need values; Exists and DoesNotExist take no values"
            ),
        },
    },
}
_SELECTORS: Form = {"maxItems": SELECTORS_MAX, "items": SELECTOR}
_AMOUNT = (
    "!has(self.maxUnavailable) || (type(self.maxUnavailable) == int ? self.maxUnavailable >= 0 : "
    "self.maxUnavailable.matches('^(100([.]0{1,4})?|[0-9]{1,2}([.][0-9]{1,4})?)%$'))"
)


def _clause(by_labels: str) -> Mapping[str, Form]:
    return {
        "": _tells_apart(by_labels),
        "apiGroup": _GROUP,
        "resources": _RESOURCES,
        "namespaces": _RESOURCES,
        "namespaceSelectors": _SELECTORS,
        "objectNames": _NAMES,
        by_labels: _SELECTORS,
        "statusCollectors": _COLLECTORS,
    }


CONDITIONS: Form = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
# What is added to the schema of a model's field; "" is the model itself.
RULES: Mapping[str, Mapping[str, Form]] = {
    "EdgePlacementSpec": {
        "locationSelectors": _SELECTORS,
        "downsync": {"maxItems": CLAUSES_MAX},
        "upsync": {"maxItems": CLAUSES_MAX},
        "namespaceSelector": SELECTOR,
        "nonNamespacedObjects": {"maxItems": CLAUSES_MAX},
    },
    "DownsyncClause": _clause("labelSelectors"),
    "NonNamespacedObjectSet": {
        "apiGroup": _GROUP,
        "resources": _RESOURCES,
        "resourceNames": _NAMES,
        "labelSelectors": _SELECTORS,
    },
    "BindingPolicy": {
        "": _rule(
            f"size(self.metadata.name) <= {names.LABEL_MAX}",
            "metadata.name: objects that tell of it carry it as a label; shorten it to at most "
            f"{names.LABEL_MAX} characters",
        ),
    },
    "Readiness": {
        "": _rule(_AMOUNT, "maxUnavailable: write a number such as 25, or a share such as 10%"),
        "maxUnavailable": {"maxLength": 8},
    },
    "BindingPolicySpec": {
        "clusterSelectors": _SELECTORS,
        "downsync": {"maxItems": CLAUSES_MAX},
    },
    "PolicyClause": _clause("objectSelectors"),
    "CustomTransformSpec": {
        "apiGroup": _GROUP,
        "resource": _text(_LABEL, names.LABEL_MAX),
        "remove": {
            "maxItems": CLAUSES_MAX,
            "items": {"pattern": r"^\$.", "maxLength": EXPRESSION_MAX},
        },
    },
    "UpsyncSet": _UPSYNC_SET,
    "PlacedUpsyncSet": {**_UPSYNC_SET, "statusCollectors": _COLLECTORS},
    "HealthRuleSpec": {
        "": _HEALTH_RULE,
        "apiGroup": _GROUP,
        "resource": _text(_LABEL, names.LABEL_MAX),
        **dict.fromkeys(("healthy", "degraded", "message", "done"), _CEL),
    },
    "RolloutSpec": {"waves": {"maxItems": WAVES_MAX}, "windows": {"maxItems": WAVES_MAX}},
    "LeafcastReleaseSpec": {
        "manifest": {"maxLength": MANIFEST_MAX_CHARACTERS},
        "version": {"maxLength": VERSION_MAX},
        "waves": {"maxItems": WAVES_MAX - 1},
        "windows": {"maxItems": WAVES_MAX},
    },
    "RolloutStatus": {"waves": {"maxItems": WAVES_MAX}},
    "Wave": {
        "selector": SELECTOR,
        "locationSelector": SELECTOR,
        "windows": {"maxItems": WAVES_MAX},
    },
    "LocationSpec": {
        "availableSelectorLabels": {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["key"],
        },
        "instanceSelector": SELECTOR,
    },
    "StatusCollectorSpec": {"": _COLLECTOR, "filter": _CEL},
    "NamedExpression": {"name": _COLUMN, "def": _CEL},
    "NamedAggregator": {
        "": _AGGREGATOR,
        "name": _COLUMN,
        "subject": _CEL,
        "quantile": {"pattern": f"^({QUANTILE_PATTERN})$"},
    },
    "CombinedValue": {
        "object": {"x-kubernetes-preserve-unknown-fields": True},
        "array": {"items": {"x-kubernetes-preserve-unknown-fields": True}},
    },
    "Customizer": {
        "replacements": {
            "maxItems": LISTED_MAX,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["path"],
        },
    },
    "DenaturedSpec": {
        "template": {
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
            **_rules(
                (_NOT_OURS, "Leafcast's own objects stay at the centre; name another kind"),
                (_NAMED, "metadata.name is missing: give the object a name"),
            ),
        },
    },
}


def with_rules(form: Form, rules: Mapping[str, Any]) -> Form:
    """The schema with these rules added, also inside it."""
    made = dict(form)
    for name, added in rules.items():
        old = made.get(name)
        inside = isinstance(added, dict) and isinstance(old, dict)
        made[name] = with_rules(old, added) if inside and isinstance(old, dict) else added
    return made
