"""A Slurm of two nodes on this machine, in a temporary folder, for as long as a test needs it.

Debian: `apt-get install slurm-wlm munge`. No root, no accounting, no cgroups: the daemons run as whoever starts them.
"""

import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.workflow.project import until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")
NODES = ("node1", "node2")
STARTING_S = 60.0
# Times are short, so that a fault takes seconds. Partitions: the usual one, and one whose limit cuts jobs off.
CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket
CredType=cred/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool-%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
MinJobAge=86400
KillWait=5
SlurmctldTimeout=10
SlurmdTimeout=10
{nodes}
PartitionName=usual Nodes=ALL Default=YES MaxTime=2:00:00
PartitionName=brief Nodes=ALL MaxTime=1
PartitionName=gpus Nodes={last} MaxTime=1:00:00
"""


class Slurm:
    """The running daemons, by name."""

    def __init__(self, root: Path, cores: int) -> None:
        self.root = root
        (root / "bin").mkdir()
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(root / "slurm.conf"),
            "PATH": f"{root}/bin:{os.environ['PATH']}:/usr/sbin:/sbin",
        }
        # In a job the plug-in removes SLURM_CONF; an installed Slurm has its configuration in /etc.
        srun = root / "bin/srun"
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={root}/slurm.conf exec {shutil.which("srun")} "$@"\n')
        srun.chmod(0o755)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        (root / "munge.key").write_bytes(secrets.token_bytes(128))
        (root / "munge.key").chmod(0o400)
        (root / "state").mkdir()
        host = socket.gethostname().partition(".")[0]
        ports = _free_ports(1 + len(NODES))
        (root / "gres.conf").write_text(f"NodeName={NODES[-1]} Name=gpu File=/dev/null\n")
        nodes = "\n".join(
            f"NodeName={name} NodeHostName={host} NodeAddr=127.0.0.1 Port={port} CPUs={cores} RealMemory=32000"
            + " Gres=gpu:1" * (name == NODES[-1])
            for name, port in zip(NODES, ports[1:], strict=True)
        )
        (root / "slurm.conf").write_text(
            CONFIG.format(host=host, ports=ports, user=getpass.getuser(), root=root, nodes=nodes, last=NODES[-1])
        )

    def start(self, *names: str) -> None:
        """Start daemons: munged, slurmctld, or a node."""
        commands = {
            "munged": [
                *("munged", "--foreground", "--force", f"--key-file={self.root}/munge.key"),
                *(f"--{name}={self.root}/munge.{name.partition('-')[0]}" for name in ("socket", "pid-file")),
                *(f"--{name}={self.root}/munge.{name.partition('-')[0]}" for name in ("log-file", "seed-file")),
            ],
            "slurmctld": ["slurmctld", "-D"],
            **{name: ["slurmd", "-D", "-N", name] for name in NODES},
        }
        for name in names:
            with (self.root / f"{name}.log").open("ab") as log:
                self._running[name] = subprocess.Popen(
                    commands[name],
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # a Ctrl-C is for the test, which then ends them in order
                )
            if name == "munged":
                until((self.root / "munge.socket").exists, STARTING_S, "munged does not start")

    def kill(self, name: str) -> None:
        """End a daemon at once, as a crash does: jobs on its node go on."""
        self._running[name].kill()
        self._running.pop(name).wait()

    def ask(self, *command: str) -> str:
        """Run one of Slurm's commands and return what it prints."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout.strip()

    def jobs(self) -> list[str]:
        """Return all jobs so far: number, state, time used, comment, begin and end."""
        return self.ask("squeue", "--states=all", "--noheader", "--format=%i|%T|%M|%k|%S|%e").splitlines()

    def idle(self) -> bool:
        """Whether all nodes are ready and nothing runs."""
        with contextlib.suppress(AssertionError):
            return set(self.ask("sinfo", "--noheader", "--Node", "--format=%T").split()) == {"idle"}
        return False

    def stop(self) -> None:
        """End all jobs, all daemons, and whatever they have left."""
        with contextlib.suppress(AssertionError):
            self.ask("scancel", "--me")
            until(lambda: not self.ask("squeue", "--noheader"), 30, "jobs do not end", pause=0.1)
        for name in [*NODES, "slurmctld", "munged"]:
            if name in self._running:
                self._running[name].terminate()
        for daemon in self._running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(10)
        for process in self.left():
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)

    def left(self, *but: str) -> list[psutil.Process]:
        """Return the processes of this Slurm but those of these names: daemons, their jobs, and what those started."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                mine = process.environ().get("SLURM_CONF") == self.environment["SLURM_CONF"]
                ended = process.status() == psutil.STATUS_ZOMBIE
                if mine and not ended and process.pid != os.getpid() and process.name() not in but:
                    found.append(process)
        return found


@contextlib.contextmanager
def slurm(cores: int = 4) -> Iterator[Slurm]:
    """Start a Slurm, and leave nothing of it behind. `cores`: per node, whatever this machine has."""
    missing = [name for name in PROGRAMS if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]
    if missing:
        raise SystemExit(f"error: {', '.join(missing)}: not installed (Debian: apt-get install slurm-wlm munge).")
    root = Path(tempfile.mkdtemp(prefix="fu-slurm-"))
    started = Slurm(root, cores)
    try:
        started.start("munged", "slurmctld", *NODES)
        until(started.idle, STARTING_S, "Slurm does not start", pause=0.1)
        yield started
    finally:
        started.stop()
        shutil.rmtree(root, ignore_errors=True)


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
