"""Devices: `IPUModel` makes one to measure, `DeviceManager` finds the IPUs of a simulated machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Self

from pypoplar.braces import OPTIONS, ordered
from pypoplar.errors import ApplicationRuntimeError, InvalidOption, PoplarTypeError, UnknownHandle
from pypoplar.presets import PARAMETERS, Parameter
from pypoplar.spelling import nearest
from pypoplar.target import (
    GlobalExchangeConstraint,
    Target,
    TargetType,
    check_count,
    check_parameter,
    check_timing,
    find_preset,
)
from pypoplar.target import RelativeSyncDelayType as SyncDelay
from pypoplar.tracebacks import public

FIELDS: dict[str, Parameter] = {parameter.field: parameter for parameter in PARAMETERS if parameter.field}
OTHER_FIELDS = ("numIPUs", "relativeSyncDelay", "globalExchangeConstraints")


class Occupancy:
    """Which IPUs of a machine are attached, and by which device."""

    def __init__(self) -> None:
        self.holders: dict[int, int] = {}

    def take(self, ipus: Sequence[int], holder: int) -> bool:
        """Give `ipus` to `holder` if they are all free or its own."""
        if not self.is_free(ipus, holder):
            return False
        self.holders.update((ipu, holder) for ipu in ipus)
        return True

    def is_free(self, ipus: Sequence[int], holder: int) -> bool:
        """Whether no other than `holder` has any of them."""
        return all(self.holders.get(ipu, holder) == holder for ipu in ipus)

    def give_back(self, holder: int) -> None:
        self.holders = {ipu: other for ipu, other in self.holders.items() if other != holder}


class Attachment:
    """A device's hold on its IPUs, shared by the virtual devices made of it; without `occupancy` nobody else wants them."""

    def __init__(self, ipus: Sequence[int], occupancy: Occupancy | None) -> None:
        self.ipus = tuple(ipus)
        self.taken = False
        self.usable = occupancy is None
        self._occupancy = Occupancy() if occupancy is None else occupancy

    def take(self) -> bool:
        self.taken = self.usable = self._occupancy.take(self.ipus, id(self))
        return self.taken

    def is_free(self) -> bool:
        """Whether `take` would take them."""
        return self._occupancy.is_free(self.ipus, id(self))

    def give_back(self) -> None:
        self._occupancy.give_back(id(self))
        self.taken = self.usable = False

    def __del__(self) -> None:
        self.give_back()


