"""Settings of a data set's partition among clients."""

from typing import Annotated, Literal

from pydantic import Field

from fu.plugins import Choice, Kind
from fu.types import Count, Frozen, Held, Share


class Sharing(Frozen):
    """A data set and its partition among clients."""

    dataset: Annotated[str, Kind("datasets")] = Field(description="data set (fu/datasets)")
    samples: Count | None = Field(None, description="number of samples to use, drawn at random; null: all")
    split: Literal["merged", "official"] = Field(
        "merged",
        description="merged: all samples are dealt to clients, and each splits its own into training and test sets; "
        "official: only the official training set is dealt to clients, and `samples` counts that set",
    )
    test: Literal["clients", "global"] = Field(
        "clients",
        description="clients: every client has its own test set; global: one test set for all, the official one "
        "(split: official)",
    )
    clients: Count = Field(description="number of clients, m")
    partition: Annotated[Choice, Kind("partitions")] = Field(
        description="how samples are dealt to clients (fu/partitions)"
    )
    train_share: Annotated[Share, Field(gt=0, lt=1)] | None = Field(
        None, description="share of a client's samples used for training; the rest are its test set (split: merged)"
    )
    validation_share: Share = Field(
        lt=1, description="share of the training samples held out for choosing hyper-parameters"
    )
    server: Held = Field(0, description="number of samples reserved for the server (split: official)")
    held_out: Held = Field(
        0, description="number of samples of all classes held out for choosing hyper-parameters (split: official)"
    )
    absent: Held = Field(0, description="number of clients that never take part, drawn at random (split: official)")
