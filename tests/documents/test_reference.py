"""Docstrings of public names are complete: what a call means, each of its arguments, what it gives back and raises.

Form and model are those of `Engine` and `pva.openReport`: sections of NumPy's style, types in annotations alone.
"""

import importlib
import importlib.util
import inspect
import re
from enum import Enum
from functools import cache
from types import FunctionType
from typing import get_overloads

import attrs
import pytest
from docstring_parser import DocstringStyle, parse

from pypoplar import Record, Vertex
from pypoplar.codelet.language.fields import Bracketed
from pypoplar.types import ElementType

LIBRARIES = ("poputil", "popops", "poprand", "poplin", "popnn", "gcl")
OF_EVERY_LIBRARY_CALL = {"graph", "prog", "debugContext"}  # docs/libraries.md tells what they are
FEWEST_WORDS = 9
MADE_BY_A_CALL = re.compile(r"\b(made|given) by `")  # so a class says that users do not make its objects themselves
TOLD_ELSEWHERE = {"pypoplar.Executable", "pypoplar.options.EngineOptions"}  # attributes: in comments, and in docs/options.md
COMPLETE = [
    "pypoplar",
    "pypoplar.gcl",
    "pypoplar.graph.mapping:TileToTensorMapping",
    "pypoplar.graph.tiles:NonReplicatedTensor",
    "pypoplar.graph.vertex_introspector",
    "pypoplar.ipu",
    "pypoplar.notebook",
    "pypoplar.options",
    "pypoplar.poplin",
    "pypoplar.poplin.experimental",
    "pypoplar.poplin.fc",
    "pypoplar.poplin.multiconv",
    "pypoplar.popnn",
    "pypoplar.popnn.bn",
    "pypoplar.popnn.ctc",
    "pypoplar.popnn.ctc_infer",
    "pypoplar.popnn.experimental",
    "pypoplar.popnn.gn",
    "pypoplar.popnn.gru",
    "pypoplar.popnn.in_",
    "pypoplar.popnn.ln",
    "pypoplar.popnn.lstm",
    "pypoplar.popnn.pooling",
    "pypoplar.popnn.rnn",
    "pypoplar.popops",
    "pypoplar.popops.embedding",
    "pypoplar.popops.expr",
    "pypoplar.popops.padding",
    "pypoplar.popops.rearrange",
    "pypoplar.poprand",
    "pypoplar.poputil",
    "pypoplar.poputil.graphfn",
    "pypoplar.program",
    "pypoplar.program.base:Calling InTurn Nothing OneOf Part Rounds Vertices",
    "pypoplar.pva",
    "pypoplar.report.execution:IpuStep TileAverage VertexTypeCycles",
    "pypoplar.report.failed_runs:FailedRun FailedStep",
    "pypoplar.report.line_profile",
    "pypoplar.report.memory_report:Bytes TileMemoryReport Total TotalMemory",
    "pypoplar.report.report:ExchangeReport IpuReport VertexType",
    "pypoplar.report.trace",
    "pypoplar.testing",
    "pypoplar.types:type_of_dtype",
]
"""Modules, or single names of them, whose docstrings are held to it."""
OF_PYTORCH = [
    "pypoplar.poptorch",
    "pypoplar.poptorch.operators.custom_operators:CustomOperator",
    "pypoplar.poptorch.optim",
    "pypoplar.poptorch.options.distributed_options:DistributedOptions JitOptions",
    "pypoplar.poptorch.options.option_values:OptionValues",
    "pypoplar.poptorch.options.popart_options:PopartOptions",
    "pypoplar.poptorch.options.precision_options:PrecisionOptions",
    "pypoplar.poptorch.options.tensor_locations:TensorLocationOptions",
    "pypoplar.poptorch.options.training_options:TrainingOptions",
    "pypoplar.poptorch.profiling",
]
OF_ONNX = ["pypoplar.onnx", "pypoplar.onnx.backend", "pypoplar.popart"]
"""The same of what needs PyTorch, and PyTorch and onnx: left out where it is not installed; .ci/pytorch runs this file too."""
if importlib.util.find_spec("torch") is not None:
    COMPLETE += OF_PYTORCH
    if importlib.util.find_spec("onnx") is not None:
        COMPLETE += OF_ONNX


