"""Our API kinds are read strictly: defaults as documented, every fault named by path and remedy."""

import pytest
from pydantic import ValidationError

from schemas.api.inventory import Location, SyncTarget
from schemas.api.parsing import parse_kind
from schemas.api.placement import EdgePlacement, EdgePlacementStatus, SinglePlacementSlice
from schemas.objects.selectors import LabelSelector
from schemas.values.faults import InvalidObject
from schemas.values.identity import NodePath

V = "edge.kubestellar.io/v2alpha1"
SYNC_TARGETS = {"group": "edge.kubestellar.io", "version": "v2alpha1", "resource": "synctargets"}


def an_object(kind, version=V, **fields):
    metadata = {"name": "shop", **fields.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def placement(**spec):
    return an_object("EdgePlacement", spec=spec)


def clause(**fields):
    return placement(downsync=[fields])


def location(**spec):
    return an_object("Location", spec={"resource": SYNC_TARGETS, **spec})


def sync_target(path=None, **fields):
    annotations = {} if path is None else {"annotations": {"leafcast.io/path": path}}
    return an_object("SyncTarget", metadata=annotations, **fields)


def faults_of(obj):
    with pytest.raises(InvalidObject) as refused:
        parse_kind(obj)
    return {fault.path: str(fault) for fault in refused.value.faults}


@pytest.mark.parametrize(
    "obj",
    [
        an_object("Deployment", "apps/v1"),
        an_object("Customiser"),
        an_object("EdgePlacement", "example.com/v2alpha1"),
        an_object("EdgePlacement", "v2alpha1"),
        {},
        {"kind": ["EdgePlacement"], "apiVersion": V},
    ],
)
def test_other_kinds_are_left_to_others(obj):
    assert parse_kind(obj) is None


def test_a_placement_is_read_with_all_its_fields():
    parsed = parse_kind(
        placement(
            locationSelectors=[{"matchLabels": {"env": "prod"}}, {}],
            wantSingletonReportedState=True,
            downsync=[
                {
                    "apiGroup": "apps",
                    "resources": ["deployments"],
                    "namespaces": ["shop"],
                    "namespaceSelectors": [{"matchLabels": {"a": "b"}}],
                    "objectNames": ["*"],
                    "labelSelectors": [{}],
                    "createOnly": True,
                    "statusCollectors": ["ready"],
                    "wantSingletonReportedState": True,
                    "wantMultiWECReportedState": True,
                }
            ],
            upsync=[{"apiGroup": "x.io", "resources": ["*"], "namespaces": ["*"], "names": ["*"]}],
        )
    )

    assert isinstance(parsed, EdgePlacement)
    assert parsed.name == "shop"
    assert parsed.spec.location_selectors[1] == LabelSelector()
    (down,), (up,) = parsed.spec.downsync, parsed.spec.upsync
    assert (down.api_group, down.resources, down.status_collectors) == (
        "apps",
        ("deployments",),
        ("ready",),
    )
    assert down.create_only
    assert down.want_singleton_reported_state
    assert down.want_multi_wec_reported_state
    assert parsed.spec.want_singleton_reported_state
    assert (up.api_group, up.resources, up.namespaces, up.names) == ("x.io", ("*",), ("*",), ("*",))


def test_defaults_are_those_of_the_api():
    parsed = parse_kind(placement(downsync=[{"resources": ["pods"]}], upsync=[{"resources": []}]))

    assert parsed.spec.location_selectors == ()
    assert parsed.spec.want_singleton_reported_state is False
    (down,), (up,) = parsed.spec.downsync, parsed.spec.upsync
    assert down.api_group is None
    assert (down.namespaces, down.object_names, down.label_selectors) == ((), (), ())
    assert (down.create_only, down.status_collectors) == (False, ())
    assert (up.api_group, up.namespaces, up.names) == ("", (), ())
    assert parse_kind(an_object("EdgePlacement")).spec.downsync == ()

    target = parse_kind(sync_target())
    assert target.spec.unschedulable is False
    assert [item.export for item in target.spec.supported_api_exports] == ["kubernetes"]
    assert target.path is None


def test_null_means_not_given():
    parsed = parse_kind(
        placement(locationSelectors=None, downsync=[{"apiGroup": None, "resources": ["pods"]}])
    )
    assert parsed.spec.downsync[0].api_group is None
    assert parse_kind(location(instanceSelector=None)).spec.instance_selector is None


def test_a_nil_instance_selector_differs_from_an_empty_one():
    nothing, everything = parse_kind(location()), parse_kind(location(instanceSelector={}))

    assert isinstance(nothing, Location)
    assert nothing.spec.instance_selector is None
    assert everything.spec.instance_selector == LabelSelector()
    assert "instanceSelector" not in nothing.to_mapping()["spec"]
    assert everything.to_mapping()["spec"]["instanceSelector"] == {}


def test_a_slice_lists_destinations():
    one = {"cluster": "c", "locationName": "l", "syncTargetName": "s", "syncTargetUID": "u"}
    parsed = parse_kind(an_object("SinglePlacementSlice", destinations=[one]))

    assert isinstance(parsed, SinglePlacementSlice)
    assert parsed.destinations[0].sync_target_uid == "u"
    assert parsed.to_mapping()["destinations"] == [one]


def test_status_is_read_and_written_as_given():
    status = {
        "specGeneration": 3,
        "matchingLocationCount": 2,
        "conditions": [{"type": "Synced", "status": "True", "reason": "Done", "message": ""}],
        "destinations": 6,
        "synced": 0,
        "healthy": 5,
        "failing": 1,
        "unreachable": 0,
        "complete": False,
        "errors": ["no"],
    }
    assert parse_kind(an_object("EdgePlacement", status=status)).to_mapping()["status"] == status

    made = EdgePlacementStatus(spec_generation=1, synced=0)
    assert made.to_mapping() == {"specGeneration": 1, "synced": 0}


def test_other_metadata_of_kubernetes_is_kept():
    managed = [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]
    obj = an_object("EdgePlacement", metadata={"managedFields": managed, "uid": "u-1"}, spec={})

    assert parse_kind(obj).metadata.uid == "u-1"
    assert parse_kind(obj).to_mapping() == obj


def test_a_sync_target_hangs_where_its_annotation_says():
    parsed = parse_kind(sync_target("/emea/store-1"))

    assert isinstance(parsed, SyncTarget)
    assert parsed.path == NodePath(("emea", "store-1"))


def test_values_are_frozen():
    parsed = parse_kind(placement())
    with pytest.raises(ValidationError):
        parsed.spec = None


@pytest.mark.parametrize(
    ("obj", "path", "said"),
    [
        (clause(resourcse=["x"]), "spec.downsync[0].resourcse", 'did you mean "resources"?'),
        (clause(create_only=True), "spec.downsync[0].create_only", 'did you mean "createOnly"?'),
        (
            clause(objectSelectors=[{}]),
            "spec.downsync[0].objectSelectors",
            'did you mean "labelSelectors"?',
        ),
        (
            placement(clusterSelectors=[{}]),
            "spec.clusterSelectors",
            'did you mean "locationSelectors"?',
        ),
        (placement(zzz=1), "spec.zzz", "use cleaning, downsync, locationSelectors"),
        (
            placement(createOnly=True),
            "spec.createOnly",
            "it stands in each of downsync: write it there",
        ),
        (
            {
                "apiVersion": "control.kubestellar.io/v1alpha1",
                "kind": "BindingPolicy",
                "metadata": {"name": "shop"},
                "spec": {"wantSingletonReportedState": True},
            },
            "spec.wantSingletonReportedState",
            "it stands in each of downsync: write it there",
        ),
        (
            placement(upsync=[{"resources": ["x"], "objectNames": []}]),
            "spec.upsync[0].objectNames",
            "unknown field",
        ),
        (an_object("EdgePlacement", sepc={}), "sepc", 'did you mean "spec"?'),
        (
            location(resource={**SYNC_TARGETS, "kind": "x"}),
            "spec.resource.kind",
            "unknown field",
        ),
        (
            an_object("EdgePlacement", status={"conditions": [{"kind": "x"}]}),
            "status.conditions[0].kind",
            "unknown field",
        ),
    ],
)
def test_an_unknown_field_is_reported_by_its_path(obj, path, said):
    fault = faults_of(obj)[path]
    assert "unknown field" in fault
    assert said in fault


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"resources": []},
        {"resources": ["*"], "namespaces": ["*"], "objectNames": ["*"]},
        {"namespaceSelectors": [{}], "labelSelectors": [{}]},
        {"labelSelectors": [{"matchLabels": {"a": "b"}}, {}]},
        {"resources": ["*", "pods"]},
        {"createOnly": True, "statusCollectors": ["a"]},
    ],
)
def test_a_downsync_clause_that_means_every_object_is_refused(fields):
    (fault,) = faults_of(clause(**fields)).values()
    assert fault.startswith("spec.downsync[0]: no field tells objects apart")
    assert "narrow apiGroup, resources," in fault


