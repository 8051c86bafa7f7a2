"""`ConvParams`: what a convolution computes."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import total_ordering
from typing import Any, ClassVar, TypeAlias, overload

import numpy as np
from attrs import define, field, frozen

from pypoplar.braces import ordered
from pypoplar.errors import PoplarIndexError, PoplarTypeError
from pypoplar.poplin.convolution.conv_axis import ConvAxis, FieldAxis, OutputAxis
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import overloaded
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, ElementType

NUMBERS = ("truncationLower", "truncationUpper", "dilation", "stride", "paddingLower", "paddingUpper")
TRANSFORMS = (*NUMBERS, "flip")
NAMES = {"truncationLower": "truncation (lower)", "truncationUpper": "truncation (upper)"}
NAMES |= {"paddingLower": "padding (lower)", "paddingUpper": "padding (upper)"}


def _numbers(values: object, name: str) -> list[int]:
    """A list of whole numbers, as its own."""
    ordered(values, name)
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise PoplarTypeError(f"ConvParams: {name} is a list of whole numbers, got {values!r}")
    return [_number(value, f"each of {name}") for value in values]


def _number(value: Any, name: str) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise PoplarTypeError(f"ConvParams: {name} is a whole number, got {value!r}") from None
    if number < 0:
        raise PoplibsError(f"ConvParams: {name} is 0 at least, got {number}")
    return number


def _flags(values: object, name: str) -> list[bool]:
    ordered(values, name, "[True, False]")
    flags = list(values) if isinstance(values, Iterable) else []
    if not isinstance(values, Iterable) or not all(isinstance(flag, bool | np.bool_) for flag in flags):
        raise PoplarTypeError(f"ConvParams: {name} is a list of True and False, got {values!r}")
    return [bool(flag) for flag in flags]


def _converted(instance: Any, attribute: Any, value: Any) -> Any:
    """What is set as a field, if it is of the field's kind."""
    name = str(attribute.name)
    if name == "flip":
        return _flags(value, name)
    if name in NUMBERS or name.endswith("Shape"):
        return _numbers(value, name)
    if name.endswith("Type"):
        if not isinstance(value, ElementType | None):
            raise PoplarTypeError(f"ConvParams: {name} is an element type, FLOAT or HALF, got {value!r}")
        return value
    if name.endswith("Transform"):
        kind = WindowChange if name == "outputTransform" else FieldChange
        if not isinstance(value, kind):
            raise PoplarTypeError(f"ConvParams: {name} is a {kind.__qualname__}, got {value!r}")
        return kind(*(getattr(value, part) for part in value.fields))  # a copy, as in C++
    return _number(value, name)


@total_ordering
class _Compared:
    """Equality, order and hash by all fields."""

    __slots__ = ()
    fields: ClassVar[tuple[str, ...]]

    def key(self) -> tuple[Any, ...]:
        """All fields as values that can be a key of a dict and have an order."""
        return tuple(_comparable(getattr(self, name)) for name in self.fields)

    def __eq__(self, other: object) -> bool:
        return self.key() == other.key() if isinstance(other, type(self)) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self.key() < other.key() if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({', '.join(_fields_that_matter(self))})"


def _fields_that_matter(what: _Compared) -> list[str]:
    """Fields with their values, but transforms that do nothing."""
    words = []
    for name in what.fields:
        value = getattr(what, name)
        if isinstance(value, _Compared):
            words += [f"{name}.{part}" for part in _fields_that_matter(value)]
        elif name not in TRANSFORMS or any(number != (name in ("dilation", "stride")) for number in value):
            words.append(f"{name}={value!r}")
    return words


def _comparable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, ElementType | None):
        return "" if value is None else value.spelling
    return value.key() if isinstance(value, _Compared) else value


