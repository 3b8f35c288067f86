"""Settings of a forget request."""

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
    raise ValueError("must be a number of clients to draw (1 or more) or a list of clients (counted from 0)")


class Forget(Strict):
    """What to forget: clients or samples."""

    clients: Annotated[int | list[int] | None, BeforeValidator(which_clients)] = Field(
        None, description="number of clients to draw at random, or a list of clients (counted from 0)"
    )
    samples: Count | None = Field(
        None, description="alternative to clients: number of training samples to draw at random"
    )
    requests: Count = Field(
        1, description="number of successive requests of this size, evenly spaced over the unlearning phase"
    )

    @model_validator(mode="after")
    def _either(self) -> "Forget":
        if (self.clients is None) == (self.samples is None):
            raise ValueError("clients, samples: set exactly one of them")
        if self.requests > 1 and isinstance(self.clients, list):
            raise ValueError(
                "requests: a list of clients makes a single request; for several requests set clients to a number"
            )
        return self

    @property
    def gone(self) -> int:
        """How many clients are forgotten in the end."""
        return len(self.clients) if isinstance(self.clients, list) else (self.clients or 0) * self.requests
