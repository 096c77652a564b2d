"""Where a client finds a server, and whom it believes there: one line of text.

`nats://HOST:PORT` is in clear, for this machine. `tls://HOST:PORT#FILE` begins with TLS, and FILE
has the certificates of those who may have signed the server's; without it the system's authorities.
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


def connect_options(url: str) -> dict[str, Any]:
    """What `Client.connect` needs to know; raises OSError for a file that cannot be read."""
    server, _, file = url.partition(_MARK)
    if not server.startswith("tls://"):
        return {"servers": server}
    # The client goes over to TLS on a stream that asyncio takes for a plain one, and warns of.
    logging.getLogger("asyncio").addFilter(_told_of_something_else)
    context = ssl.create_default_context(cafile=file or None)
    return {"servers": server, "tls": context, "tls_handshake_first": True}


def _told_of_something_else(record: logging.LogRecord) -> bool:
    return "eof_received() has no effect when using ssl" not in str(record.msg)
