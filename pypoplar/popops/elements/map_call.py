"""A call of map: trees of operations over the elements of tensors, as new tensors, in place, or into given ones."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from enum import Enum

from attrs import evolve, field, frozen

from pypoplar.braces import TENSORS, ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.popops import expr
from pypoplar.popops.elements.element_operations import OPERATIONS
from pypoplar.popops.elements.element_output import first_tile, output_like
from pypoplar.popops.elements.element_vertices import ElementLayout
from pypoplar.popops.elements.map_codelet import MapCodelet, codelet_class
from pypoplar.popops.elements.map_types import TypedTrees
from pypoplar.popops.elements.repeated_operands import comes_again
from pypoplar.popops.expr import BinaryOpType, Cast, Const, Expr, OperationOf, PlaceHolder, TernaryOpType, UnaryOpType, walk
from pypoplar.poputil.arguments import check_call, check_codelet, check_compute_set, check_operands, check_tensor, check_writeable
from pypoplar.poputil.broadcast import broadcast_shape, broadcastToMatch
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.copies import apart, shares_elements
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Execute, Sequence
from pypoplar.types import ElementType

MAP_OPTIONS: dict[str, Kind] = {
    "enableGenerateCodelet": bool,
    "forceGenerateCodelet": bool,
    "enableVectorBroadcastOptimisations": bool,
    "enableExpressionOptimizations": bool,
}


def read_fusing(name: str, options: Mapping[str, object] | None) -> bool:
    """Whether the options of a call have its trees become one codelet each."""
    chosen = read_options(name, options, MAP_OPTIONS)
    return bool(chosen.get("enableGenerateCodelet", True) or chosen.get("forceGenerateCodelet", False))


@frozen(eq=False)
class MapCall:
    """A call of map whose arguments are checked."""

    name: str
    graph: Graph
    trees: list[Expr]
    tensors: list[Tensor]
    prog: Sequence
    debug: str
    fuses: bool
    shape: list[int]
    typed: TypedTrees
    always_nearest: bool = False  # halves are never rounded at random

    @staticmethod
    def read(
        name: str,
        graph: Graph,
        expression: object,
        ts: SequenceOf[Tensor],
        prog: Sequence,
        debugContext: str | None,
        options: Mapping[str, object] | None,
    ) -> MapCall:
        """A call with arguments as a program gives them, which are checked."""
        check_call(name, graph, prog, debugContext)
        fuses = read_fusing(name, options)
        trees, tensors = _trees(name, expression), _tensors(name, ts)
        debug = below(debugContext, name.removeprefix("popops."))
        call = MapCall.of(name, graph, trees, tensors, prog, debug, fuses)
        check_operands(name, graph, *tensors)
        for step in call.typed.operations:
            if step.operation and step.worked_type in step.operation.in_file:
                check_codelet(name, graph, templateVertex("popops::BinaryOp1D", step.operation.name, step.worked_type))
        return call

    @staticmethod
    def of(
        name: str, graph: Graph, trees: list[Expr], tensors: list[Tensor], prog: Sequence, debug: str, fuses: bool = True
    ) -> MapCall:
        """A call with arguments of the right kinds; shapes and types that do not go together are refused."""
        return MapCall(name, graph, trees, tensors, prog, debug, fuses, common_shape(name, tensors), _typed(name, trees, tensors))

    def plain(self) -> list[Tensor]:
        """The results as new tensors, each mapped like one of the operands."""
        outs = self.outputs(self.typed, self.tensors)
        self._compute(outs)
        return outs

    def in_place(self) -> None:
        """The results in the places of the first tensors."""
        if len(self.trees) > len(self.tensors):
            raise PoplibsError(f"{self.name}: {len(self.trees)} expressions replace as many tensors, got {len(self.tensors)}")
        targets = self.tensors[: len(self.trees)]
        self._check_fit(targets)
        self._compute(targets, len(targets))

    def into(self, *outs: Tensor) -> None:
        """The results in given tensors."""
        if len(outs) != len(self.trees):
            raise PoplibsError(f"{self.name}: {len(self.trees)} expressions have as many results, got {len(outs)} tensors for them")
        self._check_fit(list(outs))
        self._compute(list(outs))

    def into_set(self, cs: ComputeSet, out: Tensor) -> None:
        """The result in a given tensor, by vertices in a compute set that there is; nothing is copied first."""
        self._check_fit([out])
        check_compute_set(self.name, self.graph, cs)
        for tensor in self.tensors:
            if shares_elements(self.graph, tensor, out):
                raise PoplibsError(f"{self.name}: {tensor!r} has elements of {out!r}, which is written in the same compute set")
        self._vertices(cs, self.typed, self.tensors, [out], 0)

    def _check_fit(self, outs: list[Tensor]) -> None:
        """`PoplibsError` unless each result can be written to its tensor, and no two to one element."""
        for out, result in zip(outs, self.typed.results, strict=True):
            check_result(self.name, out, self.shape, result.type)
        check_operands(self.name, self.graph, *outs)
        for place, out in enumerate(outs):
            for other in outs[:place]:
                if shares_elements(self.graph, out, other):
                    raise PoplibsError(f"{self.name} cannot write two results to one element: {other!r} and {out!r} share some")

    def _compute(self, outs: list[Tensor], in_place: int = 0) -> None:
        """Extend the program by what computes the trees into `outs`; the first of them replace tensors."""
        if self.fuses or builtins.all(_operations(tree) <= 1 for tree in self.trees):
            self.fused(*self._narrow_parts_first(), outs, in_place)
            return
        values = _Unfused(self, {})
        if len(self.trees) == 1:
            values.compute(self.trees[0], outs[0])
            return
        results = [values.result(tree) for tree in self.trees]  # before any of them replaces what the others read
        for result, out in zip(results, outs, strict=True):
            self.prog.add(Copy(broadcastToMatch(result, self.shape), out, f"{self.debug}/copy"))

    def outputs(self, typed: TypedTrees, tensors: list[Tensor]) -> list[Tensor]:
        """New tensors for the results of trees over tensors; without any of one element, on the first tile of the call's."""
        if tensors:
            shape = common_shape(self.name, tensors)
            read = [tensors[number - 1] for number in sorted(typed.read)]  # what nothing is read of does not decide
            wide = [broadcastToMatch(tensor, shape) for tensor in read or tensors]
            return [output_like(self.graph, wide, result.type, self.debug) for result in typed.results]
        tile = first_tile(self.graph, self.tensors[0])
        outs = [self.graph.addVariable(result.type, [], self.debug) for result in typed.results]
        for out in outs:
            self.graph.setTileMapping(out, tile)
        return outs

    def _narrow_parts_first(self) -> tuple[TypedTrees, list[Tensor]]:
        """The trees without the parts that have fewer elements than the result, and more than one, and tensors with their values.

        Computed with the whole, such a part would be computed again for each element that it is broadcast to. So would a
        tree be that has fewer elements than others of its call.
        """
        narrowed = _Narrowed(self, self.tensors.copy())
        trees = [narrowed.without(tree, alone=len(self.trees) == 1) for tree in self.trees]
        if len(narrowed.tensors) == len(self.tensors):
            return self.typed, self.tensors
        return _typed(self.name, trees, narrowed.tensors), narrowed.tensors

    def part(self, tree: Expr, tensors: list[Tensor]) -> Tensor:
        """The value of a part of the trees over tensors, computed in a compute set of its own."""
        typed = _typed(self.name, [tree], tensors)
        (out,) = self.outputs(typed, tensors)
        self.fused(typed, tensors, [out], 0)
        return out

    def fused(self, typed: TypedTrees, tensors: list[Tensor], outs: list[Tensor], in_place: int) -> None:
        """One compute set that computes trees; what it reads of the results' elements, but in their places, is copied before."""
        copies = dict(enumerate(tensors, 1))
        for number in typed.read:
            for out in outs if number > in_place else ():
                copies[number] = apart(self.graph, copies[number], out, self.prog, f"{self.debug}/copy")
        self.prog.add(Execute(self._vertices(self.debug, typed, list(copies.values()), outs, in_place)))

    def _vertices(
        self, cs: ComputeSet | str, typed: TypedTrees, tensors: list[Tensor], outs: list[Tensor], in_place: int
    ) -> ComputeSet:
        """The compute set with a vertex of the trees' codelet on each tile."""
        elements = outs[0].numElements()
        read = sorted(number for number in typed.read if number > in_place)
        single = frozenset(number for number in read if tensors[number - 1].numElements() == 1 != elements)
        codelet = MapCodelet(typed, single, in_place, self.always_nearest)
        fields = {codelet.result(number): out for number, out in enumerate(outs)}
        for number in read:
            tensor = tensors[number - 1]
            fields[codelet.field(number)] = tensor if number in single else broadcastToMatch(tensor, outs[0].shape())
        layout = ElementLayout.of(self.graph, codelet.result(0), fields)
        names = {codelet.field(number): number for number in read if number not in single}
        repeated = {
            name: number
            for name, number in names.items()
            if comes_again(self.graph.getTarget(), layout.views[name], layout.regions)
        }
        codelet = evolve(codelet, repeated=frozenset(repeated.values()))
        vertex = _codelet_in_a_file(codelet) or codelet_class(codelet)
        made = cs if isinstance(cs, ComputeSet) else self.graph.addComputeSet(cs)
        layout.add_vertices(self.graph, made, vertex, repeated)
        return made


