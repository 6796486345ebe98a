"""To be written."""

from __future__ import annotations

import argparse


def add_parser(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Nothing yet."""
