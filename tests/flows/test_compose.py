"""compose.yaml: what can be told without a Docker engine."""

import re

import yaml

from kernel_scientist.records import environment
from tests.conftest import ROOT


def test_the_servers_are_local_healthy_and_have_no_default_secret() -> None:
    text = (ROOT / "compose.yaml").read_text()
    services = yaml.safe_load(text)["services"]
    assert set(services) == {"postgres", "prefect", "mlflow", "deploy", "worker"}
    assert all("healthcheck" in service for name, service in services.items() if name != "deploy")
    assert all(port.startswith("127.0.0.1:") for service in services.values() for port in service.get("ports", ()))
    variables = re.findall(r"(?<!\$)\$\{?(\w+)([^}\s]*)", text)
    assert variables and all(rest.startswith(":?") for name, rest in variables if name.isupper())
    volumes = {v.split(":")[0] for s in services.values() for v in s.get("volumes", ())}
    assert volumes == set(yaml.safe_load(text)["volumes"])


def test_one_service_builds_the_image_and_none_looks_for_it_elsewhere() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    ours = {name: service for name, service in services.items() if service["image"] == "kernel-scientist"}
    assert set(ours) == {"prefect", "mlflow", "deploy", "worker"}
    assert [name for name, service in ours.items() if "build" in service] == ["prefect"]
    assert {service["pull_policy"] for service in ours.values()} == {"never"}


def test_the_image_deploys_pools_that_prefect_yaml_names() -> None:
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    script = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["deploy"]["command"][-1]
    pools = re.search(r"for pool in (.*); do", script)
    assert pools and {d["work_pool"]["name"] for d in deployments} == set(pools[1].split())


def test_a_server_that_is_set_up_by_hand_calls_nobody_either() -> None:
    page = (ROOT / "docs/howto/team-server.md").read_text().partition("**Without Docker**")[2].split("```")[1]
    for setting in ("DO_NOT_TRACK=true", "PREFECT_SERVER_ANALYTICS_ENABLED=false", "MLFLOW_DISABLE_TELEMETRY=true"):
        name = setting.partition("=")[0]
        assert setting in page.partition("prefect server start")[0] and environment.DEFAULTS[name]
