"""Where spans are sent, and which: from the environment, by the names that OpenTelemetry gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
EXPORTER, DISABLED = "OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED"
SAMPLER, RATIO = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
_PATH = "v1/traces"
_BY_RATIO = "traceidratio"
_RATIOS = {"always_on": 1.0, "always_off": 0.0}
# A change has no parent span, so what a parent decides makes no difference.
_OF_PARENT = "parentbased_"


class TelemetryRefused(Exception):
    """A setting that spans cannot be sent by: the variable, its value, why, and the remedy."""

    def __init__(self, name: str, value: str, reason: str, remedy: str) -> None:
        super().__init__(f"{name} is {value!r}: {reason}; {remedy}")
        self.name = name


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Where spans go, and which part of all traces is sent."""

    url: str
    ratio: float

    @property
    def place(self) -> str:
        """The URL without what may be secret in it."""
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def telemetry_settings(environment: Mapping[str, str]) -> TelemetrySettings | None:
    """What the environment says; None if no spans are to be sent. Raises TelemetryRefused."""
    name = next((it for it in (TRACES_ENDPOINT, ENDPOINT) if _said(environment, it)), "")
    exporters = [it.strip() for it in _said(environment, EXPORTER).split(",") if it.strip()]
    is_off = _said(environment, DISABLED).lower() == "true"
    if not name or is_off or (exporters and "otlp" not in exporters):
        return None
    url = _url(name, _said(environment, name))
    for variable in PROTOCOLS:
        if (said := _said(environment, variable)) not in ("", PROTOCOL):
            remedy = f"leave it out or say {PROTOCOL}, and name the collector's port for HTTP"
            raise TelemetryRefused(variable, said, f"Leafcast sends {PROTOCOL}", remedy)
    return TelemetrySettings(url, _ratio(environment))


def _said(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "").strip()


def _url(name: str, value: str) -> str:
    try:
        parts = urlsplit(value)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise TelemetryRefused(name, value, "it is no URL", "write http://HOST:4318, or https://")
    return value if name == TRACES_ENDPOINT else f"{value.rstrip('/')}/{_PATH}"


def _ratio(environment: Mapping[str, str]) -> float:
    sampler, said = _said(environment, SAMPLER), _said(environment, RATIO)
    kind = sampler.removeprefix(_OF_PARENT) or "always_on"
    if kind in _RATIOS:
        return _RATIOS[kind]
    if kind != _BY_RATIO:
        known = ", ".join([*_RATIOS, _BY_RATIO])
        raise TelemetryRefused(SAMPLER, sampler, "there is no such sampler", f"say one of {known}")
    try:
        ratio = float(said or 1)
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        raise TelemetryRefused(RATIO, said, "it is no ratio", "say a number from 0 to 1")
    return ratio
