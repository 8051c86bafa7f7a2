"""Which values of an optimiser are said to change after its model is compiled."""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.errors import InvalidOption
from pypoplar.spelling import nearest_or_all
from pypoplar.tracebacks import public


@public
class VariableAttributes:
    """Which values of an optimiser may change between calls of its model; made by `poptorch.optim`: ``optimizer.variable_attrs``.

    They are those that its constructor was given, at first. PopTorch makes the others constants of the compiled program. Here all
    can change, and the marks are what a program asks for.
    """

    def __init__(self, variable_attributes: Iterable[str], allowed_attributes: Iterable[str]) -> None:
        self._allowed_attributes = list(allowed_attributes)  # both by PopTorch's names, which programs change
        self._variable_attributes = [name for name in variable_attributes if name in self._allowed_attributes]

    def isConstant(self, attr: str) -> bool:
        """Whether a value is marked as a constant.

        Parameters
        ----------
        attr:
            Its name.

        Returns
        -------
        bool
            False if it may change.

        Raises
        ------
        InvalidOption
            If the optimiser has no value of that name.
        """
        return self._known(attr) not in self._variable_attributes

    def markAsConstant(self, attr: str) -> None:
        """Mark a value as a constant.

        Parameters
        ----------
        attr:
            Its name.

        Raises
        ------
        InvalidOption
            If the optimiser has no value of that name.
        """
        known = self._known(attr)
        self._variable_attributes = [name for name in self._variable_attributes if name != known]

    def markAsVariable(self, attr: str) -> None:
        """Mark a value as one that may change.

        Parameters
        ----------
        attr:
            Its name.

        Raises
        ------
        InvalidOption
            If the optimiser has no value of that name.
        """
        self.markAsConstant(attr)
        self._variable_attributes = [*self._variable_attributes, attr]

    def _known(self, attr: str) -> str:
        if attr not in self._allowed_attributes:
            raise InvalidOption(f"the optimiser has no value {attr!r}{nearest_or_all(attr, self._allowed_attributes)}")
        return attr

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VariableAttributes) and self._marks == other._marks

    @property
    def _marks(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(self._allowed_attributes), frozenset(self._variable_attributes)

    __hash__ = None  # type: ignore[assignment]  # marks change

    def __repr__(self) -> str:
        return f"VariableAttributes(variable={sorted(self._variable_attributes)})"
