"""Verbs of `manage.py trace` that a floor above adds (replay needs its core)."""

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID


class Subcommand(NamedTuple):
    """One verb: `perform(run, options)` is called inside the run's tenant and yields the lines to print.

    It raises CommandError where the answer is no.
    """

    help: str
    add_arguments: Callable[[ArgumentParser], None]
    perform: Callable[[UUID, Mapping[str, Any]], list[str]]


_VERBS: dict[str, Subcommand] = {}


def register_verb(name: str, verb: Subcommand) -> None:
    """Add a verb that takes a run."""
    _VERBS[name] = verb


def get_subcommands() -> Mapping[str, Subcommand]:
    """The verbs that were added, by name."""
    return _VERBS
