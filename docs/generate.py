"""Write what the pages take from the source: the commands' reference, the tree of modules, a schema.

    python docs/generate.py

Only what stands between a page's markers is replaced. Tests compare the pages with the source.
"""  # noqa: INP001  a script beside the pages, not a package

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src" / "retrodp"
NOTE = "written by docs/generate.py"

LAYERS = (
    "errors.py",
    "_check.py",
    "privacy",
    "plan",
    "stream",
    "statistics",
    "noise",
    "mechanisms",
    "clustering",
    "store",
    "engine",
    "views",
    "audit",
    "demo",
    "cli",
)
"""The order of the pipeline; what is not named here comes last."""

WIDTH = 22
SCHEMA = DOCS / "schemas" / "statement.schema.json"


def replaced(text: str, name: str, content: str) -> str:
    """The page's text with the part of that name put in place of the old one."""
    begin, end = f"<!-- {name}: begin; {NOTE} -->", f"<!-- {name}: end -->"
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        message = f"The page has no part {name!r}."
        raise ValueError(message)
    return f"{head}{begin}\n\n{content}\n{end}{tail}"


# The commands.


class Parameter(NamedTuple):
    """One argument or option of a command."""

    info: ArgumentInfo | OptionInfo
    name: str
    kind: Any
    default: object

    @property
    def required(self) -> bool:
        """Whether the command refuses to run without it."""
        return self.default is inspect.Parameter.empty

    @property
    def shown(self) -> str:
        """How it is written on the command line."""
        repeated = get_origin(self.kind) is list
        if isinstance(self.info, ArgumentInfo):
            return f"{self.name.upper()}{'...' if repeated else ''}"
        # In an annotation typer takes the first name for a default.
        given = (self.info.default, *(self.info.param_decls or ()))
        names = [name for name in given if isinstance(name, str)]
        listed = ", ".join(sorted(names or [f"--{self.name.replace('_', '-')}"], key=len))
        return listed if self.kind is bool else f"{listed} {_value(self.kind)}"

    @property
    def notes(self) -> list[str]:
        """What else there is to say about it."""
        found = ["required"] if self.required else []
        if isinstance(self.info, OptionInfo) and list in {
            self.kind,
            *map(get_origin, _parts(self.kind)),
        }:
            found.append("may be repeated")
        if isinstance(self.default, str | int | Path) and not isinstance(self.default, bool):
            found.append(f"default `{self.default}`")
        return found


def commands() -> dict[str, Callable[..., Any]]:
    """Every command of the application, by name; those of a group after the group's name."""
    from retrodp.cli.app import app  # noqa: PLC0415  the tree needs no command line

    return _commands_of(app)


def _commands_of(group: typer.Typer) -> dict[str, Callable[..., Any]]:
    found = {}
    for one in group.registered_commands:
        if one.callback is not None and not one.hidden:
            found[one.name or one.callback.__name__.replace("_", "-")] = one.callback
    for below in group.registered_groups:
        if below.typer_instance is not None:
            name = below.name or below.typer_instance.info.name
            inner = _commands_of(below.typer_instance)
            found |= {f"{name} {command}": callback for command, callback in inner.items()}
    return found


def reference() -> str:
    """The reference of all commands, in the order in which they are registered."""
    return "\n".join(_command(name, callback) for name, callback in commands().items())


def parameters(callback: Callable[..., Any]) -> list[Parameter]:
    """Arguments and options of a command, from its signature."""
    hints = get_type_hints(callback, include_extras=True)
    found = []
    for name, parameter in inspect.signature(callback).parameters.items():
        kind, *extras = (
            get_args(hints[name]) if get_origin(hints[name]) is Annotated else [hints[name]]
        )
        info = next(extra for extra in extras if isinstance(extra, ArgumentInfo | OptionInfo))
        if not info.hidden:
            found.append(Parameter(info, name, kind, parameter.default))
    return found


def _command(name: str, callback: Callable[..., Any]) -> str:
    found = parameters(callback)
    arguments = [one for one in found if isinstance(one.info, ArgumentInfo)]
    options = [one for one in found if isinstance(one.info, OptionInfo)]
    words = [one.shown for one in arguments] + [one.shown for one in options if one.required]
    lines = [f"### `retrodp {name}`", "", " ".join((callback.__doc__ or "").split()), ""]
    lines += ["```text", " ".join(["retrodp", name, *words, "[OPTIONS]"]), "```", ""]
    if found:
        lines += ["| | |", "|---|---|"]
        lines += [f"| `{one.shown}` | {_help(one)} |" for one in arguments + options]
        lines.append("")
    return "\n".join(lines)


def _help(parameter: Parameter) -> str:
    text = " ".join((parameter.info.help or "").split()).replace("|", "\\|")
    notes = ", ".join(parameter.notes)
    return f"{text} ({notes})" if notes else text


def _value(kind: Any) -> str:
    parts = set(_parts(kind))
    if Path in parts:
        return "PATH"
    return "N" if int in parts else "TEXT"


def _parts(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) or (kind,)


# The tree.


def tree() -> str:
    """Packages in the order of the pipeline and their modules, each with its first sentence."""
    lines = ["```text", "src/retrodp/", _line("  __init__.py", SOURCE / "__init__.py")]
    for path in sorted(_top(), key=_place):
        lines += _entry(path, 1)
    return "\n".join([*lines, "```"])


def _top() -> list[Path]:
    return [path for path in _below(SOURCE) if path.name != "__init__.py"]


def _below(directory: Path) -> list[Path]:
    found = [path for path in directory.iterdir() if path.suffix == ".py"]
    found += [path.parent for path in directory.glob("*/__init__.py")]
    return sorted(found)


def _place(path: Path) -> tuple[int, str]:
    known = path.name in LAYERS
    return (LAYERS.index(path.name) if known else len(LAYERS), path.name)


def _entry(path: Path, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if path.is_file():
        yield _line(f"{indent}{path.name}", path)
        return
    yield _line(f"{indent}{path.name}/", path / "__init__.py")
    for inner in _below(path):
        if inner.name != "__init__.py":
            yield from _entry(inner, depth + 1)


def _line(name: str, path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    sentence = docstring.split("\n", 1)[0]
    return f"{name.ljust(WIDTH)}  {sentence}".rstrip()


def schema() -> str:
    """The JSON Schema of a privacy statement."""
    from retrodp.views.statement import schema as of_statement  # noqa: PLC0415  the tree needs none

    return json.dumps(of_statement(), indent=2) + "\n"


def main() -> None:
    """Bring the pages up to date."""
    for page, name, content in (
        ("architecture.md", "tree", tree),
        ("cli.md", "commands", reference),
    ):
        path = DOCS / page
        text = replaced(path.read_text(encoding="utf-8"), name, content())
        path.write_text(text, encoding="utf-8")
    SCHEMA.write_text(schema(), encoding="utf-8")


if __name__ == "__main__":
    main()
