"""Data loaders: batches as large as a run takes, the same samples in the same order in every mode, nothing left behind."""

import gc
import logging
import multiprocessing
import subprocess
import sys
import threading
import time
from collections import namedtuple

import pytest
import torch
from torch.utils.data import BatchSampler, IterableDataset, SequentialSampler, TensorDataset

import pypoplar.poptorch as poptorch
from pypoplar.errors import ApplicationRuntimeError, InvalidOption, MissingFeature, PoplarTypeError, TensorShapeError
from pypoplar.poptorch import AsynchronousDataAccessor, DataLoader, DataLoaderMode

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")  # more processes than processors, where there are few

MODES = list(DataLoaderMode)
ASYNC = [DataLoaderMode.Async, DataLoaderMode.AsyncRebatched]


def left_behind():
    threads = [thread for thread in threading.enumerate() if thread.name == "poptorch data"]
    return [*threads, *multiprocessing.active_children()]


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    yield
    if left_behind():
        gc.collect()  # an error may hold what a test has made
    assert left_behind() == []


def options(iterations=1, accumulation=1):
    made = poptorch.Options().deviceIterations(iterations)
    made.Training.gradientAccumulation(accumulation)
    return made


def numbers(count):
    """A data set of `count` samples: a number, and a row of three times it."""
    values = torch.arange(count, dtype=torch.float32)
    return TensorDataset(values, values[:, None].expand(-1, 3).clone())


