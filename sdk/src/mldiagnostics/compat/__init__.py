"""Modules that exist only for programs written for other packages; nothing else in this package imports them.

`aliases` has the table of import paths, `loader` loads one module under several of them.
"""
