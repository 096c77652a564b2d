"""Commands about objects, on spaces in memory: what they write, tell and refuse."""

import asyncio
import json

import click
import pytest
from click.testing import CliRunner

from leafcast.ask.resource_names import ResourceKinds
from leafcast.changes.asked_batches import judged
from leafcast.changes.forms import ApplyBatch
from leafcast.cli.commands.apply import apply, apply_all
from leafcast.cli.commands.describe import tell
from leafcast.cli.commands.diff import differences
from leafcast.cli.commands.get import NOT_HERE, GetRequest, show
from leafcast.cli.commands.wait import wait
from leafcast.cli.options.output import Output
from leafcast.cli.resource_arguments import BadResourceArguments, ObjectSelection
from leafcast.manifest_sources import BadManifests, read_manifests
from leafcast.show.object_output import TableStyle
from leafcast.show.wait_states import last_state
from relay.adapters.clock import SystemClock, SystemDice
from relay.space_errors import SpaceError
from schemas.objects.manifest_files import load_manifests
from tests.awaiting import eventually
from tests.doubles.changing_daemon import ChangingDaemon
from tests.doubles.memory_space import MemorySpace

CLOCK, DICE = SystemClock(), SystemDice()
AGAIN = "try again, and see: leafcast doctor"
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {replicas: 1}
"""
KEY = "{apiVersion: v1, kind: Secret, metadata: {name: key}, data: {a: YQ==, b: Yg==}}"
CONFIG = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {a: '1'}}"
PLACEMENT = """\
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec: {locationSelectors: [{}], downsync: [{namespaces: [shop]}]}
"""
LOCATION = """\
apiVersion: edge.kubestellar.io/v2alpha1
kind: Location
metadata: {name: here}
spec: {resource: {group: edge.kubestellar.io, version: v2alpha1, resource: synctargets}}
"""
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: oxen.farm.example}
spec:
  group: farm.example
  scope: Namespaced
  names: {kind: Ox, plural: oxen}
  versions: [{name: v1, served: true}]
"""
OX = "{apiVersion: farm.example/v1, kind: Ox, metadata: {name: bill}}"
SHOP = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"


class LateSpace(MemorySpace):
    """Serves a kind somewhat after its definition, as API servers do."""

    refusals_left = 2

    async def apply(self, obj, manager, **how):
        if obj["kind"] == "Ox" and self.refusals_left and not how.get("dry_run"):
            self.refusals_left -= 1
            raise SpaceError("NotFound", 'no matches for kind "Ox" in version "farm.example/v1"')
        return await super().apply(obj, manager, **how)


def daemon_with(workloads, **how):
    """It knows of spaces alone: what it would warn of is left out."""
    return ChangingDaemon(workloads, MemorySpace(CLOCK, DICE), CLOCK, **how)


def session_with(workloads, **how):
    return daemon_with(workloads, **how).session


@pytest.fixture
def session():
    return session_with(MemorySpace(CLOCK, DICE))


def manifests(*texts):
    return load_manifests("\n---\n".join(texts), "m.yaml")


async def applied(session, *texts, namespace=None, **how):
    create_namespaces = how.pop("create_namespaces", False)
    batch = ApplyBatch(manifests(*texts), namespace, create_namespaces=create_namespaces)
    return await apply_all(session, batch, **how)


def asked(*arguments, namespace="default", format_="table", **how):
    output = Output(format_)
    return GetRequest(arguments, namespace, how.pop("selector", None), output, TableStyle(), **how)


async def test_each_object_is_told_what_came_of_it(session, capsys):
    await applied(session, PLACEMENT, WEB, SHOP, LOCATION)
    assert capsys.readouterr().out.splitlines() == [
        "namespace/shop created",
        "deployment.apps/web created",
        "edgeplacement.edge.kubestellar.io/shop created",
        "location.edge.kubestellar.io/here created",
    ]
    await applied(session, WEB.replace("replicas: 1", "replicas: 2"), SHOP)
    assert capsys.readouterr().out.splitlines() == [
        "namespace/shop unchanged",
        "deployment.apps/web configured",
    ]


