"""Modules that exist only for programs written for other packages.

No other package of the SDK imports them. `aliases` has the table of import paths, `loader` loads one module under
several paths.
"""
