"""Have plug-ins of one's own tested: `FU_PLUGINS=my_folder pytest tests/contract`."""

import pytest

from fu.errors import UserError
from fu.pipeline.provenance import catalogue
from tests.contract.names import FOLDER, files_of, is_helper


def pytest_configure() -> None:
    if FOLDER is None:
        return
    try:
        if not FOLDER.is_dir():
            raise UserError(f"PLUGINS: there is no folder '{FOLDER}'.")
        catalogue.add_folder(FOLDER)
        if all(is_helper(kind, name) for kind in catalogue.KINDS for name in files_of(kind)):
            kinds = ", ".join(catalogue.KINDS)
            raise UserError(f"PLUGINS: {FOLDER} holds no plug-in; write one to <kind>/<name>.py, kinds are {kinds}.")
        catalogue.metrics()
    except UserError as error:
        raise pytest.UsageError(str(error)) from None
