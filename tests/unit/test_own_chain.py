"""A certificate of the user's own, by its chain: what children would refuse is refused before."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from relay.adapters.tls.certificate_checks import CertificateUnusable, check_pair

NOW_MS = 1_800_000_000_000
NOW = datetime.fromtimestamp(NOW_MS / 1000, tz=UTC)
DAY = timedelta(days=1)
SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
ANY = ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE


class Made:
    """A certificate and its key, signed by another one or by itself."""

    def __init__(
        self,
        name,
        by=None,
        *,
        key=None,
        ca=None,
        length=None,
        eku=(),
        ends=DAY,
        begins=-2 * DAY,
        signs=True,
    ):
        self.key, self.name = key or ec.generate_private_key(ec.SECP256R1()), named(name)
        signer = by or self
        builder = (
            x509.CertificateBuilder(signer.name, self.name, self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW + begins)
            .not_valid_after(NOW + ends)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        )
        if ca is not None:
            basic = x509.BasicConstraints(ca=ca, path_length=length)
            builder = builder.add_extension(basic, critical=True)
        if eku:
            builder = builder.add_extension(x509.ExtendedKeyUsage(list(eku)), critical=False)
        if not signs:
            builder = builder.add_extension(usage(), critical=True)
        made = builder.sign(signer.key, hashes.SHA256())
        self.text = made.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def key_text(self):
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
        return self.key.private_bytes(*form, serialization.NoEncryption()).decode()


def named(name):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def usage():
    others = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False
    )
    never = dict.fromkeys(("crl_sign", "encipher_only", "decipher_only"), False)
    return x509.KeyUsage(digital_signature=True, key_cert_sign=False, **others, **never)


def check(own, chain, trusted):
    text = "".join(one.text for one in (own, *chain))
    believed = "".join(one.text for one in trusted)
    check_pair(text, own.key_text, believed, ["a.example"], NOW_MS, "server.pem")


ROOT = Made("root", ca=True)
MIDDLE = Made("middle", ROOT, ca=True, length=0)


@pytest.mark.parametrize("eku", [(), (SERVER,), (CLIENT, SERVER), (ANY,)])
def test_a_chain_that_children_take_is_taken(eku):
    check(Made("a.example", ROOT, eku=eku), [], [ROOT])
    check(Made("a.example", MIDDLE, eku=eku), [MIDDLE], [ROOT])
    check(Made("a.example", MIDDLE, eku=eku), [], [MIDDLE])


def test_one_that_is_trusted_itself_is_taken():
    own = Made("a.example")
    check(own, [], [own])


EXPIRED = Made("old root", ca=True, ends=-timedelta(hours=1))
EARLY = Made("early root", ca=True, begins=timedelta(hours=1))
NO_CA, FALSE_CA = Made("no root"), Made("false root", ca=False)
NO_SIGNS = Made("quiet root", ca=True, signs=False)
FOR_CLIENTS = Made("clients' root", ca=True, eku=(CLIENT,))
LONG_PAST = Made("middle", ROOT, ca=True, ends=-timedelta(hours=1))
NO_MIDDLE = Made("middle", ROOT)
TWO_BELOW = Made("lower", MIDDLE, ca=True)


@pytest.mark.parametrize(
    ("signer", "chain", "trusted", "where", "said"),
    [
        (EXPIRED, [], [EXPIRED], "the authorities of server.pem", "CN=old root in it ended on"),
        (EARLY, [], [EARLY], "the authorities of server.pem", "is not good before"),
        (NO_CA, [], [NO_CA], "the authorities of server.pem", "CN=no root in it is no authority"),
        (FALSE_CA, [], [FALSE_CA], "the authorities of server.pem", "is no authority"),
        (NO_SIGNS, [], [NO_SIGNS], "the authorities of server.pem", "may not sign others"),
        (FOR_CLIENTS, [], [FOR_CLIENTS], "the authorities of server.pem", "extendedKeyUsage"),
        (LONG_PAST, [LONG_PAST], [ROOT], "server.pem", "CN=middle in it ended on"),
        (NO_MIDDLE, [NO_MIDDLE], [ROOT], "server.pem", "CN=middle in it is no authority"),
        (TWO_BELOW, [TWO_BELOW, MIDDLE], [ROOT], "server.pem", "lets 0 authorities be below"),
    ],
)
def test_a_step_that_children_would_not_take_is_named(signer, chain, trusted, where, said):
    own = Made("a.example", signer, eku=(SERVER,))
    with pytest.raises(CertificateUnusable, match=said) as refused:
        check(own, chain, trusted)
    assert refused.value.what == where
    assert refused.value.remedy


def test_a_certificate_for_clients_alone_is_refused():
    own = Made("a.example", ROOT, eku=(CLIENT,))
    with pytest.raises(CertificateUnusable, match="extendedKeyUsage") as refused:
        check(own, [], [ROOT])
    assert (refused.value.what, "serverAuth" in refused.value.remedy) == ("server.pem", True)
    with pytest.raises(CertificateUnusable, match="extendedKeyUsage"):
        check(own, [], [])


def test_of_two_ways_one_has_to_be_good():
    """An authority that ended stays in the file beside the one with the same name and key."""
    old = Made("root", ca=True, ends=-timedelta(hours=1))
    new = Made("root", ca=True, key=old.key)
    own = Made("a.example", new)
    check(own, [], [old, new])
    with pytest.raises(CertificateUnusable, match="CN=root in it ended on"):
        check(own, [], [old])
