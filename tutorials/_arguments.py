"""Arguments of the tutorials' command lines."""

import argparse


def number(kind, least, most=float("inf")):
    """What argparse reads a number of a kind with, within limits."""

    def read(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            limits = f"{least} to {most:g}" if most < float("inf") else f"at least {least}"
            raise argparse.ArgumentTypeError(f"expected a number, {limits}, got {text!r}")
        return value

    return read
