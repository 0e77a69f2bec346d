"""Builds mybackend: three shared libraries and one extension module, through ninja (codegen/build/)."""

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))


class BuildNative(build_ext):
    """build_ext whose work is done by codegen.build; setuptools only says where the results go."""

    def run(self) -> None:
        from codegen.build import build

        destination = ROOT if self.inplace else Path(self.build_lib).resolve()
        self.built = build(ROOT, destination / "mybackend")

    def get_outputs(self) -> list[str]:
        return [str(path) for path in getattr(self, "built", [])]

    def get_output_mapping(self) -> dict[str, str]:
        return {}


setup(
    ext_modules=[Extension("mybackend._C", sources=[])],
    cmdclass={"build_ext": BuildNative},
)