def check_result(call: str, out: Tensor, shape: list[int], type: ElementType) -> None:
    """`PoplibsError` unless a result of this shape and type can be written to `out`."""
    if out.shape() != shape or out.elementType() is not type:
        raise PoplibsError(f"{call} gives {type!r} {shape}, which does not fit into {out!r}")
    check_writeable(call, out)


def _codelet_in_a_file(codelet: MapCodelet) -> str | None:
    """The name of the vertex type for an operation on two tensors that popops' codelet file has."""
    steps = codelet.trees.steps
    row = steps[-1].operation if steps else None
    pair = len(steps) == 3 and [steps[operand.step].placeholder for operand in steps[-1].operands] == [1, 2]
    if not pair or row is None or steps[-1].type not in row.in_file:
        return None
    if codelet.repeated or codelet.single - {2} or len(codelet.trees.results) > 1:
        return None
    return templateVertex("popops::BinaryOp1DInPlace" if codelet.in_place else "popops::BinaryOp1D", row.name, steps[-1].type)


@frozen(eq=False)
class _Narrowed:
    """Trees whose narrow parts are computed by calls of their own, and the tensors that they are mapped over then."""

    call: MapCall
    tensors: list[Tensor]
    values: dict[int, Expr] = field(factory=dict)  # by the id of the expression: what stands for it

    def without(self, tree: Expr, alone: bool) -> Expr:
        """The tree with placeholders for its narrow parts; it may be one itself unless it is alone."""
        shapes: dict[int, list[int]] = {}
        whole = math.prod(self.call.shape)
        for node in walk(tree):
            shape = self.tensors[node.number - 1].shape() if isinstance(node, PlaceHolder) else []
            for part in node.parts:
                shape = broadcast_shape(shape, shapes[id(part)]) or shape
            shapes[id(node)] = shape
            if id(node) in self.values:
                continue
            parts = tuple(self._part(part, math.prod(shapes[id(part)]), whole) for part in node.parts)
            same = builtins.all(new is old for new, old in zip(parts, node.parts, strict=True))
            self.values[id(node)] = node if same else _with_operands(node, parts)
        return self.values[id(tree)] if alone else self._part(tree, math.prod(shapes[id(tree)]), whole)

    def _part(self, part: Expr, elements: int, whole: int) -> Expr:
        """What stands for a part: itself, or a placeholder for its value."""
        inner = self.values[id(part)]
        if not inner.parts or elements in (0, 1, whole):
            return inner
        used = sorted({node.number for node in walk(inner) if isinstance(node, PlaceHolder)})
        numbers = {number: PlaceHolder(place + 1) for place, number in enumerate(used)}
        own = _renumbered(inner, numbers)
        self.tensors.append(self.call.part(own, [self.tensors[number - 1] for number in used]))
        self.values[id(part)] = PlaceHolder(len(self.tensors))
        return self.values[id(part)]


