"""Figures as Prometheus reads them, by name and labels."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

Figure = tuple[str, frozenset[tuple[str, str]]]


def at(name: str, /, **labels: str) -> Figure:
    """The figure of this name with just these labels."""
    return name, frozenset(labels.items())


def samples(text: str) -> dict[Figure, float]:
    """All figures of an answer."""
    return {
        at(sample.name, **sample.labels): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def by(label: str, found: dict[Figure, float], name: str) -> dict[str, float]:
    """The figures of a name by one of their labels."""
    return {dict(labels)[label]: value for (its, labels), value in found.items() if its == name}