@pytest.mark.parametrize("refused", [False, True])
async def test_nothing_is_let_go_between_the_first_object_and_the_last(refused):
    class Told(MemorySpace):
        async def apply(self, obj, manager, *, dry_run=False, **options):
            if not dry_run:
                daemon.paused.said.append(("apply", obj["kind"]))
                if refused:
                    raise SpaceError("Forbidden", "no")
            return await super().apply(obj, manager, dry_run=dry_run, **options)

    daemon = daemon_with(Told(CLOCK, DICE))
    await apply_all(daemon.session, ApplyBatch(manifests(SHOP)))
    (begin, name), (write, kind), (end, same) = daemon.paused.said
    assert (begin, write, kind, end) == ("hold", "apply", "Namespace", "release")
    assert name == same
    daemon.paused.said.clear()
    await apply_all(daemon.session, ApplyBatch(manifests(SHOP)), "server")
    assert daemon.paused.said == []


async def test_a_refusal_by_the_space_names_the_object_and_what_to_do(session, capsys):
    class Silent(MemorySpace):
        async def apply(self, obj, manager, *, dry_run=False, **options):
            if dry_run or obj["kind"] == "Namespace":
                return await super().apply(obj, manager, dry_run=dry_run, **options)
            if obj["kind"] == "Deployment":
                raise SpaceError("Forbidden", "deployments.apps/shop/web: too many of them")
            raise SpaceError("ServiceUnavailable", "it is silent")

    silent = session_with(Silent(CLOCK, DICE))
    assert await applied(silent, SHOP, WEB, CONFIG % "a") == 2
    said = capsys.readouterr()
    assert said.out == "namespace/shop created\n"
    assert sorted(said.err.splitlines()) == [
        "Error from server (Forbidden): deployment.apps/web: too many of them",
        f"Error from server (ServiceUnavailable): configmap/a: it is silent; {AGAIN}",
    ]


async def test_inventory_and_workloads_lie_apart(session):
    await applied(session, LOCATION, SHOP)
    assert len((await session.workloads.list()).objects) == 1
    assert len((await session.inventory.list()).objects) == 1


async def test_a_dry_run_tells_and_changes_nothing(session, capsys):
    await applied(session, WEB, SHOP, dry_run="client")
    await applied(session, WEB, SHOP, dry_run="server")
    assert capsys.readouterr().out.splitlines() == [
        "namespace/shop created (dry run)",
        "deployment.apps/web created (dry run)",
        "namespace/shop created (server dry run)",
        "deployment.apps/web created (server dry run)",
    ]
    assert (await session.workloads.list()).objects == ()


async def test_the_result_can_be_printed(session, capsys):
    await applied(session, CONFIG % "a", output="name")
    assert capsys.readouterr().out == "configmap/a\n"
    await applied(session, CONFIG % "a", output="json")
    assert json.loads(capsys.readouterr().out)["metadata"]["namespace"] == "default"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (PLACEMENT.replace("downsync", "downSync"), "m.yaml:3: .*spec.downSync: unknown field"),
        (CONFIG % "a" + "\n---\n" + CONFIG % "a, namespace: other", "-n default"),
        (CONFIG % "a, resourceVersion: '7'", "written for version 7, and is gone: read it again"),
    ],
)
async def test_a_batch_with_a_fault_changes_nothing(session, bad, said):
    with pytest.raises(BadManifests, match=said):
        await applied(session, CONFIG % "good", bad, namespace="default")
    assert (await session.workloads.list()).objects == ()


