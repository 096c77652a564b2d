"""What lies on disk: grants, keys, notes, markers, and the settings of nodes run elsewhere."""

from __future__ import annotations

import atexit
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import click

from controllers.core.access.keys import KeysRequest
from controllers.issuing.keys import (
    KEYRING_FILE,
    KeysUnusable,
    load_keyring,
    load_or_make_keys,
)
from leafcast.backups.refusals import BackupUnusable
from leafcast.backups.whole_file import read_backup
from leafcast.bundles.sums import BundleUnusable
from leafcast.bundles.verification import verify_bundle
from leafcast.centre.planned_nodes import planned_nodes
from leafcast.cli.commands.node_list import _read as read_sites
from leafcast.data_dir import FORMAT, DataDir, DataDirUnusable
from leafcast.doctor.live_cluster import _renewed
from leafcast.join.folder import CLUSTER_FILE, JoinedFolder, cluster_of, read_joined
from leafcast.join.kept_grant import GrantUnreadable, read_grant
from leafcast.key_files import (
    PUBLIC,
    ROOT,
    public_keys,
    read_public,
    read_request,
    read_root,
    request_form,
)
from leafcast.key_form import KeyFileRefused
from leafcast.manifest_sources import BadManifests, read_manifests
from leafcast.members.settings import FILE as MEMBER_FILE
from leafcast.members.settings import MemberUnusable, kept_member
from leafcast.node.claim_note import FILE as CLAIM_FILE
from leafcast.node.claim_note import read_note
from leafcast.node.credentials.account_seeds import account_seeds
from leafcast.node.credentials.files import CredentialsUnusable, load_credentials
from leafcast.node.credentials.kept_store import kept_store
from leafcast.node.kept_health import kept_health
from leafcast.node.known_children import KnownChildren
from leafcast.node.run_config import RunConfigRefused, read_run_config, written_run_config
from leafcast.proofs import ProofChecked, check_proof, proof_form, read_proof_file
from leafcast.signed_manifests import is_signed
from leafcast.space_settings import EMBEDDED, CentreSpaces, SpaceSetting
from leafcast.support.bundle import SupportBundle
from leafcast.support.gathering import gather_here
from leafcast.support.known_secrets import secrets_here, secrets_of_objects
from leafcast.support.redaction import Redaction
from leafcast.upgrades.release_folder import ReleaseFolder
from relay.adapters.clock import SystemDice
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.adapters.server.ports import PortsDamaged, kept_ports
from relay.adapters.server.store_key import (
    CHECK_FILE,
    StoreKey,
    StoreKeyRefused,
    check_key,
    read_store_key,
)
from relay.adapters.server.store_mark import MARK_FILE, StoreMarkDamaged, kept_mark
from relay.objects.serving import without_string_data
from relay.space_errors import SpaceError
from schemas.records.records import encode_payload
from schemas.releases.release_folder import LAUNCHER
from schemas.values.codec import from_json
from tests.doubles.proofs import CART, SEALING, object_proof, signed_proof
from tests.fuzz.target import Form, Target
from tests.property.test_hostile_bytes import GRANT, PATH
from tests.unit import test_wire_golden as golden

OF_NOTHING = hashlib.sha256(b"").hexdigest()
SEED = new_user_nkey(bytes(range(32)))[0]
KEY = {"key_id": "k" * 26, "seed": "00" * 32}
STORE_KEY = StoreKey("k" * 40)
KEYS = golden.SIGNER.seal("keys", encode_payload(golden.RECORDS["keys"]))
MESSAGE = KEYS.encode().hex()
ROOT_FILE = {"kind": ROOT, **KEY}
REQUEST_FILE = request_form(KeysRequest(GRANT.tree, 6, KEYS.payload, {KEYS.key_id: KEYS.signature}))
Read = Callable[[Path], Any]


