"""The simulated chips and machines, as data.

One row per parameter: its value on each chip, its unit, what it means, and where the figure is from: D vendor documentation,
S constant in the vendor's open library sources, M measured on hardware and published, I inferred.
"""

from __future__ import annotations

from attrs import frozen

Value = int | float | bool
CHIPS = ("ipu1", "ipu2", "bow")


@frozen
class Parameter:
    """A parameter of the machine. `name` is the attribute of `Target`, `field` the one of `IPUModel` ("" where it has none)."""

    name: str
    field: str
    ipu1: Value
    ipu2: Value
    bow: Value
    unit: str
    mark: str
    meaning: str
    least: int = 0

    def value(self, chip: str) -> Value:
        """The value on the chip called `chip`, one of `CHIPS`."""
        values: dict[str, Value] = {"ipu1": self.ipu1, "ipu2": self.ipu2, "bow": self.bow}
        return values[chip]


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
    Parameter("instruction_bytes", "instructionBytes", 4, 4, 4, "B", "D", "size of an instruction", 1),
    Parameter("interleaved_memory_element_index", "interleavedMemoryElementIndex", 8, 8, 8, "", "I",
              "first memory element of the interleaved region"),
    Parameter("compile_ipu_code", "compileIPUCode", False, False, False, "", "D",
              "accepted; codelets are never compiled for the chip here"),
    Parameter("rpt_count_max", "rptCountMax", 4095, 4095, 4095, "rounds", "S",
              "most rounds of a zero-overhead repeat", 1),
    Parameter("atomic_store_granularity", "atomicStoreGranularity", 4, 4, 4, "B", "S",
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
    Parameter("ipu_link_bytes_per_second", "", 52.9e9, 52.9e9, 320e9, "B/s", "I M D",
              "IPU to IPU, both ways together", 1),
    # 8 GB/s: the vendor's own model, on both chips (the published profiles of its matrix-vector tutorial); 32 GB/s: the data sheet
    Parameter("host_write_bytes_per_second", "", 8e9, 8e9, 32e9, "B/s", "D", "host to tiles", 1),
    Parameter("host_read_bytes_per_second", "", 8e9, 8e9, 32e9, "B/s", "D", "tiles to host", 1),
    Parameter("host_sync_seconds", "", 0.36e-6, 0.36e-6, 0.36e-6, "s", "I M I", "one sync with the host"),
)
# fmt: on


@frozen
class Preset:
    """A machine by name: a chip, how many, and what differs from the chip's own figures."""

    name: str
    chip: str
    architecture: str
    num_ipus: int
    meaning: str
    tiles_per_ipu: int | None = None

    def values(self) -> dict[str, Value]:
        """Parameter name to value."""
        values = {parameter.name: parameter.value(self.chip) for parameter in PARAMETERS}
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
