"""Write a bundle: a zip file that is an RO-Crate (https://w3id.org/ro/crate/1.3) of unchanged tables and figures.

It has the files that a reader needs to check and cite them, at the same paths as in a project. Models, data sets and
other intermediate files are left out; only their certificates are included. It can be unpacked into a clone.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import yaml
from tqdm import tqdm

from fu.artefacts.provenance import git
from fu.contents import require_file
from fu.errors import UserError
from fu.pipeline import certificate
from fu.pipeline.bundle.check import METADATA, Jobs, check, jobs_behind
from fu.pipeline.digest import ROOT
from fu.pipeline.estimates import counted
from fu.pipeline.page import write as page
from fu.pipeline.page.made import DIGITS, Artefact, read
from fu.pipeline.paths import CERTIFIED
from fu.pipeline.pending import Pending
from fu.pipeline.plan import Plan
from fu.pipeline.settings.papers import files

VERSION = "1.3"  # of RO-Crate
WORKFLOW = "Snakefile"
WHEN = (1980, 1, 1, 0, 0, 0)  # of every file in a zip, so that equal results give equal bytes
NAMED = 3  # in a sentence
KINDS = {  # end of the name of an artefact's file -> media type, and what it is
    "csv": ("text/csv", "numbers"),
    "rows.csv": ("text/csv", "numbers seed by seed"),
    "md": ("text/markdown", "to read"),
    "html": ("text/html", "to read"),
    "tex": ("application/x-tex", "for a paper"),
    "pdf": ("application/pdf", "picture"),
    "svg": ("image/svg+xml", "picture"),
    "png": ("image/png", "picture"),
    "json": ("application/json", "provenance"),
    CERTIFIED[1:]: ("application/json", "certificate"),
}


class File(NamedTuple):
    """A file that the metadata of a bundle describes."""

    content: bytes
    title: str
    kind: str  # media type


def write(plan: Plan, targets: Sequence[str]) -> Iterator[str]:
    """Write the bundle of what was made of the targets (none: all), whole or not at all.

    Yields a sentence on what is left out, then what `check` says of the bundle. `UserError` where there is nothing to
    bundle, or a file cannot be read or written.
    """
    root = Path(plan.root)
    asked = {(job.names["paper"], job.names["artefact"]): job for job in plan.asked(targets) if job.stage == "publish"}
    artefacts, wrong = read(root / "artefacts")
    damaged = {target: text for text in wrong if (target := text.partition(":")[0]) in map("_".join, asked)}
    yield from damaged.values()
    missing = [
        target
        for key in asked
        if key not in {artefact.key for artefact in artefacts} and (target := "_".join(key)) not in damaged
    ]
    if missing:
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        yield f"Not made yet, so left out: {', '.join(missing[:NAMED])}{more}."
    good, jobs, old, pending = list[Artefact](), Jobs(), list[str](), Pending(plan)
    read_once = cache(lambda name: certificate.read(root / name))
    for artefact in (artefact for artefact in artefacts if artefact.key in asked):
        behind, gaps = jobs_behind([str(artefact.file(CERTIFIED[1:]).relative_to(root))], read_once)
        if gaps:
            yield f"{'_'.join(artefact.key)}: {gaps[0]}."
            continue
        good.append(artefact)
        jobs |= behind
        if pending.reason(asked[artefact.key]):
            old.append("_".join(artefact.key))
    pending.remember()
    if not good:
        raise UserError(f"{root}/artefacts: there is no whole table or figure to bundle; run `make reproduce` first.")
    if old:
        yield f"{', '.join(old)}: out of date with the current settings, code or data; `make why` lists what changed."
    try:
        yield _written(plan, good, jobs, old)
    except OSError as error:
        raise UserError(f"{error.filename or root}: {error.strerror or error}; no bundle was written.") from None


def _written(plan: Plan, artefacts: Sequence[Artefact], jobs: Jobs, old: Sequence[str]) -> str:
    """Write the bundle of these artefacts, and return what its check says."""
    root, described = Path(plan.root), _described(plan, artefacts)
    text = json.dumps(_metadata(plan, artefacts, described, old), indent=1, ensure_ascii=False, sort_keys=True)
    contents = {f"{root}/{name}": (root / name).read_bytes() for name in jobs}
    contents |= {name: file.content for name, file in described.items()} | {METADATA: f"{text}\n".encode()}
    commit = (git("rev-parse", "HEAD") or "unknown")[:DIGITS]
    digests = "".join(f"{name}{hashlib.sha256(contents[name]).hexdigest()}" for name in sorted(contents))
    name = f"{plan.config.preset}-{commit}-{hashlib.sha256(digests.encode()).hexdigest()[:DIGITS]}.crate.zip"
    path, part = root / name, root / f".part-{os.getpid()}-{name}"
    try:
        with ZipFile(part, "w") as file:
            for name in tqdm(sorted(contents), "bundling", unit=" file", delay=2, disable=None):
                info = ZipInfo(name, WHEN)
                info.compress_type, info.external_attr = ZIP_DEFLATED, (stat.S_IFREG | 0o644) << 16
                file.writestr(info, contents[name])
        problems, summary = check(part, path)
        if problems:  # a job has written meanwhile
            raise UserError(f"{problems[0]} Files changed during bundling; run `make bundle` again.")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return summary


def _described(plan: Plan, artefacts: Sequence[Artefact]) -> dict[str, File]:
    """Return the files that the metadata describes, by name: artefacts, the page, settings, versions, licence."""
    described = {}
    for artefact in artefacts:
        for name in (*artefact.made.outputs, artefact.path.name + CERTIFIED):
            kind, what = KINDS[name.removeprefix(f"{artefact.path.name}.")]
            path = artefact.path.with_name(name)
            described[str(path)] = File(path.read_bytes(), f"{artefact.about['spec']['title']}: {what}", kind)
    keys, papers = {artefact.key for artefact in artefacts}, dict[str, page.Planned]()
    for name, paper in page.planned(plan).items():
        if titles := {key: title for key, title in paper.titles.items() if (name, key) in keys}:
            papers[name] = replace(paper, titles=titles)
            described[_place("papers", name)] = _file(
                files("papers")[name], plan.papers[name].title, "application/yaml"
            )
    preset = plan.config.preset
    shown = page.render(Path(plan.root), preset, plan.preset.description, papers, [*artefacts])
    config = yaml.safe_dump(plan.config.model_dump(mode="json", exclude_unset=True), sort_keys=False)
    return described | {
        plan.paths.page: File(shown.encode(), "All results on one page", "text/html"),
        "config.yaml": File(config.encode(), "Settings", "application/yaml"),
        _place("presets", preset): _file(files("presets")[preset], f"Preset {preset}", "application/yaml"),
        WORKFLOW: _file(ROOT / WORKFLOW, "fu: a Snakemake workflow", "text/x-python"),
        "envs/lock.txt": _file(ROOT / "envs/lock.txt", "Versions of all libraries", "text/plain"),
        "CITATION.cff": _file(ROOT / "CITATION.cff", "How to cite", "application/yaml"),
        "LICENSE": _file(ROOT / "LICENSE", "Licence", "text/plain"),
    }


def _place(folder: str, name: str) -> str:
    """Return the name in a bundle of a paper's or a preset's file, which may lie in a folder of one's own."""
    return "/".join(files(folder)[name].parts[-3:])


