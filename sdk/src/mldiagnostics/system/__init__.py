"""System metrics: what devices and host are doing, sampled on one thread of its own."""

from __future__ import annotations

from mldiagnostics.system.sampler import Sampler, available_sources

__all__ = ["Sampler", "available_sources"]
