"""Write a bundle: a zip file that is an RO-Crate (https://w3id.org/ro/crate/1.3) of unchanged tables and figures.

It has the files that a reader needs to check and cite them, at the same paths as in a project. Models, data sets and
other intermediate files are left out; only their certificates are included. It can be unpacked into a clone.
"""

import hashlib
import json
import stat
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from mimetypes import MimeTypes
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import yaml

from fu.artefacts.provenance import edited, git
from fu.contents import require_file
from fu.errors import UserError
from fu.pipeline.bundle.check import METADATA, Jobs, check, jobs_behind
from fu.pipeline.page import write as page
from fu.pipeline.page.made import DIGITS, Artefact, read
from fu.pipeline.plan.pending import Pending
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance import certificate
from fu.pipeline.provenance.digest import LOCK, ROOT
from fu.pipeline.provenance.paths import CERTIFIED
from fu.pipeline.settings.papers import files
from fu.pipeline.settings.records import Paper

COPIED = ("Snakefile", LOCK, "CITATION.cff", "LICENSE")  # the lock is that of a clone
TYPES = MimeTypes()
TYPES.add_type("text/markdown", ".md")
TYPES.add_type("application/yaml", ".yaml")


def write(plan: Plan, targets: Sequence[str]) -> Iterator[str]:
    """Write the bundle of what was made of the targets (none: all), whole or not at all.

    Yields a sentence on what is left out, then what `check` says of the bundle. `UserError` where there is nothing to
    bundle, or a file cannot be read or written.
    """
    root, pending, preset = Path(plan.root), Pending(plan), f"PRESET={plan.config.preset}"
    artefacts, damaged = read(root / "artefacts")
    made = {"_".join(artefact.key): artefact for artefact in artefacts}
    good, jobs, old = list[Artefact](), Jobs(), list[str]()
    read_once = cache(lambda name: certificate.read(root / name))
    for job in (job for job in plan.asked(targets) if job.stage == "publish"):
        target = f"{job.names['paper']}_{job.names['artefact']}"
        if (artefact := made.get(target)) is None:
            yield damaged.get(target, f"{target}: not made yet, so left out.")
            continue
        behind, gaps = jobs_behind([str(Path(job.certificate).relative_to(root))], read_once)
        if gaps:
            yield f"{target}: {gaps[0]}."
            continue
        good.append(artefact)
        jobs |= behind
        if pending.reason(job):
            old.append(target)
    pending.remember()
    if not good:
        raise UserError(
            f"{root}/artefacts: there is no whole table or figure to bundle; run `make reproduce {preset}` first."
        )
    if old:
        yield (
            f"{', '.join(old)}: out of date with the current settings, code or data; `make why {preset}` lists what "
            "changed."
        )
    try:
        contents = _contents(plan, good, jobs)
        yield _zipped(contents | {METADATA: _metadata(plan, good, contents, old)}, root)
    except OSError as error:
        raise UserError(f"{error.filename or root}: {error.strerror or error}; no bundle was written.") from None


def _zipped(contents: dict[str, bytes], root: Path) -> str:
    """Write these files as a bundle, and return what its check says."""
    digests = "".join(f"{name}{hashlib.sha256(contents[name]).hexdigest()}" for name in sorted(contents))
    commit, digest = git("rev-parse", "HEAD") or "unknown", hashlib.sha256(digests.encode()).hexdigest()
    path = root / f"{root.name}-{commit[:DIGITS]}-{digest[:DIGITS]}.crate.zip"
    with TemporaryDirectory(prefix=".part-", dir=root) as folder:
        part = Path(folder, path.name)
        with ZipFile(part, "w", ZIP_DEFLATED) as file:
            for name in sorted(contents):
                info = ZipInfo(name)  # without a time, so that equal results give equal bytes
                info.external_attr = (stat.S_IFREG | 0o644) << 16  # readable by all
                file.writestr(info, contents[name], ZIP_DEFLATED)
        problems, summary = check(part)
        if problems:  # a job has written meanwhile
            raise UserError(f"{problems[0].removesuffix('.')}; files changed during bundling, run `make bundle` again.")
        part.replace(path)
    return summary.replace(str(part), str(path))


