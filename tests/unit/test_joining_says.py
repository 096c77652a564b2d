"""What a joining node says quotes others: a proxy's status, a server's log."""

import asyncio

from leafcast.cli.commands.join import say_plainly
from relay.adapters.server.link_trouble import NO_WEBSOCKET
from relay.adapters.server.upgrade_probe import cause_at


async def test_the_status_of_a_proxy_cannot_steer_the_terminal(capsys):
    async def refuse(reader, writer):
        await reader.readline()
        writer.write(b"HTTP/1.1 403 \x1b]0;owned\x07\x1b[2JNot here\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        said = await cause_at([f"ws://127.0.0.1:{port}"], NO_WEBSOCKET, "ask the proxy")
    say_plainly(said)
    shown = capsys.readouterr().out
    assert "(403 ]0;owned[2JNot here)" in shown
    assert shown.rstrip("\n").isprintable()