def members(module):
    """The public names of a module, with what they are; not those of modules in it, nor what it imports if it lists none."""
    listed = getattr(module, "__all__", None)
    found = {name: getattr(module, name) for name in listed or vars(module) if not name.startswith("_")}
    place = "pypoplar" if listed else module.__name__
    own = {name: value for name, value in found.items() if str(getattr(value, "__module__", "")).startswith(place)}
    return {name: value for name, value in own.items() if isinstance(value, type | FunctionType)}


@cache
def callables(entry):
    """Everything of an entry that is held to it, by its dotted name."""
    path, _, only = entry.partition(":")
    found = {}
    for name, value in members(importlib.import_module(path)).items():
        if only and name not in only.split():
            continue
        found[f"{path}.{name}"] = value
        if isinstance(value, type) and not issubclass(value, BaseException):
            for key, method in vars(value).items():
                function = method.__func__ if isinstance(method, classmethod | staticmethod) else method
                if not key.startswith("_") and (isinstance(function, FunctionType | property) or hasattr(function, "func")):
                    found[f"{path}.{name}.{key}"] = function
    return found


def arguments(name, value):
    """The arguments that a docstring has to tell of, in their order."""
    if isinstance(value, property) or (isinstance(value, type) and issubclass(value, Enum | BaseException)):
        return []
    if not isinstance(value, type | FunctionType):
        return []
    if isinstance(value, ElementType) or (isinstance(value, type) and issubclass(value, (Vertex, Record, Bracketed))):
        return []  # which have no instances
    if isinstance(value, type) and MADE_BY_A_CALL.search(inspect.getdoc(value) or ""):
        return []
    try:
        signature = inspect.signature(value)
    except ValueError:  # of a class without a constructor of its own
        return []
    known = OF_EVERY_LIBRARY_CALL if name.split(".")[1] in LIBRARIES else set()
    names = list(signature.parameters)
    if any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values()):  # of forms whose arguments differ
        forms = [inspect.signature(form).parameters for form in get_overloads(inspect.unwrap(value))]
        names = list(dict.fromkeys(one for form in forms for one in form)) or names
    return [one for one in names if one not in {"self", "cls"} | known and not one.startswith("_")]


def told(document):
    """The arguments that a docstring tells of; several may stand in one line."""
    sections = parse(document, DocstringStyle.NUMPYDOC)
    names = [one.strip(" *:") for param in sections.params if param.args[0] == "param" for one in param.arg_name.split(",")]
    return names, sections


def problems(name, value):
    """What is wrong with a docstring: what it does not tell of, and what it should not tell of."""
    document = inspect.getdoc(value) or ""
    names, sections = told(document)
    wanted = arguments(name, value)
    if len(document.split()) < (FEWEST_WORDS if isinstance(value, type | FunctionType) else 5):
        yield f"{name} says too little: {document!r}"
    if [one.lstrip("*") for one in names] != wanted:
        yield f"{name} tells of {names}, its arguments are {wanted}"
    if isinstance(value, type) and attrs.has(value) and not wanted:
        fields = [one.name for one in attrs.fields(value) if not one.name.startswith("_")]
        lines = [one.arg_name.strip(" :") for one in sections.params if one.args[0] == "attribute"]
        if lines != fields and name not in TOLD_ELSEWHERE:
            yield f"{name} tells of the attributes {lines}, has {fields}"
    if isinstance(value, FunctionType) and wanted:
        gives = inspect.signature(value).return_annotation
        nothing = gives in (None, "None", inspect.Signature.empty, "NoReturn", "Self")
        if not (nothing or sections.returns is not None or sections.many_returns):
            yield f"{name} has no section Returns"
    yield from (f"{name}: when is {one.type_name} raised?" for one in sections.raises if not one.description)


