"""The control-plane API: SDKs report their runs to it."""
