"""One line for each plug-in, whether it keeps its contract: `python -m pytest -p tests.contract.report tests/contract`.

The rules are those of `rules.py`. Pytest itself says of each broken one where and how, below all lines.
"""

import ast
import re
import textwrap
from collections.abc import Generator

import pytest

from fu.pipeline.catalogue import KINDS, NEEDED
from tests.contract.names import files_of, is_helper, path_of
from tests.contract.rules import words

Plugin = tuple[str, str]
ITSELF = ("the contract", "itself")
SHORT = 56  # characters of what a plug-in is
TOLD = "told"  # category of a failure that was told in a sentence and has no details
lines: dict[Plugin, list[str]] = {}  # plug-in -> the rules that it breaks


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
    """Note the rule that is broken, or what the test says of it by `pytest.fail`."""
    report = yield
    rules = lines.setdefault(plugin_of(item), [])
    if report.failed and call.excinfo:
        told = call.excinfo.value if isinstance(call.excinfo.value, pytest.fail.Exception) else None
        rule = words(item.function)  # type: ignore[attr-defined]
        rule = str(told).rstrip(".") if told else rule[0].lower() + rule[1:]
        rules += [rule] * (rule not in rules)
        report.sections = [(TOLD, "")] if told else []
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Print a plug-in's line once its last test is done."""
    done = yield
    plugin = plugin_of(item)
    if (nextitem is None or plugin_of(nextitem) != plugin) and (plugin != ITSELF or lines[ITSELF]):
        write(item.config, plugin, f"breaks: {'; '.join(lines[plugin])}" if lines[plugin] else "passed")
    return done


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str]:
    """Print nothing for a single test."""
    return (TOLD if (TOLD, "") in report.sections else report.outcome, "", "")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the plug-ins."""
    tested = {plugin: broken for plugin, broken in lines.items() if plugin != ITSELF}
    passed = sum(not broken for broken in tested.values())
    terminalreporter.write_line(f"{passed} of {len(tested)} plug-ins passed; the rules: docs/contract.md")


def write(config: pytest.Config, plugin: Plugin, verdict: str) -> None:
    """Print the line of a plug-in."""
    width = max(len(f"{kind}/{name}.py") for kind in KINDS for name in files_of(kind))
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    assert reporter is not None
    about = f"{'/'.join(plugin)}.py" if plugin != ITSELF else " ".join(ITSELF)
    reporter.write(f"{about:{width}}  {what(plugin) if plugin != ITSELF else '':{SHORT}}  ")
    reporter.write_line(verdict, green=verdict == "passed", red=verdict.startswith("breaks"))
