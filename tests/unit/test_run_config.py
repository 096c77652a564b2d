"""The file of a node: its spaces, and all that is wrong with it at once, by field."""

from pathlib import Path

import pytest

from leafcast.cli.commands.run import _check_certificate
from leafcast.data_dir import DataDir, DataDirUnusable
from leafcast.node.run_config import RunConfigRefused, read_run_config, write_run_config
from leafcast.space_settings import EMBEDDED, IN_CLUSTER, SIMULATED, CentreSpaces, SpaceSetting
from relay.adapters.tls.refusals import CertificateUnusable

CENTRE = """\
path: /
tree: t1
roots:
  kkkkkkkkkkkkkkkkkkkkkkkkkk: "00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff"
server:
  url: tls://centre:4222
  leaf_url: tls://centre:7422
  tls: {certificate: c.pem, key: k.pem}
"""
EDGE = """\
path: /emea/store-1
tree: t1
roots:
  kkkkkkkkkkkkkkkkkkkkkkkkkk: "00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff"
parent: tls://emea:7422
edge: true
server: {url: "nats://127.0.0.1:4222", leaf_url: "nats://127.0.0.1:7422", host: 127.0.0.1}
"""


KUBECONFIG = """\
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: hub, context: {cluster: c}}, {name: fleet, context: {cluster: c}}]
current-context: hub
"""


@pytest.fixture
def read(tmp_path):
    (tmp_path / "hub.yaml").write_text(KUBECONFIG)

    def read(text):
        file = tmp_path / "node.yaml"
        file.write_text(text)
        return read_run_config(file)

    return read


def refused(read, text):
    with pytest.raises(RunConfigRefused) as error:
        read(text)
    return [str(fault) for fault in error.value.faults]


def test_without_a_word_a_centre_is_embedded_and_an_edge_simulated(read):
    assert read(CENTRE).centre_spaces(Path("/etc")) == CentreSpaces()
    assert read(EDGE).cluster == SIMULATED


def test_a_centre_has_several_spaces_of_each_sort(read, tmp_path):
    text = CENTRE + "workloads: [embedded, {kubeconfig: hub.yaml, context: hub}]\n"
    text += "inventory: [embedded, {kubeconfig: hub.yaml, context: fleet}]\n"
    file = str(tmp_path / "hub.yaml")
    assert read(text).centre_spaces(tmp_path) == CentreSpaces(
        (EMBEDDED, SpaceSetting("kubeconfig", file, "hub")),
        (EMBEDDED, SpaceSetting("kubeconfig", file, "fleet")),
    )


