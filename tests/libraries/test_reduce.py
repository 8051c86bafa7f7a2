"""popops.reduce, reduceWithOutput and reduceMany: every operation and type over shapes, mappings and tile counts, against NumPy."""

import numpy as np
import pytest
from library_programs import new_graph, run, variable

from pypoplar import BOOL, FLOAT, UNSIGNED_INT, popops
from pypoplar.errors import PoplarIndexError
from pypoplar.popops import Operation
from pypoplar.program import Sequence

NUMPY = {
    Operation.ADD: np.add.reduce,
    Operation.MUL: np.multiply.reduce,
    Operation.MIN: np.minimum.reduce,
    Operation.MAX: np.maximum.reduce,
    Operation.LOGICAL_AND: np.logical_and.reduce,
    Operation.LOGICAL_OR: np.logical_or.reduce,
    Operation.SQUARE_ADD: lambda values, axis: np.square(values).sum(axis=axis),
    Operation.LOG_ADD: lambda values, axis: np.log(np.exp(values).sum(axis=axis)),
}
TYPES = [(operation, type) for operation, types in popops.reduction.reduce_params.TYPES.items() for type in types]
SHAPES = [
    ([1000], [0]),
    ([13, 17], [0]),
    ([13, 17], [1]),
    ([4, 5, 6, 7], [0, 2]),
    ([4, 5, 6, 7], [1, 3]),
    ([300, 3], [1]),
    ([5, 6], []),
]


def values_for(operation, type, shape, seed=0):
    random = np.random.default_rng(seed)
    if type is BOOL:
        return random.random(shape) < (0.9 if operation is Operation.LOGICAL_AND else 0.1)
    if not type.is_floating:
        return random.integers(0 if type is UNSIGNED_INT else -4, 5, shape).astype(type.dtype)
    spread = 1 + 0.01 * random.standard_normal(shape) if operation is Operation.MUL else random.standard_normal(shape)
    return spread.astype(type.dtype)


def expected(operation, values, dims):
    exact = values.astype(np.float64) if values.dtype.kind == "f" else values
    with np.errstate(over="ignore"):
        return NUMPY[operation](exact, axis=tuple(dims)).astype(values.dtype)


def close(result, wanted, operation=Operation.ADD):
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(result, wanted)
    else:
        tolerance = 2e-3 if wanted.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance * 5)


@pytest.mark.parametrize(("operation", "type"), TYPES)
def test_every_operation_reduces_every_type_that_it_takes(operation, type, mode):
    graph, device = new_graph(4)
    prog, given, results, wanted = Sequence(), {}, {}, {}
    for number, (shape, dims) in enumerate(SHAPES if mode == "native" else SHAPES[1:5]):
        name = str(number)
        given[name] = values_for(operation, type, shape, number)
        results[name] = popops.reduce(graph, variable(graph, type, shape, name), dims, operation, prog)
        wanted[name] = expected(operation, given[name], dims)
    read, _ = run(graph, device, prog, given, results, mode)
    for name, result in read.items():
        assert result.shape == wanted[name].shape
        close(result, wanted[name])


def test_it_names_the_dimension_that_is_not_there():
    graph, _ = new_graph(4)
    x = variable(graph, FLOAT, [3, 4], "x")
    with pytest.raises(PoplarIndexError, match=r"popops.reduce: a dimension is 2, and <Tensor 'x' FLOAT .3, 4.> has 2 dimensions"):
        popops.reduce(graph, x, [2], Operation.ADD, Sequence())
    assert graph.numVertices() == 0
