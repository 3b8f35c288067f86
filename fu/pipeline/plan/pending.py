"""Which jobs have to run, and why: found by following certificates from job to job. File timestamps play no part.

A job is current if its certificate has the planned key, its inputs were made by current jobs, and its existing outputs
are unchanged. An output that no job needs may be absent: its certificate is enough. A job that runs only because of an
upstream job ends at once if that job made the same outputs again (`certificate.still_made`).
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fu.contents import checksum
from fu.pipeline.plan.plan import Job, Plan
from fu.pipeline.provenance import certificate, digest
from fu.pipeline.provenance.certificate import Certificate

SEEN = Path("results/.cache/seen.json")


class Change(NamedTuple):
    """A part of a spec, a module or a library, and what changed there."""

    path: tuple[str, ...]
    what: str = ""

    def __str__(self) -> str:
        """Return the change in words."""
        return ": ".join(filter(None, (".".join(self.path), self.what)))


class Reason(NamedTuple):
    """Why a job has to run: the kind of change (new, setting, code, library, input, ...), and what changed."""

    kind: str
    text: str
    changes: tuple[Change, ...] = ()


ABSENT = object()
LONG = 60  # characters of a value that are shown
FOLLOWS = Reason("follows", "because an upstream job runs")


class Seen:
    """The stat of each file when it was last hashed here, so that only files touched since are hashed again.

    Results that were copied look otherwise (another inode, a later change time), and those of a run that was killed
    were never looked at: both are hashed once.
    """

    def __init__(self) -> None:
        """Load the cache."""
        self._known: dict[str, list[Any]] = {
            path: looks for path, looks in digest.load_cache(SEEN).items() if isinstance(looks, list)
        }
        self._before = dict(self._known)

    def content(self, path: str, made: Certificate, thorough: bool = False) -> str | None:
        """Return the SHA-256 of an output, None where it is absent; `thorough`: hash it even if its stat is the same.

        The certificate is no evidence: it may have been copied, with a file that was damaged on the way.
        """
        looks = _looks(path, made)
        if looks is None:
            return None
        if thorough or self._known.get(path, [])[:-1] != looks:
            self._known[path] = [*looks, checksum(Path(path))]
        return str(self._known[path][-1])

    def made(self, path: str, made: Certificate) -> None:
        """Note the outputs of a job that has just run here: it hashed them before it wrote its certificate at `path`.

        One that was touched later than the certificate is left to be hashed. Both times are the file system's own.
        """
        certified = _looks(path, made)
        for name, (size, content) in made.outputs.items():
            file = str(Path(path).with_name(name))
            looks = _looks(file, made)
            if certified and looks and looks[0] == size and looks[2] <= certified[2]:
                self._known[file] = [*looks, content]

    def remember(self) -> None:
        """Write the cache."""
        if self._known != self._before:
            digest.save_cache(SEEN, self._known)


def _looks(path: str, made: Certificate) -> list[Any] | None:
    """Return a file's size, times, inode and certificate seal; None where it is absent."""
    try:
        stat = os.stat(path)  # noqa: PTH116 (there are many)
    except OSError:
        return None
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, made.seal]


