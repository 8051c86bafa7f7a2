"""The view of engines in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypoplar.executable.executable import Executable
    from pypoplar.report.report import Report


class ShownEngine:
    """A base of `Engine`: what is shown is what its executable and its report say."""

    executable: Executable
    _mode: str
    _loaded: bool

    def getReport(self) -> Report:
        """The report of the runs so far, as `Engine` gives it."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        from pypoplar.report.notebook_tables import engine_html  # only notebooks need it

        return engine_html(self.executable, self.getReport(), self._mode, loaded=self._loaded)
