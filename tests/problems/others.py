"""Repositories of others and a project under DVC, for tests of imports."""

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT, lab_environment

TASK = """
description: |
  Their copy.
files:
  - {name: reference.py, source: reference.py}
  - {name: utils.py, source: ../utils.py}
tests: [{size: 512, seed: 1}]
benchmarks: [{size: 4096, seed: 1}]
"""
KERNELBENCH = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.rand(16)]
def get_init_inputs():
    return []
"""
KERNEL = "def custom_kernel(data):\n    return data[1].copy_(data[0])\n"
LICENCE = "MIT License\n\nCopyright (c) somebody\n"
SOMEBODY = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "-c", "init.defaultBranch=main")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *SOMEBODY, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, **files: str) -> str:
    """Write files, commit them and return the commit."""
    write(folder, files)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")
    return git(folder, "rev-parse", "HEAD")


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def their_files() -> dict[str, str]:
    reference = (ROOT / "problems/identity/reference.py").read_text()
    files = {"LICENSE": LICENCE, "problems/amd/utils.py": "N = 1\n", "problems/amd/copy/task.yml": TASK}
    files |= {"problems/amd/copy/reference.py": f"from utils import N\n{reference}", "kernels/fast.py": KERNEL}
    return {**files, "KernelBench/level1/19_ReLU.py": KERNELBENCH}


def repository(folder: Path) -> Path:
    """Make a repository of others: a set of GPU MODE's format, a level of KernelBench, a kernel, a licence."""
    folder.mkdir()
    git(folder, "init", "--quiet")
    commit(folder, **their_files())
    return folder


def dvc(lab: Path, *arguments: str) -> str:
    command, env = [sys.executable, "-m", "dvc", *arguments], lab_environment(lab, DVC_NO_ANALYTICS="1")
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    done = subprocess.run(command, cwd=lab, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def under_dvc(lab: Path) -> Path:
    """Make a laboratory a git and DVC repository with a folder beside it as its remote."""
    config = "[core]\n    remote = store\n['remote \"store\"']\n    url = ../../remote\n"
    write(lab, {".gitignore": ".cache/\nmlruns/\n", ".dvc/config": config, ".dvc/.gitignore": "/tmp\n/cache\n"})
    git(lab, "init", "--quiet")
    commit(lab)
    return lab
