"""Why a link with TLS cannot be made; known without the library that reads certificates."""

from __future__ import annotations

from schemas.values.faults import Unusable


class CertificateUnusable(Unusable):
    """A certificate, key or authority that no link can be made with: what, why, and what to do."""