@public
@define(init=False, eq=False, repr=False, on_setattr=_converted)
class FieldChange(_Compared):
    """`ConvParams.InputTransform`: what is done to the field of the input, or of the kernel, before they are convolved.

    In each dimension elements are cut off, then zeros are put between neighbours, then at the ends, then the order is reversed.
    ``InputTransform(size)`` does nothing to `size` dimensions.

    Attributes
    ----------
    truncationLower, truncationUpper:
        How many elements are cut off at the lower and the upper end.
    dilation:
        One more than the zeros between neighbours, 1 at least.
    paddingLower, paddingUpper:
        How many zeros are put at the lower and the upper end.
    flip:
        Whether the order is reversed.
    """

    fields = ("truncationLower", "truncationUpper", "dilation", "paddingLower", "paddingUpper", "flip")

    truncationLower: list[int]
    truncationUpper: list[int]
    dilation: list[int]
    paddingLower: list[int]
    paddingUpper: list[int]
    flip: list[bool]

    @overload
    def __init__(self) -> None: ...
    @overload
    def __init__(self, size: int) -> None: ...
    @overload
    def __init__(
        self,
        truncationLower: Iterable[int],
        truncationUpper: Iterable[int],
        dilation: Iterable[int],
        paddingLower: Iterable[int],
        paddingUpper: Iterable[int],
        flip: Iterable[bool],
    ) -> None: ...
    @overloaded("ConvParams.InputTransform")
    def __init__(self, size: int | None = None, **lists: Any) -> None:
        size = _number(0 if size is None else size, "size")
        nothing = {"dilation": [1] * size, "flip": [False] * size}
        for name in self.fields:
            setattr(self, name, lists.get(name, nothing.get(name, [0] * size)))


@public
@define(init=False, eq=False, repr=False, on_setattr=_converted)
class WindowChange(_Compared):
    """`ConvParams.OutputTransform`: what is done to what the windows give.

    In each dimension windows are cut off, then each so many-th is taken, then zeros are put at the ends.
    ``OutputTransform(size)`` does nothing to `size` dimensions.

    Attributes
    ----------
    truncationLower, truncationUpper:
        How many windows are cut off at the lower and the upper end.
    stride:
        Each of which windows is taken, from the first on; 1 takes all.
    paddingLower, paddingUpper:
        How many zeros are put at the lower and the upper end.
    """

    fields = ("truncationLower", "truncationUpper", "stride", "paddingLower", "paddingUpper")

    truncationLower: list[int]
    truncationUpper: list[int]
    stride: list[int]
    paddingLower: list[int]
    paddingUpper: list[int]

    @overload
    def __init__(self) -> None: ...
    @overload
    def __init__(self, size: int) -> None: ...
    @overload
    def __init__(
        self,
        truncationLower: Iterable[int],
        truncationUpper: Iterable[int],
        stride: Iterable[int],
        paddingLower: Iterable[int],
        paddingUpper: Iterable[int],
    ) -> None: ...
    @overloaded("ConvParams.OutputTransform")
    def __init__(self, size: int | None = None, **lists: Any) -> None:
        size = _number(0 if size is None else size, "size")
        for name in self.fields:
            setattr(self, name, lists.get(name, [1] * size if name == "stride" else [0] * size))


FieldChange.__qualname__, WindowChange.__qualname__ = "ConvParams.InputTransform", "ConvParams.OutputTransform"


