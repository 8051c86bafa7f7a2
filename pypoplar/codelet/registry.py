"""The codelets of a graph: found in classes, modules and files, kept under their names, templates instantiated on demand."""

from __future__ import annotations

import functools
import os
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_args, get_origin

from attrs import field, frozen

from pypoplar.braces import ordered
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.ir.terms import Location
from pypoplar.codelet.language.codelet_file import is_unfinished, module_of_file
from pypoplar.codelet.language.cpp_source import CppSource
from pypoplar.codelet.language.declaration import base_name, check_arguments, declared_of, full_name, parameters_of, split_name
from pypoplar.codelet.language.fields import MultiVertex, SupervisorVertex, Vertex
from pypoplar.errors import CodeletError, PoplarTypeError, UnknownVertexType
from pypoplar.spelling import nearest
from pypoplar.types import BY_SPELLING, ElementType

if TYPE_CHECKING:
    from pypoplar.codelet.cpp.cpp_codelets import CppCodelets

_ROOTS = (Vertex, MultiVertex, SupervisorVertex)
_CELLS = ("ipykernel_", "ipython-input-", "python-input-", "marimo_")  # in the names of files that are cells of a notebook
INSTANCES = 6  # most names of instances in a message
_LIBRARIES = ("poplin", "popnn", "popops", "poprand", "poputil")


@frozen
class Template:
    """A codelet class with type variables; `Scale[FLOAT]` is one of its instances.

    `instances` are those that are made already, of a class that is known to be what it was; None where each is made anew, for a
    class may have changed, or what its code names.
    """

    cls: type[Vertex]
    instances: dict[tuple[Any, ...], Codelet] | None = field(default=None, eq=False, repr=False)

    @property
    def name(self) -> str:
        return base_name(self.cls)

    @property
    def location(self) -> Location:
        declared = declared_of(self.cls)
        return Location(declared.file, declared.line, self.cls.__qualname__)

    @property
    def spelling(self) -> str:
        """The name with its type variables, for messages: ``Scale<T>``."""
        base, fixed = split_name(self.name)
        return f"{base}<{','.join([*fixed, *(variable.__name__ for variable in parameters_of(self.cls))])}>"

    @functools.cached_property
    def key(self) -> tuple[str, tuple[str, ...], int]:
        """The name without its arguments, those that are no types, and how many types there are."""
        return (*split_name(self.name), len(parameters_of(self.cls)))

    def instance(self, arguments: tuple[Any, ...]) -> Codelet:
        bindings = check_arguments(self.cls, arguments)
        if self.instances is None:
            return Codelet.of_class(self.cls, bindings)
        if arguments not in self.instances:
            self.instances[arguments] = Codelet.of_class(self.cls, bindings)
        return self.instances[arguments]


@frozen(eq=False)
class Collected:
    """What has been collected of a module, for any number of graphs: somebody makes sure that it is still what it was."""

    codelets: tuple[Codelet | Template, ...]

    @staticmethod
    def of(module: ModuleType) -> Collected:
        """The codelets of a module, whose instances are kept, too."""
        found = collect(module)
        return Collected(tuple(Template(one.cls, {}) if isinstance(one, Template) else one for one in found))


def collect(source: Any) -> list[Any]:
    """The codelets of a class, an instance of a template (``Scale[FLOAT]``), a module, a file by its path, a list of these.

    Of a module: the classes defined in it, by now, whose name has no leading underscore; that is for bases of codelets.
    What has been collected before is as it was.
    """
    if isinstance(source, Collected):
        return list(source.codelets)
    if isinstance(source, list | tuple):
        return [codelet for single in source for codelet in collect(single)]
    if isinstance(source, CppSource):
        from pypoplar.codelet.cpp.door import cpp_codelets  # late: graphs of Python's codelets are made without it

        return [cpp_codelets(source)]
    if isinstance(source, str | os.PathLike):
        source = module_of_file(Path(source))
    if isinstance(source, ModuleType):
        return [_of_class(cls) for cls in codelet_classes(source)]
    origin = get_origin(source)
    if origin is not None and _is_codelet(origin):
        return [Template(origin).instance(get_args(source))]
    if isinstance(source, type) and issubclass(source, Vertex):
        return [_of_class(source)]
    ordered(source, "codelets", "[A, B]")
    what = "a subclass of pypoplar.Vertex, a module, the path of a .py or .cpp file, or a text in C++ as io.StringIO"
    raise PoplarTypeError(f"expected {what}, got {source!r}")


