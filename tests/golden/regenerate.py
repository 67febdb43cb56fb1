"""Rewrite the golden file: `python -m tests.golden.regenerate`, then review the difference.

A changed digest means that a running store would publish other bytes after an upgrade, so it needs
a new noise-format version and a reason in the change log.
"""

from __future__ import annotations

import json

from tests.golden import revised
from tests.golden.stream import FILE, all_releases


def main() -> None:
    text = json.dumps(all_releases(), indent=1, ensure_ascii=False, sort_keys=True)
    FILE.write_text(text + "\n", encoding="utf-8")
    text = json.dumps(revised.all_releases(), indent=1, ensure_ascii=False, sort_keys=True)
    revised.FILE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
