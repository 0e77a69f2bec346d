"""How torch defines an operator and which categories can serve it: `python -m codegen.explain add.out gelu layer_norm`.

A name without overload lists all overloads of that name.
"""

from __future__ import annotations

import sys

from torchgen.model import DispatchKey

from codegen.operators import CATEGORIES, does_not_apply
from codegen.schemas import Operator, Schemas


def explain(operator: Operator, schemas: Schemas) -> str:
    kernels = {key: schemas.kernel(operator, key) for key in (DispatchKey.CPU, DispatchKey.CUDA)}
    lines = [f"{operator.name}: {'structured group of' if operator.group else 'unstructured:'}"]
    lines += [f"    {function.func}" for function in operator.functions]
    lines += [f"  {key.name}: {kernel.kernel if kernel else 'none'}" for key, kernel in kernels.items()]
    if schemas.is_composite(operator):
        lines.append(f"  composite ({'implicit' if schemas.is_composite_implicit(operator) else 'explicit'})")
    for category in CATEGORIES:
        why = does_not_apply(category, operator, schemas)
        lines.append(f"  {category}: {'yes' if why is None else 'no, it ' + why}")
    return "\n".join(lines)


def main(names: list[str]) -> int:
    schemas = Schemas()
    for name in names:
        found = [schemas.group_of.get(name, name)]
        if found[0] not in schemas.operators:
            found = sorted({group for member, group in schemas.group_of.items() if member.split(".")[0] == name})
        if not found:
            print(f"{name}: not an operator of the installed torch")
        for item in found:
            print(explain(schemas.operators[item], schemas))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
