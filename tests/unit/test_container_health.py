"""The health check of the image asks what the container runs, where that was told to answer."""

from contextlib import closing
from socket import create_server
from threading import Thread

import pytest

from leafcast.service.container_health import health_address, main


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["leafcast", "run", "edge", "--health-port", "8086"], ("127.0.0.1", 8086)),
        (["leafcast", "join", "--health-host=0.0.0.0", "--health-port=8087"], ("127.0.0.1", 8087)),
        (["leafcast", "join", "--health-host", "::", "--health-port", "1"], ("::1", 1)),
        (["leafcast", "join", "--health-host", "10.0.0.1", "--health-port", "1"], ("10.0.0.1", 1)),
        (["nats-server", "--config", "/tree/nats.conf"], None),
        (["leafcast", "up", "--health-port"], None),
    ],
)
def test_it_asks_where_the_words_say(words, where):
    assert health_address(words) == where


@pytest.mark.parametrize(("answer", "code"), [(b"200 OK", 0), (b"503 No", 1), (b"", 1)])
def test_what_does_not_answer_well_is_not_healthy(answer, code, tmp_path, capsys):
    def serve(server):
        caller, _ = server.accept()
        with closing(caller):
            caller.recv(1000)
            caller.sendall(answer and b"HTTP/1.1 " + answer + b"\r\nContent-Length: 0\r\n\r\n")

    first = tmp_path / "cmdline"
    with closing(create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        first.write_bytes(f"leafcast\0join\0--health-port\0{port}\0".encode())
        answering = Thread(target=serve, args=(server,))
        answering.start()
        assert main(first) == code
        answering.join()
    assert ("nobody answers" in capsys.readouterr().out) == bool(code)


def test_what_was_told_to_answer_nowhere_is_well_while_it_runs(tmp_path):
    first = tmp_path / "cmdline"
    first.write_bytes(b"nats-server\0--config\0/tree/nats.conf\0")
    assert main(first) == 0
