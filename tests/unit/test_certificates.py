"""Certificates are renewed in time: here, and over the tree; the clock is moved, nobody waits."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from leafcast.ask.api import ApiError
from leafcast.daemon.nodes.certificate_renewal import CertificateRenewal
from leafcast.node.credentials.authorities import load_or_make_authorities
from leafcast.node.credentials.certificates import (
    IssuedCertificates,
    LocalListening,
    NameTaken,
    NodeCertificate,
)
from leafcast.node.credentials.own_certificate import OwnCertificate
from leafcast.node.listen_settings import (
    ListenRefused,
    ListenSettings,
    keep_listen_settings,
    kept_listen_settings,
    listen_settings,
)
from relay.adapters.server.logged_process import ServerFailed
from relay.adapters.tls.authority import (
    Authority,
    certified_names,
    new_key,
    renewal_due,
    requested_names,
    signing_request,
    valid_until,
)
from relay.adapters.tls.certificate_checks import CertificateUnusable, check_pair
from relay.core.instant import Instant
from relay.shell.asker import AskFailed
from schemas.records.asks import CERTIFY, NODE, AskFault
from schemas.records.records import NodeRecord, Source
from schemas.values.identity import NodePath, TreeId

DAY_MS = 86_400_000
TREE = TreeId("t" * 26)
CENTRE, EMEA, APAC = NodePath(), NodePath.parse("/emea"), NodePath.parse("/apac")


@dataclass
class MovedClock:
    wall_ms: int = 1_800_000_000_000

    def now(self):
        return Instant(0.0, self.wall_ms)


@dataclass
class Server:
    reloads: int = 0

    async def reload(self):
        self.reloads += 1


class FailsOnce(Server):
    async def reload(self):
        await super().reload()
        if self.reloads == 1:
            raise ServerFailed("it is down", [])


def local(tmp_path, clock, said):
    def authority():
        return load_or_make_authorities(tmp_path, TREE, clock.wall_ms)

    relays = [CENTRE, EMEA]
    return LocalListening(said, relays, lambda path: tmp_path / path.domain, authority, clock)


async def test_relays_here_are_renewed_at_two_thirds_and_their_servers_reloaded(tmp_path):
    clock, server = MovedClock(), Server()
    here = local(tmp_path, clock, listen_settings(["centre.example"], "", "", ""))
    leaf_address = here.leaf_address(EMEA)
    assert leaf_address.urls == ("tls://centre.example:7423",)
    first = leaf_address.tls.certificate.read_text()
    check_pair(
        first,
        leaf_address.tls.key.read_text(),
        here.authorities(),
        ["centre.example"],
        clock.wall_ms,
        "it",
    )
    clock.wall_ms += 19 * DAY_MS
    assert await here.renew_now({EMEA: server}) == []
    clock.wall_ms += 2 * DAY_MS
    assert await here.renew_now({EMEA: server}) == [EMEA]
    assert server.reloads == 1
    assert leaf_address.tls.certificate.read_text() != first
    assert not renewal_due(leaf_address.tls.certificate.read_text(), clock.wall_ms)


async def test_a_server_that_ran_before_its_certificate_was_renewed_shows_the_new_one(tmp_path):
    clock, server = MovedClock(), FailsOnce()
    said = listen_settings(["centre.example"], "", "", "")
    assert local(tmp_path, clock, said).leaf_address(EMEA)
    clock.wall_ms += 21 * DAY_MS
    taken_over = local(tmp_path, clock, said)
    assert taken_over.leaf_address(EMEA)
    with pytest.raises(ServerFailed):
        await taken_over.renew_now({EMEA: server})
    assert await taken_over.renew_now({EMEA: server}) == [EMEA]
    assert await taken_over.renew_now({EMEA: server}) == []
    assert server.reloads == 2


@dataclass
class Own:
    """Files of the user's own, in a folder."""

    folder: Path
    clock: MovedClock

    def __post_init__(self):
        self.authority = Authority.make("own", self.clock.wall_ms)
        self.key = self.folder / "key.pem"
        self.key.write_text(new_key())
        self.file = self.folder / "certificate.pem"
        self.put("centre.example")
        (self.folder / "ca.pem").write_text(self.authority.certificate)

    def put(self, name):
        request = signing_request(self.key.read_text(), [name])
        self.file.write_text(self.authority.issue(request, self.clock.wall_ms))

    def said(self):
        files = map(str, (self.file, self.key, self.folder / "ca.pem"))
        return listen_settings(["centre.example"], *files)