async def test_all_that_is_wrong_with_a_batch_is_told_at_once(session, tmp_path):
    """Whatever finds it: the reader, our kinds, the space."""
    ox = "{apiVersion: farm.example/v1, kind: Ox, metadata: {name: bill, namespace: shop}}"
    tired = "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: night}}"
    wrong = PLACEMENT.replace("downsync", "downSync")
    labelled = CONFIG % "a, labels: {a: 1}"
    documents = (ox, SHOP, labelled, "a: [", wrong, tired, CONFIG % "good")
    (tmp_path / "m.yaml").write_text("\n---\n".join(documents))
    with pytest.raises(BadManifests) as unread:
        read_manifests([str(tmp_path)], str, recursive=False)
    with pytest.raises(BadManifests) as refused:
        await apply_all(session, ApplyBatch(unread.value.loaded), unread=unread.value.faults)
    said = [line.removeprefix(f"{tmp_path}/m.yaml:") for line in refused.value.faults]
    assert [line.partition(": ")[0] for line in said] == ["5:64", "8:1", "1", "9"]
    for line, part in zip(
        said,
        (
            'ConfigMap "a": metadata.labels[a]: 1 is not a string',
            "did not find expected node content",
            'ox.farm.example/bill: no matches for kind "Ox" in version "farm.example/v1"',
            'EdgePlacement "shop": spec.downSync: unknown field',
        ),
        strict=True,
    ):
        assert part in line
    # A Namespace may be in what cannot be read; else what lacks one is wrong, too.
    with pytest.raises(BadManifests, match=r'm.yaml:3: configmap/b: namespaces "night" not found'):
        await applied(session, SHOP, tired)
    assert (await session.workloads.list()).objects == ()


def test_what_cannot_be_read_is_told_without_a_tree(tmp_path):
    (tmp_path / "m.yaml").write_text(f"a: [\n---\n{CONFIG % 'a'}\n")
    words = ["-f", str(tmp_path), "--data-dir", str(tmp_path / "none")]
    done = CliRunner().invoke(apply, words)
    assert done.exit_code == 1
    assert "m.yaml:2:1: " in done.output
    assert done.output.endswith("nothing was applied; correct this, and apply again\n")


async def test_an_object_over_the_limit_is_told_with_its_size_and_the_limit(session):
    big = (CONFIG % "big").replace("'1'", "x" * 1_600_000)
    with pytest.raises(BadManifests, match=r"configmap/big: 16\d{5} bytes, at most 1572864 fit"):
        await applied(session, CONFIG % "good", big)
    assert (await session.workloads.list()).objects == ()


async def test_custom_kinds_go_by_definitions_of_the_batch(session, capsys):
    await applied(session, OX, CRD)
    capsys.readouterr()
    assert await show(session, asked("oxen", "bill", format_="name")) == 0
    assert capsys.readouterr().out == "ox.farm.example/bill\n"


async def test_what_a_batch_defines_is_waited_for_until_it_is_served(capsys):
    session = session_with(LateSpace(CLOCK, DICE))
    assert await applied(session, OX, CRD) == 0
    assert "ox.farm.example/bill created" in capsys.readouterr().out


async def test_what_is_not_there_is_told_in_the_words_of_kubectl(session, capsys):
    await applied(session, WEB, SHOP)
    capsys.readouterr()
    assert await show(session, asked("deploy", "web", "x")) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith('Error from server (NotFound): deployments.apps "web" not found; ')
    assert told[0].endswith("add -n shop")
    assert told[1].startswith('Error from server (NotFound): deployments.apps "x" not found; see: ')
    assert await show(session, asked("deploy")) == 0
    assert await show(session, asked("deploy", namespace="")) == 0
    assert await show(session, asked("svc", namespace="")) == 0
    assert await show(session, asked("epl")) == 0
    assert capsys.readouterr().err.splitlines() == [
        "No resources found in default namespace.",
        NOT_HERE,
        "No resources found",
        "No resources found",
    ]


async def test_yaml_that_was_got_can_be_applied_again(session, capsys):
    await applied(session, WEB, PLACEMENT, SHOP)
    capsys.readouterr()
    await show(session, asked("deploy,epl", namespace="shop", format_="yaml"))
    await applied(session, capsys.readouterr().out)
    assert {line.split()[1] for line in capsys.readouterr().out.splitlines()} == {"unchanged"}


@pytest.mark.parametrize(
    "arguments", [("deploy", "a"), ("deploy/a",), ("deploy", "-l"), ("deploy,svc",)]
)
async def test_contradictions_are_refused(session, arguments):
    every = asked(*arguments, namespace="", watch=True)
    with pytest.raises(BadResourceArguments):
        await show(session, every)


