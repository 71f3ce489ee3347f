"""The page in a real browser, while a cluster runs and a worker is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.client.dashboard.browser import SIZE, axe, browser, page_is_there
from tests.client.dashboard.running import OUTPUTS, PARTITIONS, VENUES, Running, running
from tests.patience import PATIENCE_S, until
from tests.services.missing import MissingError, skip

pytestmark = pytest.mark.services

VIEWS = {
    "o": "overview", "p": "pipeline", "a": "partitions", "t": "outputs", "e": "explore",
    "q": "query", "c": "checkpoints", "l": "letters", "s": "settings",
}  # fmt: skip
# What opens within a view.
OPENED = (
    "overview?worker=worker-1&alert=CheckpointStale&span=all",
    "pipeline?node=prices",
    "outputs?output=venue-volume&key=%5B%22IEX%22%5D",
)
PATIENCE_MS = 1000 * PATIENCE_S
STAGES_PARTITIONS = PARTITIONS + 4 + 1


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    try:
        page_is_there()
        with browser() as started:
            yield started
    except MissingError as error:
        skip(error)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    with running(tmp_path_factory.mktemp("market")) as found:
        yield found


@pytest.fixture
def page(chrome: Any, shown: tuple[Running, str]) -> Iterator[Any]:
    """A page that has shown a cluster at work; what its console says is an error."""
    context = chrome.new_context(viewport=SIZE)
    opened, said = context.new_page(), []
    opened.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    opened.on("pageerror", lambda error: said.append(f"error: {error}"))
    opened.on("requestfailed", lambda request: said.append(f"{request.failure}: {request.url}"))
    opened.set_default_timeout(PATIENCE_MS)
    opened.goto(shown[1])
    everything = f"All {STAGES_PARTITIONS} partitions are computed"
    opened.get_by_text(everything).first.wait_for()
    yield opened
    context.close()
    # Of a filter that the table has no field for; of what a page that was left had asked for.
    told = ("400 (Bad Request)", "net::ERR_ABORTED")
    assert [line for line in said if not any(one in line for one in told)] == []


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def see(page: Any, view: str) -> None:
    """Open a view by its key, and wait for what it shows."""
    (letter,) = [key for key, name in VIEWS.items() if name == view]
    press(page, "Escape", "g", letter)  # out of a field, if we are in one
    page.wait_for_url(re.compile(rf"#/{view}"))
    page.locator("main h2").first.wait_for()


def rows(page: Any, label: str) -> Any:
    return page.get_by_role("group", name=label, exact=True).locator("tbody tr")


def test_every_view_shows_the_cluster(page: Any) -> None:
    until(lambda: rows(page, "Workers").count() == 3)
    see(page, "pipeline")
    until(lambda: page.locator("svg g.node").count() == 10)
    page.locator("g.node", has_text="prices").click()
    page.get_by_text('vwap = vwap(col("price"), col("size"))').wait_for()
    page.get_by_text("changes out").first.wait_for()  # a node has counters of its own
    page.get_by_text("Busiest steps").wait_for()
    see(page, "partitions")
    until(lambda: rows(page, "Partitions").count() == STAGES_PARTITIONS)
    page.get_by_role("searchbox").fill("stage-1")
    until(lambda: rows(page, "Partitions").count() == 4)
    see(page, "outputs")
    page.get_by_role("tab").first.wait_for()
    assert page.get_by_role("tab").all_inner_texts() == list(OUTPUTS)
    rows(page, "Rows").first.wait_for()
    see(page, "checkpoints")
    rows(page, "Checkpoints").first.wait_for()
    see(page, "letters")
    page.get_by_text("size is not positive").first.wait_for()


def test_a_view_that_there_is_none_of_is_told(page: Any) -> None:
    page.goto(page.url.partition("#")[0] + "#/nonsense")
    page.get_by_text("There is no view nonsense: there are overview, pipeline").wait_for()


def test_charts_have_a_span(page: Any) -> None:
    page.locator("figure.chart canvas").first.wait_for()
    page.get_by_role("button", name="1 h", exact=True).click()
    page.wait_for_url(re.compile("span=1h"))
    page.locator("figure.chart canvas").first.wait_for()


def test_settings_in_force_are_shown_with_their_origins(page: Any) -> None:
    see(page, "settings")
    page.get_by_role("searchbox").fill("batch_rows")
    row = rows(page, "Settings").first
    row.get_by_text("worker-1, worker-2").wait_for()


def test_a_row_is_shown_by_its_key_with_its_changes(page: Any) -> None:
    page.goto(page.url.partition("#")[0] + "#/outputs?output=venue-volume")
    rows(page, "Rows").first.get_by_role("button").first.click()
    page.wait_for_url(re.compile("key="))
    page.get_by_text("since somebody looks, newest first").wait_for()
    page.get_by_role("group", name="Changes of", exact=False).locator("tbody tr").first.wait_for()


def test_a_table_is_sorted_and_filtered_where_its_rows_are(page: Any) -> None:
    page.goto(page.url.partition("#")[0] + "#/outputs?output=vwap")
    table = rows(page, "Rows")
    table.first.wait_for()
    page.get_by_role("button", name="volume").click()
    page.get_by_role("button", name="volume").click()
    page.wait_for_url(re.compile("by=volume&down=1"))
    page.get_by_role("searchbox").fill("venue=IEX volume>0")
    page.wait_for_function(
        "() => { const rows = [...document.querySelectorAll('main tbody tr')];"
        "return rows.length && rows.every(row => row.cells[1].innerText === 'IEX') }"
    )
    volumes = [int(one) for one in table.locator("td:nth-child(6)").all_inner_texts()]
    assert volumes == sorted(volumes, reverse=True)
    page.get_by_role("searchbox").fill("nothing=1")
    page.get_by_text("no field nothing").wait_for()
    assert not rows(page, "Rows").count()  # those of the filter before
    page.get_by_role("searchbox").fill("")
    page.get_by_role("button", name="Tap").click()
    rows(page, "Changes, newest first").first.wait_for()
    page.get_by_role("button", name="Bars").click()
    page.locator("ol.bars li").first.wait_for()
    page.get_by_role("button", name="Lines").click()
    page.locator("figure.chart canvas").wait_for()
    until(lambda: 1 <= page.locator("figure.chart .key").count() <= 3)


def test_rows_are_explored_in_the_browser(page: Any) -> None:
    see(page, "explore")
    frame = page.frame_locator("iframe.explore")
    frame.get_by_text("window_start_ns").first.wait_for()
    assert frame.locator("#said").inner_text() == ""
    page.get_by_label("output").select_option("venue-volume")
    frame.get_by_text("mean").first.wait_for()


def test_sql_is_answered_and_refused(page: Any) -> None:
    see(page, "query")
    field = page.get_by_label("Statement")
    field.fill("SELECT venue, sum(volume) AS volume FROM vwap GROUP BY venue ORDER BY venue")
    press(page, "Control+Enter")
    rows(page, "Result").first.wait_for()
    assert rows(page, "Result").locator("th").all_inner_texts() == [*VENUES]
    field.fill("SELECT * FROM read_csv('/etc/passwd')")
    press(page, "Control+Enter")
    page.get_by_role("alert").get_by_text("Cannot access file").wait_for()


def test_a_letter_is_retried(page: Any, shown: tuple[Running, str]) -> None:
    see(page, "letters")
    page.get_by_role("button", name="is too far ahead").first.click()
    page.wait_for_function(  # one that is not among those of the cause would be shown no longer
        "() => { const rows = [...document.querySelectorAll('[aria-label^=Dead] tbody tr')];"
        "return rows.length && rows.every(row => row.innerText.includes('is too far ahead')) }"
    )
    rows(page, "Dead letters").first.get_by_role("button").click()
    dialog = page.get_by_role("dialog")

    def retry() -> str:
        """Return the answer, whatever it is."""
        page.get_by_role("button", name="Retry …", exact=True).click()
        dialog.get_by_label("reason").fill("its clock was set")
        dialog.get_by_role("button", name="Retry", exact=True).click()
        page.wait_for_function(
            "() => { const said = document.querySelector('dialog [role=status]').innerText.trim();"
            "return said && !said.startsWith('waiting') }",
        )
        return str(dialog.get_by_role("status").inner_text())

    assert "feed" in retry()  # who writes there, and is not disturbed
    press(page, "Escape")
    shown[0].feed.end()
    assert "1 retried: its clock was set" in retry()
    shown[0].begin_feed()


def test_a_killed_worker_is_seen_to_go_and_to_come_back(
    page: Any, shown: tuple[Running, str]
) -> None:
    shown[0].kill("worker-2")
    page.locator(".verdict:not(.good)").wait_for()
    everything = f"All {STAGES_PARTITIONS} partitions are computed, by 3 workers."
    page.get_by_text(everything).first.wait_for()
    assert "worker-2" in page.get_by_label("Events").last.inner_text()


def test_a_worker_has_its_restarts_and_its_log(page: Any, shown: tuple[Running, str]) -> None:
    page.get_by_role("button", name="worker-1", exact=True).click()
    engine = shown[0].engine_of("worker-1")
    os.kill(engine, signal.SIGKILL)
    page.get_by_text("has ended: by SIGKILL; it is restarted").wait_for()
    page.get_by_text("1 restart of its processes").wait_for()


def test_an_alert_has_its_runbook(page: Any) -> None:
    page.goto(page.url.partition("#")[0] + "#/overview?alert=CheckpointStale")
    page.get_by_text("for the reason").wait_for()


def test_a_partition_is_moved_by_keyboard_alone(page: Any) -> None:
    see(page, "partitions")
    press(page, "/")
    page.keyboard.type("main")
    press(page, "Escape")
    row = rows(page, "Partitions").first
    owner = row.locator("td").nth(1).inner_text()
    row.get_by_role("button").focus()
    press(page, "Enter")
    page.get_by_role("button", name="Move …").focus()
    press(page, "Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("reason").focus()
    page.keyboard.type("a test of the keyboard")
    press(page, "Enter")
    dialog.get_by_text(re.compile("moves to .* a test of the keyboard")).wait_for()
    press(page, "Escape")
    page.wait_for_function(
        "was => document.querySelector('main tbody tr td:nth-child(3)').innerText !== was",
        arg=owner,
    )


def test_keys_help_pause_and_skip(page: Any) -> None:
    press(page, "?")
    page.get_by_role("dialog", name="Keys").wait_for()
    press(page, "Escape")
    page.get_by_role("dialog", name="Keys").wait_for(state="hidden")
    press(page, ".")
    page.get_by_text("paused at").wait_for()
    said = page.locator("header.top").inner_text()
    page.wait_for_timeout(2500)
    assert page.locator("header.top").inner_text() == said
    press(page, ".")
    page.locator("header.top").get_by_text("live").wait_for()
    page.reload()
    page.get_by_text("partitions are computed").first.wait_for()
    press(page, "Tab", "Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def test_a_key_right_behind_a_closed_dialog_is_the_page_s(page: Any) -> None:
    press(page, "?")
    page.get_by_role("dialog", name="Keys").wait_for()
    page.evaluate(  # in one task: the browser has moved the focus out of the dialog by no frame
        "() => { document.querySelector('dialog').close(); document.activeElement.dispatchEvent("
        "new KeyboardEvent('keydown', { key: '.', bubbles: true })) }"
    )
    page.get_by_text("paused at").wait_for()


def test_connection_lost_while_paused_is_restored(page: Any) -> None:
    sockets = []

    def between(socket: Any) -> None:
        socket.connect_to_server()
        sockets.append(socket)

    page.route_web_socket(re.compile("/live$"), between)
    page.reload()
    header = page.locator("header.top")
    header.get_by_text("live").wait_for()
    press(page, ".")
    header.get_by_text("paused at").wait_for()
    said = header.inner_text()
    sockets[0].close()
    header.get_by_text("lost").wait_for()
    header.get_by_text("paused at").wait_for()
    assert header.inner_text() == said


def test_page_of_a_frozen_server_is_not_shown_as_live(page: Any) -> None:
    passed: list[Any] = []

    def between(socket: Any) -> None:
        server = socket.connect_to_server()
        passed.append(True)
        server.on_message(lambda message: socket.send(message) if passed[-1] else None)

    page.route_web_socket(re.compile("/live$"), between)
    page.reload()
    header = page.locator("header.top")
    header.get_by_text("live").wait_for()
    passed.append(False)
    header.get_by_text("stale, last").wait_for()
    passed.append(True)
    header.get_by_text("live").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_anybody_out(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    program = axe()
    home = page.url.partition("#")[0]
    for view in (*VIEWS.values(), *OPENED):
        page.goto(f"{home}#/{view}")
        page.locator("main h2").first.wait_for()
        page.wait_for_timeout(1500)
        page.evaluate(program)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        told = [
            f"{one['id']}: {node['html'][:120]} {node['failureSummary'][:160]}"
            for one in found["violations"]
            for node in one["nodes"][:3]
        ]
        assert told == [], (view, scheme, json.dumps(told, indent=1))


def test_page_fits_a_small_screen(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    home = page.url.partition("#")[0]
    for view in (*VIEWS.values(), *OPENED):
        page.goto(f"{home}#/{view}")
        page.locator("main h2").first.wait_for()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, (view, wide)


def test_all_who_look_are_shown_the_same_snapshots(chrome: Any, shown: tuple[Running, str]) -> None:
    """Each is made once, whoever looks; who is slow misses some."""
    pages = [chrome.new_page() for _ in range(6)]
    seen: list[dict[int, str]] = []
    for one in pages:
        seen.append({})
        one.on("websocket", partial(_listen, seen[-1]))
        one.set_default_timeout(PATIENCE_MS)
        one.goto(shown[1])
    ends = time.monotonic() + PATIENCE_S
    while len(shared := set.intersection(*map(set, seen))) < 3:
        assert time.monotonic() < ends, [sorted(found) for found in seen]
        pages[0].wait_for_timeout(100)
    for one in pages:
        one.close()
    for number in shared:
        assert len({found[number] for found in seen}) == 1, number


def _listen(found: dict[int, str], socket: Any) -> None:
    """Note the snapshots that come, by number."""

    def note(text: str) -> None:
        told = json.loads(text)
        if "number" in told:
            found[told["number"]] = text

    socket.on("framereceived", note)
