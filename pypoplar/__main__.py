"""``python -m pypoplar`` is the command `pypoplar`."""

from pypoplar.cli import main

main(prog_name="python -m pypoplar")
