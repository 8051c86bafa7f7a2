"""Parts of a plan that are given: the option ``planConstraints``, JSON in the form that PopLibs reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import evolve, field, frozen

from pypoplar.errors import InvalidOption
from pypoplar.poplin.convolution.conv_partition import KERNEL, OUT
from pypoplar.poplin.convolution.conv_shape import AXES, ConvForm
from pypoplar.spelling import nearest

METHODS = ("AMP", "VMAC", "OUTER_PRODUCT")
KNOWN: dict[str, Any] = {
    "method": {"type": METHODS},
    "0": {
        "transform": {"expandDims": list, "swapOperands": bool, "combineConvGroupsFactor": list},
        "partition": {
            "convGroupSplit": int,
            "batchSplit": int,
            "fieldSplit": {"0": int, "1": int, "2": int},
            "kernelSplit": {"0": int, "1": int, "2": int},
            "inChanSplit": {"parallel": int, "serial": int},
            "outChanSplit": {"parallel": int, "serial": int},
        },
    },
}


@frozen
class PlanConstraints:
    """Numbers of parts, of what is not in the field and of field dimensions and their kernels; which dimensions are folded.

    `steps` are numbers of steps, by the number of a size of a `ConvRequest`. Operands are `swapped`, or not, or as is cheaper. The
    `method` is that of the vertices.
    """

    channels: Mapping[int, int] = field(factory=dict)  # by the dimension of a partition
    fields: Mapping[int, int] = field(factory=dict)  # by the dimension of the field
    kernels: Mapping[int, int] = field(factory=dict)
    folded: tuple[int, ...] | None = None
    steps: Mapping[int, int] = field(factory=dict)
    swapped: bool | None = None
    method: str | None = None
    factors: tuple[int, ...] | None = None  # of groups that are joined

    @property
    def free(self) -> bool:
        """Whether nothing is given."""
        return self == PlanConstraints()

    @property
    def rest(self) -> PlanConstraints:
        """What is left for the plan of a step, or of operands that have been exchanged."""
        return evolve(self, steps={}) if self.steps else evolve(self, swapped=None, factors=None)

    def allows(self, form: ConvForm) -> bool:
        """Whether a form has the method that is given."""
        return self.method in (None, form.method)

    @classmethod
    def read(cls, text: str) -> PlanConstraints:
        """The constraints of a text; `InvalidOption` for what is no JSON, for unknown keys and values of another kind."""
        if not text:
            return cls()
        try:
            given = json.loads(text)
        except json.JSONDecodeError as error:
            raise InvalidOption(f"planConstraints is JSON, got {text!r}: {error}") from None
        _check(given, KNOWN, "")
        level = given.get("0", {})
        partition, transform = level.get("partition", {}), level.get("transform", {})
        folded = transform.get("expandDims")
        channels = {0: partition.get("convGroupSplit"), 1: partition.get("batchSplit")}
        channels |= {8: partition.get("inChanSplit", {}).get("parallel"), 9: partition.get("outChanSplit", {}).get("parallel")}
        serial = {number: partition.get(name, {}).get("serial", 1) for number, name in ((2, "inChanSplit"), (3, "outChanSplit"))}
        return cls(
            {dimension: count for dimension, count in channels.items() if count is not None},
            {int(dim): count for dim, count in partition.get("fieldSplit", {}).items()},
            {int(dim): count for dim, count in partition.get("kernelSplit", {}).items()},
            None if folded is None else tuple(sorted(folded)),
            {number: count for number, count in serial.items() if count > 1},
            transform.get("swapOperands"),
            given.get("method", {}).get("type"),
            tuple(transform["combineConvGroupsFactor"]) if "combineConvGroupsFactor" in transform else None,
        )

    def fixed(self, form: ConvForm) -> dict[int, int] | None:
        """The numbers of parts of dimensions of a partition of the form; None if it cannot keep the constraints.

        A dimension of the field that joins the batch is not split by itself.
        """
        parts = dict(self.channels)
        first = AXES - len(form.sliding)
        for counts, base in ((self.fields, OUT.start), (self.kernels, KERNEL.start)):
            for dim, count in counts.items():
                if dim in form.sliding:
                    parts[base + first + form.sliding.index(dim)] = count
                elif count > 1 or dim >= len(form.axes):
                    return None
        return parts


def _check(value: Any, known: Any, path: str) -> None:
    """`InvalidOption` unless a value has the keys and kinds that are known."""
    where = f" of {path}" if path else ""
    if isinstance(known, dict):
        if not isinstance(value, dict):
            raise InvalidOption(f"planConstraints: the value{where} is an object, got {value!r}")
        for key, inner in value.items():
            if key not in known:
                hint = nearest(key, known, f"; it has {', '.join(known)}")
                raise InvalidOption(f"planConstraints{where} have no key {key!r}{hint}")
            _check(inner, known[key], f"{path}.{key}".lstrip("."))
    elif known is list:
        if not isinstance(value, list) or not all(isinstance(dim, int) and not isinstance(dim, bool) for dim in value):
            raise InvalidOption(f"planConstraints: {path} is a list of whole numbers, got {value!r}")
    elif isinstance(known, tuple):
        if value not in known:
            raise InvalidOption(f"planConstraints: {path} is one of {', '.join(known)}, got {value!r}")
    elif known is bool:
        if not isinstance(value, bool):
            raise InvalidOption(f"planConstraints: {path} is true or false, got {value!r}")
    elif not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidOption(f"planConstraints: {path} is a number of parts, 1 at least, got {value!r}")
