"""A support bundle has no secret in it, whatever kind it is of and wherever it stands."""

import base64
import json
import stat
import tarfile
from dataclasses import asdict

import pytest

from leafcast.data_dir import DataDir
from leafcast.doctor.findings import DoctorFacts, NodeFacts
from leafcast.support import bundle as bundles
from leafcast.support.bundle import BundleUnwritten, SupportBundle, write_bundle
from leafcast.support.gathering import gather_here, note_nodes, tail
from leafcast.support.known_secrets import secrets_here, secrets_of_objects
from leafcast.support.redaction import HIDDEN, Redaction
from schemas.objects.objects import LAST_APPLIED

AT_MS = 1_800_000_000_000
KEPT = "open sesame, please"
IN_BASE64 = base64.b64encode(KEPT.encode()).decode()
OF_A_LOG, OF_A_USER, OF_THE_ENVIRONMENT = "hunter2", "kubeconfig-user-token-1", "env-swordfish"
OF_A_FILE, PASSPHRASE, IN_A_URL = "0badc0de" * 8, "correct horse battery staple", "p4ss/word"
SEED = "SUAICCIKTVCDY5YMHGUKSGGHMCCONW6OTAYUR2XLMKPB5NL6HGDXNIXIIM"
INVITING = "lc1mzxw6ytboi3dombqgu2tkmjsgiytanzxg5dfon2a"
OF_SERVICES = (
    # In pieces, so that no scanner of this repository takes them for real.
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "glpat-" + "x7Kq2mVtR9sLw4Zp8NbY",
    "xoxb-" + "123456789012-abcdefGHIJKL",
    "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "AGE-SECRET-KEY-1" + "Q" * 58,
)
PEM_LINE = "MC4CAQAwBQYDK2VwBCIEIPtestTestTestTestTestTestTestTestTest0123"
PEM = f"-----BEGIN PRIVATE KEY-----\n{PEM_LINE}\n-----END PRIVATE KEY-----"
JWT = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJsZWFmIn0.c2lnbmF0dXJlLXRleHQ"
SECRETS = (
    *(KEPT, IN_BASE64, OF_A_LOG, OF_A_USER, OF_THE_ENVIRONMENT, OF_A_FILE, PASSPHRASE),
    *("battery staple", IN_A_URL, SEED, INVITING, PEM_LINE, JWT, *OF_SERVICES),
)
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "door", "annotations": {LAST_APPLIED: json.dumps({"x": OF_A_LOG})}},
    "data": {"code": IN_BASE64},
    "stringData": {"more": OF_A_LOG},
}
EVERYWHERE = [
    f"refused: Invalid value: {KEPT!r} at the edge",
    f'data {IN_BASE64.rstrip("=")}, or "{KEPT}", or open%20sesame%2C%20please',
    f"leafcast join {INVITING} --data-dir d",
    f"seed is {SEED} there",
    f"dialling wss://leaf:{IN_A_URL}@proxy.example:8422/x",
    f"HTTPS_PROXY=http://user:{IN_A_URL}@proxy:3128",
    f"Authorization: Bearer {JWT}",
    f"authorization: Basic {base64.b64encode(IN_A_URL.encode()).decode()}",
    f"passphrase: {PASSPHRASE}",
    f"DB_PASSWORD={OF_A_LOG} was set",
    f'{{"password": "{OF_A_LOG}", "n": 1}} and {{\\"token\\":\\"{OF_A_LOG}\\"}}',
    f"--store-passphrase {OF_A_LOG} --api-key={OF_A_LOG}",
    f"token {OF_A_USER} and {OF_THE_ENVIRONMENT} and {OF_A_FILE}",
    PEM,
    PEM.replace("\n", "\\n"),
    f"{PEM_LINE}\n-----END PRIVATE KEY-----",
    *(f"refused with {token}, see there" for token in OF_SERVICES),
    # Who asks is known, what it says to be let in is not.
    f"postgres://{KEPT.replace(' ', '%20').replace(',', '%2C')}:{IN_A_URL}@db:5432/shop",
]
KUBECONFIG = {"users": [{"name": "u", "user": {"token": OF_A_USER, "client-key-data": "x"}}]}
DEPLOYMENT = {
    "kind": "Deployment",
    "spec": {
        "containers": [{"env": [{"name": "PLAIN", "value": OF_A_LOG}], "args": EVERYWHERE[11:12]}]
    },
    "rules": [{"path": "spec.dbPassword", "value": OF_A_LOG}],
    "proxy": f"http://user:{IN_A_URL}@proxy:3128",
}


def test_what_a_file_in_a_secret_says_is_known_by_itself():
    pulls = json.dumps({"auths": {"r.example": {"username": "builder", "password": "pull-Me-7"}}})
    lines = "export DB_PASS='S3-cret-4'\nMODE=production\nkey: S5-cret-6\nurl: https://x.example/"
    secret = {"data": {"j": base64.b64encode(pulls.encode()).decode()}, "stringData": {"e": lines}}
    hiding = Redaction(secrets_of_objects([secret]))
    for value in ("pull-Me-7", "S3-cret-4", "S5-cret-6"):
        assert hiding.text(f"builder said {value}, here") == f"builder said {HIDDEN}, here"
    kept = "production is at https://x.example/ of r.example"
    assert hiding.text(kept) == kept