@public
class Device:
    """One or more IPUs to load an `Engine` on. `attach` takes them, `detach` or the end of a ``with`` block gives them back.

    The devices of a `DeviceManager` share the IPUs of its machine and have to be attached; others are always free. None of them can
    be used once it has been detached, until it is attached again.
    """

    def __init__(self, target: Target, id: int = 0, attachment: Attachment | None = None) -> None:
        self._target = target
        self._id = id
        self._attachment = Attachment((), None) if attachment is None else attachment

    @staticmethod
    def createCPUDevice(numIPUs: int = 1) -> Device:
        """A device of one tile with one worker per IPU: the fastest way to a result, with nothing to measure."""
        return Device(Target.createCPUTarget(numIPUs=numIPUs))

    @staticmethod
    def createSimulatorDevice(target: Target, opts: Mapping[str, str] | None = None) -> Device:
        """A device with the given target; all devices are simulated here."""
        if not isinstance(target, Target):
            raise PoplarTypeError(f"expected a Target, got {target!r}")
        _check_options(opts)
        return Device(target)

    def createVirtualDevice(self, tilesPerIPU: int) -> Device:
        """The same IPUs with only the first `tilesPerIPU` tiles of each; they are attached and detached together."""
        target = self._target.createVirtualTarget(self._target.num_ipus, tilesPerIPU)
        return Device(target, self._id, self._attachment)

    def getId(self) -> int:
        """The number by which `DeviceManager.getDevice` finds it."""
        return self._id

    def getTarget(self) -> Target:
        """The target to make a `Graph` for."""
        return self._target

    def attach(self) -> bool:
        """Take the device's IPUs; False if another device holds one of them."""
        return self._attachment.take()

    def isAttached(self) -> bool:
        """Whether `attach` has taken its IPUs."""
        return self._attachment.taken

    def detach(self) -> None:
        """Give the IPUs back."""
        self._attachment.give_back()

    def require_attached(self, what: str) -> None:
        """`ApplicationRuntimeError` for `what`, unless the device is attached or has no need to be (not part of Poplar)."""
        if not self._attachment.usable:
            remedy = "call device.attach() first"
            if not self._attachment.is_free():
                remedy = f"attach() gives False while another device holds one of its IPUs {self.getDriverIDs()}"
            raise ApplicationRuntimeError(f"{what}: {self!r} is not attached; {remedy}")

    def __enter__(self) -> Self:
        if not self.attach():
            raise InvalidOption(f"{self!r} cannot be attached: another device holds one of its IPUs {self.getDriverIDs()}")
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def getAttributes(self) -> dict[str, str]:
        """What the device says of itself, as strings."""
        target = self._target
        return {
            "architecture": target.architecture,
            "system": target.system,
            "targetType": target.type.value,
            "timing": target.timing,
            "numIPUs": str(target.num_ipus),
            "tilesPerIPU": str(target.tiles_per_ipu),
            "memoryBytesPerTile": str(target.bytes_per_tile),
            "tileClockFrequency": str(target.tile_clock_frequency),
            "simulated": "true",
        }

    def getAttribute(self, name: str) -> str:
        """One of `getAttributes`."""
        attributes = self.getAttributes()
        if name not in attributes:
            raise UnknownHandle(f"a device has no attribute {name!r}{_nearest(name, attributes)}")
        return attributes[name]

    def getDriverIDs(self) -> list[int]:
        """The numbers of its IPUs in the machine."""
        return list(self._attachment.ipus)

    def supportsRemoteBuffers(self) -> bool:
        """True except for a CPU device."""
        return self._target.type is not TargetType.CPU

    def hasGateway(self) -> bool:
        """Always False: remote buffers lie in host memory."""
        return False

    def reset(self) -> None:
        """Nothing is left over to reset: an Engine has its memory of its own."""

    def __repr__(self) -> str:
        target = self._target
        system = f"{target.system}{_timing_note(target.timing)}"
        return f"<Device {self._id}: {target.type.value} {system}, {target.num_ipus} x {target.tiles_per_ipu} tiles>"


