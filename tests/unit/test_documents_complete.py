"""The documents name what there is: packages, decisions, and what rooms of a node import.

Each command that they show in a block is run by some test.
"""

import re
from pathlib import Path

from tests.docker.test_compose import PAGE as PAGE_OF_CONTAINERS
from tests.e2e.test_documents import PAGES, PAGES_OF_NAMES, RARE_PAGES
from tests.kube.test_documents import PAGES as PAGES_OF_API_SERVERS
from tests.unit.test_release_command import SHOWN as SHOWN_OF_RELEASES

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("schemas", "relay", "controllers", "leafcast")
CORE_ROW = re.compile(r"^\| `relay/core/(\w+)/` \|.*\| ([\w, -]+) \|$", re.MULTILINE)
IMPORTED = re.compile(r"^from relay\.core\.(\w+)", re.MULTILINE)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^ *(?:[\w-]*\$ )?(?:leafcast|kubectl|docker|make) ", re.MULTILINE)
INDENTED = re.compile(r"^    (?:\$ )?(?:leafcast|kubectl|docker|make) .*$", re.MULTILINE)
WALKED = {page for row in (*PAGES, *RARE_PAGES) for page in row} | {
    *PAGES_OF_NAMES,
    *PAGES_OF_API_SERVERS,
    PAGE_OF_CONTAINERS,
}
# What is shown as `sh` is no session: which test runs it, or what it stands for.
RUN_ELSEWHERE = {
    "make setup": ".ci/run",
    ". .venv/bin/activate": "tests/e2e/test_documents.py",
    "make demo": "tests/e2e/test_demo.py",
    "make kube": "tests/kube/test_build.py",
    "make dist": "tests/e2e/test_packages.py",
    # They stand for the wheel in an empty environment, and for what is published.
    "uvx ./leafcast-0.2.0-py3-none-any.whl demo": "tests/e2e/test_packages.py",
    "pipx run --spec ./leafcast-0.2.0-py3-none-any.whl leafcast demo": "tests/e2e/test_packages.py",
    "uvx leafcast==0.2.0 demo": "tests/e2e/test_packages.py",
    "apt install ./leafcast_0.2.0_amd64.deb": "tests/docker/test_debian_package.py",
    "helm install centre oci://ghcr.io/OWNER/charts/leafcast --version 0.2.0 "
    "-n leafcast-system --create-namespace --set role=centre": "tests/kube/test_chart.py",
    **dict.fromkeys(
        (
            "make bundle IMAGE=leafcast SIGN=release.pem",
            "tar -xf leafcast-bundle.tar",
            "cd leafcast-*/",
            "sh install.sh check",
            "sh install.sh wheels /opt/leafcast",
        ),
        "tests/e2e/test_packages.py",
    ),
    **dict.fromkeys(
        (
            "openssl genpkey -algorithm ed25519 -out release.pem",
            "openssl pkey -in release.pem -pubout -out release.pub",
            "leafcast bundle --images --packages",
            "leafcast bundle verify leafcast-bundle.tar --key release.pub",
            (
                "openssl pkeyutl -verify -pubin -inkey ../release.pub -rawin -in SHA256SUMS "
                "-sigfile SHA256SUMS.sig"
            ),
        ),
        "tests/unit/test_bundles.py",
    ),
    **dict.fromkeys(
        ("sh install.sh package", "sh install.sh images"), "tests/docker/test_debian_package.py"
    ),
    "apt install ./dist/leafcast_*_amd64.deb": "tests/docker/test_debian_package.py",
    **dict.fromkeys(
        (
            f"helm install {name} deploy/helm/leafcast -n leafcast-system --create-namespace "
            f"--set role={role}"
            for name, role in (("centre", "centre"), ("store", "edge"))
        ),
        "tests/kube/test_chart.py",
    ),
    (
        "helm install centre deploy/helm/leafcast -n leafcast-system --create-namespace "
        "--set role=centre,members=3"
    ): "tests/docker/test_chart_trio.py",
    "kubectl --context hub -n leafcast-system get leases": "tests/kube/test_one_centre.py",
    "leafcast install --role edge --namespace shop | kubectl --context store apply -f -": (
        "tests/kube/test_install.py"
    ),
    "leafcast up --kube=all": "tests/kube/test_up.py",
    "leafcast up --members 3": "tests/e2e/test_trios.py",
    **dict.fromkeys(
        (
            "leafcast node add / --member",
            "leafcast join URL --token TOKEN",
            "leafcast node grow /",
            "leafcast tree --members",
            "leafcast node shrink / --to m1",
            "leafcast restore BACKUP --data-dir DIR",
            "leafcast up --data-dir DIR",
            "leafcast node add / --member --data-dir DIR",
            "leafcast restore BACKUP --members 3 --data-dir DIR",
        ),
        "tests/e2e/test_growth.py",
    ),
    **dict.fromkeys(
        (
            "leafcast up --listen HOST --data-dir DIR",
            "leafcast node grow / --host HOST --data-dir DIR",
        ),
        "tests/nats/test_centre_machines.py",
    ),
    **dict.fromkeys(
        (
            "leafcast node add /emea --member",
            "leafcast join URL --token TOKEN --listen m1.example:7522",
            "leafcast node grow /emea",
        ),
        "tests/nats/test_trio_machines.py",
    ),
    **dict.fromkeys(
        (
            "leafcast node replace /emea --member m2",
            "leafcast join URL --token TOKEN --listen m4.example:7522",
        ),
        "tests/nats/test_trio_machines.py",
    ),
    "leafcast release pin root.json --data-dir /var/lib/leafcast/node": (
        "tests/unit/test_release_command.py"
    ),
    "leafcast-launcher --data-dir /var/lib/leafcast/node -- join /etc/leafcast/store.join "
    "--data-dir /var/lib/leafcast/node": "tests/e2e/test_launcher.py",
    "leafcast-launcher --data-dir /var/lib/leafcast/tree -- up --foreground --listen "
    "centre.example --data-dir /var/lib/leafcast/tree": "tests/e2e/test_launched_centre.py",
    "leafcast release pin root.json --data-dir /var/lib/leafcast/tree": (
        "tests/e2e/test_launched_centre.py"
    ),
    **dict.fromkeys(SHOWN_OF_RELEASES, "tests/unit/test_release_command.py"),
    "leafcast recover --from-member": "tests/nats/test_growth.py",
    "kubectl annotate rollout shop --overwrite leafcast.io/rollout-request='"
    '{"id": "7f3a", "action": "approve", "wave": "rest", "user": "jane"}\'': (
        "tests/kube/test_rollout_kind.py"
    ),
    "kubectl get rollout shop -o jsonpath='{.status.request}'": "tests/kube/test_rollout_kind.py",
    "kubectl create clusterrolebinding team-sees-placements "
    "--clusterrole=leafcast-placements-view --group=team": "tests/kube/test_install.py",
    **dict.fromkeys(
        (
            "kubectl wait epl/shop --for=condition=Ready --timeout=5m",
            (
                "helm install shop ./chart -n shop --post-renderer=leafcast "
                "--post-renderer-args=denature --post-renderer-args=--namespace=shop"
            ),
            "helm plugin install deploy/helm-denature",
            (
                "helm upgrade shop ./chart -n shop --wait --post-renderer=denature "
                "--post-renderer-args=--namespace=shop"
            ),
            "kubectl kustomize . | leafcast denature --namespace shop | kubectl apply -f -",
        ),
        "tests/kube/helm_at_a_hub.py",
    ),
    "leafcast up --health-port 8086": "tests/nats/test_metrics.py",
    "curl -s http://127.0.0.1:8086/metrics": "tests/nats/test_metrics.py",
    "docker build -t leafcast -f deploy/Dockerfile .": "tests/docker/test_compose.py",
    'export COMPOSE_PROFILES=kubernetes LEAFCAST_SPACES="--workloads-kubeconfig '
    '/kube/hub.kubeconfig"': "tests/kube/test_deployment_files.py",
    "docker compose up -d --build": "tests/docker/test_compose.py",
    "docker compose run --rm kubectl apply -f - < shop.yaml": "tests/kube/test_deployment_files.py",
    "docker compose run --rm kubectl wait edgeplacement/shop --for=condition=Synced": (
        "tests/kube/test_deployment_files.py"
    ),
    "kubectl --context hub apply -f deploy/placement-policy.yaml": (
        "tests/kube/test_placement_policy.py"
    ),
    "export LEAFCAST_TOKEN=lc1...": "tests/unit/test_joining_says.py",
    "leafcast join wss://centre.example/leaf --proxy http://proxy.example:3128": (
        "tests/nats/test_proxies.py"
    ),
}
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def packages() -> set[str]:
    return {
        f"{path.parent.relative_to(ROOT).as_posix()}/"
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }


def rooms() -> list[str]:
    page = (ROOT / "docs" / "architecture.md").read_text()
    return re.findall(r"^\| `([\w/]+/)` \|", page, re.MULTILINE)


def test_every_package_has_its_row_in_the_architecture():
    missing = sorted(packages() - set(rooms()))
    assert not missing, f"give each a row in docs/architecture.md: {missing}"


def test_every_room_of_the_architecture_is_there_once():
    assert len(rooms()) == len(set(rooms()))
    gone = sorted(set(rooms()) - packages())
    assert not gone, f"docs/architecture.md names what is not there: {gone}"


def imported(room: str) -> set[str]:
    """The other rooms of `relay.core` that a room imports."""
    files = (ROOT / "relay" / "core" / room).rglob("*.py")
    named = {name for file in files for name in IMPORTED.findall(file.read_text())}
    return {name for name in named if (ROOT / "relay" / "core" / name).is_dir()} - {room}


def test_a_room_of_a_node_imports_only_what_its_row_allows():
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = CORE_ROW.findall(page)
    assert len(rows) > 5
    wrong = {room: imported(room) - set(allowed.split(", ")) for room, allowed in rows}
    assert {room: more for room, more in wrong.items() if more} == {}


def test_every_decision_is_listed():
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text()
    missing = [path.name for path in sorted(folder.glob("0*.md")) if path.name not in listed]
    assert not missing, f"list them in docs/decisions/README.md: {missing}"


