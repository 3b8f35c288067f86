"""What is asked for: the settings of a request, from a paper's file to the stage that draws it."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from fu.types import Count, Strict


def which_clients(value: Any) -> Any:
    """Refuse anything but a number of clients, a list of clients, or nothing, where a base has clients."""

    def whole(number: Any, least: int) -> bool:
        return isinstance(number, int) and not isinstance(number, bool) and number >= least

    several = isinstance(value, list) and value and all(whole(client, 0) for client in value)
    if value is None or whole(value, 1) or several:
        return value
    raise ValueError("must be the number of clients to draw (1 or more), or a list of clients counted from 0")


class Forget(Strict):
    """What is to be forgotten: clients or samples."""

    clients: Annotated[int | list[int] | None, BeforeValidator(which_clients)] = Field(
        None, description="how many clients to draw at random, or which ones (counted from 0)"
    )
    samples: Count | None = Field(None, description="instead of clients: how many training samples to draw at random")
    requests: Count = Field(
        1, description="how many requests for as many in a row, at equal distances in the unlearning phase"
    )

    @model_validator(mode="after")
    def _either(self) -> "Forget":
        if (self.clients is None) == (self.samples is None):
            raise ValueError("clients, samples: give one of them, and not both")
        if self.requests > 1 and isinstance(self.clients, list):
            raise ValueError("requests: clients that are named are asked for all at once; give their number instead")
        return self

    @property
    def gone(self) -> int:
        """How many clients are forgotten in the end."""
        return len(self.clients) if isinstance(self.clients, list) else (self.clients or 0) * self.requests
