"""The command line: each command a thin face of library functions."""

from __future__ import annotations

from retrodp.cli.app import main

__all__ = ["main"]