@pytest.mark.parametrize(
    "fields",
    [
        {"apiGroup": ""},
        {"apiGroup": "apps", "resources": ["*"]},
        {"resources": ["pods"]},
        {"namespaces": ["shop"], "labelSelectors": [{}]},
        {"namespaceSelectors": [{"matchLabels": {"a": "b"}}]},
        {"objectNames": ["system:node"]},
        {"labelSelectors": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]},
    ],
)
def test_one_field_that_discriminates_is_enough(fields):
    assert parse_kind(clause(**fields)).to_mapping() == clause(**fields)


@pytest.mark.parametrize(
    ("obj", "path", "said"),
    [
        (
            placement(
                locationSelectors=[
                    {
                        "matchExpressions": [
                            {"key": "a", "operator": "Exists"},
                            {"key": "b", "operator": "Inn"},
                        ]
                    }
                ]
            ),
            "spec.locationSelectors[0].matchExpressions[1].operator",
            '"Inn" is not an operator; use In, NotIn, Exists or DoesNotExist',
        ),
        (placement(locationSelectors=["x"]), "spec.locationSelectors[0]", "not a label selector"),
        (
            location(instanceSelector={"matchLabels": {"a": 1}}),
            "spec.instanceSelector.matchLabels[a]",
            "1 is not a string; quote it",
        ),
        (clause(resources=["Pod"]), "spec.downsync[0].resources[0]", '"Pod" is not a resource'),
        (clause(apiGroup="*"), "spec.downsync[0].apiGroup", '"*" is not an API group'),
        (clause(namespaces=["A"]), "spec.downsync[0].namespaces[0]", '"A" is not a DNS label'),
        (clause(objectNames=["a/b"]), "spec.downsync[0].objectNames[0]", "not a path segment"),
        (
            clause(apiGroup="", statusCollectors=["a b"]),
            "spec.downsync[0].statusCollectors[0]",
            "name a StatusCollector",
        ),
        (clause(resources="pods"), "spec.downsync[0].resources", '"pods" is not a list'),
        (clause(createOnly="yes"), "spec.downsync[0].createOnly", '"yes" is not a boolean'),
        (clause(resources=[1]), "spec.downsync[0].resources[0]", "1 is not a string; quote it"),
        (placement(upsync=[{}]), "spec.upsync[0].resources", "missing"),
        (an_object("EdgePlacement", spec=[]), "spec", "a list is not a mapping"),
        (
            an_object("EdgePlacement", status={"specGeneration": 2**31}),
            "status.specGeneration",
            "out of bounds",
        ),
        (an_object("EdgePlacement", status={"synced": "1"}), "status.synced", "not an integer"),
        (an_object("Location"), "spec", "missing"),
        (
            location(resource={**SYNC_TARGETS, "resource": "pods"}),
            "spec.resource.resource",
            '"pods" is not allowed; write synctargets',
        ),
        (
            location(resource={**SYNC_TARGETS, "version": "v1"}),
            "spec.resource.version",
            "write v2alpha1",
        ),
        (
            location(availableSelectorLabels=[{"key": "a b", "values": ["x"]}]),
            "spec.availableSelectorLabels[0].key",
            "is not a label key",
        ),
        (
            location(availableSelectorLabels=[{"key": "a", "values": []}]),
            "spec.availableSelectorLabels[0].values",
            "empty; list at least one",
        ),
        (
            location(availableSelectorLabels=[{"key": "a", "values": ["x"]}] * 2),
            "spec.availableSelectorLabels[1].key",
            '"a" is listed twice',
        ),
        (
            an_object("SyncTarget", status={"syncedResources": [{"resource": "a"}]}),
            "status.syncedResources[0].versions",
            "missing",
        ),
        (
            an_object("SyncTarget", status={"capacity": {"cpu": True}}),
            "status.capacity.cpu",
            "not a quantity",
        ),
        (an_object("EdgePlacement", metadata={"uid": 3}), "metadata.uid", "3 is not a string"),
        (
            an_object("EdgePlacement", metadata={"labels": {"a": 1}}),
            "metadata.labels[a]",
            "1 is not a string; quote it",
        ),
        (an_object("EdgePlacement", metadata={"name": "A"}), "metadata.name", '"A" is not a DNS'),
        (
            an_object("EdgePlacement", "edge.kubestellar.io/v1"),
            "apiVersion",
            'version "v1" is not served; write edge.kubestellar.io/v2alpha1',
        ),
    ],
)
def test_a_bad_field_is_refused_with_path_and_remedy(obj, path, said):
    faults = faults_of(obj)
    assert list(faults) == [path]
    assert said in faults[path]


