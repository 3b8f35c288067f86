"""The commands behind make's targets. It may use all other packages of `fu.pipeline`."""