def _file(path: Path, title: str, kind: str) -> File:
    require_file(path)
    return File(path.read_bytes(), title, kind)


def _metadata(
    plan: Plan, artefacts: Sequence[Artefact], described: Mapping[str, File], old: Sequence[str]
) -> dict[str, Any]:
    """Return the metadata of the crate: its files, the papers, and of each artefact the command that makes it."""
    from rocrate.model.contextentity import ContextEntity
    from rocrate.rocrate import ROCrate

    crate = ROCrate(version=VERSION)

    def add(identifier: str, kind: str, **properties: Any) -> Any:
        return crate.add(ContextEntity(crate, identifier, properties={"@type": kind, **properties}))

    preset, commit = plan.config.preset, git("rev-parse", "HEAD")
    edited = ", edited" if git("status", "--porcelain", "--untracked-files=no") else ""
    made_by = f"{version('fu')}, commit {commit or 'unknown'}{edited}"
    cited = {name: paper for name, paper in plan.papers.items() if _place("papers", name) in described}
    remark = f" Not what these settings and this code would make: {', '.join(old)}." if old else ""
    licence = yaml.safe_load(described["CITATION.cff"].content)["license"]
    root = {
        "name": f"{counted(len(artefacts), 'artefact')} of {', '.join(cited)}, regenerated at preset {preset}",
        "description": f"Tables and figures, made by fu {made_by}. Preset {preset}: {plan.preset.description} With the "
        f"certificates of all jobs, without models and data sets; `make verify BUNDLE=...` checks it.{remark}",
        "datePublished": _published(artefacts),
        "license": add(
            f"https://spdx.org/licenses/{licence}",
            "CreativeWork",
            name=licence,
            description="The licence of fu and of what it makes; its text is the file LICENSE.",
        ),
        "isBasedOn": [  # a citation needs an address, and papers here have none
            add(f"#{name}", "ScholarlyArticle", name=paper.title, creditText=paper.citation)
            for name, paper in cited.items()
        ],
    }
    for key, value in root.items():
        crate.root_dataset[key] = value
    entities = {}
    for name, file in described.items():
        about: dict[str, Any] = {"name": file.title, "encodingFormat": file.kind}
        about |= {"contentSize": str(len(file.content)), "sha256": hashlib.sha256(file.content).hexdigest()}
        if name == WORKFLOW:
            about |= {"@type": ["File", "SoftwareSourceCode"], "version": made_by}
        entities[name] = crate.add_file(dest_path=name, properties=about)
    for artefact in artefacts:
        target = "_".join(artefact.key)
        action = add(f"#{target}", "CreateAction", name=f"make reproduce PRESET={preset} TARGETS={target}")
        action["instrument"] = entities[WORKFLOW]
        used = ("config.yaml", _place("papers", artefact.key[0]), _place("presets", preset))
        action["object"] = [entities[name] for name in used]
        action["result"] = [entities[str(artefact.path.with_name(name))] for name in artefact.made.outputs]
        crate.root_dataset.append_to("mentions", action)
    return dict(crate.metadata.generate())


def _published(artefacts: Sequence[Artefact]) -> str:
    """Return the date of the commit; where there is no git that of the newest artefact."""
    if date := git("log", "-1", "--format=%cI"):
        return date
    newest = max(artefact.file(CERTIFIED[1:]).stat().st_mtime for artefact in artefacts)
    return datetime.fromtimestamp(newest, UTC).isoformat(timespec="seconds")
