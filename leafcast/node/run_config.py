"""The file that `leafcast run` reads: which node, which tree, where its nats-server is.

Secrets are not in it but beside it: `accounts.json` (the server's accounts) and, below the centre,
`credentials.json` (the node's own key at its parent).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
)

from leafcast.node.health_endpoint import LOOPBACK, HealthAddress
from leafcast.pinned_roots import roots_from
from leafcast.space_settings import (
    EMBEDDED,
    SIMULATED,
    CentreSpaces,
    SpaceSetting,
    centre_space,
    edge_cluster,
)
from leafcast.spaces import access_fault
from relay.adapters.server.durability import Durability, read_durability
from relay.adapters.server.external_server import ServerPlace
from relay.adapters.server.leaf_address import TlsFiles, is_loopback
from relay.adapters.server.nats_config import TLS_SCHEMES, ParentRemote
from relay.adapters.server.store_key import is_variable
from schemas.objects.yaml_documents import InvalidManifest, read_documents
from schemas.objects.yaml_writing import write_yaml
from schemas.records.roots import Roots
from schemas.values.alike import most_alike
from schemas.values.faults import Fault, Faulty
from schemas.values.identity import NodePath, TreeId
from schemas.values.refusals import BadIdentity

FILE = "node.yaml"
ALIKE = 0.75
"""How like a word must be to a field to be taken for it."""


class RunConfigRefused(Exception):
    """A file that no node can run with: each fault by its field, and what to do about it."""

    def __init__(self, file: Path, *faults: Fault | str) -> None:
        self.file = file
        self.faults = faults
        said = f"{file}: {faults[0]}" if len(faults) == 1 else f"{file}: {len(faults)} faults"
        lines = [f"  {fault}" for fault in faults] if len(faults) > 1 else []
        super().__init__("\n".join([f"{said}; `leafcast layout` writes such files", *lines]))


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TlsForm(_Form):
    """Files of PEM text, seen from the file's folder: certificate and chain, key, who signed it."""

    certificate: Path
    key: Path
    # None for those whom every system trusts.
    authorities: Path | None = None


class ServerForm(_Form):
    """As ServerPlace; `config` and `store_dir` are seen from the file's folder."""

    url: str
    leaf_url: str
    host: str = "0.0.0.0"  # noqa: S104 - see ServerPlace
    port: int = 4222
    leaf_port: int = 7422
    config: Path = Path("nats.conf")
    store_dir: Path = Path("jetstream")
    tls: TlsForm | None = None
    store_key_variable: str = ""


class HealthForm(_Form):
    """As HealthAddress."""

    host: str = LOOPBACK
    port: Annotated[int, Field(ge=1, le=65535)]

    @property
    def address(self) -> HealthAddress:
        """The same, for those who read no such file."""
        return HealthAddress(self.port, self.host)


_CentreSpace = Annotated[
    SpaceSetting, PlainValidator(centre_space), PlainSerializer(SpaceSetting.form)
]
_Durability = Annotated[Durability, PlainValidator(read_durability)]
_EdgeCluster = Annotated[
    SpaceSetting, PlainValidator(edge_cluster), PlainSerializer(SpaceSetting.form)
]


class RunConfig(_Form):
    """What a node runs by: the file that `leafcast run` reads."""

    path: str
    tree: str
    # Public keys in hex, by the ids of root keys.
    roots: dict[str, str]
    # So many of the roots sign keys.
    roots_threshold: int = 1
    roots_version: int = 1
    # The oldest generation that a record of keys may have.
    keys_since: int = 0
    # Tells this node from another one with the same credentials.
    home: str = ""
    # The parent's leaf URL.
    parent: str | None = None
    # A file with those who may have signed the parent's certificate.
    parent_authorities: Path | None = None
    edge: bool = False
    # The spaces of a centre.
    workloads: Annotated[tuple[_CentreSpace, ...], Field(min_length=1)] = (EMBEDDED,)
    inventory: Annotated[tuple[_CentreSpace, ...], Field(min_length=1)] = (EMBEDDED,)
    allow_live_cluster: bool = False
    # That of an edge.
    cluster: _EdgeCluster = SIMULATED
    # When its server has on the disk what it acknowledged; a centre's always has.
    durability: _Durability = Durability.PERIODIC
    health: HealthForm | None = None
    server: ServerForm = Field()

    @property
    def node(self) -> NodePath:
        return NodePath.parse(self.path)

    @property
    def tree_id(self) -> TreeId:
        return TreeId(self.tree)

    def root_keys(self) -> Roots:
        """The roots that the node begins with; raises ValueError if they are none."""
        return roots_from(self.model_dump())

    def centre_spaces(self, folder: Path) -> CentreSpaces:
        """The centre's spaces; `folder` holds the file."""
        return CentreSpaces(
            tuple(one.seen_from(folder) for one in self.workloads),
            tuple(one.seen_from(folder) for one in self.inventory),
            allow_live=self.allow_live_cluster,
        )

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
            *_tls_files(folder, server.tls),
            server.store_key_variable,
            self.durability,
        )

    def parent_link(self, folder: Path, seed: str) -> ParentRemote | None:
        """The way to the parent, of all but the centre; `folder` holds the file."""
        if self.parent is None:
            return None
        file = self.parent_authorities
        authorities = folder / file if file is not None else None
        return ParentRemote((self.parent,), seed, authorities=authorities)


