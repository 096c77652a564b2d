"""Who can read a Secret on its way: said where one is applied, and by the doctor."""

from __future__ import annotations

SECRETS_READ_BY = (
    "the centre and every relay on its way, with their disks, have it in clear, and so has each "
    "edge that it is meant for; seal what the tree carries: leafcast keys seal"
)
NOT_SEALED = "content is not sealed: who runs a relay can read Secrets"
SEALED = "content is sealed: relays read none of it"
SEAL_CAUSE = "this tree was made before content was sealed"
SEAL_REMEDY = "leafcast keys seal"
