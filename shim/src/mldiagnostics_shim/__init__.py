"""Import names of other packages, served by `mldiagnostics`.

`python -m mldiagnostics_shim` shows which package serves them.
"""
