"""Whether a certificate, a key and authorities go together: what a TLS library says too late.

A library tells it only when the first child comes, and tells it the child.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from relay.adapters.tls.authority import issued_by, names_in
from relay.adapters.tls.names import host_form
from relay.adapters.tls.refusals import CertificateUnusable

CHAIN_MAX = 8

E = TypeVar("E", bound=x509.ExtensionType)


def check_pair(
    certificate: str, key: str, authorities: str, names: Iterable[str], now_ms: int, what: str
) -> None:
    """Refuse what children that trust these authorities would not take at these names.

    `certificate` may have its chain behind it; without `authorities` it is not asked who signed it.
    `what` names it in the error, with its file. Raises CertificateUnusable.
    """
    chain = _certificates(certificate, what)
    own = chain[0]
    _check_key(own, key, what)
    _check_time(own, now_ms, what, "it")
    _check_purpose(own, what, "it")
    for name in names:
        if not covers(own, name, what):
            said = ", ".join(_names(own, what)) or "no name"
            remedy = f"have one made for {name}, or name the address that it is for"
            raise CertificateUnusable(what, f"it is for {said}, not for {name}", remedy)
    if not authorities:
        return
    trusted = _certificates(authorities, f"the authorities of {what}")
    signers = [_Signer(one, f"the authorities of {what}", trusted=True) for one in trusted]
    signers += [_Signer(one, what, trusted=False) for one in chain[1:]]
    _check_chain(own, signers, now_ms, what)


def check_authorities(authorities: str, what: str, now_ms: int) -> None:
    """Refuse a text that holds no certificate that is good now; raises CertificateUnusable."""
    refusals = []
    for one in _certificates(authorities, what):
        try:
            return _check_time(one, now_ms, what, f"{one.subject.rfc4514_string()} in it")
        except CertificateUnusable as error:
            refusals.append(error)
    raise refusals[-1]


def covers(certificate: x509.Certificate, name: str, what: str) -> bool:
    """Whether a host of this name or address may show it; raises CertificateUnusable."""
    wanted = host_form(name)
    served = set(map(host_form, _names(certificate, what)))
    parent = "" if _is_address(wanted) else wanted.partition(".")[2]
    return wanted in served or (bool(parent) and f"*.{parent}" in served)


def _is_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def _names(certificate: x509.Certificate, what: str) -> list[str]:
    found = _extension(certificate, x509.SubjectAlternativeName, what)
    return names_in(found) if found is not None else []


def _certificates(text: str, what: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text.encode())
    except ValueError as error:
        remedy = "name a file of PEM text, which begins with -----BEGIN CERTIFICATE-----"
        raise CertificateUnusable(what, "it holds no certificate", remedy) from error


def _check_key(own: x509.Certificate, key: str, what: str) -> None:
    try:
        private = serialization.load_pem_private_key(key.encode(), password=None)
    except (ValueError, TypeError) as error:
        remedy = "name a file with the private key as PEM text, without a passphrase"
        raise CertificateUnusable(f"the key of {what}", "it cannot be read", remedy) from error
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if private.public_key().public_bytes(*form) != own.public_key().public_bytes(*form):
        remedy = "name the key that the certificate was made with"
        raise CertificateUnusable(f"the key of {what}", "it is another certificate's", remedy)


def _check_time(own: x509.Certificate, now_ms: int, what: str, whose: str) -> None:
    now = datetime.fromtimestamp(now_ms / 1000, tz=UTC)
    begin, end = own.not_valid_before_utc, own.not_valid_after_utc
    if now > end:
        raise CertificateUnusable(what, f"{whose} ended on {end:%F %R} UTC", "have a new one made")
    if now < begin:
        remedy = "wait for that, or set this machine's clock"
        raise CertificateUnusable(what, f"{whose} is not good before {begin:%F %R} UTC", remedy)


@dataclass(frozen=True, slots=True)
class _Signer:
    """A certificate that may have signed another one, and the file that it is in."""

    certificate: x509.Certificate
    what: str
    trusted: bool

    def check(self, below: int, now_ms: int) -> None:
        """Refuse one that may not sign, with so many of the chain below; CertificateUnusable."""
        own, name = self.certificate, self.certificate.subject.rfc4514_string()
        _check_time(own, now_ms, self.what, f"{name} in it")
        remedy = "have the certificate signed by an authority, or put the right chain behind it"
        basic = _extension(own, x509.BasicConstraints, self.what)
        usage = _extension(own, x509.KeyUsage, self.what)
        # One of version 1 says nothing of what it is for: a trusted one is taken so.
        old = self.trusted and own.version is x509.Version.v1
        if (basic is None and not old) or (basic is not None and not basic.ca):
            raise CertificateUnusable(self.what, f"{name} in it is no authority", remedy)
        if usage is not None and not usage.key_cert_sign:
            raise CertificateUnusable(self.what, f"{name} in it may not sign others", remedy)
        if basic is not None and basic.path_length is not None and below > basic.path_length:
            reason = f"{name} in it lets {basic.path_length} authorities be below it, not {below}"
            raise CertificateUnusable(self.what, reason, remedy)
        _check_purpose(own, self.what, f"{name} in it")


def _check_chain(own: x509.Certificate, signers: list[_Signer], now_ms: int, what: str) -> None:
    """Refuse one that no trusted one signed, nor what signed it; raises CertificateUnusable.

    Of several ways one has to be good.
    """
    ends = [own]
    trusted = [one.certificate for one in signers if one.trusted]
    issuer = own.issuer.rfc4514_string()
    refusal = CertificateUnusable(
        what,
        f"none of the authorities given signed it ({issuer} did)",
        "name the authority that signed it, or put the chain behind it in its file",
    )
    for below in range(CHAIN_MAX):
        if any(end in trusted for end in ends):
            return
        above = []
        for one in signers:
            if not any(end != one.certificate and issued_by(end, one.certificate) for end in ends):
                continue
            try:
                one.check(below, now_ms)
            except CertificateUnusable as error:
                refusal = error
            else:
                above.append(one.certificate)
        ends = above
    raise refusal


def _check_purpose(own: x509.Certificate, what: str, whose: str) -> None:
    """Refuse one that says what it is for, and not that it is for servers."""
    said = _extension(own, x509.ExtendedKeyUsage, what)
    good = {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
    if said is not None and not good & set(said):
        reason = f"{whose} is for other purposes than a server's (extendedKeyUsage)"
        raise CertificateUnusable(what, reason, "have one made with serverAuth")


def _extension(own: x509.Certificate, kind: type[E], what: str) -> E | None:
    try:
        return own.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        reason = f"what it is for cannot be read ({error})"
        raise CertificateUnusable(what, reason, "have another one made") from error
