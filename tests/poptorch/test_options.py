"""Options: all of PopTorch's are known, checked at the call, copied, compared and printed, and those that do nothing say so."""

import copy
import logging
import pickle
import re

import pytest
import torch

import pypoplar.poptorch as poptorch
from pypoplar.errors import FileLoadError, InvalidOption, MissingFeature, PoplarError, PoplarTypeError
from pypoplar.poptorch import user_log
from pypoplar.poptorch.options.option_table import OPTION_TABLE, Effect
from pypoplar.poptorch.options.popart_table import CHECKS, MEANINGS, REFUSED

PUBLIC = {  # of PopTorch's classes
    "": "TensorLocations Distributed Jit Precision Training _Popart anchorTensor appendToLocationExcludes autoRoundNumIPUs "
    "broadcastBuffers clone connectionType defaultOutputMode deviceIterations disableModuleNamescope enableExecutableCaching "
    "enableProfiling enableStableNorm enableSyntheticData from_json inputReplicaGrouping loadFromFile logCycleCount logDir "
    "maxRepeatLogs modelName outputMode randomSeed relaxOptimizerAttributesChecks replicationFactor setAvailableMemoryProportion "
    "setExecutionStrategy showCompilationProgressBar sourceLocationExcludes syncPattern toDict updatableNamedBuffers useIpuId "
    "useIpuModel useOfflineIpuTarget set createOrSet exists deleteIfExists checkIsFrozen update",
    "Training": "accumulationAndReplicationReductionType gradientAccumulation setAutomaticLossScaling setConvolutionDithering "
    "setMeanAccumulationAndReplicationReductionStrategy",
    "Precision": "enableFloatingPointExceptions enableStochasticRounding halfFloatCasting runningStatisticsAlwaysFloat "
    "setPartialsType",
    "TensorLocations": "numIOTiles setAccumulatorLocation setActivationLocation setOptimizerLocation setWeightLocation",
    "Distributed": "configureProcessId disable numProcesses processId setEnvVarNames",
    "Jit": "traceModel",
    "_Popart": "checkIsFrozen options set setEngineOptions setPatterns",
}
OFF_CHIP = poptorch.TensorLocationSettings().useOnChipStorage(False)
CALLS = [  # a call, where its value is read, and the value
    ("deviceIterations(4)", "device_iterations", 4),
    ("outputMode(poptorch.OutputMode.EveryN, 3)", "output_return_period", 3),
    ("outputMode(poptorch.OutputMode.All)", "output_mode", poptorch.OutputMode.All),
    ("randomSeed(7)", "random_seed", 7),
    ("setAvailableMemoryProportion({'IPU0': 0.5, 'IPU12': 1})", "available_memory_proportion", {0: 0.5, 12: 1.0}),
    ("anchorTensor('a', 'x')", "anchored_tensors", {"a": ["x", True, None, 1]}),
    (
        "anchorTensor('a', 'x', poptorch.OutputMode.EveryN, 2)",
        "anchored_tensors",
        {"a": ["x", False, poptorch.OutputMode.EveryN, 2]},
    ),
    ("enableExecutableCaching('kept')", "_Popart.options.cachePath", "kept"),
    ("enableExecutableCaching(None)", "_Popart.options.enableEngineCaching", False),
    ("enableSyntheticData(True)", "_Popart.options.syntheticDataMode", 2),
    ("enableSyntheticData(0)", "_Popart.options.syntheticDataMode", 0),
    ("enableStableNorm(True)", "_Popart.options.enableStableNorm", True),
    ("logCycleCount(True)", "_Popart.options.instrumentWithHardwareCycleCounter", True),
    ("logDir('.')", "log_dir", "."),
    ("modelName('cnn')", "model_name", "cnn"),
    ("autoRoundNumIPUs()", "auto_round_num_ipus", True),
    ("connectionType(poptorch.ConnectionType.OnDemand)", "connection_type", poptorch.ConnectionType.OnDemand),
    ("useOfflineIpuTarget()", "ipu_version", 2),
    ("useOfflineIpuTarget(1)", "connection_type", poptorch.ConnectionType.Never),
    ("useIpuModel(True)", "use_model", True),
    ("replicationFactor(4)", "replication_factor", 4),
    ("broadcastBuffers(False)", "broadcast_buffers", False),
    ("inputReplicaGrouping(4, poptorch.CommGroupType.NoGrouping)", "input_group_size", 1),
    ("broadcastBuffers(True)", "broadcast_buffers", True),
    ("maxRepeatLogs(None)", "max_repeat_logs", 2**64 - 1),
    ("Training.gradientAccumulation(8)", "Training.gradient_accumulation", 8),
    (
        "Training.accumulationAndReplicationReductionType(poptorch.ReductionType.Sum)",
        "Training.accumulation_and_replication_reduction_type",
        poptorch.ReductionType.Sum,
    ),
    (
        "Training.setMeanAccumulationAndReplicationReductionStrategy(poptorch.MeanReductionStrategy.Running)",
        "Training.meanAccumulationAndReplicationReductionStrategy",
        poptorch.MeanReductionStrategy.Running,
    ),
    ("Training.setConvolutionDithering(True)", "_Popart.options.convolutionOptions", {"enableConvDithering": True}),
    ("Training.setAutomaticLossScaling(False)", "_Popart.options.automaticLossScalingSettings.enabled", False),
    ("Precision.setPartialsType(torch.half)", "_Popart.options.partialsTypeMatMuls", "half"),
    ("Precision.setPartialsType(torch.float)", "_Popart.options.convolutionOptions", {"partialsType": "float"}),
    ("Precision.enableStochasticRounding(True)", "_Popart.options.enableStochasticRounding", True),
    ("Precision.enableFloatingPointExceptions(True)", "_Popart.options.enableFloatingPointChecks", True),
    ("Distributed.configureProcessId(0, 1)", "Distributed.numProcesses", 1),
    ("Distributed.configureProcessId(1, 2)", "Distributed.processId", 1),
    ("_Popart.set('enableStableNorm', 1)", "_Popart.options.enableStableNorm", True),
    ("_Popart.setEngineOptions({'opt.useAutoloader': 'true'})", "_Popart.options.engineOptions", {"opt.useAutoloader": "true"}),
    ("_Popart.set('engineOptions', {'opt.useAutoloader': 'true'})", "_Popart.options.engineOptions", {"opt.useAutoloader": "true"}),
]
NOTHING = [
    "logDir('logs')",
    "useIpuId(3)",
    "syncPattern(poptorch.SyncPattern.SinglePipeline)",
    "maxRepeatLogs(2)",
    "relaxOptimizerAttributesChecks()",
    "disableModuleNamescope()",
    "sourceLocationExcludes(['lib'])",
    "appendToLocationExcludes('lib')",
    "updatableNamedBuffers(['mean'])",
    "Precision.halfFloatCasting(poptorch.HalfFloatCastingBehavior.FloatDowncastToHalf)",
    "Precision.runningStatisticsAlwaysFloat(True)",
    "TensorLocations.numIOTiles(32)",
    "TensorLocations.setActivationLocation(OFF_CHIP)",
    "TensorLocations.setOptimizerLocation(OFF_CHIP)",
    "TensorLocations.setAccumulatorLocation(OFF_CHIP)",
    "_Popart.setPatterns({'TiedGather': True})",
    "_Popart.set('dotChecks', ['FINAL'])",
]
REFUSED_CALLS = [
    "useOfflineIpuTarget(21)",
    "_Popart.set('executionPhaseSettings.phases', 2)",
]
MISTAKES = [  # a call and what its error says
    ("deviceIterations(0)", InvalidOption, "Options.deviceIterations takes a whole number of at least 1, got 0"),
    ("deviceIterations(True)", PoplarTypeError, "takes a whole number, got True"),
    ("deviceIterations(2.0)", PoplarTypeError, "takes a whole number, got 2.0"),
    ("deviceIterations(poptorch.OutputMode.All)", PoplarTypeError, "takes a whole number, got <OutputMode"),
    ("outputMode(2)", PoplarTypeError, "takes one of poptorch's OutputMode.Final, .*, got 2"),
    ("outputMode(poptorch.OutputMode.EveryN)", InvalidOption, "EveryN takes an output_return_period"),
    ("outputMode(poptorch.OutputMode.EveryN, 0)", InvalidOption, "output_return_period takes a whole number of at least 1, got 0"),
    ("randomSeed(2**64)", InvalidOption, "between -9223372036854775808 and 18446744073709551615"),
    ("setAvailableMemoryProportion({'0': 0.5})", InvalidOption, "got the key '0'"),
    ("setAvailableMemoryProportion({'IPU0': 1.5})", InvalidOption, "IPU0 takes a number from 0 to 1, got 1.5"),
    ("setAvailableMemoryProportion(0.5)", PoplarTypeError, "takes a dict such as"),
    ("setExecutionStrategy('A')", PoplarTypeError, "takes a strategy such as poptorch.PipelinedExecution"),
    ("logDir('')", InvalidOption, "not empty"),
    ("modelName(3)", PoplarTypeError, "takes a string, got 3"),
    ("useIpuModel(1)", PoplarTypeError, "takes True or False, got 1"),
    ("enableSyntheticData(3)", InvalidOption, "between 0 and 2"),
    ("useOfflineIpuTarget(3)", InvalidOption, "1 for a Mk1 or 2 for a Mk2, got 3"),
    ("inputReplicaGrouping(1, poptorch.CommGroupType.All)", InvalidOption, "takes no CommGroupType.All"),
    ("Training.gradientAccumulation('4')", PoplarTypeError, "Options.Training.gradientAccumulation takes a whole number"),
    (
        "Training.accumulationAndReplicationReductionType(poptorch.ReductionType.NoReduction)",
        InvalidOption,
        "Mean or poptorch.ReductionType.Sum",
    ),
    ("Precision.setPartialsType(torch.double)", InvalidOption, "takes torch.float or torch.half, got torch.float64"),
    ("Precision.setPartialsType('half')", InvalidOption, "got 'half'"),
    ("TensorLocations.numIOTiles(33)", InvalidOption, "must be an even number between 32 and 192., got 33"),
    ("TensorLocations.numIOTiles(16)", InvalidOption, "between 32 and 192"),
    ("TensorLocations.setWeightLocation(True)", PoplarTypeError, "takes poptorch.TensorLocationSettings, got True"),
    ("Distributed.configureProcessId(1, 1)", InvalidOption, "process_id takes a whole number between 0 and 0, got 1"),
    ("Jit.traceModel(True)", InvalidOption, "cannot be traced"),
    ("_Popart.set('enableStableNorms', True)", InvalidOption, "did you mean 'enableStableNorm'"),
    ("_Popart.set('enableOutlining', 'yes')", PoplarTypeError, "takes True or False, got 'yes'"),
    ("_Popart.set('partialsTypeMatMuls', 'double')", InvalidOption, "'float' or 'half'"),
    ("_Popart.set('syntheticDataMode', 3)", InvalidOption, "between 0 and 2"),
    ("_Popart.set('dotChecks', 3)", PoplarTypeError, "takes a dict, a list or a set"),
    ("_Popart.setEngineOptions({'opt.useAutoloaders': 'true'})", InvalidOption, "opt.useAutoloader"),
    ("_Popart.setEngineOptions('opt')", PoplarTypeError, "takes a dict"),
]


