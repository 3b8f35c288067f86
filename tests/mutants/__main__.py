"""Break the program one line at a time, and see whether its tests notice: `python -m tests.mutants [part ...] [-j 2]`.

Every worker has a copy of the repository, so nothing here is touched. Ends with status 1 where a mutant survives that
is not defended.
"""

import argparse
import compileall
import multiprocessing
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import wait
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Literal

from tqdm import tqdm

from fu.errors import UserError
from tests.mutants import ROOT, Mutant, parts, read
from tests.mutants.child import log_of, run_pytest

TIMEOUT_S = 240  # a mutant that never ends is noticed, too
PRELOADED = ["pandas", "pytest", "seaborn", "torch"]  # once, in the process that those of the tests are forked from
STATUS = Lock()  # a start reads the statuses of all processes that ended; of two threads that read one, one gets 255
Verdict = Literal["killed", "survived"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the lists and print what became of every mutant."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"lists to run (default: all): {', '.join(parts())}")
    parser.add_argument("-j", "--jobs", type=int, default=2, metavar="N", help="how many mutants to run at a time")
    args = parser.parse_args(argv)
    listed = [(part, mutant) for part in args.parts or parts() for mutant in read(part)]
    if args.jobs < 1:
        raise UserError(f"--jobs: must be at least 1, got {args.jobs}.")
    with TemporaryDirectory(prefix="fu-mutants-") as folder:
        copies = [Path(folder, str(number)) for number in range(min(args.jobs, len(listed)))]
        for place in copies:
            copy(place)
        check_unbroken(copies, sorted({test for _, mutant in listed for test in mutant.tests}))
        verdicts = judge([mutant for _, mutant in listed], copies)
    return report([(part, mutant, verdict) for (part, mutant), verdict in zip(listed, verdicts, strict=True)])


def copy(place: Path) -> None:
    """Copy what git tracks, and new files that it does not ignore."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        raise UserError(f"{ROOT}: this is not a git checkout, so nobody knows what to copy; use a clone.") from None
    for name in filter(None, names):
        if (ROOT / name).is_file():  # not one that was deleted since
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    # Checked against the source by its hash, so that a mutant's own file is compiled, and no other.
    compileall.compile_dir(place / "fu", quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)


def run_tests(place: Path, tests: Sequence[str], timeout_s: float | None = None) -> int | None:
    """Run tests in a copy and return pytest's status, or None after `timeout_s`; the output is in `log_of(place)`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    process = context.Process(target=run_pytest, args=(place, tests))
    with STATUS:
        process.start()
    wait([process.sentinel], timeout_s)
    with STATUS:
        status = process.exitcode
        process.kill()
        process.join()
    return status


def check_unbroken(copies: Sequence[Path], tests: Sequence[str]) -> None:
    """Raise `UserError` where tests fail, each run alone as mutants run them, before anything is broken."""

    def failed(place: Path, share: Sequence[str]) -> str | None:
        return next((test for test in share if run_tests(place, [test])), None)

    with ThreadPoolExecutor(len(copies)) as pool:
        found = list(pool.map(failed, copies, [tests[number :: len(copies)] for number in range(len(copies))]))
    for place, test in zip(copies, found, strict=True):
        if test:
            print(log_of(place).read_text(), file=sys.stderr)
            raise UserError(f"{test} fails before anything is broken (see above); mend that first.")


def judge(mutants: Sequence[Mutant], copies: Sequence[Path]) -> list[Verdict]:
    """Return what became of each mutant, one at a time in each copy."""
    free: SimpleQueue[Path] = SimpleQueue()
    for place in copies:
        free.put(place)

    def judged(mutant: Mutant) -> Verdict:
        place = free.get()
        try:
            return verdict(mutant, place)
        finally:
            free.put(place)

    with ThreadPoolExecutor(len(copies)) as pool, tqdm(total=len(mutants), unit="mutant") as bar:
        waiting = {pool.submit(judged, mutant): mutant for mutant in mutants}
        survived = 0
        try:
            for done in as_completed(waiting):
                if done.result() == "survived":
                    survived += 1
                    bar.write(f"survived: {waiting[done]}", file=sys.stderr)
                bar.set_postfix(survived=survived, refresh=False)
                bar.update()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [done.result() for done in waiting]


def verdict(mutant: Mutant, place: Path) -> Verdict:
    """Break the line in a copy, run its tests, restore the file."""
    path = place / mutant.file
    before = path.read_text()
    path.write_text(mutant.applied(before))
    try:
        status = run_tests(place, mutant.tests, TIMEOUT_S)
    finally:
        path.write_text(before)
    if status not in (None, 0, 1, 2):  # None: it never ended; 2: a file of tests cannot even be imported
        raise UserError(f"{mutant}: pytest could not run {' '.join(mutant.tests)} (status {status}).")
    return "survived" if status == 0 else "killed"


def report(found: Sequence[tuple[str, Mutant, Verdict]]) -> int:
    """Print the survivors and a table of the parts; return the exit status."""
    survivors = [(mutant, mutant.defended) for _, mutant, verdict in found if verdict == "survived"]
    for mutant, defence in survivors:
        print(f"{'defended' if defence else 'SURVIVED'}: {mutant}{f' ({defence})' if defence else ''}")
    for _, mutant, verdict in found:
        if verdict == "killed" and mutant.defended:
            print(f"killed although defended, so it needs no defence: {mutant}")
    print(f"\n{'part':<16}{'mutants':>10}{'killed':>10}{'defended':>10}{'survived':>10}")
    for part in [*dict.fromkeys(part for part, *_ in found), "all"]:
        here = [(mutant, verdict) for name, mutant, verdict in found if part in (name, "all")]
        left = [mutant for mutant, verdict in here if verdict == "survived"]
        defended = sum(mutant.defended is not None for mutant in left)
        print(f"{part:<16}{len(here):>10}{len(here) - len(left):>10}{defended:>10}{len(left) - defended:>10}")
    return int(any(defence is None for _, defence in survivors))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        sys.exit(f"error: {error}")