def test_every_python_example_is_a_whole_program():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = [(page.name, text) for page in pages for text in PROGRAM.findall(page.read_text())]
    assert found
    for page, text in found:
        compile(text, page, "exec")


def pages():
    """README and the pages of docs/, but for the one that the program writes."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if page.name != "commands.md":
            yield page.relative_to(ROOT).as_posix(), page.read_text()


def test_each_session_that_is_shown_is_on_a_page_that_a_test_walks():
    shown = {page for page, text in pages() if "\n```console\n" in text}
    assert shown == WALKED


def test_each_command_that_is_no_session_is_run_by_the_test_that_is_named():
    shown = {
        line.partition("  #")[0].strip()
        for _, text in pages()
        for kind, block in FENCED.findall(text)
        if kind == "sh"
        for line in block.splitlines()
    }
    assert shown == set(RUN_ELSEWHERE)
    assert not [test for test in RUN_ELSEWHERE.values() if not (ROOT / test).exists()]


def test_no_command_is_hidden_from_those_tests_by_the_form_of_its_block():
    other = {
        f"{page}: {block}"
        for page, text in pages()
        for kind, block in FENCED.findall(text)
        if kind not in ("sh", "console", "yaml") and COMMANDS.search(block)
    }
    assert not other
    indented = {
        f"{page}: {line}"
        for page, text in pages()
        for line in INDENTED.findall(FENCED.sub("", text))
    }
    assert not indented


def test_what_the_files_of_deploy_say_to_type_stands_on_the_page_that_is_walked():
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    for file in ("centre.yaml", "edge.yaml"):
        head = (ROOT / "deploy" / file).read_text()
        typed = re.findall(r"^#   (\S.*)$", head, re.MULTILINE)
        assert typed
        assert not [line for line in typed if f"\n$ {line}\n" not in page]
