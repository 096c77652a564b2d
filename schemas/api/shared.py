"""What all API kinds share: how they read and write themselves, metadata, conditions, checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel

from schemas.objects.selectors import OPERATORS, LabelSelector
from schemas.values import names
from schemas.values.faults import Fault, Faulty

ANY = "*"
REQUIREMENTS_IN_ALL = 2048
"""Of all selectors of one placement: to look at all of them takes 0.5 ms for each object."""
CLAUSES_MAX = 128
"""Of one placement, of each kind of clause."""
LISTED_MAX = 256
"""Of the names in one list, or the values of one requirement."""
SELECTORS_MAX = 32
"""Of one list; of them one must match."""
SELECTORS_MAX_BYTES = 24 * 1024
"""Of those that say who is meant. A record has them, those of 16 more that it waits for, and of a
Rollout those of four revisions, each with windows."""
DESCRIPTION_MAX_BYTES = 256 * 1024
"""Of labels and annotations together, which travel in one message with properties."""
REQUIREMENTS_MAX = 32
"""Of one selector, said by matchLabels, and as many by matchExpressions."""

Item = TypeVar("Item")


class ApiValue(BaseModel):
    """A part of an API object: frozen, camelCase on the wire, nothing converted or ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        allow_inf_nan=False,
        extra="forbid",
        frozen=True,
        strict=True,
        validate_by_alias=True,
        validate_by_name=True,
    )

    def to_mapping(self) -> dict[str, Any]:
        """Say it in JSON types as Kubernetes does: what was given, without nulls."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


def _as_tuple(form: object) -> object:
    if isinstance(form, list):
        return tuple(form)
    return () if form is None else form


ListOf = Annotated[tuple[Item, ...], BeforeValidator(_as_tuple)]
"""A JSON list, kept as a tuple; null is an empty one."""


ListField = Annotated[tuple[Item, ...], BeforeValidator(_as_tuple), Field(max_length=LISTED_MAX)]
"""A list of names; what is over is said in another clause."""


def _selector(form: object) -> LabelSelector:
    if isinstance(form, LabelSelector):
        return form
    if not isinstance(form, Mapping):
        raise Faulty(Fault("", "not a label selector", "write matchLabels or matchExpressions"))
    if faults := list(_size_faults(form)):
        raise Faulty(*faults)
    return LabelSelector.from_kubernetes(form)


def _size_faults(form: Mapping[Any, Any]) -> Iterator[Fault]:
    """What a selector has too much of: each requirement is compared with each object, or place."""
    fewer = "write fewer, or set one label that says the same"
    for field in ("matchLabels", "matchExpressions"):
        said = form.get(field)
        if isinstance(said, (Mapping, list, tuple)) and len(said) > REQUIREMENTS_MAX:
            yield Fault(field, f"{len(said)} are listed, at most {REQUIREMENTS_MAX} may be", fewer)
        for at, item in enumerate(said if isinstance(said, (list, tuple)) else ()):
            values = item.get("values") if isinstance(item, Mapping) else None
            if isinstance(values, (list, tuple)) and len(values) > LISTED_MAX:
                message = f"{len(values)} are listed, at most {LISTED_MAX} may be"
                yield Fault(f"{field}[{at}].values", message, fewer)


_VALUES = {
    "type": "array",
    "maxItems": LISTED_MAX,
    "description": "For In and NotIn; empty for Exists and DoesNotExist.",
    "items": {"type": "string"},
}
_REQUIREMENT = {
    "type": "object",
    "required": ["key", "operator"],
    "properties": {
        "key": {"type": "string", "description": "The key of the label."},
        "operator": {
            "type": "string",
            "description": "How the label's value relates to the values.",
            "enum": list(OPERATORS),
        },
        "values": _VALUES,
    },
}
_SELECTOR_SCHEMA = {
    "type": "object",
    "properties": {
        "matchLabels": {
            "type": "object",
            "description": "Labels that must be there, each with this value.",
            "maxProperties": REQUIREMENTS_MAX,
            "additionalProperties": {"type": "string"},
        },
        "matchExpressions": {
            "type": "array",
            "description": "Requirements on labels; all of them must be met.",
            "items": _REQUIREMENT,
        },
    },
}

Selector = Annotated[
    LabelSelector,
    PlainValidator(_selector),
    PlainSerializer(LabelSelector.to_kubernetes),
    WithJsonSchema(_SELECTOR_SCHEMA),
]


Selectors = Annotated[ListOf[Selector], Field(max_length=SELECTORS_MAX)]


def check_requirements(*lists: Iterable[LabelSelector]) -> None:
    """Refuse a placement whose selectors ask too much of each object, or place; raises Faulty."""
    found = sum(len(selector) for selectors in lists for selector in selectors)
    if found > REQUIREMENTS_IN_ALL:
        said = f"{found} requirements in all its selectors, at most {REQUIREMENTS_IN_ALL} may be"
        raise Faulty(Fault("", said, "say the others in another placement"))


def check_sent(selectors: Iterable[LabelSelector]) -> None:
    """Refuse selectors of places that are too long to be sent; raises Faulty."""
    items = (item for selector in selectors for item in selector)
    size = sum(len(text.encode()) + 1 for it in items for text in (it.key, it.operator, *it.values))
    if size > SELECTORS_MAX_BYTES:
        said = f"selectors of places have {size} bytes, at most {SELECTORS_MAX_BYTES} are sent"
        raise Faulty(Fault("", said, "give these places one label, and select by that"))


def check_description(metadata: ObjectMeta) -> ObjectMeta:
    """Refuse labels and annotations that are too long to be sent; raises Faulty."""
    texts = chain(*metadata.labels.items(), *metadata.annotations.items())
    size = sum(len(text.encode()) + 1 for text in texts)
    if size > DESCRIPTION_MAX_BYTES:
        said = f"labels and annotations have {size} bytes, at most {DESCRIPTION_MAX_BYTES} are sent"
        raise Faulty(Fault("", said, "leave some out; what objects need belongs into properties"))
    return metadata


def check_each_once(field: str, keys: Iterable[str]) -> None:
    """Refuse a key that is there twice; `field` is its path, `{}` its place. Raises Faulty."""
    seen: set[str] = set()
    for at, key in enumerate(keys):
        if key in seen:
            raise Faulty(Fault(field.format(at), f'"{key}" is listed twice', "merge the two"))
        seen.add(key)


def checked(
    fault_of: Callable[[str], str | None], remedy: str, *, any_: bool = False
) -> AfterValidator:
    """Make a validator of strings out of a name check; `any_` admits `*` too."""

    def check(text: str) -> str:
        fault = None if any_ and text == ANY else fault_of(text)
        if fault:
            raise Faulty(Fault("", fault, remedy))
        return text

    return AfterValidator(check)


def or_any(rule: str) -> str:
    """Say a naming rule as the remedy of a list that takes `*`."""
    return f"use {rule}; or * for all"


CountField = Annotated[int, Field(ge=0, le=2**32 - 1)]
"""How many, as the unsigned 32 bits of a status."""


class ObjectMeta(ApiValue):
    """Kubernetes' ObjectMeta: the fields that Leafcast reads are typed, all others are kept."""

    model_config = ConfigDict(extra="allow")

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    labels: Mapping[str, str] = Field(default_factory=dict)
    annotations: Mapping[str, str] = Field(default_factory=dict)


