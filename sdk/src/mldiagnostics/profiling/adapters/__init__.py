"""One module per framework that can be profiled, imported when it is needed."""
