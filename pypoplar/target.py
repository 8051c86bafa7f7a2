"""What a graph is built for: the number of tiles and the figures of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeAlias

import attrs
from attrs import field, frozen

from pypoplar.braces import OPTIONS, ordered
from pypoplar.errors import InvalidOption, PoplarTypeError
from pypoplar.notebook import ShownInNotebooks
from pypoplar.presets import (
    IPUS_OF_MACHINE,
    LINK_TOPOLOGIES,
    MOST_OF_DOMAIN,
    PARAMETERS,
    PRESETS,
    TIMINGS,
    Parameter,
    Preset,
    Value,
    told_figures,
)
from pypoplar.spelling import nearest
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, ElementType, check_type


class TargetType(Enum):
    """The kind of a device; all kinds are simulated here.

    Attributes
    ----------
    IPU:
        A machine's IPUs, as a `DeviceManager` has them.
    IPU_MODEL:
        What `IPUModel.createDevice` makes.
    CPU:
        Tiles with one worker, one on each IPU.
    """

    IPU = "IPU"
    IPU_MODEL = "IPU_MODEL"
    CPU = "CPU"


class RelativeSyncDelayType(Enum):
    """Whether far tiles take longer to sync.

    Attributes
    ----------
    NO_DELAY:
        All take `IPUModel.minIPUSyncDelay`.
    AUTO:
        The farthest takes `Target.relative_sync_cycles` more.
    """

    NO_DELAY = "NO_DELAY"
    AUTO = "AUTO"


def _check_ipu(number: int) -> int:
    return check_count("an IPU of a GlobalExchangeFlow", number, 0)


@frozen
class GlobalExchangeFlow:
    """Traffic from one IPU to another, for a `GlobalExchangeConstraint`.

    Parameters
    ----------
    src:
        The number of the IPU that sends.
    dst:
        The number of the IPU that receives.

    Raises
    ------
    InvalidOption
        If one of them is no whole number of at least 0.
    """

    src: int = field(converter=_check_ipu)
    dst: int = field(converter=_check_ipu)


def _all_flows(flows: Iterable[GlobalExchangeFlow]) -> tuple[GlobalExchangeFlow, ...]:
    given = tuple(ordered(flows, "the flows of a GlobalExchangeConstraint", "[flow, flow]"))
    for flow in given:
        if not isinstance(flow, GlobalExchangeFlow):
            raise PoplarTypeError(f"the flows of a GlobalExchangeConstraint are GlobalExchangeFlow(src, dst), got {flow!r}")
    if not given:
        raise InvalidOption("a GlobalExchangeConstraint limits one flow at least, got none")
    return given


def _check_bandwidth(bandwidth: object) -> float:
    if isinstance(bandwidth, bool) or not isinstance(bandwidth, int | float) or not 0 < bandwidth < math.inf:
        raise InvalidOption(
            f"the bandwidth of a GlobalExchangeConstraint is a number of bits per second above 0, got {bandwidth!r}"
        )
    return bandwidth


@public
@frozen
class GlobalExchangeConstraint:
    """A limit of the traffic between IPUs, for `IPUModel.globalExchangeConstraints`.

    Parameters
    ----------
    bandwidth:
        Bits per second of all flows together.
    flows:
        What is limited, one flow at least.

    Raises
    ------
    InvalidOption
        If the bandwidth is no positive number, or there are no flows.
    PoplarTypeError
        If `flows` has something else than flows, or no order.
    """

    bandwidth: float = field(converter=_check_bandwidth)
    flows: tuple[GlobalExchangeFlow, ...] = field(converter=_all_flows)


def checked_limits(value: object, name: str = "global_exchange_constraints") -> tuple[GlobalExchangeConstraint, ...]:
    """`value` as limits in their order; `InvalidOption` calls what is none by `name`."""
    given = ordered(value, name, "[limit, limit]")
    limits = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(limit, GlobalExchangeConstraint) for limit in limits):
        raise InvalidOption(f"{name} must be a list of GlobalExchangeConstraint, got {value!r}")
    return limits


TargetValue: TypeAlias = "float | str | TargetType | RelativeSyncDelayType | Sequence[GlobalExchangeConstraint]"
"""What attributes of a `Target` are; a bool and an int are floats to type checkers."""


def find_preset(name: object) -> Preset:
    """The preset called `name`; `InvalidOption` with the nearest name if there is none."""
    if isinstance(name, str) and name in PRESETS:
        return PRESETS[name]
    raise InvalidOption(f"no IPU version is called {name!r}: the versions are {', '.join(PRESETS)}{nearest(name, PRESETS)}")


def check_timing(name: object) -> str:
    """`name` if a timing is called so; else `InvalidOption` with the nearest name."""
    if isinstance(name, str) and name in TIMINGS:
        return name
    raise InvalidOption(f"no timing is called {name!r}: the timings are {', '.join(TIMINGS)}{nearest(name, TIMINGS)}")


LINK_CONFIGURATIONS = ("default", "slidingWindow")
"""Values of the target option ``ipuLinkConfiguration``: how IPUs address each other; ways and times are the same."""

TARGET_OPTIONS = (
    *("gatewayMode", "instanceSize", "ipuLinkConfiguration", "ipuLinkDomainSize", "ipuLinkTopology"),
    "syncConfiguration",
)
"""Options of `Target.createIPUTarget`."""

SYNC_CONFIGURATIONS = ("intraReplicaAndAll", "ipuAndAll")
"""Values of the target option ``syncConfiguration``: with the second, an IPU that exchanges with the host waits for no other."""


def _size_of_domain(value: object) -> int:
    if not str(value).isdecimal():
        raise InvalidOption(f"ipuLinkDomainSize is the number of IPUs of a domain, got {value!r}")
    return int(str(value))


def _size_of_instance(value: object) -> int:
    if not str(value).isdecimal() or int(str(value)) == 0:
        raise InvalidOption(f"instanceSize is the number of IPUs of a process, at least 1, got {value!r}")
    return int(str(value))


def _switch(value: object) -> bool:
    if value not in ("true", "false", True, False):
        raise InvalidOption(f"gatewayMode is 'true' or 'false', got {value!r}")
    return value in ("true", True)


READ_OPTIONS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "syncConfiguration": ("sync_configuration", str),
    "ipuLinkTopology": ("ipu_link_topology", str),
    "ipuLinkDomainSize": ("ipu_link_domain_size", _size_of_domain),
    "gatewayMode": ("gateway_mode", _switch),
    "ipuLinkConfiguration": ("ipu_link_configuration", str),
    "instanceSize": ("instance_size", _size_of_instance),
}
"""Of options of `Target.createIPUTarget` the attribute that each sets, and how its text is read."""


def _check_sync_configuration(name: object) -> None:
    if name not in SYNC_CONFIGURATIONS:
        known = " or ".join(map(repr, SYNC_CONFIGURATIONS))
        raise InvalidOption(f"syncConfiguration is {known}, got {name!r}{nearest(str(name), SYNC_CONFIGURATIONS)}")


def check_parameter(row: Parameter, name: str, value: object) -> Value:
    """`value` as the kind of number that the parameter is; if it is none, or out of range, `InvalidOption` calls it `name`."""
    if isinstance(row.bow, bool):
        if not isinstance(value, bool):
            raise InvalidOption(f"{name} must be True or False, got {value!r}")
        return value
    if isinstance(row.bow, float):
        if isinstance(value, bool) or not isinstance(value, int | float) or not row.least <= value < math.inf:
            raise InvalidOption(f"{name} must be a number of {row.unit}, at least {row.least}, got {value!r}")
        number: Value = float(value)
    else:
        number = check_count(name, value, row.least)
    if number > row.most:
        raise InvalidOption(f"{name} must be at most {row.most:,} {row.unit}, got {number}")
    return number


def check_count(name: str, value: object, least: int = 1) -> int:
    """`value` as an int of at least `least`; else `InvalidOption` naming the parameter."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidOption(f"{name} must be an integer of at least {least}, got {value!r}")
    number = int(value.__index__())
    if number < least:
        raise InvalidOption(f"{name} must be an integer of at least {least}, got {number}")
    return number