def call(options, text):
    return eval(f"options.{text}", {"options": options, "poptorch": poptorch, "torch": torch, "OFF_CHIP": OFF_CHIP})


def value_at(options, path):
    _, dot, key = path.partition("_Popart.options.")
    if dot:
        return options._Popart.options[key]
    for part in path.split("."):
        options = getattr(options, part)
    return options


@pytest.mark.parametrize("group", sorted(PUBLIC))
def test_every_method_of_poptorchs_is_there(group):
    options = getattr(poptorch.Options(), group) if group else poptorch.Options()
    assert [name for name in PUBLIC[group].split() if not hasattr(options, name)] == []


def test_every_option_has_a_row_and_every_row_an_option():
    others = (
        "TensorLocations Distributed Jit Precision Training _Popart clone defaultOutputMode from_json toDict set createOrSet "
        "exists deleteIfExists checkIsFrozen update numProcesses processId options"
    )
    not_options = set(others.split(" "))
    named = {f"{group}.{name}".lstrip(".") for group, names in PUBLIC.items() for name in names.split() if name not in not_options}
    assert {row.name for row in OPTION_TABLE} - {"_Popart.set"} == named


def test_what_the_table_says_of_an_option_is_what_it_does():
    told = {row.name for row in OPTION_TABLE if row.effect is Effect.NOTHING}
    silent = {
        "showCompilationProgressBar",
        "Jit.traceModel",
    }  # the bar that is not wanted is not there; the other value is an error
    assert {text.partition("(")[0] for text in NOTHING} - {"_Popart.set"} == told - silent
    refused = {row.name for row in OPTION_TABLE if row.effect is Effect.REFUSED}
    assert {text.partition("(")[0] for text in REFUSED_CALLS} >= refused - {"Distributed.setEnvVarNames"}


