"""Identity of senders: tokens, addresses, pods and their runs."""
