"""The matrix unit on the host: a function that adds a product of matrices to one, as fast as the order of its sums allows.

Sums are held in registers: those of a few rows and a few vectors of neighbouring columns, a *tile*. Each sum takes its products in
order of depth, so nothing but time differs from three plain loops. Products of floats are rounded before they are added; those of
halves are exact, so a fused multiply-add gives the same. The factors of a tile's rows are widened, some of the depth at a time, to
where each is at a fixed distance on the stack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen
from llvmlite import ir

from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.llvm.memory_forms import FLOAT, INT, WORD, alignment, memory_form, to_memory, to_register, word
from pypoplar.host_code.machine import host

CHUNK = 16  # of the depth, that is widened at a time
_ARGUMENTS = ("out", "a", "b", "rows", "depth", "columns", "out_row", "a_row", "b_row")  # addresses, counts, bytes from row to row
_PREFIX = "product"


@frozen
class TileShape:
    """At most so many rows of so many vectors of lanes; where it is `masked`, the last lanes may be left out."""

    rows: int
    vectors: int
    lanes: int
    masked: bool = False

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes


def tile_shapes() -> tuple[TileShape, TileShape]:
    """For many columns, and for few, by the host's registers: sums, a row of the right matrix, a factor and a product fit."""
    features = host().features.split(",")
    if "+avx512f" in features:
        return TileShape(6, 4, 16), TileShape(12, 1, 16, masked=True)
    if "+avx" in features:
        return TileShape(6, 2, 8), TileShape(8, 1, 8, masked=True)
    return TileShape(6, 2, 4), TileShape(6, 1, 1)


def product_kernel(module: Any, result: str, element: str) -> Any:
    """The function, by element types: ``kernel(out, a, b, rows, depth, columns, out_row, a_row, b_row)``, made once in a module."""
    name = f"{_PREFIX}.{result}.{element}"
    if name in module.globals:
        return module.globals[name]
    kernel = _function(module, name)
    builder = ir.IRBuilder(kernel.append_basic_block())
    numbers = dict(zip(_ARGUMENTS, kernel.args, strict=True))
    done: Any = word(0)
    for shape in tile_shapes():
        done = _panels(builder, shape, (result, element), numbers, done)
    builder.ret_void()
    return kernel


def _function(module: Any, name: str) -> Any:
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [WORD] * len(_ARGUMENTS)), name)
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind"):
        function.attributes.add(attribute)
    return function


def _panels(builder: Any, shape: TileShape, types: tuple[str, str], numbers: dict[str, Any], begin: Any) -> Any:
    """The columns from `begin` on, as many at a time as a tile has; gives where those begin that are too few."""
    result, element = types
    needed = 1 if shape.masked else shape.columns

    def panel(done: Any) -> Any:
        left = builder.sub(numbers["columns"], done)
        count = builder.select(builder.icmp_unsigned("<", left, word(shape.columns)), left, word(shape.columns))
        out = builder.add(numbers["out"], builder.mul(done, word(SIZES[result])))
        b = builder.add(numbers["b"], builder.mul(done, word(SIZES[element])))
        _rows(builder, shape, types, {**numbers, "out": out, "b": b, "columns": count})
        return builder.add(done, count)

    def enough(done: Any) -> Any:
        return builder.icmp_signed("<=", builder.add(done, word(needed)), numbers["columns"])

    return while_loop(builder, begin, enough, panel)


def _rows(builder: Any, shape: TileShape, types: tuple[str, str], numbers: dict[str, Any]) -> None:
    """All rows of a panel: tiles of as many as there may be, and one of those that are left."""

    def run(rows: int, done: Any) -> None:
        out = builder.add(numbers["out"], builder.mul(done, numbers["out_row"]))
        a = builder.add(numbers["a"], builder.mul(done, numbers["a_row"]))
        tile = _tile(builder.module, shape, rows, types)
        builder.call(tile, [{**numbers, "out": out, "a": a}[name] for name in _ARGUMENTS])

    def tile(done: Any) -> Any:
        run(shape.rows, done)
        return builder.add(done, word(shape.rows))

    def enough(done: Any) -> Any:
        return builder.icmp_signed("<=", builder.add(done, word(shape.rows)), numbers["rows"])

    done = while_loop(builder, word(0), enough, tile)
    after = builder.append_basic_block()
    switch = builder.switch(builder.sub(numbers["rows"], done), after)
    for rows in range(1, shape.rows):
        block = builder.append_basic_block()
        switch.add_case(word(rows), block)
        builder.position_at_end(block)
        run(rows, done)
        builder.branch(after)
    builder.position_at_end(after)


