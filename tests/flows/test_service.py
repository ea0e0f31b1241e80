"""Flows in service: deployed, scheduled, approved, cancelled, on a Prefect server and MLflow over PostgreSQL."""

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import psutil
import pytest
from mlflow import MlflowClient

from kernel_scientist.records.params import Params
from kernel_scientist.sandbox import device_lock
from kernel_scientist.tracking import pages
from tests.browser import WAIT_MS, Browser, chromium
from tests.conftest import ROOT, new_lab
from tests.flows.service import POSTGRES, Service, ask, until

pytestmark = pytest.mark.slow
SMALL = {"problem": "identity", "generations": 0, "stages": 1, "processes": 1, "finalists": 1}
"""One seed and no experiments: a champion that is only to be correct, so no test hangs on a time."""
APPROVAL = {"approval": True, "approval_wait_s": 600}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = new_lab(tmp_path_factory.mktemp("service") / "lab")
    for name in ("prefect.yaml", "automations.yaml", "notifications.yaml"):
        shutil.copy(ROOT / name, folder)
    (folder / "problems/identity/seeds/cpp_naive.py").unlink()
    text = (folder / "params.yaml").read_text()
    for key, value in SMALL.items():
        text, changed = re.subn(rf"(?m)^( *){key}: [^ \n]+", rf"\1{key}: {value}", text, count=1)
        assert changed, key
    (folder / "params.yaml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, lab: Path) -> Iterator[Service]:
    """The servers, the pools and deployments by the commands of the page, and a worker."""
    started = Service(tmp_path_factory.mktemp("servers"), lab)
    try:
        assert started.paste() == 0
        started.start_worker("lab", PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL="INFO")  # as in a shell of its own
        yield started
    finally:
        started.close()


@pytest.fixture
def store(service: Service) -> MlflowClient:
    until(lambda: httpx.get(f"{service.mlflow}/health").status_code == 200, "the MLflow server starts")
    return MlflowClient(service.mlflow)


def campaigns(store: MlflowClient, name: str = "identity-cpu") -> list[Any]:
    experiment = store.get_experiment_by_name(name)
    assert experiment is not None
    return list(store.search_runs([experiment.experiment_id], "tags.kind = 'campaign'", order_by=["start_time DESC"]))


def test_every_deployment_has_a_form_with_types_and_descriptions(service: Service) -> None:
    names = ("optimize/on-demand", "optimize/nightly", "evaluate/lab", "evaluate/mi300", "evaluate/h100")
    for name in (*names, "validate/weekly", "validate/on-demand", "suite/problems"):
        schema = service.deployment(name)["parameter_openapi_schema"]
        form = schema["definitions"]["Form"]["properties"]
        assert set(form) == {field.alias or key for key, field in Params.model_fields.items()}
        assert schema["properties"]["params"]["default"] == {}
        undescribed = [key for key, field in schema["properties"].items() if not field.get("description")]
        assert not undescribed
    assert service.deployment("validate/weekly")["schedules"][0]["schedule"]["cron"] == "0 6 * * 0"
    search = schema["definitions"]["Search"]["properties"]
    assert search["strategy"]["enum"][0] == "scientist" and search["strategy"]["description"]
    assert search["generations"] | {"default": 0, "minimum": 0, "type": "integer"} == search["generations"]
    assert form["problem"]["default"] == "identity"  # this laboratory's params.yaml
    assert form["language"]["enum"] == ["cpp", "triton", "hip", "cuda"]
    declared = [field.alias or key for key, field in Params.model_fields.items()]
    assert sorted(form, key=lambda name: form[name]["position"]) == declared, "PostgreSQL has an order of its own"


def test_the_commands_of_the_page_deploy_everything_also_a_second_time(service: Service) -> None:
    """As they stand in docs/howto/team-server.md; the fixture has run them once."""
    assert service.paste() == 0
    assert len(service.post("deployments/filter")) == 8
    assert {pool["name"] for pool in service.post("work_pools/filter")} == {"lab", "mi300", "h100"}


@pytest.mark.skipif(not POSTGRES.is_dir(), reason="needs PostgreSQL 15 of the system")
def test_a_scheduled_campaign_on_another_pool_leaves_the_pipeline_up_to_date(
    service: Service, store: MlflowClient
) -> None:
    """Its kernels are in MLflow over PostgreSQL, its champion in the registry; `dvc repro` has nothing to do."""
    first = dvc_repro(service)
    assert "Running stage 'optimize'" in first and "Running stage 'report'" in first
    service.start_worker("mi300", KERNEL_SCIENTIST_TARGET="cpu")
    nightly = service.deployment("optimize/nightly")
    few = {"params": {"target": "pool:mi300", "search": {"generations": 0, "seed": 7}}}
    ask(service.api, "PATCH", f"deployments/{nightly['id']}", {"parameters": few})
    soon = (datetime.now(UTC) + timedelta(seconds=6)).isoformat()
    every = {"interval": 86400, "anchor_date": soon, "timezone": "UTC"}
    service.post(f"deployments/{nightly['id']}/schedules", [{"schedule": every, "active": True}])  # type: ignore[arg-type]

    def begun() -> str | None:
        runs = service.post("flow_runs/filter", {"deployments": {"id": {"any_": [nightly["id"]]}}})
        return next((run["id"] for run in runs if run["auto_scheduled"] and run["state_type"] == "RUNNING"), None)

    run = service.ended(until(begun, "the schedule fires and a worker takes the run"))
    assert run["state_type"] == "COMPLETED", run["state"]
    assert run["name"] == "optimize identity in cpp on pool:mi300"
    evaluated = service.post("flow_runs/filter", {"work_pools": {"name": {"any_": ["mi300"]}}})
    assert {"evaluate k00001"} <= {one["name"] for one in evaluated if one["state_type"] == "COMPLETED"}
    campaign = campaigns(store, "identity-pool-mi300")[0]
    assert campaign.info.status == "FINISHED" and campaign.data.params["search.seed"] == "7"
    kernels = store.search_runs([campaign.info.experiment_id], f"tags.`mlflow.parentRunId` = '{campaign.info.run_id}'")
    assert len(kernels) == 1 and all(kernel.info.status == "FINISHED" for kernel in kernels)
    version = store.get_model_version_by_alias("identity-cpp-pool-mi300", "champion")
    assert version.tags["kernel"] == campaign.data.tags["champion"]
    card = json.loads((service.lab / "champions/identity/cpp-pool-mi300/card.json").read_text())
    assert card["kernel"] == campaign.data.tags["champion"] and card["environment"]["host"]
    of_the_pipeline = json.loads((service.lab / "champions/identity/cpp-cpu/card.json").read_text())
    assert of_the_pipeline["environment"]["machine"]
    assert "Data and pipelines are up to date" in dvc_repro(service)


@pytest.mark.skipif(chromium() is None, reason="needs Chromium: apt-get install chromium")
def test_a_worker_in_another_folder_uses_its_own(service: Service, tmp_path: Path) -> None:
    """As on another machine: the folder of the deployments does not exist there, or is another one's."""
    elsewhere = new_lab(tmp_path / "elsewhere")
    shutil.copy(elsewhere / "problems/identity/seeds/cpp_blocked.py", elsewhere / "mine.py")
    worker = service.start_worker("h100", elsewhere)
    run = service.run("evaluate/h100", file="mine.py", params={"problem": "identity", "target": "auto"})
    assert service.ended(run)["state_type"] == "COMPLETED"
    service.kill(worker)


def test_a_campaign_of_a_deployment_on_the_pages(service: Service, store: MlflowClient) -> None:
    from playwright.sync_api import sync_playwright

    run = service.ended(service.run("optimize/on-demand"))
    campaign = campaigns(store)[0]
    with sync_playwright() as playwright:
        browser = Browser(playwright)
        table = pages.runs_table(campaign.info.experiment_id, service.mlflow)
        browser.open(table, "speedup", "geomean_us", "verdict", "k00001")
        address = service.api.removesuffix("/api")
        browser.open(f"{address}/runs/flow-run/{run['id']}", "Completed", "k00001 from seed")
        browser.open(f"{address}/deployments/deployment/{run['deployment_id']}", "on-demand")
        browser.close()
        assert not browser.errors


@pytest.mark.skipif(chromium() is None, reason="needs Chromium: apt-get install chromium")
def test_a_person_approves_on_the_page(service: Service, store: MlflowClient) -> None:
    from playwright.sync_api import sync_playwright

    shutil.rmtree(service.lab / "champions", ignore_errors=True)
    run = service.run("optimize/on-demand", params={"validate": APPROVAL})
    until(lambda: service.flow_run(run)["state_type"] == "PAUSED", "the flow asks")
    with sync_playwright() as playwright:
        browser = Browser(playwright)
        browser.open(f"{service.api.removesuffix('/api')}/runs/flow-run/{run}", "Paused")
        browser.page.get_by_role("button", name="Resume").click()
        browser.page.get_by_text("Promote k00001").first.wait_for(timeout=WAIT_MS)
        browser.page.get_by_text("register it as version ").first.wait_for(timeout=WAIT_MS)
        browser.page.get_by_role("dialog").get_by_role("switch").click()
        browser.page.get_by_role("button", name="Submit").click()
        assert service.ended(run)["state_type"] == "COMPLETED"
        browser.close()
        assert not browser.errors
    tags = campaigns(store)[0].data.tags
    assert tags["promoted"] == "true" and tags["approval"].startswith("approved by a person who gave no name, 20")


def dvc_repro(service: Service) -> str:
    """Run `dvc repro` in the laboratory, on the service's servers; return what it says."""
    lab, programs = service.lab, Path(sys.executable).parent
    env = service.environment("client", PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")
    if not (lab / ".dvc").is_dir():
        for name in ("reference-kernels", "flows", "tasks", "kernel_scientist"):  # what stages depend on
            shutil.copytree(ROOT / name, lab / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("dvc.yaml", ".dvcignore"):
            shutil.copy(ROOT / name, lab)
        for command in (["git", "init", "-q"], ["dvc", "init", "-q"]):
            subprocess.run(command, cwd=lab, check=True, env=env)
    done = subprocess.run(["dvc", "repro"], cwd=lab, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_champion_waits_for_approval_and_is_announced(
    service: Service, store: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(service.lab / "champions", ignore_errors=True)
    with notified(service) as messages:
        waiting = service.run("optimize/on-demand", params={"validate": APPROVAL})
        until(lambda: service.flow_run(waiting)["state_type"] == "PAUSED", "the flow asks")
        with device_lock.device("cpu", 60):  # tests of others may hold it for a while
            pass
        assert not (service.lab / "champions/identity/cpp-cpu").exists()
        other = service.run("optimize/on-demand")  # it does not wait for the answer
        assert service.ended(other)["state_type"] == "COMPLETED"
        assert campaigns(store)[0].data.tags["promoted"] == "true"
        service.post(f"flow_runs/{waiting}/resume", {"run_input": {"approve": True, "name": "Ada"}})
        assert service.ended(waiting)["state_type"] == "COMPLETED"
        overtaken = campaigns(store)[1].data.tags
        assert overtaken["promoted"] == "false" and overtaken["approval"].startswith("approved by Ada, ")
        assert (
            overtaken["promotion"] == "not promoted: another champion was promoted while this one waited for approval"
        )
        until(lambda: len(messages) == 1, "the automation tells of the champion")

        shutil.rmtree(service.lab / "champions")
        willing = service.run("optimize/on-demand", params={"validate": APPROVAL})
        until(lambda: service.flow_run(willing)["state_type"] == "PAUSED", "the flow asks")
        service.post(f"flow_runs/{willing}/resume", {"run_input": {"approve": True, "name": "Ada", "comment": "go"}})
        assert service.ended(willing)["state_type"] == "COMPLETED"
        answered = campaigns(store)[0].data.tags
        assert answered["promoted"] == "true"
        assert answered["approval"].startswith("approved by Ada, ") and answered["approval"].endswith(": go")
        until(lambda: len(messages) == 2, "the automation tells of the champion")
        told, campaign = messages[1], campaigns(store)[0].data.tags["campaign"]
        assert "New champion of identity.cpp-cpu" in told and campaign in told

        card = service.lab / "champions/identity/cpp-cpu/card.json"
        changed = json.loads(card.read_text())
        changed["environment"]["machine"] = "another processor"
        card.write_text(json.dumps(changed))
        weekly = service.ended(service.run("validate/weekly"))
        assert weekly["state_type"] == "COMPLETED" and weekly["name"] == "confirm all champions again"
        drift = until(lambda: service.events("kernel-scientist.device.drift"), "the drift is an event")
        assert drift[0]["payload"]["changes"]["machine"]["was"] == "another processor"
        until(lambda: any("The device of identity.cpp-cpu changed" in m for m in messages), "the drift is announced")

        broken = service.ended(service.run("evaluate/lab", file="nothing.py"))
        assert broken["state_type"] == "FAILED"
        until(lambda: any("evaluate nothing.py" in m and "Failed" in m for m in messages), "the failure is announced")


def test_cancelling_a_run_stops_the_kernel_that_is_timed(service: Service, store: MlflowClient) -> None:
    before, log = descendants(service), service.folder / "worker-lab.log"
    said_before = log.read_text()
    long = {"harness": {"row_us": 1e6, "blocks": 50}}
    run = service.run("optimize/on-demand", params=long)

    def timing() -> bool:
        tasks = service.post("task_runs/filter", {"flow_runs": {"id": {"any_": [run]}}})
        return any(task["name"].startswith("time ") and task["state_type"] == "RUNNING" for task in tasks)

    until(timing, "a kernel is timed")
    time.sleep(2)
    at_work = descendants(service) - before
    assert len(at_work) > 2
    with pytest.raises(Exception, match="was busy"), device_lock.device("cpu", 0.1):
        pass
    service.post(f"flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}, "force": False})
    assert service.ended(run)["state_type"] == "CANCELLED"
    until(lambda: not [pid for pid in at_work if psutil.pid_exists(pid)], "all its processes end", 60)
    with device_lock.device("cpu", 60):
        pass
    stopped = campaigns(store)[0]
    assert stopped.info.status == "KILLED"
    logged = service.post("logs/filter", {"logs": {"flow_run_id": {"any_": [run]}}})
    assert not [line["message"] for line in logged if line["level"] >= logging.ERROR]
    said = log.read_text()[len(said_before) :]
    assert any("recorded kernels are kept, a run with resume=" in line["message"] for line in logged)
    assert "Traceback" not in said and "general error" not in said, "a cancelled run is no crash"
    said_before = log.read_text()

    resumed = service.ended(service.run("optimize/on-demand", resume=stopped.data.tags["campaign"]))
    assert resumed["state_type"] == "COMPLETED"
    assert resumed["name"].endswith(f"{stopped.data.tags['campaign']} resumed")
    campaign = campaigns(store)[0]
    assert (campaign.info.run_id, campaign.info.status) == (stopped.info.run_id, "FINISHED")
    assert campaign.data.tags["champion"] == "k00001"
    said = log.read_text()[len(said_before) :]
    assert said.count("k00001 from seed") == 1, "a line per kernel"


def test_a_run_that_waits_for_approval_can_be_cancelled(service: Service, store: MlflowClient) -> None:
    shutil.rmtree(service.lab / "champions", ignore_errors=True)
    run = service.run("optimize/on-demand", params={"validate": APPROVAL})
    until(lambda: service.flow_run(run)["state_type"] == "PAUSED", "the flow asks")
    service.post(f"flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}, "force": False})
    assert service.ended(run)["state_type"] == "CANCELLED"
    until(lambda: campaigns(store)[0].info.status == "KILLED", "the campaign ends", 60)
    assert not (service.lab / "champions/identity/cpp-cpu").exists()


def test_a_run_whose_machine_died_is_marked_as_crashed(service: Service) -> None:
    committed = (service.lab / "automations.yaml").read_text()
    file = service.folder / "automations.yaml"
    file.write_text(committed.replace("within: 300", "within: 32"))
    service.prefect("automation", "create", "--from-file", str(file))
    run = service.run("optimize/on-demand", params={"harness": {"row_us": 1e6, "blocks": 50}})
    alive = {"prefect.resource.id": f"prefect.flow-run.{run}"}

    def sign_of_life() -> bool:
        return any(alive.items() <= event["resource"].items() for event in service.events("prefect.flow-run.heartbeat"))

    until(sign_of_life, "the run sends a sign of life")
    for worker in service.processes[2:]:
        service.kill(worker)
    assert service.flow_run(run)["state_type"] == "RUNNING"
    crashed = service.ended(run)
    assert crashed["state_type"] == "CRASHED" and "`resume`" in crashed["state"]["message"]
    service.start_worker("lab")


def test_a_deployed_run_that_cannot_work_fails_with_a_sentence_and_leaves_no_campaign(
    service: Service, store: MlflowClient
) -> None:
    before = len(campaigns(store))
    run = service.ended(service.run("optimize/on-demand", params={"llm": {"writer": {"model": "gpt-9"}}}))
    assert run["state_type"] == "FAILED" and "gpt-9" in run["state"]["message"]
    assert len(campaigns(store)) == before


def descendants(service: Service) -> set[int]:
    workers = [process for process in service.processes if psutil.pid_exists(process.pid)]
    return {child.pid for process in workers[2:] for child in psutil.Process(process.pid).children(recursive=True)}


class notified:
    """The committed notifications, installed with a notification block that calls a web server of this test."""

    def __init__(self, service: Service) -> None:
        self.service, self.messages = service, list[str]()
        messages = self.messages

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                messages.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> list[str]:
        Thread(target=self.server.serve_forever, daemon=True).start()
        block = self._block(f"http://127.0.0.1:{self.server.server_port}/")
        file = self.service.folder / "notifications.yaml"
        committed = (self.service.lab / "notifications.yaml").read_text()
        file.write_text(committed.replace("NOTIFICATION_BLOCK_ID", block))
        assert "Created 4 automation(s)" in self.service.prefect("automation", "create", "--from-file", str(file))
        return self.messages

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()

    def _block(self, address: str) -> str:
        from prefect.blocks.notifications import CustomWebhookNotificationBlock
        from prefect.settings import PREFECT_API_URL, temporary_settings

        with temporary_settings({PREFECT_API_URL: self.service.api}):
            data = {"text": "{{subject}}: {{body}}"}
            block = CustomWebhookNotificationBlock(name="here", url=address, json_data=data)
            return str(block.save("here", overwrite=True))
