"""The checks of the verifier: each has a name, stands in one place, and is made."""

import ast
import functools
from itertools import chain
from pathlib import Path

from executable_checks import CHECKS, MODULES, Watch, verified
from executable_programs import PROGRAMS

from pypoplar.executable.verify import named_checks
from pypoplar.executable.verify.program_claims import KINDS
from pypoplar.interface.opcodes import Opcode
from pypoplar.interface.service_kinds import DETAILS


@functools.cache
def watches() -> dict[str, Watch]:
    """What the verifier does with each program as it is compiled."""
    return {program: verified(make()) for program, make in PROGRAMS.items()}


def names() -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(watch.sites for watch in watches().values())))


def calls(module: object) -> list[ast.Call]:
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def test_a_name_is_that_of_one_check():
    sites = {name: set().union(*(watch.sites.get(name, ()) for watch in watches().values())) for name in names()}
    assert {name: places for name, places in sites.items() if len(places) > 1} == {}


def test_the_programs_of_the_tests_go_through_all_checks():
    made = set(chain.from_iterable(chain.from_iterable(watch.sites.values()) for watch in watches().values()))
    for module in MODULES:
        if module is not named_checks:
            for call in calls(module):
                if ast.unparse(call.func) in (*CHECKS, "check_running"):
                    lines = range(call.lineno, (call.end_lineno or call.lineno) + 1)
                    assert any((module.__file__, line) in made for line in lines), f"{module.__file__}:{call.lineno}"


def test_the_programs_of_the_tests_have_all_operations_and_services():
    operands = {f"program {operation.name} {operand.name}" for operation in KINDS for operand in KINDS[operation]}
    assert operands <= {name.removesuffix(" low").removesuffix(" high") for name in names()}
    executables = [make() for make in PROGRAMS.values()]
    assert {Opcode(code) for executable in executables for code in executable.program[:, 0]} == set(Opcode)
    assert {service["kind"] for executable in executables for service in executable.services} == {str(kind) for kind in DETAILS}


def test_nothing_but_checks_refuses():
    for module in MODULES:
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        assert not any(isinstance(node, ast.Raise) for node in ast.walk(tree))
        if module is not named_checks:
            assert not any(ast.unparse(call.func).startswith("claim") for call in calls(module))
