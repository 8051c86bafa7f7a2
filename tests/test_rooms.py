"""The rooms of the house stand in floors: what stands on one imports from below, never from above.

All imports count: those at the top of a module, those inside functions, and those that only type checkers follow.
"""

import ast
from collections import Counter, defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from floors import FLOOR, LATE, House, room

ROOT = Path(__file__).parents[1] / "pypoplar"

MODULES_OF_A_PACKAGE = 25  # with its `__init__`
ONE_MEANING = ("stored_fields", "counted", "joined", "words", "operation", "told", "mapped", "computed", "wide")  # functions
ONE_ROOM = ("lowering", "flattening", "operations", "operators")
LIBRARIES = ("poputil", "popops", "poplin", "poprand", "popnn")  # they are built alike
COMPATIBLE = ("profile",)  # old names of public modules
SHARED_NAMES = {  # of classes
    "Adam": ("popart.popart_optimizers", "poptorch.optim.adam"),  # PopART's and PopTorch's
    "Backend": ("codelet.backend.contract", "onnx.backend"),  # of machine code, and ONNX's
    "Block": ("compiler.control.operation_tree", "poptorch.capture.model_blocks"),  # of a program, and PopTorch's
    "CommGroupType": ("gcl.comm_group", "poptorch.enums"),  # GCL's and PopTorch's
    "ComputeSet": ("graph.vertices", "report.program_nodes"),  # Poplar's and libpva's
    "DeviceManager": ("device", "popart.popart_devices"),  # Poplar's and PopART's
    "Layout": ("interface.layout", "poputil.placement.layout"),  # of records, and of tensors on tiles
    "Liveness": ("compiler.liveness.liveness", "poptorch.enums"),  # what lives when, and PopTorch's
    "Operand": ("interface.opcodes", "poptorch.lowering.entry_context"),  # of a program's row, and of an entry of PyTorch's table
    "Options": ("popdist.poptorch.instance_options", "poptorch.options.model_options"),  # popdist's and PopTorch's
    "Phase": (
        "interface.driver_records",
        "poptorch.options.execution_strategies",
    ),  # of the driver's record of a superstep, and PopTorch's
    "PlanningCache": ("poplin.matmul", "poplin.planning_cache"),  # PopLibs' two
    "Program": ("program.base", "report.program_nodes"),  # Poplar's and libpva's
    "SGD": ("popart.popart_optimizers", "poptorch.optim.sgd"),  # PopART's and PopTorch's
    "Stage": ("popops.reduction.reduce_plan", "poptorch.options.execution_strategies"),  # of a reduction, and PopTorch's
    "Result": ("engine.streams", "testing.running"),  # Poplar's `StreamCallback.Result`, and what a test's run gives
}


HOUSE = House(ROOT)  # read where a test asks for it, not where all tests are collected


def test_every_module_has_a_floor():
    assert [module for module in HOUSE.modules if room(module) is None] == []
    assert [name for name in FLOOR if not any(module == name or module.startswith(f"{name}.") for module in HOUSE.modules)] == []


def test_every_import_goes_down():
    upwards = {
        (module, target)
        for module, target, _ in HOUSE.arrows
        if room(module) != room(target) and FLOOR[room(module)] <= FLOOR[room(target)]
    }
    assert sorted(upwards - LATE) == []


def test_what_is_imported_late_is_not_imported_with_its_module():
    for module, target in LATE:
        top = {ast.unparse(node) for node in ast.parse(HOUSE.modules[module].read_text(encoding="utf-8")).body}
        assert any((module, target, False) == arrow for arrow in HOUSE.arrows)
        assert not any(f"from pypoplar.{target} import" in text for text in top if text.startswith("from"))


def test_no_modules_import_each_other_in_a_circle():
    """But for types within a room, which may name each other."""
    below = defaultdict(set)
    for module, target, typing_only in HOUSE.arrows:
        if (module, target) not in LATE and not (typing_only and room(module) == room(target)):
            below[module].add(target)
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_no_package_is_crowded():
    sizes = Counter(path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if "_resources" not in path.parts)
    assert {package: size for package, size in sizes.items() if size > MODULES_OF_A_PACKAGE} == {}


def test_no_name_of_a_module_is_there_twice():
    places = defaultdict(list)
    for module, path in HOUSE.modules.items():
        if path.stem not in ("__init__", "__main__") and module.split(".")[0] not in (*LIBRARIES, *COMPATIBLE):
            places[path.stem].append(module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def test_no_name_of_a_class_is_there_twice():
    places = defaultdict(list)
    for name, module in HOUSE.classes:
        places[name].append(module)
    assert {name: tuple(sorted(modules)) for name, modules in places.items() if len(modules) > 1} == SHARED_NAMES


def test_a_word_has_one_meaning_as_a_function():
    places = defaultdict(list)
    for module, path in HOUSE.modules.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                places[node.name].append(module)
    assert {name: places[name] for name in ONE_MEANING if len(places[name]) > 1} == {}


def test_a_word_names_one_room():
    paths = [path for path in ROOT.rglob("*.py") if "_resources" not in path.parts]
    names = Counter(path.parent.name if path.name == "__init__.py" else path.stem for path in paths)
    assert {word: names[word] for word in ONE_ROOM} == dict.fromkeys(ONE_ROOM, 1)
