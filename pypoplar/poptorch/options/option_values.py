"""What all groups of options are: values that are read as attributes and set by methods that check them."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

from pypoplar.errors import InvalidOption, MissingFeature, PoplarAttributeError
from pypoplar.poptorch.options.option_table import OPTION_ROWS, OPTION_TABLE
from pypoplar.poptorch.user_log import say_once
from pypoplar.spelling import nearest


class OptionValues:
    """What all groups of options are: methods set options and give back the group, and attributes have their values.

    Its objects are made by `Options`. They are frozen where a `DataLoader` or a model has taken them; a `clone` of them is not.
    """

    _group: ClassVar[str] = ""
    """The name of the group in an `Options`, empty for that itself."""

    def __init__(self, **values: Any) -> None:
        self._is_frozen = False
        self._values: dict[str, Any] = values

    def _name(self, method: str) -> str:
        """The name of an option of this group in the table."""
        return f"{self._group}.{method}" if self._group else method

    def _option(self, method: str) -> str:
        """How messages call an option of this group."""
        return ".".join(filter(None, ("Options", self._group, method)))

    def _keep(self, **values: Any) -> Self:
        self.checkIsFrozen()
        self._values.update(values)
        return self

    def _tell(self, method: str, differs: object = True) -> None:
        """Say once that an option changes nothing, where its value differs from the default."""
        if differs:
            row = OPTION_ROWS[self._name(method)]
            say_once(f"{self._option(method)} changes nothing: {row.meaning}")

    def _refuse(self, method: str, got: object) -> None:
        """`MissingFeature` for the value `got` of an option."""
        raise MissingFeature(f"{self._option(method)}({got}): pypoplar does not have {OPTION_ROWS[self._name(method)].meaning} yet")

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("_values", {})
        if name in values:
            return values[name]
        if name.startswith("__") or "_values" not in self.__dict__:
            raise AttributeError(name)  # what Python's protocols ask for, and copies that are being made
        known = [known for known in (*dir(type(self)), *values) if not known.startswith("_")]
        raise PoplarAttributeError(f"{self._option('')} has no option {name!r}{nearest(name, known)}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            self.set(**{name: value})

    def set(self, **values: Any) -> Self:
        """Set options by the names of their attributes, checked as by their methods.

        Parameters
        ----------
        values:
            By name: ``device_iterations=4``.

        Raises
        ------
        InvalidOption
            For an unknown name, with the nearest, and for what the method refuses.
        PoplarAttributeError
            If a model or data loader has the options already.
        """
        self.checkIsFrozen()
        setters = {row.attribute: row.method for row in OPTION_TABLE if row.group == self._group and row.attribute}
        for name, value in values.items():
            if name not in setters:
                known = {*setters, *(self._values)}
                raise InvalidOption(f"{self._option('')} has no option {name!r} to set{nearest(name, known)}")
            getattr(self, setters[name])(value)
        return self

    def createOrSet(self, **values: Any) -> Self:
        """Set options by the names of their attributes, as `set` does.

        Parameters
        ----------
        values:
            By name.

        Raises
        ------
        InvalidOption, PoplarAttributeError
            As from `set`.
        """
        return self.set(**values)

    def exists(self, option: str) -> bool:
        """Whether an option has a value.

        Parameters
        ----------
        option:
            The name of its attribute.

        Returns
        -------
        bool
            False too for a name that no option has.
        """
        return option in self._values

    def deleteIfExists(self, option: str) -> None:
        """Take away the value of an option; nothing happens where it has none.

        Parameters
        ----------
        option:
            The name of its attribute.

        Raises
        ------
        PoplarAttributeError
            If a model or data loader has the options already.
        """
        self.checkIsFrozen()
        self._values.pop(option, None)

    def checkIsFrozen(self, option: str | None = None) -> None:
        """Check that the options can be changed.

        Parameters
        ----------
        option:
            PopTorch's mark ``"_is_frozen"``, of which nothing is checked.

        Raises
        ------
        PoplarAttributeError
            If a model or data loader has them already.
        """
        if self._is_frozen and option != "_is_frozen":
            raise PoplarAttributeError(
                f"{self._option('')} cannot change: a model or data loader has them already; change options.clone() instead"
            )

    def toDict(self) -> dict[str, Any]:
        """The values by the names of their attributes, as a new dict."""
        return dict(self._values)

    def update(self, other: dict[str, Any]) -> dict[str, Any]:
        """Add these values to a dict.

        Parameters
        ----------
        other:
            The dict, which is changed.

        Returns
        -------
        dict[str, Any]
            The same dict.

        Raises
        ------
        InvalidOption
            If it has values of the same names.
        """
        if shared := self.toDict().keys() & other.keys():
            raise InvalidOption(f"{self._option('')}: values of the same names: {', '.join(sorted(shared))}")
        other.update(self.toDict())
        return other

    def _parts(self) -> dict[str, Any]:
        """All that makes two groups of options equal."""
        return self._values

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OptionValues) or type(other) is not type(self):
            return NotImplemented
        return self._parts() == other._parts()

    __hash__ = None  # type: ignore[assignment]  # they change

    def __call__(self, option: str) -> Any:
        """The value of an option, by the name of its attribute."""
        return getattr(self, option)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._parts().items())})"

    def _set_frozen(self, frozen: bool) -> None:
        self._is_frozen = frozen
        for part in vars(self).values():
            if isinstance(part, OptionValues):
                part._set_frozen(frozen)

    def _freeze(self) -> None:
        self._set_frozen(True)

    def _unfreeze(self) -> None:
        self._set_frozen(False)

    def __copy__(self) -> Self:
        return copy.deepcopy(self)  # two that share some of their values would change each other

    def __deepcopy__(self, memory: dict[int, Any]) -> Self:
        copied = type(self).__new__(type(self))
        memory[id(self)] = copied
        for name, value in vars(self).items():
            object.__setattr__(copied, name, False if name == "_is_frozen" else copy.deepcopy(value, memory))
        return copied
