"""CustomResourceDefinitions of our API kinds, made from the models: structural, with status.

What a schema cannot say the program checks itself, as that a downsync clause tells objects apart.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from schemas.api.collectors import CombinedStatus, StatusCollector
from schemas.api.customizer import Customizer
from schemas.api.denatured import Denatured
from schemas.api.health_rule import HealthRule
from schemas.api.inventory import Location, SyncTarget
from schemas.api.leafcast_release import LeafcastRelease
from schemas.api.placement import EdgePlacement, SinglePlacementSlice
from schemas.api.policy import Binding, BindingPolicy
from schemas.api.rollout_status import Rollout
from schemas.api.shared import api_group_of
from schemas.api.transform import CustomTransform
from schemas.crds.rules import CONDITIONS, RULES, with_rules
from schemas.objects.objects import BUILT_IN_KINDS, served_versions

Form = dict[str, Any]

_QUANTITY: Form = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
# What a structural schema has, of what JSON Schema has; `title`, `const` and the like it has not.
_KEPT = (
    "type",
    "format",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "maxProperties",
    "pattern",
)
_TEXT = "x-text"
"""Where a schema of pydantic's keeps what its field is for."""
_CATEGORY = "leafcast"
_OF_EVERY_OBJECT: Form = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}

_AGE: Form = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def _column(name: str, path: str, kind: str = "integer", *, wide: bool = False) -> Form:
    column: Form = {"name": name, "type": kind, "jsonPath": path}
    return {**column, "priority": 1} if wide else column


_READY = _column("Ready", '.status.conditions[?(@.type=="Ready")].status', "string")
# Why it is ready, or not, in one word.
_STANDING = (_READY, _column("Status", '.status.conditions[?(@.type=="Ready")].reason', "string"))
_PLACEMENT_COLUMNS = (
    _column("Objects", ".status.selectedObjects"),
    _column("Destinations", ".status.destinations"),
    _column("Synced", ".status.synced"),
    _column("Healthy", ".status.healthy"),
    *_STANDING,
    _column("Hold", ".status.held[*].reason", "string"),
    _column("Complete", ".status.complete", "boolean", wide=True),
    _column("Failing", ".status.failing", wide=True),
    _column("Frozen", ".status.frozen", wide=True),
    _column("Unreachable", ".status.unreachable", wide=True),
    _column("Never Joined", ".status.neverJoined", wide=True),
)

# All that is wrong, of which a list of errors would show the first alone.
_STALLED = '.status.conditions[?(@.type=="Stalled")].message'
_PROBLEM = _column("Problem", _STALLED, "string")
_SUBJECT = (
    _column("Subject_Group", ".spec.apiGroup", "string"),
    _column("Subject_Resource", ".spec.resource", "string"),
)
_LABEL = r".metadata.labels.status\.kubestellar\.io"
_KINDS: Mapping[type[Any], tuple[str, tuple[Form, ...]]] = {
    EdgePlacement: ("epl", _PLACEMENT_COLUMNS),
    BindingPolicy: ("bp", _PLACEMENT_COLUMNS),
    Binding: ("bdg", ()),
    CustomTransform: (
        "ct",
        (*_SUBJECT, _READY, _column("Error", _STALLED, "string")),
    ),
    SinglePlacementSlice: ("sps", ()),
    Location: ("loc", (_column("Description", ".spec.description", "string"),)),
    SyncTarget: (
        "st",
        (
            _column("Path", r".metadata.annotations.leafcast\.io/path", "string"),
            # A condition says that it is registered only after it said that it is not.
            _column("Problem", '.status.conditions[?(@.status=="False")].reason', "string"),
        ),
    ),
    Customizer: ("cust", (_READY, _PROBLEM)),
    Denatured: (
        "dn",
        (
            _column("Kind", ".spec.template.kind", "string"),
            _column("Namespace", ".spec.template.metadata.namespace", "string"),
            _column("Object", ".spec.template.metadata.name", "string"),
            _READY,
            _PROBLEM,
        ),
    ),
    HealthRule: ("hrl", (*_SUBJECT, _READY, _PROBLEM)),
    LeafcastRelease: (
        "lcr",
        (
            _column("Version", ".spec.version", "string"),
            _column("Wave", ".status.waveName", "string"),
            _column("Phase", ".status.phase", "string"),
            _column("Message", ".status.message", "string", wide=True),
        ),
    ),
    Rollout: (
        "rol",
        (
            _column("Placement", ".spec.placement.name", "string"),
            _column("Revision", ".status.revision"),
            _column("Wave", ".status.waveName", "string"),
            _READY,
            _column("Phase", ".status.phase", "string"),
            _column("Message", ".status.message", "string", wide=True),
        ),
    ),
    StatusCollector: (
        "stc",
        (
            _column("Scope", ".spec.scope", "string"),
            _column("Limit", ".spec.limit"),
            _READY,
            _PROBLEM,
        ),
    ),
    CombinedStatus: (
        "cst",
        (
            _column("Kind", f"{_LABEL}/resource", "string"),
            _column("Object", f"{_LABEL}/name", "string"),
            _column("Placement", f"{_LABEL}/binding-policy", "string"),
        ),
    ),
}
"""The short name of each kind, and its columns before its age."""
_INVENTORY = (Location, SyncTarget)


def custom_resource_definitions(*, workloads: bool = True, inventory: bool = True) -> list[Form]:
    """One definition for each kind that users read or write, ready for `kubectl apply`.

    Those of a workload description space, of an inventory space, or all.
    """
    wanted = {True: inventory, False: workloads}
    return [_definition(model) for model in _KINDS if wanted[model in _INVENTORY]]


