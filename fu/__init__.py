"""Federated unlearning, judged: one federation, every method, every evaluation of four papers."""
