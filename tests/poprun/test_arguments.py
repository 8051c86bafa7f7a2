"""The command line of poprun: every option of the table, and every mistake that it shows, before anything is started."""

import json
import os
import re
import subprocess
import sys

import pytest

from pypoplar.engine.processes import instance_environment
from pypoplar.errors import InvalidOption
from pypoplar.poprun import command
from pypoplar.poprun.arguments import parse, read_config, write_config
from pypoplar.poprun.guard import plain_word
from pypoplar.poprun.hosts import file_hosts, listed_hosts
from pypoplar.poprun.launch_line import launch_line
from pypoplar.poprun.launchers import MPICH, OPEN_MPI, Launcher
from pypoplar.poprun.plan import NoProgramError, by_mpi4py, make_plan
from pypoplar.poprun.poprun_options import COUNT, FLAG, NUMBER, OPTIONS, SWITCHES, help_text
from pypoplar.poprun.topology import topology

SAMPLES = {COUNT: ("7", 7), NUMBER: ("0", 0), FLAG: ("yes", True), "TEXT": ("some text", "some text")}
PYTHON = (sys.executable, "-c", "0")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for variable in (*(one.name for one in instance_environment.VARIABLES), "POPLAR_ENGINE_OPTIONS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(variable, raising=False)


def plan(*words):
    return make_plan(parse([*words, *PYTHON]))


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_is_read_in_both_ways_and_stands_in_the_help(option, tmp_path):
    text, value = SAMPLES[option.kind]
    if option.key == "import_config":
        path = tmp_path / "config"
        write_config(parse(["--num-replicas", "4"]), path)
        text = value = str(path)
    for words in ([option.name, text], [f"{option.name}={text}"], *([[option.short, text]] if option.short else [])):
        arguments = parse([*words, "program", "--num-replicas", "x"])
        assert arguments.values[option.key] == value
        assert arguments.program == ("program", "--num-replicas", "x")
    assert parse(["program"]).values[option.key] == option.default
    assert option.name in help_text()
    if option.kind != "TEXT":
        with pytest.raises(InvalidOption, match=option.name):
            parse([option.name, "many"] if option.kind != FLAG else [f"{option.name}=many"])


@pytest.mark.parametrize(("text", "value"), [("1", True), ("0", False), ("YES", True), ("no", False), ("true", True)])
def test_flags_read_numbers_and_words_and_may_stand_alone(text, value):
    assert parse(["--offline-mode", text, "program"]).flag("offline_mode") is value
    assert parse(["--offline-mode", "program"]).flag("offline_mode")
    assert parse(["--offline-mode", "program"]).program == ("program",)


def test_help_names_all_switches_and_version_is_told(capsys):
    for name in SWITCHES:
        assert name in help_text()
    assert command.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("poprun of pypoplar ")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--num-replica", "4"], "did you mean '--num-replicas'"),
        (["--num-replicas", "0"], "at least 1, got '0'"),
        (["--num-replicas", "2", "--num-replicas", "4"], "given twice"),
        (["--num-replicas", "16", "--num-instances", "3"], "16 can be on 1, 2, 4, 8 or 16 instances"),
        (["--num-replicas", "2", "--ipus-per-replica", "3"], "1, 2, 4, 8 or 16, got 3"),
        (["--num-replicas", "32", "--ipus-per-replica", "4"], "are 128 IPUs: the largest machine has 64"),
        (["--num-replicas", "4", "--num-instances", "2", "--only-output-from-instance", "2"], "instances 0 to 1"),
        (["--num-replicas", "4", "--num-instances", "4", "--host", "a,b,c"], "on 3 hosts"),
        (["--num-replicas", "1000000007", "--num-instances", "3"], "can be on 1 or 1000000007 instances"),
        (["--executable-cache-path", ""], "--executable-cache-path is empty"),
        (["--host", "a,,b"], "list of hosts"),
        (["--host", "h[0-x]"], "no number and no range"),
        (["--host", "h[3-1]"], "goes down"),
        (["--host", "a,a"], "'a' is there twice"),
        (["--host", "-rf"], "no name of a host"),
        (["--host", "a", "--hostfile", "b"], "named by one of them"),
        (["--hostfile", "/nowhere"], "cannot be read"),
        (["--mpi-global-args", "'open"], "--mpi-global-args: No closing quotation"),
        (["--import-config", "/nowhere"], "cannot be read"),
    ],
)
def test_a_mistake_on_the_command_line_is_told_before_anything_is_started(words, text, capsys, monkeypatch):
    monkeypatch.setattr(command.os, "execve", lambda *_: pytest.fail("it was started"))
    monkeypatch.setattr(command.subprocess, "Popen", lambda *_, **__: pytest.fail("it was started"))
    assert command.run([*words, *PYTHON]) == command.MISTAKE
    told = capsys.readouterr().err
    assert told.startswith("poprun: ")
    assert text in told