@pytest.mark.parametrize("entry", COMPLETE)
def test_docstrings_tell_of_each_argument_and_of_the_result(entry):
    assert callables(entry)
    assert [problem for name, value in callables(entry).items() for problem in problems(name, value)] == []


@pytest.mark.parametrize("entry", COMPLETE)
def test_the_docstring_of_a_choice_tells_of_each_member(entry):
    choices = {name: value for name, value in callables(entry).items() if isinstance(value, type) and issubclass(value, Enum)}
    told_of = {name: inspect.getdoc(value) or "" for name, value in choices.items()}
    assert [f"{name}.{one}" for name, value in choices.items() for one in value.__members__ if one not in told_of[name]] == []


class Misdocumented:
    """A class that is documented well enough, and whose methods are not."""

    def mute(self, a: int) -> int: ...

    def other(self, a: int) -> int:
        """Tell of an argument that is not there, and of no result.

        Parameters
        ----------
        b
            Not an argument.

        Raises
        ------
        ValueError
        """


def test_what_a_docstring_leaves_out_is_found():
    assert list(problems("pypoplar.mute", Misdocumented.mute)) == [
        "pypoplar.mute says too little: ''",
        "pypoplar.mute tells of [], its arguments are ['a']",
        "pypoplar.mute has no section Returns",
    ]
    assert list(problems("pypoplar.other", Misdocumented.other)) == [
        "pypoplar.other tells of ['b'], its arguments are ['a']",
        "pypoplar.other has no section Returns",
        "pypoplar.other: when is ValueError raised?",
    ]


ANY = {
    "pypoplar.VertexIntrospector.value": "a number or an array, by the codelet: an estimator knows which",
    "pypoplar.default": "stands for a value of the field's type to type checkers",
    "pypoplar.graph.vertex_introspector.FieldData.getInitialValue": "as VertexIntrospector.value",
    "pypoplar.graph.vertex_introspector.VertexIntrospector.value": "the same",
    "pypoplar.ipu.array": "in device code a vector, on the host an array of NumPy's",
    "pypoplar.ipu.bit_cast": "a number of the type that is named; the room of `ipu` stands beside that of types",
    "pypoplar.ipu.multiply_accumulate": "in device code vectors, on the host arrays of NumPy's",
    "pypoplar.ipu.view": "a vector of chars, or a row of them, which has no type of its own to checkers",
    "pypoplar.options.option": "stands for a field's default to type checkers",
    "pypoplar.poputil.OptionHandler": "each option has values of its own",
    "pypoplar.poputil.OptionHandler.createWithEnum": "the program's own values",
    "pypoplar.poputil.OptionHandler.parseValue": "as OptionHandler",
    "pypoplar.poputil.OptionSpec.parse": "as OptionHandler",
    "pypoplar.pva.Program.accept": "whatever the visitor's method returns",
}
"""The names with an argument or result of any type, and why there is no other."""


def forms(value):
    """The signatures that type checkers see: of overloads those; of a class none if users do not make it."""
    if isinstance(value, type):
        if MADE_BY_A_CALL.search(inspect.getdoc(value) or "") or isinstance(value, ElementType):
            return []
        if issubclass(value, Vertex | Record | Bracketed | Enum | BaseException):
            return []
    function = value.fget if isinstance(value, property) else getattr(value, "func", value)
    made = inspect.unwrap(value.__init__ if isinstance(value, type) else function)
    return [inspect.signature(form) for form in (isinstance(made, FunctionType) and get_overloads(made)) or [function]]


@pytest.mark.parametrize(
    "entry", [one for one in COMPLETE if one not in OF_PYTORCH + OF_ONNX]
)  # which take what PyTorch and NumPy do
def test_arguments_and_results_have_types(entry):
    found = {name for name, value in callables(entry).items() if re.search(r"\bAny\b", " ".join(map(str, forms(value))))}
    assert found == ANY.keys() & callables(entry).keys()


def test_each_name_without_a_type_is_there():
    assert ANY.keys() - {name for entry in COMPLETE for name in callables(entry)} == set()
