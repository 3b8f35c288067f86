"""Federated unlearning by fu on Flower: retraining, FedOSD, NoT and fine-tuning."""