@pytest.mark.parametrize(("text", "path", "expected"), CALLS, ids=[text for text, *_ in CALLS])
def test_an_option_chains_and_its_value_is_read_as_an_attribute(text, path, expected, caplog):
    options = poptorch.Options()
    group = ("_Popart", "Precision", "Training", "Distributed")
    first = text.partition(".")[0]
    owner = getattr(options, first) if first in group else options
    assert call(options, text) is owner
    assert value_at(options, path) == expected
    assert not caplog.records


@pytest.mark.parametrize("text", NOTHING)
def test_what_changes_nothing_is_told_once_and_by_its_name(text, caplog):
    call(poptorch.Options(), text)
    call(poptorch.Options(), text)
    name = text.partition("(")[0]
    assert [record.getMessage().startswith(f"Options.{name}") for record in caplog.records] == [True]
    assert "changes nothing" in caplog.text


@pytest.mark.parametrize("text", REFUSED_CALLS)
def test_what_is_missing_is_refused_and_leaves_the_options_as_they_were(text):
    options = poptorch.Options()
    with pytest.raises(MissingFeature, match="does not have"):
        call(options, text)
    assert options == poptorch.Options()


@pytest.mark.parametrize(("text", "kind", "message"), MISTAKES, ids=[text for text, *_ in MISTAKES])
def test_a_mistake_is_an_error_at_the_call(text, kind, message):
    options = poptorch.Options()
    with pytest.raises(kind, match=message):
        call(options, text)
    assert options == poptorch.Options()


