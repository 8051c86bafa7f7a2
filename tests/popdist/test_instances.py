"""Two instances by poprun: collectives, reports, and rows of a DataLoader."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_launching import environment, require_mpi

from pypoplar.poprun.launchers import MPICH

HERE = Path(__file__).parent


def start(instances, *program, options=(), given=""):
    numbers = ["--num-replicas", "4", "--num-instances", str(instances)]
    options = [*numbers, "--allow-run-as-root", "yes", "--tag-output", "no", *options]
    command = [sys.executable, "-m", "pypoplar.poprun", *options, sys.executable, *map(str, program)]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=300, check=False, input=given)


def run(instances, *program):
    done = start(instances, *program)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_instances_have_collectives_and_one_report():
    require_mpi()
    told = run(2, HERE / "instance_program.py").strip()
    assert told.startswith("3 [[0, 7], [1, 7]] 10 first [")
    cycles = json.loads(told[told.rindex("[") :])
    assert cycles[: len(cycles) // 2] == cycles[len(cycles) // 2 :]
    assert sum(cycles) > 0


@pytest.mark.slow
def test_the_first_instance_has_the_input_and_the_others_its_end():
    require_mpi()
    done = start(2, "-c", "import sys; sys.stdout.write(repr(sys.stdin.read()) + chr(10))", given="hello")
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["''", "'hello'"])


@pytest.mark.slow
def test_hosts_have_instances_in_their_order():
    require_mpi(MPICH)  # whose launcher can be told that all hosts are this one
    numbers = "[popdist.getInstanceIndex(), popdist.getLocalInstanceIndex()]"
    told = f"from pypoplar import popdist; print(popdist.allGather({numbers}).tolist())"
    done = start(4, "-c", told, options=["--host", "first,second", "--mpi-global-args=-launcher fork"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[[0, 0], [1, 1], [2, 0], [3, 1]]"] * 4


@pytest.mark.slow
def test_a_model_of_two_instances_trains_as_in_one_process_to_the_bit():
    pytest.importorskip("torch")
    require_mpi()
    script = ("-m", "pypoplar.poptorch", HERE / "training_program.py")
    together = run(2, *script).splitlines()
    (alone,) = run(1, *script).splitlines()
    assert len(together) == 2
    joined = [json.loads(line) for line in sorted(together)]
    expected = json.loads(alone)
    assert joined[0]["weights"] == joined[1]["weights"] == expected["weights"]
    for step, (rows, losses) in enumerate(zip(expected["rows"], expected["losses"], strict=True)):
        assert sorted(joined[0]["rows"][step] + joined[1]["rows"][step]) == sorted(rows)
        assert sorted(joined[0]["losses"][step] + joined[1]["losses"][step]) == sorted(losses)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "what"),
    [("weight", "parameter 'linear.weight'"), ("rate", "the optimizer's"), ("later", "parameter 'linear.bias'"), ("again", "")],
)
def test_weights_that_are_not_those_of_the_first_instance_are_named(way, what):
    pytest.importorskip("torch")
    require_mpi()
    done = start(2, "-m", "pypoplar.poptorch", HERE / "training_program.py", way)
    assert (done.returncode == 0) == (not what), done.stderr
    if what:
        (line,) = [line for line in done.stderr.splitlines() if "Error: " in line]
        assert f"ApplicationRuntimeError: {what}" in line
        assert "is not the same on instance 1 (replicas 2 to 3) as on instance 0 (replicas 0 to 1)" in line


GIVEN = "ApplicationRuntimeError: instance 0 (replicas 0 to 1) has called popdist."
CALLED = {
    "shapes": (GIVEN, "allReduceSum of float64 [2] [", "popdist.allReduceSum of float64 [3] [", "one shape, type and root"),
    "types": (GIVEN, "allGather of int32 [2] [", "popdist.allGather of float32 [2] ["),
    "number and array": (GIVEN, "allReduceSum of int64 [] [", "popdist.allReduceSum of int64 [1] ["),
    "roots": (GIVEN, "broadcast of int64 [] from instance 0 [", "popdist.broadcast of int64 [] from instance 1 ["),
    "calls": ("has come to popdist.synchronize [", "instance 1 (replicas 2 to 3) to popdist.allGather of int64 [] ["),
    "communicators": (GIVEN, "allReduceSum of int64 [] [", "popdist.allReduceSum of int64 [] in communicator 1 ["),
    "members": (
        "InvalidOption: popdist.registerCommunicator: instance 0 (replicas 0 to 1) has registered [0] as 2, and instance 1",
    ),
    "replicas": ("InvalidOption: the graph has 8 replicas, and 4 were started by poprun",),
}


def test_instances_that_call_different_things_are_told_both_and_can_go_on():
    require_mpi()
    told = {}
    for line in run(2, HERE / "mistaken_program.py").splitlines():
        name, instance, text = line.split("|", 2)
        told[name, int(instance)] = text
    assert sorted(told) == sorted((name, instance) for name in CALLED for instance in range(2))
    for (name, _), text in told.items():
        assert [part for part in CALLED[name] if part not in text] == []
