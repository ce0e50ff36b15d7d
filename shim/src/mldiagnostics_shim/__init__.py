"""Import names of other packages, served by `mldiagnostics`; `python -m mldiagnostics_shim` says who serves them."""