@public
@define(auto_attribs=False, init=False, eq=False, repr=False, on_setattr=_converted)
class ConvParams(_Compared):
    """The types, sizes and transforms of a convolution.

    An output is the sum, over the input channels of its group and the elements of the kernel, of products of the transformed
    input and the transformed kernel, which is not turned round: ``out[o] = sum of in[o + k] * kernel[k]``. All fields can be
    set; `validate` says what does not fit together, and every call that takes parameters does so. Fields
    `inputChannelsPerConvGroup` and `outputChannelsPerConvGroup` hold the channels. Parameters are equal, and have an order and
    a hash, by all of their fields.

    Parameters
    ----------
    dataType:
        The type of input, weights and output, in place of the next two.
    inputType:
        The type of input and weights, FLOAT or HALF.
    outputType:
        The type of the output, FLOAT or HALF.
    batchSize:
        How many samples there are.
    inputFieldShape:
        The sizes of the input's field, up to three.
    kernelShape:
        The sizes of the kernel, as many.
    inputChannels:
        Input channels of each group.
    outputChannels:
        Output channels of each group.
    numConvGroups:
        How many groups of channels are convolved each for itself.
    inputTransform:
        An ``InputTransform`` of the input's field; by default it does nothing.
    kernelTransform:
        An ``InputTransform`` of the kernel; by default it does nothing.
    outputTransform:
        An ``OutputTransform``; by default it does nothing.

    Raises
    ------
    PoplarTypeError
        For fields of another class.
    PoplibsError
        For negative sizes.

    Examples
    --------
    >>> from pypoplar import FLOAT, poplin
    >>> params = poplin.ConvParams(FLOAT, 1, [8, 8], [3, 3], 4, 16, 1)  # a sample of 8 x 8, 4 channels in and 16 out
    >>> params.inputTransform.paddingLower = params.inputTransform.paddingUpper = [1, 1]
    >>> params.outputTransform.stride = [2, 2]
    >>> params.getOutputFieldShape()
    [4, 4]
    """

    InputTransform: TypeAlias = FieldChange
    OutputTransform: TypeAlias = WindowChange
    fields = (
        "inputType",
        "outputType",
        "batchSize",
        "inputFieldShape",
        "kernelShape",
        "inputChannelsPerConvGroup",
        "outputChannelsPerConvGroup",
        "numConvGroups",
        "inputTransform",
        "kernelTransform",
        "outputTransform",
    )

    inputType: ElementType = field()
    outputType: ElementType = field()
    batchSize: int = field()
    inputFieldShape: list[int] = field()
    kernelShape: list[int] = field()
    inputChannelsPerConvGroup: int = field()
    outputChannelsPerConvGroup: int = field()
    numConvGroups: int = field()
    inputTransform: FieldChange = field()
    kernelTransform: FieldChange = field()
    outputTransform: WindowChange = field()

    @overload
    def __init__(self) -> None: ...
    @overload
    def __init__(
        self,
        dataType: ElementType,
        batchSize: int,
        inputFieldShape: Iterable[int],
        kernelShape: Iterable[int],
        inputChannels: int,
        outputChannels: int,
        numConvGroups: int,
    ) -> None: ...
    @overload
    def __init__(
        self,
        inputType: ElementType,
        outputType: ElementType,
        batchSize: int,
        inputFieldShape: Iterable[int],
        kernelShape: Iterable[int],
        inputChannels: int,
        outputChannels: int,
        numConvGroups: int,
    ) -> None: ...
    @overload
    def __init__(
        self,
        inputType: ElementType,
        outputType: ElementType,
        batchSize: int,
        inputFieldShape: Iterable[int],
        kernelShape: Iterable[int],
        inputChannels: int,
        outputChannels: int,
        numConvGroups: int,
        inputTransform: FieldChange,
        kernelTransform: FieldChange,
        outputTransform: WindowChange,
    ) -> None: ...
    @overloaded("ConvParams")
    def __init__(  # noqa: PLR0913 (PopLibs' arguments)
        self,
        dataType: ElementType | None = None,
        inputType: ElementType | None = None,
        outputType: ElementType | None = None,
        batchSize: int = 0,
        inputFieldShape: Iterable[int] = (),
        kernelShape: Iterable[int] = (),
        inputChannels: int = 0,
        outputChannels: int = 0,
        numConvGroups: int = 0,
        inputTransform: FieldChange | None = None,
        kernelTransform: FieldChange | None = None,
        outputTransform: WindowChange | None = None,
    ) -> None:
        self.inputType = inputType or dataType  # type: ignore[assignment]  # `validate` refuses what has none
        self.outputType = outputType or dataType  # type: ignore[assignment]
        self.batchSize = batchSize
        self.inputFieldShape = inputFieldShape  # type: ignore[assignment]
        self.kernelShape = kernelShape  # type: ignore[assignment]
        self.inputChannelsPerConvGroup = inputChannels
        self.outputChannelsPerConvGroup = outputChannels
        self.numConvGroups = numConvGroups
        dims = len(self.inputFieldShape)
        self.inputTransform = inputTransform or FieldChange(dims)
        self.kernelTransform = kernelTransform or FieldChange(dims)
        self.outputTransform = outputTransform or WindowChange(dims)

    def getNumOutputChansPerConvGroup(self) -> int:
        """How many output channels each of the groups has."""
        return self.outputChannelsPerConvGroup

    def getNumOutputChans(self) -> int:
        """The output channels of a sample: how many all groups have together."""
        return self.outputChannelsPerConvGroup * self.numConvGroups

    def getNumInputChansPerConvGroup(self) -> int:
        """How many input channels each of the groups has."""
        return self.inputChannelsPerConvGroup

    def getNumInputChans(self) -> int:
        """The input channels of a sample: how many all groups have together."""
        return self.inputChannelsPerConvGroup * self.numConvGroups

    def getNumConvGroups(self) -> int:
        """How many groups of channels are convolved each for itself."""
        return self.numConvGroups

    def getNumFieldDims(self) -> int:
        """How many dimensions the field and the kernel have."""
        return len(self.inputFieldShape)

    def getInputFieldShape(self) -> list[int]:
        """The sizes of the input's field before its transforms, a copy."""
        return list(self.inputFieldShape)

    def getKernelShape(self) -> list[int]:
        """The sizes of the kernel before its transforms, a copy."""
        return list(self.kernelShape)

    def getBatchSize(self) -> int:
        """How many samples the input and the output have."""
        return self.batchSize

    def getInputSize(self, dim: int) -> int:
        """The size of the input's field in a dimension, before its transforms.

        Parameters
        ----------
        dim:
            The dimension of the field.

        Returns
        -------
        int
            In elements.

        Raises
        ------
        PoplarIndexError
            For a dimension that the field does not have.
        """
        return self.axis(dim).input.size

    def getTruncatedInputSize(self, dim: int) -> int:
        """How many elements of the input's field in a dimension are not cut off.

        Parameters
        ----------
        dim:
            The dimension of the field.

        Returns
        -------
        int
            In elements.

        Raises
        ------
        PoplarIndexError
            For a dimension that the field does not have.
        """
        return self.axis(dim).input.truncated_size

    def getTruncatedKernelSize(self, dim: int) -> int:
        """How many elements of the kernel in a dimension are not cut off.

        Parameters
        ----------
        dim:
            The dimension of the field.

        Returns
        -------
        int
            In elements.

        Raises
        ------
        PoplarIndexError
            For a dimension that the field does not have.
        """
        return self.axis(dim).kernel.truncated_size

    def getTransformedInputSize(self, dim: int) -> int:
        """The size of the input's field in a dimension after all of its transforms.

        Parameters
        ----------
        dim:
            The dimension of the field.

        Returns
        -------
        int
            In elements.

        Raises
        ------
        PoplarIndexError
            For a dimension that the field does not have.
        """
        return self.axis(dim).input.transformed_size

    def getTransformedKernelSize(self, dim: int) -> int:
        """The size of the kernel in a dimension after all of its transforms.

        Parameters
        ----------
        dim:
            The dimension of the field.

        Returns
        -------
        int
            In elements.

        Raises
        ------
        PoplarIndexError
            For a dimension that the field does not have.
        """
        return self.axis(dim).kernel.transformed_size

    def getUntransformedOutputSize(self, dim: int) -> int:
        """The windows in a dimension: places of the transformed kernel on the transformed input.

        Parameters
        ----------
        dim:
            The dimension of the field.

        Returns
        -------
        int
            The transformed input's size less the transformed kernel's, plus 1.

        Raises
        ------
        PoplarIndexError
            For a dimension that the field does not have.
        """
        return self.axis(dim).windows

    def getOutputSize(self, dim: int) -> int:
        """The size of the output's field in a dimension after all transforms.

        Parameters
        ----------
        dim:
            The dimension of the field.

        Returns
        -------
        int
            In elements.

        Raises
        ------
        PoplarIndexError
            For a dimension that the field does not have.
        """
        return self.axis(dim).output_size

    def getOutputFieldShape(self) -> list[int]:
        """The sizes of the output's field, after all transforms."""
        return [axis.output_size for axis in self.axes()]

    def validate(self) -> None:
        """Whether the fields fit together; every call that takes parameters does so.

        Types are FLOAT or HALF; all lists are as long as `inputFieldShape`; strides and dilations are 1 at least; no more is
        cut off than there is; and the transformed kernel has an element and is not larger than the transformed input.

        Raises
        ------
        PoplibsError
            For the first thing that does not fit, with what it should be.
        PoplarTypeError
            For a field of another class.
        """
        for name in self.fields[:-3]:
            _converted(self, _Named(name), getattr(self, name))
        for name in ("inputType", "outputType"):
            if getattr(self, name) not in (FLOAT, HALF):
                raise PoplibsError(f"ConvParams: {name} is FLOAT or HALF, got {getattr(self, name)!r}")
        dims = len(self.inputFieldShape)
        if len(self.kernelShape) != dims:
            raise PoplibsError(
                f"ConvParams: the field has {dims} dimensions, {self.inputFieldShape}, and the kernel {len(self.kernelShape)}, "
                f"{self.kernelShape}"
            )
        for what in ("input", "kernel", "output"):
            _check_lists(what, getattr(self, f"{what}Transform"), dims)
        for dim, axis in enumerate(self.axes()):
            _check_axis(dim, axis)

    def canonicalize(self) -> ConvParams:
        """The parameters of the same convolution that are equal for all ways to write it.

        What no product needs is cut off, outputs that are always 0 are output padding, padding is not added and cut off again. A
        convolution without any product has a transformed input and kernel of one 0, and nothing but padding for its output.

        Returns
        -------
        ConvParams
            New parameters; these stay as they are.

        Raises
        ------
        PoplibsError
            As `validate`.
        """
        self.validate()
        axes = [axis.canonical() for axis in self.axes()]
        if any(axis is None for axis in axes):
            return with_axes(self, [axis.zero() for axis in self.axes()])
        return with_axes(self, [axis for axis in axes if axis is not None])

    def axis(self, dim: int) -> ConvAxis:
        """One dimension of the field with its transforms.

        Parameters
        ----------
        dim:
            The dimension of the field.

        Returns
        -------
        ConvAxis
            Input, kernel and output in that dimension.

        Raises
        ------
        PoplarIndexError
            For a dimension that the field does not have.
        """
        if not 0 <= _number(dim, "dim") < len(self.inputFieldShape):
            raise PoplarIndexError(f"ConvParams: dim is {dim}, and the field has {len(self.inputFieldShape)} dimensions")
        input, kernel = (
            FieldAxis(size, *(getattr(change, name)[dim] for name in change.fields))
            for size, change in ((self.inputFieldShape[dim], self.inputTransform), (self.kernelShape[dim], self.kernelTransform))
        )
        return ConvAxis(input, kernel, OutputAxis(*(getattr(self.outputTransform, name)[dim] for name in WindowChange.fields)))

    def axes(self) -> list[ConvAxis]:
        """All dimensions of the field with their transforms, in their order."""
        return [self.axis(dim) for dim in range(len(self.inputFieldShape))]


