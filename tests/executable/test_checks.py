"""The checks of the verifier: each has a name and stands in one place; each is needed, and no bound is further than it must be.

For each there is a damaged executable that it refuses, and that no other check refuses once it is moved by one; or once it is
switched off, if it has no bound, or if it cannot be exceeded by one alone.
"""

import ast
from itertools import chain
from pathlib import Path

import pytest
from check_bounds import expected_bound
from check_damage import DAMAGE, damage_of, watches
from damage import Damage, opened
from executable_checks import CHECKS, MODULES, Site, verified
from executable_programs import PROGRAMS

from pypoplar import Executable, FileLoadError
from pypoplar.executable.verify import named_checks
from pypoplar.executable.verify.program_claims import KINDS
from pypoplar.interface.opcodes import Opcode
from pypoplar.interface.service_kinds import DETAILS


def names() -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(watch.sites for watch in watches().values())))


def sites(name: str) -> set[Site]:
    """Where a check is made."""
    return set().union(*(watch.sites.get(name, ()) for watch in watches().values()))


def calls(module: object) -> list[ast.Call]:
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def test_a_name_is_that_of_one_check():
    assert [name for name in names() if len(sites(name)) > 1] == []


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


def test_bounds_are_those_that_are_written_down():
    for program, watch in watches().items():
        executable = PROGRAMS[program]()
        expected = {name: (side, expected_bound(name, side, executable)) for name, (side, _) in watch.bounds.items()}
        assert watch.bounds == expected


def passes(executable: Executable, loosened: str, how: str) -> bool:
    """Whether no check refuses an executable with one of them loosened, be it that an error of Python's ends the verifier then."""
    try:
        return verified(executable, loosened, how).refused == ""
    except AssertionError:
        raise
    except Exception:
        return True


def is_needed_for(check: str, damage: Damage) -> bool:
    """Whether the check refuses an executable, and no other does once it is loosened."""
    damaged = opened(damage.program).copy()
    try:
        damage.change(damaged)
        executable = damaged.executable()
    except (IndexError, OverflowError, FileLoadError):  # there is nothing at that place, or the form itself is wrong
        return False
    return verified(executable).refused == check and passes(executable, check, damage.how)


@pytest.mark.no_cover
@pytest.mark.parametrize("room", [module.__name__.rpartition(".")[2] for module in MODULES if module is not named_checks])
def test_every_check_is_needed_and_no_bound_is_further_than_it_must_be(room):
    """A check for which this fails has no damaged executable of its own: give `check_damage.DAMAGE` one, or take the check away."""
    own = [name for name in names() if any(Path(file).stem == room for file, _ in sites(name))]
    assert own
    assert [name for name in own if not any(is_needed_for(name, damage) for damage in damage_of(name))] == []


def test_what_is_damaged_by_hand_is_checked():
    assert DAMAGE.keys() - set(names()) == set()
