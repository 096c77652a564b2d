"""Where the pictures of a demo go: to the terminal of a person, else to a line of progress."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from leafcast.demo.progress import DemoProgress
from leafcast.demo.view import Frame, draw, summary_table
from leafcast.local.views import TreeView
from schemas.values.wording import many


class Screen:
    """A place for pictures, open from `with` on."""

    def __init__(self, *, live: bool, stays: bool, next_command: str) -> None:
        # Whether the run goes on when all is well, until Ctrl-C.
        self.stays = stays
        self.console = Console(stderr=not live, highlight=False)
        # Standard output, which shows everything; else standard error, a line that vanishes at the
        # end, and nothing at all where that is no terminal either.
        self._live = live
        self._next_command = next_command
        self._doing = "starting"
        self._view: Live | None = None

    def __enter__(self) -> Self:
        if self._live or self.console.is_terminal:
            view = Live(console=self.console, auto_refresh=False, transient=not self._live)
            view.__enter__()
            self._view = view
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._view is not None:
            self._view.__exit__(kind, error, trace)

    def say(self, doing: str) -> None:
        """Tell what is being done."""
        self._doing = doing

    def show(self, view: TreeView, progress: DemoProgress, now: float) -> None:
        """Draw the picture of a moment."""
        if self._view is None:
            return
        if self._live:
            frame = Frame(view, progress, now, self._footer(progress, view))
            self._view.update(draw(frame, self.console), refresh=True)
        else:
            self._view.update(Text(self._state(progress), style="dim"), refresh=True)

    def _state(self, progress: DemoProgress) -> str:
        shape, workload = progress.shape, progress.workload
        if progress.up is None:
            return f"Starting {shape.nodes} nats-servers and their relays: {self._doing}"
        what = f"{workload.origin}, {many(workload.delivered, 'object')}"
        return f"Delivering {what}, to {many(shape.destinations, 'site')}"

    def _footer(self, progress: DemoProgress, view: TreeView) -> tuple[RenderableType, ...]:
        if progress.healthy is None:
            hint = Text("Ctrl-C stops everything", style="dim")
            return (Text(self._state(progress)), hint)
        figures = progress.figures(view)
        if figures.all_healthy:
            whole = figures.destinations
            where = "its destination" if whole == 1 else f"all {whole} destinations"
            said = f"✓ Delivered and working at {where}"
            headline = Text(said, style="green")
        else:
            headline = Text("It was all healthy, and is not now", style="yellow")
        summary = summary_table(progress.document(view))
        next_step = Text.assemble("Try next:  ", (self._next_command, "bold"))
        lines: list[RenderableType] = [headline, summary, next_step]
        if self.stays:
            lines.append(Text("Everything keeps running: press Ctrl-C to stop it.", style="dim"))
        return tuple(lines)
