"""What a plan said is what then happens at every edge, whatever was there before."""

from hypothesis import event, given, settings
from hypothesis import strategies as st

from schemas.objects.objects import ObjectKey
from tests.property.examples import examples
from tests.property.planned_fleet import Fleet

EDGE, CONTROL = "edge.kubestellar.io", "control.kubestellar.io"
PATHS = ("/r/a", "/r/b", "/q/c")
LABELS = st.dictionaries(st.sampled_from(["tier", "zone"]), st.sampled_from("12"), max_size=2)
SELECTOR = LABELS.map(lambda labels: {"matchLabels": labels})
ANNOTATIONS = {
    "plain": {},
    "template": {"control.kubestellar.io/expand-templates": "true"},
    "customizer": {"edge.kubestellar.io/customizer": "each"},
    "alone": {"edge.kubestellar.io/downsync-overwrite": "false"},
}
TEXTS = ("1", "2", "{{ .tier }}", "{{ .clusterName }}", "{{ .zone }} {{ .tier }}", "{{ wrong }}")


def obj(api, kind, name, namespace="", **more):
    place = {"namespace": namespace} if namespace else {}
    metadata = {"name": name, **place, **more.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def config(namespace, name, text, how, labels):
    said = {"labels": labels, "annotations": ANNOTATIONS[how]}
    return obj("v1", "ConfigMap", name, namespace, metadata=said, data={"text": text})


def clause(namespace, names, create_only):
    said = {"namespaces": [namespace], "objectNames": names, "createOnly": create_only}
    return {"apiGroup": "", **said}


CLAUSES = st.lists(
    st.builds(
        clause,
        st.sampled_from("mn*"),
        st.lists(st.sampled_from("xy"), max_size=1),
        st.booleans(),
    ),
    min_size=1,
    max_size=2,
)


def edge_placement(selectors, downsync):
    spec = {"locationSelectors": selectors, "downsync": downsync}
    return obj(f"{EDGE}/v2alpha1", "EdgePlacement", "p", spec=spec)


def policy(selectors, downsync):
    spec = {"clusterSelectors": selectors, "downsync": downsync}
    return obj(f"{CONTROL}/v1alpha1", "BindingPolicy", "b", spec=spec)


def target(name, path, labels):
    said = {"labels": labels, "annotations": {"leafcast.io/path": path}}
    return obj(f"{EDGE}/v2alpha1", "SyncTarget", name, metadata=said, spec={})


def location(name, labels, instances):
    resource = {"group": EDGE, "version": "v2alpha1", "resource": "synctargets"}
    spec = {"resource": resource, "instanceSelector": instances}
    return obj(f"{EDGE}/v2alpha1", "Location", name, metadata={"labels": labels}, spec=spec)


def customizer(text):
    replacements = [{"path": "$.data.text", "value": f'"{text}"'}]
    said = {"annotations": ANNOTATIONS["template"]}
    kind = f"{EDGE}/v2alpha1"
    return obj(kind, "Customizer", "each", "m", metadata=said, replacements=replacements)


def transform(path):
    spec = {"apiGroup": "", "resource": "configmaps", "remove": [path]}
    return obj(f"{CONTROL}/v1alpha1", "CustomTransform", "t", spec=spec)


def keyed(group, resource, namespace, name, objects):
    """Changes of one object: what it becomes, or that it goes."""
    key = ObjectKey(group, resource, namespace, name)
    return st.tuples(st.just(key), st.one_of(st.none(), objects, objects, objects))


SELECTORS = st.lists(SELECTOR, min_size=1, max_size=2)
CONFIGS = [
    keyed(
        "",
        "configmaps",
        namespace,
        name,
        st.builds(
            config,
            st.just(namespace),
            st.just(name),
            st.sampled_from(TEXTS),
            st.sampled_from(sorted(ANNOTATIONS)),
            LABELS,
        ),
    )
    for namespace in "mn"
    for name in "xy"
]
PROPERTIES = keyed(
    "",
    "configmaps",
    "customization-properties",
    "s0",
    st.sampled_from("12").map(
        lambda tier: obj("v1", "ConfigMap", "s0", "customization-properties", data={"tier": tier})
    ),
)
CHANGE = st.one_of(
    *CONFIGS,
    keyed("", "namespaces", "", "m", LABELS.map(
        lambda labels: obj("v1", "Namespace", "m", metadata={"labels": labels})
    )),
    keyed(EDGE, "edgeplacements", "", "p", st.builds(edge_placement, SELECTORS, CLAUSES)),
    keyed(CONTROL, "bindingpolicies", "", "b", st.builds(policy, SELECTORS, CLAUSES)),
    *(
        keyed(EDGE, "synctargets", "", f"s{at}", st.builds(
            target, st.just(f"s{at}"), st.sampled_from(paths), LABELS
        ))
        for at, paths in enumerate(([PATHS[0], PATHS[2]], PATHS[1:2]))
    ),
    *(
        keyed(EDGE, "locations", "", name, st.builds(location, st.just(name), LABELS, SELECTOR))
        for name in ("l", "k")
    ),
    keyed(EDGE, "customizers", "m", "each", st.sampled_from(TEXTS).map(customizer)),
    keyed(CONTROL, "customtransforms", "", "t", st.sampled_from(
        ["$.data.text", "$.metadata.labels"]
    ).map(transform)),
    PROPERTIES,
)  # fmt: skip
BATCH = st.lists(CHANGE, min_size=1, max_size=4).map(dict)
FIRST = {
    ObjectKey(EDGE, "synctargets", "", "s0"): target("s0", PATHS[0], {"tier": "1"}),
    ObjectKey(EDGE, "synctargets", "", "s1"): target("s1", PATHS[1], {"zone": "1", "tier": "2"}),
    ObjectKey(EDGE, "locations", "", "l"): location("l", {"tier": "1"}, {}),
    ObjectKey(EDGE, "edgeplacements", "", "p"): edge_placement([{}], [clause("*", [], False)]),
    ObjectKey(EDGE, "customizers", "m", "each"): customizer("{{ .tier }}"),
    ObjectKey("", "configmaps", "m", "x"): config("m", "x", "{{ .tier }}", "template", {}),
    ObjectKey("", "configmaps", "m", "y"): config("m", "y", "1", "customizer", {}),
    ObjectKey("", "configmaps", "n", "x"): config("n", "x", "1", "plain", {}),
}
LIVES = st.lists(BATCH, min_size=1, max_size=4)


def happened(before, after):
    """By path and object what became of it."""
    found = {}
    for path in before:
        old, new = before[path], after[path]
        for key in old.keys() | new.keys():
            if key not in new:
                found[path, key] = "delete"
            elif key not in old:
                found[path, key] = "create"
            elif old[key] != new[key]:
                found[path, key] = "update"
    return found


@settings(max_examples=examples(200))
@given(LIVES)
def test_what_a_plan_said_is_what_then_happens(batches):
    fleet = Fleet(PATHS)
    fleet.apply(FIRST)
    for batch in batches:
        wanted = {
            key: value
            for key, value in batch.items()
            if value is not None or key in fleet.objects or key in fleet.inventory
        }
        unsure = fleet.unsure()
        loose = {path: edge.left_alone() for path, edge in fleet.edges.items()}
        before = fleet.copies()
        _, planned = fleet.plan(wanted)
        rows = list(planned.rows())
        fleet.apply(wanted)
        said = {
            (str(row.path), row.key): row.action
            for row in rows
            if row.action in ("create", "update", "delete")
        }
        done = happened(before, fleet.copies())
        for path, key in said.keys() | done.keys():
            # What a placement left there, frozen or on purpose, is known to the edge alone.
            if key in unsure[path]:
                event("unsure")
                continue
            expected, found = said.get((path, key)), done.get((path, key))
            if key in loose[path] and {expected, found} <= {"update", None}:
                event("loose")
                continue
            assert (path, key, expected) == (path, key, found)
        check_shape(planned, rows)


def check_shape(planned, rows):
    """Counts are of all rows, removals come first, what is at hand is a part of all."""
    assert sum(planned.counts.values()) == len(rows)
    assert all(count == sum(r.action == a for r in rows) for a, count in planned.counts.items())
    removals = [row.action in ("delete", "held") for row in rows]
    assert removals == sorted(removals, reverse=True)
    assert set(planned.sample) <= set(rows)
    assert planned.destinations == len({row.path for row in rows if row.action != "none"})
    assert all(row.why or row.fields for row in rows)
    for row in rows:
        event(row.action)