async def test_a_watch_of_locations_counts_their_instances_with_each_change(session, capsys):
    everything = LOCATION.replace("spec: {", "spec: {instanceSelector: {}, ")
    target = "{apiVersion: edge.kubestellar.io/v2alpha1, kind: SyncTarget, metadata: {name: s1}}"
    await applied(session, everything, target)
    capsys.readouterr()
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(show(session, asked("locations", watch=True)))
        shown = []

        def rows(count):
            shown.extend(capsys.readouterr().out.splitlines())
            return len([line for line in shown if line.startswith("here")]) >= count

        await eventually(lambda: rows(1))
        await applied(session, everything.replace("{name: here}", "{name: here, labels: {a: b}}"))
        await eventually(lambda: rows(2))
        watching.cancel()
    assert [line.split()[1] for line in shown if line.startswith("here ")] == ["1", "1"]


async def test_a_description_goes_by_the_start_of_a_name(session, capsys):
    await applied(session, CONFIG % "conf-a", CONFIG % "conf-b")
    capsys.readouterr()
    maps = ResourceKinds().resolve("cm")
    assert await tell(session, [(ObjectSelection(maps, ("conf-",)), "default")], None, None) == 0
    assert capsys.readouterr().out.count("Kind:         ConfigMap") == 2
    assert await tell(session, [(ObjectSelection(maps, ("x",)), "default")], None, None) == 1


async def test_what_manifests_name_is_shown_as_it_is_at_the_centre(session, capsys):
    await applied(session, WEB, CONFIG % "conf", SHOP)
    capsys.readouterr()
    meant = tuple(manifests(WEB.replace("replicas: 1", "replicas: 7"), SHOP))
    assert await show(session, asked(namespace=None, format_="name", loaded=meant)) == 0
    assert capsys.readouterr().out.splitlines() == ["namespace/shop", "deployment.apps/web"]
    one = tuple(manifests(WEB.replace("name: web", "name: gone")))
    assert await show(session, asked(namespace=None, loaded=one)) == 1
    assert 'deployments.apps "gone" not found' in capsys.readouterr().err


async def test_an_object_that_is_said_twice_alike_is_one_and_else_both_places_are_named(
    session, capsys
):
    await applied(session, CONFIG % "a", SHOP, CONFIG % "a, namespace: default", SHOP)
    assert capsys.readouterr().out.splitlines() == ["namespace/shop created", "configmap/a created"]
    other = (CONFIG % "a").replace("'1'", "'2'")
    with pytest.raises(BadManifests) as refused:
        await applied(session, CONFIG % "b", CONFIG % "a", other, CONFIG % "a, namespace: shop")
    first = "default/configmaps/a is given twice, first at m.yaml:3, and not alike; leave one out"
    assert refused.value.faults == (f"m.yaml:5: {first}",)
    async with judged(session, ApplyBatch(manifests(CONFIG % "a"))) as batch:
        assert [write.verb for write in batch.writes] == ["unchanged"]


async def test_a_kind_that_many_objects_are_of_and_nobody_serves_is_told_once(session):
    herd = [OX.replace("bill", name) for name in ("bill", "bob", "ben")]
    with pytest.raises(BadManifests) as refused:
        await applied(session, *herd, OX.replace("bill", "bea").replace("v1", "v2"))
    told, lone = (said.partition("; ")[0] for said in refused.value.faults)
    assert told.startswith("m.yaml:1: 3 objects, such as ox.farm.example/bill: no matches for kind")
    assert lone.startswith("m.yaml:7: ox.farm.example/bea: no matches for kind")


async def test_a_namespace_that_many_objects_lack_is_told_once_and_made_on_request(session, capsys):
    lost = [CONFIG % f"c{at}, namespace: {name}" for name in ("night", "day") for at in range(3)]
    with pytest.raises(BadManifests) as refused:
        await applied(session, *lost, WEB)
    remedy = "; apply the Namespace first, or add --create-namespace"
    assert [said.removesuffix(remedy) for said in refused.value.faults] == [
        'm.yaml:1: 3 objects, such as configmap/c0: namespaces "night" not found',
        'm.yaml:7: 3 objects, such as configmap/c0: namespaces "day" not found',
        'm.yaml:13: deployment.apps/web: namespaces "shop" not found',
    ]
    how = {"namespace": "evening", "create_namespaces": True}
    await applied(session, SHOP, CONFIG % "a", PLACEMENT, **how)
    assert capsys.readouterr().out.splitlines()[:2] == [
        "namespace/evening created",
        "namespace/shop created",
    ]
    await applied(session, CONFIG % "a", **how)
    assert capsys.readouterr().out == "configmap/a unchanged\n"
    assert await differences(session, ApplyBatch(manifests(*lost), create_namespaces=True))
    with pytest.raises(BadManifests, match="not found"):
        await differences(session, ApplyBatch(manifests(*lost)))


