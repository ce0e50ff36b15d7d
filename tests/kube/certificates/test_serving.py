"""Real handshakes with a context whose certificate is replaced: the newest good one is sent."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from mldiagnostics_kube.certificates import pem
from mldiagnostics_kube.certificates.authority import KeyPair, Lifetimes, issue, new_authority
from mldiagnostics_kube.certificates.serving import ServingCertificate
from support.servers.handshakes import shown

NAME = "webhook.ml.svc"
NOW = datetime.now(UTC)
LIFETIMES = Lifetimes()
OLD, NEW = (new_authority("webhook", NOW, LIFETIMES) for _ in range(2))
FIRST = issue(OLD, [NAME], NOW, LIFETIMES)
SECOND = issue(NEW, [NAME], NOW, LIFETIMES)


def texts(pair: KeyPair) -> tuple[bytes, bytes]:
    return pem.of_certificates([pair.certificate]), pem.of_key(pair.key)


def encrypted(pair: KeyPair) -> bytes:
    return pair.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))


def test_handshakes_fail_until_a_certificate_is_loaded_and_then_use_the_newest() -> None:
    serving = ServingCertificate(lambda: NOW)
    with pytest.raises(ssl.SSLError):
        shown(serving.context, NAME, [OLD])
    assert not serving.ready
    for pair, authority in ((FIRST, OLD), (SECOND, NEW), (FIRST, OLD)):
        assert serving.load(*texts(pair))
        assert not serving.load(*texts(pair))
        assert shown(serving.context, NAME, [OLD, NEW]) == pair.certificate
        with pytest.raises(ssl.SSLCertVerificationError):
            shown(serving.context, NAME, [NEW if authority is OLD else OLD])
    assert serving.expires == FIRST.ends


def test_a_serving_certificate_is_ready_until_it_expires() -> None:
    now = NOW
    serving = ServingCertificate(lambda: now)
    serving.load(*texts(FIRST))
    assert serving.ready
    now = FIRST.ends - timedelta(seconds=1)
    assert serving.ready
    now = FIRST.ends
    assert not serving.ready
    assert serving.load(*texts(issue(OLD, [NAME], now, LIFETIMES)))
    assert serving.ready


@pytest.mark.parametrize(
    ("chain", "key", "words"),
    [
        (texts(SECOND)[0], texts(FIRST)[1], "do not match.*MISMATCH"),
        (b"", texts(FIRST)[1], "has no certificate"),
        (texts(FIRST)[0], b"", "do not match"),
        (b"garbage", b"garbage", "Unable to load PEM"),
        (texts(SECOND)[0], encrypted(SECOND), "do not match"),
    ],
    ids=["of another key", "no certificate", "no key", "garbage", "encrypted key"],
)
def test_a_bad_pair_is_rejected_and_the_previous_one_stays(chain: bytes, key: bytes, words: str) -> None:
    serving = ServingCertificate(lambda: NOW)
    serving.load(*texts(FIRST))
    with pytest.raises(ValueError, match=words):
        serving.load(chain, key)
    assert shown(serving.context, NAME, [OLD]) == FIRST.certificate
    assert serving.expires == FIRST.ends


def test_a_chain_is_sent_whole() -> None:
    """Clients that trust only the root verify the chain over the intermediate authority."""
    serving = ServingCertificate(lambda: NOW)
    chain = pem.of_certificates([FIRST.certificate, OLD.certificate])
    assert serving.load(chain, texts(FIRST)[1])
    assert shown(serving.context, NAME, [OLD]) == FIRST.certificate