async def test_what_the_user_renews_is_taken_up(tmp_path):
    clock, server = MovedClock(), Server()
    own = Own(tmp_path, clock)
    here = local(tmp_path, clock, own.said())
    assert here.leaf_address(CENTRE).tls.certificate == own.file
    assert await here.renew_now({CENTRE: server}) == []
    own.put("centre.example")
    assert await here.renew_now({CENTRE: server}) == [CENTRE]
    assert server.reloads == 1


async def test_what_children_would_not_take_is_not_taken_up(tmp_path):
    clock, server = MovedClock(), Server()
    own = Own(tmp_path, clock)
    shown = OwnCertificate(own.said())
    for put, said in [
        (lambda: own.put("other.example"), "not for centre.example"),
        (lambda: own.key.write_text(new_key()), "another certificate's"),
        (lambda: own.file.write_bytes(b"\x30\x82\xff"), "holds no certificate"),
    ]:
        put()
        with pytest.raises(CertificateUnusable, match=said):
            await shown.renew_now({CENTRE: server}, clock.wall_ms)
    own.put("centre.example")
    with pytest.raises(CertificateUnusable, match="it ended on"):
        await shown.renew_now({CENTRE: server}, clock.wall_ms + 31 * DAY_MS)
    assert server.reloads == 0
    assert await shown.renew_now({CENTRE: server}, clock.wall_ms) == [CENTRE]
    assert server.reloads == 1


@dataclass
class Elsewhere:
    """A node that runs elsewhere, as asks reach it."""

    own: NodeCertificate
    clock: MovedClock
    away: bool = False
    asked: list = field(default_factory=list)

    async def ask_signed(self, path, verb, arguments):
        self.asked.append(verb)
        if self.away:
            raise AskFailed(AskFault("Unreachable", f"{path} is away", str(path)))
        if verb == NODE:
            return {"children": {}, "certificateRequest": self.own.request()}
        assert verb == CERTIFY
        self.own.take(arguments["certificate"], arguments["authority"], self.clock.wall_ms)
        return {"taken": True}


class Tree:
    def tree_id(self):
        return TREE

    def issuer(self):
        node = NodeRecord(Source("leafcast.io/Node", TREE, "", "/emea"), 1, "", "", EMEA, "U")

        return SimpleNamespace(records={"k": node})


@pytest.fixture
def elsewhere(tmp_path):
    clock = MovedClock()
    return Elsewhere(NodeCertificate(tmp_path / "emea", ("emea.example",)), clock)


@pytest.fixture
def renewal(tmp_path, elsewhere):
    @dataclass
    class Place:
        folder = tmp_path / "centre"

    Place.folder.mkdir()
    return CertificateRenewal(Tree(), elsewhere, Place(), elsewhere.clock)


async def test_a_node_elsewhere_is_renewed_over_the_tree_from_the_key_that_it_keeps(
    renewal, elsewhere
):
    own, clock = elsewhere.own, elsewhere.clock
    assert await renewal.first(EMEA, own.request())
    key = own.files.key.read_text()
    assert await renewal.renew_due(clock.wall_ms + 19 * DAY_MS) == []
    clock.wall_ms += 21 * DAY_MS
    assert await renewal.renew_due(clock.wall_ms) == [EMEA]
    assert await renewal.renew_due(clock.wall_ms) == []
    assert own.files.key.read_text() == key
    assert valid_until(own.files.certificate.read_text()) == clock.wall_ms + 30 * DAY_MS


async def test_who_is_away_is_renewed_when_it_is_back(renewal, elsewhere):
    await renewal.first(EMEA, elsewhere.own.request())
    elsewhere.clock.wall_ms += 40 * DAY_MS
    elsewhere.away = True
    assert await renewal.renew_due(elsewhere.clock.wall_ms) == []
    elsewhere.away = False
    assert await renewal.renew_due(elsewhere.clock.wall_ms) == [EMEA]


async def test_a_node_gets_no_certificate_for_a_name_of_anothers(renewal, elsewhere):
    await renewal.first(EMEA, elsewhere.own.request())
    evil = signing_request(new_key(), ["apac.example", "emea.example"])
    with pytest.raises(ApiError, match=r"emea.example, which is /emea's"):
        await renewal.first(APAC, evil)
    # What it asks for later than the first time counts for nothing either.
    elsewhere.own = NodeCertificate(elsewhere.own.folder, ("centre.example",))
    elsewhere.clock.wall_ms += 21 * DAY_MS
    with pytest.raises(CertificateUnusable, match=r"not for centre.example"):
        await renewal.renew_due(elsewhere.clock.wall_ms)


