"""Links of the reference go to public names, wherever a class is defined.

Annotations are resolved to the modules that define what they name; the reference has each public name once, under the module that
users import it from. A type that is not public shows its name without a link, and those of other projects do, since the site
asks no other host for anything. What stands in single backquotes links where it is a public name, and is code where it is not:
an argument, a word of a language. A word such as `of` is no link to a method of that name in another module.
"""

from __future__ import annotations

import importlib
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

PREFERRED = {  # of names that two modules have; those of a report are named in full
    "ComputeSet": "pypoplar.ComputeSet",
    "Program": "pypoplar.program.Program",
    "Graph": "pypoplar.Graph",
    "Tensor": "pypoplar.Tensor",
}
WITHOUT_CONSTRUCTOR = re.compile(r"\b(made|given) by `")  # as tests/documents/test_reference.py has it
OTHERS = (
    "numpy",
    "networkx",
    "collections",
    "os",
    "pathlib",
    "typing",
    "types",
    "enum",
    "abc",
    "io",
    "attrs",
    "contextlib",
    "torch",
    "logging",
    "datetime",
    "concurrent",
    "plotly",
)


@cache
def _defined(name: str) -> object | None:
    """What a dotted name is, or None."""
    module, _, member = name.rpartition(".")
    while module:
        try:
            found: Any = importlib.import_module(module)
        except ImportError:
            module, _, first = module.rpartition(".")
            member = f"{first}.{member}"
            continue
        for part in member.split("."):
            found = getattr(found, part, None)
        return found
    return None


@cache
def _for_checkers() -> set[str]:
    """What the sources import, or name, for type checkers alone."""
    texts = [path.read_text(encoding="utf-8") for path in Path(importlib.import_module("pypoplar").__path__[0]).rglob("*.py")]
    parts = [part for text in texts for part in re.findall(r"^if TYPE_CHECKING:\n((?:    .*\n|\n)+)", text, re.M)]
    return {name for part in parts for name in re.findall(r"\w+", part)}


@cache
def _of_the_source(name: str) -> bool:
    """Whether a name without a module is one that the sources have for a type, such as `Int64s`."""
    for library in ("poputil", "popops", "poprand", "poplin", "popnn", "pva", "testing"):
        importlib.import_module(f"pypoplar.{library}")
    return name in _for_checkers() or any(
        hasattr(module, name) for path, module in sys.modules.items() if path.startswith("pypoplar")
    )


def _public(objects: dict[str, Any], target: str) -> str | None:
    """The name under which the reference has what `target` names."""
    if target in objects:
        return target
    if target.partition(".")[0] in OTHERS:
        return None
    last = target.rpartition(".")[2]
    named = [name for name in objects if name.rpartition(".")[2] == last]
    if target.startswith("pypoplar."):
        meant = _defined(target)
        named = [name for name in named if _defined(name) is meant]
    return min(named, key=len) if named else None


def _is_a_word(target: str, name: str, module: str | None) -> bool:
    """Whether a text has a word like `of` that is also the name of a method somewhere else."""
    owner = _defined(name.rpartition(".")[0])
    return target.islower() and "." not in target and isinstance(owner, type) and not name.startswith(f"{module}.")


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement) -> nodes.Node | None:
    """A link for a reference of Python that Sphinx has not found, the text alone, or None: that is a warning."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    domain = env.domains.python_domain
    name = _public(domain.objects, target)
    if name is not None and not (node["reftype"] == "obj" and _is_a_word(target, name, node.get("py:module"))):
        found = domain.objects[name]
        return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, content, name)
    if (
        node["reftype"] in ("obj", "data")
        or _of_the_source(target)
        or target.partition(".")[0] in OTHERS
        or target.startswith("pypoplar.")
    ):
        return content
    return None


def prefer(app: Sphinx, doctree: nodes.document) -> None:
    """Say whose an unqualified name of an annotation is, where more than one module has it."""
    for node in doctree.findall(pending_xref):
        if node.get("refdomain") == "py" and node.get("py:module") != "pypoplar.pva":
            node["reftarget"] = PREFERRED.get(node["reftarget"], node["reftarget"])
        behind = node.next_node(descend=False, siblings=True)
        if node["reftarget"] == "Sequence" and behind is not None and behind.astext() == "[":
            node["reftarget"] = "collections.abc.Sequence"  # a program has no types of elements


KEPT = "\N{MODIFIER LETTER COLON} "  # in place of a colon until sections are made


def keep_colons(app: Sphinx, what: str, name: str, member: object, options: object, lines: list[str]) -> None:
    """Keep what stands before a colon in the first line of a property's docstring from being taken for its type."""
    if what in ("property", "attribute") and lines:
        lines[0] = lines[0].replace(": ", KEPT)


def as_text(app: Sphinx, what: str, name: str, member: object, options: object, lines: list[str]) -> None:
    """Keep what docstrings mean as text from being read as markup: ``[batch, *field]`` and ``|a|``."""
    lines[:] = [re.sub(r"(?<=[ \[])\*(?=[a-z])|\|(?=a\|| is|$)|(?<=\|a)\|", r"\\\g<0>", line.replace(KEPT, ": ")) for line in lines]


def constructor(
    app: Sphinx, what: str, name: str, member: Any, options: object, signature: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """No signature for a class whose objects users get from a call, or that has none; attrs' defaults as they are."""
    if what != "class" or not signature:
        return None
    if WITHOUT_CONSTRUCTOR.search(member.__doc__ or "") or "*arguments" in signature or "*types" in signature:
        return "", None
    defaults = {one.name: one.default for one in getattr(member, "__attrs_attrs__", ())}
    return re.sub(r"attr_dict\['(\w+)'\]\.default", lambda found: repr(defaults[found.group(1)]), signature), returns


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", keep_colons, priority=100)
    app.connect("autodoc-process-signature", constructor)
    app.connect("autodoc-process-docstring", as_text, priority=900)
    app.connect("doctree-read", prefer)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
