"""What rules have appended is judged before an engine runs it, as an executable that comes from a file is."""

from __future__ import annotations

from pypoplar.compiler.flattening.flattening_state import Flattening
from pypoplar.compiler.flattening.occurrence import refusal
from pypoplar.errors import ControlProgramError, FileLoadError
from pypoplar.executable.executable import Executable
from pypoplar.executable.verify.host_claims import verify_service
from pypoplar.executable.verify.move_claims import verify_moves
from pypoplar.executable.verify.program_claims import verify_program


def check_appended(flattening: Flattening, executable: Executable) -> None:
    """`ControlProgramError`, naming the program, if rows or services name what is not there, or go where nothing is."""
    for number, owner in enumerate(flattening.service_owners):
        try:
            verify_service(executable, number)
        except FileLoadError as problem:
            raise refusal(owner, f"asks for a service that nobody can do: {problem}") from None
    named: list[str] = []

    def row_name(number: int, row: str) -> str:
        owner = flattening.row_owners[number]
        named.append(f"row {number}, {row}:" if owner is None else f"the rule of {owner!r} appends the row {row}:")
        return named[-1]

    try:
        verify_program(executable, verify_moves(executable), row_name)
    except FileLoadError as problem:
        if named:
            raise ControlProgramError(str(problem)) from None
        kinds = sorted({type(owner).__name__ for owner in flattening.row_owners if owner is not None})
        raise ControlProgramError(f"what the rules of {', '.join(kinds)} append does not fit together: {problem}") from None
