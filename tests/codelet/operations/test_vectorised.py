"""An operation gives the same bits called from Python as inlined in a loop that LLVM runs on vectors."""

import numpy as np
import pytest
from emitted_operations import FAULTS, FUNCTIONS, SIGNATURES
from native_rig import DTYPES, run_native
from written_codelets import K, N, codelet, i32

from pypoplar.codelet.ir.typed import Apply, For, Length, Load, Local, Span, Store

BATCHES = []  # operations with the same arguments, a few at a time
for ARGUMENTS in dict.fromkeys(arguments for arguments, _ in SIGNATURES.values()):
    NAMES = [name for name, (arguments, _) in SIGNATURES.items() if arguments == ARGUMENTS]
    BATCHES += [NAMES[i : i + 8] for i in range(0, len(NAMES), 8)]


def operands(kind, count):
    """Values of a register type, special ones first."""
    random = np.random.default_rng(3)
    dtype = DTYPES[kind]
    if kind == "bool":
        return random.integers(0, 2, count).astype(bool)
    if kind in ("f32", "f16"):
        special = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            np.inf,
            -np.inf,
            np.nan,
            2.5,
            3.5,
            -0.5,
            np.finfo(dtype).max,
            np.finfo(dtype).tiny,
            65519.0,
        ]
        with np.errstate(over="ignore"):
            values = np.concatenate([special, random.standard_normal(count) * 10.0 ** random.integers(-3, 4, count)]).astype(dtype)
        return random.permutation(values)[:count]
    limits = np.iinfo(dtype)
    special = np.array([limits.min, limits.max, limits.max - 1, 0, 1, 2, 31, 7], dtype)
    values = random.integers(limits.min, limits.max, count, dtype, endpoint=True)
    return random.permutation(np.concatenate([special, values, values % 50]).astype(dtype))[:count]


@pytest.mark.parametrize("names", BATCHES, ids=lambda names: f"{names[0]}...{names[-1]}")
def test_scalar_and_vector_form_agree(names):
    arguments = SIGNATURES[names[0]][0]
    inputs = [Span(f"a{i}", kind) for i, kind in enumerate(arguments)]
    values = [Local(f"v{i}", kind) for i, kind in enumerate(arguments)]
    results = [Local(f"r{i}", SIGNATURES[name][1]) for i, name in enumerate(names)]
    outputs = [Span(f"out{i}", one.type) for i, one in enumerate(results)]
    groups = (("input", inputs), ("output", outputs))
    made = codelet(
        [f"{one.name} {access} vector {one.element}" for access, group in groups for one in group],
        Length(N, inputs[0], 0),
        For(
            K, i32(0), N, i32(1),
            (
                *(Load(value, span, K, 0) for value, span in zip(values, inputs, strict=True)),
                *(
                    one
                    for name, result, span in zip(names, results, outputs, strict=True)
                    for one in (Apply(result, name, tuple(values), 0), Store(span, K, result, 0))
                ),
            ),
            0,
        ),
    )  # fmt: skip
    count = 67
    arrays = [operands(kind, count) for kind in arguments]
    if len(arrays) == 2:
        arrays[1] = np.roll(arrays[1], 1)
        fine = np.array([not any(FAULTS[name](int(b)) for name in names if name in FAULTS) for b in arrays[1]])
        arrays = [one[fine] for one in arrays]
    fields = {one.name: array for one, array in zip(inputs, arrays, strict=True)}
    fields |= {one.name: np.zeros(arrays[0].size, DTYPES[one.element]) for one in outputs}
    outcome = run_native(made, [fields])
    assert outcome.fault is None
    for name, span in zip(names, outputs, strict=True):
        scalars = zip(*(array.tolist() for array in arrays), strict=True)
        with np.errstate(all="ignore"):
            expected = np.array([FUNCTIONS[name](*one) for one in scalars], DTYPES[span.element])
        got = outcome.fields[0][span.name]
        if got.dtype.kind == "f":
            numbers = ~np.isnan(expected)
            np.testing.assert_array_equal(numbers, ~np.isnan(got), err_msg=name)
            got, expected = got[numbers], expected[numbers]
        assert got.tobytes() == expected.tobytes(), name
