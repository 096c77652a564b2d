"""Why a link with TLS cannot be made; known without the library that reads certificates."""

from __future__ import annotations


class CertificateUnusable(Exception):
    """A certificate, key or authority that no link can be made with: what, why, and what to do."""

    def __init__(self, what: str, reason: str, remedy: str) -> None:
        super().__init__(f"{what}: {reason}; {remedy}")
        self.what = what
        self.reason = reason
        self.remedy = remedy
