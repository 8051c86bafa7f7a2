"""Parts of a graph used again like functions: what they compute exists once, arguments are copied to it and results from it.

A function has a *signature*, a list of `input`, `inout`, `output` and `created` arguments, and a Python function that builds its
program from as many parameters, which are clones of the tensors in the signature. Calling it adds copies of the arguments, a
call of that program, and copies of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, cast

from attrs import field, frozen

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.host_links import Function
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import check_debug, check_flag, check_graph, check_own, check_prog, check_tensor
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import fits
from pypoplar.program import Call, Copy, Program
from pypoplar.program import Sequence as Steps
from pypoplar.signatures import misfit
from pypoplar.tracebacks import public


class ArgType(Enum):
    """What a function does with an argument.

    Attributes
    ----------
    InputArg:
        It reads it.
    OutputArg:
        It writes it.
    InOutArg:
        It reads and writes it.
    CreatedArg:
        It makes it: each call gives a new tensor.
    """

    InputArg = "InputArg"
    OutputArg = "OutputArg"
    InOutArg = "InOutArg"
    CreatedArg = "CreatedArg"


@public
@frozen
class ArgSig:
    """An argument of a signature; `input`, `inout`, `output` and `created` make it.

    Parameters
    ----------
    type:
        What the function does with it.
    tensor:
        A tensor of its type, shape and mapping; None for a created one.
    debugName:
        A name for its clones, below that of the function.
    """

    type: ArgType
    similarTensor: Tensor | None = field(default=None, alias="tensor")
    debugName: str = ""


Signature = Iterable[ArgSig]


@public
def input(similar: Tensor, debugName: str = "") -> ArgSig:
    """An argument that is read: each call copies one to the function's own.

    Parameters
    ----------
    similar:
        A tensor of its type, shape and mapping.
    debugName:
        A name for its clones.

    Returns
    -------
    ArgSig
        For a signature.

    Raises
    ------
    PoplarTypeError
        For what is no tensor.
    """
    return _like(ArgType.InputArg, similar, debugName)


@public
def inout(similar: Tensor, debugName: str = "") -> ArgSig:
    """An argument that is read and written: each call copies it to the function's own and back.

    Parameters
    ----------
    similar:
        A tensor of its type, shape and mapping.
    debugName:
        A name for its clones.

    Returns
    -------
    ArgSig
        For a signature.

    Raises
    ------
    PoplarTypeError
        For what is no tensor.
    """
    return _like(ArgType.InOutArg, similar, debugName)


@public
def output(similar: Tensor, debugName: str = "") -> ArgSig:
    """An argument that is written: each call copies the function's own to it.

    Parameters
    ----------
    similar:
        A tensor of its type, shape and mapping.
    debugName:
        A name for its clones.

    Returns
    -------
    ArgSig
        For a signature.

    Raises
    ------
    PoplarTypeError
        For what is no tensor.
    """
    return _like(ArgType.OutputArg, similar, debugName)


@public
def created(debugName: str = "") -> ArgSig:
    """A result that the function makes: it sets its parameter to a tensor, and each call gives a new one like that.

    Parameters
    ----------
    debugName:
        A name for its clones.

    Returns
    -------
    ArgSig
        For a signature.
    """
    return ArgSig(ArgType.CreatedArg, None, debugName)


def _like(type: ArgType, similar: Tensor, debugName: str) -> ArgSig:
    check_tensor(f"graphfn.{type.value.removesuffix('Arg').lower()}", similar)
    return ArgSig(type, similar, debugName)


class _Reusable:
    """A program, its parameters, and the arguments that each call has for them."""

    def __init__(
        self,
        call: str,
        graph: Graph,
        signature: Signature,
        body: Callable[[list[Any], Steps, str], object],
        inlined: bool,
        debugContext: str | None,
        results: Iterable[ArgSig] = (),
    ) -> None:
        check_graph(call, graph)
        check_debug(call, debugContext)
        check_flag(call, "inlined", inlined)
        self._call, self._graph, self._name = call, graph, debugContext or ""
        if not fits(signature, Iterable[Any]):
            raise PoplarTypeError(f"{call}: a signature is a list of input(t), inout(t), output(t), created(), got {signature!r}")
        self._signature = [*signature, *results]
        for place, argument in enumerate(self._signature):
            if not isinstance(argument, ArgSig):
                raise PoplarTypeError(
                    f"{call}: a signature has input(t), inout(t), output(t) and created(), got {argument!r} at {place}"
                )
        parameters: list[Any] = [
            None if argument.similarTensor is None else graph.clone(argument.similarTensor, below(debugContext, argument.debugName))
            for argument in self._signature
        ]
        program = Steps(name=self._name)
        body(parameters, program, self._name)
        if len(parameters) != len(self._signature):
            raise PoplibsError(f"{call}: the function has {len(self._signature)} parameters, and left {len(parameters)} of them")
        for place, parameter in enumerate(parameters):
            if not isinstance(parameter, Tensor):
                raise PoplibsError(f"{call}: the function sets its created parameter {place} to a tensor, got {parameter!r}")
        self._parameters: list[Tensor] = parameters
        self._program = program
        self._function: Function | None = None if inlined else graph.addFunction(program)

    def check(self, args: Any, results: int = 0) -> None:
        """`PoplibsError` unless `args` is a list with what the signature has but for the last `results`."""
        wanted = self._signature[: len(self._signature) - results]
        if not isinstance(args, list) or len(args) != len(wanted):
            given = f"{len(args)}" if isinstance(args, list) else repr(args)
            raise PoplibsError(f"{self._call}: a call takes a list of {len(wanted)} arguments, got {given}")
        for place, (argument, tensor) in enumerate(zip(wanted, args, strict=True)):
            similar = argument.similarTensor
            if similar is None:
                continue
            check_own(self._call, self._graph, tensor)
            if (tensor.shape(), tensor.elementType()) != (similar.shape(), similar.elementType()):
                raise PoplibsError(f"{self._call}: argument {place} is like {similar!r}, got {tensor!r}")
            if argument.type is not ArgType.InputArg and not tensor.isParallelWriteable():
                raise PoplibsError(f"{self._call}: {tensor!r} cannot be written: it holds an element twice, or a constant")

    def extend(self, args: list[Any], prog: Steps, debugContext: str | None) -> None:
        """Add the copies and the call; `args` is as long as the signature, and gets what is created."""
        name = below(self._name, debugContext or "")
        for argument, tensor, parameter in zip(self._signature, args, self._parameters, strict=True):
            if argument.type in (ArgType.InputArg, ArgType.InOutArg):
                prog.add(Copy(tensor, parameter, name))
        prog.add(self._program if self._function is None else Call(self._function, name=name))
        for place, (argument, parameter) in enumerate(zip(self._signature, self._parameters, strict=True)):
            if argument.type is ArgType.CreatedArg:
                args[place] = self._graph.clone(parameter, below(name, argument.debugName))
            if argument.type is not ArgType.InputArg:
                prog.add(Copy(parameter, args[place], name))


def _named(call: str, function: Any, *arguments: str) -> Callable[..., Any]:
    """A user's function as one that takes the debug name behind its arguments, which it may leave out."""
    plain = misfit(function, *arguments)
    if not plain:
        return lambda *given: function(*given[:-1])
    if misfit(function, *arguments, "name"):
        raise PoplarTypeError(f"{call}: expected a function of {' and '.join(arguments)}, got {plain}")
    return cast(Callable[..., Any], function)