_FORMS: Mapping[tuple[int | str, ...], type[_Form]] = {
    (): RunConfig,
    ("health",): HealthForm,
    ("server",): ServerForm,
    ("server", "tls"): TlsForm,
}
# What stands for fields that are wrong, so that the others are judged: nothing is wrong with it.
_STAND_INS: Mapping[str, Any] = {
    "path": "",
    "tree": "",
    "roots": {},
    "edge": True,
    "server": {"url": "", "leaf_url": "", "host": LOOPBACK},
}


def _tls_files(folder: Path, form: TlsForm | None) -> tuple[TlsFiles | None, Path | None]:
    if form is None:
        return None, None
    authorities = folder / form.authorities if form.authorities is not None else None
    return TlsFiles(folder / form.certificate, folder / form.key), authorities


def read_run_config(file: Path) -> RunConfig:
    """Read and check a file of YAML or JSON; raises RunConfigRefused with all that is wrong."""
    faults: list[Fault] = []
    wrong: frozenset[str] = frozenset()
    try:
        documents = list(read_documents(file.read_text(encoding="utf-8"), str(file)))
        form: Any = documents[0].root if len(documents) == 1 else None
        try:
            config = RunConfig.model_validate(form)
        except ValidationError as error:
            faults = list(_form_faults(error))
            if not isinstance(form, dict):
                raise RunConfigRefused(file, *faults) from error
            config, wrong = _rest(form, error)
    except OSError as error:
        raise RunConfigRefused(file, error.strerror or str(error)) from error
    except (InvalidManifest, ValueError) as error:
        raise RunConfigRefused(file, " ".join(str(error).split())) from error
    judged = [*_faults(config), *_access_faults(config, file.absolute().parent)]
    faults += [fault for fault in judged if fault.path.partition(".")[0] not in wrong]
    if faults:
        raise RunConfigRefused(file, *faults)
    return config


def written_run_config(file: Path) -> RunConfig:
    """What such a file says; nothing that it names has to be here. Raises RunConfigRefused."""
    try:
        (document,) = read_documents(file.read_text(encoding="utf-8"), str(file))
        return RunConfig.model_validate(document.root)
    except (OSError, InvalidManifest, ValueError) as error:
        raise RunConfigRefused(file, " ".join(str(error).split())) from error


def _rest(form: dict[str, Any], error: ValidationError) -> tuple[RunConfig, frozenset[str]]:
    """The file with others in the place of fields that are wrong, and which these are."""
    left, wrong = dict(form), set[str]()
    for item in error.errors(include_url=False):
        match item["loc"]:
            case (str(field), int(at), *_) if isinstance(left.get(field), list):
                # Another than any that is named, so that no two are alike.
                other = SpaceSetting("", context=f"{field}[{at}]")
                left[field] = [*left[field][:at], other, *left[field][at + 1 :]]
            case (str(field), *_):
                wrong.add(field)
                left.pop(field, None)
            case _:
                pass
    others = {field: other for field, other in _STAND_INS.items() if field in wrong}
    return RunConfig.model_validate({**left, **others}), frozenset(wrong)


