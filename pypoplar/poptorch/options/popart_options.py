"""``Options._Popart``: options by the names that PopART has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pypoplar.errors import PoplarTypeError
from pypoplar.options import EngineOptions
from pypoplar.poptorch.options import option_checks as checks
from pypoplar.poptorch.options.option_values import OptionValues
from pypoplar.poptorch.options.popart_table import MEANINGS, check_key
from pypoplar.poptorch.user_log import say_once
from pypoplar.tracebacks import public

MERGED = ("convolutionOptions", "matmulOptions", "lstmOptions")  # several calls add to them


@public
class PopartOptions(OptionValues):
    """Options by PopART's names, given by ``Options._Popart``. Some have a meaning here; setting another is told once."""

    _group: ClassVar[str] = "_Popart"

    def __init__(self) -> None:
        super().__init__(options={"instrumentWithHardwareCycleCounter": False, "rearrangeAnchorsOnHost": False})

    def set(self, key: str = "", value: Any = None, /, **values: Any) -> Self:
        """Set the option of PopART of a name.

        Parameters
        ----------
        key:
            Its name.
        value:
            Its value; enums of PopART are given as their numbers.
        values:
            Others by name.

        Raises
        ------
        InvalidOption
            For a name that PopART does not have, with the nearest.
        PoplarTypeError
            For a value of another type.
        MissingFeature
            For what pypoplar does not have.
        """
        for name, given in {**({key: value} if key or not values else {}), **values}.items():
            checked = check_key(name, given)
            if name == "engineOptions":
                self.setEngineOptions(checked)
                continue
            if name not in MEANINGS:
                say_once(f"Options._Popart.set({name!r}) changes nothing: it is about PopART's compiler, or about real machines")
            self.put(name, checked)
        return self

    def put(self, key: str, value: Any) -> Self:
        """Set an option that has been checked, for options by PopTorch's names.

        Parameters
        ----------
        key:
            Its name in PopART.
        value:
            Its value; a dict of options of plans is joined with the one that is there.

        Raises
        ------
        PoplarAttributeError
            If a model or data loader has the options already.
        """
        self.checkIsFrozen()
        if key in MERGED and isinstance(value, Mapping):
            value = {**self.options.get(key, {}), **value}
        self.options[key] = value
        return self

    def setEngineOptions(self, engine_options: Mapping[str, Any]) -> Self:
        """Set the options of the `pypoplar.Engine` of the model, in place of those before.

        Parameters
        ----------
        engine_options:
            Values by name.

        Raises
        ------
        InvalidOption
            For an unknown option, or a value that it cannot have.
        PoplarTypeError
            For what is no dict.
        """
        if not isinstance(engine_options, Mapping):
            raise PoplarTypeError(f"Options._Popart.setEngineOptions takes a dict of names and values, got {engine_options!r}")
        EngineOptions.parse(engine_options, {})
        return self.put("engineOptions", dict(engine_options))

    def setPatterns(self, patterns: Mapping[str, bool], level: int = 2) -> Self:
        """Switch patterns of PopART's compiler, which changes nothing here.

        Parameters
        ----------
        patterns:
            Whether each is on, by name.
        level:
            How many of them there are, from 0 to 3.

        Raises
        ------
        PoplarTypeError, InvalidOption
            For other types and levels.
        """
        if not isinstance(patterns, Mapping):
            raise PoplarTypeError(f"Options._Popart.setPatterns takes a dict of names and bools, got {patterns!r}")
        for name, use in patterns.items():
            checks.flag(f"Options._Popart.setPatterns: {name}", use)
        checks.whole_number("Options._Popart.setPatterns: level", level, 0, 3)
        self._tell("setPatterns")
        return self.put("patterns_level", level).put("patterns", dict(patterns))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"