def test_a_misspelt_option_is_an_attribute_error_with_a_hint():
    options = poptorch.Options()
    with pytest.raises(AttributeError, match="Options has no option 'deviceIteration'; did you mean 'deviceIterations'"):
        options.deviceIteration(4)
    with pytest.raises(AttributeError, match=r"Options\.Training has no option 'gradientAcumulation'; did you mean"):
        options.Training.gradientAcumulation(4)
    with pytest.raises(InvalidOption, match="no option 'device_iteration' to set; did you mean 'device_iterations'"):
        options.device_iteration = 4
    with pytest.raises(AttributeError, match="random_seed"):
        options.random_seed


def test_values_are_set_by_their_attributes_too_and_checked():
    options = poptorch.Options()
    options.device_iterations = 5
    options.Training.gradient_accumulation = 3
    assert options("device_iterations") == 5
    assert options.Training.gradient_accumulation == 3
    assert options.exists("device_iterations")
    assert not options.exists("random_seed")
    with pytest.raises(InvalidOption, match="at least 1"):
        options.set(device_iterations=0)


def test_the_seed_is_pytorchs_too():
    poptorch.Options().randomSeed(3)
    first = torch.rand(2)
    poptorch.Options().randomSeed(3)
    assert torch.equal(first, torch.rand(2))


def test_merged_options_of_convolutions_keep_what_was_set_before():
    options = poptorch.Options()
    options.Precision.setPartialsType(torch.half)
    options.Training.setConvolutionDithering(True)
    assert options._Popart.options["convolutionOptions"] == {"partialsType": "half", "enableConvDithering": True}


def test_profiling_is_an_option_of_the_engine_that_the_environment_overrides(monkeypatch, caplog):
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"autoReport.all": "false"}')
    options = poptorch.Options()
    options._Popart.setEngineOptions({"opt.useAutoloader": "true"})
    options.enableProfiling("profiles")
    assert options._Popart.options["engineOptions"] == {
        "opt.useAutoloader": "true",
        "debug.allowOutOfMemory": "true",
        "autoReport.directory": "profiles",
        "autoReport.all": "true",
    }
    assert "POPLAR_ENGINE_OPTIONS overrides it" in caplog.text


@pytest.mark.parametrize(
    "make", [poptorch.Options.clone, copy.copy, copy.deepcopy, lambda options: pickle.loads(pickle.dumps(options))]
)
def test_a_copy_is_equal_and_apart(make):
    options = poptorch.Options().deviceIterations(4).anchorTensor("a", "x")
    options.Training.gradientAccumulation(2)
    options.setExecutionStrategy(poptorch.ShardedExecution(poptorch.Stage("A").ipu(1), "B"))
    other = make(options)
    assert other == options
    assert repr(other) == repr(options)
    other.Training.gradientAccumulation(3)
    other.Precision.enableStochasticRounding(True)
    assert options.Training.gradient_accumulation == 2
    assert "enableStochasticRounding" not in options._Popart.options
    assert other._Popart.options["enableStochasticRounding"] is True
    assert other != options


