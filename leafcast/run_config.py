"""The file that `leafcast run` reads: which node, which tree, where its nats-server is.

Secrets are not in it but beside it: `accounts.json` (the server's accounts) and, below the centre,
`credentials.json` (the node's own key at its parent).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from relay.adapters.external_server import ServerPlace
from schemas.identity import KeyId, NodePath, TreeId
from schemas.yaml_documents import InvalidManifest, read_documents
from schemas.yaml_writing import write_yaml

FILE = "node.yaml"


class RunConfigRefused(Exception):
    """A file that no node can run with; says which, why, and what to do."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"{file}: {reason}; `leafcast layout` writes such files")
        self.file = file
        self.reason = reason


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerForm(_Form):
    """As ServerPlace; `config` and `store_dir` are seen from the file's folder."""

    url: str
    leaf_url: str
    host: str = "0.0.0.0"  # noqa: S104 - see ServerPlace
    port: int = 4222
    leaf_port: int = 7422
    config: Path = Path("nats.conf")
    store_dir: Path = Path("jetstream")


class RunConfig(_Form):
    """`roots` maps ids of root keys to public keys in hex; `parent` is the parent's leaf URL.

    `home` tells this node from another one with the same credentials.
    """

    path: str
    tree: str
    roots: dict[str, str]
    home: str = ""
    parent: str | None = None
    edge: bool = False
    server: ServerForm = Field()

    @property
    def node(self) -> NodePath:
        return NodePath.parse(self.path)

    @property
    def tree_id(self) -> TreeId:
        return TreeId(self.tree)

    def root_keys(self) -> dict[KeyId, bytes]:
        """Raises ValueError if one is not hex."""
        return {KeyId(key): bytes.fromhex(public) for key, public in self.roots.items()}

    def server_place(self, folder: Path) -> ServerPlace:
        """Where the server is; `folder` holds the file."""
        server = self.server
        return ServerPlace(
            server.url,
            server.leaf_url,
            folder / server.config,
            folder / server.store_dir,
            server.host,
            server.port,
            server.leaf_port,
        )


def read_run_config(file: Path) -> RunConfig:
    """Read and check a file of YAML or JSON; raises RunConfigRefused."""
    try:
        documents = list(read_documents(file.read_text(encoding="utf-8"), str(file)))
        form: Any = documents[0].root if len(documents) == 1 else None
        config = RunConfig.model_validate(form)
        root = config.node.is_root
        config.root_keys()
    except OSError as error:
        raise RunConfigRefused(file, error.strerror or str(error)) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise RunConfigRefused(file, f"{where}: {first['msg']}") from error
    except (InvalidManifest, ValueError) as error:
        raise RunConfigRefused(file, " ".join(str(error).split())) from error
    if root is not (config.parent is None):
        raise RunConfigRefused(file, "parent: every node has one but the centre, which has none")
    return config


def write_run_config(file: Path, config: RunConfig) -> None:
    """Write it as YAML."""
    form = config.model_dump(mode="json", exclude_defaults=True)
    file.write_text(write_yaml(form), encoding="utf-8")