def operand_shape(params: ConvParams, operand: str) -> list[int]:
    """Of the "input", the "weights" or the "output" in groups of channels."""
    groups, batch = params.numConvGroups, params.batchSize
    inputs, outputs = params.inputChannelsPerConvGroup, params.outputChannelsPerConvGroup
    match operand:
        case "input":
            return [groups, batch, inputs, *params.inputFieldShape]
        case "weights":
            return [groups, outputs, inputs, *params.kernelShape]
    return [groups, batch, outputs, *params.getOutputFieldShape()]


def with_axes(params: ConvParams, axes: list[ConvAxis]) -> ConvParams:
    """Parameters with the types, samples and channels of others, and another field."""
    input, kernel = (
        FieldChange(*([getattr(axis, name) for axis in part] for name in FieldChange.fields))
        for part in ([axis.input for axis in axes], [axis.kernel for axis in axes])
    )
    output = WindowChange(*([getattr(axis.output, name) for axis in axes] for name in WindowChange.fields))
    return ConvParams(
        params.inputType,
        params.outputType,
        params.batchSize,
        [axis.input.size for axis in axes],
        [axis.kernel.size for axis in axes],
        params.inputChannelsPerConvGroup,
        params.outputChannelsPerConvGroup,
        params.numConvGroups,
        input,
        kernel,
        output,
    )