def test_frozen_options_cannot_change_and_a_clone_of_them_can():
    options = poptorch.Options()
    options._freeze()
    for text, *_ in CALLS:
        with pytest.raises(AttributeError, match="a model or data loader has them already"):
            call(options, text)
    assert options == poptorch.Options()
    assert options.clone().deviceIterations(3).device_iterations == 3


def test_printed_options_have_their_values_and_groups():
    options = poptorch.Options().deviceIterations(3)
    options.Training.gradientAccumulation(9)
    for part in ("device_iterations=3", "Training=TrainingOptions(gradient_accumulation=9", "_Popart=PopartOptions("):
        assert part in repr(options)


def test_several_processes_in_the_environment_are_refused_where_options_are_used(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    options = poptorch.Options()
    assert (options.Distributed.processId, options.Distributed.numProcesses) == (3, 4)
    with pytest.raises(MissingFeature, match=r"4 processes.*Distributed\.disable"):
        options._freeze()
    options.Distributed.disable()
    options._freeze()
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "four")
    with pytest.raises(InvalidOption, match="OMPI_COMM_WORLD_SIZE"):
        poptorch.Options()


def test_options_from_json_and_from_the_environment(monkeypatch):
    expected = poptorch.Options().deviceIterations(2).connectionType(poptorch.ConnectionType.OnDemand)
    expected.Precision.enableFloatingPointExceptions(True)
    expected._Popart.set("enableStableNorm", True)
    text = (
        '{"deviceIterations": 2, "connectionType": "ConnectionType.OnDemand", "Precision.enableFloatingPointExceptions": true, '
        '"_Popart.set": ["enableStableNorm", true]}'
    )
    assert poptorch.Options().from_json(text) == expected
    monkeypatch.setenv("POPTORCH_DEFAULT_OPTIONS", text)
    assert poptorch.Options() == expected
    monkeypatch.setenv("POPTORCH_CACHE_DIR", "kept")
    assert poptorch.Options()._Popart.options["cachePath"] == "kept"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "are an object of names and arguments"),
        ("{", "are an object of names and arguments"),
        ('{"deviceIteration": 1}', "did you mean 'deviceIterations'"),
        ('{"_freeze": []}', "no option '_freeze'"),
        ('{"Training": []}', "'Training' is no option that can be called"),
        ('{"outputMode": "OutputMode.Al"}', "did you mean 'All'"),
        ('{"deviceIterations": [1, 2]}', "deviceIterations: .*positional"),
    ],
)
def test_json_that_is_no_options(text, message, monkeypatch):
    with pytest.raises(PoplarError, match=message):
        poptorch.Options().from_json(text)
    monkeypatch.setenv("POPTORCH_DEFAULT_OPTIONS", text)
    with pytest.raises(PoplarError) as error:
        poptorch.Options()
    assert error.value.__notes__ == ["in the environment variable POPTORCH_DEFAULT_OPTIONS"]


def test_options_from_a_file(tmp_path):
    file = tmp_path / "options.conf"
    file.write_text(
        "deviceIterations(1)\n  setExecutionStrategy(poptorch.ShardedExecution(poptorch.Stage('A').ipu(1), 'B'))\n \n# a comment\n"
        "enableSyntheticData(True) # another\nPrecision.setPartialsType(torch.half)\noutputMode(poptorch.enums.OutputMode.All)\n"
        "TensorLocations.setWeightLocation(poptorch.TensorLocationSettings().useOnChipStorage(True))\n"
    )
    options = poptorch.Options().loadFromFile(file)
    assert options.execution_strategy == poptorch.ShardedExecution(poptorch.Stage("A").ipu(1), "B")
    assert options.output_mode is poptorch.OutputMode.All
    assert options._Popart.options["partialsTypeMatMuls"] == "half"
    file.write_text("deviceIterations(5)")
    assert options.loadFromFile(str(file)).device_iterations == 5


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("outputMode(poptorch.OutputMode.All", poptorch.ConfigFileError, "SyntaxError in line 2 of .*"),
        ("device_iterations = 3", poptorch.ConfigFileError, "SyntaxError in line 2"),
        ("deviceIterations", poptorch.ConfigFileError, "line 2 of .* is no call"),
        ("deviceIterations(3).logDir('a')", poptorch.ConfigFileError, "more than one call"),
        ("outputMode(popart.All)", poptorch.ConfigFileError, "name 'popart' is not defined"),
        ("outputMode(poptorch.OutputModes.All)", poptorch.ConfigFileError, "OutputModes"),
        ("deviceIteration(3)", InvalidOption, "did you mean 'deviceIterations'"),
        ("deviceIterations(0)", InvalidOption, "at least 1"),
    ],
)
def test_a_file_that_is_no_options(line, kind, message, tmp_path):
    file = tmp_path / "options.conf"
    file.write_text(f"logDir('x')\n{line}\n")
    with pytest.raises(kind, match=message) as error:
        poptorch.Options().loadFromFile(file)
    assert isinstance(error.value, poptorch.ConfigFileError) or error.value.__notes__ == [f"in line 2 of {file}"]
    with pytest.raises(FileLoadError, match="no file of options"):
        poptorch.Options().loadFromFile(tmp_path / "missing")


