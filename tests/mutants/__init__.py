"""One-line mutants, a YAML list for each part of the program: what is broken, and which tests must then fail."""

import ast
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from fu.errors import UserError, first_problem, nearest

ROOT = Path(__file__).parents[2]
LISTS = Path(__file__).parent


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class Mutant(BaseModel):
    """`line`, which occurs once in `file`, becomes `broken`; then `tests` must fail, unless it is `defended`: why."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    file: str
    line: str = Field(min_length=1)
    broken: str
    tests: Annotated[tuple[str, ...], BeforeValidator(_listed), Field(min_length=1)]
    defended: str | None = Field(None, min_length=1)

    def applied(self, text: str) -> str:
        """Return the text of the file with the mutant in it."""
        return text.replace(self.line, self.broken)

    def __str__(self) -> str:
        """Say what is broken, in one line."""
        old, new = (" ".join(text.split()) for text in (self.line, self.broken))
        return f"{self.file}: {old}  ->  {new or '(nothing)'}"


def parts() -> list[str]:
    """Return the names of the lists."""
    return sorted(path.stem for path in LISTS.glob("*.yaml"))


def read(part: str, root: Path = ROOT, lists: Path = LISTS) -> list[Mutant]:
    """Return the mutants of a list; `UserError` where one is malformed or does not fit the code."""
    path = lists / f"{part}.yaml"
    if not path.is_file():
        raise UserError(f"there is no list of mutants {part!r}{nearest(part, parts())}.")
    try:
        content = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise UserError(f"{path.name}: this is not YAML: {' '.join(str(error).split())}.") from None
    if not isinstance(content, list) or not content:
        raise UserError(f"{path.name}: must be a list of mutants, each with file, line, broken and tests.")
    found = []
    for number, item in enumerate(content, 1):
        where = f"{path.name}: mutant {number}"
        try:
            found.append(TypeAdapter(Mutant).validate_python(item))
        except ValidationError as error:
            raise UserError(first_problem(error, Mutant, where)) from None
        problem = _problem(found[-1], root)
        if problem:
            raise UserError(f"{where}: {problem}.")
    return found


def _problem(mutant: Mutant, root: Path) -> str | None:
    path = root / mutant.file
    if not path.is_file():
        return f"there is no file {mutant.file}"
    absent = [test for test in mutant.tests if not (root / test.partition("::")[0]).exists()]
    if absent:
        return f"there are no tests {absent[0]}"
    text = path.read_text()
    times = text.count(mutant.line)
    if times != 1:
        return f"{mutant.line!r} must occur exactly once in {mutant.file}, but occurs {times} times"
    try:
        ast.parse(mutant.applied(text))
    except SyntaxError as error:
        return f"{mutant.broken!r} leaves {mutant.file} invalid: {error.msg} in line {error.lineno}"
    return None  # one that changes nothing survives
