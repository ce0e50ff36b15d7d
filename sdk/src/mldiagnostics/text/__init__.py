"""Text for people and machines: printable, without secrets, valid JSON; pure."""
