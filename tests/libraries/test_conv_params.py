"""poplin.ConvParams: sizes, canonical forms, indices, gradients, and what is refused."""

import copy

import numpy as np
import pytest
from convolution_reference import conv_params, reference_convolution
from hypothesis import given
from law_examples import examples

from pypoplar import FLOAT, HALF, INT, InvalidOption, MissingFeature, PoplarIndexError, PoplarTypeError
from pypoplar.poplin import ConvParams
from pypoplar.poplin.convolution.conv_options import ConvolutionOptions
from pypoplar.poputil.exceptions import PoplibsError


def arrays(params, seed=0):
    """Small whole numbers of the shapes of an input and of weights."""
    random = np.random.default_rng(seed)
    input = (params.batchSize, params.getNumInputChans(), *params.inputFieldShape)
    weights = (params.numConvGroups, params.outputChannelsPerConvGroup, params.inputChannelsPerConvGroup, *params.kernelShape)
    return random.integers(-4, 5, input).astype(float), random.integers(-4, 5, weights).astype(float)


@examples(60)
@given(conv_params(FLOAT))
def test_sizes_are_those_of_the_transformed_arrays(params):
    params.validate()
    out = reference_convolution(params, *arrays(params))
    assert list(out.shape) == [params.batchSize, params.getNumOutputChans(), *params.getOutputFieldShape()]


@examples(60)
@given(conv_params(FLOAT))
def test_canonical_parameters_are_another_form_of_the_same_convolution_and_have_none_themselves(params):
    canonical = params.canonicalize()
    canonical.validate()
    given = arrays(params)
    np.testing.assert_array_equal(reference_convolution(canonical, *given), reference_convolution(params, *given))
    assert canonical.canonicalize() == canonical


@examples(20)
@given(conv_params(FLOAT, dims=1))
def test_what_meets_in_an_output_is_what_moves_it(params):
    axis = params.axis(0)
    for k in range(params.kernelShape[0]):
        for i in range(params.inputFieldShape[0]):
            input, weights = np.zeros(params.inputFieldShape), np.zeros(params.kernelShape)
            input[i], weights[k] = 1, 1
            one = ConvParams(
                FLOAT,
                FLOAT,
                1,
                params.inputFieldShape,
                params.kernelShape,
                1,
                1,
                1,
                params.inputTransform,
                params.kernelTransform,
                params.outputTransform,
            )
            out = reference_convolution(one, input[None, None], weights[None, None, None])[0, 0]
            moved = [o for o in range(len(out)) if axis.input_of(o, k) == i]
            assert moved == list(np.flatnonzero(out))
            assert moved == [o for o in range(len(out)) if axis.kernel_of(o, i) == k]
            assert list(axis.outputs(k, inputs=(i, i + 1))) == moved


def test_parameters_hold_copies_and_are_compared_by_all_fields():
    shared = ConvParams.InputTransform(2)
    params = ConvParams(HALF, FLOAT, 1, [5, 5], [3, 3], 4, 8, 2, shared, shared, ConvParams.OutputTransform(2))
    shared.dilation = [9, 9]
    params.inputTransform.paddingLower[1] = 1
    assert params.kernelTransform == ConvParams.InputTransform(2)
    other = copy.deepcopy(params)
    assert (other == params, hash(other) == hash(params), other < params, other >= params) == (True, True, False, True)
    other.outputTransform.stride = [1, 2]
    assert (other == params, params < other) == (False, True)
    assert repr(params) == (
        "ConvParams(inputType=HALF, outputType=FLOAT, batchSize=1, inputFieldShape=[5, 5], kernelShape=[3, 3], "
        "inputChannelsPerConvGroup=4, outputChannelsPerConvGroup=8, numConvGroups=2, inputTransform.paddingLower=[0, 1])"
    )
    assert (params.getNumInputChans(), params.getNumOutputChans()) == (8, 16)
    assert params != 3


