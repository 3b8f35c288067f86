"""Seconds of planning: a dry run of the `paper` preset, and of `smoke` (with nothing to do, if it has been run)."""

import re
import statistics
import subprocess
import sys
import time


def dry_run(preset: str, repeats: int = 3) -> None:
    times, jobs = [], "0"
    for _ in range(repeats):
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", "-n", "--quiet", "rules", "--config", f"preset={preset}"],
            capture_output=True,
            text=True,
            check=True,
        )
        times.append(time.perf_counter() - begun)
        found = re.search(r"^total +(\d+)", done.stdout + done.stderr, re.M)
        jobs = found[1] if found else "0"
    print(f"{preset}: {jobs} jobs planned in {statistics.median(times):.2f} s (first {times[0]:.2f} s)")


if __name__ == "__main__":
    dry_run("paper")
    dry_run("smoke")