def _form_faults(error: ValidationError) -> Iterator[Fault]:
    """What is wrong with single fields."""
    listed = error.errors(include_url=False)
    within = {item["loc"][:1] for item in listed if len(item["loc"]) > 1}
    for item in listed:
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in item["loc"])
        where = "".join(parts).removeprefix(".")
        cause = item.get("ctx", {}).get("error")
        if isinstance(cause, Faulty):
            yield from (fault.below(where) for fault in cause.faults)
        elif item["type"] == "extra_forbidden":
            *above, word = item["loc"]
            fields = _FORMS[tuple(above)].model_fields
            close = most_alike(str(word), fields, ALIKE)
            known = ", ".join(fields)
            remedy = f'did you mean "{close}"?' if close else f"the fields are {known}"
            yield Fault(where, "unknown field", remedy)
        elif item["type"] == "missing":
            yield Fault(where, "missing", "it is required")
        elif item["type"] == "model_type":
            yield Fault(where or "the file", "it holds no fields", "write them as NAME: VALUE")
        elif item["type"] == "too_short":
            # Items that are wrong count as missing.
            if item["loc"] not in within:
                yield Fault(where, "empty", "list at least one")
        else:
            yield Fault(where or "the file", item["msg"], "correct it")


def _faults(config: RunConfig) -> Iterator[Fault]:
    """What fields of the right form say that cannot be."""
    try:
        root = config.node.is_root
    except BadIdentity as error:
        yield Fault("path", str(error), "write it from the centre down, as in /emea/store-1")
        root = config.parent is None
    try:
        config.root_keys()
    except ValueError:
        yield Fault("roots", "these are no root keys", "copy them as `leafcast layout` wrote them")
    if root is not (config.parent is None):
        remedy = "leave it out" if root else "write its leaf URL, as in nats-leaf://host:7422"
        yield Fault("parent", "every node has one but the centre, which has none", remedy)
    yield from _durability_faults(config)
    yield from _clear_faults(config)
    if (name := config.server.store_key_variable) and not is_variable(name):
        said = f"{name!r} is no name of an environment variable"
        remedy = "write the one in which the nats-server finds its key, as in STORE_KEY"
        yield Fault("server.store_key_variable", said, remedy)
    for field, here, whose in (
        ("workloads", root, "the centre has"),
        ("inventory", root, "the centre has"),
        ("cluster", config.edge, "an edge has"),
    ):
        if field in config.model_fields_set and not here:
            yield Fault(field, f"only {whose} it", "leave it out")
    for field in ("workloads", "inventory"):
        listed = getattr(config, field)
        for at, one in enumerate(listed):
            if one in listed[:at]:
                yield Fault(f"{field}[{at}]", f"{one.title} is listed twice", "leave one out")


def _durability_faults(config: RunConfig) -> Iterator[Fault]:
    """A centre that is not to have on its disk what it acknowledges."""
    said = "durability" in config.model_fields_set
    if config.parent is None and said and config.durability is not Durability.DISK:
        what = f"{config.durability.value!r} is for nodes with a parent, which has what they lose"
        yield Fault("durability", what, f"leave it out: a centre's is {Durability.DISK.value}")


def _clear_faults(config: RunConfig) -> Iterator[Fault]:
    """Addresses that others reach, without TLS."""
    server = config.server
    if not is_loopback(server.host) and server.tls is None:
        said = f"{server.host} is reached from elsewhere, and nobody there can tell whose it is"
        remedy = "name certificate, key and authorities, or set server.host to 127.0.0.1"
        yield Fault("server.tls", said, remedy)
    urls = {"parent": config.parent or "", "server.url": server.url}
    urls["server.leaf_url"] = server.leaf_url
    for field, url in urls.items():
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname or "", parts.port
        except ValueError as error:
            yield Fault(field, f"{url} is no address ({error})", "write tls://HOST:PORT")
            continue
        if url and parts.scheme not in TLS_SCHEMES and not is_loopback(host):
            remedy = f"write tls://{parts.netloc}, once the server there has a certificate"
            yield Fault(field, f"{url} is in clear, and leads to another machine", remedy)


def _access_faults(config: RunConfig, folder: Path) -> Iterator[Fault]:
    """Kubeconfigs that lead nowhere."""
    listed = {f"workloads[{at}]": one for at, one in enumerate(config.workloads)}
    listed |= {f"inventory[{at}]": one for at, one in enumerate(config.inventory)}
    for field, one in {**listed, "cluster": config.cluster}.items():
        if said := access_fault(one.seen_from(folder)):
            yield Fault(field, said)


def write_run_config(file: Path, config: RunConfig) -> None:
    """Write it as YAML."""
    form = config.model_dump(mode="json", exclude_defaults=True)
    file.write_text(write_yaml(form), encoding="utf-8")