async def test_what_lacks_its_namespace_is_refused_though_its_kind_comes_with_it(session):
    lost = OX.replace("bill", "bill, namespace: farm")
    with pytest.raises(BadManifests, match='namespaces "farm" not found'):
        await applied(session, CRD, lost)
    assert (await session.workloads.list()).objects == ()
    await applied(session, CRD, lost, create_namespaces=True)
    assert len((await session.workloads.list()).objects) == 3


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
async def test_a_file_that_names_what_was_once_read_says_what_to_leave_out(session, field):
    await applied(session, CONFIG % "a")
    with pytest.raises(BadManifests, match=rf"; leave metadata.{field} out of the file$"):
        await applied(session, (CONFIG % f"a, {field}: '77'").replace("'1'", "'2'"))


def test_what_other_programs_build_from_is_named_with_the_command_that_does(tmp_path):
    def laid(name, text):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    laid("base/kustomization.yaml", "resources: [a.yaml]\n")
    laid("base/a.yaml", CONFIG % "a")
    laid("base/b.yaml", "a: [\n")
    laid("base/c.yml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n")
    laid("chart/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")
    laid("chart/values.yaml", "replicas: 1\n")
    laid("chart/templates/a.yaml", "{{ if .Values.a }}\n")
    laid("real/values.yaml", CONFIG % "values")
    flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
    laid("real/kustomization.yaml", f"{flux}metadata: {{name: flux}}\n")
    with pytest.raises(BadManifests) as refused:
        read_manifests([str(tmp_path)], str, recursive=True, command="leafcast plan -f -")
    base, chart = tmp_path / "base", tmp_path / "chart"
    kustomize = f"Kustomize builds objects from it: kubectl kustomize {base} | leafcast plan -f -"
    helm = f"helm template NAME CHART -f {chart}/values.yaml"
    values = f"values of a Helm chart: {helm} | leafcast plan -f -"
    assert refused.value.faults == (
        f"{base}/b.yaml:2:1: did not find expected node content",
        f"{base}/c.yml: {kustomize}",
        f"{base}/kustomization.yaml: {kustomize}",
        f"{chart}/Chart.yaml: a Helm chart: helm template NAME {chart} | leafcast plan -f -",
        f"{chart}/values.yaml: {values}",
    )
    names = [one.object["metadata"]["name"] for one in refused.value.loaded]
    assert names == ["a", "flux", "values"]


def test_an_address_is_not_taken_for_a_file():
    with pytest.raises(BadManifests, match="an address is not fetched"):
        read_manifests(["https://example.com/x.yaml"], str, recursive=False)


async def test_a_diff_tells_what_an_apply_would_change_and_nothing_else(session):
    await applied(session, WEB, KEY, SHOP)
    assert await differences(session, ApplyBatch(manifests(WEB, KEY))) == []
    changed = WEB.replace("replicas: 1", "paused: true")
    lines = await differences(session, ApplyBatch(manifests(changed)))
    assert lines[0].startswith("diff -u -N LIVE/apps.v1.Deployment.shop.web ")
    assert "-  replicas: 1" in lines
    assert "+  paused: true" in lines
    assert not any(word in line for line in lines for word in ("uid", "resourceVersion"))


async def test_a_diff_never_shows_what_a_secret_holds(session):
    await applied(session, KEY)
    changed = KEY.replace("YQ==", "eHg=").replace("b: Yg==", "c: Yw==")
    lines = await differences(session, ApplyBatch(manifests(changed)))
    assert "-  a: '*** (before)'" in [line.replace('"', "'") for line in lines]
    assert not any(value in line for line in lines for value in ("YQ", "eHg", "Yg", "Yw"))


async def test_a_wish_is_judged_by_what_is_there(session):
    await applied(session, WEB, SHOP)
    async with judged(session, ApplyBatch(manifests(WEB))) as batch:
        assert [write.verb for write in batch.writes] == ["unchanged"]


