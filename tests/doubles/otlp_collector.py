"""A collector of spans on loopback, which takes OTLP over HTTP as real ones do, and keeps them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

WAIT_SECONDS = 60.0


class TakenSpan(NamedTuple):
    """A span as it came; ids in hex, "" for none."""

    name: str
    trace: str
    span: str
    parent: str
    start_ns: int
    end_ns: int
    source: dict[str, str]
    attributes: dict[str, str]
    links: list[str]


class OtlpCollector:
    """Keeps what came, and how it was addressed."""

    def __init__(self, port: int = 0) -> None:
        self.spans: list[TakenSpan] = []
        self.paths: set[str] = set()
        self._came = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector._take(self.path, body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def until(self, met: Callable[[list[TakenSpan]], bool]) -> list[TakenSpan]:
        """Wait until what came meets the condition."""
        with self._came:
            came = self._came.wait_for(lambda: met(self.spans), WAIT_SECONDS)
            assert came, self.spans
            return list(self.spans)

    @contextmanager
    def serving(self) -> Iterator[OtlpCollector]:
        self._thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def _take(self, path: str, body: bytes) -> None:
        said = ExportTraceServiceRequest.FromString(body)
        with self._came:
            self.paths.add(path)
            for each in said.resource_spans:
                source = _words(each.resource.attributes)
                for scope in each.scope_spans:
                    self.spans += [_taken(span, source) for span in scope.spans]
            self._came.notify_all()


def _taken(span, source: dict[str, str]) -> TakenSpan:
    return TakenSpan(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        source,
        _words(span.attributes),
        [f"{link.trace_id.hex()}-{link.span_id.hex()}" for link in span.links],
    )


def _words(attributes) -> dict[str, str]:
    return {it.key: it.value.string_value or str(it.value.int_value) for it in attributes}
