"""The receiver of an OTLP sink, from its URL and OpenTelemetry's variables; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from mldiagnostics.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class OtlpEndpoint:
    """A receiver; `address` is host:port for gRPC, the base URL for HTTP."""

    address: str
    grpc: bool
    encrypted: bool
    headers: tuple[tuple[str, str], ...] = ()
    certificate: str = ""
    compressed: bool = False
    declared: Mapping[str, str] = field(default_factory=dict)


def endpoint_of(url: str, env: Mapping[str, str]) -> OtlpEndpoint:
    """Return the receiver of a URL and the environment. Raises `ConfigurationError`."""
    scheme, _, rest = url.partition(":")
    grpc = scheme == "otlp"
    address = f"{'https' if scheme == 'otlp+https' else 'http'}://{rest.lstrip('/')}"
    if grpc and not rest.strip("/"):
        grpc = env.get("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc") == "grpc"
        address = env.get("OTEL_EXPORTER_OTLP_ENDPOINT") or f"http://localhost:{4317 if grpc else 4318}"
    parts = urlsplit(address if "://" in address else f"http://{address}")
    if not parts.hostname or not _is_port(parts):
        raise ConfigurationError(f"{url!r}: no host or port; write otlp://host:4317 or otlp+http://host:4318")
    return OtlpEndpoint(
        address=parts.netloc if grpc else parts.geturl().rstrip("/"),
        grpc=grpc,
        encrypted=parts.scheme == "https",
        headers=tuple(_pairs(env.get("OTEL_EXPORTER_OTLP_HEADERS", "")).items()),
        certificate=env.get("OTEL_EXPORTER_OTLP_CERTIFICATE", ""),
        compressed=env.get("OTEL_EXPORTER_OTLP_COMPRESSION") == "gzip",
        declared={
            **_pairs(env.get("OTEL_RESOURCE_ATTRIBUTES", "")),
            **({"service.name": env["OTEL_SERVICE_NAME"]} if env.get("OTEL_SERVICE_NAME") else {}),
        },
    )


def _is_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


def _pairs(text: str) -> dict[str, str]:
    """Parse an OTEL variable: `key=value,key=value` with percent-encoded values."""
    split = (item.partition("=") for item in text.split(",") if "=" in item)
    return {key.strip(): unquote(value.strip()) for key, _, value in split if key.strip()}
