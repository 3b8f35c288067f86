"""The loop: flat parameters, local updates of many clients, aggregation, checkpoints, divergence. Uses `fu.data`."""
