"""Who holds what: the settings of a partition, from a paper's file to the stage that draws it."""

from typing import Annotated, Literal

from pydantic import Field

from fu.plugins import Choice, Kind
from fu.types import Count, Frozen, Held, Share


class Sharing(Frozen):
    """A data set, and how clients share it."""

    dataset: Annotated[str, Kind("datasets")] = Field(description="data set (fu/datasets)")
    samples: Count | None = Field(None, description="how many samples to use, drawn at random; null: all")
    split: Literal["merged", "official"] = Field(
        "merged",
        description="merged: clients share out all samples, each its own train and test set; official: the data set's "
        "training part goes to clients, and `samples` counts that part",
    )
    test: Literal["clients", "global"] = Field(
        "clients",
        description="clients: every client has a test set; global: the data set's test part is one test set for all "
        "(with split: official)",
    )
    clients: Count = Field(description="number of clients, m")
    partition: Annotated[Choice, Kind("partitions")] = Field(
        description="how samples are dealt to clients (fu/partitions)"
    )
    train_share: Annotated[Share, Field(gt=0, lt=1)] | None = Field(
        None, description="share of a client's samples used for training; the rest is its test set (split: merged)"
    )
    validation_share: Share = Field(
        lt=1, description="share of the training samples held out to choose learning rates on"
    )
    server: Held = Field(
        0, description="samples reserved for the server before clients get theirs (with split: official)"
    )
    held_out: Held = Field(
        0, description="samples of all classes on which nobody trains, to choose hyper-parameters on (split: official)"
    )
    absent: Held = Field(0, description="number of clients that never take part, drawn at random (split: official)")
