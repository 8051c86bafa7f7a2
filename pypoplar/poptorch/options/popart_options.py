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
    """Options by PopART's names, in the dict `options`. Some have a meaning here; setting another is told once."""

    _group: ClassVar[str] = "_Popart"

    def __init__(self) -> None:
        super().__init__(options={"instrumentWithHardwareCycleCounter": False, "rearrangeAnchorsOnHost": False})

    def set(self, key: str = "", value: Any = None, /, **values: Any) -> Self:
        """Set the option of PopART called `key`. Enums of PopART are given as their numbers."""
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
        """Set an option that has been checked."""
        self.checkIsFrozen()
        if key in MERGED and isinstance(value, Mapping):
            value = {**self.options.get(key, {}), **value}
        self.options[key] = value
        return self

    def setEngineOptions(self, engine_options: Mapping[str, Any]) -> Self:
        """Set the options of the Engine to these, which are checked by `pypoplar.Engine`'s rules."""
        if not isinstance(engine_options, Mapping):
            raise PoplarTypeError(f"Options._Popart.setEngineOptions takes a dict of names and values, got {engine_options!r}")
        EngineOptions.parse(engine_options, {})
        return self.put("engineOptions", dict(engine_options))

    def setPatterns(self, patterns: Mapping[str, bool], level: int = 2) -> Self:
        """Patterns of PopART's compiler, and how many of them there are: nothing here."""
        if not isinstance(patterns, Mapping):
            raise PoplarTypeError(f"Options._Popart.setPatterns takes a dict of names and bools, got {patterns!r}")
        for name, use in patterns.items():
            checks.flag(f"Options._Popart.setPatterns: {name}", use)
        checks.whole_number("Options._Popart.setPatterns: level", level, 0, 3)
        self._tell("setPatterns")
        return self.put("patterns_level", level).put("patterns", dict(patterns))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"
