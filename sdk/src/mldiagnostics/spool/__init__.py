"""The local spool: files and records wait here for their destination."""
