"""Data set archives, partitions among clients, and the data of each client."""
