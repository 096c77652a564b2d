"""Who can read a Secret on its way: said where one is applied, and by the doctor."""

from __future__ import annotations

SECRETS_READ_BY = (
    "the centre and every relay on its way, with their disks, have it in clear, and so has each "
    "edge that it is meant for; send nothing by relays that must not read it"
)
NOT_SEALED = "content is not sealed: who runs a relay can read Secrets"
