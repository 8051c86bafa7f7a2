"""Random bodies of C++ without undefined behaviour, run as codelets and, by the same text, compiled by the machine's own compiler."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from codelet_rig import run

from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.cpp.cpp_codelets import codelets_of
from pypoplar.codelet.cpp_tree.translation_unit import CppFile

# ruff: noqa: C901, E501, PLR0911, PLR0912 - an arm for each kind of statement, each a line of C++
TYPES = {
    "int8_t": np.int8, "uint8_t": np.uint8, "int16_t": np.int16, "uint16_t": np.uint16, "int32_t": np.int32, "uint32_t": np.uint32,
    "int64_t": np.int64, "uint64_t": np.uint64, "float": np.float32,
}  # fmt: skip
INTEGERS = tuple(type for type in TYPES if type != "float")
LENGTH = 4
COMPILER = shutil.which("g++") or shutil.which("c++")
FLAGS = ("-std=c++17", "-O1", "-fwrapv", "-ffp-contract=off", "-msse2", "-mfpmath=sse", "-w", "-shared", "-fPIC")

Choose = Callable[[Sequence[Any]], Any]


def codelets(text: str, *flags: str) -> list[Codelet]:
    """The codelets of a text."""
    return codelets_of(CppFile("<text>", "#include <poplar/Vertex.hpp>\nusing namespace poplar;\n" + text, flags)).codelets


def codelet(body: str, fields: str = "", before: str = "", base: str = "Vertex", head: str = "") -> Codelet:
    """The codelet ``Test`` with some fields and the body of its compute."""
    (found,) = codelets(
        f"{before}\nclass Test : public {base} {{\npublic:\n{fields}\nbool compute({head}) {{\n{body}\nreturn true;\n}}\n}};\n"
    )
    return found


class Drawn:
    """A body while it is drawn."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.locals: list[tuple[str, str]] = []
        self.count = 0

    def fresh(self, name: str) -> str:
        self.count += 1
        return f"{name}{self.count}"

    def leaf(self) -> str:
        kind = self.choose(("element", "element", "local", "number"))
        if kind == "local" and self.locals:
            return str(self.choose(self.locals)[1])
        if kind == "number":
            return str(
                self.choose(
                    (
                        "0",
                        "1",
                        "2",
                        "7",
                        "-1",
                        "-3",
                        "3u",
                        "255",
                        "65535",
                        "0x80000000u",
                        "5ll",
                        "9ull",
                        "1.5f",
                        "-0.25f",
                        "true",
                        "'a'",
                    )
                )
            )
        return f"{self.choose(tuple(TYPES))}s[{self.choose(range(LENGTH))}]"

    def integer(self, depth: int) -> str:
        type = self.choose(("int32_t", "uint32_t", "int64_t", "uint64_t", "int16_t", "uint8_t"))
        inner = f"{self.choose(INTEGERS)}s[{self.choose(range(LENGTH))}]" if depth <= 0 else self.whole(depth - 1)
        return f"({type})({inner})"

    def whole(self, depth: int) -> str:
        """An expression of integers alone."""
        if depth <= 0:
            found = [name for type, name in self.locals if type != "float"]
            if found and self.choose((True, False)):
                return str(self.choose(found))
            return f"{self.choose(INTEGERS)}s[{self.choose(range(LENGTH))}]"
        match self.choose(("arithmetic", "arithmetic", "bits", "shift", "divide", "unary", "cast", "choice", "compare", "leaf")):
            case "arithmetic":
                return f"({self.whole(depth - 1)} {self.choose('+-*')} {self.whole(depth - 1)})"
            case "bits":
                return f"({self.whole(depth - 1)} {self.choose('&|^')} {self.whole(depth - 1)})"
            case "shift":
                return f"({self.integer(depth - 1)} {self.choose(('<<', '>>'))} ({self.whole(depth - 1)} & 7))"
            case "divide":
                return f"({self.whole(depth - 1)} {self.choose('/%')} {self.choose(('', '-'))}(({self.whole(depth - 1)} & 15) | 2))"
            case "unary":
                return f"({self.choose('-~+!')}{self.whole(depth - 1)})"
            case "cast":
                return self.integer(depth)
            case "choice":
                return f"({self.condition(depth - 1)} ? {self.whole(depth - 1)} : {self.whole(depth - 1)})"
            case "compare":
                return f"({self.condition(depth - 1)})"
        return self.whole(0)

    def condition(self, depth: int) -> str:
        if depth > 0 and self.choose((True, False, False)):
            return f"({self.condition(depth - 1)} {self.choose(('&&', '||'))} {self.condition(depth - 1)})"
        symbol = self.choose(("<", "<=", ">", ">=", "==", "!="))
        part = self.whole if self.choose((True, True, False)) else self.floating
        return f"({part(depth - 1)} {symbol} {part(depth - 1)})"

    def floating(self, depth: int) -> str:
        if depth <= 0:
            found = [name for type, name in self.locals if type == "float"]
            return str(self.choose(found)) if found and self.choose((True, False)) else f"floats[{self.choose(range(LENGTH))}]"
        match self.choose(("arithmetic", "arithmetic", "convert", "negate", "choice", "literal", "leaf")):
            case "arithmetic":
                return f"({self.floating(depth - 1)} {self.choose('+-*')} {self.floating(depth - 1)})"
            case "convert":
                return f"(float)({self.choose(('int32_t', 'uint32_t', 'int16_t', 'uint8_t'))})({self.whole(depth - 1)})"
            case "negate":
                return f"(-{self.floating(depth - 1)})"
            case "choice":
                return f"({self.condition(depth - 1)} ? {self.floating(depth - 1)} : {self.floating(depth - 1)})"
            case "literal":
                return f"({self.floating(depth - 1)} {self.choose('+-*')} {self.choose(('0.5f', '2.0f', '3', '1.25f', '-7'))})"
        return self.floating(0)

    def target(self) -> tuple[str, str]:
        if self.locals and self.choose((True, False)):
            return self.choose(self.locals)  # type: ignore[no-any-return]
        type = self.choose(tuple(TYPES))
        return type, f"{type}s[{self.choose(range(LENGTH))}]"

    def value(self, type: str, depth: int) -> str:
        return self.floating(depth) if type == "float" else self.whole(depth)

    def statements(self, depth: int, count: int) -> str:
        known = len(self.locals)
        text = "".join(self.statement(depth) for _ in range(count))
        del self.locals[known:]
        return text

    def statement(self, depth: int) -> str:
        kinds = ["assign", "assign", "declare", "compound", "compound", "step", "pointer", "reference", "swap", "post"]
        match self.choose([*kinds, "if", "for", "down", "while", "do", "switch", "lambda", "array"] if depth > 0 else kinds):
            case "declare":
                type = self.choose(tuple(TYPES))
                value = self.value(type, 2)
                self.locals.append((type, self.fresh("v")))
                return f"{type} {self.locals[-1][1]} = {value};\n"
            case "compound":
                type, name = self.target()
                if type == "float":
                    return f"{name} {self.choose('+-*')}= {self.floating(1)};\n"
                symbol = self.choose(("+", "-", "*", "&", "|", "^", "<<", ">>", "/", "%"))
                if symbol in ("<<", ">>"):
                    return f"{name} {symbol}= {self.whole(1)} & 7;\n"
                return f"{name} {symbol}= {f'(({self.whole(1)} & 7) | 2)' if symbol in '/%' else self.whole(1)};\n"
            case "step":
                _, name = self.target()
                return self.choose((f"{name}++;\n", f"--{name};\n", f"++{name};\n"))  # type: ignore[no-any-return]
            case "post":
                index, type = self.fresh("k"), self.choose(INTEGERS)
                return f"{{ int {index} = {self.choose((0, 1, 2))}; {type}s[{index}++] = {self.whole(1)}; int32_ts[{index}] += {index}; }}\n"
            case "pointer":
                type, p = self.choose(tuple(TYPES)), self.fresh("p")
                return f"{{ {type} *{p} = &{type}s[{self.choose((0, 1))}]; *{p}++ = {self.value(type, 1)}; {p}[1] = *{p}; *({p} - 1) += 1; }}\n"
            case "reference":
                type, r = self.choose(tuple(TYPES)), self.fresh("r")
                return f"{{ {type} &{r} = {type}s[{self.choose(range(LENGTH))}]; {r} = {self.value(type, 1)}; {r} += 1; }}\n"
            case "swap":
                type = self.choose(tuple(TYPES))
                return f"{{ {type} s = {type}s[0]; {type}s[0] = {type}s[{self.choose(range(LENGTH))}]; {type}s[3] = s; }}\n"
            case "if":
                orelse = f" else {{\n{self.statements(depth - 1, 1)}}}" if self.choose((True, False)) else ""
                return f"if ({self.condition(2)}) {{\n{self.statements(depth - 1, 2)}}}{orelse}\n"
            case "for":
                type, i = self.choose(("int", "unsigned", "uint32_t", "int32_t")), self.fresh("i")
                end, step = (
                    self.choose(("4", "3u", "7", "(unsigned)(uint8_ts[0] & 7)", "(uint8_ts[1] & 3)")),
                    self.choose((f"++{i}", f"{i}++", f"{i} += 2")),
                )
                leave = self.choose(("", "", f"if ({self.condition(1)}) break;\n", f"if ({self.condition(1)}) continue;\n"))
                name = f"int32_ts[{i} & 3] += {i} * 3; floats[{i} & 3] += {i};\n"
                return f"for ({type} {i} = {self.choose((0, 1))}; {i} < {end}; {step}) {{\n{leave}{name}{self.statements(depth - 1, 1)}}}\n"
            case "down":
                i = self.fresh("i")
                return f"for (int {i} = 3; {i} >= 0; --{i}) {{\nint64_ts[{i}] = {i} - int64_ts[3 - {i}] / 2;\n{self.statements(depth - 1, 1)}}}\n"
            case "while":
                n = self.fresh("n")
                return f"{{ int {n} = {self.choose((2, 5))}; while ({self.choose((f'{n}--', f'--{n} > 0', f'{n}-- > 1'))}) {{\n{self.statements(depth - 1, 1)}int16_ts[{n} & 3]++;\n}} }}\n"
            case "do":
                n = self.fresh("n")
                leave = self.choose(("", f"if ({self.condition(1)}) continue;\n"))
                return f"{{ unsigned {n} = 0; do {{\n{leave}{self.statements(depth - 1, 1)}}} while (++{n} < 3); }}\n"
            case "switch":
                cases = "".join(f"case {number}: {{ {self.statements(depth - 1, 1)} }} break;\n" for number in range(2))
                return (
                    f"switch ({self.whole(1)} & 3) {{\n{cases}case 2: case 3: default: {{ {self.statements(depth - 1, 1)} }}\n}}\n"
                )
            case "lambda":
                f, type = self.fresh("f"), self.choose(("int32_t", "uint32_t", "float", "uint8_t"))
                return f"{{ auto {f} = [&]({type} q) {{ {type}s[0] = q; return q + {self.value(type, 1)}; }}; {type}s[1] = {f}({self.value(type, 1)}); }}\n"
            case "array":
                a, type = self.fresh("a"), self.choose(("int32_t", "uint16_t", "float"))
                return f"{{ {type} {a}[3] = {{{self.value(type, 1)}}}; {a}[1] = {self.value(type, 1)}; for (auto &e : {a}) {type}s[2] += e; }}\n"
        type, name = self.target()
        return f"{name} = {self.value(type, 3)};\n"


