"""A tree's own certificate authority: makes keys and requests, signs them, says what is due.

Everything is PEM text; times are milliseconds since 1970, and come in as arguments.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from relay.adapters.tls.names import host_form, is_host

CERTIFICATE_DAYS = 30
AUTHORITY_DAYS = 3650
EARLIER = timedelta(hours=1)
"""Certificates begin so long before they are made: clocks differ."""
RENEWED_AFTER = 2 / 3
NAMES_MAX = 16
NAME_CHARACTERS_MAX = 253
COMMON_NAME_CHARACTERS_MAX = 64


class RequestRefused(ValueError):
    """A request that is not signed; says why."""


def new_key() -> str:
    """A new private key: ECDSA over P-256, which every TLS library takes."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def signing_request(key: str, names: Sequence[str]) -> str:
    """What the holder of a key asks to have signed: the host names and addresses it serves."""
    builder = x509.CertificateSigningRequestBuilder(_subject(names[0] if names else "leafcast"))
    if names:
        alternatives = x509.SubjectAlternativeName(list(map(_general, names)))
        builder = builder.add_extension(alternatives, critical=False)
    request = builder.sign(_private(key), hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM).decode()


def requested_names(request: str) -> tuple[str, ...]:
    """The names that a request asks for, once its signature is checked; raises RequestRefused."""
    try:
        read = x509.load_pem_x509_csr(request.encode())
        sound = read.is_signature_valid
        found = read.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = tuple(names_in(found.value))
    except x509.ExtensionNotFound:
        return ()
    except (ValueError, InvalidSignature, x509.DuplicateExtension) as error:
        raise RequestRefused("it is no signing request") from error
    if not sound:
        raise RequestRefused("its signature is not by its own key")
    if len(names) > NAMES_MAX:
        raise RequestRefused(f"it asks for {len(names)} names; ask for at most {NAMES_MAX}")
    if long := next((name for name in names if len(name) > NAME_CHARACTERS_MAX), None):
        begin = f'the name "{long[:40]}..." of {len(long)} characters'
        raise RequestRefused(f"it asks for {begin}; ask for at most {NAME_CHARACTERS_MAX}")
    # A wildcard, or capitals, would be another's name by the rules of those who check it.
    if other := next((name for name in names if not is_host(name)), None):
        raise RequestRefused(f"it asks for {other!r}, which names no single host in lower case")
    return tuple(dict.fromkeys(map(host_form, names)))


def good_between(der: bytes) -> tuple[float, float] | None:
    """From when until when a certificate is good, in seconds since 1970; None if it is none."""
    try:
        read = x509.load_der_x509_certificate(der)
        return read.not_valid_before_utc.timestamp(), read.not_valid_after_utc.timestamp()
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs for one tree: its certificate is what tokens pin, its key never leaves the centre."""

    certificate: str
    key: str = field(repr=False)

    @classmethod
    def make(cls, name: str, now_ms: int) -> Authority:
        """A new authority, of this name."""
        key = new_key()
        private = _private(key)
        public, now, subject = private.public_key(), _moment(now_ms), _subject(name)
        usage = _usage(signs_certificates=True)
        made = (
            x509.CertificateBuilder(subject, subject, public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - EARLIER)
            .not_valid_after(now + timedelta(days=AUTHORITY_DAYS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(private, hashes.SHA256())
        )
        return cls(made.public_bytes(serialization.Encoding.PEM).decode(), key)

    def issue(
        self,
        request: str,
        now_ms: int,
        not_after_ms: int | None = None,
        names: Iterable[str] | None = None,
    ) -> str:
        """The certificate for a request: for its names, or for those given; 30 days by default.

        Raises RequestRefused. Whether someone may have these names is the caller's to judge.
        """
        asked = requested_names(request)
        read = x509.load_pem_x509_csr(request.encode())
        served = tuple(names) if names is not None else asked
        if not served:
            raise RequestRefused("it names no host that it is to serve")
        own = x509.load_pem_x509_certificate(self.certificate.encode())
        private, public, now = _private(self.key), read.public_key(), _moment(now_ms)
        until = now + timedelta(days=CERTIFICATE_DAYS)
        if not_after_ms is not None:
            until = _moment(not_after_ms)
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(private.public_key())
        made = (
            x509.CertificateBuilder(own.subject, _subject(served[0]), public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(now, until) - EARLIER)
            .not_valid_after(min(until, own.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(x509.SubjectAlternativeName(list(map(_general, served))), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(issuer, critical=False)
            .sign(private, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM).decode()


def names_in(alternatives: x509.SubjectAlternativeName) -> list[str]:
    """DNS names and IP addresses, as text."""
    hosts = alternatives.get_values_for_type(x509.DNSName)
    addresses = alternatives.get_values_for_type(x509.IPAddress)
    return [*hosts, *map(str, addresses)]


def certified_names(certificate: str) -> list[str]:
    """The hosts that the (first) certificate is for; raises ValueError if it is none."""
    read = x509.load_pem_x509_certificate(certificate.encode())
    try:
        found = read.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return names_in(found.value)


def issuer_name(certificate: bytes) -> str:
    """What its issuer is called, of a certificate in DER; raises ValueError if it is none."""
    issuer = x509.load_der_x509_certificate(certificate).issuer
    named = issuer.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(named[0].value) if named else ""


def fingerprint(certificate: str) -> str:
    """SHA-256 of the (first) certificate, in hex; raises ValueError if it is none."""
    return x509.load_pem_x509_certificate(certificate.encode()).fingerprint(hashes.SHA256()).hex()


def signed_by(certificate: str, authority: str) -> bool:
    """Whether the authority signed the (first) certificate; raises ValueError if one is none."""
    issuer = x509.load_pem_x509_certificate(authority.encode())
    return issued_by(x509.load_pem_x509_certificate(certificate.encode()), issuer)


def issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether the issuer signed the certificate."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def valid_from(certificate: str) -> int:
    """When the (first) certificate begins; raises ValueError if it is none."""
    read = x509.load_pem_x509_certificate(certificate.encode())
    return int(read.not_valid_before_utc.timestamp() * 1000)


def valid_until(certificate: str) -> int:
    """When the (first) certificate ends; raises ValueError if it is none."""
    read = x509.load_pem_x509_certificate(certificate.encode())
    return int(read.not_valid_after_utc.timestamp() * 1000)


def renewal_ms(certificate: str) -> int:
    """When two thirds of its time are over; raises ValueError if it is no certificate."""
    read = x509.load_pem_x509_certificate(certificate.encode())
    begin, end = read.not_valid_before_utc, read.not_valid_after_utc
    return int((begin + (end - begin) * RENEWED_AFTER).timestamp() * 1000)


def renewal_due(certificate: str, now_ms: int) -> bool:
    """Whether two thirds of its time are over; raises ValueError if it is no certificate."""
    return now_ms >= renewal_ms(certificate)


def _private(key: str) -> ec.EllipticCurvePrivateKey:
    private = serialization.load_pem_private_key(key.encode(), password=None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    return private


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _subject(name: str) -> x509.Name:
    shown = name[:COMMON_NAME_CHARACTERS_MAX]
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, shown)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _moment(wall_ms: int) -> datetime:
    return datetime.fromtimestamp(wall_ms / 1000, tz=UTC)