@public
class VoidFunction:
    """A part of a graph that is used again, whose results are in its arguments; it exists once, and calls copy arguments to it.

    Parameters
    ----------
    sig:
        What it does with each argument: `input`, `inout`, `output` or `created`.
    f:
        Builds it: ``f(args, prog)`` is called once, with a list of its parameters and a Sequence that it extends. A created
        parameter is None, and is set by it. If it takes a third argument, that is the debug name.
    inlined:
        Whether each call has the steps of the program itself in place of a call.

    Raises
    ------
    PoplarTypeError
        For a signature of other things, and an `f` of other arguments.
    PoplibsError
        If `f` leaves a created parameter unset, or changes the number of parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popops, program, testing
    >>> from pypoplar.poputil import graphfn
    >>> def compute(graph, a, b):
    ...     popops.addCodelets(graph)
    ...
    ...     def double(args, prog):
    ...         popops.mulInPlace(graph, args[0], 2.0, prog)
    ...
    ...     prog, doubled = program.Sequence(), graphfn.VoidFunction(graph, [graphfn.inout(a)], double)
    ...     for tensor in (a, b, b):  # one multiplication in memory, called three times
    ...         doubled([tensor], prog)
    ...     return prog
    >>> result = testing.run(compute, {"a": np.float32([1, 2]), "b": np.float32([3, 4])})
    >>> result["a"].tolist(), result["b"].tolist()
    ([2.0, 4.0], [12.0, 16.0])
    """

    def __init__(
        self, graph: Graph, sig: Signature, f: Callable[..., object], inlined: bool = False, debugContext: str | None = None
    ) -> None:
        body = _named("graphfn.VoidFunction", f, "args", "prog")
        self._reusable = _Reusable("graphfn.VoidFunction", graph, sig, body, inlined, debugContext)

    def __call__(self, args: list[Any], seq: Steps, debugContext: str | None = None) -> None:
        """Extend a program by a call.

        Parameters
        ----------
        args:
            A tensor for each argument of the signature. The places of created ones may hold anything, and are set to new
            tensors.
        seq:
            The Sequence that is extended by copies of the arguments, the call, and copies of the results.

        Raises
        ------
        PoplibsError
            Unless there is an argument for each of the signature, of its type and shape, and those that are written can be.
        """
        check_prog("graphfn.VoidFunction", seq)
        self._reusable.check(args)
        self._reusable.extend(args, seq, debugContext)


