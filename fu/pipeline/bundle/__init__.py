"""Bundles: tables and figures in one file to share, which can be checked without the project."""
