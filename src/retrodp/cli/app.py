"""The commands' common ground: options, clock, errors and exit codes.

Exit codes: 0 done; 1 a verification failed; 2 wrong use or plan; 3 done but rows were refused; 4 a
guard refused; 70 a fault of the program; 130 interrupted. An error never shows a stored value:
messages come from `retrodp.errors` alone.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from retrodp.engine.code import code_allowed
from retrodp.errors import DiskFullError, KeyMissingError, RetrodpError, UsageError
from retrodp.store.keyfile import (
    DescriptorLocator,
    EnvironmentLocator,
    KeyKeeper,
    default_key_path,
    key_keeper,
    parse_locator,
)

FORMAT = 1
REFUSED_ROWS = 3
WRONG_USE = 2
FAULT = 70
INTERRUPTED = 130

# Some versions of typer stand on click and some hold a copy of it; this is its class in both.
_EXPECTED: tuple[type[Exception], ...] = (
    RetrodpError,
    OSError,
    *(
        kind
        for kind in typer.BadParameter.__mro__
        if issubclass(kind, Exception) and kind.__name__ == "ClickException"
    ),
)

app = typer.Typer(
    name="retrodp",
    help="Publish numbers about people every day, privately, from data that change behind you.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback with local variables would show records
    rich_markup_mode=None,
)

StoreOption = Annotated[Path, typer.Option("--store", help="Directory of the store.")]
KeyOption = Annotated[
    str | None,
    typer.Option("--key", help="Key: a FILE, env:NAME or fd:N. Default: DIR.key beside the store."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


ALLOW_CODE = "--allow-code"


@app.callback()
def _common(
    allow_code: Annotated[
        bool,
        typer.Option(
            ALLOW_CODE,
            help="Run the functions that a plan names; accepted after the command too. Read them first.",
        ),
    ] = False,
) -> None:
    """Publish numbers about people every day, privately, from data that change behind you."""


def now_micros() -> int:
    """Microseconds since 1970 UTC by this machine's clock."""
    return time.time_ns() // 1000


def keeper_of(store: Path, text: str | None) -> KeyKeeper:
    """Where `--key` says the key is; reads environment and descriptors."""
    locator = parse_locator(str(default_key_path(store)) if text is None else text)
    match locator:
        case EnvironmentLocator(name):
            value = os.environ.get(name)
            if value is None:
                raise KeyMissingError(
                    f"The environment variable {name} is not set.",
                    do="Set it to the secret that the store was created with.",
                )
            return key_keeper(locator, store, value.encode())
        case DescriptorLocator(number):
            return key_keeper(locator, store, _read_descriptor(number))
        case _:
            return key_keeper(locator, store)


def _read_descriptor(number: int) -> bytes:
    try:
        with os.fdopen(number, "rb") as file:
            return file.read().rstrip(b"\n")
    except OSError:
        raise KeyMissingError(
            f"Descriptor {number} cannot be read.", do=f"Open it, as in {number}< FILE."
        ) from None


def console() -> Console:
    """Standard output for people."""
    return Console(highlight=False)


def notes() -> Console:
    """Standard error, for progress and notes."""
    return Console(stderr=True, highlight=False)


def print_json(document: dict[str, Any]) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def main() -> None:
    """Run a command and leave with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command; returns its exit code."""
    as_json = "--json" in arguments
    allowed = code_allowed() if ALLOW_CODE in arguments else nullcontext()
    arguments = [own for own in arguments if own != ALLOW_CODE]
    try:
        with allowed:
            code = _called(arguments or ["--help"])
    except BrokenPipeError:
        # The reader of the output left; the rest of it is of no use to anybody.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except _EXPECTED as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command: its help
            sys.stdout.write(f"{_said(error)}\n")
            return WRONG_USE
        return _failed(_as_ours(error), as_json=as_json)
    except Exception as error:  # noqa: BLE001  its message might quote a record
        return _fault(error, as_json=as_json)
    if code == INTERRUPTED:
        return _interrupted(as_json=as_json)
    return code if arguments else WRONG_USE


def _called(arguments: list[str]) -> int:
    try:
        outcome = app(arguments, prog_name="retrodp", standalone_mode=False)
    except typer.Exit as leave:
        return leave.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    return outcome if isinstance(outcome, int) else 0


def _as_ours(error: Exception) -> RetrodpError:
    match error:
        case RetrodpError():
            return error
        case OSError():
            return _of_system(error)
        case _:
            said = _said(error).rstrip(".")
            end = "" if said.endswith("?") else "."
            return UsageError(
                f"{said}{end}",
                expected=_usage_of(error),
                do="See `retrodp --help`, or --help after the command.",
            )


def _said(error: Exception) -> str:
    return str(getattr(error, "format_message", error.__str__)())


def _usage_of(error: Exception) -> str:
    """How the command that was meant is written, on one line; empty where none is known."""
    context = getattr(error, "ctx", None)
    if context is None or context.parent is None:  # of retrodp itself its help says more
        return ""
    usage = " ".join(context.get_usage().removeprefix("Usage:").split())
    if usage.endswith("[OPTIONS]"):  # which the reader knows
        return ""
    return re.sub(r"\{(\w+)\}", lambda found: found[1].upper(), usage)  # as other versions write it


def _interrupted(*, as_json: bool) -> int:
    error = UsageError(
        "Interrupted.", do="What was acknowledged is kept. Run the same command again."
    )
    _failed(error, as_json=as_json)
    return INTERRUPTED


def _fault(error: Exception, *, as_json: bool) -> int:
    """A fault of the program: where it happened, and not what it says."""
    sys.stderr.write("".join(traceback.format_tb(error.__traceback__)))
    kind = type(error).__name__
    fault = UsageError(
        f"A fault of the program ({kind}); what was acknowledged is kept.",
        do="Please report it with the lines above; they quote no data.",
    )
    fault.code = "fault"
    _failed(fault, as_json=as_json)
    return FAULT


def _of_system(error: OSError) -> RetrodpError:
    if error.errno in {28, 122, 27}:
        return DiskFullError(
            "The disk is full; nothing was half-written.",
            do="Make room and run the command again.",
        )
    where = f" ({error.filename})" if error.filename else ""
    return UsageError(f"{error.strerror or 'The system refused'}{where}.", do="Check the path.")


def _failed(error: RetrodpError, *, as_json: bool) -> int:
    if as_json:
        print_json(
            {
                "format": FORMAT,
                "error": True,
                "code": error.code,
                "what": error.what,
                "expected": error.expected,
                "do": error.do,
            }
        )
        return error.exit_code
    lines = [f"retrodp: {error.what}"]
    if error.expected:
        lines.append(f"  expected: {error.expected}")
    if error.do:
        lines.append(f"  {error.do}")
    sys.stderr.write("\n".join(lines) + "\n")
    return error.exit_code


# Importing them registers the commands.
from retrodp.cli import (  # noqa: E402
    audit,  # noqa: F401
    demo,  # noqa: F401
    drafting,  # noqa: F401
    ending,  # noqa: F401
    reading,  # noqa: F401
    report,  # noqa: F401
    statement,  # noqa: F401
    vintages,  # noqa: F401
    writing,  # noqa: F401
)

_RUNS_CODE = {"key", "plan"}
"""A command with one of these parameters makes releases, and so may run what a plan names."""

for _command in app.registered_commands:
    if _command.callback is not None and _RUNS_CODE & set(_command.callback.__annotations__):
        _command.epilog = f"{ALLOW_CODE} runs the functions that a plan names. Read them first."
