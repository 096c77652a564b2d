"""The definitions of our kinds are structural, as a Kubernetes API server demands."""

import re

import pytest

from schemas.api.denatured import Denatured
from schemas.api.inventory import Location, SyncTarget
from schemas.api.placement import EdgePlacement, PlacedUpsyncSet, SinglePlacementSlice, UpsyncSet
from schemas.api.shared import ApiValue
from schemas.crds.definitions import custom_resource_definitions, field_texts
from schemas.crds.rules import RULES
from schemas.objects.objects import BUILT_IN_KINDS
from schemas.objects.yaml_documents import read_documents
from schemas.objects.yaml_writing import write_yaml

DEFINITIONS = {crd["spec"]["names"]["kind"]: crd for crd in custom_resource_definitions()}
FORBIDDEN = {"$ref", "$defs", "title", "const", "anyOf", "oneOf", "allOf", "definitions"}


def models(of):
    """All models that are made of this one, by name."""
    for model in of.__subclasses__():
        yield model.__name__, model
        yield from models(model)


MODELS = dict(models(ApiValue))


def schema_of(kind):
    return DEFINITIONS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def parts(schema, path=""):
    """Every schema within a schema."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from parts(inner, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from parts(schema[name], f"{path}.{name}")


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_every_schema_is_structural(kind):
    for path, part in parts(schema_of(kind)):
        if part.get("x-kubernetes-int-or-string"):
            assert "type" not in part, path
            continue
        if part.get("x-kubernetes-preserve-unknown-fields"):
            # Any value at all.
            continue
        assert "type" in part, path
        assert not FORBIDDEN & part.keys(), path
        assert not {"properties", "additionalProperties"} <= part.keys(), path
        assert set(part.get("required", ())) <= part.get("properties", {}).keys(), path


@pytest.mark.parametrize(
    "model", [EdgePlacement, Location, SinglePlacementSlice, SyncTarget, Denatured]
)
def test_every_field_of_the_model_is_in_the_schema(model):
    properties = schema_of(model.__name__)["properties"]
    assert {field.alias for field in model.model_fields.values()} == properties.keys()


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_names_agree_with_the_kinds_that_the_program_knows(kind):
    spec = DEFINITIONS[kind]["spec"]
    known = BUILT_IN_KINDS.lookup(spec["group"], kind)
    assert known is not None
    assert known.resource == spec["names"]["plural"]
    assert known.namespaced == (spec["scope"] == "Namespaced")
    assert DEFINITIONS[kind]["metadata"]["name"] == f"{known.resource}.{spec['group']}"


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_every_field_is_explained(kind):
    for path, part in parts(schema_of(kind)):
        for name, inner in part.get("properties", {}).items():
            standard = not path and name in {"apiVersion", "kind", "metadata"}
            assert standard or inner.get("description"), f"{path}.{name}"


def test_no_rule_is_of_a_field_that_is_not_there():
    fields = {
        name: {f.alias for f in model.model_fields.values()} for name, model in MODELS.items()
    }
    assert RULES.keys() <= fields.keys()
    for model, rules in RULES.items():
        assert rules.keys() - {""} <= fields[model], model


def test_a_field_is_explained_by_the_docstring_under_it_in_its_own_model_or_in_a_parent():
    texts = field_texts(PlacedUpsyncSet)
    assert texts["names"] == field_texts(UpsyncSet)["names"]
    assert texts["names"] == "Names of the objects; * for all. None if empty."
    assert texts["statusCollectors"].startswith("Names of StatusCollectors with a source")


def test_an_inventory_space_gets_no_placements_and_a_workload_space_no_clusters():
    def kinds(**wanted):
        return {crd["spec"]["names"]["kind"] for crd in custom_resource_definitions(**wanted)}

    assert kinds(workloads=False) == {"Location", "SyncTarget"}
    assert kinds(inventory=False) == set(DEFINITIONS) - {"Location", "SyncTarget"}


def test_what_has_a_status_has_the_subresource():
    for kind, crd in DEFINITIONS.items():
        has = "status" in schema_of(kind)["properties"]
        for version in crd["spec"]["versions"]:
            assert (version.get("subresources") == {"status": {}}) == has


def test_printed_columns_read_fields_that_are_there():
    for kind, crd in DEFINITIONS.items():
        for column in crd["spec"]["versions"][0]["additionalPrinterColumns"]:
            first, _, second = column["jsonPath"].lstrip(".").partition(".")
            fields = schema_of(kind)["properties"][first]
            if first != "metadata":
                assert re.split(r"[.\[]", second)[0] in fields["properties"], column


def test_the_text_reads_back_as_yaml():
    for crd in DEFINITIONS.values():
        (document,) = read_documents(write_yaml(crd), "crds")
        assert document.root == crd
