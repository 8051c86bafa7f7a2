"""The options of `poprun`, a row each: help, document, configuration files and tests go by this table."""

from __future__ import annotations

from attrs import frozen

from pypoplar.errors import InvalidOption

COUNT, NUMBER, FLAG, TEXT = "N", "N from 0", "yes|no", "TEXT"
NO_EFFECT = "; accepted, and changes nothing on a simulated machine"
TRUE, FALSE = ("1", "yes", "true", "on"), ("0", "no", "false", "off")

Value = int | bool | str | None


@frozen
class PoprunOption:
    """An option of the command.

    Parameters
    ----------
    name:
        As users write it.
    kind:
        What its value is.
    default:
        Its value where it is not given.
    meaning:
        What it does.
    short:
        Another name.
    works:
        Whether it changes anything here.
    """

    name: str
    kind: str
    default: Value
    meaning: str
    short: str = ""
    works: bool = True

    @property
    def key(self) -> str:
        """Its name in configuration files: ``num_replicas``."""
        return self.name.lstrip("-").replace("-", "_")

    def read(self, text: str) -> Value:
        """The value that a text is; `InvalidOption` if it is none of the kind."""
        if self.kind == TEXT:
            if not text and self.default is None:
                raise InvalidOption(f"{self.name} is empty")
            return text
        if self.kind == FLAG:
            if text.lower() in (*TRUE, *FALSE):
                return text.lower() in TRUE
            raise InvalidOption(f"{self.name} is yes or no (1 or 0), got {text!r}")
        least = 1 if self.kind == COUNT else 0
        if not text.isascii() or not text.isdecimal() or int(text) < least:
            raise InvalidOption(f"{self.name} is a whole number of at least {least}, got {text!r}")
        return int(text)


def _without_effect(name: str, kind: str, default: Value, meaning: str) -> PoprunOption:
    return PoprunOption(name, kind, default, meaning + NO_EFFECT, works=False)


OPTIONS = (
    PoprunOption("--num-replicas", COUNT, 1, "replicas of the model in all, in equal parts for the instances"),
    PoprunOption(
        "--num-instances", COUNT, 1, "processes that the program runs in, in equal parts for the hosts; one starts no MPI"
    ),
    PoprunOption("--ipus-per-replica", COUNT, 1, "IPUs of each replica: 1, 2, 4, 8 or 16"),
    PoprunOption("--host", TEXT, None, "hosts to run on: a,b or h[0-2,4]; without it this one", short="-H"),
    PoprunOption("--hostfile", TEXT, None, "a file with a host in each line"),
    PoprunOption("--mpi-global-args", TEXT, "", "arguments for the launcher, before all instances"),
    PoprunOption("--mpi-local-args", TEXT, "", "arguments for the launcher, before the program of each instance"),
    PoprunOption("--allow-run-as-root", FLAG, False, "let Open MPI run as root, which it refuses otherwise; MPICH does not ask"),
    PoprunOption("--print-topology", FLAG, False, "print which hosts, instances and replicas there are"),
    PoprunOption("--only-output-from-instance", NUMBER, None, "print what this instance prints alone, and what others fail with"),
    PoprunOption("--tag-output", FLAG, True, "let each line of several instances begin with its instance and stream"),
    PoprunOption("--offline-mode", FLAG, False, "require no IPUs: there may be more than the machine has"),
    PoprunOption("--executable-cache-path", TEXT, None, "the directory in which PopTorch's models are kept compiled"),
    PoprunOption("--export-config", TEXT, None, "write the options to this file"),
    PoprunOption("--import-config", TEXT, None, "read options from such a file; those of the command line count more"),
    PoprunOption("--overwrite-config", FLAG, False, "let --export-config write over a file"),
    _without_effect("--num-ilds", COUNT, 1, "IPU-Link domains of the partition"),
    _without_effect("--numa-aware", FLAG, False, "bind instances to the nodes of their memory"),
    _without_effect("--vipu-server-host", TEXT, "localhost", "host of the V-IPU controller"),
    _without_effect("--vipu-server-port", COUNT, 8090, "its port"),
    _without_effect("--vipu-server-timeout", COUNT, 120, "seconds to wait for it"),
    _without_effect("--vipu-partition", TEXT, None, "the partition to use"),
    _without_effect("--vipu-allocation", TEXT, None, "the allocation of a new partition"),
    _without_effect("--vipu-cluster", TEXT, None, "deprecated: the cluster of a new partition"),
    _without_effect("--update-partition", FLAG, False, "change the partition where it does not fit"),
    _without_effect("--reset-partition", FLAG, True, "reset the partition before"),
    _without_effect("--remove-partition", FLAG, True, "remove the partition afterwards"),
    _without_effect("--synchronise-host-clocks", FLAG, False, "align the clocks of hosts for profiles"),
    _without_effect("--host-subnet", TEXT, None, "the network by which hosts talk"),
    _without_effect("--host-netmask", TEXT, None, "its mask"),
)
BY_NAME = {name: option for option in OPTIONS for name in (option.name, option.short) if name}
BY_KEY = {option.key: option for option in OPTIONS}
IPUS_PER_REPLICA = (1, 2, 4, 8, 16)
SWITCHES = {
    "-v": "say what is done, and which options change nothing",
    "--verbose": "the same",
    "-vv": "print the line of the launcher as well",
    "-h": "print this",
    "--help": "the same",
    "--version": "print the version",
}


def help_text() -> str:
    """What ``poprun --help`` prints."""
    lines = [
        "usage: poprun [options] program [arguments]",
        "",
        "Run a program in several processes, instances, which share the replicas of its models. They meet by MPI where replicas",
        "do; popdist tells each of them which are its own. The exit status is that of the program; 1 where an instance was killed.",
        "",
        "options:",
    ]
    for option in OPTIONS:
        names = f"{option.short}, {option.name}" if option.short else option.name
        default = "" if option.default in (None, "") else f" (default {_shown(option.default)})"
        lines += _row(f"{names} {option.kind}", option.meaning + default)
    for name, meaning in SWITCHES.items():
        lines += _row(name, meaning)
    return "\n".join(lines)


def _shown(value: Value) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _row(left: str, right: str) -> list[str]:
    indent = 37
    words, lines = right.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 90:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    first = f"  {left:<{indent - 2}}" if len(left) < indent - 2 else f"  {left}\n{' ' * indent}"
    return [first + lines[0], *(" " * indent + line for line in lines[1:])]
