"""Data: see the files; source/stubs.py reads them."""
