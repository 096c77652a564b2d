"""What people type means one thing: kinds, labels, spans of time, arguments of commands."""

import re

import pytest

from leafcast.ask.resource_names import ResourceKinds, UnknownKind
from leafcast.cli.options.common import span_seconds
from leafcast.cli.options.label_selectors import BadLabelText, read_label_selector
from leafcast.cli.resource_arguments import BadResourceArguments, ObjectSelection, read_arguments
from leafcast.show.durations import age_text, span_text
from schemas.crds.definitions import custom_resource_definitions
from schemas.values.durations import BadDuration, read_duration

OXEN = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "oxen.farm.example"},
    "spec": {
        "group": "farm.example",
        "scope": "Namespaced",
        "names": {"kind": "Ox", "plural": "oxen", "singular": "ox", "shortNames": ["bull"]},
    },
}


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("deploy", "deployments.apps"),
        ("Deployment", "deployments.apps"),
        ("deployments.apps", "deployments.apps"),
        ("deployments.v1.apps", "deployments.apps"),
        ("svc", "services"),
        ("cm", "configmaps"),
        ("ns", "namespaces"),
        ("sa", "serviceaccounts"),
        ("events", "events"),
        ("events.events.k8s.io", "events.events.k8s.io"),
        ("ing", "ingresses.networking.k8s.io"),
        ("epl", "edgeplacements.edge.kubestellar.io"),
        ("edgeplacement", "edgeplacements.edge.kubestellar.io"),
        ("SyncTargets", "synctargets.edge.kubestellar.io"),
        ("ox", "oxen.farm.example"),
        ("bull", "oxen.farm.example"),
        ("oxen.farm.example", "oxen.farm.example"),
    ],
)
def test_a_kind_goes_by_all_its_names(word, meant):
    assert ResourceKinds([OXEN]).resolve(word).qualified == meant


def test_our_kinds_go_by_the_short_names_of_their_definitions():
    for definition in custom_resource_definitions():
        names, group = definition["spec"]["names"], definition["spec"]["group"]
        for short in names["shortNames"]:
            kind = ResourceKinds().resolve(short)
            assert (kind.group, kind.resource) == (group, names["plural"])


def test_a_custom_name_never_hides_a_built_in_one():
    impostor = {**OXEN, "spec": {**OXEN["spec"], "names": {"kind": "Pod", "plural": "pods"}}}
    assert ResourceKinds([impostor]).resolve("pods").group == ""


def test_at_an_edge_a_plural_that_a_placement_brings_up_means_what_its_clause_says():
    clauses = [{"resources": ["*", "pods"]}, {"apiGroup": "farm.example", "resources": ["oxen"]}]
    raising = {"kind": "EdgePlacement", "metadata": {"name": "e"}, "spec": {"upsync": clauses}}
    kinds = ResourceKinds([{"apiVersion": "edge.kubestellar.io/v2alpha1", **raising}])
    assert kinds.resolve("oxen", guess=True).qualified == "oxen.farm.example"
    assert kinds.resolve("pods", guess=True).qualified == "pods"
    for word, guess in (("oxen", False), ("ox", True), ("*", True)):
        with pytest.raises(UnknownKind):
            kinds.resolve(word, guess=guess)


def test_kinds_without_a_definition_are_learnt_from_objects():
    obj = {"apiVersion": "x.example/v1", "kind": "Box", "metadata": {"name": "b", "namespace": "n"}}
    kind = ResourceKinds([obj]).resolve("boxes")
    assert (kind.kind, kind.namespaced) == ("Box", True)


@pytest.mark.parametrize(
    ("word", "remedy"), [("deplyments", 'did you mean "deployments'), ("frob", "name a kind")]
)
def test_an_unknown_kind_is_told_with_what_it_could_be(word, remedy):
    with pytest.raises(UnknownKind, match=f'have a resource type "{word}"; {remedy}'):
        ResourceKinds().resolve(word)


