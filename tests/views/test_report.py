"""The page of a store: what it says, that it says it safely, and that it is a function of what was published."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrodp.errors import UsageError
from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.views.published import RELEASES_FILE, TEST, Published
from retrodp.views.report import document, gather, page, write_file
from retrodp.views.report.drawings import value_range
from retrodp.views.report.labels import cut, in_charts, spelled
from retrodp.views.report.page import embedded
from retrodp.views.report.parts import Chart, Drawing, Table
from retrodp.views.report.spark import spark
from retrodp.views.report.thin import thinned
from retrodp.views.series import Series, key_series, scalar_series
from tests.views.report_stores import RUDE
from tests.views.stores import SPARSE, answer, opened, store, store_of, usual

LABELS = {label: 900 - place for place, label in enumerate(RUDE)}


class Parts(HTMLParser):
    """What a browser would see: elements, their attributes, and the text outside scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in self.raw:
            self.inside = tag
            self.raw[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == self.inside:
            self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.raw[self.inside][-1] += data
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def parts(published: Published) -> Parts:
    return Parts(page(published).decode())


def rude_store(directory: Path) -> Published:
    return Published.open(store_of(directory, [usual(1, LABELS), usual(2, LABELS)]))


def charts(found: Parts) -> dict[str, object]:
    (text,) = [
        text for text in found.raw["script"] if text.startswith('{"config"') and '"charts"' in text
    ]
    loaded: dict[str, object] = json.loads(text)
    return loaded


# A function of what was published.


def test_the_same_published_numbers_give_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    path = store(tmp_path / "store")
    code = (
        "import hashlib, sys\n"
        "from retrodp.views.published import Published\n"
        "from retrodp.views.report import page\n"
        "with Published.open(sys.argv[1]) as p: print(hashlib.sha256(page(p)).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code, str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"},
            check=True,
            capture_output=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    with Published.open(path) as published:
        assert digests == {f"{hashlib.sha256(page(published)).hexdigest()}\n".encode()}


def test_it_needs_the_published_half_of_a_store_alone(tmp_path: Path) -> None:
    path = store(tmp_path / "store")
    assert {file.name for file in path.iterdir()} == {"plan.resolved.json", "releases.sqlite"}
    with Published.open(path) as published:
        written = write_file(published, tmp_path / "page.html")
    content = (tmp_path / "page.html").read_bytes()
    assert written["bytes"] == len(content)
    assert written["sha256"] == hashlib.sha256(content).hexdigest()
    assert written["releases"] == ["lines", "revenue", "by_country", "by_product"]
    assert written["charts"] > 4
    assert json.loads(json.dumps(written)) == written


def test_a_page_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text("before")
    with opened(tmp_path / "store") as published:
        with pytest.raises(UsageError):
            write_file(published, tmp_path / "nowhere" / "page.html")
        published.close()
        with pytest.raises(Exception, match=r"."):
            write_file(published, target)
    assert target.read_text() == "before"
    assert list(tmp_path.glob(".*.part")) == []


# Safe, and on its own.


def test_no_label_becomes_markup_and_every_one_is_shown(tmp_path: Path) -> None:
    with rude_store(tmp_path / "rude") as rude, opened(tmp_path / "plain", 2) as plain:
        found, usual_ = parts(rude), parts(plain)
    names = [tag for tag, _ in found.tags]
    for tag in ("script", "b", "img", "style"):
        assert names.count(tag) == [tag for tag, _ in usual_.tags].count(tag)
    assert "</script><script>alert(1)</script>" in found.text
    assert "\"quoted\" & 'single' <b>bold</b>" in found.text
    assert "<!-- ]]> {{ 7 * 7 }}" in found.text
    assert "a\\u202egpj.exe" in found.text
    assert "line\\nbreak\\x1b[31m\\u2028" in found.text
    assert "عربي" in found.text
    assert "(10,000 characters)" in found.text
    assert "x" * 200 not in found.text


def test_labels_stand_in_no_expression_and_no_specification_of_a_chart(tmp_path: Path) -> None:
    with rude_store(tmp_path / "rude") as published:
        loaded = charts(parts(published))
    assert isinstance(loaded["charts"], list)
    data = json.dumps([one["data"] for one in loaded["charts"]], ensure_ascii=False)
    specs = json.dumps([one["spec"] for one in loaded["charts"]], ensure_ascii=False)
    assert "</script>" in data
    assert "🫖" in data
    for label in ("</script>", "🫖", "quoted", "عربي"):
        assert label not in specs


@given(st.recursive(st.text() | st.integers() | st.none(), lambda own: st.lists(own, max_size=3)))
def test_embedded_json_cannot_leave_its_element_and_says_the_same(value: object) -> None:
    text = embedded(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028\u2029") & set(text)


def test_the_page_asks_for_nothing(tmp_path: Path) -> None:
    with rude_store(tmp_path / "store") as published:
        found = parts(published)
    loads = [
        value
        for _, attributes in found.tags
        for name, value in attributes.items()
        if name in {"src", "href", "srcset", "data", "action", "poster"}
    ]
    assert loads
    assert {value[:1] if value and value.startswith("#") else value for value in loads} == {
        "#",
        "data:,",
    }
    (style,) = found.raw["style"]
    assert "url(" not in style
    assert "@import" not in style


def test_its_policy_allows_its_own_scripts_and_style_and_nothing_else(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as published:
        found = parts(published)
    (policy,) = [
        attributes["content"]
        for tag, attributes in found.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    run = [
        text
        for text, (_, attributes) in zip(
            found.raw["script"], [own for own in found.tags if own[0] == "script"], strict=True
        )
        if attributes.get("type") != "application/json"
    ]

    def digests(texts: list[str]) -> set[str]:
        made = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        return {f"'sha256-{one}'" for one in made}

    assert len(run) == 4
    assert set(rules["script-src"].split()) == digests(run)
    assert set(rules["style-src"].split()) == digests(found.raw["style"])
    assert rules["default-src"] == "'none'"
    assert not any(
        name.startswith("on") or name == "style" for _, own in found.tags for name in own
    )


def test_vendored_scripts_are_those_that_the_page_about_them_names() -> None:
    folder = files("retrodp.views").joinpath("vendor")
    noted = dict(
        re.findall(
            r"^\| `([^`]+)` .*`([0-9a-f]{64})`",
            folder.joinpath("README.md").read_text(),
            re.MULTILINE,
        )
    )
    scripts = [file.name for file in folder.iterdir() if file.name.endswith(".js")]
    assert sorted(noted) == sorted(scripts)
    assert len(scripts) == 3
    assert noted == {
        name: hashlib.sha256(folder.joinpath(name).read_bytes()).hexdigest() for name in scripts
    }


# What it says.


def test_every_release_has_a_section_charts_and_the_same_numbers_as_text(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as published:
        found = parts(published)
        sections = document(published)["sections"]
    ids = [attributes.get("id") for _, attributes in found.tags]
    assert [one.name for one in sections] == [
        name.removeprefix("r-") for name in ids if name and name.startswith("r-")
    ]
    assert len(ids) - ids.count(None) == len(set(ids) - {None})
    for one in sections:
        forms = [block.form for block in one.blocks]
        assert "chart" in forms
        assert "table" in forms
    assert "3,007" in found.text
    assert "\u2212617.40" in found.text


def test_every_chart_has_a_text_in_its_place(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as published:
        found = parts(published)
    drawn = [own for _, own in found.tags if "data-chart" in own]
    assert len(drawn) > 4
    assert all(own["role"] == "img" and own["aria-label"] for own in drawn)
    assert [own["data-chart"] for own in drawn] == [str(place) for place in range(len(drawn))]


def test_what_is_not_listed_is_said_to_be_below_a_bound_and_not_zero(tmp_path: Path) -> None:
    rounds = [usual(1, {"Jam": 900}), usual(2, {"Jam": 900, "Tea": 800}), usual(3, {"Jam": 900})]
    with Published.open(store_of(tmp_path / "store", rounds)) as published:
        found = parts(published)
        last = published.answer(3, SPARSE)
    assert last is not None
    assert last.threshold is not None
    assert f"A label is named from {last.threshold:,} on" in found.text
    assert f"has at most {last.threshold - 1 + last.half:,} (95%)" in found.text
    assert "it is not 0" in found.text


def test_a_store_for_tests_says_so_at_the_top_and_others_do_not(tmp_path: Path) -> None:
    with opened(tmp_path / "one", test=True) as marked, opened(tmp_path / "two") as real:
        said, unsaid = parts(marked), parts(real)
    assert said.text.index(TEST) < said.text.index("At a glance")
    assert "TEST STORE, made under a known key: no guarantee holds." in said.text
    assert "TEST" not in unsaid.text


def test_nothing_is_published_yet(tmp_path: Path) -> None:
    with opened(tmp_path / "store", 0) as published:
        found = parts(published)
    assert "Nothing is published yet." in found.text
    assert "so nothing is spent" in found.text


def test_gaps_are_named_and_late_rounds_only_as_of_a_moment(tmp_path: Path) -> None:
    path = store(tmp_path / "store", 5)
    with sqlite3.connect(path / RELEASES_FILE) as damaged:
        for table in ("rounds", "releases"):
            damaged.execute(f"DROP TRIGGER {table}_DELETE")
            damaged.execute(f"DELETE FROM {table} WHERE round IN (3, 4)")
    damaged.close()
    with Published.open(path) as published:
        calm = document(published)
        later = document(published, now=published.boundaries[7])
    assert "Rounds 3 to 4 are missing although later ones are published." in calm["gaps"]
    assert "some rounds are missing" in calm["intro"][0]
    assert not any("by the calendar" in line for line in calm["gaps"])
    assert (
        "Rounds 6 to 7 are over by the calendar and not published yet (30 March 2011 on)."
        in later["gaps"]
    )


def test_the_budget_is_stated_for_the_whole_horizon_and_so_far(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as published:
        found = document(published)
    assert "All 10 rounds together spend epsilon 1 and delta 1e-9" in found["promise"]
    assert "at most epsilon 1 and delta 1e-9, which is all of it" in found["spent"]
    assert "The 7 rounds to come will add nothing to it." in found["spent"]
    assert "because of by_product" in found["adaptive"]
    assert sum(Fraction(own["width"]) for own in found["shares"]) == pytest.approx(100, abs=0.1)


def test_the_citation_names_store_plan_unit_budget_and_method(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as published:
        cited = document(published)["citation"]
        for text in (
            published.store_id,
            published.fingerprint[:16],
            "rounds 1 to 3 (25 March 2011 to 27 March 2011)",
            "epsilon = 1, delta = 1e-9 (zCDP with rho = ",
            "one record: its addition and its deletion together",
            "Kaplan, Kohen, Mansour, Nissim, Stemmer",
        ):
            assert text in cited


def test_a_bracket_is_shown_by_its_ends(tmp_path: Path) -> None:
    bracket = replace(
        answer("lines", 1, [0]), values=(None,), each=(Bounds("", 20, 1_700, 10, 1_900),), stddev=""
    )
    with Published.open(store_of(tmp_path / "store", [[bracket, *usual(1)[1:]]])) as published:
        (found,) = [one for one in document(published)["sections"] if one.name == "lines"]
    assert (found.value, found.error) == ("20 to 1,700", "")
    assert any("no single best number" in text for _, text in found.facts)
    assert found.blocks[-1].rows == (("2011-03-25", "1", "20 to 1,700", "10 to 1,900"),)


def test_numbers_below_zero_have_a_word(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as published:
        sections = {one.name: dict(one.facts) for one in document(published)["sections"]}
    assert "Below 0" in sections["by_country"]
    assert "Below 0" not in sections["by_product"]


# Labels.


@pytest.mark.parametrize(
    ("kind", "key", "said"),
    [
        ("histogram", "tea", "tea"),
        ("histogram", '["France","tea"]', "France · tea"),
        ("histogram", "[null]", "(none)"),
        ("histogram", '[""]', "(empty)"),
        ("histogram", "[not json", "[not json"),
        ("histogram", "[" * 100_000, "[" * 100_000),
        ("cube", '[["country","FR"],["gift",true]]', "country = FR, gift = yes"),
        ("cube", "[]", "all"),
        ("gram", '["covariance","a","a"]', "variance of a"),
        ("gram", '["covariance","a","b"]', "covariance of a and b"),
        ("gram", '["count"]', "count"),
        ("a kind of the future", '["what",3,{"x":1}]', 'what · 3 · {"x": 1}'),
    ],
)
def test_labels_are_spelled_as_people_say_them(kind: str, key: str, said: str) -> None:
    assert spelled(kind, key) == said


@given(st.text(max_size=300))
def test_a_cut_label_is_short_and_printable(label: str) -> None:
    assert cut(label).isprintable()
    assert len(cut(label)) <= 190 if len(label) <= 80 else "characters)" in cut(label)
    assert in_charts(label).isprintable()
    assert len(in_charts(label)) <= 24


# Long series.


def series_of(values: Sequence[float]) -> Series:
    column = np.array(values, dtype=np.float64)
    return Series(
        release="r",
        key=None,
        rounds=np.arange(1, len(values) + 1),
        value=column,
        low=column - 1,
        high=column + 1,
        low_all=column - 2,
        high_all=column + 2,
        absent_below=None,
    )


@given(
    st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), min_size=1, max_size=400),
    st.integers(6, 90),
)
def test_thinning_keeps_peaks_troughs_and_ends_and_invents_nothing(
    values: list[float], most: int
) -> None:
    whole = series_of(values)
    found = thinned(whole, most)
    places = found.series.rounds - 1
    assert np.array_equal(found.series.value, whole.value[places], equal_nan=True)
    assert np.array_equal(found.series.high_all, whole.high_all[places], equal_nan=True)
    assert {0, len(values) - 1} <= set(places.tolist())
    assert len(places) <= most + 4
    if not np.isnan(whole.value).all():
        assert np.nanmax(found.series.value) == np.nanmax(whole.value)
        assert np.nanmin(found.series.value) == np.nanmin(whole.value)
    assert (found.note == "") == (len(values) <= most)


def test_a_long_stream_with_many_labels_stays_small_and_says_what_is_left_out(
    tmp_path: Path,
) -> None:
    labels = {f"label {number:05d}": 1_000 + number for number in range(30_000)}
    path = store_of(tmp_path / "store", [usual(round_, labels) for round_ in (1, 2)])
    with Published.open(path) as published:
        content = page(published)
    text = Parts(content.decode()).text
    assert len(content) < 1_500_000
    assert "29,988 more bins are published." in text
    assert "29,950 more are published; `retrodp export` has all 30,000." in text


def test_where_reading_all_rounds_takes_too_long_they_are_read_evenly_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "MOST_FIGURES", 100)
    with opened(tmp_path / "store", 10) as published:
        last = published.answer(10, SPARSE)
        assert last is not None
        read = gather.history(published, last, ["Tea"])
        assert [one.round for one in read.answers] == [1, 4, 7, 10]
        assert "Of 10 rounds 4, evenly spread, were read." in parts(published).text
    assert read.note == "Of 10 rounds 4, evenly spread, were read."


def test_an_axis_shows_all_values_and_says_when_a_band_leaves_it() -> None:
    calm, wild = series_of([10, 12, 11]), series_of([10, 12, 11])
    wild = replace(wild, high_all=wild.high_all + 1_000)
    assert value_range([calm]) == ((0.0, 14.0), False)
    assert value_range([series_of([100, 101])]) == ((98.0, 103.0), False)
    (low, high), beyond = value_range([wild])
    assert low == 0
    assert 12 < high < 20
    assert beyond


def test_some_bins_of_an_answer_have_the_series_that_all_of_them_have(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as published:
        one = key_series(published, SPARSE, ["Tea"])["Tea"]
        both = key_series(published, SPARSE, ["Jam", "Tea"])["Tea"]
        assert np.array_equal(one.value, both.value)
        assert scalar_series(published, "lines").value.tolist() == [1007, 2007, 3007]


def test_labels_of_earlier_rounds_are_shown_where_the_newest_names_none(tmp_path: Path) -> None:
    empty: Answer = answer(SPARSE, 2, [], [])
    rounds = [usual(1), [*usual(2)[:3], empty]]
    with Published.open(store_of(tmp_path / "store", rounds)) as published:
        (found,) = [one for one in document(published)["sections"] if one.name == SPARSE]
    assert found.value == "no label is named"
    assert [block.form for block in found.blocks] == ["panels", "table"]
    assert [panel.label for panel in found.blocks[0].panels] == ["Tea", "Jam"]
    assert found.blocks[1].rows[0] == ("2011-03-26", "–", "–")


def test_an_answer_without_any_bin_is_no_fault(tmp_path: Path) -> None:
    empty: Answer = answer(SPARSE, 1, [], [])
    with Published.open(store_of(tmp_path / "store", [[*usual(1)[:3], empty]])) as published:
        (found,) = [one for one in document(published)["sections"] if one.name == SPARSE]
    assert found.value == "no label is named"
    assert "Not listed" in dict(found.facts)


def drawn_as(values: Sequence[float | None]) -> str:
    rows: dict[str, Sequence[object]] = {"t": list(range(len(values))), "v": list(values)}
    drawing = Drawing(spec={}, data={"rows": rows}, digits=0, alt="")
    return spark([Table(title="", columns=(), rows=()), Chart(title="", drawing=drawing)])


def test_a_small_line_breaks_at_gaps_keeps_peaks_and_needs_two_values() -> None:
    assert drawn_as([0, 1]) == "M2.0 26.0L118.0 2.0"
    assert drawn_as([5, 5]) == "M2.0 14.0L118.0 14.0"
    assert drawn_as([0, None, 1, 1]).count("M") == 2
    assert drawn_as([None, 3]) == drawn_as([]) == ""
    peak = drawn_as([1.0] * 500 + [9.0] + [1.0] * 499)
    assert peak.count(" 2.0") == 1
    assert len(peak) < 3_000
