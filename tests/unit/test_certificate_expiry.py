"""What the doctor hears of certificates: long before an end that nobody else prevents."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from leafcast.ask.remote import checked_answer
from leafcast.daemon.nodes.certificate_renewal import certificates, troubles
from leafcast.daemon.verbs.diagnosis import Diagnosis
from leafcast.data_dir import DataDir
from leafcast.doctor.checks import checks
from leafcast.doctor.findings import DoctorFacts
from leafcast.node.credentials.authorities import (
    begin_change,
    end_change,
    load_or_make_authorities,
    switch,
)
from leafcast.node.credentials.certificates import IssuedCertificates, IssuedUnreadable
from leafcast.node.credentials.own_certificate import check_files, validity
from leafcast.node.listen_settings import ListenSettings, keep_listen_settings
from relay.adapters.server.leaf_address import TlsFiles
from relay.adapters.tls.authority import Authority, new_key, signing_request, valid_until
from relay.adapters.tls.refusals import CertificateUnusable
from schemas.values.identity import NodePath, TreeId, random_id

NOW, DAY = 1_800_000_000_000, 86_400_000
TREE = TreeId(random_id(b"t" * 16))


def told(folder: Path, now_ms: int) -> dict[str, str]:
    """What is not well, by what it is about."""
    facts = DoctorFacts(now_ms, str(folder), 10**12, expiries=list(certificates(DataDir(folder))))
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
    said = ListenSettings(("tls://centre.example:7422",), str(file), str(tmp_path / "own.key"))
    keep_listen_settings(tmp_path, said)
    assert list(told(tmp_path, NOW + 75 * DAY).values()) == ["ok"]
    assert told(tmp_path, NOW + 77 * DAY) == {str(file): "warning"}
    file.unlink()
    assert told(tmp_path, NOW) == {}


def test_a_certificate_of_the_users_own_elsewhere_is_told_of_by_what_its_node_says(tmp_path):
    file = tmp_path / "far.pem"
    request = signing_request(new_key(), ["far.example"])
    file.write_text(Authority.make("own", NOW).issue(request, NOW, NOW + 90 * DAY))
    path, here = NodePath.parse("/far"), NodePath.parse("/here")
    answer = {"children": {}, **validity(TlsFiles(file, tmp_path / "far.key"))}
    said = checked_answer(path, answer)
    tree = SimpleNamespace(nodes={here: None})
    asked = Diagnosis(tree, None, None, list, list, None)

    def state(now_ms):
        expiries = list(asked._all_expiries({path: said, here: said}))
        assert [it.about for it in expiries] == ["/far"]
        facts = DoctorFacts(now_ms, str(tmp_path), 10**12, expiries=expiries)
        return [it.state for it in checks(facts) if it.group == "Expiry"]

    assert state(NOW + 75 * DAY) == ["ok"]
    assert state(NOW + 77 * DAY) == ["warning"]
    assert state(NOW + 91 * DAY) == ["failure"]
    assert validity(TlsFiles(tmp_path / "none.pem", tmp_path / "far.key")) == {}


def test_an_authority_of_the_users_own_is_told_of_two_weeks_before(tmp_path):
    file = tmp_path / "ca.pem"
    file.write_text(Authority.make("own", NOW).certificate)
    keep_listen_settings(
        tmp_path, ListenSettings(("wss://centre.example/leaf",), authorities=str(file))
    )
    ends = valid_until(file.read_text())
    assert list(told(tmp_path, ends - 15 * DAY).values()) == ["ok"]
    assert told(tmp_path, ends - 13 * DAY) == {str(file): "warning"}
    assert told(tmp_path, ends + DAY) == {str(file): "failure"}


def test_an_authority_that_ended_is_none_unless_another_one_stands_beside_it(tmp_path):
    file = tmp_path / "ca.pem"
    said = ListenSettings(("wss://centre.example/leaf",), authorities=str(file))
    ended = Authority.make("ended", NOW).certificate
    ends = valid_until(ended)
    file.write_text(ended)
    with pytest.raises(CertificateUnusable, match=r"CN=ended in it ended on .*; have a new one"):
        check_files(said, ends + DAY)
    file.write_text(ended + Authority.make("good", NOW + DAY + DAY).certificate)
    check_files(said, ends + DAY)


def wrong(folder: Path) -> list[tuple[str, str]]:
    facts = DoctorFacts(NOW, str(folder), 10**12, troubles=list(troubles(DataDir(folder), NOW)))
    found = [check for check in checks(facts) if check.group == "Certificates"]
    return [(check.state, check.remedy.partition(":")[0].partition(" names")[0]) for check in found]


def test_a_change_of_the_authority_that_waits_is_told_until_it_is_done(tmp_path):
    load_or_make_authorities(tmp_path, TREE, NOW)
    assert wrong(tmp_path) == []
    begin_change(tmp_path, TREE, NOW)
    assert wrong(tmp_path) == [("warning", "leafcast keys rotate authority")]
    switch(tmp_path)
    assert wrong(tmp_path) == [("warning", "leafcast keys rotate authority")]
    end_change(tmp_path)
    assert wrong(tmp_path) == []


def test_names_that_cannot_be_read_are_nobodys_to_take(tmp_path):
    (tmp_path / "tls").mkdir()
    file = tmp_path / "tls" / "issued.json"
    file.write_text("{")
    with pytest.raises(IssuedUnreadable, match=r"issued\.json .* restore it from a backup"):
        IssuedCertificates(tmp_path)
    assert wrong(tmp_path) == [("failure", "restore it from a backup, or remove it")]
    assert told(tmp_path, NOW) == {}
    file.unlink()
    assert IssuedCertificates(tmp_path).renewals() == {}


def test_a_certificate_of_the_users_own_that_no_child_would_take_is_told_of(tmp_path):
    authority, key = Authority.make("own", NOW), new_key()
    file, key_file = tmp_path / "own.pem", tmp_path / "own.key"
    file.write_text(authority.issue(signing_request(key, ["centre.example"]), NOW))
    key_file.write_text(key)
    keep_listen_settings(
        tmp_path, ListenSettings(("tls://centre.example:7422",), str(file), str(key_file))
    )
    assert wrong(tmp_path) == []
    key_file.write_text(new_key())
    assert wrong(tmp_path) == [("failure", "name the key that the certificate was made with")]
    key_file.unlink()
    assert wrong(tmp_path) == [("failure", "put it there again, or name another file")]