@cache
def folder() -> Path:
    """One for this process."""
    made = tempfile.mkdtemp(prefix="leafcast-fuzz-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def file(name: str, read: Read, refusal: type[Exception] | tuple[()], *real: object) -> Target:
    """A file of this name holds anything, and is read or refused."""

    def run(data: bytes) -> None:
        place = folder() / name
        place.write_bytes(data)
        place.chmod(0o600)
        try:
            with suppress(refusal):
                read(folder())
        finally:
            place.unlink(missing_ok=True)

    texts = [it if isinstance(it, str) else json.dumps(it) for it in real]
    return Target(run, lambda: [text.encode() for text in texts], Form.JSON)


def bundled(at: Path) -> None:
    """What a support bundle makes of the files of a data directory, and of Secrets that say it."""
    place = DataDir(at)
    said = {it.name: it.read_text(errors="replace") for it in at.rglob("*") if it.is_file()}
    known = [*secrets_here(place, {}), *secrets_of_objects([{"stringData": said}])]
    gather_here(SupportBundle(Redaction(known), 0), place)


KUBECONFIG = {
    "users": [
        {"name": "me", "user": {"token": "dG9rZW4=", "client-key-data": "a2V5"}},
    ]
}
JOINED = {
    "tree": GRANT.tree,
    "path": "/emea/s1",
    "home": "h" * 26,
    "admitted": True,
    "former": ["/emea/s0"],
    "arriving": ["/emea/s0"],
}
RUN = {
    "path": "/emea",
    "tree": GRANT.tree,
    "roots": {"k" * 26: "00" * 32},
    "parent": "nats-leaf://127.0.0.1:7422",
    "edge": False,
    "server": {
        "url": "nats://127.0.0.1:1",
        "leaf_url": "nats-leaf://127.0.0.1:2",
        "config": "nats.conf",
        "store_dir": "store",
        "host": "127.0.0.1",
        "port": 1,
        "leaf_port": 2,
    },
}

MEMBER = {
    "tree": GRANT.tree,
    "path": "/emea",
    "member": "m1",
    "port": 6222,
    "routes": ["127.0.0.1:6223", "127.0.0.1:6224"],
    "password": "a" * 32,
    "leafUrls": ["nats://127.0.0.1:7422"],
    "clientUrls": {"m1": "nats://127.0.0.1:4222", "m2": "nats://127.0.0.1:4223"},
    "keys": {"m1": "00" * 32, "m2": "11" * 32},
    "key": "22" * 32,
}


STORE = SpaceSetting("kubeconfig", "/hub.yaml", "hub")
SPACES = CentreSpaces((EMBEDDED, STORE), (EMBEDDED,), allow_live=True)


def manifest(folder: Path) -> None:
    read_manifests([str(folder / "any.yaml")], str, recursive=False)


def json_in(file: Path) -> Any:
    return from_json(file.read_bytes())


def secret(at: Path) -> None:
    said = json_in(at / "secret.json")
    without_string_data({"apiVersion": "v1", "kind": "Secret", "data": said, "stringData": said})


def backup(at: Path) -> None:
    """A backup that anyone may have written."""
    with io.BytesIO() as whole:
        with tarfile.open(fileobj=whole, mode="w") as tar:
            for name, data in (
                ("backup.json", (at / "backup.json").read_bytes()),
                ("keys/keys.json", b"{}"),
            ):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        whole.seek(0)
        with tarfile.open(fileobj=whole, mode="r") as tar:
            read_backup(at / "any.tar", tar)


def held_to(checked: ProofChecked) -> None:
    """Hold an object to what a proof says of it."""
    for record in checked.records:
        assert record.listed is None or not record.refused or not checked.good
        if record.listed is not None:
            is_signed(record.listed, CART)


def sums_of_bundle(at: Path) -> None:
    """A bundle whose list of sums anyone may have written."""
    said = (at / "SHA256SUMS").read_bytes()
    with tarfile.open(at / "bundle.tar", "w") as tar:
        for name, data in (("SHA256SUMS", said), ("SHA256SUMS.sig", b"x"), ("install.sh", b"")):
            info = tarfile.TarInfo(f"leafcast-1.0/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    verify_bundle(at / "bundle.tar", None)


TARGETS = {
    "bundle": file(
        "bundle.tar",
        lambda at: verify_bundle(at / "bundle.tar", None),
        BundleUnusable,
        "leafcast-1",
    ),
    "sums of a bundle": file(
        "SHA256SUMS", sums_of_bundle, BundleUnusable, f"{OF_NOTHING}  install.sh\n"
    ),
    "backup": file(
        "backup.json",
        backup,
        BackupUnusable,
        {"format": 1, "tree": GRANT.tree, "timeMs": 7, "streams": {}},
    ),
    "sites": file(
        "sites.csv",
        lambda at: read_sites(at / "sites.csv", {}),
        click.ClickException,
        "path,kind\n/emea/s1,store\n",
    ),
    "store key": file(
        "any.key", lambda at: read_store_key(at / "any.key"), StoreKeyRefused, STORE_KEY.secret
    ),
    "store key's place": file(
        "store.json",
        kept_store,
        StoreKeyRefused,
        {"key_file": "/etc/leafcast/store.key", "durability": "disk"},
    ),
    "health port": file(
        "health.json", kept_health, DataDirUnusable, {"port": 8086, "host": "127.0.0.1"}
    ),
    "store key's check": file(
        CHECK_FILE, lambda at: check_key(at, STORE_KEY), StoreKeyRefused, STORE_KEY.check
    ),
    "secret": file("secret.json", secret, (SpaceError, ValueError), {"key": "dmFsdWU="}),
    "lease": file(
        "lease.json",
        lambda at: _renewed({"spec": {"renewTime": json_in(at / "lease.json")}}, 0),
        ValueError,
        '"2026-01-31T12:00:00.000000Z"',
    ),
    "manifest": file("any.yaml", manifest, BadManifests, {"apiVersion": "v1", "kind": "List"}),
    "grant": file(
        "bundle.json",
        lambda at: read_grant(at / "bundle.json"),
        GrantUnreadable,
        GRANT.to_text(),
    ),
    "credentials": file(
        "credentials.json",
        lambda at: load_credentials(at, PATH),
        CredentialsUnusable,
        {"path": str(PATH), "seed": SEED},
    ),
    "keys": file(
        "keys.json",
        lambda at: load_or_make_keys(at, SystemDice()),
        KeysUnusable,
        {"tree": GRANT.tree, "root": KEY, "signing": KEY},
    ),
    "ring": file(
        "keys.json",
        lambda at: load_or_make_keys(at, SystemDice()),
        KeysUnusable,
        {
            "tree": GRANT.tree,
            "roots": [KEY],
            "signing": KEY,
            "prepared": [KEY],
            "message": MESSAGE,
        },
    ),
    "root key": file(
        "root.key", lambda at: read_root(at / "root.key", GRANT.tree), KeyFileRefused, ROOT_FILE
    ),
    "public root key": file(
        "root.pub",
        lambda at: read_public(at / "root.pub"),
        KeyFileRefused,
        {"kind": PUBLIC, "key_id": "k" * 26, "public_key": "00" * 32},
    ),
    "named roots": file(
        "roots.json",
        lambda at: public_keys(json_in(at / "roots.json")),
        (ValueError, TypeError, AttributeError),
        {"k" * 26: "00" * 32},
    ),
    "keys request": file(
        "request.json", lambda at: read_request(at / "request.json"), KeyFileRefused, REQUEST_FILE
    ),
    "proof": file(
        "proof.json",
        lambda at: check_proof(read_proof_file(at / "proof.json")),
        KeyFileRefused,
        proof_form(signed_proof()),
    ),
    "proof of an object": file(
        "proof.json",
        lambda at: held_to(check_proof(read_proof_file(at / "proof.json"))),
        KeyFileRefused,
        proof_form(object_proof(SEALING, SEALING.key)),
    ),
    "masters": file(
        KEYRING_FILE,
        lambda at: load_keyring(at, GRANT.tree),
        KeysUnusable,
        {
            "tree": GRANT.tree,
            "masters": ["11" * 32, "22" * 32],
            "marking": "33" * 32,
            "counts": {"p" * 32: [1, 2], "q" * 32: 3},
        },
    ),
    "member": file(MEMBER_FILE, kept_member, MemberUnusable, MEMBER),
    "kind of store": file(
        MARK_FILE,
        kept_mark,
        StoreMarkDamaged,
        {"tree": GRANT.tree, "node": "/emea", "cluster": "c", "member": "m1"},
    ),
    "tree": file(
        "tree.json",
        lambda at: DataDir(at).tree(),
        DataDirUnusable,
        {"format": FORMAT, "shape": [2, 3, 3]},
    ),
    "daemon": file(
        "daemon.json",
        lambda at: DataDir(at).daemon(),
        DataDirUnusable,
        {"pid": 7, "url": "nats://127.0.0.1:1", "ready": True},
    ),
    "admin": file(
        "admin.json", lambda at: DataDir(at).admin(), DataDirUnusable, {"url": "u", "seed": SEED}
    ),
    "bundled": file("admin.json", bundled, (), {"url": "u", "seed": SEED, "env": {"KEY": "a"}}),
    "bundled-kubeconfig": file("kubeconfig", bundled, (), KUBECONFIG),
    "bundled-settings": file("node.yaml", bundled, (), RUN),
    "joined": file("joined.json", read_joined, DataDirUnusable, JOINED),
    "spaces": file("spaces.json", lambda at: DataDir(at).spaces(), DataDirUnusable, SPACES.form()),
    "cluster": file(
        CLUSTER_FILE,
        lambda at: cluster_of(JoinedFolder(at, GRANT.tree, PATH, "h" * 26), None),
        DataDirUnusable,
        {"kubeconfig": "/store.yaml", "context": "store"},
    ),
    "claim": file(
        CLAIM_FILE,
        lambda at: read_note(at / CLAIM_FILE),
        DataDirUnusable,
        {"edge": "e" * 26, "cluster": "one"},
    ),
    "launched": file(
        LAUNCHER, lambda at: ReleaseFolder(at).said(), (), {"running": "1", "state": "healthy"}
    ),
    "planned": file(
        "planned.json",
        lambda at: planned_nodes(DataDir(at)),
        DataDirUnusable,
        [{"path": "/emea", "nkey": "U", "edge": False}],
    ),
    "accounts": file(
        "accounts.json",
        lambda at: account_seeds(at, SystemDice()),
        CredentialsUnusable,
        dict.fromkeys(("relay", "uplink", "space", "system"), SEED),
    ),
    "children": file("children.json", KnownChildren, (), {"emea": "U"}),
    "ports": file("ports.json", kept_ports, PortsDamaged, {"client": 4222, "leaf": 7422}),
    "run": file(
        "run.yaml",
        lambda at: read_run_config(at / "run.yaml"),
        RunConfigRefused,
        RUN,
        {**RUN, "edge": "perhaps", "workloads": [{"cluster": 1}]},
    ),
    "written-run": file(
        "run.yaml", lambda at: written_run_config(at / "run.yaml"), RunConfigRefused, RUN
    ),
}
