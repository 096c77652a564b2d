"""An API server of one kind behind another one, as an APIService makes it: it can be stopped."""

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GROUP, VERSION = "aggregated.example.com", "v1"
KIND = {
    "name": "things",
    "singularName": "thing",
    "namespaced": True,
    "kind": "Thing",
    "verbs": ["get", "list", "watch"],
}
WATCH_SECONDS = 60


def thing(name, namespace="shop"):
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Thing",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
    }


class _Answers(BaseHTTPRequestHandler):
    server: "_Server"
    protocol_version = "HTTP/1.1"

    def log_message(self, *_words):
        """Nothing is of interest."""

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == f"/apis/{GROUP}/{VERSION}":
            resources = {"groupVersion": f"{GROUP}/{VERSION}", "resources": [KIND]}
            self._say({"kind": "APIResourceList", "apiVersion": "v1", **resources})
        elif not path.endswith("/things"):
            self._say({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}, 404)
        elif "watch=1" in query:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            self.server.stopping.wait(WATCH_SECONDS)
            self.close_connection = True
        else:
            _, inside, rest = path.partition("/namespaces/")
            where = rest.partition("/")[0] if inside else ""
            items = [
                item for item in self.server.things if where in ("", item["metadata"]["namespace"])
            ]
            listed = {"metadata": {"resourceVersion": "1"}, "items": items}
            self._say({"kind": "ThingList", "apiVersion": f"{GROUP}/{VERSION}", **listed})

    def _say(self, form, code=200):
        body = json.dumps(form).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, things):
        super().__init__(("127.0.0.1", 0), _Answers)
        self.things, self.stopping = things, threading.Event()


class AggregatedApi:
    """Serves things in HTTPS while it is entered."""

    def __init__(self, certificate, key, things):
        self.server = _Server(things)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def objects(self):
        """What to apply at the server in front."""
        name, port = {"name": "things", "namespace": "default"}, self.server.server_address[1]
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": name,
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }
        registered = {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{VERSION}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "version": VERSION,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {**name, "port": port},
            },
        }
        return service, registered

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def stop(self):
        self.server.stopping.set()
        self.server.shutdown()
        self.server.server_close()
