"""Names and colours of the buckets for the page of the view: all buckets, each its own."""

from __future__ import annotations

from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.render.causes import causes_document
from mldiagnostics.goodput.render.palette import paint
from mldiagnostics.goodput.render.words import label

OF_CUSTOM = "CUSTOM_BADPUT_EVENTS"


def test_every_bucket_that_takes_time_has_a_name_and_colours_of_its_own() -> None:
    causes = causes_document()["causes"]
    overlay = {"DATA_LOADING_ASYNC", OF_CUSTOM}
    assert {each["cause"] for each in causes} == {"productive"} | {each.name for each in BadputType} - overlay
    for of in ("name", "light", "dark"):
        assert len({each[of] for each in causes}) == len(causes)
    assert all(each["name"] == label(each["cause"]) for each in causes)


def test_events_of_the_program_share_the_colours_of_the_page() -> None:
    custom = causes_document()["custom"]
    for kind in ("EVAL", "größe", ""):
        bucket = f"{OF_CUSTOM}.{kind}"
        style = paint(bucket)
        assert custom[sum(bucket.encode()) % len(custom)] == {"light": style.light, "dark": style.dark}
