"""That a release, or its publisher's root, is not taken."""

from __future__ import annotations

from schemas.values.refusals import WireRefused


class ReleaseRefused(WireRefused):
    """It is not taken; `field` says which part of it, `why` what is wrong, `remedy` what helps."""

    def __init__(self, field: str, why: str, remedy: str) -> None:
        super().__init__(f"{field}: {why}; {remedy}")
        self.field = field
        self.why = why
        self.remedy = remedy


class RefusedNow(ReleaseRefused):
    """It is not taken now, for a reason that may pass: as it is, it may be taken later."""


def retry_of(version: str) -> str:
    """What has one node, or some, try a release once more."""
    return f"have it fetched anew: leafcast upgrade retry {version}, at the centre"