@pytest.fixture
def place(tmp_path):
    """A data directory with secrets in what is read, and in what is never read."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "keys.json").write_text(json.dumps({"roots": [{"seed": OF_A_FILE}]}))
    (tmp_path / "lc_s1").mkdir()
    (tmp_path / "lc_s1" / "nats.conf").write_text("\n".join(["port: 4222", *EVERYWHERE]))
    (tmp_path / "lc_s1" / "ports.json").write_text("no JSON, " + OF_A_LOG)
    (tmp_path / "lc_s1" / "credentials.json").write_text(json.dumps({"seed": SEED}))
    (tmp_path / "lc_s1" / "kubeconfig").write_text(json.dumps(KUBECONFIG))
    (tmp_path / "node.yaml").write_text(f"path: /s1\nserver: {{password: {OF_A_LOG}}}\n")
    (tmp_path / "daemon.log").write_text("\n".join(["the tree is up", *EVERYWHERE]))
    (tmp_path / "elsewhere.log").symlink_to(tmp_path / "keys" / "keys.json")
    return DataDir(tmp_path)


def made_at(place):
    environment = {"MY_TOKEN": OF_THE_ENVIRONMENT, "KEY_FILE": "/etc/key", "COLUMNS": "80"}
    known = [*secrets_here(place, environment), *secrets_of_objects([SECRET])]
    made = SupportBundle(Redaction(known), AT_MS)
    gather_here(made, place)
    made.add(
        "events.json", [{"message": text, "object": "shop", "count": 7} for text in EVERYWHERE]
    )
    made.add("objects.json", [SECRET, DEPLOYMENT])
    made.add("nodes.json", {"users": KUBECONFIG["users"], "environment": {"MY_TOKEN": OF_A_LOG}})
    return made


def unpacked(file):
    with tarfile.open(file) as tar:
        return {it.name.partition("/")[2]: tar.extractfile(it).read().decode() for it in tar}


def test_no_secret_of_any_kind_is_in_the_file_and_what_is_none_is(place, tmp_path):
    file = tmp_path / "support.tar.gz"
    write_bundle(file, made_at(place).packed())
    parts = unpacked(file)
    found = {(secret, name) for name, text in parts.items() for secret in SECRETS if secret in text}
    assert found == set()
    assert "sesame" not in "".join(parts.values())
    assert "the tree is up" in parts["logs/daemon.log"]
    assert "port: 4222" in parts["configuration/lc_s1/nats.conf"]
    assert json.loads(parts["configuration/node.yaml"])[0]["path"] == "/s1"
    assert {it["count"] for it in json.loads(parts["events.json"])} == {7}
    assert "logs/elsewhere.log" not in parts
    assert not any("keys" in name or "credentials" in name for name in parts)
    # A file whose fields nobody can tell apart is left out, and that is said.
    contents = json.loads(parts["CONTENTS.json"])
    assert contents["missing"].keys() == {"configuration/lc_s1/ports.json"}


def test_what_tells_no_secret_stays_as_it_is():
    plain = {
        "nkey": "UAOFNAUXN26J5FUBF6XF6UNAN4F3VTOOFPGTZ54ASHJ5TZTMXNXMNLXA",
        "blob": "sha256:" + "0123456789abcdef" * 4,
        "url": "nats://127.0.0.1:4222",
        "path": "/sk-bratislava-stores/store-0001, task-glpat, disk-proj-of-many-words-0001",
        "tokens": 3,
        "said": "nodes of /region-1 are up; account_token_position: 4",
    }
    assert Redaction(["another-secret"]).form(plain) == plain


def test_a_secret_is_hidden_with_what_is_around_it_kept():
    said = Redaction(["swordfish"]).text("before swordfish, nats://u:pw@host:1 after")
    assert said == f"before {HIDDEN}, nats://{HIDDEN}@host:1 after"
    said = Redaction(["swordfish"]).text("pull https://swordfish:pw@host/x and <b>@c")
    assert said == f"pull https://{HIDDEN}@host/x and <b>@c"


def test_the_file_is_for_its_owner_only_and_replaces_nothing(tmp_path):
    file = tmp_path / "support.tar.gz"
    write_bundle(file, b"first")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(BundleUnwritten, match="it is there already; name another: --to FILE"):
        write_bundle(file, b"second")
    assert file.read_bytes() == b"first"
    assert [*tmp_path.iterdir()] == [file]
    with pytest.raises(BundleUnwritten, match="name another place"):
        write_bundle(tmp_path / "nowhere" / "support.tar.gz", b"")


def test_it_is_bounded_and_says_what_was_left_out(monkeypatch, tmp_path):
    monkeypatch.setattr(bundles, "PART_CHARACTERS_MAX", 100)
    monkeypatch.setattr(bundles, "BUNDLE_CHARACTERS_MAX", 250)
    made = SupportBundle(Redaction(), AT_MS)
    for name in ("a", "b", "c", "d"):
        made.add_text(name, f"{name} " * 500)
    assert all(len(text) < 200 and text.endswith("bounded\n") for text in made.parts.values())
    assert made.missing.keys() == {"a", "b", "c", "d"} - made.parts.keys() != set()
    log = tmp_path / "daemon.log"
    log.write_text("the first line\nthe second line\nthe third line\n")
    # Twenty characters reach into the second line.
    assert tail(log, 20) == "the third line\n"


def test_it_says_which_nodes_are_missing_and_why():
    silent = NodeFacts(
        "/a", "edge", "unreachable", here=False, since_ms=None, destinations=1, lag=0
    )
    made = SupportBundle(Redaction(), AT_MS)
    facts = DoctorFacts(AT_MS, "", 0, nodes=[silent])
    assert asdict(facts)["nodes"]
    note_nodes(made, facts.nodes)
    assert made.missing == {"/a": "it gave no answer: unreachable"}
