"""Every decoder is fuzzed: by chance everywhere, and where atheris is, guided by coverage."""

import os
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz.mutation import mutate
from tests.fuzz.openers import ROOT, decoders, reached
from tests.fuzz.table import targets

TARGETS = targets()
CHANGES = 60
RUNS, SECONDS_EACH, SECONDS_MAX = 1_000, 120, 500
EXEMPT = {
    "schemas/values/trace_ids.py::w3c_trace_id": "its pattern lets nothing through that fails",
    "leafcast/assistants/answers.py::_read": "read_objects reads it",
    "leafcast/join/relay_member.py::RelayMember._link": "it compares the text",
    "leafcast/launcher/installation.py::_check_wire": "read_manifest reads it",
    "leafcast/launcher/installation.py::_is_there": "read_manifest reads it",
    "leafcast/launcher/installation.py::_unpack": "what the publisher signed",
    "leafcast/launcher/launcher.py::Launcher._look_at_worker": "of the own program",
    "leafcast/machine.py::boot_id": "of the operating system",
    "leafcast/service/container_health.py::main": "of the own process",
    "leafcast/service/host_facts.py::_file_system": "of the operating system",
    "leafcast/service/installed.py::Services.names": "it compares the first bytes",
    "leafcast/service/installed.py::Services.publisher_of": "it finds a text or none",
    "leafcast/ui/app.py::_Page.shell": "the page's own file",
    "leafcast/ui/app.py::_static": "the page's own file",
    "relay/adapters/installed.py::_written": "of the own installation",
    "relay/adapters/jetstream/bus.py::JetStreamBus._bring_back": "of the own server",
    "schemas/lean_import.py::load_without": "it reads nothing",
    "controllers/spaces/space_marks.py::SpaceContinuity.read_at": "it reads nothing",
    "leafcast/join/join_request.py::_pending_in": "read_pending reads it",
    "leafcast/join/joining_member.py::JoiningMember.run": "read_member_note read it",
    "relay/adapters/jetstream/stream_mending.py::_brought_back": "of the own server",
    "relay/adapters/jetstream/stream_mending.py::_note_of_whole": "of the own server",
    "schemas/kind_check.py::parse_own_kind": "parse_kind reads it",
    "controllers/core/ledger/ledger_issuer.py::LedgerIssuer.withdraw": "read_orphans checked it",
    "controllers/core/planning/copies.py::Copies._open": "content as it was issued",
    "controllers/core/rollout/rollouts.py::_named": "it takes a text or none of what is no Rollout",
    "controllers/core/rollout/release_steps.py::wave_statuses": "counts that were read",
    "controllers/core/workloads/releases.py::LeafcastReleases._read": "parse_kind read it",
    "controllers/workloads/release_controller.py::ReleaseController._good_since": "its own words",
    "leafcast/backups/centre_files.py::whole_tree": "of a backup whose hashes were compared",
    "leafcast/bundles/installed_files.py::_compiled_otherwise": "in a process that ends with it",
    "leafcast/bundles/installed_files.py::_listed": "of the own installation",
    "leafcast/bundles/installed_files.py::compare_installed": "of the own installation",
    "leafcast/daemon/logs.py::error_in": "of the own daemon",
    "leafcast/cli/commands/upgrade.py::_read": "read_manifest reads it",
    "leafcast/cli/commands/upgrade.py::_upgrades_from": "read_manifest reads it",
    "leafcast/cli/commands/upgrade.py::read_waves": "a person's own command line",
    "controllers/core/workloads/space.py::Workloads._read": "parse_kind reads it",
    "controllers/core/workloads/collectors.py::Collectors._read": "parse_kind read it",
    "controllers/core/workloads/health_rules.py::HealthRules._read": "parse_kind read it",
    "controllers/core/workloads/read_objects.py::ReadObjects._read": "it reads nothing",
    "controllers/core/workloads/what.py::_labels_named": "a selector that was read",
    "leafcast/members/layout.py::copy_state": "a copy, as it is",
    "leafcast/members/state_files.py::StateFiles.changes": "a copy, as it is",
    "leafcast/members/state_files.py::StateFiles.lay": "a copy, as it is",
    "leafcast/ask/proofs.py::_asked": "read_proof reads it",
    "leafcast/ask/proofs.py::_shown_list": "read_proof reads it",
    "leafcast/ask/proofs.py::with_keys": "check_proof read it before",
    "leafcast/ask/session.py::Session._standing": "of the own members",
    "relay/adapters/jetstream/blobs.py::Blobs._own": "of the own server",
    "relay/adapters/jetstream/fence.py::_last": "of the own server",
    "relay/adapters/jetstream/lease_stream.py::LeaseStream.look": "of the own server",
    "relay/adapters/jetstream/lease_stream.py::_note": "of the own members",
    "relay/adapters/jetstream/member_presence.py::MemberPresence.look": "of the own members",
    "controllers/spaces/informer.py::SpaceReconciler.read_to": "it reads nothing",
    "controllers/work_queue.py::WorkQueue.read_to": "it reads nothing",
    "leafcast/cli/commands/nats_config.py::nats_config": "it shows a text as it is",
    "leafcast/cli/commands/node_list.py::read_labels": "what the command line says",
    "leafcast/cli/options/release_limits.py::read_window": "what the command line says",
    "leafcast/cli/options/objects.py::load_files": "read_manifests reads it",
    "leafcast/cli/commands/wait.py::_read_condition": "what the command line says",
    "controllers/restoring.py::_object": "content as it was issued",
    "schemas/records/windows.py::_zone_named": "it is remembered: a fuzz may find its zone known",
    "leafcast/daemon/verbs/chosen_removals.py::_read_selector": "from_kubernetes reads it",
    "leafcast/machine.py::machine_id": "of the operating system",
    "leafcast/cli/commands/wait.py::placements_named": "load_files reads it",
    "leafcast/cli/commands/wait.py::placement_named": "load_files reads it",
    "leafcast/node/credentials/authorities.py::switch": "it copies a file that it wrote",
    "leafcast/node/credentials/server_trust.py::ServerTrust._believe_at_parent": "any text",
    "leafcast/node/credentials/own_certificate.py::OwnCertificate._digest": "it reads nothing",
    "leafcast/node/credentials/own_certificate.py::read_pem": "check_pair reads it",
    "leafcast/node/listen_settings.py::ListenSettings.authorities_text": "authorities are checked",
    "leafcast/node/credentials/server_trust.py::ServerTrust.__init__": "check_pair read it",
    "relay/adapters/kubernetes/credentials.py::_authority": "a program reads it",
    "relay/adapters/server/external_server.py::ServerPlace.authorities_text": "check_pair reads it",
    "leafcast/cli/main.py::_Commands.parse_args": "click's",
    "leafcast/ask/rollouts.py::is_asked_for": "what is no request of ours refuses nothing",
    "leafcast/changes/asked_batches.py::_unsayable": "it reads what it wrote just before",
    "leafcast/changes/asked_batches.py::judged": "of the own daemon",
    "leafcast/changes/judged_batch.py::JudgedBatch.written": "of the own daemon",
    "leafcast/ask/session.py::Session.call": "of the own daemon",
    "leafcast/spaces.py::open_kubernetes": "read_access reads it",
    "leafcast/backups/centre_files.py::centre_files": "a copy, as it is",
    "leafcast/backups/restoring.py::_read": "a copy, as it is",
    "leafcast/backups/restoring.py::open_piecewise": "open_index reads it",
    "leafcast/cli/commands/backup.py::_Backup.parse_args": "click's",
    "leafcast/cli/commands/bundle.py::_MakesBundles.parse_args": "click's",
    "leafcast/cli/options/operator_key.py::passphrase": "what the command line says",
    "leafcast/daemon/verbs/backups.py::Backups.change": "of the own command",
    "leafcast/backups/centre_files.py::tree_of": "load_or_make_keys read it before",
    "leafcast/demo/workload.py::load_files": "read_manifests reads it",
    "leafcast/demo/workload.py::load_shop": "of this package",
    "leafcast/ask/space_events.py::EventReader.read": "of the own daemon",
    "leafcast/daemon/nodes/member_replacement.py::MemberReplacement._go_on": "the machine opens it",
    "leafcast/members/membership.py::Succession.keys": "read_membership checked them",
    "leafcast/members/replacing.py::Replacing._drafted": "of the own server",
    "leafcast/members/steps.py::carry_out": "a copy, as it is",
    "relay/adapters/jetstream/read_places.py::ReadPlaces.read": "it reads nothing",
    "relay/shell/inbox.py::Inbox._take_from": "messages, which the node reads",
    "relay/adapters/asking.py::Asking._introduce": "of the own server",
    "relay/adapters/jetstream/copies.py::_written_ms": "of the own server",
    "relay/adapters/jetstream/stream_backup.py::_api": "of the own server",
    "relay/adapters/jetstream/stream_backup.py::restore_stream": "of the own server",
    "relay/core/records/accepted.py::AcceptedRecord.held": "its term was checked when it was read",
    "relay/adapters/spaces/bucket.py::Bucket._opened": "parts_named and unpack open it",
    "leafcast/local/kube_servers/api_server.py::ApiServer._read_port": "of the own server",
    "leafcast/local/kube_servers/api_server.py::ApiServer._request": "of the own server",
    "leafcast/local/kube_servers/api_server.py::ApiServer.access": "of the own server",
    "leafcast/local/kube_servers/api_server.py::ApiServer.start": "of the own server",
    "leafcast/local/kube_servers/kubeconfig.py::read_users": "written by us for the own server",
    "leafcast/bundles/packing.py::make_bundle": "its own installer, which comes with it",
    "relay/adapters/server/port_holder.py::_holder": "of the kernel",
    "relay/adapters/server/port_holder.py::_listening": "of the kernel",
    "leafcast/node/health_endpoint.py::HealthAddress.parse": "it reads what it wrote just before",
    "relay/adapters/server/admin.py::asked": "of the own server, by its system account",
    "relay/adapters/server/server_figures.py::_read": "of the own server, by its system account",
    "relay/objects/stored_object.py::uid_from": "of dice",
    "leafcast/changes/placements_by_names.py::_clauses": "it reads what it wrote just before",
    "relay/adapters/kubernetes/discovery.py::Discovery.read_as": "it reads nothing",
    "relay/objects/awaited.py::_moment_ms": "a time of a server, or it is none",
    "relay/syncer/applier.py::Applier._unsaid": "content by the hash that the tree signed",
    "relay/syncer/applier.py::Applier.content": "content by the hash that the tree signed",
}
"""What opens bytes and is not fuzzed itself, and why not."""