HOSTILE = [
    "torch.os.system('touch {mark}')",
    "torch.os.popen('touch {mark}').read()",
    "torch.hub.os.mkdir('{mark}')",
    "torch.save(1, '{mark}')",
    "torch.load('{mark}')",
    "torch.serialization.os.mkdir('{mark}')",
    "torch.sys.modules['os'].mkdir('{mark}')",
    "poptorch.enums.IntEnum.__init__.__globals__['sys'].modules['os'].mkdir('{mark}')",
    "poptorch.Stage.__init__.__globals__['checks'].os.mkdir('{mark}')",
    "poptorch.Stage('A').__class__",
    "poptorch.Stage('A').ipu.__globals__",
    "poptorch.Stage('A').ipu.__func__(1)",
    "poptorch.Stage('A').__init__('B')",
    "poptorch.Stage('A').__eq__(1)",
    "poptorch.OutputMode.All.__class__.__mro__[-1].__subclasses__()",
    "poptorch.OutputMode.__members__",
    "poptorch.OutputMode.mro",
    "poptorch.OutputMode('All')",
    "poptorch.OutputMode['All']",
    "().__class__.__base__.__subclasses__()",
    "''.join(['a'])",
    "'{{0.__class__}}'.format(1)",
    "f'{{1}}'",
    "__import__('os').mkdir('{mark}')",
    "open('{mark}', 'w')",
    "exec('1')",
    "(lambda: 4)()",
    "[x for x in (1,)]",
    "{{x: 1 for x in (1,)}}",
    "9 ** 9 ** 9 ** 9",
    "[0] * 10 ** 12",
    "1 if True else 2",
    "(a := 4)",
    "True and 4",
    "-True",
    "~4",
    "*[4]",
    "**{{'device_iterations': 4}}",
    "{{**{{}}}}",
    "{{[]: 4}}",
    "{{(1, 2): 4}}",
    "{{1, 2}}",
    "b'4'",
    "4j",
    "...",
    "4 < 5",
    "'abcd'[0]",
    "torch.half.is_floating_point",
    "torch.float8_of_nothing",
    "torch",
    "poptorch.Options()",
    "poptorch.Stage",
    "poptorch.checks",
    "poptorch.Stage(nothing=1)",
    "print(4)",
    "await x",
    "-" * 20_000 + "1",
    "[" * 150 + "]" * 150,
    "[" * 60 + "]" * 60,
    "(" * 5000 + ")" * 5000,
    "poptorch.Stage('A')" + ".ipu(1)" * 200,
    "1" * 10_000,
    "torch" + ".os" * 20_000,
    "'a\x00b'",
    "torch.ｏｓ.mkdir('{mark}')",
]


@pytest.mark.parametrize("expression", HOSTILE, ids=lambda text: text[:40])
@pytest.mark.parametrize("line", ["deviceIterations({})", "setAvailableMemoryProportion({{'IPU0': {}}})", "logDir(dir={})"])
def test_a_hostile_file_executes_nothing_and_is_refused(expression, line, tmp_path):
    """Whatever Python would make of it: only what is listed as a value is one."""
    file, mark = tmp_path / "options.conf", tmp_path / "mark"
    file.write_text("deviceIterations(3)\n" + line.format(expression.format(mark=mark)) + "\n", encoding="utf-8")
    options = poptorch.Options()
    with pytest.raises(poptorch.ConfigFileError, match="line 2 of ") as error:
        options.loadFromFile(file)
    assert "Traceback" not in str(error.value)
    assert not mark.exists()
    assert options.device_iterations == 1


