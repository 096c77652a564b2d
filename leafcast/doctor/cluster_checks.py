"""What the doctor thinks of the clusters of edges: whether each edge works on one of its own."""

from __future__ import annotations

from collections.abc import Iterator

from leafcast.doctor.findings import Check, Facts


def cluster_checks(facts: Facts) -> Iterator[Check]:
    """A failure for each edge that may not work on the cluster it was given; else nothing."""
    for node in facts.nodes:
        if node.unclaimed:
            said = f"{node.path} does nothing in the cluster that it was given"
            # The edge tells what the cluster is, and what to do about that.
            cause, _, remedy = node.unclaimed.partition("; nothing is applied or deleted there: ")
            yield Check("Clusters", "failure", said, cause, remedy, node.path)