@public
class IPUModel:
    """Figures of a machine, to be changed before `createDevice`; they start as those of the preset `version`.

    Versions: "bow" (default), "ipu2", "ipu1", "tiny" (16 tiles), "bow2000", "pod16", "pod64". Sizes are bytes, delays cycles,
    `tileClockFrequency` Hz, `dataPathWidth` bits. An unknown field or a value out of its range raises `InvalidOption`.

    `timing` (ours) says whom cycles follow where the vendor's IPU Model and measurements of hardware differ: "model" (default)
    or "hardware". It decides what `syncs_without_exchange`, `compute_set_start_cycles`, `host_sync_seconds` and the host link's
    bandwidth start as; these fields, and `supervisor_instruction_cycles`, are ours.
    """

    RelativeSyncDelayType = SyncDelay

    numIPUs: int
    tilesPerIPU: int
    numWorkerContexts: int
    memoryBytesPerTile: int
    tileClockFrequency: float
    dataPathWidth: int
    exchangeBytesPerCycle: int
    memcpyBytesPerCycle: int
    tilesPerSuperTile: int
    supportsSuperTileSendReceive: bool
    minIPUSyncDelay: int
    relativeSyncDelay: SyncDelay
    globalSyncCycles: int
    syncs_without_exchange: bool
    compute_set_start_cycles: int
    globalExchangeConstraints: Sequence[GlobalExchangeConstraint]
    instructionBytes: int
    interleavedMemoryElementIndex: int
    compileIPUCode: bool
    rptCountMax: int
    supervisor_instruction_cycles: int
    atomicStoreGranularity: int
    fp8ConvUnitMaxPipelineDepth: int
    fp16ConvUnitMaxPipelineDepth: int
    fp32ConvUnitMaxPipelineDepth: int
    fp8ConvUnitInputLoadElemsPerCycle: int
    fp16ConvUnitInputLoadElemsPerCycle: int
    fp32ConvUnitInputLoadElemsPerCycle: int
    fp8InFp16OutConvUnitsPerTile: int
    fp16InFp16OutConvUnitsPerTile: int
    fp16InFp32OutConvUnitsPerTile: int
    fp32InFp32OutConvUnitsPerTile: int
    convUnitCoeffLoadBytesPerCycle: int
    host_sync_seconds: float

    def __init__(self, version: str = "bow", timing: str = "model", **fields: NoReturn) -> None:
        given: dict[str, Any] = dict(fields)
        for name, value in given.items():
            if name not in FIELDS and (hint := nearest(name, ("version", "timing"))):
                raise PoplarTypeError(f"IPUModel has no argument {name!r}{hint}")
            _check_name(name)
            raise PoplarTypeError(
                f"IPUModel takes a version and a timing alone, got {name}={value!r}; set fields afterwards: model = IPUModel(); "
                f"model.{name} = {value!r}"
            )
        preset = find_preset(version)
        values = preset.values(check_timing(timing))
        self.__dict__.update({parameter.field: values[parameter.name] for parameter in FIELDS.values()})
        self.__dict__.update(
            _version=preset.name,
            _timing=timing,
            numIPUs=preset.num_ipus,
            relativeSyncDelay=SyncDelay.AUTO,
            globalExchangeConstraints=(),
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "timing":
            version = self.__dict__["_version"]
            raise InvalidOption(f"the timing is given when an IPUModel is made: IPUModel({version!r}, timing={value!r})")
        _check_name(name)
        self.__dict__[name] = _check_field(name, value)

    @property
    def timing(self) -> str:
        """Whom cycles follow: "model" or "hardware" (ours)."""
        timing: str = self.__dict__["_timing"]
        return timing

    def createDevice(self, opts: Mapping[str, str] | None = None, accurateHalf: bool = True, deviceId: int = 0) -> Device:
        """A device with these figures. Half is computed as half whatever `accurateHalf` says; later changes do not reach it."""
        _check_options(opts)
        values = {row.name: self.__dict__[field] for field, row in FIELDS.items()}
        target = Target.of_preset(
            self.__dict__["_version"],
            timing=self.timing,
            num_ipus=self.numIPUs,
            relative_sync_delay=self.relativeSyncDelay,
            global_exchange_constraints=tuple(self.globalExchangeConstraints),
            **values,
        )
        return Device(target, check_count("deviceId", deviceId, 0), Attachment(range(target.num_ipus), None))

    def __repr__(self) -> str:
        version = f"{self.__dict__['_version']}{_timing_note(self.timing)}"
        return f"<IPUModel {version}: {self.numIPUs} x {self.tilesPerIPU} tiles>"


@public
class DeviceManager:
    """The devices of a simulated machine: every single IPU, then pairs, fours, and so on, each with a number of its own.

    Each manager has a machine of its own, by default a Pod64; `machine` (ours) is the name of another preset, and `timing` (ours)
    that of its devices, "model" or "hardware", see `IPUModel`.
    """

    def __init__(self, machine: str = "pod64", timing: str = "model") -> None:
        self._machine = find_preset(machine)
        self._timing = check_timing(timing)
        self._occupancy = Occupancy()
        size, ids = 1, 0
        self._ipus: dict[int, range] = {}
        while size <= self._machine.num_ipus:
            for first in range(0, self._machine.num_ipus, size):
                self._ipus[ids] = range(first, first + size)
                ids += 1
            size *= 2

    @staticmethod
    def createDeviceManager() -> DeviceManager:
        """A manager with a simulated Pod64 of its own."""
        return DeviceManager()

    def getNumDevices(self) -> int:
        """How many devices there are, single IPUs and groups."""
        return len(self._ipus)

    def getDevice(self, id: int, opts: Mapping[str, str] | None = None) -> Device:
        """The device with this number, not attached."""
        _check_options(opts)
        if id not in self._ipus:
            raise UnknownHandle(f"no device has the number {id!r}: {self._machine.name} has devices 0 to {len(self._ipus) - 1}")
        ipus = self._ipus[id]
        target = Target.of_preset(self._machine.name, TargetType.IPU, self._timing, num_ipus=len(ipus))
        return Device(target, id, Attachment(ipus, self._occupancy))

    def getDevices(
        self, type: TargetType | None = None, requiredNumIPUs: int | None = None, opts: Mapping[str, str] | None = None
    ) -> list[Device]:
        """All devices, or those of this kind and number of IPUs; an empty list if there are none.

        For `TargetType.IPU_MODEL` and `TargetType.CPU` there is one, of any number of IPUs.
        """
        _check_options(opts)
        if requiredNumIPUs is not None:
            check_count("requiredNumIPUs", requiredNumIPUs)
        if type is TargetType.CPU:
            return [Device.createCPUDevice(requiredNumIPUs or 1)]
        if type is TargetType.IPU_MODEL:
            target = Target.of_preset(self._machine.name, timing=self._timing, num_ipus=requiredNumIPUs or 1)
            return [Device(target, 0, Attachment(range(target.num_ipus), None))]
        if type is not None and type is not TargetType.IPU:
            raise PoplarTypeError(f"expected a TargetType such as TargetType.IPU, got {type!r}")
        return [self.getDevice(id) for id, ipus in self._ipus.items() if requiredNumIPUs is None or len(ipus) == requiredNumIPUs]

    def acquireAvailableDevice(self, numIPUs: int = 1, tilesPerIPU: int = 0) -> Device:
        """The first free device with `numIPUs` IPUs, attached; `tilesPerIPU` other than 0 makes it virtual."""
        for device in self.getDevices(TargetType.IPU, numIPUs):
            chosen = device.createVirtualDevice(tilesPerIPU) if tilesPerIPU else device
            if chosen.attach():
                return chosen
        have = sorted({len(ipus) for ipus in self._ipus.values()})
        raise InvalidOption(f"no device with {numIPUs} IPUs is free: {self._machine.name} has devices of {have} IPUs")


def _timing_note(timing: str) -> str:
    """What a machine's name is followed by: nothing for the timing that it has by default."""
    return "" if timing == "model" else f" with {timing} timing"


def _check_options(opts: Mapping[str, str] | None) -> None:
    """Options of devices change nothing on a simulated machine; they are a dict all the same."""
    if not isinstance(ordered(opts, "the options of a device", OPTIONS), Mapping | None):
        raise PoplarTypeError(f"the options of a device are a dict, got {opts!r}")


def _nearest(name: str, known: Mapping[str, object] | Sequence[str]) -> str:
    return nearest(name, known, f"; it has {', '.join(known)}", cutoff=0.4)  # names are short


def _check_name(name: str) -> None:
    if name not in FIELDS and name not in OTHER_FIELDS:
        raise InvalidOption(f"IPUModel has no field {name!r}{_nearest(name, [*FIELDS, *OTHER_FIELDS, 'timing'])}")


def _check_field(name: str, value: Any) -> Any:
    if name == "numIPUs":
        return check_count(name, value)
    if name == "relativeSyncDelay":
        if not isinstance(value, SyncDelay):
            raise InvalidOption(f"{name} must be RelativeSyncDelayType.NO_DELAY or AUTO, got {value!r}")
        return value
    if name == "globalExchangeConstraints":
        limits = tuple(ordered(value, name, "[limit, limit]"))
        if not all(isinstance(limit, GlobalExchangeConstraint) for limit in limits):
            raise InvalidOption(f"{name} must be a list of GlobalExchangeConstraint, got {value!r}")
        return limits
    checked = check_parameter(FIELDS[name], name, value)
    if name == "dataPathWidth" and checked % 32:
        raise InvalidOption(f"{name} must be a multiple of 32 bits, got {checked}")
    return checked
