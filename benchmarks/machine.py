"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

PACKAGES = (
    *("retrodp", "numpy", "cryptography", "numba"),
    *("opendp", "jax-privacy", "jax", "dpcrpy", "diffprivlib"),
)


def version_of(package: str) -> str | None:
    """Installed version, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def processor() -> str:
    """Model name, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def load() -> str:
    """How many processes wanted to run, over the last minute."""
    try:
        return f"{os.getloadavg()[0]:.1f}"
    except OSError:
        return "unknown"


def described() -> dict[str, str]:
    """Machine, date, versions."""
    found = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{processor()}, {os.cpu_count()} logical",
        "system": f"{platform.system()} {platform.release()}",
        "python": sys.version.split()[0],
        "load": load(),
    }
    return found | {name: version_of(name) or "not installed" for name in PACKAGES}


def markdown(found: dict[str, str]) -> str:
    """One line a fact."""
    return "\n".join(f"- {name}: {value}" for name, value in found.items()) + "\n"
