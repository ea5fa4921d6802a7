"""Texts that people read and write: files, tables of TOML files, numbers and units as they are shown."""