def test_a_kubeconfig_that_leads_nowhere_is_a_fault_of_its_field(read, tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    text = CENTRE + "workloads: [{kubeconfig: gone.yaml}, {kubeconfig: hub.yaml, context: store}]\n"
    here, there, pod = refused(read, text + "inventory: [in-cluster]\n")
    assert here.startswith("workloads[0]: there is no kubeconfig ")
    assert there.startswith('workloads[1]: context "store" does not exist ')
    assert pod.startswith("inventory[0]: ")
    assert "name a kubeconfig" in pod


def test_a_file_that_is_written_reads_back_the_same(read, tmp_path):
    text = EDGE + "cluster: {kubeconfig: hub.yaml}\nhealth: {port: 8086}\n"
    config = read(text)
    write_run_config(tmp_path / "again.yaml", config)
    assert read_run_config(tmp_path / "again.yaml") == config


def test_all_faults_are_named_at_once_each_with_its_field_and_remedy(read):
    text = CENTRE.replace("path: /", "path: nowhere").replace("00ff", "red")
    text += "cluster: simulated\nworkloads: [embedded, embedded]\n"
    faults = refused(read, text)
    fields = [fault.partition(":")[0] for fault in faults]
    assert fields == ["path", "roots", "cluster", "workloads[1]"]
    assert all("; " in fault for fault in faults)


def test_all_faults_of_form_are_named_at_once(read):
    text = CENTRE.replace("tree: t1\n", "") + "workload: []\ninventory: []\nhealth: {port: 0}\n"
    text += "workloads: [simulated, {kubeconfig: 1}, {kubeconfg: a}, {}]\n"
    faults = refused(read, text)
    assert {fault.partition(":")[0] for fault in faults} == {
        "tree",
        "workload",
        "inventory",
        "health.port",
        "workloads[0]",
        "workloads[1].kubeconfig",
        "workloads[2].kubeconfg",
        "workloads[3]",
    }
    assert 'workload: unknown field; did you mean "workloads"?' in faults


def test_faults_of_form_hide_no_others(read):
    text = EDGE.replace("00ff", "red").replace("tls://emea", "nats://emea") + "colour: red\n"
    text += (
        "cluster: {kubeconfig: gone.yaml}\nhealth: {port: 1, hst: a}\nworkloads: [3, embedded]\n"
    )
    faults = refused(read, text)
    assert [fault.partition(":")[0] for fault in faults] == [
        "workloads[0]",
        "health.hst",
        "colour",
        "roots",
        "parent",
        "workloads",
        "cluster",
    ]
    assert 'health.hst: unknown field; did you mean "host"?' in faults
    assert any(fault.startswith("colour: unknown field; the fields are path, ") for fault in faults)


@pytest.mark.parametrize(
    "missing", ["path: /emea/store-1\n", "edge: true\n", "parent: tls://emea:7422\n"]
)
def test_what_is_wrong_with_a_field_is_no_fault_of_others(read, missing):
    field = missing.partition(":")[0]
    text = EDGE.replace(missing, f"{field}: [1]\n") + "cluster: simulated\n"
    assert [fault.partition(":")[0] for fault in refused(read, text)] == [field]


def test_an_empty_file_is_said_to_be_one(read):
    assert refused(read, "") == ["the file: it holds no fields; write them as NAME: VALUE"]


def test_spaces_that_are_named_in_a_data_directory_are_found_there(tmp_path):
    place = DataDir(tmp_path)
    assert place.spaces() == CentreSpaces()
    chosen = CentreSpaces((SpaceSetting("kubeconfig", "/hub.yaml", "hub"),), (EMBEDDED, IN_CLUSTER))
    place.write_spaces(chosen)
    assert place.spaces() == chosen
    (tmp_path / "spaces.json").write_text('{"workloads": [3], "inventory": []}')
    with pytest.raises(DataDirUnusable, match=r"spaces\.json is damaged"):
        place.spaces()


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        (
            CENTRE.replace("  tls: {certificate: c.pem, key: k.pem}\n", ""),
            "server.tls",
            "reached from",
        ),
        (
            CENTRE.replace("url: tls://centre:4222", "url: nats://centre:4222"),
            "server.url",
            "clear",
        ),
        (CENTRE.replace("leaf_url: tls:", "leaf_url: nats:"), "server.leaf_url", "clear"),
        (EDGE.replace("tls://emea", "nats://emea"), "parent", "nats://emea:7422 is in clear"),
        (EDGE.replace("host: 127.0.0.1", "host: 10.0.0.7"), "server.tls", "10.0.0.7"),
    ],
)
def test_an_address_beyond_this_machine_needs_tls(read, text, field, said):
    (fault,) = refused(read, text)
    assert fault.startswith(field)
    assert said in fault
    assert "; " in fault


@pytest.mark.parametrize("port", ["http", "70000"])
def test_an_address_that_is_none_is_a_fault_of_its_field(read, port):
    (fault,) = refused(read, EDGE.replace("tls://emea:7422", f"tls://emea:{port}"))
    assert fault.startswith(f"parent: tls://emea:{port} is no address")
    (fault,) = refused(read, EDGE.replace("tls://emea:7422", f"'tls://[::1:{port}'"))
    assert fault.startswith("parent: ")


def test_on_this_machine_nothing_needs_tls(read):
    text = EDGE.replace("tls://emea:7422", "nats://localhost:7422")
    assert read(text).server.tls is None


@pytest.mark.parametrize("lacks", [True, False])
def test_files_of_certificates_that_are_none_are_named_with_what_to_do(read, tmp_path, lacks):
    if not lacks:
        (tmp_path / "c.pem").write_bytes(b"\x30\x82\xd8\xff")
        (tmp_path / "k.pem").write_bytes(b"\x30\x82\xd8\xff")
    with pytest.raises(CertificateUnusable, match=r"c\.pem: .*; (put|name) ") as refusal:
        _check_certificate(read(CENTRE), tmp_path)
    assert ("No such file" in str(refusal.value)) is lacks
