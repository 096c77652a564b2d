"""What a person does about a release that failed, in words. Pure."""

from __future__ import annotations

from controllers.core.rollout.release_steps import ReleaseStep


def with_way_back(step: ReleaseStep, version: str, former: str) -> str:
    """The message of a step, with what to do where no retry helps.

    `former` is the release to which the tree can go back, "" if none is at hand.
    """
    if step.phase != "Failed":
        return step.message
    end = f"{step.message}; or end it: leafcast upgrade abort {version}, then"
    if not former:
        how = "leafcast upgrade start VERSION --manifest FILE --pieces FOLDER"
        return f"{end} let out another release, that those nodes take: {how}"
    return f"{end} go back: leafcast upgrade start {former}; or let another release out"