BEFORE = ("m1.example", "m2.example", "m3.example")
AFTER = ("m1.example", "m3.example", "m4.example")


@pytest.fixture
async def changing(renewal, elsewhere, tmp_path):
    """The certificates of a node in which m4 is to take the place of m2; none has come yet."""
    elsewhere.own = NodeCertificate(elsewhere.own.folder, BEFORE)
    await renewal.first(EMEA, elsewhere.own.request())
    promise(tmp_path / "centre", elsewhere.clock.wall_ms)
    return IssuedCertificates(tmp_path / "centre")


def promise(folder, now_ms):
    signing = load_or_make_authorities(folder, TREE, now_ms).signing
    made = signing.issue(signing_request(new_key(), AFTER), now_ms)
    IssuedCertificates(folder).promise(EMEA, AFTER, made, signing.certificate)


def held(folder):
    return set(IssuedCertificates(folder).names_of(EMEA))


async def test_a_host_that_was_replaced_is_none_of_its_nodes_names_any_more(
    renewal, elsewhere, changing, tmp_path
):
    folder, now_ms = tmp_path / "centre", elsewhere.clock.wall_ms
    # Until it is done the node shows the former one.
    assert await renewal.renew_due(now_ms) == []
    assert held(folder) == {*BEFORE, *AFTER}
    elsewhere.own = NodeCertificate(elsewhere.own.folder, AFTER)
    assert await renewal.renew_due(now_ms) == []
    assert held(folder) == {*AFTER}
    IssuedCertificates(folder).check(APAC, ["m2.example"], ())


async def test_a_certificate_that_is_given_amid_a_change_drops_no_name_that_comes(
    renewal, elsewhere, changing, tmp_path
):
    folder = tmp_path / "centre"
    elsewhere.clock.wall_ms += 21 * DAY_MS
    assert await renewal.renew_due(elsewhere.clock.wall_ms) == [EMEA]
    assert set(certified_names(elsewhere.own.files.certificate.read_text())) == {*BEFORE}
    # Nodes are added below it meanwhile.
    assert await renewal.first(EMEA, elsewhere.own.request()) == ""
    assert held(folder) == {*BEFORE, *AFTER}
    elsewhere.own = NodeCertificate(elsewhere.own.folder, AFTER)
    # What was signed as the change began is due by now.
    assert await renewal.renew_due(elsewhere.clock.wall_ms) == [EMEA]
    assert set(certified_names(elsewhere.own.files.certificate.read_text())) == {*AFTER}
    assert held(folder) == {*AFTER}


async def test_what_is_promised_while_another_certificate_is_given_stays(
    renewal, elsewhere, tmp_path
):
    folder, ask = tmp_path / "centre", elsewhere.ask_signed
    elsewhere.own = NodeCertificate(elsewhere.own.folder, BEFORE)
    await renewal.first(EMEA, elsewhere.own.request())
    elsewhere.clock.wall_ms += 21 * DAY_MS

    async def amid(path, verb, arguments):
        if verb == CERTIFY:
            promise(folder, elsewhere.clock.wall_ms)
        return await ask(path, verb, arguments)

    elsewhere.ask_signed = amid
    assert await renewal.renew_due(elsewhere.clock.wall_ms) == [EMEA]
    assert held(folder) == {*BEFORE, *AFTER}


async def test_what_is_to_be_shown_holds_up_the_end_of_another_authority(changing, tmp_path):
    now_ms = 1_800_000_000_000
    signing = load_or_make_authorities(tmp_path / "centre", TREE, now_ms).signing.certificate
    other = Authority.make("other", now_ms).certificate
    assert changing.awaited(signing) == []
    assert IssuedCertificates(tmp_path / "centre").awaited(other) == [EMEA]
    changing.withdraw(EMEA, ["m9.example"])
    assert changing.awaited() == [EMEA]
    changing.withdraw(EMEA, ["m4.example"])
    assert changing.awaited() == []
    assert held(tmp_path / "centre") == {*BEFORE}


def test_names_are_free_again_when_their_node_is_gone(tmp_path):
    authority = load_or_make_authorities(tmp_path, TREE, 1_800_000_000_000).signing
    made = authority.issue(signing_request(new_key(), ["a.example"]), 1_800_000_000_000)
    issued = IssuedCertificates(tmp_path)
    issued.keep(
        EMEA,
        requested_names(signing_request(new_key(), ["a.example"])),
        made,
        authority.certificate,
    )
    with pytest.raises(NameTaken):
        issued.check(APAC, ["a.example"], ())
    IssuedCertificates(tmp_path).forget_others({"/"})
    IssuedCertificates(tmp_path).check(APAC, ["a.example"], ())


