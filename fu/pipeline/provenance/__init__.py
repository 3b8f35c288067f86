"""What files and code are: paths, certificates, code digests, declarations of plug-ins. Uses no other room."""
