"""What can be known before the first job is refused there."""

import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import torch

from fu.data import torchvision_import
from fu.data.dataset import about
from fu.pipeline.cli import costs
from fu.pipeline.engine import preflight
from fu.pipeline.plan.plan import Job, Plan
from fu.pipeline.provenance import certificate, digest
from fu.pipeline.provenance.certificate import Certificate
from tests.data.test_leaf import roles
from tests.mistakes import has, sentence, write_archive
from tests.pipeline.configs import toy

MNIST = {"data": {"dataset": "mnist"}}
CONFIG = toy(settings=MNIST)
pytestmark = pytest.mark.usefixtures("with_toy")


def jobs(plan: Plan, *stages: str) -> list[Job]:
    """The jobs of a table, which needs MNIST."""
    return [job for job in plan.jobs(("toy", "numbers")) if job.stage in stages]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A plan whose archives lie in a folder of its own."""
    return Plan({**CONFIG, "data_dir": str(tmp_path)})


def test_an_archive_that_can_be_downloaded_may_be_absent(plan: Plan) -> None:
    preflight.check(plan, jobs(plan, "data"), here=False)


def test_an_archive_that_is_damaged_or_no_file_is_refused(plan: Plan, tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "mnist.npz")
    archive.write_bytes(archive.read_bytes()[:200])
    has(sentence(lambda: preflight.check(plan, jobs(plan, "data"), here=False)), f"{archive}: ", "truncated")
    archive.unlink()
    os.mkfifo(archive)
    told = sentence(lambda: preflight.check(plan, jobs(plan, "data"), here=False))
    assert told == f"{archive}: must be a regular file, not a folder, a pipe or a device."
    preflight.check(plan, jobs(plan, "partition", "train"), here=False)  # which do not read it


@pytest.mark.parametrize("name", ["trace", "certificate"])
def test_what_lies_in_the_place_of_an_output_or_a_certificate_is_refused(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    *_, job = jobs(plan, "train")
    path = Path(job.certificate if name == "certificate" else job.outputs[name])
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path)
    preflight.check(plan, [job], here=False)  # a link is replaced, not what it leads to
    path.unlink()
    os.mkfifo(path)
    told = sentence(lambda: preflight.check(plan, [job], here=False))
    has(told, f"{path.name}: a folder, pipe or device is in the place of an output file")


def test_an_archive_with_fewer_samples_than_a_scenario_uses_is_refused(tmp_path: Path) -> None:
    plan = Plan({**toy(settings={"data": {"dataset": "mnist", "samples": 5000}}), "data_dir": str(tmp_path)})

    def archive(samples: int) -> Path:
        x, y = np.zeros((samples // 2, 28, 28), np.uint8), np.zeros(samples // 2, np.uint8)
        return write_archive(tmp_path / "mnist.npz", x_train=x, y_train=y, x_test=x, y_test=y)

    path = archive(4998)
    told = sentence(lambda: preflight.check(plan, jobs(plan, "data"), here=False))
    has(told, f"{path}: the archive has 4998 samples, but toy/", " uses 5000 (data.samples); use fewer")
    archive(5000)
    preflight.check(plan, jobs(plan, "data"), here=False)


def test_archives_that_nobody_can_download_are_told_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan({**CONFIG, "data_dir": str(tmp_path)})
    needed = [plan.job("data", {"dataset": name}) for name in ("mnist", "cifar10", "digits", "cifar100", "mnist")]
    asked: set[tuple[str, Path]] = set()

    def available(name: str, folder: Path) -> bool:
        asked.add((name, folder))
        return name == "CIFAR100"

    monkeypatch.setattr(torchvision_import, "available", available)
    text = sentence(lambda: preflight.check(plan, needed, here=True))
    archives = f"{tmp_path}/cifar10.npz, {tmp_path}/mnist.npz;"
    has(text, f"missing archives that cannot be downloaded here: {archives} put them in place")
    assert asked == {(name, tmp_path / "torchvision") for name in ("MNIST", "CIFAR10", "CIFAR100")}
    preflight.check(plan, needed, here=False)  # the machine of the jobs may reach more
    preflight.check(plan, [needed[2], needed[3]], here=True)
    only = about("mnist")
    monkeypatch.setattr(preflight, "about", lambda name: type(only)(only.shape, only.classes, only.samples))
    has(sentence(lambda: preflight.check(plan, needed[:1], here=False)), "downloaded here: ", "/mnist.npz; put")


def test_an_archive_that_results_were_made_from_is_not_replaced_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = Certificate("k", "data", {"dataset": "mnist", "archive": "0" * 64}, "c", {}, {}, {"mnist.npz": (1, "0")})
    path = Path("results/paper/data/mnist.made.json")
    path.parent.mkdir(parents=True)
    certificate.write(path, made)
    plan = Plan({**CONFIG, "data_dir": "elsewhere"})
    needed = jobs(plan, "data")
    told = sentence(lambda: preflight.check(plan, needed, here=False))
    has(
        told,
        "elsewhere/mnist.npz: results were made from this archive, which is not there; ",
        "(DATA_DIR=...",
        str(path),
    )
    (found,) = costs.sources(plan, needed)
    assert found.origin == "what results were made from: provide it, or its folder (DATA_DIR=...)"
    path.unlink()
    plan = Plan({**CONFIG, "data_dir": "elsewhere"})
    preflight.check(plan, jobs(plan, "data"), here=False)


def test_leaf_s_files_stand_in_for_an_archive(tmp_path: Path) -> None:
    plan = Plan({**CONFIG, "data_dir": str(tmp_path)})
    needed = [plan.job("data", {"dataset": "shakespeare"})]
    has(sentence(lambda: preflight.check(plan, needed, here=True)), "downloaded here: ", "/shakespeare.npz; put")
    roles(tmp_path)
    preflight.check(plan, needed, here=True)


def test_pretrained_weights_that_nobody_can_download_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    asked: list[str] = []

    def answers(url: str) -> bool:
        asked.append(url)
        return False

    monkeypatch.setattr(torchvision_import, "_answers", answers)

    def trained(**params: str) -> tuple[Plan, list[Job]]:
        plan = Plan(toy(settings={**MNIST, "model": {"name": "vgg16", "params": params}}))
        return plan, jobs(plan, "train")[:1]

    text = sentence(lambda: preflight.check(*trained(), here=True))
    has(text, "vgg16-397923af.pth: missing pretrained weights (cannot reach its server)")
    assert asked == ["https://download.pytorch.org/models/vgg16-397923af.pth"]
    preflight.check(*trained(), here=False)
    preflight.check(*trained(weights="random"), here=True)
    file = tmp_path / "hub" / "checkpoints" / "vgg16-397923af.pth"
    file.parent.mkdir(parents=True)
    file.touch()
    preflight.check(*trained(), here=True)
    assert len(asked) == 1


class Server(BaseHTTPRequestHandler):
    """Knows one file, and forbids to ask for another."""

    def do_HEAD(self) -> None:
        self.send_response({"/there": 200, "/forbidden": 403}.get(self.path, 404))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_data_set_is_available_where_it_was_downloaded_or_one_of_its_servers_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mnist, cifar = torchvision_import.datasets().MNIST, torchvision_import.datasets().CIFAR10
    nobody = "http://127.0.0.1:1/"
    with HTTPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}/"
        monkeypatch.setattr(mnist, "resources", [("there", "md5")])
        for mirrors, expected in (([nobody, here], True), ([f"{here}absent/"], False), ([nobody], False)):
            monkeypatch.setattr(mnist, "mirrors", mirrors)
            assert torchvision_import.available("MNIST", tmp_path) == expected
        for name, expected in (("there", True), ("forbidden", True), ("absent", False)):
            monkeypatch.setattr(cifar, "url", f"{here}{name}")
            assert torchvision_import.available("CIFAR10", tmp_path) == expected
        server.shutdown()
    monkeypatch.setattr(mnist, "__init__", lambda self, root: None if root == str(tmp_path) else self.absent)
    assert torchvision_import.available("MNIST", tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_here_is_refused_here_alone(tmp_path: Path) -> None:
    plan = Plan({**CONFIG, "data_dir": str(tmp_path), "device": "cuda"})
    preflight.check(plan, jobs(plan, "train"), here=False)  # a cluster's jobs may have one
    preflight.check(plan, jobs(plan, "partition"), here=True)
    told = sentence(lambda: preflight.check(plan, jobs(plan, "train"), here=True))
    assert told == "device: cuda is set, but torch finds no GPU; allowed here: auto, cpu."


def test_libraries_are_checked_where_the_jobs_run(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(digest, "check_installed", lambda *modules: asked.append(modules[0]))
    preflight.check(plan, jobs(plan, "partition", "select"), here=False)
    assert asked == []
    preflight.check(plan, jobs(plan, "partition", "select"), here=True)
    assert set(asked) == {"fu.pipeline.stages.partition", "fu.pipeline.stages.select"}
