"""Compare two runs, each a folder of results or a bundle: what made them, which files are equal, which numbers differ.

Numbers are compared by `numbers.py`, for each table and figure that both runs have. A folder that holds only tables,
such as `docs/expected/smoke`, has numbers and nothing else to compare.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from fu.errors import UserError
from fu.pipeline import certificate
from fu.pipeline.bundle.check import Jobs, jobs_behind, opened
from fu.pipeline.certificate import Certificate
from fu.pipeline.compare.numbers import FAR, FARTHEST, Numbers, compared
from fu.pipeline.page.made import DIGITS, Artefact, read
from fu.pipeline.paths import CERTIFIED, OUTPUTS

LINES = 20  # of differences that are printed
NAMED = 10  # names in a line
SHARE = 0.15  # of a table's numbers that may be far from the expected ones: docs/measurements/machine.md, Other CPUs


class Side(NamedTuple):
    """One of two runs. `jobs`: all jobs behind its tables and figures; empty for a folder that holds only tables."""

    name: str
    artefacts: dict[str, Artefact]
    wrong: list[str]
    jobs: Jobs


class Comparison(NamedTuple):
    """Two runs compared, in words.

    `equal`: no number differs and no file is damaged. Against a folder that holds only tables: no table differs by more
    than it would on another CPU.
    """

    lines: list[str]
    equal: bool


def compare(first: Path, second: Path, targets: Sequence[str] = ()) -> Comparison:
    """Compare two runs, or the artefacts that `targets` name.

    Raises `UserError` where one is neither a results folder nor a bundle, or they share no artefact.
    """
    with _side("A", first, targets) as a, _side("B", second, targets) as b:
        shared = sorted(a.artefacts.keys() & b.artefacts.keys())
        known = {*a.artefacts, *b.artefacts, *(text.partition(":")[0] for side in (a, b) for text in side.wrong)}
        if unknown := [target for target in targets if target not in known]:
            raise UserError(f"{first} and {second}: have no table or figure {unknown[0]!r}.")
        wrong = [f"{side.name}: {text}" for side in (a, b) for text in side.wrong]
        if not shared:
            text = f"{first} and {second}: have no table or figure in common."
            raise UserError(" ".join([text, *wrong]))
        certified = [side for side in (a, b) if side.jobs]
        kinds = {
            name: artefact.about["spec"]["kind"] for side in certified for name, artefact in side.artefacts.items()
        }
        found = [compared(name, kinds.get(name, ""), a.artefacts[name], b.artefacts[name]) for name in shared]
        lines = [f"A: {first}, B: {second}", *wrong]
        for one, other in ((a, b), (b, a)):
            if alone := one.artefacts.keys() - other.artefacts.keys():
                lines.append(f"Only in {one.name}: {_listed(alone)}")
        if len(certified) == 2:
            lines += [*_made(a, b, shared), *_files(a, b, shared)]
        lines += _told(found)
        differ = {name: numbers for name, numbers in zip(shared, found, strict=True) if numbers.differences}
        if differ and len(certified) < 2:
            far = {name: text for name, numbers in differ.items() if (text := _beyond(numbers))}
            which = _listed(f"{name} ({text})" for name, text in far.items())
            limit = f"over {SHARE:.0%} of a table's numbers by more than {FAR}, or one by more than {FARTHEST}"
            lines.append(f"Tables that differ by more than another CPU explains ({limit}): {which or 'none'}")
            differ = {name: differ[name] for name in far}
        if wrong:
            what = "table or figure" if len(wrong) == 1 else "tables or figures"
            lines.append(f"Not compared, for the reasons above: {len(wrong)} {what}")
        return Comparison(lines, not wrong and not differ)


def _beyond(numbers: Numbers) -> str:
    """Return in what two tables differ by more than on two CPUs; "" where they do not."""
    if not isfinite(numbers.far):
        return "rows"
    if numbers.far > SHARE:
        return f"{numbers.far:.0%}"
    return f"one by {numbers.farthest:.2g}" if numbers.farthest > FARTHEST else ""


@contextmanager
def _side(name: str, path: Path, targets: Sequence[str]) -> Iterator[Side]:
    """Read a run, of which only `targets` count if there are any."""
    with _whole(name, path) as side:
        kept = {target: one for target, one in side.artefacts.items() if not targets or target in targets}
        wrong = [text for text in side.wrong if not targets or text.partition(":")[0] in targets]
        yield side._replace(artefacts=kept, wrong=wrong)


@contextmanager
def _whole(name: str, path: Path) -> Iterator[Side]:
    """Read a run; the files of a bundle are there as long as they are needed."""
    if not path.is_dir():
        with opened(path) as bundle:
            yield _read(name, bundle.root)
    elif (path / "artefacts").is_dir():
        yield _read(name, path)
    elif tables := sorted(file for file in path.glob("*/*.csv") if not file.name.endswith(".rows.csv")):
        bare = Certificate("", "", {}, "", {}, {})
        yield Side(
            name, {f"{file.parent.name}_{file.stem}": Artefact(file.with_suffix(""), bare) for file in tables}, [], {}
        )
    else:
        raise UserError(
            f"{path}: has neither a folder 'artefacts', like results/smoke, nor tables, like docs/expected/smoke."
        )


def _read(name: str, root: Path) -> Side:
    artefacts, wrong = read(root / "artefacts")
    good = {"_".join(artefact.key): artefact for artefact in artefacts if artefact.file("rows.csv").is_file()}
    wrong += [
        f"{target}: made by an earlier version of fu, which wrote no rows."
        for artefact in artefacts
        if (target := "_".join(artefact.key)) not in good
    ]
    first = [str(artefact.file(CERTIFIED[1:]).relative_to(root)) for artefact in good.values()]
    jobs, _ = jobs_behind(first, cache(lambda one: certificate.read(root / one)))
    return Side(name, good, wrong, jobs)


def _listed(names: Iterable[str]) -> str:
    several = sorted(names)
    more = f" and {len(several) - NAMED} more" if len(several) > NAMED else ""
    return ", ".join(several[:NAMED]) + more


# ---- what made them ------------------------------------------------------------------------------------------


def _made(a: Side, b: Side, shared: Sequence[str]) -> Iterator[str]:
    """Yield what made the shared artefacts, where it differs."""
    sides = [[_about(side.artefacts[name]) for name in shared] for side in (a, b)]
    same = []
    for key in dict.fromkeys(key for side in sides for about in side for key in about):
        first, second = (sorted({about.get(key, "none") for about in side}) for side in sides)
        if first == second:
            same.append(key)
        else:
            yield f"{key}: {', '.join(first)} in A, {', '.join(second)} in B"
    yield f"Same in both: {', '.join(same) or 'nothing'}"
    common = sorted(a.jobs.keys() & b.jobs.keys())
    for what, of in (("settings", "spec"), ("code", "code")):
        other = Counter(a.jobs[job].stage for job in common if getattr(a.jobs[job], of) != getattr(b.jobs[job], of))
        if other:
            counts = ", ".join(f"{other[stage]} of {stage}" for stage in OUTPUTS if other[stage])
            yield f"Jobs with different {what}: {other.total()} of {len(common)} ({counts})"


def _about(artefact: Artefact) -> dict[str, str]:
    about = artefact.about
    edited = "" if about["clean"] in (True, None) else ", edited"
    return {
        "commit": f"{(about['commit'] or 'unknown')[:DIGITS]}{edited}",
        "preset": about["preset"],
        "devices": " and ".join(about["devices"]) or "none",
        "threads": " and ".join(map(str, about["threads"])) or "none",
        **{f"version of {library}": text for library, text in about["versions"].items()},
    }


def _files(a: Side, b: Side, shared: Sequence[str]) -> Iterator[str]:
    """Yield which files of the shared artefacts, and how many behind all, are equal byte for byte."""
    number, unequal = 0, dict[str, list[str]]()
    for name in shared:
        first, second = (side.artefacts[name].made.outputs for side in (a, b))
        number += len({**first, **second})
        stem = f"{a.artefacts[name].path.name}."
        if others := [file for file in {**first, **second} if _digest(first, file) != _digest(second, file)]:
            unequal[name] = [file.removeprefix(stem) for file in others]
    equal = number - sum(map(len, unequal.values()))
    yield f"Tables and figures in both: {len(shared)}; {equal} of their {number} files are identical"
    yield from (f"  {name}: {', '.join(others)} differ" for name, others in [*unequal.items()][:NAMED])
    if len(unequal) > NAMED:
        yield f"  and {len(unequal) - NAMED} more"
    both, same = Counter[str](), Counter[str]()
    for job in a.jobs.keys() & b.jobs.keys():
        first, second = a.jobs[job].outputs, b.jobs[job].outputs
        for file in first.keys() & second.keys():
            if a.jobs[job].stage != "publish" and not file.endswith(".cost.json"):  # which holds seconds
                both[a.jobs[job].stage] += 1
                same[a.jobs[job].stage] += first[file][1] == second[file][1]
    if both:
        counts = ", ".join(f"{same[stage]} of {both[stage]} of {stage}" for stage in OUTPUTS if both[stage])
        yield f"Intermediate files with identical digests: {counts}"


def _digest(outputs: Mapping[str, Sequence[str]], file: str) -> str:
    return outputs[file][1] if file in outputs else "missing"


def _told(found: Sequence[Numbers]) -> Iterator[str]:
    """Yield which numbers differ, the worst first."""
    times, moved = sum(numbers.times for numbers in found), sum(numbers.moved for numbers in found)
    if times:
        yield f"Measured times (expected to differ): {moved} of {times} differ"
    several = [one for numbers in found for one in numbers.differences]
    differences = sorted(several, key=lambda one: one.rank, reverse=True)
    number = sum(numbers.compared for numbers in found)
    if not differences:
        yield f"Numbers: all {number} are equal"
        return
    cells = "1 cell differs" if len(differences) == 1 else f"{len(differences)} cells differ"
    yield f"Numbers: {number} compared; {cells}, largest differences first:"
    yield from (f"  {one}" for one in differences[:LINES])
    if len(differences) > LINES:
        yield f"  and {len(differences) - LINES} more"
