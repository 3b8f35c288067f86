"""An executor for tests: a queue whose jobs start when the file `go` is there, as a cluster starts them."""

import os
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings

common_settings = CommonSettings(
    non_local_exec=True, implies_no_shared_fs=False, job_deploy_sources=False, pass_envvar_declarations_to_cmd=False
)
KEPT = ("PATH", "HOME", "TMPDIR")  # nothing else of the environment travels


class Executor(RemoteExecutor):  # type: ignore[misc]
    def run_job(self, job: JobExecutorInterface) -> None:
        with Path("submitted").open("a") as noted:
            resources = {name: value for name, value in job.resources.items() if not isinstance(value, str)}
            names = [f"{one.rule.name} {dict(one.wildcards_dict)}" for one in (job.jobs if job.is_group() else [job])]
            print(len(names), resources, names, sep="\t", file=noted)
        folder = Path(".snakemake/slurm_logs")
        folder.mkdir(exist_ok=True)
        log = folder / f"{len([*folder.iterdir()])}.log"
        process = subprocess.Popen(
            f"until [ -e go ]; do sleep .05; done; exec > {log} 2>&1; {self.format_job_exec(job)}",
            shell=True,
            env={name: os.environ[name] for name in KEPT if name in os.environ},
            start_new_session=True,  # survives Snakemake
        )
        log.touch()
        with Path("jobs").open("a") as jobs:
            print(process.pid, file=jobs)
        about = {"process": process, "log": log}
        self.report_job_submission(SubmittedJobInfo(job, external_jobid=str(process.pid), aux=about))

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]) -> AsyncGenerator[SubmittedJobInfo, None]:
        for job in active_jobs:
            status = job.aux["process"].poll()
            if status is None:
                yield job
            elif status:
                self.report_job_error(job, aux_logs=[str(job.aux["log"])])
            else:
                self.report_job_success(job)

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        for job in active_jobs:
            job.aux["process"].kill()
