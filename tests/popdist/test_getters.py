"""What an instance is told of itself: each getter by its variable, and where nothing is set."""

import pytest

from pypoplar import popdist
from pypoplar.engine.processes import instance_environment
from pypoplar.engine.processes.shares import Shares
from pypoplar.errors import InvalidOption, PoplarIndexError, PoplarTypeError

GETTERS = {
    "POPDIST_NUM_TOTAL_REPLICAS": popdist.getNumTotalReplicas,
    "POPDIST_NUM_LOCAL_REPLICAS": popdist.getNumLocalReplicas,
    "POPDIST_NUM_IPUS_PER_REPLICA": popdist.getNumIpusPerReplica,
    "POPDIST_REPLICA_INDEX_OFFSET": popdist.getReplicaIndexOffset,
    "POPDIST_LOCAL_INSTANCE_INDEX": popdist.getLocalInstanceIndex,
}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for variable in instance_environment.VARIABLES:
        monkeypatch.delenv(variable.name, raising=False)


def instance(monkeypatch, total, local, offset, ipus=1):
    monkeypatch.setenv("POPDIST_NUM_TOTAL_REPLICAS", str(total))
    monkeypatch.setenv("POPDIST_NUM_LOCAL_REPLICAS", str(local))
    monkeypatch.setenv("POPDIST_REPLICA_INDEX_OFFSET", str(offset))
    monkeypatch.setenv("POPDIST_NUM_IPUS_PER_REPLICA", str(ipus))


@pytest.mark.parametrize("variable", instance_environment.VARIABLES, ids=lambda variable: variable.name)
def test_a_getter_gives_its_variable_and_its_default(variable, monkeypatch):
    get = GETTERS.get(variable.name, variable.value)
    assert get() == variable.default
    monkeypatch.setenv(variable.name, "3")
    assert get() == 3
    for wrong in ("x", "-1", "1.5"):
        monkeypatch.setenv(variable.name, wrong)
        with pytest.raises(InvalidOption, match=variable.name):
            get()


def test_alone_there_is_one_instance_which_is_the_first():
    assert (popdist.getNumInstances(), popdist.getInstanceIndex(), popdist.isPopdistEnvSet()) == (1, 0, False)
    assert popdist.getDeviceId() == 0
    assert popdist.getDeviceId(2) == 64
    popdist.checkNumIpusPerReplica(4)


def test_an_instance_knows_its_number_and_its_device(monkeypatch):
    instance(monkeypatch, 8, 2, 4)
    assert (popdist.getNumInstances(), popdist.getInstanceIndex(), popdist.isPopdistEnvSet()) == (4, 2, True)
    assert popdist.getDeviceId() == 64 + 2
    assert popdist.getDeviceId(2) == 64 + 32 + 2
    with pytest.raises(InvalidOption, match="power of two"):
        popdist.getDeviceId(3)
    popdist.checkNumIpusPerReplica(1)
    with pytest.raises(InvalidOption, match="takes 2 IPUs, and poprun was told --ipus-per-replica 1"):
        popdist.checkNumIpusPerReplica(2)
    monkeypatch.setenv("POPDIST_UNIFORM_REPLICAS_PER_INSTANCE", "0")
    with pytest.raises(InvalidOption, match="different numbers of replicas"):
        popdist.getNumInstances()


def test_numbers_that_do_not_fit_together_are_refused(monkeypatch):
    instance(monkeypatch, 8, 3, 0)
    with pytest.raises(InvalidOption, match="do not fit together"):
        popdist.getInstanceIndex()


def test_collectives_of_one_instance_give_what_it_has():
    popdist.init()
    assert popdist.isBackendInitialized()
    assert popdist.allReduceSum(3) == 3
    assert popdist.allGather([1, 2]).tolist() == [[1, 2]]
    assert popdist.broadcast(2.5) == 2.5
    popdist.synchronize()
    assert popdist.execute_on_instances([0], max, 1, 2) == 2
    assert popdist.execute_on_instances(set(), max, 1, 2) is None
    popdist.finalizeBackend()
    assert not popdist.isBackendInitialized()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: popdist.broadcast(1, root=1), PoplarIndexError, "root 1 is none of"),
        (lambda: popdist.allReduceSum("text"), PoplarTypeError, "array of numbers"),
        (lambda: popdist.allGather(1, communicatorId=5), PoplarIndexError, "no communicator 5"),
        (lambda: popdist.execute_on_instances([1], max), PoplarIndexError, "instance 1 is out of range"),
        (lambda: popdist.execute_on_instances([0], 3), PoplarTypeError, "func is a function"),
        (lambda: popdist.execute_on_instances("0", max), PoplarTypeError, "numbers of instances"),
        (lambda: popdist.registerCommunicator([0], 0), InvalidOption, "from 1 on"),
        (lambda: popdist.registerCommunicator([], 1), InvalidOption, "at least one"),
        (lambda: popdist.checkNumIpusPerReplica(True), PoplarTypeError, "whole number"),
        (lambda: popdist.getReport(None), PoplarTypeError, "takes an Engine"),
    ],
)
def test_what_is_no_argument_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_processes_have_equal_shares_which_messages_name():
    shares = Shares.of(8, 4)
    assert [list(shares.of_process(process)) for process in (0, 3)] == [[0, 1], [6, 7]]
    assert [shares.holder(replica) for replica in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert shares.of_replica(7) == "instance 3 (replicas 6 to 7)"
    assert Shares.of(4, 4).name(2) == "instance 2 (replica 2)"
    with pytest.raises(InvalidOption, match="16 replicas cannot be shared by 3 processes"):
        Shares.of(16, 3)
