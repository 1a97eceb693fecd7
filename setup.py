"""What pyproject.toml cannot say: which machines the wheel fits, and that the examples go into it as they lie.

It holds programs and no Python extension, so it fits every Python 3, but only one platform: Linux with the C library
that its dynamic programs need, which its tag names (PEP 600). The examples, and the scripts that they use, are
installed below share/etude (`etude.script.environment` looks for them there).
"""

import os
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel

sys.path.insert(0, "packaging")
from check_wheel import glibc_needed


class PlatformWheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        """Asked when the programs lie where they will be packed."""
        _, _, platform = super().get_tag()
        programs = [path.read_bytes() for path in Path(self.bdist_dir, self.data_dir, "scripts").glob("*")]
        minor = max(map(glibc_needed, programs), default=0)
        return "py3", "none", platform.replace("linux_", f"manylinux_2_{minor}_") if minor else platform


def examples() -> list[tuple[str, list[str]]]:
    """Each directory below examples with its files."""
    return [
        (f"share/etude/{directory}", [os.path.join(directory, name) for name in sorted(files)])
        for directory, _, files in sorted(os.walk("examples"))
        if files and "__pycache__" not in directory
    ]


# Flags in the environment would take the place of those in pyproject.toml and .cargo/config.toml: io-static would be
# linked as io-dynamic is, and the engine not statically.
for name in ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS"):
    os.environ.pop(name, None)

setup(cmdclass={"bdist_wheel": PlatformWheel}, data_files=examples())