FIELDS = "".join(f"InOut<Vector<{type}>> {type}s;\n" for type in TYPES)


def native(body: str, values: dict[str, Any], before: str = "") -> dict[str, Any]:
    """What the machine's own compiler makes of a body."""
    assert COMPILER is not None
    parameters = ", ".join(f"{type} *{type}s" for type in TYPES)
    with tempfile.TemporaryDirectory() as directory:
        source, library = Path(directory) / "body.cpp", Path(directory) / "body.so"
        source.write_text(f'#include <cstdint>\n{before}\nextern "C" bool body({parameters}) {{\n{body}\nreturn true;\n}}\n')
        done = subprocess.run([COMPILER, *FLAGS, "-o", library, source], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stderr}\n{body}"
        arrays = {name: np.array(value) for name, value in values.items()}
        ctypes.CDLL(str(library)).body(*(array.ctypes.data_as(ctypes.c_void_p) for array in arrays.values()))
    return arrays


def compare(body: str, values: dict[str, Any], before: str = "") -> None:
    """A body gives the same by both."""
    ran = run(codelet(body, FIELDS, f"#include <cstdint>\n{before}"), **values)
    assert ran.fault is None, (ran.fault, body)
    for name, expected in native(body, values, before).items():
        assert np.array_equal(ran.fields[name], expected, equal_nan=expected.dtype == np.float32), (
            name,
            ran.fields[name],
            expected,
            body,
        )
