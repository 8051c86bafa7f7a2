"""Which inputs, elements of the kernel and outputs of a convolution meet: PopLibs' ConvUtil."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from pypoplar.errors import PoplarIndexError, PoplarTypeError
from pypoplar.poplin.convolution.calls.conv_call import check_params
from pypoplar.poplin.convolution.conv_axis import ConvAxis, dilated_size
from pypoplar.poplin.convolution.conv_params import ConvParams
from pypoplar.poputil.arguments import whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import overloaded
from pypoplar.tracebacks import public

Range = tuple[int, int]  # [begin, end)


@public
def getDilatedSize(size: int, dilation: int) -> int:
    """The extent of elements with zeros between neighbours.

    Parameters
    ----------
    size:
        How many elements there are.
    dilation:
        One more than the zeros between two of them.

    Returns
    -------
    int
        Elements and zeros together; 0 for no elements.

    Raises
    ------
    PoplibsError
        For a dilation below 1.
    """
    call = "poplin.getDilatedSize"
    return dilated_size(whole_number(call, "size", size), whole_number(call, "dilation", dilation, 1))


@public
def getInputIndex(dim: int, outputIndex: int, kernelIndex: int, params: ConvParams) -> int | None:
    """The index of the input that an element of the kernel is multiplied with for an output.

    Parameters
    ----------
    dim:
        The dimension of the field.
    outputIndex:
        The index of the output.
    kernelIndex:
        The index of the element of the kernel.
    params:
        The parameters of the convolution.

    Returns
    -------
    int | None
        None if there is no such input, as in padding.

    Raises
    ------
    PoplarIndexError
        For a dimension or an index that there is not.
    """
    call = "poplin.getInputIndex"
    axis = _axis(call, params, dim)
    output = _index(call, "outputIndex", outputIndex, axis.output_size)
    return axis.input_of(output, _index(call, "kernelIndex", kernelIndex, axis.kernel.size))


@public
def getKernelIndex(dim: int, outputIndex: int, inputIndex: int, params: ConvParams) -> int | None:
    """The index of the element of the kernel that an input is multiplied with for an output.

    Parameters
    ----------
    dim:
        The dimension of the field.
    outputIndex:
        The index of the output.
    inputIndex:
        The index of the input.
    params:
        The parameters of the convolution.

    Returns
    -------
    int | None
        None if the input has no part in the output.

    Raises
    ------
    PoplarIndexError
        For a dimension or an index that there is not.
    """
    call = "poplin.getKernelIndex"
    axis = _axis(call, params, dim)
    output = _index(call, "outputIndex", outputIndex, axis.output_size)
    return axis.kernel_of(output, _index(call, "inputIndex", inputIndex, axis.input.size))


@public
def getOutputRangeForKernelIndex(dim: int, outputRange: Range, kernelIndex: int, params: ConvParams) -> Range:
    """Of a range of outputs the least range that has all those in which an element of the kernel has a part.

    Parameters
    ----------
    dim:
        The dimension of the field.
    outputRange:
        Begin and end of the outputs.
    kernelIndex:
        The index of the element of the kernel.
    params:
        The parameters of the convolution.

    Returns
    -------
    tuple[int, int]
        Begin and end; (0, 0) if there are none.

    Raises
    ------
    PoplarIndexError
        For a dimension, an index or a range that there is not.
    """
    call = "poplin.getOutputRangeForKernelIndex"
    axis = _axis(call, params, dim)
    element = _index(call, "kernelIndex", kernelIndex, axis.kernel.size)
    return axis.output_range(_range(call, "outputRange", outputRange, axis.output_size), (element, element + 1))


@public
def getOutputRangeForInputIndex(dim: int, outputRange: Range, inputIndex: int, params: ConvParams) -> Range:
    """Of a range of outputs the least range that has all those in which an input has a part.

    Parameters
    ----------
    dim:
        The dimension of the field.
    outputRange:
        Begin and end of the outputs.
    inputIndex:
        The index of the input.
    params:
        The parameters of the convolution.

    Returns
    -------
    tuple[int, int]
        Begin and end; (0, 0) if there are none.

    Raises
    ------
    PoplarIndexError
        For a dimension, an index or a range that there is not.
    """
    call = "poplin.getOutputRangeForInputIndex"
    axis = _axis(call, params, dim)
    element = _index(call, "inputIndex", inputIndex, axis.input.size)
    return axis.output_range(_range(call, "outputRange", outputRange, axis.output_size), None, (element, element + 1))


@public
def getOutputRangeForKernelRange(dim: int, outputRange: Range, kernelIndexRange: Range, params: ConvParams) -> Range:
    """Of a range of outputs the least range that has all those in which some elements of the kernel have a part.

    Parameters
    ----------
    dim:
        The dimension of the field.
    outputRange:
        Begin and end of the outputs.
    kernelIndexRange:
        Begin and end of the elements of the kernel.
    params:
        The parameters of the convolution.

    Returns
    -------
    tuple[int, int]
        Begin and end; (0, 0) if there are none.

    Raises
    ------
    PoplarIndexError
        For a dimension or a range that there is not.
    """
    call = "poplin.getOutputRangeForKernelRange"
    axis = _axis(call, params, dim)
    kernels = _range(call, "kernelIndexRange", kernelIndexRange, axis.kernel.size)
    return axis.output_range(_range(call, "outputRange", outputRange, axis.output_size), kernels)


@public
def getOutputRangeForInputRange(dim: int, outputRange: Range, inputRange: Range, params: ConvParams) -> Range:
    """Of a range of outputs the least range that has all those in which some inputs have a part.

    Parameters
    ----------
    dim:
        The dimension of the field.
    outputRange:
        Begin and end of the outputs.
    inputRange:
        Begin and end of the inputs.
    params:
        The parameters of the convolution.

    Returns
    -------
    tuple[int, int]
        Begin and end; (0, 0) if there are none.

    Raises
    ------
    PoplarIndexError
        For a dimension or a range that there is not.
    """
    call = "poplin.getOutputRangeForInputRange"
    axis = _axis(call, params, dim)
    inputs = _range(call, "inputRange", inputRange, axis.input.size)
    return axis.output_range(_range(call, "outputRange", outputRange, axis.output_size), None, inputs)


@overload
def getInputRange(dim: int, outputRange: Range, kernelIndex: int, params: ConvParams) -> Range: ...
@overload
def getInputRange(dim: int, outputRange: Range, kernelIndexRange: Range, params: ConvParams) -> Range: ...
@overload
def getInputRange(dim: int, outputIndex: int, kernelIndexRange: Range, params: ConvParams) -> Range: ...
@overload
def getInputRange(dim: int, outputIndex: int, params: ConvParams) -> Range: ...
@overload
def getInputRange(dim: int, outputRange: Range, params: ConvParams) -> Range: ...
@overloaded("poplin.getInputRange")
def getInputRange(
    dim: int,
    params: ConvParams,
    outputRange: Range | None = None,
    outputIndex: int | None = None,
    kernelIndex: int | None = None,
    kernelIndexRange: Range | None = None,
) -> Range:
    """The least range of inputs that some outputs need for all or some elements of the kernel.

    Parameters
    ----------
    dim:
        The dimension of the field.
    params:
        The parameters of the convolution.
    outputRange:
        Begin and end of the outputs.
    outputIndex:
        One output instead.
    kernelIndex:
        One element of the kernel; without it all of them.
    kernelIndexRange:
        Begin and end of elements of the kernel instead.

    Returns
    -------
    tuple[int, int]
        Begin and end; (0, 0) if there are none.

    Raises
    ------
    PoplarIndexError
        For a dimension, an index or a range that there is not.
    """
    call = "poplin.getInputRange"
    axis = _axis(call, params, dim)
    outputs = _one_or_range(call, "output", outputIndex, outputRange, axis.output_size)
    if kernelIndex is None and kernelIndexRange is None:
        return axis.input_range(outputs)
    return axis.input_range(outputs, _one_or_range(call, "kernel", kernelIndex, kernelIndexRange, axis.kernel.size))


@overload
def getKernelRange(dim: int, outputRange: Range, inputIndex: int, params: ConvParams) -> Range: ...
@overload
def getKernelRange(dim: int, outputRange: Range, inputRange: Range, params: ConvParams) -> Range: ...
@overloaded("poplin.getKernelRange")
def getKernelRange(
    dim: int, outputRange: Range, params: ConvParams, inputIndex: int | None = None, inputRange: Range | None = None
) -> Range:
    """The least range of elements of the kernel that a range of outputs needs for some inputs.

    Parameters
    ----------
    dim:
        The dimension of the field.
    outputRange:
        Begin and end of the outputs.
    params:
        The parameters of the convolution.
    inputIndex:
        One input.
    inputRange:
        Begin and end of inputs instead.

    Returns
    -------
    tuple[int, int]
        Begin and end; (0, 0) if there are none.

    Raises
    ------
    PoplarIndexError
        For a dimension, an index or a range that there is not.
    """
    call = "poplin.getKernelRange"
    axis = _axis(call, params, dim)
    outputs = _range(call, "outputRange", outputRange, axis.output_size)
    return axis.kernel_range(outputs, _one_or_range(call, "input", inputIndex, inputRange, axis.input.size))


def _axis(call: str, params: ConvParams, dim: int) -> ConvAxis:
    check_params(call, params)
    number = whole_number(call, "dim", dim)
    if number >= params.getNumFieldDims():
        raise PoplarIndexError(f"{call}: dim is {number}, and the field has {params.getNumFieldDims()} dimensions")
    return params.axis(number)


def _index(call: str, name: str, value: Any, size: int) -> int:
    index = whole_number(call, name, value)
    if index >= size:
        raise PoplarIndexError(f"{call}: {name} is {index}, and there are {size}")
    return index


def _range(call: str, name: str, value: Any, size: int) -> Range:
    if not isinstance(value, tuple | list | np.ndarray) or len(value) != 2:
        raise PoplarTypeError(f"{call}: {name} is a pair of a begin and an end, got {value!r}")
    begin, end = (whole_number(call, f"each of {name}", place) for place in value)
    if begin > end:
        raise PoplibsError(f"{call}: {name} begins before it ends, got [{begin}, {end})")
    if end > size:
        raise PoplarIndexError(f"{call}: {name} is [{begin}, {end}), and there are {size}")
    return begin, end


def _one_or_range(call: str, name: str, index: int | None, range: Range | None, size: int) -> Range:
    if index is None:
        return _range(call, f"{name}Range" if name != "kernel" else "kernelIndexRange", range, size)
    one = _index(call, f"{name}Index", index, size)
    return one, one + 1
