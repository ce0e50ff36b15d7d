"""Replace secrets, recognised by the name or the form of a value; pure.

A name is split into words at separators and at camel case, so `dbPassword`, `db.password` and `DB_PASSWORD` are one
name. Words such as `password` make any value a secret. `token` and `key` are common words of machine learning
(`pad_token`, `prng_key`), so they make only strings secrets, and not after the words that usually precede them there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


SECRET = "<secret>"  # noqa: S105 - a placeholder
"""Replacement of every secret."""

# The patterns are strings, which Python compiles at their first use: in a thread of the run, not at its start.

_MAX_NAME = 256


def _words(table: str) -> frozenset[str]:
    return frozenset(table.split())


_WORDS = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+"

_ALWAYS = _words("""
    password passwords passwd passphrase passcode pwd secret secrets credential credentials authorization cookie
    cookies dsn jwt bearer apikey apikeys authtoken accesstoken secretkey accesskey privatekey
""")
_JOINED = r"(password|passwd|passphrase|secret|apikey|authtoken|accesstoken|secretkey|accesskey|privatekey)$"
_PHRASES = frozenset({
    ("connection", "string"), ("conn", "string"), ("conn", "str"), ("connection", "str"),
    ("basic", "auth"), ("auth", "header"), ("http", "auth"), ("shared", "access", "signature"),
})  # fmt: skip
_ABOUT = _words("""
    path paths file files filename name names id ids dir directory length len size type count policy version field
    column env var url uri enabled required manager provider rotation error exception warning
""")
"""Last words of names that only describe a secret: `password_file`, `secret_name`."""

_TOKENS = frozenset({"token", "tokens"})
_KEYS = frozenset({"key", "keys"})
_OWNERS = _words("""
    access account admin anthropic api app auth aws azure bearer bot client comet csrf db deploy deployment
    developer docker encryption gcp git github gitlab google gpg hf hmac host hub huggingface id identity
    integration jira jwt license login master mlflow neptune npm oauth openai pat personal pgp private project pypi
    read refresh registration registry rsa sas secret security service session shared sign signing slack ssh ssl
    storage subscription telegram tls upload user vault wandb webhook wireguard write
""")
"""Words before `token` that make it a secret."""

_SERVICES = _OWNERS - {"id", "user", "project", "host", "read", "write", "identity", "db", "app", "google", "session"}
"""Words that also make `key` a secret; `user_key` and `id_key` are columns of data sets."""

_ACCOUNTS = _SERVICES | _words("""
    amqp database db email ftp imap kafka keystore ldap mail mongo mongodb mssql mysql pg postgres postgresql proxy
    rabbitmq redis root smtp sql ssh truststore user username
""")
"""Words that make `pass` a secret, unlike `forward_pass`."""

_VOCABULARY = _words("""
    added additional assistant audio begin blank bos boi box call chat class cls code decoder delimiter document
    empty end eod eoi eom eop eos eot fill filler final first forced image img im instruction language last mask mm
    model next no null number pad padding patch per placeholder point prefix prev previous prompt query reasoning
    register reserved response return role segment sentinel sep separator sop soi sot space special start stop
    suffix system task text think thinking timestamp tool trigger turn unk unknown video vision vocab word
