"""Run one contender in this process: python -m benchmarks.peers.contender fu lenet5 DATA.npz OUT.npz."""

import argparse
from importlib import import_module
from pathlib import Path

import torch

from benchmarks.peers.common import Report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=["fu", "plain", "pfl", "flwr"])
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    report = Report()
    contender = import_module(f"benchmarks.peers.{args.name}_round")
    contender.train(args.model, args.data, args.rounds, args.threads, report)
    report.save(args.out)


if __name__ == "__main__":
    main()