async def test_nobody_elsewhere_gets_a_certificate_for_a_name_of_the_centre(
    renewal, elsewhere, tmp_path
):
    keep_listen_settings(tmp_path / "centre", listen_settings(["emea.example"], "", "", ""))
    with pytest.raises(ApiError, match=r"for emea.example, which is the centre's"):
        await renewal.first(EMEA, elsewhere.own.request())
    assert not elsewhere.own.there


@pytest.mark.parametrize(
    ("centre", "asked"),
    [("10.0.0.1", "::ffff:10.0.0.1"), ("[2001:db8::1]", "2001:db8:0:0:0:0:0:1")],
)
async def test_nor_one_for_an_address_of_the_centre_in_another_form(
    renewal, elsewhere, tmp_path, centre, asked
):
    keep_listen_settings(tmp_path / "centre", listen_settings([centre], "", "", ""))
    with pytest.raises(ApiError, match="which is the centre's"):
        await renewal.first(EMEA, signing_request(new_key(), [asked]))
    assert not elsewhere.own.there


async def test_names_that_were_noted_in_another_form_are_whose_they_are(renewal, tmp_path):
    file = tmp_path / "centre" / "tls" / "issued.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text('{"/apac": {"names": ["2001:DB8:0::7", "Apac.example."], "due_ms": 1}}')
    for name in ("2001:db8::7", "apac.example"):
        with pytest.raises(ApiError, match="which is /apac's"):
            await renewal.first(EMEA, signing_request(new_key(), [name]))


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["[fe80::1%25eth0]:7422"], "can call"),
        (["[fe80::1%eth0]:7422"], "can call"),
        (["[::ffff:0.0.0.0]:7422"], "can call"),
        (["nats://centre.example"], "in clear"),
        (["centre.example/leaf"], "no address"),
        (["centre.example:port"], "Port could not"),
        ([":7422"], "no address"),
        (["centre.example", "wss://centre.example/leaf"], "of one kind"),
        (["tls://user@centre.example"], "no address"),
        ([f"c{n}.example" for n in range(9)], "8 addresses"),
        (["0.0.0.0:7422"], "can call"),
        (["[::]:7422"], "can call"),
        (["a.example,b.example"], "can call"),
        (["*.example"], "can call"),
        (["cent re.example"], "can call"),
        (["zürich.example"], "can call"),
        (["wss://centre.example,other.example/leaf"], "can call"),
        (["centre.example:0"], "port 0"),
        (["wss://centre.example/le,af"], "no address"),
    ],
)
def test_an_address_that_nobody_could_dial_is_refused(texts, said):
    with pytest.raises(ListenRefused, match=said):
        listen_settings(texts, "", "", "")


def test_authorities_of_the_users_own_are_for_a_certificate_of_his_own():
    with pytest.raises(ListenRefused, match=r"say --tls-cert and --tls-key, too"):
        listen_settings(["centre.example"], "", "", "/ca.pem")
    assert (
        listen_settings(["wss://centre.example/leaf"], "", "", "/ca.pem").authorities == "/ca.pem"
    )


def test_where_it_listens_is_remembered(tmp_path):
    assert kept_listen_settings(tmp_path) is None
    said = listen_settings(["centre.example", "[fd00::1]:9000"], "/own.pem", "/own.key", "/ca.pem")
    keep_listen_settings(tmp_path, said)
    assert (
        kept_listen_settings(tmp_path)
        == said
        == ListenSettings(
            ("tls://centre.example:7422", "tls://[fd00::1]:9000"),
            "/own.pem",
            "/own.key",
            "/ca.pem",
        )
    )


def test_each_relay_here_needs_a_port():
    said = listen_settings(["centre.example:7422", "other.example:65535"], "", "", "")
    with pytest.raises(ListenRefused, match=r"other.*up to 65536; name a lower port"):
        said.leaf_address(1, EMEA, None)


def test_behind_a_proxy_each_relay_has_a_path_and_a_port_of_its_own():
    said = listen_settings(["wss://centre.example/leaf"], "", "", "")
    assert said.leaf_address(0, CENTRE, None).urls == ("wss://centre.example/leaf",)
    region = said.leaf_address(1, EMEA, None)
    assert (region.urls, region.port) == (("wss://centre.example/leaf/emea",), 8423)