def codelet_classes(module: ModuleType) -> list[type[Vertex]]:
    """The classes of a module's codelets; `CodeletError` if there are none."""
    classes = [value for value in vars(module).values() if _is_codelet(value) and value.__module__ == module.__name__]
    public = [cls for cls in classes if not cls.__name__.startswith("_")]
    if not public:
        hint = ", by now; add them below the classes" if is_unfinished(module) else ""
        raise CodeletError(f"{module.__name__} has no codelets: no subclass of Vertex with a compute method{hint}")
    return list(dict.fromkeys(public))


def _is_codelet(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Vertex) and value not in _ROOTS and hasattr(value, "compute")


def _of_class(cls: type[Vertex]) -> Codelet | Template:
    if cls in _ROOTS:
        raise PoplarTypeError(f"{cls.__name__} is the base of codelets; derive a class from it")
    return Template(cls) if parameters_of(cls) else Codelet.of_class(cls)


class CodeletRegistry:
    """The codelets of one graph, numbered in the order in which they were added or first instantiated."""

    def __init__(self) -> None:
        self._codelets: list[Codelet] = []
        self._numbers: dict[str, int] = {}
        self._templates: dict[tuple[str, tuple[str, ...], int], Template] = {}
        self._classes: dict[Any, int] = {}
        self._files: list[CppCodelets] = []

    @property
    def codelets(self) -> tuple[Codelet, ...]:
        return tuple(self._codelets)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all codelets and, spelled with their type variables, of all templates."""
        in_files = (f"{name}<...>" for file in self._files for name in file.templates)
        return (*self._numbers, *(template.spelling for template in self._templates.values()), *in_files)

    def __contains__(self, name: str) -> bool:
        if not isinstance(name, str):
            raise PoplarTypeError(f"a codelet is asked for by its name, got {name!r}")
        if normal_name(name) in self._numbers:
            return True
        if any(file.has(name) for file in self._files):
            return True
        template = self._template_of(name)
        return template is not None and all(word in BY_SPELLING for word in _types_named(template, name))

    def has_template(self, name: str) -> bool:
        """Whether a template is called so, with the first of its arguments that are no types or with none of them."""
        base, arguments = split_name(name)
        return any(key[0] == base and key[1][: len(arguments)] == arguments for key in self._templates)

    def add(self, codelets: list[Any]) -> None:
        """Add what `collect` found. The same codelet twice is fine; two different ones of one name are a `CodeletError`."""
        for codelet in codelets:
            if isinstance(codelet, Template):
                self._add_template(codelet)
            elif isinstance(codelet, Codelet):
                self._add_codelet(codelet)
            else:
                for one in codelet.codelets:
                    self._add_codelet(one)
                self._files.append(codelet)

    def find(self, wanted: Any) -> tuple[int, Codelet]:
        """The number and codelet of a name, a class or an instance of a template; classes are added where they are new."""
        if isinstance(wanted, str):
            number = self._numbers.get(normal_name(wanted))
            if number is None:
                number = self._instance_of(wanted)
        elif not isinstance(wanted, type) and get_origin(wanted) is None:
            raise PoplarTypeError(f"expected the name or the class of a codelet, got {wanted!r}")
        else:
            number = self._classes.get(wanted)
            if number is None:
                number = self._classes[wanted] = self._number_of(wanted)
        return number, self._codelets[number]

    def name_of(self, wanted: Any) -> str:
        """The name of a codelet or of a template, given by its name or class; a class need not have been added."""
        if isinstance(wanted, str):
            return normal_name(wanted)
        if isinstance(wanted, type) and _is_codelet(wanted) and parameters_of(wanted):
            return Template(wanted).name
        return self.find(wanted)[1].name

    def _number_of(self, wanted: Any) -> int:
        (codelet,) = collect(wanted)
        if isinstance(codelet, Template):
            raise CodeletError(
                f"{codelet.name} is a template: name its types, such as {codelet.cls.__name__}[{_example(codelet)}] "
                f'or "{full_name(codelet.cls, _types(codelet))}"'
            )
        return self._add_codelet(codelet)

    def _add_codelet(self, codelet: Codelet) -> int:
        number = self._numbers.get(codelet.name)
        if number is None:
            self._refuse_other(self._template_of(codelet.name), codelet)
            number = self._numbers[codelet.name] = len(self._codelets)
            self._codelets.append(codelet)
        elif self._codelets[number] != codelet:
            self._refuse_other(self._codelets[number], codelet)
        return number

    def _add_template(self, template: Template) -> None:
        key = template.key
        known = self._templates.setdefault(key, template)
        if known.cls is not template.cls and known.location != template.location:
            self._refuse_other(known, template)
        self._templates[key] = template

    @staticmethod
    def _refuse_other(known: Codelet | Template | None, new: Codelet | Template) -> None:
        if known is None or (isinstance(known, Template) and isinstance(new, Codelet) and known.location == new.location):
            return
        places = [f"{codelet.location.file}:{codelet.location.line}" for codelet in (known, new)]
        in_cells = all(any(mark in codelet.location.file for mark in _CELLS) for codelet in (known, new))
        if in_cells and known.location.function == new.location.function and known.location.file != new.location.file:
            raise CodeletError(
                f"codelet '{new.name}' has been defined anew, at {places[1]}; the graph keeps the one that it has, of {places[0]}: "
                "make a new Graph, or rename one of the two"
            )
        where = "" if places[0] != places[1] else ", with other constants, helper functions or text"
        raise CodeletError(
            f"two different codelets are called '{new.name}': one at {places[0]}, one at {places[1]}{where}; rename one, "
            'or give it a name of its own: class X(Vertex, name="library::X")'
        )

    def _template_of(self, name: str) -> Template | None:
        """The template of which `name` would be an instance."""
        base, arguments = split_name(name)
        for count in range(1, len(arguments) + 1):
            template = self._templates.get((base, arguments[: len(arguments) - count], count))
            if template is not None:
                return template
        return None

    def _instances_text(self, spelling: str) -> str:
        """Names of instances of the template that is spelled so: those there are, then those there could be."""
        template = next((template for template in self._templates.values() if template.spelling == spelling), None)
        if template is None:
            return ""
        base, fixed = split_name(template.name)
        known = [name for name in self._numbers if split_name(name)[0] == base and split_name(name)[1][: len(fixed)] == fixed]
        names = list(dict.fromkeys([*known, *_spellings(template)]))
        listed = ", ".join(f"'{name}'" for name in names[:INSTANCES]) + (" and more" if len(names) > INSTANCES else "")
        return f" It is a template: name its types, as in {listed}"

    def _instance_of(self, name: str) -> int:
        for file in self._files:
            made = file.instance(normal_name(name))
            if made is not None:
                return self._add_codelet(made)
        template = self._template_of(name)
        if template is None:
            base, _ = split_name(name)
            same = [known for known in self.names if split_name(known)[0] == base]
            hint = f"; did you mean '{same[0]}'?{self._instances_text(same[0])}" if same else nearest(name, self.names)
            has = hint or (f"; added were {', '.join(self.names[:8])}" if self.names else "; none has been added")
            library = name.partition("::")[0] if "::" in name else ""
            if library in _LIBRARIES and not any(known.startswith(f"{library}::") for known in self.names):
                has = f"; call {library}.addCodelets(graph) first"
            bare = next((file.file.name for file in self._files if name in file.bare), None)
            if bare is not None:
                has = f": the class of that name in {bare} has no compute; write bool compute() {{ ... return true; }}"
            raise UnknownVertexType(f"no codelet is called '{name}'{has}")
        words = _types_named(template, name)
        for word in words:
            if word not in BY_SPELLING:
                raise UnknownVertexType(f"'{name}': no element type is called '{word}'{nearest(word, BY_SPELLING)}")
        return self._add_codelet(template.instance(tuple(BY_SPELLING[word] for word in words)))


def _spellings(template: Template) -> list[str]:
    """Names of instances, with the types that each parameter may be."""
    choices = [variable.__constraints__ or (BY_SPELLING["float"], BY_SPELLING["half"]) for variable in parameters_of(template.cls)]
    return [full_name(template.cls, types) for types in product(*choices)]


def _types_named(template: Template, name: str) -> tuple[str, ...]:
    """The names of types in the name of an instance of the template."""
    return split_name(name)[1][-len(parameters_of(template.cls)) :]


def normal_name(name: str) -> str:
    """The name as codelets have it: ``"Scale< float >"`` is ``"Scale<float>"``."""
    base, arguments = split_name(name)
    words = ("unsigned int" if argument == "unsigned" else argument for argument in arguments)
    return f"{base}<{','.join(words)}>" if arguments else base


def _types(template: Template) -> tuple[ElementType, ...]:
    return tuple((variable.__constraints__ or (BY_SPELLING["float"],))[0] for variable in parameters_of(template.cls))


def _example(template: Template) -> str:
    return ", ".join(type.__name__ for type in _types(template))