def changed_by_chance(data: bytes, size: int) -> bytes:
    """What a fuzzer without guidance does."""
    dice, found = random.Random(data), bytearray(data)
    for _ in range(dice.randrange(1, 5)):
        at = dice.randrange(len(found) + 1)
        match dice.randrange(3):
            case 0:
                found[at : at + 1] = bytes([dice.randrange(256)])
            case 1:
                found[at:at] = bytes([dice.randrange(256)])
            case _:
                del found[at : at + dice.randrange(1, 9)]
    return bytes(found[:size])


@pytest.mark.parametrize("name", TARGETS)
def test_a_real_input_changed_by_chance_is_read_or_refused(name):
    target = TARGETS[name]
    for seed in target.seeds():
        target.run(seed)
        data = seed
        for number in range(CHANGES // len(list(target.seeds())) + 1):
            data = mutate(
                target.form, target.chosen, data, target.bytes_max, number, changed_by_chance
            )
            target.run(data)
    for data in (b"", b"\0", b"\xff" * 100, b"[" * 20_000, b"\x91" * 2_000, b"\x81\xa1a" * 1_000):
        target.run(data)


def test_every_decoder_is_fuzzed():
    def run_all() -> None:
        for target in TARGETS.values():
            for seed in target.seeds():
                target.run(seed)

    known, seen = set(decoders()), reached(run_all)
    left = sorted(known - seen - EXEMPT.keys())
    assert not left, "give each a target in tests/fuzz, or say in EXEMPT why it needs none"
    assert not sorted(EXEMPT.keys() - (known - seen)), "these are fuzzed, or not there any more"


@pytest.mark.skipif(
    find_spec("atheris") is None,
    reason="NOT RUN: no atheris; it has wheels for CPython 3.11 to 3.14 on Linux x86-64: "
    "run `make setup` there, or `pip install atheris`",
)
@pytest.mark.timeout(SECONDS_MAX + 60)
def test_a_guided_fuzz_finds_the_planted_defects_and_no_others(tmp_path):
    bounds = ["--runs", str(RUNS), "--seconds", str(SECONDS_EACH)]
    said = subprocess.run(  # noqa: PLW1510 - what it found is in its output
        [sys.executable, "-m", "tests.fuzz", "wire", "planted", *bounds],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    rows = [line.split() for line in said.stdout.splitlines()]
    ran = {row[0]: int(row[1]) for row in rows if len(row) == 6 and row[1].isdecimal()}
    assert said.stdout.splitlines()[-1] == f"findings: 2 in {len(ran)} targets", said.stdout
    assert said.returncode == 1
    assert "stumble: a finding" in said.stdout
    assert "swell: a finding" in said.stdout
    assert "MemoryError" in said.stdout
    wire = targets(("wire",))
    assert all(ran[name] >= RUNS for name in wire)

    (replay,) = [line for line in said.stdout.splitlines() if "fuzz stumble --replay" in line]
    again = subprocess.run(  # noqa: PLW1510 - it fails
        [sys.executable, *replay.split()[2:]], cwd=ROOT, capture_output=True, text=True
    )
    assert again.returncode
    assert "in stumble" in again.stderr
    assert Path(replay.split()[-1]).is_file()