@public
@frozen(kw_only=True)
class Target(ShownInNotebooks):
    """A machine to build graphs for, made by `IPUModel.createDevice`, `createIPUTarget` or `createCPUTarget`.

    Values only: two targets with the same figures are equal, and can be saved as JSON. A figure out of its range raises
    `InvalidOption`.
    """

    type: TargetType
    system: str
    architecture: str
    timing: str
    num_ipus: int
    tiles_per_ipu: int
    num_worker_contexts: int
    bytes_per_tile: int
    tile_clock_frequency: float
    data_path_width: int
    exchange_bytes_per_cycle: int
    memcpy_bytes_per_cycle: int
    tiles_per_super_tile: int
    supports_super_tile_send_receive: bool
    min_ipu_sync_delay: int
    relative_sync_delay: RelativeSyncDelayType
    relative_sync_cycles: int
    global_sync_cycles: int
    syncs_without_exchange: bool
    compute_set_start_cycles: int
    global_exchange_constraints: tuple[GlobalExchangeConstraint, ...] = field(converter=checked_limits)
    sync_configuration: str
    ipu_link_topology: str
    ipu_link_domain_size: int
    gateway_mode: bool
    ipu_link_configuration: str
    instance_size: int
    instruction_bytes: int
    interleaved_memory_element_index: int
    compile_ipu_code: bool
    rpt_count_max: int
    supervisor_instruction_cycles: int
    atomic_store_granularity: int
    fp8_conv_unit_max_pipeline_depth: int
    fp16_conv_unit_max_pipeline_depth: int
    fp32_conv_unit_max_pipeline_depth: int
    fp8_conv_unit_input_load_elems_per_cycle: int
    fp16_conv_unit_input_load_elems_per_cycle: int
    fp32_conv_unit_input_load_elems_per_cycle: int
    fp8_in_fp16_out_conv_units_per_tile: int
    fp16_in_fp16_out_conv_units_per_tile: int
    fp16_in_fp32_out_conv_units_per_tile: int
    fp32_in_fp32_out_conv_units_per_tile: int
    conv_unit_coeff_load_bytes_per_cycle: int
    vector_element_flops_per_cycle: int
    tile_memory_bytes_per_cycle: int
    ipu_link_bytes_per_second: float
    gateway_bytes_per_second: float
    gateway_link_bytes_per_second: float
    host_write_bytes_per_second: float
    host_read_bytes_per_second: float
    machine_host_bytes_per_second: float
    streaming_memory_bytes_per_second: float
    streaming_memory_bytes: int
    host_sync_seconds: float

    def __attrs_post_init__(self) -> None:
        check_timing(self.timing)
        check_count("num_ipus", self.num_ipus)
        _check_sync_configuration(self.sync_configuration)
        self._check_wiring()
        for row in PARAMETERS:
            check_parameter(row, row.name, getattr(self, row.name))

    def _check_wiring(self) -> None:
        if self.ipu_link_topology not in LINK_TOPOLOGIES:
            known = " or ".join(map(repr, LINK_TOPOLOGIES))
            near = nearest(str(self.ipu_link_topology), LINK_TOPOLOGIES)
            raise InvalidOption(f"ipuLinkTopology is {known}, got {self.ipu_link_topology!r}{near}")
        if not isinstance(self.gateway_mode, bool):
            raise InvalidOption(f"gateway_mode must be True or False, got {self.gateway_mode!r}")
        size = check_count("ipuLinkDomainSize", self.ipu_link_domain_size)
        if size > MOST_OF_DOMAIN:
            raise InvalidOption(f"ipuLinkDomainSize is at most {MOST_OF_DOMAIN}, got {size}")
        if self.num_ipus > size and not (self.gateway_mode and size % IPUS_OF_MACHINE == 0):
            why = f"gateways join machines of {IPUS_OF_MACHINE} IPUs" if self.gateway_mode else "gatewayMode is off"
            told = f"of {self.num_ipus} IPUs ipuLinkDomainSize joins {size} by IPU-Links, and {why}"
            raise InvalidOption(f"IPU {size} cannot be reached from IPU 0: {told}")
        if self.ipu_link_configuration not in LINK_CONFIGURATIONS:
            known = " or ".join(map(repr, LINK_CONFIGURATIONS))
            near = nearest(str(self.ipu_link_configuration), LINK_CONFIGURATIONS)
            raise InvalidOption(f"ipuLinkConfiguration is {known}, got {self.ipu_link_configuration!r}{near}")
        if 0 < check_count("instanceSize", self.instance_size, 0) < self.num_ipus:
            raise InvalidOption(f"a process has {self.instance_size} IPUs by instanceSize, got a target of {self.num_ipus}")

    # How to make one

    @staticmethod
    def of_preset(name: str, type: TargetType = TargetType.IPU_MODEL, timing: str = "model", **changes: TargetValue) -> Target:
        """The target of a preset, with attributes changed (ours).

        Parameters
        ----------
        name:
            A version of `IPUModel`, such as "bow".
        type:
            The kind of the target.
        timing:
            "model" or "hardware", see `IPUModel`.
        changes:
            Attributes of `Target` with other values.

        Returns
        -------
        Target
            With the preset's number of IPUs, unless `changes` says another.

        Raises
        ------
        InvalidOption
            If there is no such preset or timing, or a value is out of its range.
        """
        preset = find_preset(name)
        values: dict[str, Any] = {
            "num_ipus": preset.num_ipus,
            "relative_sync_delay": RelativeSyncDelayType.AUTO,
            "global_exchange_constraints": (),
            "sync_configuration": SYNC_CONFIGURATIONS[0],
            "ipu_link_topology": LINK_TOPOLOGIES[0],
            "ipu_link_domain_size": MOST_OF_DOMAIN,
            "gateway_mode": True,
            "ipu_link_configuration": LINK_CONFIGURATIONS[0],
            "instance_size": 0,
            **preset.values(check_timing(timing)),
            **changes,
        }
        made = Target(type=type, system=preset.name, architecture=preset.architecture, timing=timing, **values)
        changed = {} if type is TargetType.CPU else _what_if.get()
        return made.evolve(**changed) if changed else made  # to evolve by nothing would check every figure again

    def _check_torus(self) -> None:
        """`InvalidOption` where a user asks for a torus one of whose two rails is longer than the other; parts of one may be so."""
        for ipus in (min(self.num_ipus, self.ipu_link_domain_size), self.num_ipus % self.ipu_link_domain_size):
            if self.ipu_link_topology == "torus" and ipus > 1 and ipus % 2:
                told = f"got {ipus} IPUs" if ipus == self.num_ipus else f"got a domain of {ipus} of {self.num_ipus} IPUs"
                raise InvalidOption(f"ipuLinkTopology 'torus' joins the ends of pairs of IPUs, {told}; 'mesh' takes any number")

    @staticmethod
    def createIPUTarget(*arguments: int | str, opts: Mapping[str, str] | None = None, timing: str = "model") -> Target:
        """A target without a device: ``(system)``, ``(numIPUs, system)`` or ``(numIPUs, tilesPerIPU, system)``.

        Parameters
        ----------
        arguments:
            The name of a preset, such as "bow", last; before it the numbers of IPUs and of tiles on each, if not the preset's.
        opts:
            ``syncConfiguration`` says which IPUs wait for each other when one exchanges with the host: all of a replica for
            ``"intraReplicaAndAll"``, none for ``"ipuAndAll"``. ``ipuLinkTopology`` is ``"mesh"``, as at first, or ``"torus"``,
            whose ends are joined, of an even number of IPUs; ``ipuLinkDomainSize`` says how many IPUs are joined by IPU-Links,
            at most 64, as at first, and ``gatewayMode``, ``"true"`` at first or ``"false"``, whether gateways lead from one such
            domain to another.
            ``ipuLinkConfiguration`` is ``"default"``, as at first, or ``"slidingWindow"``: a program runs on devices of its own
            only, and takes as long on either. ``instanceSize`` is the number of IPUs of a process, of which a target has no more.
        timing:
            "model" or "hardware" (ours), see `IPUModel`.

        Returns
        -------
        Target
            Of the kind `TargetType.IPU`.

        Raises
        ------
        PoplarTypeError
            If the arguments are others.
        InvalidOption
            If there is no such preset, timing or option, a number is less than 1, an IPU cannot be reached from another, or a
            torus has an odd number of IPUs.
        """
        ordered(opts, "the options of a target", OPTIONS)
        for name in opts or {}:
            if name not in TARGET_OPTIONS:
                known = f": the options are {', '.join(TARGET_OPTIONS)}"
                raise InvalidOption(f"a target has no option {name!r}{known}{nearest(str(name), TARGET_OPTIONS)}")
        if not arguments or len(arguments) > 3 or not isinstance(arguments[-1], str):
            raise PoplarTypeError(
                f"createIPUTarget takes ([numIPUs, [tilesPerIPU,]] system), such as (2, 'bow'); got {arguments!r}"
            )
        changes: dict[str, Any] = {
            name: check_count(shown, value)
            for (name, shown), value in zip(
                (("num_ipus", "numIPUs"), ("tiles_per_ipu", "tilesPerIPU")), arguments[:-1], strict=False
            )
        }
        changes |= {attribute: read(opts[name]) for name, (attribute, read) in READ_OPTIONS.items() if opts and name in opts}
        made = Target.of_preset(str(arguments[-1]), TargetType.IPU, timing, **changes)
        made._check_torus()
        return made

    @staticmethod
    def createCPUTarget(accurateHalf: bool = True, numIPUs: int = 1) -> Target:
        """One tile with one worker and no end of tile memory to speak of, per IPU.

        Parameters
        ----------
        accurateHalf:
            Changes nothing: HALFs are always computed as HALFs.
        numIPUs:
            At least 1.

        Returns
        -------
        Target
            Of the kind `TargetType.CPU`, with the other figures of a Bow.

        Raises
        ------
        InvalidOption
            If `numIPUs` is no such number.
        """
        target = Target.of_preset(
            "bow",
            TargetType.CPU,
            num_ipus=check_count("numIPUs", numIPUs),
            tiles_per_ipu=1,
            num_worker_contexts=1,
            bytes_per_tile=1 << 40,
        )
        return attrs.evolve(target, system="cpu", architecture="cpu")

    def createVirtualTarget(self, numIPUs: int, tilesPerIPU: int) -> Target:
        """The same machine with fewer IPUs or fewer tiles on each.

        Parameters
        ----------
        numIPUs:
            1 to the machine's.
        tilesPerIPU:
            1 to those of an IPU.

        Returns
        -------
        Target
            With all other figures as here.

        Raises
        ------
        InvalidOption
            If the machine does not have so many.
        """
        ipus, tiles = check_count("numIPUs", numIPUs), check_count("tilesPerIPU", tilesPerIPU)
        if ipus > self.num_ipus or tiles > self.tiles_per_ipu:
            raise InvalidOption(
                f"a virtual target of {ipus} IPUs with {tiles} tiles each does not fit into"
                f" {self.num_ipus} IPUs with {self.tiles_per_ipu} tiles each"
            )
        return attrs.evolve(self, num_ipus=ipus, tiles_per_ipu=tiles)

    def evolve(self, **changes: TargetValue) -> Target:
        """A copy with some attributes changed (ours).

        Parameters
        ----------
        changes:
            Attributes of `Target` with other values. Some have short names, too: ``ipus``, ``tiles`` (of an IPU), ``memory`` (of a
            tile, bytes), ``clock`` (Hz), ``workers``, ``exchange`` (bytes in a cycle), ``links`` (bytes in a second), ``sync``
            (cycles).

        Returns
        -------
        Target
            All other figures are as here.

        Raises
        ------
        InvalidOption
            If a value is out of its range.
        PoplarTypeError
            If there is no such attribute, or one is given by both of its names.

        Examples
        --------
        >>> from pypoplar import IPUModel
        >>> target = IPUModel().createDevice().getTarget()
        >>> target.evolve(clock=1.33e9, memory=2 * target.getBytesPerTile()).getBytesPerTile()
        1277952
        """
        values: dict[str, Any] = {}
        for name, value in changes.items():
            attribute = attribute_of(name)
            if attribute in values:
                short = next(short for short, full in SHORT_NAMES.items() if full == attribute)
                raise PoplarTypeError(f"{short!r} and {attribute!r} are one attribute of a Target")
            values[attribute] = value
        if self.type is not TargetType.CPU:
            values |= {name: value for name, value in _what_if.get().items() if name in values}
        return attrs.evolve(self, **values)

    # Size and kind

    def getTargetType(self) -> TargetType:
        """What kind of machine it is; all kinds are simulated."""
        return self.type

    def getTargetArchString(self) -> str:
        """The architecture of its chips: "ipu1", "ipu2" (Bow IPUs too) or "cpu"."""
        return self.architecture

    def getTargetSystemString(self) -> str:
        """The name of the preset that it was made of, such as "bow"."""
        return self.system

    def getNumIPUs(self) -> int:
        """The number of IPUs of the machine, at least 1."""
        return self.num_ipus

    def getTilesPerIPU(self) -> int:
        """The number of tiles on each of its IPUs."""
        return self.tiles_per_ipu

    def getNumTiles(self) -> int:
        """The number of tiles of all IPUs of the machine."""
        return self.num_ipus * self.tiles_per_ipu

    def getNumWorkerContexts(self) -> int:
        """The number of worker threads of a tile, its supervisor not counted."""
        return self.num_worker_contexts

    def getTileClockFrequency(self) -> float:
        """The clock of the tiles, in Hz: 1.85e9 of a Bow."""
        return self.tile_clock_frequency

    # Memory and types

    def getBytesPerTile(self) -> int:
        """The memory of one tile, in bytes: 638,976 of a Bow."""
        return self.bytes_per_tile

    def getMemoryBytes(self) -> int:
        """The memory of all tiles of all IPUs together, in bytes."""
        return self.bytes_per_tile * self.getNumTiles()

    def getTypeSize(self, type: ElementType) -> int:
        """Bytes of one element in a tile's memory.

        Parameters
        ----------
        type:
            An element type of the device.

        Returns
        -------
        int
            1, 2, 4 or 8.

        Raises
        ------
        TypeNotSupportedError
            If the device does not have the type.
        """
        return check_type(type).size

    def getVectorWidth(self, type: ElementType) -> int:
        """Elements that one access of the data path holds.

        Parameters
        ----------
        type:
            An element type of the device.

        Returns
        -------
        int
            2 of FLOAT, 4 of HALF, at least 1.

        Raises
        ------
        TypeNotSupportedError
            If the device does not have the type.
        """
        return max(1, self.data_path_width // (8 * check_type(type).size))

    def getFloatVectorWidth(self) -> int:
        """The number of floats that one access of the data path holds."""
        return self.getVectorWidth(FLOAT)

    def getHalfVectorWidth(self) -> int:
        """The number of halves that one access of the data path holds."""
        return self.getVectorWidth(HALF)

    def getDataPathWidth(self) -> int:
        """The width of a load or store, in bits: 64 on all chips."""
        return self.data_path_width

    def getMemcpyBytesPerCycle(self) -> int:
        """Bytes that a tile copies within its memory in a cycle."""
        return self.memcpy_bytes_per_cycle

    def getAtomicStoreGranularity(self) -> int:
        """Bytes of the smallest store: two workers must not write into one such unit."""
        return self.atomic_store_granularity

    def getInterleavedMemoryElementIndex(self) -> int:
        """The number of the memory element at which interleaved memory begins."""
        return self.interleaved_memory_element_index

    def getRptCountMax(self) -> int:
        """The most rounds that a repeat of the hardware, without overhead, can have."""
        return self.rpt_count_max

    def getTypeLimitsMax(self, type: ElementType) -> int | float:
        """The largest finite value of a type.

        Parameters
        ----------
        type:
            An element type of the device.

        Returns
        -------
        int | float
            A float for FLOAT and HALF, else an int.

        Raises
        ------
        TypeNotSupportedError
            If the device does not have the type.
        """
        return check_type(type).limits[1]

    def getTypeLimitsLowest(self, type: ElementType) -> int | float:
        """The lowest finite value of a type.

        Parameters
        ----------
        type:
            An element type of the device.

        Returns
        -------
        int | float
            A float for FLOAT and HALF, else an int.

        Raises
        ------
        TypeNotSupportedError
            If the device does not have the type.
        """
        return check_type(type).limits[0]

    # Exchange and sync

    def getExchangeBytesPerCycle(self) -> int:
        """Bytes that a tile sends, and bytes that it receives, in a cycle of exchange."""
        return self.exchange_bytes_per_cycle

    def supportsExchangeBusSharing(self) -> bool:
        """Whether neighbouring tiles can share their exchange buses, and so receive the same data at twice the bandwidth."""
        return self.supports_super_tile_send_receive

    def getTilesPerSharedExchangeBus(self) -> int:
        """The number of tiles that share an exchange bus: 2."""
        return self.tiles_per_super_tile

    def getMinIPUSyncDelay(self) -> int:
        """Cycles of a sync within an IPU, as the nearest tile has them."""
        return self.min_ipu_sync_delay

    def getMaxIPUSyncDelay(self) -> int:
        """Cycles of a sync within an IPU, as the farthest tile has them."""
        far = self.relative_sync_cycles if self.relative_sync_delay is RelativeSyncDelayType.AUTO else 0
        return self.min_ipu_sync_delay + far

    def getGlobalSyncCycles(self) -> int:
        """Cycles of a sync between IPUs: 600 of a Bow."""
        return self.global_sync_cycles

    def getGlobalExchangeConstraints(self) -> tuple[GlobalExchangeConstraint, ...]:
        """Limits of the traffic between IPUs, as `IPUModel.globalExchangeConstraints` set them."""
        return self.global_exchange_constraints

    def getIpuLinkTopology(self) -> str:
        """How IPU-Links join the IPUs of a domain: "mesh", a ladder, or "torus", one whose ends are joined."""
        return self.ipu_link_topology

    def getIpuLinkDomainSize(self) -> int:
        """The number of IPUs that IPU-Links join; messages to others go by gateways."""
        return self.ipu_link_domain_size

    def getGatewayMode(self) -> bool:
        """Whether gateways lead from one domain of IPU-Links to another."""
        return self.gateway_mode

    def getIpuLinkConfiguration(self) -> str:
        """How IPUs address each other, "default" or "slidingWindow"; ways and times are the same."""
        return self.ipu_link_configuration

    def getInstanceSize(self) -> int:
        """The most IPUs that a target of this process may have: those of the option ``instanceSize``, else its own (ours)."""
        return self.instance_size or self.num_ipus

    @property
    def host_sync_joins_ipus(self) -> bool:
        """Whether all IPUs wait for each other when one exchanges with the host."""
        return self.sync_configuration == SYNC_CONFIGURATIONS[0]

    # Convolution units

    def getFp16InFp16OutConvUnitsPerTile(self) -> int:
        """Convolution units of a tile from halves to halves."""
        return self.fp16_in_fp16_out_conv_units_per_tile

    def getFp16InFp32OutConvUnitsPerTile(self) -> int:
        """Convolution units of a tile from halves to floats."""
        return self.fp16_in_fp32_out_conv_units_per_tile

    def getFp32InFp32OutConvUnitsPerTile(self) -> int:
        """Convolution units of a tile from floats to floats."""
        return self.fp32_in_fp32_out_conv_units_per_tile

    def getNumConvUnits(self, inputType: ElementType, partialType: ElementType) -> int:
        """Convolution units of a tile that take one type and give another.

        Parameters
        ----------
        inputType:
            The type of data and weights.
        partialType:
            The type of the sums.

        Returns
        -------
        int
            Units; 0 where the chip has none for the two types.
        """
        units: dict[tuple[ElementType, ElementType], int] = {
            (HALF, HALF): self.fp16_in_fp16_out_conv_units_per_tile,
            (HALF, FLOAT): self.fp16_in_fp32_out_conv_units_per_tile,
            (FLOAT, FLOAT): self.fp32_in_fp32_out_conv_units_per_tile,
        }
        return units.get((inputType, partialType), 0)

    def getConvUnitInputLoadElemsPerCycle(self, type: ElementType) -> int:
        """Elements that a convolution unit takes in a cycle.

        Parameters
        ----------
        type:
            The type of the data.

        Returns
        -------
        int
            Elements of FLOAT or HALF; 0 for other types.

        Raises
        ------
        TypeNotSupportedError
            If the device does not have the type.
        """
        if check_type(type) is HALF:
            return self.fp16_conv_unit_input_load_elems_per_cycle
        return self.fp32_conv_unit_input_load_elems_per_cycle if type is FLOAT else 0

    def getConvUnitMaxPipelineDepth(self, type: ElementType) -> int:
        """Stages of a convolution unit.

        Parameters
        ----------
        type:
            The type of the data.

        Returns
        -------
        int
            Stages for FLOAT or HALF; 0 for other types.

        Raises
        ------
        TypeNotSupportedError
            If the device does not have the type.
        """
        if check_type(type) is HALF:
            return self.fp16_conv_unit_max_pipeline_depth
        return self.fp32_conv_unit_max_pipeline_depth if type is FLOAT else 0

    def getWeightsPerConvUnit(self, type: ElementType) -> int:
        """Weights that a convolution unit holds.

        Parameters
        ----------
        type:
            Their type.

        Returns
        -------
        int
            16 for HALF, 8 for FLOAT, 0 for other types.

        Raises
        ------
        TypeNotSupportedError
            If the device does not have the type.
        """
        return self.getConvUnitInputLoadElemsPerCycle(type) * self.getConvUnitMaxPipelineDepth(type)

    def getConvUnitCoeffLoadBytesPerCycle(self) -> int:
        """Bytes of weights that the convolution units load in a cycle."""
        return self.conv_unit_coeff_load_bytes_per_cycle

    # Peaks, of rooflines (ours)

    def conv_unit_flops_per_cycle(self, type: ElementType) -> int:
        """Floating-point operations of a tile's convolution units in a cycle; a multiply-accumulate is two.

        Parameters
        ----------
        type:
            The type of data, weights and sums.

        Returns
        -------
        int
            128 on HALFs of a Bow, 32 on FLOATs, 0 for other types.

        Raises
        ------
        TypeNotSupportedError
            If the device does not have the type.
        """
        return 2 * self.getNumConvUnits(type, type) * self.getConvUnitInputLoadElemsPerCycle(type)

    def vector_flops_per_cycle(self, type: ElementType) -> int:
        """Floating-point operations of a tile without its convolution units in a cycle.

        Parameters
        ----------
        type:
            The type of the elements.

        Returns
        -------
        int
            4 on FLOATs, 8 on HALFs, 0 for other types.

        Raises
        ------
        TypeNotSupportedError
            If the device does not have the type.
        """
        return self.vector_element_flops_per_cycle * self.getVectorWidth(type) if check_type(type).is_floating else 0

    def peak_flops(self, type: ElementType) -> float:
        """Floating-point operations of all tiles in a second, all convolution units busy.

        Parameters
        ----------
        type:
            The type of data, weights and sums.

        Returns
        -------
        float
            348.6e12 on HALFs of a Bow, as the vendor's documents say and measurements bear out (D M); 0 where there are no such
            units.

        Raises
        ------
        TypeNotSupportedError
            If the device does not have the type.
        """
        return self.conv_unit_flops_per_cycle(type) * self.getNumTiles() * self.tile_clock_frequency

    def peak_vector_flops(self, type: ElementType) -> float:
        """Floating-point operations of all tiles in a second without convolution units.

        Parameters
        ----------
        type:
            The type of the elements.

        Returns
        -------
        float
            10.9e12 on FLOATs of a Bow, as inferred from the instructions (I); 0 for other types than FLOAT and HALF.

        Raises
        ------
        TypeNotSupportedError
            If the device does not have the type.
        """
        return self.vector_flops_per_cycle(type) * self.getNumTiles() * self.tile_clock_frequency

    def peak_memory_bytes(self) -> float:
        """Bytes that all tiles load and store in a second: 65.4e12 of a Bow (I)."""
        return self.tile_memory_bytes_per_cycle * self.getNumTiles() * self.tile_clock_frequency

    # Saving

    def to_json(self) -> dict[str, object]:
        """The target as plain JSON values, which `from_json` reads (ours)."""
        tree = attrs.asdict(self)
        tree["type"] = self.type.value
        tree["relative_sync_delay"] = self.relative_sync_delay.value
        tree["global_exchange_constraints"] = [
            [constraint.bandwidth, [[flow.src, flow.dst] for flow in constraint.flows]]
            for constraint in self.global_exchange_constraints
        ]
        return tree

    @staticmethod
    def from_json(values: Mapping[str, object]) -> Target:
        """The target that `to_json` wrote.

        Parameters
        ----------
        values:
            What `to_json` gave.

        Returns
        -------
        Target
            Equal to the one that was written.

        Raises
        ------
        InvalidOption
            Where a value is missing, unknown, of the wrong kind or out of its range.
        """
        expected = {field.name: field.type for field in attrs.fields(Target)}
        given: dict[str, Any] = dict(values)
        if given.keys() != expected.keys():
            wrong = sorted(given.keys() ^ expected.keys())
            raise InvalidOption(f"this is not a saved target: {', '.join(wrong)} unknown or missing")
        try:
            given["type"] = TargetType(given["type"])
            given["relative_sync_delay"] = RelativeSyncDelayType(given["relative_sync_delay"])
            given["global_exchange_constraints"] = tuple(
                GlobalExchangeConstraint(float(limit), tuple(GlobalExchangeFlow(int(a), int(b)) for a, b in flows))
                for limit, flows in given["global_exchange_constraints"]
            )
        except (TypeError, ValueError) as problem:
            raise InvalidOption(f"this is not a saved target: {problem}") from None
        plain = {"int": int, "float": float, "bool": bool, "str": str}
        for name, kind in expected.items():
            wanted = plain.get(str(kind))
            if wanted is not None and type(given[name]) is not wanted:
                raise InvalidOption(f"this is not a saved target: {name} is {given[name]!r}, expected a {kind}")
        for name, least in [("num_ipus", 1), *((parameter.name, parameter.least) for parameter in PARAMETERS)]:
            if not given[name] >= least:
                raise InvalidOption(f"this is not a saved target: {name} is {given[name]!r}, expected at least {least}")
        try:
            return Target(**given)
        except InvalidOption as problem:
            raise InvalidOption(f"this is not a saved target: {problem}") from None


SHORT_NAMES = {  # of attributes
    "ipus": "num_ipus",
    "tiles": "tiles_per_ipu",
    "memory": "bytes_per_tile",
    "clock": "tile_clock_frequency",
    "workers": "num_worker_contexts",
    "exchange": "exchange_bytes_per_cycle",
    "links": "ipu_link_bytes_per_second",
    "sync": "min_ipu_sync_delay",
}
_what_if: ContextVar[Mapping[str, TargetValue]] = ContextVar("what_if", default=MappingProxyType({}))


def attribute_of(name: str) -> str:
    """The attribute of a `Target` that is called so, in short or in full; `PoplarTypeError` with the nearest if none is."""
    attribute = SHORT_NAMES.get(name, name)
    known = [one.name for one in attrs.fields(Target)]
    if attribute not in known:
        raise PoplarTypeError(f"a Target has no attribute {name!r}{nearest(name, [*SHORT_NAMES, *known])}")
    return attribute


@contextmanager
def what_if(changes: Mapping[str, TargetValue]) -> Iterator[None]:
    """Targets that are made within have these changes, whoever makes them, also by `Target.evolve`; those of CPUs have not.

    What derives targets for itself, as of a part of the IPUs, does so with `attrs.evolve`.
    """
    token = _what_if.set({attribute_of(name): value for name, value in changes.items()})
    try:
        yield
    finally:
        _what_if.reset(token)


Target.__doc__ = told_figures(
    Target.__doc__,
    [field.name for field in attrs.fields(Target)],
    {
        "type": "Its kind.",
        "system": "The name of the preset.",
        "architecture": "That of its chips.",
        "timing": 'Whom cycles follow, where they differ: "model", the vendor\'s IPU Model, or "hardware", measurements.',
        "num_ipus": "The number of IPUs.",
        "relative_sync_delay": "Whether far tiles take longer to sync.",
        "global_exchange_constraints": "Limits of the traffic between IPUs.",
        "sync_configuration": 'Which IPUs wait for each other when one exchanges with the host: "intraReplicaAndAll", all; '
        '"ipuAndAll", none.',
        "ipu_link_topology": 'How IPU-Links join the IPUs of a domain: "mesh", a ladder, or "torus", whose ends are joined.',
        "ipu_link_domain_size": "The number of IPUs that IPU-Links join.",
        "gateway_mode": "Whether gateways lead from one domain of IPU-Links to another.",
        "ipu_link_configuration": 'How IPUs address each other, "default" or "slidingWindow"; ways and times are the same.',
        "instance_size": "The number of IPUs of a process, 0 for as many as the target has.",
    },
)
