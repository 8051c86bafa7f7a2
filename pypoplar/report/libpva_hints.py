"""What to use where libpva has an attribute that our reports do not have."""

from __future__ import annotations

from typing import NoReturn

INSTEAD = {
    "Report": {"debugContexts": "names of programs and variables are in compilation.programs and compilation.loweredVariables"},
    "Compilation": {"debugInformation": "names of programs and variables are in programs and loweredVariables"},
    "Run": {"microseconds": "cycles divided by execution.clockFrequency gives seconds", "programId": "name has the program's name"},
    "Step": {
        "estimatedCyclesByTile": "cyclesByTile has the cycles of the model",
        "activeCyclesByVertexType": "execution.cycles_by_vertex_type has them for all steps together",
        "cyclesFrom": "execution.trace has the begin of each execution",
        "cyclesTo": "execution.trace has the begin and the cycles of each execution",
        "cyclesOverlapped": "compute and exchange do not overlap in the model",
        "dataBalance": "tileBalance is that of the busy ports in an exchange",
        "elementConstraints": "memory elements are not modelled",
        "equalAddressConstraints": "memory elements are not modelled",
    },
    "TileMemoryReport": {"vertices": "they are not known: the profile is of an older version, profile the program again"},
}


def missing(self: object, name: str) -> NoReturn:
    """The `__getattr__` of a report's classes: Python's error, with a hint where libpva has the attribute."""
    kind = type(self).__name__
    hint = INSTEAD.get(kind, {}).get(name)
    remedy = f": libpva has it, here {hint}" if hint else ""
    raise AttributeError(f"{kind!r} object has no attribute {name!r}{remedy}", name=name, obj=self)
