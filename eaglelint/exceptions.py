"""Errors that end a command: each is a sentence for a person, with what, where and what to do."""

from __future__ import annotations

__all__ = ["EaglelintError", "UnreadableInput", "WrongUsage"]


class EaglelintError(Exception):
    """Base of the errors that a user can act on; the command line prints the message and exits with 2."""


class WrongUsage(EaglelintError):
    """The command was asked for something that cannot be: a missing flag, an unknown name."""


class UnreadableInput(EaglelintError):
    """A file that the user named cannot be read or is not what it should be."""
