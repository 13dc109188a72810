"""What is wrong with a command line that no command can take, in one line like any other bad input."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from sim.commands.failures import BAD_INPUT, BadInput

_OF_A_VALUE = re.compile(r"Invalid value for (.+?): (?:Input )?(.+?)(?:, unable to parse.*)?")


class Commands(TyperGroup):
    """The commands. A wrong word on the way to one is a BadInput; Ctrl-C is raised, not kept silent."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **__: Any) -> Any:
        """Run what the words say; without any, print the help. Ends in SystemExit, or raises what a command does."""
        words = tuple(sys.argv[1:] if args is None else args)
        try:
            with self.make_context(prog_name or "agora", list(words or ["--help"])) as context:
                self.invoke(context)
        except typer.Exit as leaving:
            sys.exit(leaving.exit_code if words else BAD_INPUT)
        except typer.TyperException as wrong:
            raise BadInput(_told(wrong)) from wrong


def _told(wrong: typer.TyperException) -> str:
    """The option or argument and what would be right; where words lack or are too many, how the command is written."""
    text = wrong.format_message().strip().rstrip(".")
    if value := _OF_A_VALUE.fullmatch(text):
        option = value[1].replace("'", "")
        return f"{option} {value[2]}"
    text = text[:1].lower() + text[1:]
    context = getattr(wrong, "ctx", None)
    if context is None or text.endswith("?"):
        return text
    usage = " ".join(context.get_usage().removeprefix("Usage: ").split())
    return f"{text}; usage: {usage}, more: {context.command_path} --help"
