"""One line for each plug-in, whether it keeps its contract: `python -m pytest -p tests.contract.report tests/contract`.

The rules are those of `rules.py`. The broken ones come at the end; pytest's tracebacks go to `TRACEBACKS`.
"""

import ast
import os
import re
import textwrap
from collections.abc import Generator

import pytest

from fu.errors import UserError
from fu.pipeline.provenance.catalogue import KINDS, NEEDED
from fu.pipeline.provenance.digest import ROOT
from tests.contract.names import files_of, is_helper, path_of
from tests.contract.rules import words

Plugin = tuple[str, str]
ITSELF = ("the contract", "itself")
SHORT = 56  # characters of what a plug-in is
TRACEBACKS = ROOT / ".pytest_cache/contract.txt"
lines: dict[Plugin, list[str]] = {}  # plug-in -> the rules that it breaks
tracebacks: list[str] = []  # of the tests that fail without a sentence of their own


def plugin_of(item: pytest.Item) -> Plugin:
    """Return the plug-in that a test is about."""
    mark = item.get_closest_marker("plugin")
    return (mark.args[0], mark.args[1]) if mark else ITSELF


def what(plugin: Plugin) -> str:
    """Return the first sentence of a plug-in's docstring, shortened; "" where it has none that can be read."""
    try:
        text = ast.get_docstring(ast.parse(path_of(*plugin).read_bytes())) or ""
    except (SyntaxError, ValueError):
        return ""
    sentence = re.split(r"\.\s+(?=[A-Z`])", " ".join(text.split()))[0].rstrip(".")
    return textwrap.shorten(sentence, SHORT, placeholder=" ...")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Test one plug-in after another, and last the contract itself."""
    kinds = [*KINDS, ITSELF[0]]
    items.sort(key=lambda item: (kinds.index(plugin_of(item)[0]), plugin_of(item)[1]))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Name the files that are no plug-ins."""
    for kind in KINDS:
        for name in files_of(kind):
            if is_helper(kind, name):
                write(session.config, (kind, name), f"no plug-in: defines none of {', '.join(NEEDED[kind])}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note the rule that is broken, or the sentence of `pytest.fail` or of a `UserError`, and keep the traceback."""
    report = yield
    plugin = plugin_of(item)
    rules = lines.setdefault(plugin, [])
    if report.failed and call.excinfo:
        told = call.excinfo.value if isinstance(call.excinfo.value, pytest.fail.Exception | UserError) else None
        rule = words(item.function)  # type: ignore[attr-defined]
        rule = str(told).rstrip(".") if told else crash(plugin, call.excinfo) or rule[0].lower() + rule[1:]
        rules += [rule] * (rule not in rules)
        if not told:
            tracebacks.append(f"{label(plugin)} breaks: {rule}\n{item.nodeid}\n\n{report.longreprtext}\n")
    return report


def crash(plugin: Plugin, error: pytest.ExceptionInfo[BaseException]) -> str:
    """Return where in the plug-in another error than that of an assertion was raised, and the error; else ""."""
    inside = [entry for entry in error.traceback if entry.path == path_of(*plugin)]
    if not inside or isinstance(error.value, AssertionError):
        return ""
    return f"line {inside[-1].lineno + 1} raises {error.exconly(tryshort=True).splitlines()[0]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Print a plug-in's line once its last test is done."""
    done = yield
    plugin = plugin_of(item)
    if (nextitem is None or plugin_of(nextitem) != plugin) and (plugin != ITSELF or lines[ITSELF]):
        number = len(lines[plugin])
        write(item.config, plugin, f"breaks {number} rule{'s' * (number > 1)}" if number else "passed")
    return done


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str]:
    """Print nothing for a single test: not its result, and, in a category of its own, not its traceback."""
    return ("broken" if report.failed else report.outcome, "", "")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the plug-ins, list the broken rules, write the tracebacks to a file and name it."""
    tested = {plugin: broken for plugin, broken in lines.items() if plugin != ITSELF}
    passed = sum(not broken for broken in tested.values())
    terminalreporter.write_line(f"{passed} of {len(tested)} plug-ins passed; the rules: docs/contract.md")
    for plugin, rules in lines.items():
        for rule in rules:
            terminalreporter.write_line(f"{label(plugin)} breaks: {rule}", red=True)
    TRACEBACKS.unlink(missing_ok=True)
    if tracebacks:
        TRACEBACKS.parent.mkdir(exist_ok=True)
        TRACEBACKS.write_text("\n".join(tracebacks), encoding="utf-8")
        terminalreporter.write_line(f"Tracebacks: {os.path.relpath(TRACEBACKS)}")


def label(plugin: Plugin) -> str:
    """Return what a plug-in is called: its kind and file."""
    return f"{'/'.join(plugin)}.py" if plugin != ITSELF else " ".join(ITSELF)


def write(config: pytest.Config, plugin: Plugin, verdict: str) -> None:
    """Print the line of a plug-in."""
    width = max(len(f"{kind}/{name}.py") for kind in KINDS for name in files_of(kind))
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    assert reporter is not None
    reporter.write(f"{label(plugin):{width}}  {what(plugin) if plugin != ITSELF else '':{SHORT}}  ")
    reporter.write_line(verdict, green=verdict == "passed", red=verdict.startswith("breaks"))
