"""The simulated chips and machines, as data.

One row per parameter: its value on each chip, its unit, what it means, and where the figure is from: D vendor documentation,
S constant in the vendor's open library sources, M measured on hardware and published, I inferred. Where what was measured is not
what the vendor's own model says, the row has both: a target follows the one or the other, by its timing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from attrs import frozen

Value = int | float | bool
CHIPS = ("ipu1", "ipu2", "bow")
LINK_TOPOLOGIES = ("mesh", "torus")  # of the target option ipuLinkTopology: ladders of IPU-Links with open, or joined ends
MOST_OF_DOMAIN = 64  # D: IPUs that IPU-Links join
IPUS_OF_MACHINE = 4  # D: of an IPU-Machine, with one gateway
STORE_BYTES = 4  # of a worker, on every chip: it stores what is smaller by writing the word around it

TIMINGS: dict[str, str] = {
    "model": "as the vendor's IPU Model reckons, by its published profiles",
    "hardware": "as measured on hardware, where measurements are published",
}


@frozen
class Measured:
    """What a parameter is by measurements, on each chip, with the mark of each and where they are published."""

    ipu1: Value
    ipu2: Value
    bow: Value
    mark: str
    source: str


@frozen
class Parameter:
    """A parameter of the machine. `name` is the attribute of `Target`, `field` the one of `IPUModel` ("" where it has none).

    It is from `least` to `most`. Where `hardware` is given, its values hold for that timing, in the place of the row's own.
    """

    name: str
    field: str
    ipu1: Value
    ipu2: Value
    bow: Value
    unit: str
    mark: str
    meaning: str
    least: int = 0
    most: float = math.inf
    hardware: Measured | None = None

    def value(self, chip: str, timing: str = "model") -> Value:
        """The value on the chip called `chip`, one of `CHIPS`, in one of `TIMINGS`."""
        row = self.hardware if timing == "hardware" and self.hardware is not None else self
        values: dict[str, Value] = {"ipu1": row.ipu1, "ipu2": row.ipu2, "bow": row.bow}
        return values[chip]


EXAMPLES = "graphcore/examples, tutorials/popvision/lightweight_profiling"
TESSELLATE = "graphcore-research/tessellate-ipu, ipu_cycle_count_overhead"
MATRIX_VECTOR = "graphcore/examples, tutorials/poplar/tut6_matrix_vector_opt: 40,044,000 bytes in 2,641,488.4 cycles of 1.33 GHz"

# fmt: off
PARAMETERS: tuple[Parameter, ...] = (
    Parameter("tiles_per_ipu", "tilesPerIPU", 1216, 1472, 1472, "tiles", "D", "tiles of one IPU", 1),
    Parameter("num_worker_contexts", "numWorkerContexts", 6, 6, 6, "workers", "D",
              "worker contexts of a tile, without the supervisor", 1),
    Parameter("bytes_per_tile", "memoryBytesPerTile", 262144, 638976, 638976, "B", "D", "memory of a tile", 1),
    Parameter("tile_clock_frequency", "tileClockFrequency", 1.6e9, 1.33e9, 1.85e9, "Hz", "D M",
              "clock of the tiles", 1),
    Parameter("data_path_width", "dataPathWidth", 64, 64, 64, "bit", "S", "width of a load or store", 32),
    Parameter("exchange_bytes_per_cycle", "exchangeBytesPerCycle", 4, 4, 4, "B/cycle", "S",
              "exchange of a tile, each way", 1),
    Parameter("memcpy_bytes_per_cycle", "memcpyBytesPerCycle", 8, 8, 8, "B/cycle", "S",
              "copying within a tile's memory", 1),
    Parameter("tiles_per_super_tile", "tilesPerSuperTile", 2, 2, 2, "tiles", "S",
              "tiles that share an exchange bus", 1),
    Parameter("supports_super_tile_send_receive", "supportsSuperTileSendReceive", True, True, True, "", "S",
              "a pair of tiles receives the same data at twice the bandwidth"),
    Parameter("min_ipu_sync_delay", "minIPUSyncDelay", 90, 90, 90, "cycles", "S I",
              "sync within an IPU, the nearest tile's"),
    Parameter("relative_sync_cycles", "", 36, 36, 36, "cycles", "S I",
              "what the farthest tile's sync takes beyond minIPUSyncDelay"),
    Parameter("global_sync_cycles", "globalSyncCycles", 500, 600, 600, "cycles", "S I", "sync between IPUs"),
    # the vendor's model: the profiles of its matrix-vector tutorial and of a halo exchange fit with a sync for each compute set
    Parameter("syncs_without_exchange", "syncs_without_exchange", True, True, True, "", "I",
              "a compute set syncs the tiles also where nothing is exchanged before it",
              hardware=Measured(False, False, False, "I M M", f"{TESSELLATE}: 45 cycles from a reading of the cycle counter to "
                                "the one in the next compute set, less than a sync, and no tile waits for the others")),
    Parameter("compute_set_start_cycles", "compute_set_start_cycles", 0, 0, 0, "cycles", "I",
              "what passes on a tile with vertices before they start", 0, 1_000_000,
              Measured(20, 20, 20, "I M I", f"{EXAMPLES}, example 1: 7,236 to 7,240 cycles for two compute sets in turn, each one "
                       "vertex of 3,600")),
    Parameter("instruction_bytes", "instructionBytes", 4, 4, 4, "B", "D", "size of an instruction", 1),
    Parameter("interleaved_memory_element_index", "interleavedMemoryElementIndex", 8, 8, 8, "", "I",
              "first memory element of the interleaved region"),
    Parameter("compile_ipu_code", "compileIPUCode", False, False, False, "", "D",
              "accepted; codelets are never compiled for the chip here"),
    # S: the compiler's test of counted loops makes a repeat of 65536 rounds and none of 65537; the register has 16 bits, ipu1's 12
    Parameter("rpt_count_max", "rptCountMax", 4095, 65536, 65536, "rounds", "S S I",
              "most rounds of a zero-overhead repeat", 1),
    # M: 36.5 cycles for a round of six instructions of `for (volatile int i{}; i < 100; ++i);`, EXAMPLES, example 2
    Parameter("supervisor_instruction_cycles", "supervisor_instruction_cycles", 6, 6, 6, "cycles", "I M I",
              "an instruction of compiled supervisor code", 1, 1000),
    Parameter("atomic_store_granularity", "atomicStoreGranularity", STORE_BYTES, STORE_BYTES, STORE_BYTES, "B", "S",
              "smallest store that workers do not share", 1),
    Parameter("fp8_conv_unit_max_pipeline_depth", "fp8ConvUnitMaxPipelineDepth", 0, 0, 0, "cycles", "I",
              "no quarter on these chips"),
    Parameter("fp16_conv_unit_max_pipeline_depth", "fp16ConvUnitMaxPipelineDepth", 4, 4, 4, "cycles", "I",
              "depth of a convolution unit, half"),
    Parameter("fp32_conv_unit_max_pipeline_depth", "fp32ConvUnitMaxPipelineDepth", 4, 4, 4, "cycles", "I",
              "the same, float"),
    Parameter("fp8_conv_unit_input_load_elems_per_cycle", "fp8ConvUnitInputLoadElemsPerCycle", 0, 0, 0, "elements", "I",
              "no quarter on these chips"),
    Parameter("fp16_conv_unit_input_load_elems_per_cycle", "fp16ConvUnitInputLoadElemsPerCycle", 4, 4, 4, "elements",
              "I",
              "multiply-accumulates of a convolution unit in a cycle, half"),
    Parameter("fp32_conv_unit_input_load_elems_per_cycle", "fp32ConvUnitInputLoadElemsPerCycle", 2, 2, 2, "elements",
              "I",
              "the same, float"),
    Parameter("fp8_in_fp16_out_conv_units_per_tile", "fp8InFp16OutConvUnitsPerTile", 0, 0, 0, "units", "I",
              "no quarter on these chips"),
    Parameter("fp16_in_fp16_out_conv_units_per_tile", "fp16InFp16OutConvUnitsPerTile", 8, 16, 16, "units", "I",
              "convolution units, half to half: 32 and 64 multiply-accumulates per cycle"),
    Parameter("fp16_in_fp32_out_conv_units_per_tile", "fp16InFp32OutConvUnitsPerTile", 8, 16, 16, "units", "I",
              "convolution units, half to float"),
    Parameter("fp32_in_fp32_out_conv_units_per_tile", "fp32InFp32OutConvUnitsPerTile", 4, 8, 8, "units", "I",
              "convolution units, float: 8 and 16 multiply-accumulates per cycle"),
    Parameter("conv_unit_coeff_load_bytes_per_cycle", "convUnitCoeffLoadBytesPerCycle", 8, 16, 16, "B/cycle", "I",
              "loading the weights of the convolution units"),
    Parameter("vector_element_flops_per_cycle", "", 2, 2, 2, "flops", "I",
              "of each element of a vector without the convolution units, a multiply-accumulate; triad reaches 99.1 % (M)"),
    Parameter("tile_memory_bytes_per_cycle", "", 24, 24, 24, "B/cycle", "I",
              "a tile's memory, two loads and a store; triad reaches 99.1 % (M)", 1),
    Parameter("ipu_link_bytes_per_second", "", 52.9e9, 52.9e9, 52.9e9, "B/s", "I M I",
              "a link from IPU to IPU, both ways together", 1),
    Parameter("gateway_bytes_per_second", "", 32e9, 32e9, 32e9, "B/s", "I I D",
              "from an IPU to the gateway of its machine, both ways together", 1),
    Parameter("gateway_link_bytes_per_second", "", 25e9, 25e9, 25e9, "B/s", "I I D",
              "a link between the gateways of two domains, 100 Gb/s each way, both ways together", 1),
    Parameter("machine_host_bytes_per_second", "", 12.5e9, 12.5e9, 12.5e9, "B/s", "I I D",
              "the link of a machine of four IPUs to the host, 100 Gb/s, each way, where a target has several IPUs or replicas", 1),
    Parameter("streaming_memory_bytes_per_second", "", 20e9, 20e9, 20e9, "B/s", "I",
              "streaming memory of a machine, which its IPUs share", 1),
    Parameter("streaming_memory_bytes", "", 256 * 10**9, 256 * 10**9, 256 * 10**9, "B", "I D D",
              "streaming memory of a machine, for remote buffers", 0),
    # 8 GB/s: the vendor's own model, on both chips (the published profiles of its matrix-vector tutorial); 32 GB/s: the data sheet
    Parameter("host_write_bytes_per_second", "", 8e9, 8e9, 32e9, "B/s", "D", "host to tiles", 1,
              hardware=Measured(8e9, 20.2e9, 32e9, "D M D", MATRIX_VECTOR)),
    Parameter("host_read_bytes_per_second", "", 8e9, 8e9, 32e9, "B/s", "D", "tiles to host", 1,
              hardware=Measured(8e9, 20.2e9, 32e9, "D I D", MATRIX_VECTOR)),
    Parameter("host_sync_seconds", "host_sync_seconds", 0.36e-6, 0.36e-6, 0.36e-6, "s", "I M I",
              "what a stream copy takes beside its bytes: one sync with the host, and on hardware the transfer's latency", 0, 1000,
              Measured(1.13e-6, 1.13e-6, 1.13e-6, "I M I", f"{EXAMPLES}, example 3: the transfer of one int takes 1,491 to 1,771 "
                       "cycles of 1.33 GHz, the middle one of five 1,501")),
)
# fmt: on
UNITS = {"B": "bytes", "B/cycle": "bytes a cycle", "B/s": "bytes a second", "bit": "bits", "s": "seconds"}


def told_figures(document: str | None, names: Iterable[str], others: Mapping[str, str]) -> str:
    """A docstring with a section on figures of a machine: what each is and its unit, from the table; `others` are not in it."""
    rows = {name: row for row in PARAMETERS for name in (row.name, row.field)}
    lines = []
    for name in names:
        row = rows.get(name)
        unit = f"; {UNITS.get(row.unit, row.unit)}" if row is not None and row.unit else ""
        meaning = others[name] if row is None else f"{row.meaning[0].upper()}{row.meaning[1:]}{unit}."
        lines += [f"    {name}:", f"        {meaning}"]
    return "\n".join(((document or "").rstrip(), "", "    Attributes", "    ----------", *lines, "    "))


@frozen
class Preset:
    """A machine by name: a chip, how many, and what differs from the chip's own figures."""

    name: str
    chip: str
    architecture: str
    num_ipus: int
    meaning: str
    tiles_per_ipu: int | None = None

    def values(self, timing: str = "model") -> dict[str, Value]:
        """Parameter name to value, in one of `TIMINGS`."""
        values = {parameter.name: parameter.value(self.chip, timing) for parameter in PARAMETERS}
        if self.tiles_per_ipu is not None:
            values["tiles_per_ipu"] = self.tiles_per_ipu
        return values


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("ipu1", "ipu1", "ipu1", 1, "one GC2"),
        Preset("ipu2", "ipu2", "ipu2", 1, "one GC200 (Mk2)"),
        Preset("bow", "bow", "ipu2", 1, "one Bow IPU, the default"),
        Preset("tiny", "bow", "ipu2", 1, "16 tiles of a Bow IPU, for tests", tiles_per_ipu=16),
        Preset("bow2000", "bow", "ipu2", 4, "Bow-2000: 4 Bow IPUs"),
        Preset("pod16", "bow", "ipu2", 16, "Bow Pod16: 16 Bow IPUs"),
        Preset("pod64", "bow", "ipu2", 64, "Bow Pod64: 64 Bow IPUs"),
    )
}
