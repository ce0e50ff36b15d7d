"""The local spool: where files and records wait on this machine until their destination takes them."""