def test_a_mistake_has_its_status_where_streams_are_closed():
    command_line = f"{sys.executable} -m pypoplar.poprun --nonsense <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command_line], check=False).returncode == command.MISTAKE


def test_an_option_at_the_end_needs_a_value():
    with pytest.raises(InvalidOption, match="--num-replicas needs a value"):
        parse(["--num-replicas"])


def test_offline_mode_requires_no_ipus():
    assert len(plan("--num-replicas", "128", "--num-instances", "2", "--offline-mode", "1").instances) == 2


def test_a_program_that_is_not_there_or_cannot_be_executed_has_the_status_of_a_shell(tmp_path, capsys):
    file = tmp_path / "train.py"
    file.write_text("")
    for words, status, text in (
        (["nothing-of-the-kind"], 127, "does not exist"),
        ([str(tmp_path / "nothing")], 127, "does not exist"),
        ([str(file)], 126, f"write: poprun ... python {file}"),
        ([str(tmp_path)], 126, "cannot be executed"),
        ([sys.executable, "nothing.py"], 2, "the script 'nothing.py' does not exist"),
        ([], 2, "there is no program"),
    ):
        assert command.run(["--num-replicas", "2", *words]) == status
        assert text in capsys.readouterr().err


def test_hosts_are_listed_with_ranges_or_in_a_file(tmp_path):
    assert listed_hosts("a,h[0-2,4],b.c") == ["a", "h0", "h1", "h2", "h4", "b.c"]
    assert listed_hosts("h[08-10]x") == ["h08x", "h09x", "h10x"]
    file = tmp_path / "hosts"
    file.write_text("# all\none slots=4\n\n two # the second\n")
    assert file_hosts(file) == ["one", "two"]
    file.write_text("# none\n")
    with pytest.raises(InvalidOption, match="has no hosts"):
        file_hosts(file)


