"""Vectors of customization: what an object becomes where the properties are these."""

from __future__ import annotations

from relay.objects.customization import (
    CustomizationFailed,
    SentCustomizer,
    SentReplacement,
    customize,
    customizer_faults,
    expression_faults,
)
from relay.objects.expansion import Syntax
from schemas.objects.objects import ObjectKey
from schemas.values import codec
from tests.conformance.forms import Case, Json

ABOUT = (
    "An object, a Customizer (or null) and the properties of a destination: what it becomes there, "
    "or that it cannot be customized there (`fails`) or anywhere (`wrong`)."
)
GIVEN: dict[str, Json] = {
    "values": {"region": "emea", "clusterName": "s1", "%region": "label", "%clusterName": "s1"},
    "customizer": None,
}
TEMPLATES = {"control.kubestellar.io/expand-templates": "true"}
PARAMETERS = {"edge.kubestellar.io/expand-parameters": "true"}


def obj(text: str, annotations: Json, **more: Json) -> dict[str, Json]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "shop", "annotations": annotations},
        "data": {"text": text},
        **more,
    }


def cases() -> list[Case]:
    """All vectors, in the order of the file."""
    return [*_texts(), *_replacements()]


def _texts() -> list[Case]:
    listed = [
        ("a template", "in {{ .region }}", TEMPLATES, "made"),
        ("without blanks", "{{.region}}{{.region}}", TEMPLATES, "made"),
        ("with a line feed", "{{\n.region\t}}", TEMPLATES, "made"),
        ("a property that is not there", "{{ .till }}", TEMPLATES, "fails"),
        ("something else between braces", "{{ region }}", TEMPLATES, "wrong"),
        ("braces that do not end", "{{ .region", TEMPLATES, "wrong"),
        ("a parameter", "in %(region)", PARAMETERS, "made"),
        ("a parameter that is not there", "in %(till)", PARAMETERS, "made"),
        ("percents", "100%% of %(region), 5% off %", PARAMETERS, "made"),
        ("a parameter that does not end", "%(region", PARAMETERS, "made"),
        ("both", "%(clusterName) {{ .region }}", {**TEMPLATES, **PARAMETERS}, "made"),
        ("neither", "%(clusterName) {{ .region }}", {}, "made"),
    ]
    found = [
        Case(name, "B6", {"object": obj(text, said)}, {"verdict": verdict})
        for name, text, said, verdict in listed
    ]
    again = {"object": obj("{{ .a }}", TEMPLATES), "values": {"a": "{{ .b }}", "b": "x"}}
    name = {"object": {**obj("x", TEMPLATES), "kind": "{{ .region }}"}}
    return [
        *found,
        Case("what is put in is not looked at again", "B6", again, {"verdict": "made"}),
        Case("a kind that is customized", "B6", name, {"verdict": "fails"}),
    ]


def _replacements() -> list[Case]:
    spec = {
        "list": [{"name": "a", "v": 1}, {"name": "b", "v": 2}],
        "map": {"0": "zero", "x": [1, 2]},
    }

    def case(name: str, path: str, value: str, verdict: str = "made", **flags: bool) -> Case:
        customizer = {
            "name": "shop/c",
            "parameters": False,
            "templates": False,
            **flags,
            "replacements": [[path, value]],
        }
        given = {"object": obj("x", {}, spec=spec), "customizer": customizer}
        return Case(f"replace {name}", "B6", given, {"verdict": verdict})

    return [
        case("a field", "$.data.text", '"y"'),
        case("a field that is made", "$.data.more", '{"a": [1, null]}'),
        case("a field whose parent is missing", "$.none.more", "1"),
        case("an item", "$.spec.list[0].v", "7"),
        case("an item by a number after a dot", "$.spec.list.1.v", "7"),
        case("a field by a number after a dot", "$.spec.map.0", "7"),
        case("what a filter finds", "$.spec.list[?@.name == 'b'].v", "7"),
        case("all of a list", "$.spec.list[*].v", "7"),
        case("at any depth", "$..v", "7"),
        case("inside of what was replaced", "$.spec..[*]", "7"),
        case("with a parameter", "$.data.%(region)", '"%(clusterName)"', parameters=True),
        case("the whole object", "$", "1", "wrong"),
        case("by a path that is none", "$.a[", "1", "wrong"),
        case("by a function that is not there", "$.spec.list[?match(@.name, 'a')]", "1", "wrong"),
        case("by three descents", "$..a..b..c", "1", "wrong"),
        case("by what is no JSON", "$.data.text", "y", "wrong"),
        case("by no JSON number", "$.data.text", "NaN", "wrong"),
        case("the name", "$.metadata.name", '"b"', "fails"),
        case("a label by a number", "$.metadata.labels", '{"a": 1}', "fails"),
    ]


def answer(given: Json) -> Json:
    """What our program makes of one case."""
    said, customizer = given["customizer"], None
    if said is not None:
        replacements = tuple(SentReplacement(*each) for each in said["replacements"])
        customizer = SentCustomizer(
            said["name"], Syntax(said["parameters"], said["templates"]), replacements
        )
    faults = [*expression_faults(given["object"])]
    if customizer is not None:
        faults += customizer_faults(customizer)
    if faults:
        return {"verdict": "wrong"}
    try:
        made = customize(
            ObjectKey("", "configmaps", "shop", "a"),
            given["object"],
            customizer,
            given["values"],
            "s1",
        )
    except CustomizationFailed:
        return {"verdict": "fails"}
    plain = codec.canonical(made.object)
    return {"verdict": "made", "object": made.object, "address": codec.address("object", plain)}
