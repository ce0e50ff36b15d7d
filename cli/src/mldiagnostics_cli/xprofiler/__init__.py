"""The words of Google's `xprofiler`, mapped to the functions of `mldiag`."""
