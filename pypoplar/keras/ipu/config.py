"""`IPUConfig`: how the simulated IPU compiles and runs the models of a strategy."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pypoplar.errors import InvalidOption, MissingFeature, PoplarTypeError
from pypoplar.keras.ipu.config_table import (
    OPTIONS,
    ConfigOption,
    DeviceConnectionType,
    MergeRemoteBuffersBehaviour,
    OptionEffect,
    SchedulingAlgorithm,
    SelectionOrder,
    StochasticRoundingBehaviour,
)
from pypoplar.poptorch.enums import ConnectionType
from pypoplar.poptorch.options import Options
from pypoplar.poptorch.user_log import say_once
from pypoplar.spelling import nearest
from pypoplar.tracebacks import public

CONNECTIONS = {
    DeviceConnectionType.ALWAYS: ConnectionType.Always,
    DeviceConnectionType.ON_DEMAND: ConnectionType.OnDemand,
    DeviceConnectionType.PRE_COMPILE: ConnectionType.Never,
    DeviceConnectionType.NEVER: ConnectionType.Never,
}
VERSIONS = {"ipu1": 1, "ipu2": 2, "ipu21": 21}
EXCEPTIONS = ("inv", "div0", "oflo")


class ConfigPart:
    """A part of the tree, such as ``config.floating_point_behaviour``: its attributes are options, and further parts."""

    def __init__(self, path: str = "") -> None:
        vars(self)["_path"], vars(self)["_values"] = path, {}
        beginning = f"{path}." if path else ""
        for option in OPTIONS:
            if option.startswith(beginning):
                first, _, rest = option[len(beginning) :].partition(".")
                if rest and first not in vars(self)["_values"]:
                    vars(self)["_values"][first] = ConfigPart(beginning + first)
                elif not rest:
                    vars(self)["_values"][first] = copy.copy(OPTIONS[option].initial)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_values" not in vars(self):
            raise AttributeError(name)
        return self._values[self._known(name)]

    def __setattr__(self, name: str, value: Any) -> None:
        self._known(name)
        path = self._full(name)
        if isinstance(self._values[name], ConfigPart):
            raise InvalidOption(
                f"IPUConfig: {path} has options of its own, such as {path}.{next(iter(self._values[name]._values))}"
            )
        option = OPTIONS[path]
        checked = option.check(f"IPUConfig: {path}", value)
        if checked != option.initial:
            _tell(option)
        self._values[name] = checked
        if path == "floating_point_behaviour.set_all":
            self._values.update(dict.fromkeys(EXCEPTIONS, checked))
            self._values["esr"] = StochasticRoundingBehaviour.from_bool(checked)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        return f"{self._path or 'IPUConfig'}: {self.to_dict()}"

    def _full(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _known(self, name: str) -> str:
        if name not in self._values:
            inner = [path for path in OPTIONS if path.rpartition(".")[2] == name]
            hint = f": did you mean {inner[0]!r}?" if inner else nearest(name, self._values)
            raise InvalidOption(f"IPUConfig has no option {self._full(name)!r}{hint}")
        return name

    def to_dict(self) -> dict[str, Any]:
        """All options by their paths."""
        found: dict[str, Any] = {}
        for name, value in self._values.items():
            found.update(value.to_dict() if isinstance(value, ConfigPart) else {self._full(name): value})
        return found


def _tell(option: ConfigOption) -> None:
    if option.effect is OptionEffect.REFUSED:
        raise MissingFeature(f"IPUConfig: {option.path} is not there yet: {option.told}")
    if option.effect is OptionEffect.NOTHING:
        say_once(f"IPUConfig: {option.path} changes nothing: {option.told}")


@public
class IPUConfig(ConfigPart):
    """How the simulated IPU compiles and runs models: a tree of options, as Graphcore documents it.

    Each option does what it says, changes nothing and says so once, or is refused. `configure_ipu_system` makes it hold for models
    that are made, or compiled, in a strategy's scope afterwards.
    """

    def __init__(self) -> None:
        super().__init__()

    def configure_ipu_system(self, device: str = "cpu") -> None:
        """Let models that are made or compiled from now on have these options.

        Parameters
        ----------
        device:
            The host's; there is one.
        """
        configure_ipu_system(self, device)

    def from_dict(self, values: Mapping[str, Any]) -> None:
        """Set options by their paths.

        Parameters
        ----------
        values:
            As `to_dict` gives them.
        """
        for path, value in values.items():
            *parts, last = path.split(".")
            held: Any = self
            for part in parts:
                held = getattr(held, part)
            setattr(held, last, value)

    def get_attribute_metadata(self, attr: str) -> ConfigOption:
        """What is known of an option: its path, what it is at first, and what it does here.

        Parameters
        ----------
        attr:
            Its path, such as ``"norms.use_stable_statistics"``.

        Raises
        ------
        InvalidOption
            If there is no such option.
        """
        if attr not in OPTIONS:
            raise InvalidOption(f"IPUConfig has no option {attr!r}{nearest(attr, OPTIONS)}")
        return OPTIONS[attr]

    @property
    def ipus(self) -> int:
        """How many IPUs a model has."""
        chosen = self.auto_select_ipus
        given = list(chosen) if isinstance(chosen, list | tuple) else [chosen]
        if len(given) > 1:
            raise MissingFeature("IPUConfig: auto_select_ipus of several devices is not there; there is one, /device:IPU:0")
        return int(given[0]) if given else 1

    def apply_to(self, options: Options) -> None:
        """Let the options of a step say what these do.

        Parameters
        ----------
        options:
            Those of a step, which are changed.

        Raises
        ------
        MissingFeature
            For some of the floating-point exceptions without the others.
        InvalidOption
            For a version of IPUs that is none.
        """
        if self.compilation_poplar_options:
            options._Popart.set("engineOptions", dict(self.compilation_poplar_options))
        for part, name in ((self.convolutions, "convolutionOptions"), (self.matmuls, "matmulOptions")):
            if part.poplar_options:
                options._Popart.set(name, dict(part.poplar_options))
        behaviour = self.floating_point_behaviour
        asked = [getattr(behaviour, name) for name in EXCEPTIONS]
        if any(asked) and not all(asked):
            raise MissingFeature("IPUConfig: floating_point_behaviour.inv, div0 and oflo are on together or off together")
        options.Precision.enableFloatingPointExceptions(all(asked))
        options.Precision.enableStochasticRounding(behaviour.esr is not StochasticRoundingBehaviour.OFF)
        options.enableStableNorm(bool(self.norms.use_stable_statistics))
        options._Popart.set("enableOutlining", bool(self.optimizations.enable_graph_outlining))
        if self.allow_recompute:
            options._Popart.set("autoRecomputation", 3)
        self._connect(options)

    def _connect(self, options: Options) -> None:
        connection, version = CONNECTIONS[self.device_connection.type], self.device_connection.version
        if version and version not in VERSIONS:
            raise InvalidOption(f"IPUConfig: device_connection.version is one of {', '.join(VERSIONS)}, got {version!r}")
        if version and connection is ConnectionType.Never:
            options.useOfflineIpuTarget(VERSIONS[version])
        else:
            options.connectionType(connection)


_configured: list[IPUConfig] = []


@public
def configure_ipu_system(config: IPUConfig, device: str = "cpu", reset_configuration: bool = True) -> None:
    """Let models that are made or compiled from now on have the options of a configuration, as they are now.

    Parameters
    ----------
    config:
        The configuration.
    device, reset_configuration:
        As in Graphcore's: there is one host, and a configuration takes the place of the one before.

    Raises
    ------
    PoplarTypeError
        For what is no `IPUConfig`.
    """
    if not isinstance(config, IPUConfig):
        raise PoplarTypeError(f"configure_ipu_system takes an IPUConfig, got {config!r}")
    held = IPUConfig()
    _copy(held, config)
    _configured[:] = [held]


def _copy(target: ConfigPart, source: ConfigPart) -> None:
    for name, value in source._values.items():
        if isinstance(value, ConfigPart):
            _copy(target._values[name], value)
        else:
            target._values[name] = copy.copy(value)


@public
def get_ipu_config() -> IPUConfig:
    """The configuration that holds; `InvalidOption` where none was made."""
    if not _configured:
        raise InvalidOption("get_ipu_config: no IPUConfig was configured; call its configure_ipu_system first")
    return _configured[0]


def configured() -> IPUConfig:
    """The configuration that holds: that of one IPU where none was made."""
    return _configured[0] if _configured else IPUConfig()


@public
def reset_ipu_configuration() -> None:
    """Forget the configuration: one IPU, and all options as they are at first."""
    _configured.clear()


__all__ = [
    "DeviceConnectionType",
    "IPUConfig",
    "MergeRemoteBuffersBehaviour",
    "SchedulingAlgorithm",
    "SelectionOrder",
    "StochasticRoundingBehaviour",
    "configure_ipu_system",
    "get_ipu_config",
    "reset_ipu_configuration",
]
