"""Make the virtual environment and install into it what constraints.txt pins. Standard library only.

A torch that is there already and compatible, in the environment or (as a GPU build) under the Python that runs this,
is kept: its and triton's pins are left out and replaced by a pin on what is installed. An environment that was moved
or copied with its folder is mended, not made anew.

    python3 install.py .venv
"""

import json
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
OLDEST, NEWEST = (2, 8), (3, 0)
"""torch versions the code works with."""
PROBE = """
import importlib.metadata as m, json
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return None
try:
    import torch.version as v
    gpu = v.cuda or v.hip
except Exception:
    gpu = None
print(json.dumps({"torch": version("torch"), "triton": version("triton"), "gpu": gpu}))
"""


def main() -> int:
    """Install; return the exit code."""
    if sys.version_info < (3, 11):  # noqa: UP036 - an older Python must get a sentence, not a traceback
        print(f"error: Python {sys.version.split()[0]} is too old: 3.11 or newer is needed (make PYTHON=python3.11)")
        return 2
    folder = (ROOT / sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / ".venv"
    python = folder / "bin" / "python"
    if not python.exists():
        shared = keeps(probe(sys.executable)) and probe(sys.executable)["gpu"] is not None
        print(f"making {folder}" + (" over the GPU build of torch that is installed" if shared else ""))
        try:
            venv.create(folder, with_pip=True, system_site_packages=shared)
            if shared:
                share(folder)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"error: cannot make {folder}: {error}; on Debian, apt-get install python3-venv")
            return 2
    elif relocate(folder):
        print(f"{folder} was in another folder before: its programs are mended")
    found = probe(str(python))
    pins = constraints((ROOT / "constraints.txt").read_text(), found)
    if keeps(found):
        print(f"keeping torch {found['torch']}")
    chosen = folder / "constraints.txt"
    chosen.write_text(pins)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", str(chosen)]
    print("installing (a few minutes the first time)")
    done = subprocess.run([*command, "-e", f"{ROOT}[dev]"], check=False)
    if done.returncode:
        print("error: pip could not install what constraints.txt pins; its words are above")
    return 2 if done.returncode else 0


def relocate(folder: Path) -> bool:
    """Let the programs of an environment that was moved or copied find its interpreter; return whether it was.

    Their first lines and the activation scripts name the folder in which they were made, as pyvenv.cfg does, which is
    changed last: what is interrupted is done again.
    """
    settings = folder / "pyvenv.cfg"
    made = re.search(r"^command = .* -m venv .*?(/.+)$", settings.read_text(), re.M)
    if made is None or made[1] == str(folder):
        return False
    before = re.compile(rf"(?<![\w./-]){re.escape(made[1])}(?![\w.-])".encode())
    scripts = [f for f in (folder / "bin").iterdir() if f.is_file() and not f.is_symlink()]
    for file in (*scripts, settings):
        content = file.read_bytes()
        if b"\0" not in content and content != (changed := before.sub(lambda _: bytes(folder), content)):
            file.write_bytes(changed)
    return True


def share(folder: Path) -> None:
    """Show a new environment the packages of the environment that runs this; by itself it sees those of its base only.

    `addsitedir` also reads the .pth files there, by which editable installations and ROCm's torch are found.
    """
    if sys.prefix == sys.base_prefix:
        return
    own = sysconfig.get_path("purelib")
    place = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    (place / "shared.pth").write_text(f"import site; site.addsitedir({own!r})\n")


def probe(python: str) -> dict[str, str | None]:
    """Return which torch and triton an interpreter sees, and the GPU toolkit torch was built for."""
    out = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, check=False)
    return json.loads(out.stdout) if out.returncode == 0 else {"torch": None, "triton": None, "gpu": None}


def keeps(found: dict[str, str | None]) -> bool:
    """Whether an installed torch is one that the code works with."""
    version = found["torch"]
    if version is None:
        return False
    parts = version.split("+")[0].split(".")
    return parts[0].isdigit() and parts[1].isdigit() and OLDEST <= (int(parts[0]), int(parts[1])) < NEWEST


def constraints(text: str, found: dict[str, str | None]) -> str:
    """Return the pins to install by: all of them, or with torch's and triton's replaced by what is kept."""
    if not keeps(found):
        return text
    lines = [line for line in text.splitlines() if line.split("==")[0].strip().lower() not in ("torch", "triton")]
    kept = [f"torch=={found['torch']}"] + ([f"triton=={found['triton']}"] if found["triton"] else [])
    return "\n".join([*lines, *kept]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
