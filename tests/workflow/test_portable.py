"""Portable jobs compute the same bytes on every x86-64 CPU with AVX2; on one with AVX-512 each setting is needed."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from fu.pipeline.engine import fork_server
from tests.workflow.project import with_toy

PROGRAM = """
import hashlib, json
import numpy as np, torch
from fu.methods import cheat

generator = torch.Generator().manual_seed(0)
shapes = (200, 784), (784, 256), (200, 6, 14, 14), (16, 6, 5, 5)
a, b, images, kernels = (torch.rand(*shape, generator=generator) - .5 for shape in shapes)
convolution = torch.nn.functional.conv2d(images.requires_grad_(), kernels).square().sum()
step = b.flatten().clone()
cheat._adam(.1, step)(step, step)  # a gradient becomes the step that it takes
matrix = np.random.default_rng(0).normal(size=(60, 40))
results = {
    "torch": (10 * a).softmax(1).sum(), "oneDNN": torch.autograd.grad(convolution, images)[0], "MKL": a @ b,
    "OpenBLAS": np.linalg.inv(matrix.T @ matrix), "numpy": np.exp(matrix), "Adam": step,
}
print(json.dumps({name: hashlib.sha256(np.asarray(of).tobytes()).hexdigest()[:8] for name, of in results.items()}))
"""
# On an AMD EPYC of the fourth generation, an Intel Xeon, and on Haswell and EPYC as QEMU emulates them.
EXPECTED = {"torch": "531ad685", "oneDNN": "3beda439", "MKL": "91f05436", "OpenBLAS": "eaa02d09", "numpy": "badaf9b8"}
EXPECTED |= {"Adam": "66643504"}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="another architecture has other bytes")
def test_a_portable_job_computes_the_bytes_of_any_cpu() -> None:
    command, environment = [sys.executable, "-W", "error", "-c", PROGRAM], {**os.environ, **fork_server.PORTABLE}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout) == EXPECTED


@pytest.mark.whole
@pytest.mark.parametrize("cpu", ["portable", "native"])
def test_jobs_have_these_settings_where_they_are_asked_for(cpu: str, tmp_path: Path) -> None:
    project = with_toy(tmp_path / "project")
    project.edit("config.yaml", "cpu: auto", f"cpu: {cpu}")
    note = "    print({name: os.environ.get(name) for name in %r}, file=open('seen', 'a'))\n" % [*fork_server.PORTABLE]
    project.edit("fu/pipeline/stages/compute.py", "    keep_memory()\n    torch", f"    keep_memory()\n{note}    torch")
    project.snakemake()
    expected = fork_server.PORTABLE if cpu == "portable" else dict.fromkeys(fork_server.PORTABLE)
    assert {*(project.root / "seen").read_text().splitlines()} == {str(expected)}
