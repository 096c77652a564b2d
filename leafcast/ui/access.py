"""Who may see the page: a token once, then a cookie; asked by this page's own address only.

Another page in the same browser can send requests to 127.0.0.1, and can have a name of its own
point there. So a request must name the address that is served, and come from there.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from relay.ports import Dice

SECRET_BYTES = 32
HTTP_PORT, HTTPS_PORT = 80, 443
BROWSER_SECONDS_MAX = 12 * 3600.0
"""For so long a browser stays let in: one that somebody left open shows the tree to nobody else."""
BROWSERS_MAX = 100
"""So many browsers stay let in; one more shuts out who came first."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
"""With each answer."""

ACT_HEADER = "x-leafcast-act"
"""What a page says to act. A script keeps it, so no server at another port is told, as of a cookie.
"""

Verdict = Literal["let in", "no cookie", "another host", "another origin"]


@dataclass(frozen=True, slots=True)
class Address:
    """Where the page is served; `hosts` are its names, as browsers say them with the port.

    What is `secure` goes by TLS, and by the `names` of its certificate alone.
    """

    host: str
    port: int
    names: tuple[str, ...] = ()
    secure: bool = False

    @property
    def scheme(self) -> str:
        return "https" if self.secure else "http"

    @property
    def url(self) -> str:
        name = self.names[0] if self.names else self.host
        return f"{self.scheme}://{self._said(name)}:{self.port}"

    @property
    def hosts(self) -> frozenset[str]:
        names = set(self.names) or {self.host, "127.0.0.1", "localhost", "::1"}
        said = {f"{self._said(name.lower())}:{self.port}" for name in names}
        # Browsers leave out the port that the scheme has anyway.
        if self.port == (HTTPS_PORT if self.secure else HTTP_PORT):
            said |= {self._said(name.lower()) for name in names}
        return frozenset(said)

    @property
    def origins(self) -> frozenset[str]:
        """Where a request of the page itself says that it comes from."""
        return frozenset(f"{self.scheme}://{host}" for host in self.hosts)

    @staticmethod
    def _said(name: str) -> str:
        return f"[{name}]" if ":" in name else name


class Secrets(NamedTuple):
    """What a browser that is let in gets: its cookie, and what its page says to act."""

    cookie: str
    act: str


class _Browser(NamedTuple):
    since: float
    act: bytes


class PageEntrance:
    """Lets browsers in: one for each token, and each token once."""

    def __init__(self, address: Address, dice: Dice) -> None:
        self._address, self._dice = address, dice
        # What is compared is a hash: how long that takes says nothing of the secret.
        self._token = b""
        # The first one that was let in first.
        self._browsers = OrderedDict[bytes, _Browser]()

    @property
    def cookie(self) -> str:
        """Its name: browsers share cookies among the ports of a machine."""
        return f"leafcast-ui-{self._address.port}"

    @property
    def secure(self) -> bool:
        """Whether its cookie goes by TLS alone."""
        return self._address.secure

    def new_address(self) -> str:
        """The address that lets one browser in; a former one is void from now on."""
        token = self._dice.entropy(SECRET_BYTES).hex()
        self._token = _hashed(token)
        return f"{self._address.url}/?token={token}"

    def take(self, token: str, now: float) -> Secrets | None:
        """The secrets for who shows the token; None if it is wrong or was used."""
        if not self._token or not hmac.compare_digest(_hashed(token), self._token):
            return None
        self._token = b""
        made = Secrets(*(self._dice.entropy(SECRET_BYTES).hex() for _ in range(2)))
        self._browsers[_hashed(made.cookie)] = _Browser(now, _hashed(made.act))
        while len(self._browsers) > BROWSERS_MAX:
            self._browsers.popitem(last=False)
        return made

    def is_ours(self, headers: Mapping[str, str]) -> Verdict:
        """Whether a request is for this address, and from no other page."""
        if headers.get("host", "").lower() not in self._address.hosts:
            return "another host"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self._address.origins:
            return "another origin"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "another origin"
        return "let in"

    def judge(self, headers: Mapping[str, str], cookies: Mapping[str, str], now: float) -> Verdict:
        """The same, and whether the browser is let in at this moment, in seconds."""
        verdict = self.is_ours(headers)
        if verdict != "let in":
            return verdict
        return "let in" if now < self.until(cookies) else "no cookie"

    def until(self, cookies: Mapping[str, str]) -> float:
        """Until when the browser with these cookies is let in; long ago for any other one."""
        browser = self._browser(cookies)
        return browser.since + BROWSER_SECONDS_MAX if browser is not None else -math.inf

    def may_act(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> bool:
        """Whether a request that was judged comes from a page of this very address.

        A browser says of a POST where it comes from. A cookie alone shows nothing: browsers send
        it to servers at other ports, too.
        """
        browser, said = self._browser(cookies), headers.get(ACT_HEADER, "")
        known = browser is not None and hmac.compare_digest(_hashed(said), browser.act)
        return known and "origin" in headers

    def _browser(self, cookies: Mapping[str, str]) -> _Browser | None:
        return self._browsers.get(_hashed(cookies.get(self.cookie, "")))


def _hashed(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
