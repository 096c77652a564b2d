"""A syncer on a real API server: what was created anew at the source, and list items that moved."""

import asyncio
import copy
import json

import pytest

from schemas.objects.objects import ObjectKey
from schemas.objects.source_objects import SourceObject
from tests.awaiting import eventually
from tests.contract.spaces import config_map, deployment
from tests.kube.bed import kubectl

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(120)]

FIRST = SourceObject("hub", "u1", 1_000, 10)
SECOND = SourceObject("hub", "u2", 1_000, 20)
"""Created within the same second as the first."""


async def patched(server, place, what, *operations):
    form = json.dumps([dict(zip(("op", "path", "value"), one, strict=False)) for one in operations])
    await kubectl(server, "-n", place, "patch", what, "--type=json", "-p", form)


async def failing(bench, key, word):
    await bench.until(lambda: key in bench.said and word in bench.said[key].error)
    return bench.said[key].error


def named(kind, name, place, version="v1", **fields):
    metadata = {"name": name} | ({"namespace": place} if place else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def binding(place, role):
    group = "rbac.authorization.k8s.io"
    ref = {"apiGroup": group, "kind": "Role", "name": role}
    subjects = [{"apiGroup": group, "kind": "User", "name": "me"}]
    return named("RoleBinding", "b", place, f"{group}/v1", roleRef=ref, subjects=subjects)


def for_ever(place, value):
    return {**config_map(namespace=place, value=value), "immutable": True}


def secret_for_ever(place, value):
    return named("Secret", "s", place, stringData={"a": value}, immutable=True)


def typed_secret(place, kind):
    return named("Secret", "s", place, type=f"example.com/{kind}", stringData={"a": "b"})


def job(place, image):
    container = {"name": "m", "image": image}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return named("Job", "j", place, "batch/v1", spec={"template": template})


def storage_class(place, by):
    kind = "storage.k8s.io/v1"
    return named("StorageClass", place, "", kind, provisioner=f"example.com/{by}")


def selecting(place, app):
    obj = deployment(namespace=place)
    obj["spec"]["selector"] = {"matchLabels": {"app": app}}
    obj["spec"]["template"]["metadata"]["labels"] = {"app": app}
    return obj


def stateful(place, service):
    labels = {"app": "db"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
    spec = {"serviceName": service, "selector": {"matchLabels": labels}, "template": pod}
    return named("StatefulSet", "db", place, "apps/v1", spec=spec)


def service(place, by):
    spec = {"type": "LoadBalancer", "loadBalancerClass": f"example.com/{by}"}
    return named("Service", "web", place, spec={**spec, "ports": [{"name": "http", "port": 80}]})


MADE = [
    *(binding, for_ever, secret_for_ever, typed_secret, job),
    *(storage_class, selecting, stateful, service),
]


@pytest.mark.parametrize("made", MADE)
async def test_what_was_created_anew_at_the_source_replaces_what_cannot_be_changed(
    bench, place, made
):
    async with bench.running():
        bench.want(made(place, "one"), source=FIRST)
        (key,) = bench.wanted
        await bench.settled()
        uid = bench.done.of(key).uid
        bench.want(made(place, "one"), source=SECOND)
        await bench.settled()
        assert bench.done.of(key).uid == uid
        bench.want(made(place, "other"), source=SECOND)
        await bench.settled()
        done = bench.done.of(key)
        assert done.uid != uid
        assert (done.made, done.made_from) == (True, SECOND)
        assert not bench.said[key].error


NO_SUCCESSORS = [
    FIRST,
    SourceObject("hub", "u0", 999, 30),
    SourceObject("another hub", "u2", 1_000, 20),
    None,
]


@pytest.mark.parametrize("source", NO_SUCCESSORS)
async def test_the_same_an_older_another_spaces_or_an_unknown_source_object_replaces_nothing(
    bench, place, source
):
    async with bench.running():
        bench.want(for_ever(place, "one"), source=FIRST)
        (key,) = bench.wanted
        await bench.settled()
        uid = bench.done.of(key).uid
        bench.want(for_ever(place, "other"), source=source)
        said = await failing(bench, key, "immutable")
        assert said.endswith("leafcast.io/on-immutable: recreate")
        assert (await bench.space.get(key))["metadata"]["uid"] == uid


async def test_what_can_be_changed_is_changed_and_not_replaced(bench, place):
    async with bench.running():
        bench.want(deployment(namespace=place, replicas=1), source=FIRST)
        (key,) = bench.wanted
        await bench.settled()
        uid = bench.done.of(key).uid
        bench.want(deployment(namespace=place, replicas=2), source=SECOND)
        await bench.settled()
        assert (await bench.space.get(key))["metadata"]["uid"] == uid
        assert bench.done.of(key).made_from == FIRST


async def test_claims_are_never_replaced_and_say_what_to_do(bench, server, place):
    def claim(mode):
        spec = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}
        return named("PersistentVolumeClaim", "data", place, spec=spec)

    async with bench.running():
        bench.want(claim("ReadWriteOnce"), source=FIRST)
        (key,) = bench.wanted
        await bench.settled()
        bench.want(claim("ReadWriteMany"), source=SECOND)
        said = await failing(bench, key, "never recreated")
        assert said.endswith("undo the change, or delete it there")
        assert (await bench.space.get(key))["metadata"]["uid"] == bench.done.of(key).uid
    unprotected = json.dumps({"metadata": {"finalizers": None}})
    await kubectl(server, "-n", place, "patch", "pvc", "data", "--type=merge", "-p", unprotected)


async def test_nothing_is_deleted_for_a_new_object_that_would_be_refused_as_well(bench, place):
    worse = selecting(place, "other")
    worse["spec"]["template"]["spec"]["containers"][0]["name"] = "no name"
    async with bench.running():
        bench.want(selecting(place, "one"), source=FIRST)
        (key,) = bench.wanted
        await bench.settled()
        uid = bench.done.of(key).uid
        bench.want(worse, source=SECOND)
        await failing(bench, key, "Invalid")
        assert (await bench.space.get(key))["metadata"]["uid"] == uid


async def test_a_rule_in_its_authors_own_words_is_told_by_a_trial(bench, server, place):
    plural = f"owls{place[2:6]}"
    rule = {"rule": "self == oldSelf", "message": "an owl keeps its tree"}
    tree = {"type": "string", "x-kubernetes-validations": [rule]}
    schema = {"type": "object", "properties": {"tree": tree}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": f"Owl{place[2:6]}"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    group = "apiextensions.k8s.io/v1"
    crd = named("CustomResourceDefinition", f"{plural}.example.com", "", group, spec=spec)
    await kubectl(server, "apply", "-f", "-", stdin=json.dumps(crd))
    await asyncio.to_thread(server.await_definitions)
    key = ObjectKey("example.com", plural, place, "one")

    def owl(tree):
        return named(names["kind"], "one", place, "example.com/v1", tree=tree)

    async with bench.running():
        bench.want_keyed({key: owl("oak")}, source=FIRST)
        await bench.settled()
        uid = bench.done.of(key).uid
        bench.want_keyed({key: owl("elm")}, source=FIRST)
        await failing(bench, key, "an owl keeps its tree")
        bench.want_keyed({key: owl("elm")}, source=SECOND)
        await bench.settled()
        assert bench.done.of(key).uid != uid


async def test_a_policy_that_denies_changes_is_passed_by_only_if_it_tells_of_an_immutable_field(
    bench, server, place
):
    group = "admissionregistration.k8s.io/v1"
    operations = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"]}
    rules = [{**operations, "resources": ["configmaps"]}]
    data = "object.metadata.namespace != '{}' || object.data == oldObject.data"
    for name, message in ((f"{place}-a", "frozen until Monday"), (f"{place}-b", "immutable")):
        where = place if message == "immutable" else f"{place}-2"
        denial = [{"expression": data.format(where), "message": message}]
        spec = {"matchConstraints": {"resourceRules": rules}, "validations": denial}
        policy = named("ValidatingAdmissionPolicy", name, "", group, spec=spec)
        bound = {"policyName": name, "validationActions": ["Deny"]}
        binding = named("ValidatingAdmissionPolicyBinding", name, "", group, spec=bound)
        for obj in (policy, binding):
            await kubectl(server, "apply", "-f", "-", stdin=json.dumps(obj))
    await kubectl(server, "create", "namespace", f"{place}-2")
    both = {where: config_map("kept", where, a="1") for where in (place, f"{place}-2")}
    for obj in both.values():
        await kubectl(server, "apply", "-f", "-", stdin=json.dumps(obj))

    async def acts(where):
        said = json.dumps(config_map("kept", where, a="2"))
        how = ("apply", "--dry-run=server", "-f", "-")
        return (await asyncio.to_thread(server.kubectl, *how, stdin=said, check=False))[0]

    for where in both:
        await eventually(lambda where=where: acts(where), "the policy does not act", every=0.2)
    async with bench.running():
        bench.want(*(config_map(namespace=where, a="1") for where in both), source=FIRST)
        mine, frozen = bench.wanted
        await bench.settled()
        before = {key: bench.done.of(key).uid for key in bench.wanted}
        bench.want(*(config_map(namespace=where, a="2") for where in both), source=SECOND)
        await failing(bench, frozen, "frozen until Monday")
        await bench.until(lambda: bench.said[mine].address == bench.address(mine))
        assert bench.done.of(mine).uid != before[mine]
        assert bench.done.of(frozen).uid == before[frozen]
    await kubectl(server, "delete", "validatingadmissionpolicybinding", f"{place}-a", f"{place}-b")


# Items of lists.


def web_service(place, *ports):
    spec = {"selector": {"app": "web"}, "ports": list(ports) or [dict(HTTP)]}
    return named("Service", "web", place, spec=spec)


HTTP = {"name": "http", "port": 80, "targetPort": 8080}


async def ports_of(bench, key):
    live = await bench.space.get(key)
    return {(it["name"], it["port"]) for it in live["spec"]["ports"]}


async def test_a_port_that_was_renumbered_goes_back_with_its_node_port(bench, server, place):
    obj = web_service(place)
    obj["spec"]["type"] = "NodePort"
    async with bench.running():
        bench.want(obj)
        (key,) = bench.wanted
        await bench.settled()
        before = (await bench.space.get(key))["spec"]["ports"]
        await patched(server, place, "svc/web", ("replace", "/spec/ports/0/port", 83))
        await eventually(lambda: _ports(bench, key, {("http", 80)}), "not put back")
        await bench.settled()
        assert (await bench.space.get(key))["spec"]["ports"] == before
        await bench.until(lambda: bench.said[key].repaired)
        told = bench.said[key].repaired
        assert (told.field, told.manager) == (
            'spec.ports[port=83,protocol="TCP"]',
            "kubectl-patch",
        )
        # Nobody but us holds it: it goes when it is wanted no more.
        bench.want(web_service(place, {"name": "https", "port": 443}))
        await eventually(lambda: _ports(bench, key, {("https", 443)}), "the old one stays")


async def _ports(bench, key, expected):
    return await ports_of(bench, key) == expected


async def test_what_changes_meanwhile_arrives_as_well(bench, server, place):
    async with bench.running():
        bench.want(web_service(place))
        (key,) = bench.wanted
        await bench.settled()
    await patched(server, place, "svc/web", ("replace", "/spec/ports/0/port", 83))
    async with bench.running():
        bench.want(web_service(place, {**HTTP, "targetPort": 9090}))
        await bench.settled()
        assert not bench.said[key].error
        live = await bench.space.get(key)
        assert [(it["port"], it["targetPort"]) for it in live["spec"]["ports"]] == [(80, 9090)]
    await patched(server, place, "svc/web", ("replace", "/spec/ports/0/port", 83))
    async with bench.running():
        bench.want(web_service(place, {**HTTP, "port": 81}))
        await bench.settled()
        assert await _ports(bench, key, {("http", 81)})


async def test_what_an_edge_adds_stays_where_it_does_not_collide(bench, server, place):
    mine = {"name": "metrics", "port": 9100, "protocol": "TCP", "targetPort": 9100}
    async with bench.running():
        bench.want(web_service(place))
        (key,) = bench.wanted
        await bench.settled()
        changes = [("add", "/spec/ports/-", mine), ("replace", "/spec/ports/0/port", 83)]
        await patched(server, place, "svc/web", *changes)
        expected = {("http", 80), ("metrics", 9100)}
        await eventually(lambda: _ports(bench, key, expected), "not put back")
        await bench.settled()


async def test_an_item_of_anothers_in_the_way_is_named_and_taken_only_by_force(
    bench, server, place
):
    https = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 8443}
    async with bench.running():
        bench.want(web_service(place))
        (key,) = bench.wanted
        await bench.settled()
        await patched(server, place, "svc/web", ("add", "/spec/ports/-", https))
        wanted = web_service(place, dict(HTTP), {"name": "https", "port": 8443})
        bench.want(wanted)
        said = await failing(bench, key, "Duplicate value")
        assert "kubectl-patch" in said
        assert said.endswith("annotate the object with leafcast.io/conflicts: force")
        assert await _ports(bench, key, {("http", 80), ("https", 443)})
        forced = copy.deepcopy(wanted)
        forced["metadata"]["annotations"] = {"leafcast.io/conflicts": "force"}
        bench.want(forced)
        await eventually(lambda: _ports(bench, key, {("http", 80), ("https", 8443)}), "not taken")
        await bench.settled()


async def test_an_item_that_we_applied_goes_though_somebody_holds_it_too(bench, server, place):
    async with bench.running():
        bench.want(web_service(place))
        (key,) = bench.wanted
        await bench.settled()
        same = json.dumps(web_service(place))
        await kubectl(server, "apply", "--server-side", "-f", "-", stdin=same)
        bench.want(web_service(place, {**HTTP, "port": 81}))
        await eventually(lambda: _ports(bench, key, {("http", 81)}), "it jams")
        await bench.settled()
        assert not bench.said[key].error


def pods(place, kind="Deployment"):
    container = {
        "name": "main",
        "image": "web:1",
        "env": [{"name": "A", "value": "1"}, {"name": "Z", "value": "9"}],
        "ports": [{"name": "http", "containerPort": 80}, {"containerPort": 9000}],
        "volumeMounts": [{"name": "tmp", "mountPath": "/a"}],
        "resources": {"limits": {"cpu": "1000m"}},
    }
    volumes = [{"name": "tmp", "emptyDir": {}}, {"name": "etc", "emptyDir": {"sizeLimit": "1Gi"}}]
    container["volumeMounts"].append({"name": "etc", "mountPath": "/etc"})
    spec = {"containers": [container], "volumes": volumes}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    more = {"serviceName": "web"} if kind == "StatefulSet" else {}
    selector = {"matchLabels": labels}
    whole = {"selector": selector, "template": template, **more}
    return named(kind, "web", place, "apps/v1", spec=whole)


_MAIN = "/spec/template/spec/containers/0"
RENAMED = (
    ("replace", f"{_MAIN}/env/0/name", "B"),
    ("replace", f"{_MAIN}/ports/0/containerPort", 83),
    ("replace", f"{_MAIN}/ports/1/protocol", "UDP"),
    ("replace", f"{_MAIN}/volumeMounts/0/mountPath", "/b"),
)
AGAIN = (
    ("replace", f"{_MAIN}/ports/1/containerPort", 9001),
    ("replace", f"{_MAIN}/name", "renamed"),
)


RELATED = (
    ("replace", "/spec/template/spec/volumes/1/name", "other"),
    ("replace", f"{_MAIN}/volumeMounts/1/name", "other"),
)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
async def test_whatever_item_is_renamed_in_a_pod_template_goes_back(bench, server, place, kind):
    theirs = {"name": "theirs", "value": "5"}
    async with bench.running():
        bench.want(pods(place, kind))
        (key,) = bench.wanted
        await bench.settled()
        await patched(server, place, f"{kind}/web", ("add", f"{_MAIN}/env/-", theirs))
        before = (await bench.space.get(key))["spec"]["template"]
        for changes in (RENAMED, AGAIN, RELATED):
            await patched(server, place, f"{kind}/web", *changes)
            await eventually(lambda: _template(bench, key, before), f"not back: {changes}")
            await bench.settled()
        held = (await bench.space.get(key))["metadata"]["managedFields"]
        assert "leafcast-put-back" not in {it["manager"] for it in held}


async def _template(bench, key, expected):
    return (await bench.space.get(key))["spec"]["template"] == expected


async def test_items_of_custom_lists_go_back_by_the_keys_of_their_definition(bench, server, place):
    plural = f"gates{place[2:6]}"
    item = {"host": {"type": "string"}, "zone": {"type": "string"}, "to": {"type": "string"}}
    unique = {"rule": "self.all(a, self.exists_one(b, a.to == b.to))", "message": "to is taken"}
    listed = {
        "type": "array",
        "maxItems": 9,
        "items": {"type": "object", "properties": item, "required": ["host", "zone"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["host", "zone"],
        "x-kubernetes-validations": [unique],
    }
    item["to"]["maxLength"] = 9
    tags = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    schema = {"type": "object", "properties": {"gates": listed, "tags": tags}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": f"Gate{place[2:6]}"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    group = "apiextensions.k8s.io/v1"
    crd = named("CustomResourceDefinition", f"{plural}.example.com", "", group, spec=spec)
    await kubectl(server, "apply", "-f", "-", stdin=json.dumps(crd))
    await asyncio.to_thread(server.await_definitions)
    key = ObjectKey("example.com", plural, place, "one")
    gates = [{"host": "a", "zone": "x", "to": "1"}, {"host": "b", "zone": "x", "to": "2"}]
    obj = named(names["kind"], "one", place, "example.com/v1", gates=gates, tags=["t1", "t2"])
    async with bench.running():
        bench.want_keyed({key: obj})
        await bench.settled()
        what = f"{plural}.example.com/one"
        change = [("replace", "/gates/0/zone", "y"), ("replace", "/tags/0", "mine")]
        await patched(server, place, what, *change)

        async def is_back():
            live = await bench.space.get(key)
            return live["gates"] == gates and {"t1", "t2", "mine"} == {*live["tags"]}

        await eventually(is_back, "not put back")
        await bench.settled()
