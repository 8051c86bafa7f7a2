"""Devices: `IPUModel` makes one to measure, `DeviceManager` finds the IPUs of a simulated machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Self

from pypoplar.braces import OPTIONS, ordered
from pypoplar.errors import ApplicationRuntimeError, InvalidOption, PoplarTypeError, UnknownHandle
from pypoplar.presets import PARAMETERS, Parameter, told_figures
from pypoplar.spelling import nearest
from pypoplar.target import (
    GlobalExchangeConstraint,
    Target,
    TargetType,
    check_count,
    check_parameter,
    check_timing,
    checked_limits,
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
        """Free the IPUs that one holder has."""
        self.holders = {ipu: other for ipu, other in self.holders.items() if other != holder}


class Attachment:
    """A device's hold on its IPUs, shared by the virtual devices made of it; without `occupancy` nobody else wants them."""

    def __init__(self, ipus: Sequence[int], occupancy: Occupancy | None) -> None:
        self.ipus = tuple(ipus)
        self.taken = False
        self.usable = occupancy is None
        self._occupancy = Occupancy() if occupancy is None else occupancy

    def take(self) -> bool:
        """Take the IPUs, and say whether they were free."""
        self.taken = self.usable = self._occupancy.take(self.ipus, id(self))
        return self.taken

    def is_free(self) -> bool:
        """Whether `take` would take them."""
        return self._occupancy.is_free(self.ipus, id(self))

    def give_back(self) -> None:
        """Let go of the IPUs, which others can take then."""
        self._occupancy.give_back(id(self))
        self.taken = self.usable = False

    def __del__(self) -> None:
        self.give_back()


@public
class Device:
    """One or more IPUs to load an `Engine` on, made by `IPUModel.createDevice` or a `DeviceManager`.

    `attach` takes the IPUs, `detach` or the end of a ``with`` block gives them back. The devices of a `DeviceManager` share the
    IPUs of its machine and have to be attached; others are always free. None of them can be used once it has been detached,
    until it is attached again.
    """

    def __init__(self, target: Target, id: int = 0, attachment: Attachment | None = None) -> None:
        self._target = target
        self._id = id
        self._attachment = Attachment((), None) if attachment is None else attachment

    @staticmethod
    def createCPUDevice(numIPUs: int = 1) -> Device:
        """A device of one tile with one worker per IPU: the fastest way to a result, with nothing to measure.

        Parameters
        ----------
        numIPUs:
            At least 1.

        Returns
        -------
        Device
            With tiles whose memory has no end to speak of, see `Target.createCPUTarget`; it need not be attached.

        Raises
        ------
        InvalidOption
            If `numIPUs` is no such number.
        """
        return Device(Target.createCPUTarget(numIPUs=numIPUs))

    @staticmethod
    def createSimulatorDevice(target: Target, opts: Mapping[str, str] | None = None) -> Device:
        """A device with the given target; all devices are simulated here.

        Parameters
        ----------
        target:
            What the device is to be.
        opts:
            Poplar's options, which change nothing here.

        Returns
        -------
        Device
            A device that need not be attached.

        Raises
        ------
        PoplarTypeError
            If `target` is none, or `opts` is no dict.
        """
        if not isinstance(target, Target):
            raise PoplarTypeError(f"expected a Target, got {target!r}")
        _check_options(opts)
        return Device(target)

    def createVirtualDevice(self, tilesPerIPU: int) -> Device:
        """The same IPUs with only the first `tilesPerIPU` tiles of each; they are attached and detached together.

        Parameters
        ----------
        tilesPerIPU:
            1 to the tiles of an IPU.

        Returns
        -------
        Device
            Of the same number and IPUs.

        Raises
        ------
        InvalidOption
            If an IPU does not have so many tiles.
        """
        target = self._target.createVirtualTarget(self._target.num_ipus, tilesPerIPU)
        return Device(target, self._id, self._attachment)

    def getId(self) -> int:
        """The number of the device, by which `DeviceManager.getDevice` finds it."""
        return self._id

    def getTarget(self) -> Target:
        """What the device is: the target to make a `Graph` for."""
        return self._target

    def attach(self) -> bool:
        """Take the device's IPUs; False if another device holds one of them."""
        return self._attachment.take()

    def isAttached(self) -> bool:
        """Whether `attach` has taken its IPUs, and `detach` not yet given them back."""
        return self._attachment.taken

    def detach(self) -> None:
        """Give the IPUs back; engines on the device cannot run until it is attached again."""
        self._attachment.give_back()

    def require_attached(self, what: str) -> None:
        """Raise an error unless the device is attached or has no need to be (not part of Poplar).

        Parameters
        ----------
        what:
            What needs it, for the message.

        Raises
        ------
        ApplicationRuntimeError
            If it has been detached, or is a `DeviceManager`'s and has not been attached.
        """
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
        """What the device says of itself, as strings: architecture, numbers of IPUs and tiles, bytes, Hz."""
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
        """One of the strings that `getAttributes` gives.

        Parameters
        ----------
        name:
            Such as ``numIPUs``, ``tilesPerIPU``, ``architecture`` or ``tileClockFrequency``.

        Returns
        -------
        str
            Its value as text.

        Raises
        ------
        UnknownHandle
            If there is no such attribute.
        """
        attributes = self.getAttributes()
        if name not in attributes:
            raise UnknownHandle(f"a device has no attribute {name!r}{_nearest(name, attributes)}")
        return attributes[name]

    def getDriverIDs(self) -> list[int]:
        """The numbers that its IPUs have in the machine, from 0."""
        return list(self._attachment.ipus)

    def supportsRemoteBuffers(self) -> bool:
        """Whether programs may have remote buffers: True except for a CPU device."""
        return self._target.type is not TargetType.CPU

    def hasGateway(self) -> bool:
        """Whether remote buffers lie in a gateway's memory, that of the IPU's machine: True except for a CPU device."""
        return self.supportsRemoteBuffers()

    def reset(self) -> None:
        """Nothing is left over to reset: an Engine has its memory of its own."""

    def __repr__(self) -> str:
        target = self._target
        system = f"{target.system}{_timing_note(target.timing)}"
        return f"<Device {self._id}: {target.type.value} {system}, {target.num_ipus} x {target.tiles_per_ipu} tiles>"


