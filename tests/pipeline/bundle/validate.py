"""Print what a bundle breaks of RO-Crate, without a network: python validate.py BUNDLE CACHE.

Run by a Python that has roc-validator; the context that metadata names is the one that comes with rocrate.
"""

import io
import sys
from pathlib import Path
from typing import Any

import rocrate
from requests.adapters import HTTPAdapter
from requests_cache import CachedSession
from rocrate_validator import models, services
from urllib3 import HTTPResponse

CONTEXT = "https://w3id.org/ro/crate/1.3/context"


class Shipped(HTTPAdapter):
    """Answers whatever is asked with the context."""

    def send(self, request: Any, *_: Any, **__: Any) -> Any:
        body = io.BytesIO((Path(rocrate.__file__).parent / "data/ro-crate.jsonld").read_bytes())
        head = {"Content-Type": "application/ld+json"}
        return self.build_response(request, HTTPResponse(body, headers=head, status=200, preload_content=False))


def main(bundle: str, cache: str) -> int:
    """Print every requirement that is not met; return how many, at most 1."""
    session = CachedSession(cache, allowable_methods=("GET",))
    session.mount("https://", Shipped())
    session.get(CONTEXT)
    settings = services.ValidationSettings(
        rocrate_uri=bundle,
        profile_identifier="ro-crate-1.3",
        requirement_severity=models.Severity.REQUIRED,
        cache_path=cache,
        offline=True,
    )
    issues = services.validate(settings).get_issues()
    print("".join(f"{issue.check.identifier}: {issue.message}\n" for issue in issues), end="")
    return bool(issues)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