async def test_a_status_that_is_written_meanwhile_configures_nothing(session):
    """As a placement's is, time and again, while a batch with it is judged and written."""
    await applied(session, PLACEMENT)
    async with judged(session, ApplyBatch(manifests(PLACEMENT)), dry=False) as batch:
        await session.workloads.set_status(batch.writes[0].wish.key, {"synced": 2})
        [(made, error)] = [outcome async for outcome in batch.written({})]
    assert error is None
    assert made.after["status"] == {"synced": 2}
    assert made.verb == "unchanged"


def test_folders_are_read_in_the_order_of_names_and_deeper_only_if_asked(tmp_path):
    below = tmp_path / "below"
    below.mkdir()
    (below / "c.yml").write_text(CONFIG % "c")
    (tmp_path / "b.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": []}))
    (tmp_path / "a.yaml").write_text(f"{CONFIG % 'a'}\n---\n{CONFIG % 'b'}")
    (tmp_path / "README.md").write_text("no manifest")

    def names(recursive):
        loaded = read_manifests([str(tmp_path)], lambda: "", recursive=recursive)
        return [one.object["metadata"]["name"] for one in loaded]

    assert names(recursive=False) == ["a", "b"]
    assert names(recursive=True) == ["a", "b", "c"]
    (tmp_path / "a.yaml").unlink()
    with pytest.raises(BadManifests, match=r"no objects in .*; .* -R"):
        names(recursive=False)


def test_all_that_cannot_be_read_is_told_by_file_and_line(tmp_path):
    (tmp_path / "a.yaml").write_text("a: [\n")
    (tmp_path / "b.yaml").write_text("kind: X\n---\n{kind: Pod, apiVersion: v1}")
    (tmp_path / "c.yaml").write_bytes(b"\xff\xfe")
    paths = [str(tmp_path / name) for name in ("a.yaml", "b.yaml", "c.yaml", "none.yaml")]
    with pytest.raises(BadManifests) as refused:
        read_manifests([*paths, "-"], lambda: "!", recursive=False)
    said = "\n".join(refused.value.faults)
    for part in (
        "a.yaml:2:1",
        "b.yaml:1:1",
        "b.yaml:3:1",
        "c.yaml: not UTF-8",
        "none.yaml: No such",
    ):
        assert part in said
    assert "standard input:1:1" in said


def test_the_last_state_says_how_far_it_is_and_what_is_wrong():
    state = {
        "name": "shop",
        "destinations": 6,
        "never_joined": 0,
        "states": {"synced": 3, "failing": 1, "pending": 2},
        "health": {"healthy": 2, "progressing": 4},
        "complete": False,
        "blocking": ["/emea"],
        "problem": "",
        "exceptions": [
            {"severity": 2, "object": "", "reason": "Slow", "count": 9, "path": "/emea/a"},
            {"severity": 0, "object": "pods/p", "reason": "Bad", "count": 1, "path": "/emea/b"},
        ],
    }
    lines = list(last_state(state, ["synced"], 60.0))
    assert lines[0] == (
        "timed out after 60s waiting for edgeplacement.edge.kubestellar.io/shop to be synced: "
        "at least 3 of 6 destinations synced (1 failing, 2 pending), 2 healthy (4 progressing), "
        "no answer yet from /emea"
    )
    assert lines[1:] == [
        "  pods/p: Bad (at 1, e.g. /emea/b)",
        "  Slow (at 9, e.g. /emea/a)",
        "  see: leafcast status shop",
    ]
    nowhere = {**state, "destinations": 0, "complete": True, "blocking": [], "exceptions": []}
    assert "0 of 0 destinations" in next(last_state(nowhere, ["synced"], 1.0))
    nobody = {**nowhere, "never_joined": 3}
    assert "none of its 3 destinations has joined yet" in next(last_state(nobody, ["synced"], 1.0))


def test_click_is_told_of_bad_durations():
    with pytest.raises(click.BadParameter, match="60s"):
        wait.make_context("wait", ["shop", "--for", "synced", "--timeout", "soon"])
    with pytest.raises(click.BadParameter, match="rolled-out or delete"):
        wait.make_context("wait", ["shop", "--for", "gone"])