@pytest.mark.parametrize(
    "line",
    [
        "__init__()",
        "_freeze()",
        "clone.__func__.__globals__.clear()",
        "Training.__class__('x')",
        "deviceIterations.__self__.logDir('x')",
        "(deviceIterations)(4).logDir('x')",
        "[deviceIterations][0](4)",
        "import os",
        "loadFromFile('options.conf')",
    ],
)
def test_a_hostile_call_in_a_file_is_refused(line, tmp_path):
    file = tmp_path / "options.conf"
    file.write_text(line)
    with pytest.raises(InvalidOption):
        poptorch.Options().loadFromFile(file)


def test_values_in_files_are_what_python_has(tmp_path):
    file = tmp_path / "options.conf"
    file.write_text(
        "_Popart.set('rtol', -1)\n"
        "set(a=[1, (2.5, None), {'b': True, -1: 'x' 'y'}], c=poptorch.enums.Liveness.AlwaysLive, d=torch.float16)\n"
    )
    from pypoplar.poptorch.options.config_file import read_calls

    first, second = read_calls(str(file))
    assert first.arguments == ["rtol", -1]
    assert second.keywords == {
        "a": [1, (2.5, None), {"b": True, -1: "xy"}],
        "c": poptorch.enums.Liveness.AlwaysLive,
        "d": torch.float16,
    }


def test_the_options_of_popart_that_mean_something_are_known():
    assert {*MEANINGS, *REFUSED} <= CHECKS.keys()
    for key, (fine, _) in REFUSED.items():
        poptorch.Options()._Popart.set(key, fine)
        other = (not fine) if isinstance(fine, bool) else fine + 2
        with pytest.raises(MissingFeature):
            poptorch.Options()._Popart.set(key, other)


def test_false_for_the_ipu_model_is_told(caplog):
    poptorch.Options().useIpuModel(False)
    assert "there is no hardware" in caplog.text


def test_a_mark_for_popart_is_told(caplog):
    with poptorch.Attribute(__outline={"layer": "embedding"}):
        pass
    assert "changes nothing" in caplog.text
    with pytest.raises(PoplarTypeError, match="takes a dict for __outline"):
        poptorch.Attribute(__outline="layer")


class TestStrategies:
    def test_stages_are_numbered_in_their_order(self):
        strategy = poptorch.PipelinedExecution("A", ["B", "C"], poptorch.Stage("D").ipu(0))
        places = strategy.places()
        assert [(place.stage, place.ipu) for place in (places.begin(block, None) for block in "ABCD")] == [
            (0, 0),
            (1, 1),
            (1, 1),
            (2, 0),
        ]
        assert strategy.stage("C").blocks == ("B", "C")
        assert places.begin("A", 5).ipu == 5
        with pytest.raises(InvalidOption, match=r"PipelinedExecution has no block 'E'; there are 'A', 'B', 'C', 'D'"):
            places.begin("E", 0)

    def test_blocks_say_the_stages_where_none_are_listed(self):
        def stages(strategy, ipus):
            places = strategy.places()
            return [places.begin(None, ipu).stage for ipu in ipus]

        assert stages(poptorch.PipelinedExecution(), [0, 1, 0]) == [0, 1, 0]
        assert stages(poptorch.PipelinedExecution(poptorch.AutoStage.AutoIncrement), [0, 1, 0]) == [0, 1, 2]
        assert poptorch.ShardedExecution(poptorch.AutoStage.AutoIncrement).places().begin(None, None).ipu == 0
        with pytest.raises(InvalidOption, match="the block '0' has no ipu_id"):
            stages(poptorch.PipelinedExecution(), [None])

    def test_pipelines_overlap_and_shards_do_not(self):
        assert poptorch.PipelinedExecution.overlaps
        assert not poptorch.ShardedExecution("A").overlaps
        assert poptorch.PipelinedExecution("A") != poptorch.ShardedExecution("A")
        assert poptorch.PipelinedExecution("A") == poptorch.PipelinedExecution(["A"])

    @pytest.mark.parametrize(
        ("make", "kind", "message"),
        [
            (lambda: poptorch.PipelinedExecution("A", "A"), InvalidOption, "'A' is in more than one stage"),
            (lambda: poptorch.PipelinedExecution(3), PoplarTypeError, "PipelinedExecution takes an AutoStage, or Stages"),
            (lambda: poptorch.ShardedExecution("A", poptorch.AutoStage.SameAsIpu), PoplarTypeError, "ShardedExecution takes"),
            (lambda: poptorch.Stage(), InvalidOption, "at least one block"),
            (lambda: poptorch.Stage(1), PoplarTypeError, "takes a string, got 1"),
            (lambda: poptorch.Stage("A").ipu(-1), InvalidOption, "of at least 0"),
            (lambda: poptorch.Phase("A", poptorch.Stage("B")), PoplarTypeError, "either Stages or names"),
            (lambda: poptorch.Phase("A").ipus(0, 1), InvalidOption, "one IPU for each of 1 stages, got 2"),
            (lambda: poptorch.SerialPhasedExecution(), InvalidOption, "at least one"),
        ],
    )
    def test_a_strategy_that_makes_no_sense(self, make, kind, message):
        with pytest.raises(kind, match=message):
            make()

    def test_phases_can_be_made(self):
        stages = [poptorch.Stage("A"), poptorch.Stage("B")]
        strategy = poptorch.ParallelPhasedExecution([poptorch.Phase(*stages), poptorch.Phase("C", "D")])
        strategy.phase(0).ipus(0, 2)
        assert strategy.stage("B").ipu_number == 2
        assert strategy.useSeparateBackwardPhase().sendTensorsOffChipAfterFwd() is strategy
        assert poptorch.SerialPhasedExecution(["A"]).setTensorsLiveness(poptorch.Liveness.OffChipAfterFwd)


