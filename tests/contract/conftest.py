"""Have plug-ins of one's own tested: `FU_PLUGINS=my_folder pytest tests/contract`."""

import pytest

from fu.errors import UserError
from fu.pipeline import catalogue
from tests.contract.names import FOLDER


def pytest_configure() -> None:
    if FOLDER is None:
        return
    try:
        catalogue.add_folder(FOLDER)
    except UserError as error:
        raise pytest.UsageError(str(error)) from None
