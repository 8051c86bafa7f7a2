"""`IPUConfig`: every option does what it says, changes nothing and says so, or is refused."""

from __future__ import annotations

import keras_rig as rig
import pytest

from pypoplar.errors import InvalidOption, MissingFeature
from pypoplar.keras.ipu.config_table import OPTIONS, ConfigOption, OptionEffect
from pypoplar.poptorch.enums import ConnectionType
from pypoplar.poptorch.options import Options

config = rig.ipu.config


def other(option: ConfigOption) -> object:
    """A value that an option does not have at first."""
    initial = option.initial
    if isinstance(initial, bool):
        return not initial
    if isinstance(initial, int | float):
        return type(initial)(initial + 1)
    if isinstance(initial, list | dict | str):
        return {list: 1, dict: {"a": "b"}, str: "ipu2"}[type(initial)]
    return next(one for one in type(initial) if one is not initial)


@pytest.mark.parametrize("path", OPTIONS)
def test_setting_an_option_does_what_the_table_says(path, caplog):
    option, held = OPTIONS[path], config.IPUConfig()
    assert held.to_dict()[path] == option.initial
    if option.effect is OptionEffect.REFUSED:
        with pytest.raises(MissingFeature, match=f"IPUConfig: {path} is not there yet"):
            held.from_dict({path: other(option)})
        return
    held.from_dict({path: other(option)})
    assert held.to_dict()[path] == other(option)
    assert config.IPUConfig().to_dict()[path] == option.initial


def test_options_of_a_step_say_what_the_configuration_says():
    held, options = config.IPUConfig(), Options()
    held.floating_point_behaviour.set_all = True
    held.convolutions.poplar_options = {"partialsType": "half"}
    held.matmuls.poplar_options = {"partialsType": "half"}
    held.norms.use_stable_statistics = True
    held.device_connection.type = config.DeviceConnectionType.ON_DEMAND
    held.apply_to(options)
    popart = options._Popart.options
    assert popart["enableFloatingPointChecks"]
    assert popart["enableStochasticRounding"]
    assert popart["enableStableNorm"]
    assert popart["convolutionOptions"] == popart["matmulOptions"] == {"partialsType": "half"}
    assert options.connection_type is ConnectionType.OnDemand


def test_some_floating_point_exceptions_without_the_others_are_refused():
    held = config.IPUConfig()
    held.floating_point_behaviour.oflo = True
    with pytest.raises(MissingFeature, match=r"inv, div0 and oflo are on together or off together"):
        held.apply_to(Options())


def test_a_configuration_holds_as_it_was_configured():
    held = config.IPUConfig()
    held.auto_select_ipus = 2
    held.configure_ipu_system()
    held.auto_select_ipus = 4
    try:
        assert config.get_ipu_config().auto_select_ipus == 2
    finally:
        config.reset_ipu_configuration()
    with pytest.raises(InvalidOption, match=r"no IPUConfig was configured"):
        config.get_ipu_config()