def test_constructors_are_those_of_poplibs():
    params = ConvParams(FLOAT, 2, [5], [3], 4, 8, 1)
    assert params == ConvParams(FLOAT, FLOAT, 2, [5], [3], 4, 8, 1)
    assert (
        ConvParams(
            dataType=FLOAT, batchSize=2, inputFieldShape=(5,), kernelShape=(3,), inputChannels=4, outputChannels=8, numConvGroups=1
        )
        == params
    )
    assert ConvParams().getNumFieldDims() == 0
    transform = ConvParams.InputTransform([1], [0], [2], [0], [1], [True])
    assert repr(transform) == ("ConvParams.InputTransform(truncationLower=[1], dilation=[2], paddingUpper=[1], flip=[True])")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda p: setattr(p, "inputType", INT), PoplibsError, "inputType is FLOAT or HALF, got INT"),
        (lambda p: setattr(p, "kernelShape", [3]), PoplibsError, "the field has 2 dimensions, [5, 6], and the kernel 1, [3]"),
        (lambda p: setattr(p.outputTransform, "stride", [1]), PoplibsError, "the stride has 1 dimensions, [1], and the field 2"),
        (lambda p: setattr(p.inputTransform, "dilation", [1, 0]), PoplibsError, "the input dilation is 1 at least, got [1, 0]"),
        (lambda p: setattr(p.outputTransform, "stride", [0, 1]), PoplibsError, "the stride is 1 at least, got [0, 1]"),
        (lambda p: setattr(p.inputTransform, "truncationLower", [6, 0]), PoplibsError,
         "6 elements are cut off in dimension 0, and the field has 5"),
        (lambda p: setattr(p.kernelTransform, "truncationUpper", [0, 3]), PoplibsError,
         "the transformed kernel has no element in dimension 1"),
        (lambda p: setattr(p, "kernelShape", [6, 3]), PoplibsError,
         "in dimension 0 the transformed input has 5 elements, fewer than the transformed kernel, which has 6"),
        (lambda p: setattr(p.outputTransform, "truncationUpper", [4, 0]), PoplibsError,
         "4 outputs are cut off in dimension 0, and the convolution has 3"),
        (lambda p: p.inputTransform.paddingLower.__setitem__(0, -1), PoplibsError, "each of paddingLower is 0 at least, got -1"),
        (lambda p: p.inputTransform.flip.__setitem__(0, 1), PoplarTypeError, "flip is a list of True and False, got [1, False]"),
    ],
)  # fmt: skip
def test_parameters_that_do_not_fit_together_are_refused(change, error, words):
    params = ConvParams(FLOAT, 1, [5, 6], [3, 3], 4, 8, 1)
    change(params)
    with pytest.raises(error) as raised:
        params.validate()
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("mistake", "error", "words"),
    [
        (lambda p: ConvParams(FLOAT, -1, [5], [3], 4, 8, 1), PoplibsError, "batchSize is 0 at least, got -1"),
        (lambda p: ConvParams(FLOAT, 1, {5}, [3], 4, 8, 1), PoplarTypeError, "a set has no order"),
        (lambda p: ConvParams(FLOAT, 1, [5], [3], 4, 8), PoplarTypeError, "numConvGroups"),
        (lambda p: setattr(p, "batchSize", 1.5), PoplarTypeError, "batchSize is a whole number, got 1.5"),
        (lambda p: setattr(p, "inputTransform", [1]), PoplarTypeError, "inputTransform is a ConvParams.InputTransform, got [1]"),
        (lambda p: setattr(p, "stride", [1]), AttributeError, "stride"),
        (lambda p: p.getOutputSize(1), PoplarIndexError, "dim is 1, and the field has 1 dimensions"),
        (lambda p: ConvolutionOptions.read("c", {"partialType": "half"}), InvalidOption, "partialsType"),
        (lambda p: ConvolutionOptions.read("c", {"availableMemoryProportion": "nan"}), InvalidOption, "from 0 to 1, got nan"),
        (lambda p: ConvolutionOptions.read("c", {"insertTransformsCycleCountProgs": True}), MissingFeature, "does not keep"),
    ],
)
def test_mistakes_around_parameters_and_options_are_told(mistake, error, words):
    with pytest.raises(error) as raised:
        mistake(ConvParams(FLOAT, 1, [5], [3], 4, 8, 1))
    assert words in str(raised.value)


def test_options_are_read_with_their_defaults():
    assert ConvolutionOptions.read("c", None) == ConvolutionOptions(inter_tile_partials_type=FLOAT)
    given = {
        "partialsType": "half",
        "availableMemoryProportion": 0.25,
        "pass": "FC_TRAINING_FWD",
        "enableMultiStageReduce": "false",
    }
    options = ConvolutionOptions.read("c", given)
    assert options == ConvolutionOptions(0.25, HALF, HALF, "FC_TRAINING_FWD", multi_stage_reduce=False)
    assert options.for_weight_update().pass_ == "FC_TRAINING_WU"