def while_loop(builder: Any, first: Any, goes_on: Callable[[Any], Any], body: Callable[[Any], Any]) -> Any:
    """``while goes_on(i): i = body(i)``; gives the last `i`."""
    before = builder.block
    head, inside, after = (builder.append_basic_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    number = builder.phi(WORD)
    number.add_incoming(first, before)
    builder.cbranch(goes_on(number), inside, after)
    builder.position_at_end(inside)
    upcoming = body(number)
    number.add_incoming(upcoming, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return number


# A tile


def _tile(module: Any, shape: TileShape, rows: int, types: tuple[str, str]) -> Any:
    """The function of a tile of so many rows; its arguments are the kernel's."""
    name = f"{_PREFIX}.{rows}x{shape.columns}.{'.'.join(types)}"
    if name in module.globals:
        return module.globals[name]
    function = _function(module, name)
    _TileWriter(
        ir.IRBuilder(function.append_basic_block()), shape, rows, types, dict(zip(_ARGUMENTS, function.args, strict=True))
    ).write()
    return function


@frozen(eq=False)
class _TileWriter:
    """Writes the code of a tile."""

    builder: Any
    shape: TileShape
    rows: int
    types: tuple[str, str]  # of the sums in memory, and of the factors
    numbers: dict[str, Any]

    def write(self) -> None:
        builder, (result, _), numbers = self.builder, self.types, self.numbers
        vector = ir.VectorType(FLOAT, self.shape.lanes)
        sums = [[builder.alloca(vector) for _ in range(self.shape.vectors)] for _ in range(self.rows)]
        factors = builder.alloca(ir.ArrayType(ir.VectorType(FLOAT, CHUNK), self.rows))
        factors.align = 4 * CHUNK
        mask = self._lanes_before(self.shape.lanes, numbers["columns"]) if self.shape.masked else None
        for row, of_row in enumerate(sums):
            for place, total in enumerate(of_row):
                builder.store(self._load(self._column("out", result, row, place), result, self.shape.lanes, mask), total)

        def chunk(done: Any) -> Any:
            left = builder.sub(numbers["depth"], done)
            count = builder.select(builder.icmp_unsigned("<", left, word(CHUNK)), left, word(CHUNK))
            self._widen(factors, done, count)

            def step(number: Any) -> Any:
                row_of_b = builder.mul(builder.add(done, number), numbers["b_row"])
                self._add_products(sums, factors, row_of_b, number, mask)
                return builder.add(number, word(1))

            while_loop(builder, word(0), lambda number: builder.icmp_unsigned("<", number, count), step)
            return builder.add(done, count)

        while_loop(builder, word(0), lambda done: builder.icmp_unsigned("<", done, numbers["depth"]), chunk)
        for row, of_row in enumerate(sums):
            for place, total in enumerate(of_row):
                self._store(builder.load(total), self._column("out", result, row, place), result, mask)
        builder.ret_void()

    def _column(self, matrix: str, element: str, row: int, place: int) -> Any:
        """The address of a vector of a row."""
        builder = self.builder
        begin = builder.add(self.numbers[matrix], builder.mul(word(row), self.numbers[f"{matrix}_row"]))
        return builder.add(begin, word(place * self.shape.lanes * SIZES[element]))

    def _lanes_before(self, lanes: int, count: Any) -> Any:
        numbers = ir.Constant(ir.VectorType(INT, lanes), list(range(lanes)))
        return self.builder.icmp_unsigned("<", numbers, self._splat(self.builder.trunc(count, INT), lanes))

    def _splat(self, value: Any, lanes: int) -> Any:
        form = ir.VectorType(value.type, lanes)
        single = self.builder.insert_element(ir.Constant(form, ir.Undefined), value, INT(0))
        return self.builder.shuffle_vector(
            single, ir.Constant(form, ir.Undefined), ir.Constant(ir.VectorType(INT, lanes), [0] * lanes)
        )

    def _load(self, address: Any, element: str, lanes: int, mask: Any) -> Any:
        """Elements as a vector of floats; those without a mask's bit are 0."""
        builder, form = self.builder, ir.VectorType(memory_form(element), lanes)
        pointer = builder.inttoptr(address, form.as_pointer())
        if mask is None:
            value = builder.load(pointer, align=alignment(element))
        else:
            kind = ir.FunctionType(form, [pointer.type, INT, mask.type, form])
            load = self._intrinsic(f"llvm.masked.load.v{lanes}{_code(element)}.p0", kind)
            value = builder.call(load, [pointer, INT(alignment(element)), mask, ir.Constant(form, None)])
        return to_register(builder, value, element)

    def _store(self, value: Any, address: Any, element: str, mask: Any) -> None:
        builder, memory = self.builder, to_memory(self.builder, value, element)
        pointer = builder.inttoptr(address, memory.type.as_pointer())
        if mask is None:
            builder.store(memory, pointer, align=alignment(element))
            return
        kind = ir.FunctionType(ir.VoidType(), [memory.type, pointer.type, INT, mask.type])
        store = self._intrinsic(f"llvm.masked.store.v{self.shape.lanes}{_code(element)}.p0", kind)
        builder.call(store, [memory, pointer, INT(alignment(element)), mask])

    def _intrinsic(self, name: str, kind: Any) -> Any:
        return self.builder.module.globals.get(name) or ir.Function(self.builder.module, kind, name)

    def _widen(self, factors: Any, begin: Any, count: Any) -> None:
        """Put `count` of each row's factors, from `begin` on, where the sums find them."""
        builder, element = self.builder, self.types[1]
        offset = builder.mul(begin, word(SIZES[element]))
        whole, part, after = (builder.append_basic_block() for _ in range(3))
        builder.cbranch(builder.icmp_unsigned("==", count, word(CHUNK)), whole, part)
        for block, masked in ((whole, False), (part, True)):
            builder.position_at_end(block)
            mask = self._lanes_before(CHUNK, count) if masked else None
            for row in range(self.rows):
                address = builder.add(self._column("a", element, row, 0), offset)
                builder.store(self._load(address, element, CHUNK, mask), builder.gep(factors, [INT(0), INT(row)]))
            builder.branch(after)
        builder.position_at_end(after)

    def _add_products(self, sums: list[list[Any]], factors: Any, row_of_b: Any, number: Any, mask: Any) -> None:
        """One step of the depth: the row of `b`, times each row's factor of that number."""
        builder, element, lanes = self.builder, self.types[1], self.shape.lanes
        exact = ("contract",) if element == "f16" else ()
        begin = builder.add(self.numbers["b"], row_of_b)
        step = lanes * SIZES[element]
        vectors = [self._load(builder.add(begin, word(place * step)), element, lanes, mask) for place in range(self.shape.vectors)]
        first = builder.bitcast(factors, FLOAT.as_pointer())
        for row, of_row in enumerate(sums):
            pointer = builder.gep(first, [builder.add(number, word(row * CHUNK))], source_etype=FLOAT)
            factor = self._splat(builder.load(pointer, typ=FLOAT), lanes)
            for total, vector in zip(of_row, vectors, strict=True):
                product = builder.fmul(factor, vector, flags=exact)
                builder.store(builder.fadd(builder.load(total), product, flags=exact), total)


def _code(element: str) -> str:
    """How LLVM names a vector's elements in memory."""
    return "f32" if element == "f32" else f"i{8 * SIZES[element]}"