def _contents(plan: Plan, artefacts: Sequence[Artefact], jobs: Jobs) -> dict[str, bytes]:
    """Return every file of a bundle but the metadata, by name."""
    root, keys, papers = Path(plan.root), {artefact.key for artefact in artefacts}, dict[str, Paper]()
    for name, paper in plan.papers.items():
        if entries := {key: entry for key, entry in paper.artefacts.items() if (name, key) in keys}:
            papers[name] = paper.model_copy(update={"artefacts": entries})
    shown = page.render(root, plan.config.preset, plan.preset.description, papers, [*artefacts])
    config = yaml.safe_dump(plan.config.model_dump(mode="json", exclude_unset=True), sort_keys=False)
    of_users = [files("presets")[plan.config.preset], *(files("papers")[name] for name in papers)]
    results = [*(root / name for name in jobs)]
    results += [artefact.path.with_name(name) for artefact in artefacts for name in artefact.made.outputs]
    copied = [name for name in COPIED if name != LOCK or (ROOT / name).exists()]
    paths = {name: ROOT / name for name in copied} | {"/".join(path.parts[-3:]): path for path in of_users}
    paths |= {str(path): path for path in results}
    for path in paths.values():
        require_file(path)
    contents = {name: path.read_bytes() for name, path in paths.items()}
    return contents | {"config.yaml": config.encode(), plan.paths.page: shown.encode()}


def _metadata(plan: Plan, artefacts: Sequence[Artefact], contents: Mapping[str, bytes], old: Sequence[str]) -> bytes:
    """Return the metadata of the crate: its files, the papers, and of each artefact the command that makes it."""
    from rocrate.model.contextentity import ContextEntity
    from rocrate.rocrate import ROCrate

    crate, preset, entities = ROCrate(version="1.3"), plan.config.preset, dict[str, Any]()

    def entity(identifier: str, kind: str, **properties: str) -> Any:
        return crate.add(ContextEntity(crate, identifier, properties={"@type": kind, **properties}))

    for name, content in contents.items():
        about = {"name": name, "encodingFormat": TYPES.guess_type(name)[0] or "text/plain"}
        about |= {"contentSize": str(len(content)), "sha256": hashlib.sha256(content).hexdigest()}
        entities[name] = crate.add_file(dest_path=name, properties=about)
    for artefact in artefacts:
        target = "_".join(artefact.key)
        about = {
            "name": f"make reproduce PRESET={preset} TARGETS={target}",
            "description": artefact.about["spec"]["title"],
        }
        results = [entities[str(artefact.path.with_name(name))] for name in artefact.made.outputs]
        action = crate.add_action(entities["Snakefile"], f"#{target}", entities["config.yaml"], results, about)
        crate.root_dataset.append_to("mentions", action)
    made_by = f"fu {version('fu')}, commit {git('rev-parse', 'HEAD') or 'unknown'}{', edited' * bool(edited())}"
    papers = {name: plan.papers[name] for name in dict.fromkeys(artefact.key[0] for artefact in artefacts)}
    licence = yaml.safe_load(contents["CITATION.cff"])["license"]
    remark = f" Not what these settings and this code would make: {', '.join(old)}." if old else ""
    newest = max(artefact.file(CERTIFIED[1:]).stat().st_mtime for artefact in artefacts)
    date = git("log", "-1", "--format=%cI") or datetime.fromtimestamp(newest, UTC).isoformat("T", "seconds")
    for key, value in {
        "name": f"Tables and figures of {', '.join(papers)}, regenerated at preset {preset}",
        "description": f"Made by {made_by}. Preset {preset}: {plan.preset.description} With the certificates of all "
        f"jobs, without models and data sets; `make verify BUNDLE=...` checks it.{remark}",
        "datePublished": date,
        "license": entity(f"https://spdx.org/licenses/{licence}", "CreativeWork", name=licence, description="LICENSE"),
        "isBasedOn": [  # a citation needs an address, and papers here have none
            entity(f"#{name}", "ScholarlyArticle", name=paper.title, creditText=paper.citation)
            for name, paper in papers.items()
        ],
    }.items():
        crate.root_dataset[key] = value
    return json.dumps(crate.metadata.generate(), indent=1, ensure_ascii=False, sort_keys=True).encode()
