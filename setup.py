"""Puts a laboratory's files into the wheel. Everything else about the package is in pyproject.toml."""

import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent


class Build(build_py):
    """Builds the package with the files from which `kernel-scientist init` makes a laboratory."""

    def run(self) -> None:
        """Build; in a checkout that is installed in place the files stay where they are."""
        super().run()
        if self.editable_mode:
            return
        settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
        target = Path(self.build_lib) / "kernel_scientist" / "laboratory"
        shutil.rmtree(target, ignore_errors=True)
        for name in settings["tool"]["gpu-kernel-scientist"]["laboratory"]:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copyfile(ROOT / name, target / name)


setup(cmdclass={"build_py": Build})
