"""The hook by which notebooks show objects of pypoplar as HTML instead of as text."""

from __future__ import annotations


class ShownInNotebooks:
    """A base of classes of which `pypoplar.report.notebook_tables` has a view."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from pypoplar.report.notebook_tables import html_of  # only notebooks need it

        return html_of(self)