def test_messages_are_on_standard_error_by_their_level_unless_the_program_logs_itself(monkeypatch, capsys):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(user_log.logger, "level", user_log.logger.level)
    poptorch.Options().useIpuId(1)
    assert re.search(r"\[poptorch\] \[WARNING\] Options\.useIpuId changes nothing.*\n$", capsys.readouterr().err)
    user_log._said.clear()
    for level in ("ERR", "OFF"):
        poptorch.setLogLevel(level)
        poptorch.Options().useIpuId(1)
        assert capsys.readouterr().err == ""
    poptorch.setLogLevel("TRACE")
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.NullHandler()])
    poptorch.Options().useIpuId(1)
    assert capsys.readouterr().err == ""


def test_the_level_of_messages_is_the_environments(monkeypatch):
    monkeypatch.setattr(user_log.logger, "handlers", [])
    monkeypatch.setattr(user_log.logger, "level", user_log.logger.level)
    monkeypatch.setenv("POPTORCH_LOG_LEVEL", "DEBUG")
    user_log.set_up()
    assert user_log.logger.level == logging.DEBUG
    monkeypatch.setenv("POPTORCH_LOG_LEVEL", "WARM")
    user_log.logger.handlers.clear()
    with pytest.raises(InvalidOption, match="POPTORCH_LOG_LEVEL is no log level: 'WARM'; did you mean 'WARN'"):
        user_log.set_up()


def test_what_programs_ask_about_their_surroundings():
    assert poptorch.ipuHardwareIsAvailable(4) is False
    with pytest.raises(poptorch.Error, match="there is no hardware"):
        poptorch.ipuHardwareVersion()
    assert poptorch.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="has no attribute 'trainngModel'; did you mean 'trainingModel'"):
        poptorch.trainngModel


def test_a_log_level_that_is_none():
    for level in ("LOUD", 5, True):
        with pytest.raises(InvalidOption, match=r"Unknown log level|Invalid log level integer"):
            poptorch.setLogLevel(level)
    level = user_log.logger.level
    poptorch.setLogLevel(3)
    assert user_log.logger.level == level


def test_what_poprun_decides_is_refused_as_a_runtime_error():
    from pypoplar.popdist import poptorch as instances

    options = instances.Options(ipus_per_replica=2)
    refused = {
        "useIpuId": lambda: options.useIpuId(1),
        "replicationFactor": lambda: options.replicationFactor(1),
        "Distributed.disable": options.Distributed.disable,
        "Distributed.setEnvVarNames": lambda: options.Distributed.setEnvVarNames("A", "B"),
        "Distributed.configureProcessId": lambda: options.Distributed.configureProcessId(1),
    }
    for name, call in refused.items():
        with pytest.raises(RuntimeError, match=f"Cannot call `{name}` with popdist.poptorch.Options") as caught:
            call()
        assert isinstance(caught.value, InvalidOption)
