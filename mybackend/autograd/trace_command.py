"""`python -m mybackend trace [options] script.py [arguments]`: runs a script and records its backwards."""

import argparse
import runpy
import sys
from pathlib import Path

from mybackend.autograd.tracing import trace


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m mybackend trace",
        description="Runs a script on mybackend's autograd engine, records its backwards and says where time went.",
    )
    parser.add_argument("--output", metavar="FILE.json", help="write a Chrome trace (chrome://tracing, Perfetto)")
    parser.add_argument("--picture", metavar="FILE", help="draw the timeline; the suffix chooses png, svg or pdf")
    parser.add_argument("--module", action="store_true", help="SCRIPT is the name of a module, as in python -m")
    parser.add_argument(
        "--slowest", type=int, default=1, metavar="N", help="explain the N slowest backwards (default 1)"
    )
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    options = parser.parse_args(arguments)

    status = 0
    before, path = sys.argv, list(sys.path)
    sys.argv = [options.script, *options.arguments]
    try:
        with trace() as recorded:
            try:
                if options.module:
                    runpy.run_module(options.script, run_name="__main__", alter_sys=True)
                else:
                    sys.path[0] = str(Path(options.script).resolve().parent)
                    runpy.run_path(options.script, run_name="__main__")
            except SystemExit as leaving:
                status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    finally:
        sys.argv, sys.path[:] = before, path

    print(recorded.explain(options.slowest), file=sys.stderr)
    if options.output:
        recorded.save(options.output)
    if options.picture:
        recorded.picture(options.picture)
    return status
