"""`make chaos`: the disk of a whole laboratory fills in the middle of a campaign, and has room again later."""

import json
import re
from pathlib import Path

import pytest

from tests.small_disk import on_a_disk_of

CAMPAIGN = """
import json, os, subprocess, sys, time
from pathlib import Path
from tests.conftest import lab_environment, new_lab

lab = new_lab(Path(sys.argv[1]) / "lab")
call = ["optimize", "--json", "--set", "problem=identity", "--set", "search.generations=2", "--set", "harness.blocks=2"]
call += ["--set", "harness.stages=1", "--set", "validate.processes=1", "--set", "validate.blocks=2"]
environment = lab_environment(lab, KERNEL_SCIENTIST_CACHE=str(lab / ".cache"))
log = Path(sys.argv[2])
with log.open("w") as said:
    campaign = subprocess.Popen(
        [sys.executable, "-m", "kernel_scientist", *call],
        cwd=lab, env=environment, stdout=subprocess.PIPE, stderr=said, text=True,
    )


def until(words):
    while words not in log.read_text():
        if campaign.poll() is not None:
            sys.exit(f"it ended before {words!r}")
        time.sleep(0.2)


until("k00002 from seed")
filling = lab / "filling"
with filling.open("wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(512))
    except OSError:
        pass
until("waiting since")
time.sleep(20)
filling.unlink()
out, _ = campaign.communicate()
os.environ.update(environment)
from kernel_scientist.tracking.mlflow_store import MlflowStore
store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
run = store.latest()
names = sorted(run.data.tags["kernel"] for run in store._children(run.run_id))
print(json.dumps({"code": campaign.returncode, "result": json.loads(out), "kernels": names}))
"""


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_campaign_goes_on_after_its_disk_was_full(tmp_path: Path) -> None:
    log = tmp_path / "campaign.log"
    done = on_a_disk_of("300m", tmp_path / "disk", "-c", CAMPAIGN, str(tmp_path / "disk"), str(log))
    said = log.read_text()
    assert done.returncode == 0, done.stderr + said
    found = json.loads(done.stdout)
    kernels = found["kernels"]
    assert found["code"] == 0 and found["result"]["kernels"] == len(kernels) == len(set(kernels)) >= 8, said
    assert kernels == [f"k{number:05d}" for number in range(1, len(kernels) + 1)]
    assert re.search(r"waiting since .* MB are free for ", said) and re.search(r"again, after \d+ s", said)
    assert "sqlalchemy" not in said and "mlflow.store.db" not in said, said
