"""What scripts do with the simulated IPU beside models: the seed of its random numbers."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from pypoplar.errors import PoplarTypeError
from pypoplar.keras.ipu.missing_names import missing
from pypoplar.tracebacks import public


@frozen
class DeviceSeed:
    """A seed that a script has set, and how many it has set up to it."""

    seed: int | None = None
    number: int = 0


_seeds = [DeviceSeed()]


@public
def reset_ipu_seed(seed: int, device: str = "/device:IPU:0", cpu_device: str = "cpu") -> None:
    """Let the device's random numbers, of dropout and noise, begin anew from a seed, in all models.

    Parameters
    ----------
    seed:
        The seed.
    device, cpu_device:
        The device, of which there is one, and the host.

    Raises
    ------
    PoplarTypeError
        For what is no whole number.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise PoplarTypeError(f"reset_ipu_seed takes a whole number, got {seed!r}")
    _seeds.append(DeviceSeed(seed, _seeds.pop().number + 1))


def device_seed() -> DeviceSeed:
    """The last one that was set."""
    return _seeds[0]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise missing("ipu.utils", name, ["reset_ipu_seed"])
