"""Who signed what a server shows at its routes, for one that it does not let in any more."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress

from relay.adapters.server.cluster_settings import RouteTls

LOOK_SECONDS = 5.0


async def route_authority(route: str, own: RouteTls) -> str:
    """What is called who signed there; "" if that is not known. Nothing there is believed."""
    from relay.adapters.tls.authority import issuer_name  # noqa: PLC0415

    host, _, port = route.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        context.load_cert_chain(own.files.certificate, own.files.key)
        async with asyncio.timeout(LOOK_SECONDS):
            opening = asyncio.open_connection(host.strip("[]"), int(port), ssl=context)
            _, writer = await opening
            try:
                shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                return issuer_name(shown) if shown else ""
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError, ValueError):
        return ""
