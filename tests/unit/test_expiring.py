"""What the doctor hears of certificates: long before an end that nobody else prevents."""

from pathlib import Path

from leafcast.daemon.nodes.expiring import certificates
from leafcast.data_dir import DataDir
from leafcast.doctor.checks import checks
from leafcast.doctor.findings import Facts
from leafcast.local.authorities import load_or_make_authorities
from leafcast.local.certificates import IssuedCertificates
from leafcast.local.listening import Listening, keep_listening
from relay.adapters.tls.authority import Authority, new_key, signing_request
from schemas.identity import NodePath, TreeId, random_id

NOW, DAY = 1_800_000_000_000, 86_400_000
TREE = TreeId(random_id(b"t" * 16))


def told(folder: Path, now_ms: int) -> dict[str, str]:
    """What is not well, by what it is about."""
    facts = Facts(now_ms, str(folder), 10**12, expiries=list(certificates(DataDir(folder))))
    found = [check for check in checks(facts) if check.group == "Expiry"]
    return {check.said.partition(" expire")[0]: check.state for check in found} if found else {}


def test_a_tree_without_certificates_has_none_that_expire(tmp_path):
    assert told(tmp_path, NOW) == {}


def test_a_certificate_of_ours_is_told_of_only_once_its_renewal_is_late(tmp_path):
    authority, path = load_or_make_authorities(tmp_path, TREE, NOW).signing, NodePath.parse("/far")
    made = authority.issue(signing_request(new_key(), ["far.example"]), NOW)
    IssuedCertificates(tmp_path).keep(path, ["far.example"], made, authority.certificate)
    assert list(told(tmp_path, NOW + 20 * DAY).values()) == ["ok"]
    assert told(tmp_path, NOW + 22 * DAY)["the certificate of /far"] == "warning"
    assert told(tmp_path, NOW + 31 * DAY)["the certificate of /far"] == "failure"
    assert told(tmp_path, NOW + 3640 * DAY)["the tree's certificate authority"] == "warning"


def test_a_certificate_of_the_users_own_is_told_of_two_weeks_before(tmp_path):
    authority, file = Authority.make("own", NOW), tmp_path / "own.pem"
    request = signing_request(new_key(), ["centre.example"])
    file.write_text(authority.issue(request, NOW, NOW + 90 * DAY))
    said = Listening(("tls://centre.example:7422",), str(file), str(tmp_path / "own.key"))
    keep_listening(tmp_path, said)
    assert list(told(tmp_path, NOW + 75 * DAY).values()) == ["ok"]
    assert told(tmp_path, NOW + 77 * DAY) == {str(file): "warning"}
    file.unlink()
    assert told(tmp_path, NOW) == {}
