"""What the doctor thinks of who works where: edges on clusters, the centre on its hubs."""

from __future__ import annotations

from collections.abc import Iterator

from leafcast.doctor.findings import Check, DoctorFacts


def cluster_checks(facts: DoctorFacts) -> Iterator[Check]:
    """A failure for each hub or cluster that its centre or edge may not work on; else nothing."""
    for hub, why in facts.hubs.items():
        cause, _, remedy = why.partition("; nothing is written there: ")
        said = f"the centre writes nothing to its {hub}"
        yield Check("Clusters", "failure", said, cause, remedy or "look again in a minute", "/")
    for node in facts.nodes:
        if node.unclaimed:
            said = f"{node.path} does nothing in the cluster that it was given"
            # The edge tells what the cluster is, and what to do about that.
            cause, _, remedy = node.unclaimed.partition("; nothing is applied or deleted there: ")
            yield Check("Clusters", "failure", said, cause, remedy, node.path)
