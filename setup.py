"""The one thing that pyproject.toml cannot say: which machines the wheel fits.

It holds two programs and no Python extension, so it fits every Python 3, but only one platform.
"""

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel


class PlatformWheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        _, _, platform = super().get_tag()
        return "py3", "none", platform


setup(cmdclass={"bdist_wheel": PlatformWheel})
