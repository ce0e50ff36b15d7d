"""Addresses as people write them."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.addresses import targets_of
from mldiagnostics.errors import ConfigurationError

PORTS = st.integers(1, 65535)


@given(ip=st.ip_addresses(), port=PORTS)
def test_property_ip_addresses_round_trip(ip: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> None:
    written = f"[{ip}]:{port}" if ip.version == 6 else f"{ip}:{port}"
    (target,) = targets_of([written])
    assert (target.host, target.port, target.address) == (str(ip), port, written)


@given(st.lists(st.tuples(st.ip_addresses(v=4), PORTS), min_size=2, max_size=20, unique=True))
def test_property_different_addresses_have_different_files(pairs: list[tuple[ipaddress.IPv4Address, int]]) -> None:
    stems = [target.stem for target in targets_of([f"{ip}:{port}" for ip, port in pairs])]
    assert len(set(stems)) == len(pairs)


def test_the_file_has_the_name_of_xprofs_client() -> None:
    assert [target.stem for target in targets_of(["127.0.0.1:9999", "worker-0.svc:9999"])] == [
        "127.0.0.1_9999",
        "worker-0.svc_9999",
    ]


@pytest.mark.parametrize(
    "address",
    [
        "", "host", "host:", "host:0", "host:65536", "host:9999999999999", "host:0000651234", "host:-1", "host:٣",
        ":9999", "a b:1", "-h:1", "http://h:1", "::1:9999", "[::1", "[10.0.0.1]:1", "[nope]:1", "256.0.0.1:1",
        "10.0.0:1", "gs://b:1",
    ],
)  # fmt: skip
def test_invalid_addresses_are_rejected_with_valid_forms(address: str) -> None:
    with pytest.raises(ConfigurationError, match=r"10\.0\.0\.7:9999"):
        targets_of([address])


@pytest.mark.parametrize("addresses", [[], ["h:1", "h:1"], ["[::1]:1", "[0::1]:1"], ["Host:1", "host.:01"]])
def test_empty_and_repeated_addresses_are_rejected(addresses: list[str]) -> None:
    with pytest.raises(ConfigurationError):
        targets_of(addresses)