@frozen
class _Named:
    name: str


def _check_lists(what: str, transform: FieldChange | WindowChange, dims: int) -> None:
    for name in transform.fields:
        values = getattr(transform, name)
        _converted(transform, _Named(name), values)
        words = f"{what} {NAMES.get(name, name)}" if name != "stride" else name
        if len(values) != dims:
            raise PoplibsError(f"ConvParams: the {words} has {len(values)} dimensions, {values}, and the field {dims}")
        if name in ("stride", "dilation") and 0 in values:
            raise PoplibsError(f"ConvParams: the {words} is 1 at least, got {values}")


def _check_axis(dim: int, axis: ConvAxis) -> None:
    for what, part in (("field", axis.input), ("kernel", axis.kernel)):
        if part.truncated_size < 0:
            cut = part.truncationLower + part.truncationUpper
            raise PoplibsError(f"ConvParams: {cut} elements are cut off in dimension {dim}, and the {what} has {part.size}")
    if axis.kernel.transformed_size == 0:
        raise PoplibsError(f"ConvParams: the transformed kernel has no element in dimension {dim}")
    if axis.input.transformed_size < axis.kernel.transformed_size:
        raise PoplibsError(
            f"ConvParams: in dimension {dim} the transformed input has {axis.input.transformed_size} elements, fewer than the "
            f"transformed kernel, which has {axis.kernel.transformed_size}"
        )
    cut = axis.output.truncationLower + axis.output.truncationUpper
    if cut > axis.windows:
        raise PoplibsError(f"ConvParams: {cut} outputs are cut off in dimension {dim}, and the convolution has {axis.windows}")
