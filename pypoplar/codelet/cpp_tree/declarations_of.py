"""What a declaration says: the initial value, the elements of an array; and which expressions name a place."""

from __future__ import annotations

from pypoplar.codelet.cpp_tree.cpp_types import CppType
from pypoplar.codelet.cpp_tree.tree import Node


def initial_of(node: Node) -> Node | None:
    """What a variable or a member is set to where it is declared."""
    parts = [part for part in node.parts if part.kind not in ("PARM_DECL",)]
    if node.type.sort == "array" and parts and parts[0].kind == "INTEGER_LITERAL" and len(parts) == 1:
        return None  # its size
    if not parts:
        return None
    last = parts[-1]
    if node.type.sort == "array" and last.kind not in ("INIT_LIST_EXPR", "UNEXPOSED_EXPR", "CALL_EXPR"):
        return None
    return last


def element_of(type: CppType) -> CppType:
    while type.value.sort == "array" and type.value.to is not None:
        type = type.value.to
    return type


def is_place(node: Node) -> bool:
    return (
        node.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR", "ARRAY_SUBSCRIPT_EXPR")
        or (node.kind == "UNARY_OPERATOR" and node.operator == "*")
        or (node.kind == "CALL_EXPR" and node.name in ("operator[]", "operator*"))
    )