class Counting(IterableDataset):
    """The numbers below `count`, each from one of the loading processes."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        return iter(torch.arange(self.count)[first::step].clone())


def of_own_share(_):
    """A worker_init_fn of data sets that ask which samples are theirs."""


def lists(loader):
    return [batch[0].tolist() for batch in loader]


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_is_what_a_run_takes(mode):
    with DataLoader(options(2, 3), numbers(50), batch_size=4, mode=mode) as loader:
        assert loader.combinedBatchSize == 24
        assert len(loader) == 2
        batches = list(loader)
        assert [tuple(column.shape) for column in batches[0]] == [(24,), (24, 3)]
        assert torch.cat([batch[0] for batch in batches]).tolist() == list(range(48))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("drop_last", [True, False])
def test_samples_and_their_order_are_pytorchs(mode, drop_last):
    generator = torch.Generator().manual_seed(3)
    expected = torch.utils.data.DataLoader(numbers(23), batch_size=5, shuffle=True, drop_last=drop_last, generator=generator)
    generator = torch.Generator().manual_seed(3)
    with DataLoader(
        options(5), numbers(23), shuffle=True, drop_last=drop_last, mode=mode, generator=generator, rebatched_worker_size=2
    ) as loader:
        assert len(loader) == len(expected) == (4 if drop_last else 5)
        assert [lists(loader) for _ in range(3)] == [lists(expected) for _ in range(3)]


@pytest.mark.parametrize("mode", MODES)
def test_the_global_seed_decides_the_order_whatever_is_drawn_beside(mode):
    torch.manual_seed(5)
    expected = torch.utils.data.DataLoader(numbers(12), batch_size=2, shuffle=True)
    orders = [lists(expected), torch.rand(3).tolist(), lists(expected)]
    torch.manual_seed(5)
    with DataLoader(options(), numbers(12), batch_size=2, shuffle=True, mode=mode) as loader:
        assert [lists(loader), torch.rand(3).tolist(), lists(loader)] == orders


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("drop_last", [True, False])
def test_iterable_data_sets(mode, drop_last):
    with DataLoader(options(3), Counting(11), batch_size=1, drop_last=drop_last, mode=mode) as loader:
        batches = [batch.tolist() for batch in loader]
        assert batches == [[0, 1, 2], [3, 4, 5], [6, 7, 8], *([] if drop_last else [[9, 10]])]


def test_remainders_of_several_processes_are_put_together():
    def samples(mode, **others):
        with DataLoader(
            options(), Counting(26), batch_size=4, num_workers=3, mode=mode, worker_init_fn=of_own_share, **others
        ) as made:
            assert made.persistent_workers
            return [sorted(batch.tolist()) for _ in range(2) for batch in made]

    assert len(samples(DataLoaderMode.Async)) == 2 * 6  # 2 of each process
    for size in (None, 3):
        batches = samples(DataLoaderMode.AsyncRebatched, rebatched_worker_size=size)
        assert len(batches) == 2 * 6
    batches = samples(DataLoaderMode.AsyncRebatched, drop_last=False)[:7]
    assert sorted(sample for batch in batches for sample in batch) == list(range(26))
    assert [len(batch) for batch in batches] == [4] * 6 + [2]


@pytest.mark.parametrize("mode", MODES)
def test_processes_load_the_same_samples_in_the_same_order(mode):
    with DataLoader(options(2), numbers(14), batch_size=2, num_workers=2, mode=mode) as loader:
        assert lists(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
        next(iter(loader))
        assert lists(loader)[0] == [0, 1, 2, 3]


@pytest.mark.parametrize("mode", MODES)
def test_a_sampler_of_batches_is_put_together(mode):
    sampler = BatchSampler(SequentialSampler(range(22)), 4, drop_last=False)
    with DataLoader(options(2), numbers(22), batch_sampler=sampler, mode=mode) as loader:
        assert loader.combinedBatchSize == 8
        assert lists(loader) == [list(range(8)), list(range(8, 16)), list(range(16, 22))]  # three pairs, the last one smaller
        assert len(loader) == 3
    with DataLoader(options(4), numbers(22), batch_sampler=sampler, mode=mode, drop_last=False) as loader:
        assert [len(batch) for batch in lists(loader)] == [16, 6]
        assert len(loader) == 2
    with DataLoader(options(4), numbers(22), batch_sampler=sampler, mode=mode) as loader:
        assert [len(batch) for batch in lists(loader)] == [16]


@pytest.mark.parametrize("mode", [DataLoaderMode.Sync, DataLoaderMode.Async])
def test_a_data_set_that_gives_batches(mode):
    given = [torch.full((8, 2), float(index)) for index in range(3)]
    with DataLoader(options(4), given, batch_size=None, mode=mode) as loader:
        assert loader.combinedBatchSize is None
        assert all(torch.equal(*pair) for pair in zip(loader, given, strict=True))


Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize("mode", MODES)
def test_batches_are_made_of_what_samples_are(mode):
    samples = [{"a": torch.tensor(index), "b": Pair(torch.zeros(2), torch.ones(3))} for index in range(5)]
    with DataLoader(options(2), samples, mode=mode, rebatched_worker_size=1) as loader:
        first, second = loader
    assert first["a"].tolist() == [0, 1]
    assert second["b"].right.shape == (2, 3)
    assert isinstance(second["b"], Pair)


@pytest.mark.parametrize("mode", MODES)
def test_an_iteration_can_be_given_up_and_begun_again(mode):
    with DataLoader(options(), numbers(40), batch_size=2, mode=mode) as loader:
        for _ in range(3):
            for batch in loader:
                if batch[0][0] == 8:
                    break
        assert lists(loader) == [[index, index + 1] for index in range(0, 40, 2)]


def test_an_iteration_goes_on_until_another_begins():
    with DataLoader(options(), numbers(6), mode=DataLoaderMode.Async) as loader:
        first = iter(loader)
        assert len(first) == 6
        assert next(first)[0] == 0
        assert [int(batch[0]) for batch in first] == [1, 2, 3, 4, 5]
        second = iter(loader)
        with pytest.raises(ApplicationRuntimeError, match="another iteration was begun"):
            next(first)
        assert next(second)[0] == 0


@pytest.mark.parametrize("persistent", [True, False])
def test_processes_end_with_their_loader(persistent):
    with DataLoader(options(), numbers(40), num_workers=1, persistent_workers=persistent) as loader:
        kept = iter(loader)
        next(kept)
        assert multiprocessing.active_children()
    assert left_behind() == []


@pytest.mark.parametrize("mode", MODES)
def test_a_sampler_decides_how_many_there_are(mode):
    with DataLoader(options(2), numbers(9), sampler=[4, 2, 0, 8, 1, 3], mode=mode, drop_last=False) as loader:
        assert lists(loader) == [[4, 2], [0, 8], [1, 3]]
        assert len(loader) == 3


def test_elements_are_the_callers_to_keep():
    with DataLoader(options(), numbers(12), batch_size=2, mode=DataLoaderMode.Async) as loader:
        kept = [batch[0] for batch in loader]
    assert torch.cat(kept).tolist() == list(range(12))


class Fetched:
    """Says which of its elements have been fetched, and by whom."""

    def __init__(self, count, wrong=None):
        self.count, self.wrong, self.fetched, self.threads = count, wrong, [], set()

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index == self.wrong:
            raise LookupError(f"sample {index} is gone")
        self.fetched.append(index)
        self.threads.add(threading.current_thread().name)
        return torch.tensor(index)


def wait_for(true):
    while not true():
        time.sleep(0.001)


def test_elements_are_fetched_ahead_as_many_as_the_buffer_has(stopwatch):
    dataset = Fetched(20)
    with AsynchronousDataAccessor(dataset, buffer_size=4) as accessor:
        assert dataset.fetched == []
        assert len(accessor) == 20
        elements = iter(accessor)
        wait_for(lambda: len(dataset.fetched) == 4)
        assert next(elements) == 0
        wait_for(lambda: len(dataset.fetched) == 5)
        time.sleep(0.02)
        assert len(dataset.fetched) == 5
        assert [int(element) for element in elements] == list(range(1, 20))
    assert dataset.threads == {"MainThread", "poptorch data"}


def test_the_first_iteration_can_begin_early(stopwatch):
    dataset = Fetched(6)
    with AsynchronousDataAccessor(dataset, early_preload=True) as accessor:
        wait_for(lambda: len(dataset.fetched) == 3)
        assert [int(element) for element in accessor] == list(range(6))
        assert dataset.fetched == list(range(6))
        assert [int(element) for element in accessor] == list(range(6))


@pytest.mark.parametrize("wrong", [0, 3])
def test_an_error_in_a_data_set_is_raised_where_its_element_is_asked_for(wrong):
    with DataLoader(options(), Fetched(6, wrong), mode=DataLoaderMode.Async) as loader:
        taken = []
        with pytest.raises(LookupError, match=f"sample {wrong} is gone"):
            taken += map(int, loader)
        with pytest.raises(LookupError):
            list(loader)


def test_accessors_of_what_can_be_iterated():
    def endless():
        yield from iter(lambda: torch.zeros(2), None)

    with AsynchronousDataAccessor([1, "two"]) as accessor:
        assert list(accessor) == [1, "two"]
    with AsynchronousDataAccessor(endless()) as accessor:
        assert next(iter(accessor)).shape == (2,)
    with AsynchronousDataAccessor(DataLoader(options(3), numbers(7)), rebatched_size=2) as accessor:
        assert [batch[0].tolist() for batch in accessor] == [[0, 1], [2, 3], [4, 5]]
    plain = torch.utils.data.DataLoader(numbers(7), batch_size=3)
    with AsynchronousDataAccessor(plain, rebatched_size=2) as accessor:
        assert lists(accessor) == [[0, 1], [2, 3], [4, 5]]
    assert list(AsynchronousDataAccessor([])) == []


def test_whether_gradients_are_recorded_is_the_callers_choice():
    weights = torch.ones(2, requires_grad=True)
    made = (weights * index for index in range(9))
    with torch.no_grad(), AsynchronousDataAccessor(made) as accessor:
        assert not any(element.requires_grad for element in accessor)


def test_what_is_terminated_cannot_go_on():
    loader = DataLoader(options(), numbers(40), mode=DataLoaderMode.Async)
    batches = iter(loader)
    next(batches)
    loader.terminate()
    assert left_behind() == []
    loader.terminate()
    with pytest.raises(ApplicationRuntimeError, match="it was terminated in the middle of this iteration"):
        next(batches)
    with pytest.raises(ApplicationRuntimeError, match="cannot be iterated over again"):
        iter(loader)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("mode", MODES)
def test_a_loader_that_is_dropped_leaves_nothing(mode, workers):
    for _ in DataLoader(options(), numbers(40), mode=mode, num_workers=workers):
        break


SCRIPT = """
import torch
import pypoplar.poptorch as poptorch
from torch.utils.data import TensorDataset
kept = []
for workers in (0, 2):
    for mode in poptorch.DataLoaderMode:
        loader = poptorch.DataLoader(poptorch.Options(), TensorDataset(torch.arange(1000)), num_workers=workers, mode=mode)
        kept.append((loader, iter(loader)))
        next(kept[-1][1])