""")
"""Words before `token` that mark a word of a vocabulary."""

_PLACEHOLDER = r"(?s:<.*>|\[.*\]|\W*)"  # `<pad>`, `[MASK]`, `▁`

_RANDOM = r"(?=[A-Za-z+/=]*[0-9])(?=[0-9+/=]*[A-Za-z])[A-Za-z0-9+/=]{16,}"

_KNOWN = r"""
    -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | \b(?:gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}
       | pypi-[\w-]{30,}|sk-[\w-]{20,}|sk_live_\w{16,}|xox[a-z]-[\w-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}
       | AIza[\w-]{35}|ya29\.[\w-]{20,}|dapi[0-9a-f]{32}|wandb_v1_\w{20,}
       | eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*)
    | (?<=hooks\.slack\.com/services/)[\w/]+
    | (?<=(?i:[?&;]sig=))[\w%+/=~.-]+
    | (?<=(?i:[?&;_-]signature=))[\w%+/=~.-]+
    | (?<=\bBearer\ )[\w.~+/=-]{8,}
    | (?<=\bBasic\ )[A-Za-z0-9+/]{8,}={0,2}
    """
"""Forms of values that are secrets."""

_USER_INFO = r"(?<=://)([^\s/@:?#]*)(:[^\s/]*)?@"
_ASSIGNED = r"""(?<![\w.])([A-Za-z_][\w.-]{0,100})(["']?(?:=|:(?!//)\s?)["']?)([^\s"',;&(){}\[\]]+)"""
"""`name=value` and `name: value` in a text: options, queries of URLs, connection strings."""

_LONG_USER = 20
_MAX_RANDOM = 512


def is_secret(name: str, value: object) -> bool:
    """Return whether the name of `value` marks it as a secret.

    Args:
        name: the key, in any spelling: `db_token`, `dbToken`, `DB-TOKEN`, `db.token`.
        value: the value. None, booleans and empty values are never secrets.
    """
    if value is None or isinstance(value, bool) or (isinstance(value, str | bytes | list | tuple) and not value):
        return False
    words = [word.lower() for word in re.findall(_WORDS, name[-_MAX_NAME:])]
    while words and words[-1].isdigit():
        words.pop()
    if not words or words[-1] in _ABOUT:
        return False
    if _names_secret(words):
        return True
    if not _holds_text(value):
        return False
    if words[-1] == "pass":
        return not _ACCOUNTS.isdisjoint(words)
    return _names_token(words, value) if words[-1] in _TOKENS else words[-1] in _KEYS and _names_key(words, value)


def redact(text: str) -> str:
    """Return the text with known tokens, URL credentials and `password=…` replaced."""
    text = re.sub(_KNOWN, SECRET, text, flags=re.VERBOSE | re.DOTALL)
    if "://" in text and "@" in text:
        text = re.sub(_USER_INFO, _hide_user_info, text)
    return re.sub(_ASSIGNED, _hide_assigned, text) if "=" in text or ":" in text else text


def redact_arguments(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command with secrets replaced.

    The name of an option also says whether the next argument is a secret.

    >>> redact_arguments(["--hf-token", "hush", "--lr", "0.1", "db.password=hush"])
    ['--hf-token', '<secret>', '--lr', '0.1', 'db.password=<secret>']
    """
    return [
        SECRET if _is_option(option) and not _is_option(each) and is_secret(option, each) else redact(each)
        for option, each in zip(("", *arguments), arguments, strict=False)
    ]


def _is_option(argument: str) -> bool:
    return argument.startswith("--") and "=" not in argument


def _names_secret(words: list[str]) -> bool:
    return (
        not _ALWAYS.isdisjoint(words)
        or any(re.search(_JOINED, word) for word in words)
        or any(tuple(words[-len(phrase) :]) == phrase for phrase in _PHRASES)
    )


def _names_token(words: list[str], value: object) -> bool:
    before = set(words[:-1])
    if isinstance(value, str) and re.fullmatch(_PLACEHOLDER, value):
        return False
    if before & _SERVICES:
        return True
    if before & _VOCABULARY:
        return False
    return words[-1] == "token" or bool(before & _OWNERS)


def _names_key(words: list[str], value: object) -> bool:
    if set(words[:-1]) & _SERVICES:
        return True
    return len(words) > 1 and isinstance(value, str) and re.search(_RANDOM, value[:_MAX_RANDOM]) is not None


def _holds_text(value: object) -> bool:
    if isinstance(value, list | tuple | set | frozenset):
        return any(isinstance(item, str | bytes) for item in value)
    return isinstance(value, str | bytes)


def _hide_user_info(match: re.Match[str]) -> str:
    user, password = match[1], match[2]
    if password is not None:
        return f"{user}:{SECRET}@"
    return f"{SECRET}@" if len(user) >= _LONG_USER else match[0]


def _hide_assigned(match: re.Match[str]) -> str:
    name, between, value = match.groups()
    return f"{name}{between}{SECRET}" if value != SECRET and is_secret(name, value) else match[0]