def _renumbered(tree: Expr, numbers: Mapping[int, PlaceHolder]) -> Expr:
    """A tree with other placeholders."""
    values: dict[int, Expr] = {}
    for node in walk(tree):
        if isinstance(node, PlaceHolder):
            values[id(node)] = numbers[node.number]
        else:
            values[id(node)] = _with_operands(node, tuple(values[id(part)] for part in node.parts)) if node.parts else node
    return values[id(tree)]


@frozen(eq=False)
class _Unfused:
    """The expressions of trees, computed one operation after the other, each in a compute set of its own."""

    call: MapCall
    values: dict[int, Tensor]  # by the id of the expression

    def compute(self, tree: Expr, out: Tensor) -> None:
        for node in walk(tree):
            if node is not tree and not isinstance(node, Const | PlaceHolder) and id(node) not in self.values:
                self.values[id(node)] = self._value(node, None)
        self._value(tree, out)

    def result(self, tree: Expr) -> Tensor:
        """The value of a tree in a tensor that nothing else has."""
        for node in walk(tree):
            if not isinstance(node, Const | PlaceHolder) and id(node) not in self.values:
                self.values[id(node)] = self._value(node, None)
        return self.values[id(tree)] if id(tree) in self.values else self._value(tree, None)

    def _value(self, node: Expr, out: Tensor | None) -> Tensor:
        """The value of an operation whose operands are computed; in place where `out` is one of them."""
        given = [self._tensor(part) for part in node.parts or (node,)]
        tensors = [tensor for tensor in given if tensor is not None]
        in_place = out is not None and builtins.any(tensor is out for tensor in tensors)
        if in_place:
            tensors = [tensor for tensor in tensors if tensor is out][:1] + [tensor for tensor in tensors if tensor is not out]
        numbers = {id(tensor): PlaceHolder(place + 1) for place, tensor in enumerate(tensors)}
        parts = zip(node.parts or (node,), given, strict=True)
        single = _with_operands(node, tuple(part if tensor is None else numbers[id(tensor)] for part, tensor in parts))
        if out is None:
            return self.call.part(single, tensors)
        self.call.fused(_typed(self.call.name, [single], tensors), tensors, [out], int(in_place))
        return out

    def _tensor(self, part: Expr) -> Tensor | None:
        """What an operand holds; None of a constant."""
        if isinstance(part, Const):
            return None
        return self.call.tensors[part.number - 1] if isinstance(part, PlaceHolder) else self.values[id(part)]