def test_arguments_mean_kinds_or_objects():
    kinds = ResourceKinds()
    deploy, svc = kinds.resolve("deploy"), kinds.resolve("svc")
    assert read_arguments(kinds, ["deploy,svc"]) == [ObjectSelection(deploy), ObjectSelection(svc)]
    assert read_arguments(kinds, ["deploy", "a", "b"]) == [ObjectSelection(deploy, ("a", "b"))]
    assert read_arguments(kinds, ["deploy/a", "svc/s", "deploy/b"]) == [
        ObjectSelection(deploy, ("a", "b")),
        ObjectSelection(svc, ("s",)),
    ]
    assert len(read_arguments(kinds, ["all"])) == 10


def test_a_synctarget_or_a_location_may_be_named_by_the_path_of_its_node():
    kinds = ResourceKinds(custom_resource_definitions())
    target, location = kinds.resolve("st"), kinds.resolve("loc")
    path = "/region-1/site-1"
    assert read_arguments(kinds, ["st", path]) == [ObjectSelection(target, (path,))]
    assert read_arguments(kinds, [f"loc/{path}"]) == [ObjectSelection(location, (path,))]


@pytest.mark.parametrize(
    "arguments",
    [[], ["deploy/a", "b"], ["deploy/"], ["deploy/a/b"], ["deploy", "/a"], ["deploy//a"]],
)
def test_arguments_that_name_nothing_are_refused(arguments):
    with pytest.raises(BadResourceArguments):
        read_arguments(ResourceKinds(), arguments)


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("", {}, None),
        ("a=b", {"a": "b"}, {"a": "c"}),
        ("a == b , c!=d", {"a": "b"}, {"a": "b", "c": "d"}),
        ("a in (x, y),b", {"a": "y", "b": ""}, {"a": "z", "b": ""}),
        ("a notin (x,y)", {}, {"a": "x"}),
        ("!a", {}, {"a": ""}),
        ("a=", {"a": ""}, {"a": "b"}),
        ("example.com/tier=web", {"example.com/tier": "web"}, {}),
    ],
)
def test_labels_are_selected_as_kubectl_does(text, yes, no):
    selector = read_label_selector(text)
    assert selector.matches(yes)
    assert no is None or not selector.matches(no)


@pytest.mark.parametrize("text", ["a=b=c", "a in x", "=b", "a,,b", "a=b c", "a>3", "A B", "a=(x)"])
def test_labels_that_cannot_be_read_are_told_by_part(text):
    with pytest.raises(BadLabelText):
        read_label_selector(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60s", 60),
        ("2m", 120),
        ("1h30m", 5400),
        ("1.5s", 1.5),
        ("250ms", 0.25),
        ("7d", 604_800),
        ("1d12h", 129_600),
        ("0", 0),
        ("0s", 0),
    ],
)
def test_durations_are_read(text, seconds):
    assert read_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "x", "-1s", "-1", "7", "1.5", "nan", "inf", "1s2", "s", "1 h", "1w"]
)
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(BadDuration):
        read_duration(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0s", '"0s" is not between 1s and 36500d'),
        ("36501d", '"36501d" is not between 1s and 36500d'),
        ("7", '"7" is not a duration; write it as in 60s, 2m, 1h30m or 7d'),
    ],
)
def test_a_span_that_is_refused_says_why_in_one_sentence(text, words):
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        span_seconds(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0.9, "0s"),
        (119, "119s"),
        (120, "2m"),
        (130, "2m10s"),
        (601, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (9 * 3600 + 60, "9h"),
        (50 * 3600, "2d2h"),
        (30 * 86400, "30d"),
        (800 * 86400, "2y70d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_ages_have_two_units_at_most(seconds, text):
    assert span_text(seconds) == text


def test_an_age_that_cannot_be_told_says_so():
    assert age_text(None, 0) == age_text("soon", 0) == "<unknown>"
    assert age_text("1970-01-01T00:00:10Z", 25_000) == "15s"
