"""What a backend of code generation is given, and what it must deliver.

A backend makes code of codelets for one kind of processor. `Backend` is all that the rest of the library knows of it: values and
functions, to which a backend for another processor gives its own. There is one, `pypoplar.codelet.llvm`, for the host.

**Given** is the typed form of a codelet (`pypoplar.codelet.ir.typed`) and the `Checks` that its code is to make.

- The form is priced: before each straight run stands its `Price`. Code adds its slots when it comes there, and its flops and bytes
  where `Checks.flops` asks for them. Where `Checks.blocks` does, it counts how often each block runs, by the numbers of
  `pypoplar.codelet.ir.block_numbers`; of a MultiVertex the blocks of the worker that takes longest, of the first if several do. Of
  a block that runs n times it may add n prices at once, if the block reads no cycle counter.
- Operations mean what their rows in `pypoplar.codelet.operations` say, bit for bit: floating-point arithmetic in the order written,
  rounded at each operation, never contracted. An operation that would be an error stops the vertex instead.
- Loops are held to the cycle limit as `pypoplar.codelet.ir.loop_limits` says. Code reads the limit anew now and then: a run is
  stopped by one that every vertex is beyond.
- Fields of a vertex overlap only where both are read, or where they are one tensor (`PricedCodelet.in_place`).
- `Breakpoint` is the interpreter's; code passes over it. A kind of statement, or an operation, that the backend does not know is
  refused by name: it must never be left out.
- Analyses that need no processor are there to be used: `pypoplar.codelet.ir.loop_checks` (which index checks can be made before a
  loop), `eight_lanes_plan` (what may run side by side), `span_roots` (which fields cannot overlap) and `walk`.

**The binary interface** is `pypoplar.interface`; engine, driver and interpreter know code by it alone.

- The code is one function: `pypoplar.interface.context_words` has its arguments and the context that it is told. It runs a group of
  vertices, in order or side by side, and leaves for each its slots, its work and what ``compute`` returned.
- `edge_rows` says where a vertex's fields are. Addresses are offsets from the memory that the call names: the code reaches memory
  in no other way, but for its constant tables, which it brings along. It keeps nothing from call to call, and may run in several
  threads at once.
- A vertex that faults stops, and the others run. The group's first fault is recorded as `fault_codes` says. Of a MultiVertex the
  workers run one after the other, none after a fault, and its result is the AND of theirs.
- `debug_records` is the form of prints. Random numbers are xoroshiro128aox of a worker, see `Context.RANDOM`.

**Delivered** is object code, as bytes that another process may load: they hold no address of this one.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.typed import PricedCodelet


@frozen(eq=False)
class NativeCodelet:
    """Code in this process; it is called by `address`, which holds as long as this object lives."""

    address: int
    _code: object


@frozen(eq=False)
class Backend:
    """A maker of code.

    `identity` tells apart processors, and versions of tools, whose object code cannot be exchanged. `sources` are the packages and
    modules that decide what the code is, beside the typed form and the binary interface: code of other versions is not used.
    """

    name: str
    sources: tuple[str, ...]
    identity: Callable[[], str]
    object_code: Callable[[PricedCodelet, Checks], bytes]
    load: Callable[[bytes], NativeCodelet]
