"""What liveness goes through: positions one after another, and where control branches between them."""

from pypoplar.compiler.control.operation_tree import NO_POSITION, Choice, Group, Line, Moment
from pypoplar.compiler.liveness.control_flow import PositionRange, pieces


def shown(line):
    """Begin and end of each run of positions, and the position of each choice."""
    return [(one.begin, one.end) if isinstance(one, PositionRange) else one.position for one in pieces(line)]


def line(*operations):
    return Line(operations)


def group(position, *parts):
    return Group(None, None, position, parts)


def test_the_parts_of_a_group_stand_where_it_stands():
    assert shown(line(Moment(0), group(NO_POSITION, line(Moment(1)), line(Moment(2))), Moment(3))) == [(0, 4)]
    choice = Choice(None, None, 2, (line(Moment(3)),), False)
    assert shown(line(Moment(0), group(NO_POSITION, line(Moment(1), choice), line(Moment(4))), Moment(5))) == [(0, 3), 2, (4, 6)]


def test_a_group_that_does_something_itself_does_so_before_its_parts():
    assert shown(line(Moment(0), group(1, line(Moment(2)), line(group(3, line(Moment(4))))), Moment(5))) == [(0, 6)]
    assert shown(line(group(0))) == [(0, 1)]


def test_what_is_elsewhere_between_two_positions_is_no_part_of_a_run():
    assert shown(line(Moment(0), Moment(3), Moment(4))) == [(0, 1), (3, 5)]
