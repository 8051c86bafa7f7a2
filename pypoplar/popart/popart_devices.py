"""PopART's devices, all of which are simulated Bows."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from pypoplar.popart.popart_types import popart_exception
from pypoplar.spelling import nearest

TILES = 1472
OTHER_TILES = "tilesPerIPU changes nothing: a Bow has %d tiles, got %r"
MOST_IPUS = 64
OPTIONS = ("numIPUs", "tilesPerIPU", "compileIPUCode", "ipuVersion")


class DeviceInfo:
    """A device, made by `DeviceManager`; in a `with` statement it is attached."""

    def __init__(self, number: int, ipus: int) -> None:
        self._number, self._ipus, self._attached = number, ipus, False

    def attach(self) -> bool:
        """Take the device; True, since a simulated one is free."""
        self._attached = True
        return True

    def detach(self) -> None:
        """Let the device go, which costs nothing here: there are others."""
        self._attached = False

    @property
    def isAttached(self) -> bool:
        """Whether the device is taken."""
        return self._attached

    @property
    def id(self) -> int:
        """Its number among those that a manager gave."""
        return self._number

    @property
    def numIpus(self) -> int:
        """How many IPUs it has."""
        return self._ipus

    @property
    def tilesPerIPU(self) -> int:
        """How many tiles each of them has."""
        return TILES

    @property
    def ipuVersion(self) -> str:
        """The architecture, as PopART calls it."""
        return "ipu2"

    def __enter__(self) -> Self:
        self.attach()
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.detach()


class DeviceManager:
    """Gives simulated devices, as many as are wanted; all of them are Bows."""

    def __init__(self) -> None:
        self._count = 0

    def acquireAvailableDevice(
        self,
        numIpus: int = 1,
        tilesPerIpu: int = 0,
        pattern: Any = None,
        connectionType: Any = None,
        selectionCriterion: Any = None,
    ) -> DeviceInfo:
        """A device of so many IPUs, attached.

        Parameters
        ----------
        numIpus:
            How many IPUs it has: a power of two.
        tilesPerIpu:
            0, or the 1,472 of a Bow.
        pattern, connectionType, selectionCriterion:
            How devices are chosen and wait for each other, which changes nothing: each call gives a free one.

        Returns
        -------
        DeviceInfo
            The device.

        Raises
        ------
        popart_exception
            For another number.
        """
        if tilesPerIpu not in (0, TILES):
            logging.getLogger("popart").warning(OTHER_TILES, TILES, tilesPerIpu)
        device = self._new(numIpus)
        device.attach()
        return device

    def tryAcquireAvailableDevice(
        self,
        numIpus: int = 1,
        tilesPerIpu: int = 0,
        pattern: Any = None,
        connectionType: Any = None,
        selectionCriterion: Any = None,
    ) -> DeviceInfo:
        """The same as `acquireAvailableDevice`.

        Parameters
        ----------
        numIpus, tilesPerIpu, pattern, connectionType, selectionCriterion:
            As there.

        Returns
        -------
        DeviceInfo
            The device.
        """
        return self.acquireAvailableDevice(numIpus, tilesPerIpu, pattern, connectionType, selectionCriterion)

    def createIpuModelDevice(self, options: Mapping[str, Any]) -> DeviceInfo:
        """A device; whatever it is called, it is a simulated Bow.

        Parameters
        ----------
        options:
            "numIPUs", "tilesPerIPU", "compileIPUCode": the number of IPUs counts, tiles are those of a Bow.

        Returns
        -------
        DeviceInfo
            The device.

        Raises
        ------
        popart_exception
            For an unknown option.
        """
        if not isinstance(options, Mapping):
            raise popart_exception(f"createIpuModelDevice takes a dict of options, got {options!r}")
        for name in options:
            if name not in OPTIONS:
                raise popart_exception(f"createIpuModelDevice: there is no option {name!r}{nearest(str(name), OPTIONS)}")
        if options.get("tilesPerIPU", TILES) != TILES:
            logging.getLogger("popart").warning(
                "tilesPerIPU changes nothing: a Bow has %d tiles, got %r", TILES, options["tilesPerIPU"]
            )
        number = options.get("numIPUs", 1)
        return self._new(int(number) if isinstance(number, str) and number.isdecimal() else number)

    def createOfflineIPUDevice(self, options: Mapping[str, Any]) -> DeviceInfo:
        """The same as `createIpuModelDevice`.

        Parameters
        ----------
        options:
            As there.

        Returns
        -------
        DeviceInfo
            The device.
        """
        return self.createIpuModelDevice(options)

    def createCpuDevice(self) -> DeviceInfo:
        """A device of one IPU, which is simulated on the CPU."""
        return self._new(1)

    def enumerateDevices(self, *_: Any, **__: Any) -> list[DeviceInfo]:
        """The devices that there are: one of one IPU, which is free."""
        return [self._new(1)]

    def _new(self, ipus: Any) -> DeviceInfo:
        if isinstance(ipus, bool) or not isinstance(ipus, int) or ipus < 1 or ipus > MOST_IPUS or ipus & (ipus - 1):
            raise popart_exception(f"a device has a power of two of IPUs, {MOST_IPUS} at most, got {ipus!r}")
        self._count += 1
        return DeviceInfo(self._count - 1, ipus)