class Condition(ApiValue):
    """One condition of an object, as Kubernetes and kcp write them; times are RFC 3339."""

    type: str
    """What is said to be so, or not."""
    status: Literal["True", "False", "Unknown"]
    """True, False or Unknown."""
    severity: str = ""
    """How grave it is, as kcp writes it."""
    reason: str = ""
    """Why, in one word, for programs."""
    message: str = ""
    """Why, for people."""
    last_transition_time: str | None = None
    """Since when the status is as it is."""
    last_update_time: str | None = None
    """When it was written last."""
    observed_generation: int = 0
    """The metadata.generation that it speaks of."""


class JudgedStatus(ApiValue):
    """What is wrong with an object that says how others are treated."""

    observed_generation: CountField | None = None
    """The metadata.generation that this status speaks of."""
    errors: ListOf[str] = ()
    """What is wrong, by field, and what to do."""
    conditions: ListOf[Condition] = ()
    """Ready: it can be read, and counts. Stalled: it is wrong, and no waiting helps."""


class NamedObject(ApiValue):
    """What every API object has besides its version."""

    metadata: ObjectMeta

    @property
    def name(self) -> str:
        """The metadata.name."""
        return self.metadata.name


def api_group_of(model: type[NamedObject]) -> str:
    """The API group of a kind: that of the versions in which it may be written."""
    versions: tuple[str, ...] = get_args(model.model_fields["api_version"].annotation)
    return versions[0].partition("/")[0]


class ApiObject(NamedObject):
    """An object of edge.kubestellar.io."""

    api_version: Literal["edge.kubestellar.io/v2alpha1"]


class ControlObject(NamedObject):
    """An object of control.kubestellar.io."""

    api_version: Literal["control.kubestellar.io/v1alpha1"]


def resource_fault(text: str) -> str | None:
    """Say why the text is no resource, which is a lowercase plural without its group."""
    return f'"{text}" is not a resource' if names.dns_label_fault(text) else None


def group_fault(text: str) -> str | None:
    """Say why the text is no API group; "" is core."""
    return f'"{text}" is not an API group' if text and names.subdomain_fault(text) else None