class Pending:
    """The jobs of a plan that are not current, with the reason of each."""

    def __init__(self, plan: Plan, thorough: bool = False) -> None:
        """`thorough`: read the content of every file."""
        self.plan, self.thorough, self.seen = plan, thorough, Seen()
        self._reasons: dict[str, Reason | None] = {}  # by certificate
        self._made: dict[str, Certificate | None] = {}

    def reason(self, job: Job) -> Reason | None:
        """Return why a job has to run, or None if it is current."""
        if job.certificate not in self._reasons:
            made = self._made[job.certificate] = certificate.read(Path(job.certificate))
            self._reasons[job.certificate] = self._reason(job, made)
        return self._reasons[job.certificate]

    def to_make(self, wanted: Iterable[Job]) -> Iterator[tuple[Job, Reason]]:
        """Yield those of these jobs and their dependencies that have to run: not current, or needed but absent."""
        asked = list(wanted)
        behind = list(self.plan.behind(asked))
        needed = {path for job in asked for path in job.outputs.values()}
        running: dict[str, Reason] = {}
        for job in reversed(behind):  # every job before its dependencies
            absent = [path for path in job.outputs.values() if path in needed and not Path(path).exists()]
            reason = self.reason(job) or (Reason("absent", f"{absent[0]} is needed again") if absent else None)
            if reason:
                running[job.certificate] = reason
                needed.update(job.files)
        yield from ((job, running[job.certificate]) for job in behind if job.certificate in running)

    def remember(self) -> None:
        """Save the cache."""
        self.seen.remember()

    def remember_made(self) -> None:
        """Save the cache after a run, with the outputs of every certificate that is new since planning."""
        for path, reason in self._reasons.items():
            made = certificate.read(Path(path)) if reason else None
            before = self._made[path]
            if made and made.seal != (before.seal if before else ""):
                self.seen.made(path, made)
        self.remember()

    def _job(self, path: str) -> Job:
        return self.plan.job(*self.plan.producers[path])

    def _reason(self, job: Job, made: Certificate | None) -> Reason | None:
        if made is None:
            existing = [path for path in job.outputs.values() if Path(path).exists()]
            if existing:
                return Reason("certificate", f"{job.certificate} is missing or damaged")
            return Reason("new", "never run")
        if made.key not in job.keys:
            return _changed(job, made)
        planned = sorted({*job.outputs.values()} - {job.certificate})
        if {*map(_name, planned)} != {*made.outputs}:
            return Reason("certificate", f"{job.certificate} does not list the job's outputs")
        for path in planned:
            content = self.seen.content(path, made, self.thorough)
            if content is None and job.stage == "publish":
                return Reason("missing", f"{path} is missing")
            if content not in (None, made.outputs[_name(path)][1]):
                return Reason("damaged", f"{path} was changed after it was made")
        return self._moved(job, made)

    def _moved(self, job: Job, made: Certificate) -> Reason | None:
        """Return what changed in the inputs: which files are read, in their roles and order, or their contents."""
        follows = None
        for role in dict.fromkeys([*job.listed, *made.inputs]):
            if role == "costs":  # times differ from run to run
                continue
            # The digests of files that no job makes are in the spec.
            planned = [path for path in job.listed.get(role, []) if path in self.plan.producers]
            read = made.inputs.get(role, [])
            if planned != [path for path, _ in read]:
                return Reason("input", _handed_over(role, [path for path, _ in read], planned))
            for path, content in read:
                before = self._job(path)
                if self.reason(before):
                    follows = FOLLOWS
                    continue
                upstream = self._made[before.certificate]
                assert upstream is not None
                if upstream.outputs[_name(path)][1] != content:
                    return Reason("input", f"{path} has changed")
        return follows


def _name(path: str) -> str:
    """Return the name of a file, in a twentieth of the time that `Path` takes: 50,000 jobs read some 500,000 files."""
    return path.rpartition("/")[2]


def _handed_over(role: str, before: Sequence[str], now: Sequence[str]) -> str:
    """Return in words how the files in a role differ from those that were read."""
    changes = [f"{path} is new" for path in now if path not in before]
    changes += [f"{path} is no longer read" for path in before if path not in now]
    return f"{role}: {changes[0] if changes else 'the order of the files has changed'}"


def _changed(job: Job, made: Certificate) -> Reason:
    """Return what differs between a certificate and the plan: settings, libraries, or code."""
    several = [tuple(_differences(made.spec, spec.model_dump(mode="json"))) for spec in job.specs]
    if settings := min(several, key=len):
        return Reason("setting", "; ".join(map(str, settings)), settings)
    now, before = job.parts, made.parts
    changed = [name for name in sorted({*now, *before}) if now.get(name) != before.get(name)]
    if libraries := [name for name in changed if not name.startswith("fu")]:
        versions = (f"{before.get(name, 'absent')} -> {now.get(name, 'absent')}" for name in libraries)
        told = tuple(Change((name,), version) for name, version in zip(libraries, versions, strict=True))
        return Reason("library", "; ".join(map(str, told)), told)
    return Reason("code", ", ".join(changed) or "how digests are computed", tuple(Change((name,)) for name in changed))


def _differences(old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """Yield what differs between two specs, as deep inside as possible; records in a list are known by their names."""
    before, after = _records(old), _records(new)
    if isinstance(before, dict) and isinstance(after, dict):
        changed = [key for key in sorted({*before, *after}) if before.get(key, ABSENT) != after.get(key, ABSENT)]
        for key in changed:
            yield from _differences(before.get(key, ABSENT), after.get(key, ABSENT), (*path, key))
        if old != new and not changed:
            yield Change(path, "another order")
    elif ABSENT in (old, new):
        yield Change(path, "removed" if new is ABSENT else "new")
    elif old != new:
        texts = [value if isinstance(value, str) else json.dumps(value) for value in (old, new)]
        yield Change(path, " -> ".join(texts) if max(map(len, texts)) <= LONG else "changed")


def _records(value: Any) -> Any:
    """Return a list of records by their names, or by their places where two have one name."""
    if not (isinstance(value, list) and value and all(isinstance(item, dict) for item in value)):
        return value
    names = [str(item.get("name", place)) for place, item in enumerate(value, 1)]
    return dict(zip(names if len({*names}) == len(names) else map(str, range(1, len(value) + 1)), value, strict=True))
