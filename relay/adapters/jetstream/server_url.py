"""Where a client finds a server, and whom it believes there: one line of text.

`nats://HOST:PORT` is in clear, for this machine. `tls://HOST:PORT#FILE` begins with TLS, and FILE
has the certificates of those who may have signed the server's; without it the system's authorities.
Several servers of one node have commas between, before the `#`; they are tried in this order.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Any

_MARK = "#"


def with_authorities(url: str, file: Path | None) -> str:
    """The same server, believed by the authorities of the file."""
    return url if file is None else f"{url}{_MARK}{file}"


def address(url: str) -> str:
    """Where the server is, for people: without whom it is believed by."""
    return url.partition(_MARK)[0]


def connect_options(url: str) -> dict[str, Any]:
    """What `Client.connect` needs to know; raises OSError for a file that cannot be read."""
    text, _, file = url.partition(_MARK)
    servers = text.split(",")
    server = text if len(servers) == 1 else servers
    # In order: the first one is on this machine.
    ordered = {"dont_randomize": True} if len(servers) > 1 else {}
    if not text.startswith("tls://"):
        return {"servers": server, **ordered}
    # The client goes over to TLS on a stream that asyncio takes for a plain one, and warns of.
    logging.getLogger("asyncio").addFilter(_told_of_something_else)
    context = ssl.create_default_context(cafile=file or None)
    return {"servers": server, "tls": context, "tls_handshake_first": True, **ordered}


def _told_of_something_else(record: logging.LogRecord) -> bool:
    return "eof_received() has no effect when using ssl" not in str(record.msg)
