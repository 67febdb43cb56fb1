"""The laws of the architecture, read off the source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "retrodp"

# Each layer may import itself and what is listed before it on its own line only.
ALLOWED = {
    "errors": set(),
    "_check": {"errors"},
    "privacy": {"errors", "_check"},
    "plan": {"errors", "_check", "privacy"},
    "stream": {"errors", "_check", "privacy", "plan"},
    # Of the noise its keyed functions of labels and places alone: they hold no law and no key tree.
    "statistics": {"errors", "_check", "privacy", "plan", "stream", "noise.labels", "noise.prf"},
    "noise": {"errors", "_check", "privacy", "plan", "stream"},
    "mechanisms": {
        *("errors", "_check", "privacy", "plan", "stream", "statistics", "noise", "postprocess"),
    },
    "clustering": {
        *("errors", "_check", "privacy", "plan", "stream", "statistics", "noise", "mechanisms"),
    },
    "postprocess": {"errors", "_check", "privacy", "plan"},
    "store": {"errors", "_check", "privacy", "plan", "stream", "noise", "mechanisms"},
    "engine": {
        *("errors", "_check", "privacy", "plan", "stream", "statistics", "noise"),
        *("mechanisms", "postprocess", "store"),
        "clustering",
    },
    "views": {"errors", "_check", "privacy", "plan", "mechanisms.answer", "postprocess"}
    | {"store.releases"},
    "demo": {"errors"},
    "audit": {
        *("errors", "_check", "privacy", "plan", "stream", "statistics", "noise"),
        *("mechanisms", "postprocess", "store", "engine"),
        "clustering",
    },
    "cli": {"errors", "_check", "plan", "stream", "engine", "views", "demo", "store", "noise"}
    | {"audit"},
    "__init__": {"errors", "plan", "mechanisms", "engine", "privacy", "noise"},
}
RANDOM_MODULES = {"random", "secrets", "numpy.random"}
CLOCK_CALLS = {"now", "today", "utcnow", "time_ns", "time.time"}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the direction of the pipeline"
            assert node.module is not None
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def layer_of(dotted: str) -> str:
    return dotted.split(".", maxsplit=1)[0]


def forbidden_imports(path: Path, source: set[str]) -> set[str]:
    layer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    allowed = ALLOWED[layer] | {layer}
    own = {name.removeprefix("retrodp.") for name in source if name.startswith("retrodp.")}
    return {
        name
        for name in own
        if not any(
            name == good or name.startswith(f"{good}.") or good.startswith(f"{name}.")
            for good in allowed
        )
        and (SOURCE / layer_of(name)).exists() | (SOURCE / f"{layer_of(name)}.py").exists()
    }


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_what_its_layer_may_know(path: Path) -> None:
    assert forbidden_imports(path, imports_of(path)) == set()


def test_the_import_law_notices_a_view_that_reads_the_ledger() -> None:
    path = SOURCE / "views" / "planted.py"
    assert forbidden_imports(path, {"retrodp.store.ledger"}) == {"store.ledger"}


def test_the_import_law_notices_a_statistic_that_knows_noise() -> None:
    path = SOURCE / "statistics" / "planted.py"
    assert forbidden_imports(path, {"retrodp.noise.key"}) == {"noise.key"}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_randomness_enters_through_one_door(path: Path) -> None:
    banned = {name for name in imports_of(path) if name in RANDOM_MODULES}
    text = path.read_text()
    assert banned == set()
    assert "np.random" not in text
    if path != SOURCE / "noise" / "key.py":
        assert "urandom" not in text


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_wall_clock_outside_the_command_line(path: Path) -> None:
    calls = {
        "time.time" if node.func.value.id == "time" and node.func.attr == "time" else node.func.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in {"time", "datetime", "dt", "date"}
    }
    if path.relative_to(SOURCE).parts[0].removesuffix(".py") != "cli":
        assert calls & CLOCK_CALLS == set()


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_modules_stay_readable(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 460
