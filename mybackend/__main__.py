"""`python -m mybackend <command>`: what is installed, what it can do, what is wrong.

A command is a row of COMMANDS: its name, the module with a `main(arguments)`, and one line of help.
"""

import importlib
import sys

COMMANDS = {
    "coverage": ("mybackend.coverage", "how every operator is served"),
    "trace": ("mybackend.autograd.trace_command", "runs a script and records its backwards"),
    "info": ("mybackend._info", "versions, driver and devices"),
}


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in COMMANDS:
        wanted = bool(arguments) and arguments[0] not in ("-h", "--help")
        print("usage: python -m mybackend <command>\n", file=sys.stderr if wanted else sys.stdout)
        for name, (_, help_line) in COMMANDS.items():
            print(f"  {name:10} {help_line}", file=sys.stderr if wanted else sys.stdout)
        return 2 if wanted else 0
    module, _ = COMMANDS[arguments[0]]
    result = importlib.import_module(module).main(arguments[1:])
    return 0 if result is None else int(result)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
