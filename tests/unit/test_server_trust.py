"""What a node's server is to do when certificates and authorities come."""

import pytest

from leafcast.node.credentials.node_certificate import NodeCertificate
from leafcast.node.credentials.server_trust import ServerStep, ServerTrust
from leafcast.node.options import Listening, NodeIdentity, ParentAccess
from relay.adapters.server.leaf_address import LeafAddress
from relay.adapters.server.nats_config import ParentRemote
from relay.adapters.tls.authority import Authority
from relay.adapters.tls.refusals import CertificateUnusable
from schemas.values.identity import NodePath

NOW = 1_800_000_000_000
TREE, OTHER = (Authority.make(name, NOW) for name in ("tree", "other"))
NAMES = ("emea.example",)


@pytest.fixture
def certificate(tmp_path):
    return NodeCertificate(tmp_path, NAMES)


def trust_of(folder, *, certificate=None, listens=True, believed=None):
    identity = NodeIdentity(NodePath.parse("/emea"), folder)
    address = LeafAddress(("tls://emea.example:7422",), 7422) if listens else None
    uplink, kept = None, []
    if believed is not None:
        file = folder / "parent.pem"
        file.write_text(believed)
        link = ParentRemote(("tls://centre.example:7422",), "seed", authorities=file)
        uplink = ParentAccess(link, None, kept.append)
    return ServerTrust(identity, Listening(address, "", certificate), uplink), kept


def test_the_first_certificate_lets_children_in_and_later_ones_are_shown(tmp_path, certificate):
    trust, _ = trust_of(tmp_path, certificate=certificate)
    assert trust.awaits_certificate
    made = TREE.issue(trust.request(), NOW)
    assert trust.take(made, TREE.certificate, NOW) is ServerStep.LISTEN
    assert not trust.awaits_certificate
    assert trust.authorities == TREE.certificate
    again = TREE.issue(trust.request(), NOW)
    assert trust.take(again, TREE.certificate, NOW) is ServerStep.RELOAD


def test_a_certificate_that_children_would_not_take_changes_nothing(tmp_path, certificate):
    trust, _ = trust_of(tmp_path, certificate=certificate)
    with pytest.raises(CertificateUnusable):
        trust.take(OTHER.issue(trust.request(), NOW), TREE.certificate, NOW)
    assert trust.awaits_certificate
    assert trust.authorities == ""


def test_other_authorities_are_believed_at_the_parent_only_with_one_that_was_before(tmp_path):
    trust, kept = trust_of(tmp_path, believed=TREE.certificate)
    assert trust.take("", OTHER.certificate, NOW) is ServerStep.NOTHING
    both = TREE.certificate + OTHER.certificate
    assert trust.take("", both, NOW) is ServerStep.RELOAD
    assert trust.take("", both, NOW) is ServerStep.NOTHING
    assert kept == [both]
    assert (tmp_path / "parent.pem").read_text() == both


def test_a_node_goes_on_with_what_its_folder_keeps(tmp_path, certificate):
    trust, _ = trust_of(tmp_path, certificate=certificate)
    trust.take(TREE.issue(trust.request(), NOW), TREE.certificate, NOW)
    later, _ = trust_of(tmp_path, certificate=NodeCertificate(tmp_path, NAMES))
    assert later.authorities == TREE.certificate
    assert not later.awaits_certificate


def test_a_server_without_a_certificate_of_the_trees_asks_for_none(tmp_path):
    trust, _ = trust_of(tmp_path)
    assert trust.request() == ""
    assert not trust.awaits_certificate