@pytest.mark.parametrize("path", ["", "emea", "/", "/Emea", "/a//b", "/a/", "/a_b", "/a.b", "//"])
def test_a_path_that_names_no_node_is_refused(path):
    (fault,) = faults_of(sync_target(path)).values()
    assert fault.startswith("metadata.annotations[leafcast.io/path]: ")
    assert "as in /emea/store-1" in fault


def test_all_faults_are_reported_at_once_and_name_the_object():
    with pytest.raises(InvalidObject) as refused:
        parse_kind(
            an_object(
                "EdgePlacement",
                metadata={"labels": {"a": 1}},
                spec={"downsync": [{}, {"resourcse": []}]},
            )
        )

    assert (refused.value.kind, refused.value.name) == ("EdgePlacement", "shop")
    assert [fault.path for fault in refused.value.faults] == [
        "metadata.labels[a]",
        "spec.downsync[0]",
        "spec.downsync[1].resourcse",
    ]
    for line in str(refused.value).splitlines():
        assert line.startswith('EdgePlacement "shop": ')


@pytest.mark.parametrize(
    ("of", "path"),
    [
        (lambda text: an_object("EdgePlacement", metadata={"name": text}), "metadata.name"),
        (lambda text: clause(apiGroup=text), "spec.downsync[0].apiGroup"),
        (lambda text: placement(**{text: 1}), "spec.?"),
        (
            lambda text: an_object(
                "StatusCollector", "control.kubestellar.io/v1alpha1", spec={"filter": text}
            ),
            "spec.filter",
        ),
        (
            lambda text: an_object("Customizer", replacements=[{"path": "$.a", "value": text}]),
            "replacements[0].value",
        ),
        (
            lambda text: an_object("Denatured", "leafcast.io/v1alpha1", spec={"template": [text]}),
            "spec.template[0]",
        ),
    ],
)
def test_a_text_that_has_no_form_in_utf_8_is_refused_where_it_stands(of, path):
    with pytest.raises(InvalidObject) as refused:
        parse_kind(of("\ud800"))
    assert path in {fault.path for fault in refused.value.faults}
    assert "half of a surrogate pair" in str(refused.value)
    str(refused.value).encode()