print("done")
raise SystemExit(3)
"""


def test_a_program_that_ends_in_the_middle_says_nothing():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:This DataLoader", "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 3)


def test_the_options_are_taken():
    made = options(2)
    with DataLoader(made, numbers(8)) as loader:
        assert loader.options is made
    with pytest.raises(AttributeError, match="a model or data loader has them already"):
        made.deviceIterations(3)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: DataLoader(numbers(4), options()), PoplarTypeError, r"the first argument is poptorch\.Options\(\)"),
        (lambda: DataLoader(options(), 7), PoplarTypeError, "the second argument is a data set of PyTorch's, got 7"),
        (lambda: DataLoader(options(), numbers(4), batch_size=0), InvalidOption, "batch_size takes a whole number of at least 1"),
        (lambda: DataLoader(options(), numbers(4), num_workers=-1), InvalidOption, "num_workers takes a whole number"),
        (lambda: DataLoader(options(), numbers(4), mode=1), PoplarTypeError, "mode takes one of poptorch's DataLoaderMode.Sync"),
        (
            lambda: DataLoader(options(), numbers(4), async_options={"buffersize": 2}),
            InvalidOption,
            "async_options has no 'buffersize'; did you mean 'buffer_size'",
        ),
        (lambda: DataLoader(options(), numbers(4), async_options={"rebatched_size": 2}), InvalidOption, "has no rebatched_size"),
        (lambda: DataLoader(options(), numbers(4), async_options=3), PoplarTypeError, "async_options is a dict"),
        (
            lambda: DataLoader(options(), numbers(4), batch_size=2, mode=DataLoaderMode.AsyncRebatched, rebatched_worker_size=3),
            InvalidOption,
            "rebatched_worker_size takes a whole number between 1 and 2, got 3",
        ),
        (lambda: DataLoader(options(), numbers(4), batch_sampler=[[0]], shuffle=True), InvalidOption, "leave out batch_size"),
        (lambda: DataLoader(options(), numbers(4), batch_sampler=3), PoplarTypeError, "batch_sampler gives lists"),
        (
            lambda: DataLoader(options(), numbers(4), batch_size=None, mode=DataLoaderMode.AsyncRebatched),
            InvalidOption,
            "takes a batch_size",
        ),
        (lambda: DataLoader(options(), numbers(4), unknown=3), TypeError, "unknown"),
        (lambda: DataLoader(options(), Counting(4), shuffle=True), ValueError, "shuffle"),
        (lambda: AsynchronousDataAccessor(3), PoplarTypeError, "takes a data set or what else can be iterated, got 3"),
        (lambda: AsynchronousDataAccessor([1], buffer_size=0), InvalidOption, "buffer_size takes a whole number of at least 1"),
        (
            lambda: AsynchronousDataAccessor([1], rebatched_size=1),
            InvalidOption,
            "rebatched_size takes a whole number of at least 2",
        ),
        (lambda: AsynchronousDataAccessor([1], miss_sleep_time_in_ms=-1), InvalidOption, "is at least 0, got -1"),
        (lambda: AsynchronousDataAccessor([1], sharing_strategy=3), PoplarTypeError, "takes one of poptorch's SharingStrategy"),
        (
            lambda: AsynchronousDataAccessor(DataLoader(options(), numbers(4), mode=DataLoaderMode.Async)),
            InvalidOption,
            "fetches ahead by itself",
        ),
        (lambda: list(AsynchronousDataAccessor(["a"], rebatched_size=2)), PoplarTypeError, "got 'a'"),
        (
            lambda: list(AsynchronousDataAccessor([(torch.ones(2), torch.ones(3))], rebatched_size=2)),
            TensorShapeError,
            r"as many samples each, got \[2, 3\]",
        ),
        (
            lambda: list(AsynchronousDataAccessor([torch.ones(1, 2), torch.ones(1, 3)], rebatched_size=2)),
            TensorShapeError,
            r"different shapes: \[2\] and \[3\]",
        ),
        (
            lambda: list(AsynchronousDataAccessor([torch.ones(1), [torch.ones(1)]], rebatched_size=2)),
            PoplarTypeError,
            "differ in what they are made of",
        ),
    ],
)
def test_arguments_that_make_no_sense(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_several_processes_of_a_model_are_refused(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    with pytest.raises(MissingFeature, match="names 2 processes"):
        DataLoader(poptorch.Options(), numbers(4))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DataLoader(options(8), numbers(6)), "there is no batch: 6 samples are fewer than the 8 that a run takes"),
        (lambda: DataLoader(options(4), numbers(6), drop_last=False), "the last batch has 2 of 4 samples"),
        (
            lambda: DataLoader(options(2), numbers(3), batch_sampler=[[0], [1], [2]], drop_last=False),
            "the last batch has 1 of 2 batches of the batch_sampler",
        ),
        (
            lambda: DataLoader(options(), Counting(4), num_workers=2),
            "num_workers=2 without a worker_init_fn: each process gives all samples",
        ),
        (lambda: AsynchronousDataAccessor([1], miss_sleep_time_in_ms=3), "miss_sleep_time_in_ms changes nothing"),
        (lambda: AsynchronousDataAccessor([1], sharing_strategy=poptorch.SharingStrategy.Fork), "sharing_strategy changes nothing"),
    ],
)
def test_what_pytorch_does_silently_is_told(make, message, caplog):
    make()
    assert message in caplog.text
    assert len(caplog.records) == 1


def test_what_a_mode_does_not_take_is_told(caplog):
    with caplog.at_level(logging.WARNING, "poptorch"):
        DataLoader(options(), numbers(4), 2, async_options={"buffer_size": 2}, rebatched_worker_size=1)
    said = "".join(caplog.messages)
    assert "async_options change nothing" in said
    assert "rebatched_worker_size changes nothing" in said


def test_processes_that_a_program_numbers_share_a_data_set_and_no_model():
    rows = []
    for process in range(3):
        options = poptorch.Options().randomSeed(4)
        options.Distributed.configureProcessId(process, 3)
        loader = poptorch.DataLoader(options, [torch.tensor(number) for number in range(60)], batch_size=5, shuffle=True)
        rows.append([int(row) for batch in loader for row in batch])
        assert len(rows[-1]) == 20
        with pytest.raises(MissingFeature, match="a model that 3 processes share is started with poprun"):
            poptorch.inferenceModel(torch.nn.ReLU(), options)
    assert sorted(row for of_process in rows for row in of_process) == list(range(60))


def test_a_process_that_a_program_numbers_has_one_stretch_of_a_data_set():
    found = []
    for process in range(3):
        options = poptorch.Options().deviceIterations(2)
        options.Distributed.configureProcessId(process, 3)
        loaders = [DataLoader(options, numbers(50), batch_size=4, drop_last=drop_last) for drop_last in (True, False)]
        loaders.append(DataLoader(options, numbers(50), batch_sampler=BatchSampler(SequentialSampler(range(50)), 4, False)))
        found.append([[row for batch in loader for row in batch[0].flatten().tolist()] for loader in loaders])
        assert loaders[0].combinedBatchSize == 8
        assert [len(loader) for loader in loaders[:2]] == [2, 2 if process < 2 else 3]
    assert [one[0] for one in found] == [list(range(begin, begin + 16)) for begin in (0, 16, 32)]
    assert [row for one in found for row in one[1]] == list(range(50))
    assert [one[2] for one in found] == [list(range(begin, begin + 16)) for begin in (0, 16, 32)]