def test_each_instance_is_told_its_replicas_and_its_threads():
    made = plan("--num-replicas", "8", "--num-instances", "4", "--ipus-per-replica", "2", "--host", "a,b")
    assert [one.host for one in made.instances] == ["a", "a", "b", "b"]
    assert [one.name for one in made.instances][1] == "instance 1 (replicas 2 to 3)"
    told = [one.environment for one in made.instances]
    for name, values in {
        "POPDIST_NUM_TOTAL_REPLICAS": ["8"] * 4,
        "POPDIST_NUM_LOCAL_REPLICAS": ["2"] * 4,
        "POPDIST_NUM_IPUS_PER_REPLICA": ["2"] * 4,
        "POPDIST_REPLICA_INDEX_OFFSET": ["0", "2", "4", "6"],
        "POPDIST_LOCAL_INSTANCE_INDEX": ["0", "1", "0", "1"],
        "POPDIST_UNIFORM_REPLICAS_PER_INSTANCE": ["1"] * 4,
    }.items():
        assert [one[name] for one in told] == values
    assert json.loads(told[0]["POPLAR_TARGET_OPTIONS"])["instanceSize"] == "4"
    threads = str(max(1, len(os.sched_getaffinity(0)) // 2))
    assert json.loads(told[0]["POPLAR_ENGINE_OPTIONS"]) == {"pypoplar.threads": threads}
    assert told[0]["OMP_NUM_THREADS"] == threads


def test_what_the_environment_says_of_threads_is_kept(monkeypatch):
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"pypoplar.threads": "3"}')
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    told = plan("--num-replicas", "2", "--num-instances", "2").instances[0].environment
    assert "POPLAR_ENGINE_OPTIONS" not in told
    assert "OMP_NUM_THREADS" not in told
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", "threads")
    with pytest.raises(InvalidOption, match="no JSON object"):
        plan()


def test_the_cache_path_is_that_of_models(tmp_path):
    told = plan("--executable-cache-path", str(tmp_path)).instances[0].environment
    assert told["POPTORCH_CACHE_DIR"] == str(tmp_path)


@pytest.mark.parametrize("kind", [MPICH, OPEN_MPI])
def test_the_line_has_a_block_for_each_instance_in_the_words_of_the_launcher(kind):
    made = plan(
        "--num-replicas", "4", "--num-instances", "2", "--host", "a,b", "--allow-run-as-root", "yes",
        "--mpi-global-args", "--one 1", "--mpi-local-args", "--two",
    )  # fmt: skip
    line = launch_line(made, Launcher(kind, "/bin/mpiexec"))
    assert line.count(":") == 1
    first, second = line[: line.index(":")], line[line.index(":") + 1 :]
    assert first.index("--one") < first.index("-n")
    assert "--one" not in second
    assert all("--two" in block for block in (first, second))
    if kind == MPICH:
        assert first[first.index("-hosts") + 1] == "a:1,b:1"
    else:
        assert [block[block.index("--host") + 1] for block in (first, second)] == ["a", "b"]
    assert second[-4:] == ["-m", "mpi4py", "-c", "0"]
    assert ("--allow-run-as-root" in line) is (kind == OPEN_MPI)


@pytest.mark.parametrize("word", [":", "::", "\\:", "\\\\:", "a:", ":a", "", "\\", "\\a", "a b"])
def test_a_word_of_the_program_never_begins_another_instance(word):
    made = make_plan(parse(["--num-replicas", "2", "--num-instances", "2", *PYTHON, word]))
    line = launch_line(made, Launcher(MPICH, "mpiexec"))
    assert line.count(":") == 1
    assert plain_word(line[-1]) == plain_word(line[line.index(":") - 1]) == word


def test_a_launcher_that_cannot_be_started_is_told(monkeypatch, capsys):
    monkeypatch.setattr(command, "find_launcher", lambda *_: Launcher(MPICH, "/nothing/mpiexec"))
    assert command.run(["--num-replicas", "2", "--num-instances", "2", *PYTHON]) == command.MISTAKE
    assert "the launcher '/nothing/mpiexec' cannot be started with these instances: No such file" in capsys.readouterr().err


def test_open_mpi_as_root_is_refused_unless_it_is_allowed(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(InvalidOption, match="--allow-run-as-root yes"):
        launch_line(plan("--num-replicas", "2", "--num-instances", "2"), Launcher(OPEN_MPI, "mpiexec"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("python a.py b", "python -m mpi4py a.py b"),
        ("python -u -X dev a.py", "python -u -X dev -m mpi4py a.py"),
        ("python3.11 -W error -m module x", "python3.11 -W error -m mpi4py -m module x"),
        ("python -c 0", "python -m mpi4py -c 0"),
        ("python -m mpi4py a.py", "python -m mpi4py a.py"),
        ("bash a.sh", "bash a.sh"),
    ],
)
def test_python_runs_by_mpi4py_and_other_programs_as_they_are(words, expected):
    assert " ".join(by_mpi4py(words.split())) == expected


def test_the_topology_has_a_column_for_each_replica():
    text = topology(plan("--num-replicas", "4", "--num-instances", "2"))
    assert text.splitlines()[0].strip("+=").strip() == "poprun topology"
    rows = {
        line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in text.splitlines() if line[0] == "|"
    }
    assert rows["hosts"] == ["localhost"]
    assert rows["ILDs"] == ["0"]
    assert rows["instances"] == ["0", "1"]
    assert rows["replicas"] == ["0", "1", "2", "3"]
    assert len({len(line) for line in text.splitlines()}) == 1


def test_a_configuration_is_exported_and_imported_and_the_command_line_counts_more(tmp_path, capsys):
    path = tmp_path / "config.json"
    given = ["--num-replicas", "8", "--num-instances", "2", "--numa-aware", "yes", "--host", "a,b"]
    assert command.run([*given, "--export-config", str(path)]) == 0
    again = parse(["--import-config", str(path), "--num-instances", "4", "program"])
    assert again.number("num_replicas") == 8
    assert again.number("num_instances") == 4
    assert again.flag("numa_aware")
    assert again.text("host") == "a,b"
    assert command.run([*given, "--export-config", str(path)]) == command.MISTAKE
    assert "--overwrite-config yes" in capsys.readouterr().err
    assert command.run([*given, "--export-config", str(path), "--overwrite-config", "1"]) == 0


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('{"poprun config version": 2, "options": {}}', "of version 2, this poprun reads version 1"),
        ("[]", "of version None"),
        ("{", "no configuration"),
        ('{"poprun config version": 1, "options": {"num_replica": 1}}', "did you mean 'num_replicas'"),
        ('{"poprun config version": 1, "options": {"num_replicas": "x"}}', 'num_replicas is N, got "x"'),
        ('{"poprun config version": 1}', "no table of options"),
        ('{"poprun config version": true, "options": {}}', "of version True"),
        ('{"poprun config version": 1, "options": {"num_replicas": "4"}}', 'num_replicas is N, got "4"'),
        ('{"poprun config version": 1, "options": {"num_replicas": 4.0}}', "num_replicas is N, got 4.0"),
        ('{"poprun config version": 1, "options": {"num_replicas": true}}', "num_replicas is N, got true"),
        ('{"poprun config version": 1, "options": {"num_replicas": null}}', "num_replicas is N, got null"),
        ('{"poprun config version": 1, "options": {"num_replicas": 0}}', "at least 1, got '0'"),
        ('{"poprun config version": 1, "options": {"tag_output": 1}}', "tag_output is yes|no, got 1"),
        ('{"poprun config version": 1, "options": {"host": ["a", "b"]}}', "host is TEXT, got ["),
    ],
)
def test_a_configuration_that_is_none_is_refused(content, text, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(InvalidOption, match=re.escape(text)):
        read_config(path)


def test_v_says_which_options_change_nothing(capsys, monkeypatch):
    monkeypatch.setattr(command.os, "execve", lambda *_: None)
    command.run(["-vv", "--vipu-partition", "p", "--offline-mode", "yes", *PYTHON])
    told = capsys.readouterr().err
    assert "--vipu-partition changes nothing" in told
    assert "--offline-mode" not in told
    assert f"poprun: {sys.executable} -c 0" in told


def test_one_instance_is_the_program_itself_without_mpi(monkeypatch):
    started = []
    monkeypatch.setattr(command.os, "execve", lambda path, words, variables: started.append((path, words, variables)))
    monkeypatch.setattr(command, "find_launcher", lambda *_: pytest.fail("MPI was asked for"))
    command.run(["--num-replicas", "4", *PYTHON])
    ((path, words, variables),) = started
    assert (path, words) == (sys.executable, list(PYTHON))
    assert variables["POPDIST_NUM_LOCAL_REPLICAS"] == "4"


def test_an_error_of_the_program_is_one_of_the_plan():
    with pytest.raises(NoProgramError) as raised:
        make_plan(parse(["nothing-of-the-kind"]))
    assert raised.value.status == 127
