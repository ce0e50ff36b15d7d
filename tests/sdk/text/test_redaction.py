"""Secrets by name and form, and similar names that are not secret."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.text.redaction import is_secret, redact, redact_arguments

SECRET_NAMES = """
token github_token gitlab_token db_token dbToken dbPassword clientSecret client_secret awsSecretAccessKey pwd ssh_key
authorization Authorization connection_string connectionString password passwd passphrase password2 db.password
DB_PASSWORD API_KEY api-key apiKey APIKey apikey OPENAI_API_KEY aws_secret hf_token HF-TOKEN wandb_token private_key
accountKey account_key storage_key encryption_key signing_key license_key deploy_key credentials dbpassword authtoken
access_tokens my_token bearer x-api-key auth_header session_cookie dsn jwt webhook_secret secret_value user_password
bot_token telegram_bot_token hf_model_token user_token id_token db_pass dbPass SMTP_PASS mail.pass redis-pass
"""

SECRET_VALUES: list[tuple[str, Any]] = [
    ("password", 1234),
    ("credentials", {"user": "me"}),
    ("api_keys", ["a", "b"]),
    ("token", b"hush"),
    ("model_key", "a8f5f167f44f4964e6c998dee827110c"),
]

OPEN_NAMES = """
max_tokens num_tokens tokens tokenizer tokenizer_name pad_token bos_token eos_token unk_token cls_token sep_token
mask_token eos_token_id pad_token_id image_token decoder_start_token end_of_turn_token token_count tokens_per_batch
num_tokens_per_step loss_per_token key keys sort_key prng_key rng_key image_key text_key label_key primary_key
foreign_key user_key batch_key cache_key key_dim num_key_value_heads monkey keyboard turkey keyframe secretary
tokenization author authority passes forward_pass password_file token_path ssh_key_path secret_name credentials_file
pass backward_pass pass_rate second_pass AuthorizationError NoCredentialsError
"""

OPEN_VALUES: list[tuple[str, Any]] = [
    ("pad_token", "<pad>"),
    ("sep_token", "[SEP]"),
    ("special_token", "<|endoftext|>"),
    ("token", "<unk>"),
    ("hf_pad_token", "<pad>"),
    ("token", 5),
    ("prng_key", [0, 42]),
    ("prng_key", 42),
    ("image_key", "observation.images.cam_1_high"),
    ("use_password", True),
    ("password", None),
    ("password", ""),
    ("api_key", None),
    ("token", {"kind": "byte"}),
]


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_a_secret_is_recognised_by_its_name(name: str) -> None:
    assert is_secret(name, "hush")


@pytest.mark.parametrize(("name", "value"), SECRET_VALUES)
def test_a_secret_need_not_be_text(name: str, value: Any) -> None:
    assert is_secret(name, value)


@pytest.mark.parametrize("name", OPEN_NAMES.split())
def test_similar_names_are_shown(name: str) -> None:
    assert not is_secret(name, "open")


@pytest.mark.parametrize(("name", "value"), OPEN_VALUES)
def test_a_value_can_say_that_it_is_not_a_secret(name: str, value: Any) -> None:
    assert not is_secret(name, value)


FORMS = {
    f"ghp_{'a1' * 18}": "<secret>",
    f"use github_pat_{'a' * 30} here": "use <secret> here",
    f"hf_{'Ab' * 17}": "<secret>",
    f"glpat-{'x' * 20}": "<secret>",
    "AKIA" + "ABCDEFGH12345678": "<secret>",
    f"sk-{'a1' * 12}": "<secret>",
    f"eyJ{'a' * 20}.eyJ{'b' * 20}.{'c' * 20}": "<secret>",
    f"AIza{'a' * 35}": "<secret>",
    f"-----BEGIN RSA PRIVATE KEY-----\n{'a' * 64}\n-----END RSA PRIVATE KEY-----\nrest": "<secret>\nrest",
    "curl -H 'Authorization: Bearer abcdefghijkl'": "curl -H 'Authorization: <secret> <secret>'",
    "postgres://me:hush@db:5432/runs": "postgres://me:<secret>@db:5432/runs",
    "redis://:hush@cache/0": "redis://:<secret>@cache/0",
    f"https://{'x' * 40}@github.com/me/repo": "https://<secret>@github.com/me/repo",
    "https://bucket/file?sig=abcdefgh%3D&x=1": "https://bucket/file?sig=<secret>&x=1",
    "https://account/file?SIG=hush": "https://account/file?SIG=<secret>",
    "https://host/file?Expires=1&Signature=hu%2Bsh~&Key-Pair-Id=K": "https://host/file?Expires=1&Signature=<secret>"
    "&Key-Pair-Id=K",
    "https://host/file?X-Goog-Signature=0a1b": "https://host/file?X-Goog-Signature=<secret>",
    "postgres://me:h@u@sh@db/runs": "postgres://me:<secret>@db/runs",
    "--db_pass=hush": "--db_pass=<secret>",
    "https://host/?access_token=hush&page=2": "https://host/?access_token=<secret>&page=2",
    "Server=tcp:db;User=me;Password=hush;": "Server=tcp:db;User=me;Password=<secret>;",
    "AccountName=me;AccountKey=abc==;": "AccountName=me;AccountKey=<secret>;",
    "--hf_token=hush --max_tokens=5": "--hf_token=<secret> --max_tokens=5",
}

HARMLESS = [
    "gs://bucket/prefix", "https://me@host/path", "--xla_gpu_autotune_level=4 --xla_dump_to=/tmp/x", "12:30:00",
    "pad_token=<pad>", "a@b.example", "3f786850e387550fdab836ed7e6dc881de23001b", "https://host:8080/x?page=2",
    "key=name", "sk-learn", "hf_model", "{'lr': 0.1, 'key': 'loss'}",
]  # fmt: skip


@pytest.mark.parametrize(("text", "shown"), FORMS.items())
def test_a_secret_is_recognised_by_its_form(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stays_unchanged(text: str) -> None:
    assert redact(text) == text


ARGUMENTS = {
    "--hf-token hush --lr 0.1": "--hf-token <secret> --lr 0.1",
    "--db.password=hush +wandb.api_key=hush": "--db.password=<secret> +wandb.api_key=<secret>",
    "--password --verbose": "--password --verbose",
    "--tokenizer base --max-tokens 5 -o /tmp/x": "--tokenizer base --max-tokens 5 -o /tmp/x",
    "run ghp_abcdefghijklmnopqrstuvwxyz": "run <secret>",
}


@pytest.mark.parametrize(("arguments", "shown"), ARGUMENTS.items())
def test_secrets_among_arguments_are_replaced(arguments: str, shown: str) -> None:
    assert " ".join(redact_arguments(arguments.split())) == shown


@given(st.lists(st.text(max_size=30) | st.sampled_from(["--password", "--api-key", "--lr"]), max_size=6))
def test_each_argument_keeps_its_place(arguments: list[str]) -> None:
    shown = redact_arguments(arguments)
    assert len(shown) == len(arguments)
    assert redact_arguments(shown) == shown


@given(st.text(max_size=300), st.text(max_size=60))
def test_redaction_accepts_any_text_and_is_idempotent(text: str, name: str) -> None:
    once = redact(text)
    assert redact(once) == once
    assert is_secret(name, text) in {True, False}


@pytest.mark.parametrize("piece", ["a", "a-", "://", "-----BEGIN ", "token=", "a=", ":", "eyJaaaaaaaa.", "A1"])
def test_the_time_for_a_long_text_is_bounded(piece: str) -> None:
    text = piece * (8192 // len(piece))
    began = time.process_time()
    redact(text)
    is_secret(text, text)
    is_secret("model_key", text)
    assert time.process_time() - began < 2.0
