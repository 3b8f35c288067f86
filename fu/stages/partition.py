"""Draw the partition of a data set: everything random that later stages share."""

import numpy as np

from fu.data import archives, partition
from fu.data.dataset import about
from fu.stages.common import arguments, run, whole


def main(argv: list[str] | None = None) -> None:
    """Spec: dataset, seed, clients, partition, train_share, validation_share, forget, backdoor."""
    args = arguments(__doc__, ["data"], ["output"], argv, compute=False)
    dataset = args.spec["dataset"]
    arrays = archives.read(args.data, dataset)
    labels = np.concatenate([arrays["y_train"], arrays["y_test"]])
    drawn = partition.draw(labels, about(dataset).classes, args.spec)
    with whole(args.output) as (part,):
        np.savez(part, allow_pickle=False, **drawn.arrays())


if __name__ == "__main__":
    run(main)
