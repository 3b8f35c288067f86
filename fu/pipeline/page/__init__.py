"""One page with everything that was made at a preset, to open from the disk: results/{preset}/index.html."""