@public
class ProgramFunction:
    """A part of a graph that is used again, whose body and calls are programs; see `VoidFunction`.

    Parameters
    ----------
    sig:
        What it does with each argument: `input`, `inout`, `output` or `created`.
    f:
        Builds it: ``f(args)`` is called once, with a list of its parameters, and returns a program. If it takes a second
        argument, that is the debug name.
    inlined:
        Whether each call has the steps of the program itself in place of a call.

    Raises
    ------
    PoplarTypeError
        For a signature of other things, an `f` of other arguments, and one that returns no program.
    PoplibsError
        If `f` leaves a created parameter unset, or changes the number of parameters.
    """

    def __init__(
        self, graph: Graph, sig: Signature, f: Callable[..., Program], inlined: bool = False, debugContext: str | None = None
    ) -> None:
        function = _named("graphfn.ProgramFunction", f, "args")

        def body(parameters: list[Any], program: Steps, name: str) -> None:
            steps = function(parameters, name)
            if not isinstance(steps, Program):
                raise PoplarTypeError(f"graphfn.ProgramFunction: the function returns a program, got {steps!r}")
            program.add(steps)

        self._reusable = _Reusable("graphfn.ProgramFunction", graph, sig, body, inlined, debugContext)

    def __call__(self, args: list[Any], debugContext: str | None = None) -> Steps:
        """The program of a call.

        Parameters
        ----------
        args:
            A tensor for each argument of the signature, as for a `VoidFunction`.

        Returns
        -------
        Sequence
            Copies of the arguments, the call, and copies of the results.

        Raises
        ------
        PoplibsError
            Unless there is an argument for each of the signature, of its type and shape, and those that are written can be.
        """
        self._reusable.check(args)
        program = Steps(name=debugContext or "")
        self._reusable.extend(args, program, debugContext)
        return program


@public
class TensorFunction:
    """A part of a graph that is used again, whose result is a tensor; see `VoidFunction`.

    Parameters
    ----------
    sig:
        What it does with each argument: `input`, `inout`, `output` or `created`; the result is not among them.
    f:
        Builds it: ``f(args, prog)`` is called once, with a list of its parameters and a Sequence that it extends, and returns a
        tensor. If it takes a third argument, that is the debug name.
    inlined:
        Whether each call has the steps of the program itself in place of a call.

    Raises
    ------
    PoplarTypeError
        For a signature of other things, an `f` of other arguments, and one that returns no tensor.
    PoplibsError
        If `f` leaves a created parameter unset, or changes the number of parameters.
    """

    def __init__(
        self, graph: Graph, sig: Signature, f: Callable[..., Tensor], inlined: bool = False, debugContext: str | None = None
    ) -> None:
        function = _named("graphfn.TensorFunction", f, "args", "prog")

        def body(parameters: list[Any], program: Steps, name: str) -> None:
            given = parameters[:-1]
            result = function(given, program, name)
            if not isinstance(result, Tensor):
                raise PoplarTypeError(f"graphfn.TensorFunction: the function returns a tensor, got {result!r}")
            parameters[:] = [*given, result]

        self._reusable = _Reusable("graphfn.TensorFunction", graph, sig, body, inlined, debugContext, [created()])

    def __call__(self, args: list[Any], prog: Steps, debugContext: str | None = None) -> Tensor:
        """Extend a program by a call, and return its result.

        Parameters
        ----------
        args:
            A tensor for each argument of the signature, as for a `VoidFunction`.
        prog:
            The Sequence that is extended by copies of the arguments, the call, and copies of the results.

        Returns
        -------
        Tensor
            A new tensor like the one that `f` returned.

        Raises
        ------
        PoplibsError
            Unless there is an argument for each of the signature, of its type and shape, and those that are written can be.
        """
        check_prog("graphfn.TensorFunction", prog)
        self._reusable.check(args, results=1)
        everything = [*args, None]
        self._reusable.extend(everything, prog, debugContext)
        args[:] = everything[:-1]
        result: Tensor = everything[-1]
        return result
