"""A layout says of each element its tile and its place in memory, and what a graph keeps of it agrees with the mapping."""

from concurrent.futures import ThreadPoolExecutor
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import FLOAT, HALF, Graph, InvalidTileMapping, IPUModel, PoplarTypeError, TensorCloneMethod, TensorShapeError, concat
from pypoplar.poputil.placement.kept_layouts import channels_together, layout_of
from pypoplar.poputil.placement.layout import Layout
from pypoplar.poputil.placement.tiles_of_elements import tiles_of_elements
from pypoplar.poputil.structure.groupings import detectInnermostGrouping

TILES = 16
RANKS = st.integers(0, 4)


def new_graph():
    return Graph(IPUModel("tiny").createDevice())


@st.composite
def layouts(draw, rank=RANKS):
    """Uneven parts of several dimensions, in any order and of any order within."""
    sizes = [draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)) for _ in range(draw(rank))]
    parts = [len(own) for own in sizes]
    count = prod(parts)
    tile = draw(st.lists(st.integers(0, TILES - 1), min_size=count, max_size=count))
    order = draw(st.permutations(range(count)))
    inside = tuple(draw(st.permutations(range(len(sizes)))))
    cuts = tuple(np.cumsum([0, *own]) for own in sizes)
    return Layout.of(cuts, np.array(tile, np.int64).reshape(parts), np.array(order, np.int64).reshape(parts), inside)


def told(layout):
    """The tile and the place in memory of each element, one by one."""
    tile, place = np.empty(layout.shape, np.int64), np.empty(layout.shape, np.int64)
    for index in np.ndindex(*layout.shape):
        part = tuple(int(np.searchsorted(cuts, at, "right")) - 1 for cuts, at in zip(layout.cuts, index, strict=True))
        local = [at - int(cuts[own]) for cuts, at, own in zip(layout.cuts, index, part, strict=True)]
        tile[index] = layout.tile[part]
        place[index] = layout.begin[part] + sum(step * at for step, at in zip(layout.steps[part], local, strict=True))
    return tile, place


def assert_lies(graph, tensor, layout, first=0):
    tile, place = told(layout)
    assert (tiles_of_elements(graph, tensor) == tile).all()
    assert (tensor._ids() - first == place).all()


@given(layouts())
@examples(80)
def test_every_element_of_a_new_variable_has_the_tile_and_the_place_that_its_layout_says(layout):
    graph = new_graph()
    before = graph.addVariable(FLOAT, [5], "before")
    view = layout.variable(graph, HALF, "laid")
    assert tuple(view.shape()) == layout.shape
    assert sorted(told(layout)[1].reshape(-1).tolist()) == list(range(view.numElements()))
    assert_lies(graph, view, layout, before.numElements())
    kept = layout_of(graph, view)
    assert_lies(graph, view, kept, before.numElements())


@given(layouts())
@examples(60)
def test_parts_lie_behind_each_other_by_their_numbers_each_in_the_order_that_it_was_given(layout):
    """Independent of steps: in memory the parts come one after the other, and have one tile each."""
    graph = new_graph()
    view = layout.variable(graph, FLOAT, "laid")
    place = view._ids() - view._ids().min()
    ends = layout.begin + layout._sizes()
    for part in np.ndindex(*layout.tile.shape):
        own = place[tuple(slice(cuts[at], cuts[at + 1]) for cuts, at in zip(layout.cuts, part, strict=True))]
        assert sorted(own.reshape(-1).tolist()) == list(range(layout.begin[part], ends[part]))


@given(layouts(), st.data())
@examples(80)
def test_a_tensor_that_is_there_is_mapped_as_the_parts_are_however_it_lies(layout, data):
    graph = new_graph()
    order = data.draw(st.permutations(range(len(layout.shape))))
    memory = graph.addVariable(FLOAT, [layout.shape[dimension] for dimension in order], "memory")
    tensor = memory.dimShuffle(np.argsort(order).tolist()) if order else memory
    layout.map(graph, tensor)
    tile = told(layout)[0]
    assert (tiles_of_elements(graph, tensor) == tile).all()
    begin, end, owner = layout.pieces()
    assert (np.repeat(owner, end - begin) == tile.reshape(-1)).all()
    assert (owner[1:] != owner[:-1]).all()