def _typed(name: str, trees: list[Expr], tensors: list[Tensor]) -> TypedTrees:
    return TypedTrees.of(name, trees, [tensor.elementType() for tensor in tensors])


def _with_operands(node: Expr, operands: tuple[Expr, ...]) -> Expr:
    match node:
        case OperationOf(operation=row):
            return OperationOf(row, operands)
        case Cast(type=type):
            return Cast(operands[0], type)
    return operands[0]


def generated_text(name: str, expression: object, ts: SequenceOf[Tensor], options: Mapping[str, object] | None) -> str:
    """The text of the codelet that a call of map over tensors would make of a tree."""
    read_fusing(name, options)
    trees, tensors = _trees(name, expression), _tensors(name, ts)
    elements = math.prod(common_shape(name, tensors))
    single = frozenset(number for number, tensor in enumerate(tensors, 1) if tensor.numElements() == 1 != elements)
    typed = _typed(name, trees, tensors)
    return MapCodelet(typed, single & typed.read, 0).text


def _trees(name: str, expression: object) -> list[Expr]:
    """The trees of a call, one or several."""
    ordered(expression, f"the expressions of {name}", "[_1 + _2, _1 - _2]")
    trees = [_tree(name, tree) for tree in (expression if isinstance(expression, list | tuple) else [expression])]
    if not trees:
        raise PoplibsError(f"{name} needs an expression and a tensor, got 0 expressions")
    return trees


def _tensors(name: str, ts: SequenceOf[Tensor]) -> list[Tensor]:
    """The tensors of a call."""
    given: object = ordered(ts, f"the tensors of {name}", TENSORS)
    if isinstance(given, Tensor | str) or not isinstance(given, Iterable):
        raise PoplarTypeError(f"{name}: ts is a list of tensors, got {given!r}")
    tensors: list[Tensor] = list(given)
    for tensor in tensors:
        check_tensor(name, tensor)
    if not tensors:
        raise PoplibsError(f"{name} needs an expression and a tensor, got 0 tensors")
    return tensors


def _tree(name: str, given: object) -> Expr:
    """A tree; the type of an operation stands for the operation of the first tensors."""
    if isinstance(given, Enum) and isinstance(given, UnaryOpType | BinaryOpType | TernaryOpType):
        return expr.operation(given.value, *(PlaceHolder(number + 1) for number in range(OPERATIONS[given.value].operands)))
    if not isinstance(given, Expr):
        raise PoplibsError(f"{name} takes a tree of popops.expr, such as _1 + _2, or an operation's type, got {given!r}")
    return given


def _operations(tree: Expr) -> int:
    return builtins.sum(not isinstance(node, Const | PlaceHolder) for node in walk(tree))


def common_shape(name: str, tensors: list[Tensor]) -> list[int]:
    """The shape that tensors are broadcast to; `PoplibsError` where there is none."""
    shape = tensors[0].shape()
    for tensor in tensors[1:]:
        common = broadcast_shape(shape, tensor.shape())
        if common is None:
            raise PoplibsError(f"{name} cannot broadcast {tensors[0]!r} and {tensor!r} to a common shape")
        shape = common
    return shape