@public
class IPUModel:
    """Figures of a machine, to be changed before `createDevice`; they start as those of a preset.

    An unknown field or a value out of its range raises `InvalidOption`. `dataPathWidth` is a multiple of 32 bits. The fields in
    snake_case are ours.

    Parameters
    ----------
    version:
        "bow", "ipu2", "ipu1", "tiny" (16 tiles), "bow2000", "pod16" or "pod64".
    timing:
        Whom cycles follow where the vendor's IPU Model and measurements of hardware differ (ours): "model" or "hardware". It
        decides what `syncs_without_exchange`, `compute_set_start_cycles`, `host_sync_seconds` and the host link's bandwidth
        start as.
    fields:
        Nothing; fields are set afterwards.

    Raises
    ------
    InvalidOption
        For an unknown version, timing or field.
    PoplarTypeError
        For a field as argument.

    Examples
    --------
    >>> from pypoplar import IPUModel
    >>> model = IPUModel("ipu2")
    >>> model.tilesPerIPU = 64
    >>> model.createDevice().getTarget().getNumTiles()
    64
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
        """What cycles are counted as, "model" or "hardware" (ours)."""
        timing: str = self.__dict__["_timing"]
        return timing

    def createDevice(self, opts: Mapping[str, str] | None = None, accurateHalf: bool = True, deviceId: int = 0) -> Device:
        """A device with these figures; later changes of the model do not reach it.

        Parameters
        ----------
        opts:
            Poplar's options, which change nothing here.
        accurateHalf:
            Changes nothing: HALFs are always computed as HALFs.
        deviceId:
            The number that `Device.getId` gives.

        Returns
        -------
        Device
            A device that need not be attached.

        Raises
        ------
        InvalidOption
            If the number is negative, or `globalExchangeConstraints` has an IPU that the model does not have.
        PoplarTypeError
            If `opts` is no dict.
        """
        _check_options(opts)
        for flow in (flow for limit in self.globalExchangeConstraints for flow in limit.flows):
            if max(flow.src, flow.dst) >= self.numIPUs:
                raise InvalidOption(
                    f"globalExchangeConstraints has a flow from IPU {flow.src} to IPU {flow.dst},"
                    f" the model has {self.numIPUs} (from 0 on)"
                )
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


IPUModel.__doc__ = told_figures(
    IPUModel.__doc__,
    IPUModel.__annotations__,
    {
        "numIPUs": "The number of IPUs.",
        "relativeSyncDelay": "Whether far tiles take longer to sync.",
        "globalExchangeConstraints": "Limits of the traffic between IPUs, a list of `GlobalExchangeConstraint`.",
    },
)


@public
class DeviceManager:
    """The devices of a simulated machine: every single IPU, then pairs, fours, and so on, each with a number of its own.

    Each manager has a machine of its own.

    Parameters
    ----------
    machine:
        The name of a preset (ours), see `IPUModel`.
    timing:
        That of its devices, "model" or "hardware" (ours), see `IPUModel`.

    Raises
    ------
    InvalidOption
        If there is no such preset or timing.

    Examples
    --------
    >>> from pypoplar import DeviceManager
    >>> device = DeviceManager().acquireAvailableDevice(2)
    >>> device.getTarget().getNumIPUs(), device.isAttached()
    (2, True)
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
        """How many devices there are: single IPUs, and groups of them."""
        return len(self._ipus)

    def getDevice(self, id: int, opts: Mapping[str, str] | None = None) -> Device:
        """The device with this number, not attached.

        Parameters
        ----------
        id:
            0 to `getNumDevices` - 1.
        opts:
            Poplar's options, which change nothing here.

        Returns
        -------
        Device
            To be attached before use.

        Raises
        ------
        UnknownHandle
            If there is no such device.
        """
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

        Parameters
        ----------
        type:
            `TargetType.IPU` for those of the machine; `TargetType.IPU_MODEL` and `TargetType.CPU` for one of any number of
            IPUs. None: as `TargetType.IPU`.
        requiredNumIPUs:
            The number of IPUs that they have; None: any.
        opts:
            Poplar's options, which change nothing here.

        Returns
        -------
        list[Device]
            In the order of their numbers; those of the machine are to be attached before use.

        Raises
        ------
        InvalidOption
            If `requiredNumIPUs` is no number of at least 1.
        PoplarTypeError
            If `type` is none.
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
        """The first free device with `numIPUs` IPUs, attached; `tilesPerIPU` other than 0 makes it virtual.

        Parameters
        ----------
        numIPUs:
            A power of 2, as the machine's devices have.
        tilesPerIPU:
            How many tiles of each IPU the device has; 0: all.

        Returns
        -------
        Device
            The device, attached.

        Raises
        ------
        InvalidOption
            If none is free, or an IPU does not have so many tiles.
        """
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
        return checked_limits(value, name)
    checked = check_parameter(FIELDS[name], name, value)
    if name == "dataPathWidth" and checked % 32:
        raise InvalidOption(f"{name} must be a multiple of 32 bits, got {checked}")
    return checked