@st.composite
def views(draw, view):
    """Slices and permutations of a tensor, with dimensions of size 1 added and taken away."""
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["slice", "permute", "expand", "index"]))
        if kind == "permute" and view.rank():
            view = view.dimShuffle(draw(st.permutations(range(view.rank()))))
        elif kind == "expand":
            view = view.expand([draw(st.integers(0, view.rank()))])
        elif view.rank():
            dimension = draw(st.integers(0, view.rank() - 1))
            begin = draw(st.integers(0, view.dim(dimension) - 1))
            end = draw(st.integers(begin + 1, view.dim(dimension)))
            view = view.slice(begin, end if kind == "slice" else begin + 1, dimension)
            if kind == "index":
                view = view.squeeze([dimension])
    return view


@given(layouts(), st.data())
@examples(150)
def test_the_layout_of_slices_and_permutations_agrees_with_the_mapping(layout, data):
    graph = new_graph()
    graph.addVariable(FLOAT, [3], "before")
    whole = layout.variable(graph, FLOAT, "laid")
    view = data.draw(views(whole))
    kept = layout_of(graph, view, derived=False)
    assert kept is not None
    assert kept.shape == tuple(view.shape())
    assert_lies(graph, view, kept, 3)


@given(layouts(rank=st.integers(1, 3)), st.data())
@examples(80)
def test_a_layout_is_derived_of_a_mapping_in_parts_and_agrees_with_it_through_views(layout, data):
    graph = new_graph()
    order = data.draw(st.permutations(range(len(layout.shape))))
    flat = graph.addVariable(FLOAT, [prod(layout.shape)], "flat") if data.draw(st.booleans()) else None
    shape = [layout.shape[dimension] for dimension in order]
    memory = graph.addVariable(FLOAT, shape, "memory") if flat is None else flat.reshape(shape)
    whole = memory.dimShuffle(np.argsort(order).tolist())
    layout.map(graph, whole)
    assert layout_of(graph, whole, derived=False) is None
    derived = layout_of(graph, whole)
    assert derived is not None
    assert_lies(graph, whole, derived)
    view = data.draw(views(whole))
    found = layout_of(graph, view)
    if flat is None:
        assert found is not None
    if found is not None:
        assert_lies(graph, view, found)


@given(st.lists(st.integers(0, 3), min_size=12, max_size=12), st.data())
@examples(80)
def test_any_mapping_has_the_layout_that_it_has_or_none(tile, data):
    graph = new_graph()
    x = graph.addVariable(FLOAT, [2, 3, 2], "x")
    for element, own in enumerate(tile):
        graph.setTileMapping(x.flatten()[element], own)
    view = data.draw(views(x))
    found = layout_of(graph, view)
    if found is not None:
        assert_lies(graph, view, found)


def test_what_is_no_grid_of_parts_has_no_layout_and_costs_no_more_than_its_pieces():
    graph = new_graph()
    x = graph.addVariable(FLOAT, [1000, 1000], "x")
    pieces = np.linspace(0, 10**6, 900).astype(int)
    graph.place_pieces(x, pieces[:-1], pieces[1:], np.arange(899) % TILES)
    assert layout_of(graph, x) is None
    y = graph.addVariable(FLOAT, [4, 4], "y")
    assert layout_of(graph, y) is None  # no tiles
    graph.setTileMapping(y[0], 1)
    assert layout_of(graph, y) is None
    graph.setTileMapping(y[1:4], 1)
    assert layout_of(graph, y).tile.tolist() == [[1]]


