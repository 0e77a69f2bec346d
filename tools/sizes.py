"""Lines of every source file, by folder, and the files longer than 400: `python tools/sizes.py`."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("csrc", "mybackend", "codegen", "test", "tools", "examples", "benchmarks")
SUFFIXES = {".h", ".cpp", ".cu", ".py", ".yaml"}
LONG = 400


def main() -> None:
    lines: dict[str, list[int]] = defaultdict(list)
    long: list[tuple[int, str]] = []
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*"):
            if file.suffix not in SUFFIXES or not file.is_file() or file.name.startswith("_build_info"):
                continue
            name, count = str(file.relative_to(ROOT)), len(file.read_text().splitlines())
            lines[str(file.parent.relative_to(ROOT))].append(count)
            if count > LONG:
                long.append((count, name))
    print(f"{'folder':32} {'files':>6} {'lines':>7} {'median':>7} {'most':>6}")
    for folder, counts in sorted(lines.items()):
        print(f"{folder:32} {len(counts):6} {sum(counts):7} {median(counts):7.0f} {max(counts):6}")
    print(f"{'all':32} {sum(map(len, lines.values())):6} {sum(map(sum, lines.values())):7}")
    for count, name in sorted(long, reverse=True):
        print(f"over {LONG}: {name} ({count})")


if __name__ == "__main__":
    main()