def _definition(model: type[Any]) -> Form:
    kind, group, schema = model.__name__, api_group_of(model), _object_schema(model)
    short, columns = _KINDS[model]
    entry = BUILT_IN_KINDS.lookup(group, kind)
    assert entry is not None
    # All versions have one schema: an API server gives back in one what was written in another.
    versions: list[Form] = [
        {
            "name": version,
            "served": True,
            "storage": not older,
            "schema": {"openAPIV3Schema": schema},
            "additionalPrinterColumns": [*columns, _AGE],
        }
        for older, version in enumerate(served_versions(group, kind))
    ]
    if "status" in schema["properties"]:
        for version in versions:
            version["subresources"] = {"status": {}}
    names = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": entry.resource,
        "singular": kind.lower(),
        "shortNames": [short],
        "categories": [_CATEGORY],
    }
    scope = "Namespaced" if entry.namespaced else "Cluster"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{entry.resource}.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": versions},
    }


class _ExplainedSchema(GenerateJsonSchema):
    """A schema in which each field of a model has the docstring under it as its text."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        for name, text in field_texts(schema["cls"]).items():
            made["properties"][name] = {**made["properties"][name], _TEXT: text}
        return made


def _object_schema(model: type[Any]) -> Form:
    """The schema of a whole object; its type and its metadata are the API server's to say."""
    schema = model.model_json_schema(by_alias=True, schema_generator=_ExplainedSchema)
    definitions = schema.get("$defs", {})
    own = {
        name: _field(model.__name__, name, form, definitions)
        for name, form in schema["properties"].items()
        if name not in _OF_EVERY_OBJECT
    }
    if "observedGeneration" in own.get("status", {}).get("properties", ()):
        # Of one that nobody has written yet: kstatus takes an object that says nothing for done.
        own["status"]["default"] = {"observedGeneration": 0}
    made: Form = {
        "type": "object",
        "description": _one_line(str(model.__doc__)),
        "properties": {**_OF_EVERY_OBJECT, **own},
    }
    if required := [name for name in schema.get("required", ()) if name in own]:
        made["required"] = required
    return with_rules(made, RULES.get(model.__name__, {}).get("", {}))


def _field(model: str, name: str, form: Mapping[str, Any], definitions: Mapping[str, Any]) -> Form:
    """The schema of one field of a model, with its text and its rules."""
    made = structural(form, definitions)
    if text := form.get(_TEXT):
        made["description"] = text
    everywhere = CONDITIONS if name == "conditions" else {}
    return with_rules(made, RULES.get(model, {}).get(name, everywhere))


def structural(form: Mapping[str, Any], definitions: Mapping[str, Any], model: str = "") -> Form:
    """A JSON schema as a structural one: no references, each value of one type."""
    if "$ref" in form:
        name = str(form["$ref"]).rpartition("/")[2]
        around = {key: value for key, value in form.items() if key != "$ref"}
        return structural({**definitions[name], **around}, definitions, name)
    if "anyOf" in form:
        # A value that may be null is left out instead.
        (one,) = (item for item in form["anyOf"] if item.get("type") != "null")
        around = {name: value for name, value in form.items() if name != "anyOf"}
        return structural({**one, **around}, definitions, model)
    if not form.keys() & {"type", "const", "enum"}:
        return dict(_QUANTITY)
    made: Form = {name: form[name] for name in _KEPT if name in form}
    if form.get("type") == "array" and "maxLength" in made:
        # So pydantic calls it, where something is read before the list is.
        made["maxItems"] = made.pop("maxLength")
    if "const" in form:
        made["enum"] = [form["const"]]
    if "description" in form:
        made["description"] = _one_line(str(form["description"]))
    if form.get("default") and not isinstance(form["default"], (dict, list)):
        made["default"] = form["default"]
    return with_rules(
        {**made, **_inner(form, definitions, model)}, RULES.get(model, {}).get("", {})
    )


def _inner(form: Mapping[str, Any], definitions: Mapping[str, Any], model: str) -> Form:
    """What an object or an array consists of."""
    made: Form = {}
    if "properties" in form:
        made["properties"] = {
            name: _field(model, name, item, definitions)
            for name, item in form["properties"].items()
        }
    elif isinstance(form.get("additionalProperties"), Mapping):
        made["additionalProperties"] = structural(form["additionalProperties"], definitions)
    if form.get("required"):
        made["required"] = list(form["required"])
    if "items" in form:
        made["items"] = structural(form["items"], definitions)
    return made


def _one_line(text: str) -> str:
    """The promise of a docstring; what follows it is for those who read the code."""
    return " ".join(text.split("\n\n", maxsplit=1)[0].replace("`", "").split())


def field_texts(model: type[BaseModel]) -> Mapping[str, str]:
    """The text of each field that has one, by its alias, those of inherited fields too."""
    texts: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        texts |= _texts_of_module(owner.__module__).get(owner.__name__, {})
    aliases = {name: field.alias or name for name, field in model.model_fields.items()}
    return {aliases[name]: text for name, text in texts.items() if name in aliases}


@cache
def _texts_of_module(module: str) -> Mapping[str, Mapping[str, str]]:
    """The texts of all classes of a module, by class and attribute; none of who is not ours."""
    if not module.startswith(__name__.partition(".")[0]):
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: _texts_in(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _texts_in(node: ast.ClassDef) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for field, below in zip(node.body, node.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        match below:
            case ast.Expr(value=ast.Constant(value=str(text))):
                texts[field.target.id] = " ".join(text.split())
            case _:
                pass
    return texts