def test_a_mapping_is_looked_at_once_until_it_changes(monkeypatch):
    from pypoplar.poputil.placement import kept_layouts

    graph = new_graph()
    x = graph.addVariable(FLOAT, [4, 6], "x")
    graph.setTileMapping(x, 3)
    looked, derive = [], kept_layouts._derived
    monkeypatch.setattr(kept_layouts, "_derived", lambda *given: looked.append(given) or derive(*given))
    for _ in range(3):
        assert layout_of(graph, x).tile.tolist() == [[3]]
        assert layout_of(graph, x[1:3]).tile.tolist() == [[3]]
    assert len(looked) == 2  # as a whole, and as the variable of a slice
    graph.setTileMapping(x[3, 5], 4)
    assert layout_of(graph, x) is not None
    assert len(looked) == 3
    for _ in range(3):
        graph.getTileMapping(x)
        layout_of(graph, x)
    assert len(looked) == 3


# what is noted later


def laid(graph=None, name="laid"):
    graph = graph or new_graph()
    layout = Layout.of((np.array([0, 2, 3]), np.array([0, 1, 4])), np.array([[0, 1], [2, 3]]), np.array([[3, 1], [0, 2]]), (1, 0))
    return graph, layout, layout.variable(graph, FLOAT, name)


CHANGES = {
    "one element": lambda graph, view: graph.setTileMapping(view[2, 3], 9),
    "the tile that it has": lambda graph, view: graph.setTileMapping(view[0, 0], 0),
    "an alias": lambda graph, view: graph.setTileMapping(view.transpose().flatten().reverse(0)[0:1], 9),
    "a joined alias": lambda graph, view: graph.setTileMapping(concat(view[1], view[0]), {9: [(0, 1)]}),
    "an alias of another type": lambda graph, view: graph.setTileMapping(view[0, 0].reinterpret(FLOAT), 9),
    "pieces": lambda graph, view: graph.place_pieces(view[1:2], np.array([0]), np.array([1]), np.array([9])),
    "a virtual graph": lambda graph, view: graph.createVirtualGraph(8, 12).setTileMapping(view[2, 3], 1),
    "with another variable": lambda graph, view: graph.setTileMapping(concat(graph.addVariable(FLOAT, [3]), view[2, 0:1]), 9),
    "all of it": lambda graph, view: graph.setTileMapping(view, 9),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("asked", [False, True])
def test_a_layout_is_forgotten_with_any_mapping_of_an_element_noted_later(change, asked):
    graph, _, view = laid()
    _, other = laid(graph, "other")[1:]
    if asked:
        layout_of(graph, view)
        graph.getTileMapping(view)
    assert layout_of(graph, view, derived=False) is not None
    CHANGES[change](graph, view)
    assert layout_of(graph, view, derived=False) is None
    assert layout_of(graph, other, derived=False) is not None
    found = layout_of(graph, view)
    if found is not None:
        assert_lies(graph, view, found)


@given(layouts(rank=st.integers(1, 3)), st.lists(st.tuples(st.integers(0, 80), st.integers(0, 3), st.booleans()), max_size=5))
@examples(80)
def test_whatever_is_noted_and_asked_in_turn_a_layout_agrees_with_the_mapping(layout, steps):
    graph = new_graph()
    view = layout.variable(graph, FLOAT, "laid")
    copy = graph.clone(view)
    for element, tile, clones in steps:
        if clones:
            copy = graph.clone(view)
        else:
            flat = view.flatten()
            graph.setTileMapping(flat[element % flat.numElements()], tile)
        for tensor in (view, copy):
            found = layout_of(graph, tensor)
            if found is not None:
                assert_lies(graph, tensor, found, int(tensor._ids().min()))


def test_a_clone_has_the_layout_until_one_of_the_two_is_mapped_otherwise():
    graph, _, view = laid()
    for clone in (graph.clone(view), graph.clone(HALF, view), graph.clone(view.transpose()).transpose()):
        assert_lies(graph, clone, layout_of(graph, clone, derived=False), int(clone._ids().min()))
    graph.setTileMapping(clone[0, 0], 9)
    assert layout_of(graph, clone, derived=False) is None
    assert layout_of(graph, view, derived=False) is not None
    copy = graph.clone(view)
    graph.setTileMapping(view[0, 0], 9)
    assert layout_of(graph, copy, derived=False) is not None
    assert_lies(graph, copy, layout_of(graph, copy), int(copy._ids().min()))
    late = graph.clone(view)
    assert layout_of(graph, late, derived=False) is None


def test_other_clones_and_clones_of_parts_have_no_layout_but_what_their_mapping_gives():
    graph, _, view = laid()
    gathered = graph.clone(view, method=TensorCloneMethod.GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES)
    for clone in (
        gathered,
        graph.clone(view, method=TensorCloneMethod.CREATE_NEW_ORDER),
        graph.clone(view[0:1]),
        graph.cloneN(view, 2),
    ):
        assert layout_of(graph, clone, derived=False) is None
        found = layout_of(graph, clone)
        if found is not None:
            assert_lies(graph, clone, found, int(clone._ids().min()))


def test_a_virtual_graph_has_its_own_numbers_of_tiles_and_no_layout_of_others():
    graph = new_graph()
    virtual = graph.createVirtualGraph([5, 9, 2, 11])
    _, layout, view = laid(virtual)
    assert layout_of(virtual, view).tile.tolist() == layout.tile.tolist() == [[0, 1], [2, 3]]
    assert layout_of(graph, view).tile.tolist() == [[5, 9], [2, 11]]
    assert_lies(graph, view, layout_of(graph, view))
    other = graph.createVirtualGraph([9, 5])
    assert layout_of(other, view) is None
    assert layout_of(other, view[0:2]).tile.tolist() == [[1, 0]]
    derived = graph.addVariable(FLOAT, [4], "derived")
    virtual.setTileMapping(derived, 3)
    assert layout_of(virtual, derived).tile.tolist() == [3]
    assert layout_of(graph, derived).tile.tolist() == [11]


def test_threads_that_note_and_ask_at_once_end_with_the_mapping_that_there_is():
    for _ in range(20):
        graph, _, view = laid()

        def work(number, graph=graph, view=view):
            if number % 2:
                graph.setTileMapping(view[number % 3, number % 4], 9)
            return layout_of(graph, view)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert layout_of(graph, view, derived=False) is None
        found = layout_of(graph, view)
        if found is not None:
            assert_lies(graph, view, found)


# bad input


def test_cuts_that_do_not_cover_and_tiles_that_do_not_fit_are_refused():
    one = np.zeros((1, 1), int)
    for wrong in ([1, 4], [0], [0, 4, 4], [0, 4, 2], [[0, 4]]):
        with pytest.raises(TensorShapeError, match="cuts of dimension 1 ascend from 0 to its size"):
            Layout.of((np.array([0, 2]), np.array(wrong)), one)
    cuts = (np.array([0, 2, 4]), np.array([0, 3]))
    with pytest.raises(TensorShapeError, match=r"the tile of \[2, 1\] parts, got an array of shape \[1, 1\]"):
        Layout.of(cuts, one)
    with pytest.raises(TensorShapeError, match=r"the order of \[2, 1\] parts"):
        Layout.of(cuts, np.zeros((2, 1), int), np.zeros(2, int))
    with pytest.raises(PoplarTypeError, match="the tile of parts are whole numbers, got float64"):
        Layout.of(cuts, np.zeros((2, 1)))
    layout = Layout.of(cuts, np.array([[0], [16]]))
    with pytest.raises(InvalidTileMapping, match="tile 16"):
        layout.variable(new_graph(), FLOAT, "laid")
    with pytest.raises(TensorShapeError, match=r"a layout of shape \[4, 3\] for .*'x' FLOAT \[3, 4\]"):
        layout.map(*[graph := new_graph(), graph.addVariable(FLOAT, [3, 4], "x")])
    with pytest.raises(TensorShapeError, match="this layout leaves gaps"):
        layout.slice(0, 1, 1).variable(new_graph(), FLOAT, "laid")


def test_layouts_of_another_graph_are_refused():
    graph, layout, view = laid()
    other = new_graph()
    for tensor in (view, view[0:0]):
        with pytest.raises(PoplarTypeError, match="belongs to another graph"):
            layout_of(other, tensor)
    with pytest.raises(PoplarTypeError, match="belongs to another graph"):
        layout.map(other, view)
    assert layout_of(graph, view[0:0]) is None


# channels


@given(layouts(rank=st.just(3)))
@examples(80)
def test_neighbours_that_a_layout_tells_of_lie_so_in_all_rows(layout):
    graph = new_graph()
    view = layout.variable(graph, FLOAT, "laid")
    together, ids, tiles = layout.together(), view._ids(), tiles_of_elements(graph, view)
    assert view.dim(2) % together == 0
    groups = ids.reshape(-1, together)
    assert (groups == groups[:, :1] + np.arange(together)).all()
    own = tiles.reshape(-1, together)
    assert (own == own[:, :1]).all()
    best = [size for size in range(1, view.dim(2) + 1) if view.dim(2) % size == 0]
    for size in [size for size in best if size > together]:
        wider, on = ids.reshape(-1, size), tiles.reshape(-1, size)
        assert (wider != wider[:, :1] + np.arange(size)).any() or (on != on[:, :1]).any()


@given(st.lists(st.integers(0, 2), min_size=24, max_size=24), st.permutations(range(4)))
@examples(60)
def test_channels_of_a_users_mapping_are_guessed_as_ever(tile, order):
    graph = new_graph()
    x = graph.addVariable(FLOAT, [2, 3, 2, 2], "x")
    for element, own in enumerate(tile):
        graph.setTileMapping(x.flatten()[element], own)
    acts = x.dimShuffle(order)
    assert channels_together(graph, acts) == detectInnermostGrouping(graph, acts.dimRoll(1, 3))


def test_a_users_mapping_costs_what_a_look_at_its_first_row_costs(monkeypatch):
    """However large the tensor, only the first row's pieces are asked for, and no layout is derived."""
    from pypoplar.graph.mapping import MappingTable
    from pypoplar.poputil.placement import kept_layouts

    graph = new_graph()
    acts = graph.addVariable(FLOAT, [4, 10, 10, 8], "acts").dimShuffle([0, 3, 1, 2])
    rows = np.arange(400)
    graph.place_pieces(acts.dimRoll(1, 3), rows * 8, rows * 8 + 8, rows % TILES)
    asked, pieces_of = [], MappingTable.pieces_of
    monkeypatch.setattr(
        MappingTable, "pieces_of", lambda self, tensor: asked.append(tensor.numElements()) or pieces_of(self, tensor)
    )
    monkeypatch.setattr(kept_layouts, "_derived", lambda *_: pytest.fail("a layout is derived"))
    monkeypatch.setattr(kept_layouts, "_seen_as", lambda *_: pytest.fail("a layout is compared"))
    assert channels_together(graph, acts) == 8
    assert asked == [8]


def test_channels_of_a_layout_with_parts_of_several_sizes_lie_together_as_all_of_them_do():
    graph = new_graph()
    layout = Layout.of((np.array([0, 3, 6]), np.array([0, 16, 32, 40])), np.arange(6).reshape(2, 3))
    acts = layout.variable(graph, FLOAT, "laid").reshape([2, 3, 40]).dimShuffle([0, 2, 1])
    assert channels_together(graph, acts) == channels_together(graph, graph.clone(acts)) == 8
    graph.setTileMapping(acts[0, 0, 0], 0)
    assert channels_together(graph, acts) == detectInnermostGrouping(graph, acts.dimRoll(1, 2)) == 1
