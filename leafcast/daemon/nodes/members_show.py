"""The certificate that members of one node show to children elsewhere, one for all of them.

The tree's authority signs it for the hosts of all three, so that it is renewed as any other is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from leafcast.ask.api import ApiError
from leafcast.members.addresses import bracketed, leaf_urls_of, served_names
from leafcast.members.founding import LeafCertificate
from leafcast.node.credentials.authorities import load_or_make_authorities
from leafcast.node.credentials.certificates import IssuedCertificates, IssuedUnreadable, NameTaken
from leafcast.node.listen_settings import (
    URLS_MAX,
    keep_listen_settings,
    kept_listen_settings,
)
from relay.adapters.server.leaf_address import is_loopback
from relay.adapters.tls.authority import RequestRefused, new_key, signing_request
from schemas.enrolment.member_requests import MemberRequest
from schemas.values.identity import NodePath, TreeId


@dataclass(frozen=True, slots=True)
class MembersShow:
    """What machines that are to be members show; `folder` is the centre's data directory."""

    folder: Path
    tree: TreeId
    path: NodePath
    machines: Mapping[str, MemberRequest]

    @property
    def urls(self) -> tuple[str, ...]:
        """Where servers of children dial in."""
        return tuple(url for it in self.machines.values() for url in leaf_urls_of(it))

    def certificate(self, now_ms: int) -> LeafCertificate | None:
        """One for all of them, new; None if all are on one machine. Raises ApiError."""
        if all(is_loopback(it.host) for it in self.machines.values()):
            return None
        self._check_addresses()
        names, here = served_names(self.urls), kept_listen_settings(self.folder)
        remedy = f"name other hosts: `leafcast node add {self.path} --member --replace` begins anew"
        try:
            # The names of the centre are its own anyway.
            centre = here.hosts if here is not None and not self.path.is_root else ()
            IssuedCertificates(self.folder).check(self.path, names, centre)
            found, key = load_or_make_authorities(self.folder, self.tree, now_ms), new_key()
            made = found.signing.issue(signing_request(key, names), now_ms)
        except (NameTaken, RequestRefused) as error:
            message = f"the certificate of the members of {self.path}: {error}"
            raise ApiError("Invalid", message, remedy) from error
        except IssuedUnreadable as error:
            raise ApiError("Failed", error.reason, error.remedy) from error
        return LeafCertificate(made, key, found.believed)

    def keep(self, shown: LeafCertificate | None, now_ms: int) -> None:
        """Write down what was signed, and at the centre where all listen; raises OSError."""
        if shown is None:
            return
        if self.path.is_root:
            kept = kept_listen_settings(self.folder)
            assert kept is not None, "a centre on a network listens"
            keep_listen_settings(self.folder, replace(kept, urls=self.urls, of_members=True))
            return
        signer = load_or_make_authorities(self.folder, self.tree, now_ms).signing.certificate
        issued = IssuedCertificates(self.folder)
        issued.keep(self.path, served_names(self.urls), shown.certificate, signer)

    def _check_addresses(self) -> None:
        """Raises ApiError for addresses that two machines have, or too many of them."""
        routes = [f"{bracketed(it.host)}:{it.route_port}" for it in self.machines.values()]
        # By host and port: a route has no scheme.
        each = [
            *((urlsplit(url).netloc, url) for url in self.urls),
            *zip(routes, routes, strict=True),
        ]
        places = [place for place, _ in each]
        if twice := next((said for place, said in each if places.count(place) > 1), ""):
            message = f"two machines of {self.path} are to be reached at {twice}"
            remedy = "say another --member-host or --listen at one of them"
            raise ApiError("Conflict", message, remedy)
        if len(self.urls) > URLS_MAX:
            message = f"the members of {self.path} listen at {len(self.urls)} addresses"
            raise ApiError("TooMany", message, f"name fewer with --listen: {URLS_MAX} are the most")
