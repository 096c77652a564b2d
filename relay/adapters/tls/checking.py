"""Whether a certificate, a key and authorities go together: what a TLS library says too late.

A library tells it only when the first child comes, and tells it the child.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from relay.adapters.tls.authority import names_in
from relay.adapters.tls.names import host_form
from relay.adapters.tls.refusals import CertificateUnusable

CHAIN_MAX = 8


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
    _check_time(own, now_ms, what)
    for name in names:
        if not covers(own, name):
            said = ", ".join(_names(own)) or "no name"
            remedy = f"have one made for {name}, or name the address that it is for"
            raise CertificateUnusable(what, f"it is for {said}, not for {name}", remedy)
    if not authorities:
        return
    trusted = _certificates(authorities, f"the authorities of {what}")
    if not _leads_to(own, chain[1:], trusted):
        issuer = own.issuer.rfc4514_string()
        remedy = "name the authority that signed it, or put the chain behind it in its file"
        raise CertificateUnusable(
            what, f"none of the authorities given signed it ({issuer} did)", remedy
        )


def check_authorities(authorities: str, what: str) -> None:
    """Refuse a text that holds no certificate; raises CertificateUnusable."""
    _certificates(authorities, what)


def covers(certificate: x509.Certificate, name: str) -> bool:
    """Whether a host of this name or address may show the certificate."""
    wanted = host_form(name)
    served = set(map(host_form, _names(certificate)))
    parent = "" if _is_address(wanted) else wanted.partition(".")[2]
    return wanted in served or (bool(parent) and f"*.{parent}" in served)


def _is_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return names_in(found.value)


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


def _check_time(own: x509.Certificate, now_ms: int, what: str) -> None:
    now = datetime.fromtimestamp(now_ms / 1000, tz=UTC)
    begin, end = own.not_valid_before_utc, own.not_valid_after_utc
    if now > end:
        raise CertificateUnusable(what, f"it ended on {end:%F %R} UTC", "have a new one made")
    if now < begin:
        remedy = "wait for that, or set this machine's clock"
        raise CertificateUnusable(what, f"it is not good before {begin:%F %R} UTC", remedy)


def _leads_to(
    own: x509.Certificate, chain: list[x509.Certificate], trusted: list[x509.Certificate]
) -> bool:
    """Whether one trusted signed it, or signed what signed it, along the chain."""
    at = own
    for _ in range(CHAIN_MAX):
        if any(at == one or _signed(at, one) for one in trusted):
            return True
        above = next((one for one in chain if one != at and _signed(at, one)), None)
        if above is None:
            return False
        at = above
    return False


def _signed(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
