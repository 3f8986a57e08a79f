"""The picture and the page of a plan."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layrubnet.memory.picture.boxes import Box, merged, path
from layrubnet.memory.picture.page import page
from layrubnet.memory.picture.scale import Up, nice_step
from layrubnet.memory.picture.style import BUDGET, FETCH, FILLS, OFFLOAD
from layrubnet.memory.picture.svg import draw
from layrubnet.memory.report import measure
from layrubnet.memory.strategies import STRATEGIES
from layrubnet.memory.timeline import timeline
from tests.memory.support import COST, planned

SVG = "{http://www.w3.org/2000/svg}"


def svg_of(strategy: str, depth: int = 4, budget: int | None = None) -> ElementTree.Element:
    made, plan = planned(strategy, depth)
    return ElementTree.fromstring(
        draw(timeline(made, plan), "chain <&>, batch 4", 10 << 20, budget)
    )


def words(root: ElementTree.Element) -> str:
    return "\n".join(text.text or "" for text in root.iter(f"{SVG}text"))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_picture_is_well_formed_and_labelled(strategy: str) -> None:
    text = words(svg_of(strategy))
    for label in ("chain <&>, batch 4", f"strategy {strategy}", "bytes in use", "at the peak",
                  "device memory, by address", "forward →", "backward →", "instruction",
                  "allocated once", "% less", "than BVLC Caffe's 10.0 MiB"):  # fmt: skip
        assert label in text


def test_every_buffer_of_a_small_net_is_a_rectangle() -> None:
    made, plan = planned("reuse", 2)
    root = ElementTree.fromstring(draw(timeline(made, plan), "t", 1 << 20))
    titles = [t.text or "" for t in root.iter(f"{SVG}title")]
    step = plan.schedules["step_first"]
    for name in ("c0.data", "c0@1.data", "c1.diff", "x1.data"):
        if name in step.offsets:
            assert any(t.startswith(f"{name}: ") for t in titles)


def test_copies_are_arrows_in_both_directions() -> None:
    root = svg_of("hybrid")
    lines = [line.get("stroke") for line in root.iter(f"{SVG}line")]
    _, plan = planned("hybrid")
    copies = sum(i.op == "offload" for i in plan.schedules["step_first"].instructions)
    assert lines.count(OFFLOAD) == copies
    assert lines.count(FETCH) == copies
    assert "host" in words(root)
    assert not {OFFLOAD, FETCH} & {e.get("stroke") for e in svg_of("reuse").iter(f"{SVG}line")}


def test_recomputation_has_its_colour() -> None:
    fills = {e.get("fill") for e in svg_of("sublinear").iter(f"{SVG}path")}
    assert FILLS["recomputed"] in fills
    assert "a layer run again" in words(svg_of("sublinear"))


def test_budget_line_is_drawn_where_it_is_near() -> None:
    _, plan = planned("reuse")
    near, far = svg_of("reuse", budget=plan.nbytes + 1), svg_of("reuse", budget=9 * plan.nbytes)
    strokes = [{e.get("stroke") for e in root.iter(f"{SVG}line")} for root in (near, far)]
    assert BUDGET in strokes[0]
    assert BUDGET not in strokes[1]
    assert "budget" in words(far)


def test_a_deep_net_stays_small() -> None:
    made, plan = planned("hybrid", 400)
    text = draw(timeline(made, plan), "deep", 1 << 30)
    ElementTree.fromstring(text)
    assert len(text) < 3_000_000
    assert text.count("<") < 5000


@given(
    st.lists(
        st.tuples(st.floats(0, 40), st.floats(0, 40), st.floats(0.01, 9), st.floats(0.01, 9)),
        min_size=1, max_size=12,
    )
)  # fmt: skip
def test_merged_boxes_cover_what_the_small_ones_cover(boxes: list[Box]) -> None:
    def mask(found: list[Box], grow: float) -> np.ndarray:
        cells = np.zeros((60, 60), bool)
        at = np.arange(60)
        for x, y, w, h in found:
            across = np.minimum(x + w, at + 1) - np.maximum(x, at) > grow
            down = np.minimum(y + h, at + 1) - np.maximum(y, at) > grow
            cells |= down[:, None] & across
        return cells

    joined = merged({"a": boxes})["a"]
    assert not (mask(boxes, 0.3) & ~mask(joined, 0)).any()  # seen clearly: drawn
    assert not (mask(joined, 0) & ~mask(boxes, 0)).any()  # drawn: something is there
    for n, one in enumerate(joined):
        for other in joined[n + 1 :]:
            apart_x = one[0] + one[2] <= other[0] or other[0] + other[2] <= one[0]
            apart_y = one[1] + one[3] <= other[1] or other[1] + other[3] <= one[1]
            assert apart_x or apart_y


def test_each_pixel_goes_to_the_kind_that_covers_most() -> None:
    thin, thick = [(0.0, 0.0, 10.0, 0.1)], [(0.0, 0.2, 10.0, 0.8)]
    found = merged({"thin": thin, "thick": thick})
    assert found["thick"] == [(0, 0, 10, 1)]
    assert found["thin"] == []


def test_path_data() -> None:
    assert path([(1.0, 2.04, 3.5, 4.0)]) == "M1 2h3.5v4h-3.5z"


def test_axis_is_broken_only_where_parameters_fill_it() -> None:
    assert not Up(100, 100, 1000, 100).broken
    broken = Up(100, 100, 1000, 900)
    assert broken.at(0) == 100
    assert broken.at(900) == pytest.approx(90)
    assert broken.at(1000) == pytest.approx(0)
    heights = [broken.at(b) for b in range(0, 1001, 50)]
    assert heights == sorted(heights, reverse=True)
    assert nice_step(100) == 128


# -- the page ------------------------------------------------------------------------------------


def write_page(folder: Path) -> Path:
    plans = [planned(s) for s in ("caffe", "reuse", "hybrid", "sublinear")]
    shown = [(line, measure(line, COST)) for line in (timeline(*p) for p in plans)]
    target = folder / "plan.html"
    target.write_text(page(shown, "chain <&>", "hybrid", 10 << 20, 1 << 20, COST))
    return target


def test_page_needs_no_network(tmp_path: Path) -> None:
    text = write_page(tmp_path).read_text()
    assert not re.findall(r"""(?:src|href)\s*=|url\(|https?://|import\(|fetch\(""", text)
    assert "<title>Memory plan: chain &lt;&amp;&gt;</title>" in text


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")


def chromium(folder: Path, address: str, *options: str) -> str:
    """What headless Chromium prints for a page, after its scripts have run."""
    done = subprocess.run(
        [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000",
         "--window-size=1400,900", *options, address],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return done.stdout


@needs_chromium
def test_page_runs_without_script_errors(tmp_path: Path) -> None:
    address = write_page(tmp_path).as_uri()
    dom = unescape(chromium(tmp_path, address, "--dump-dom"))
    body = re.search(r"<body[^>]*>", dom)
    assert body
    assert body[0] == '<body data-ready="yes">'
    for strategy in ("caffe", "reuse", "hybrid", "sublinear"):
        assert f">{strategy}<small>" in dom
    assert "hybrid (Layrub" in dom
    assert "at the peak" in dom


@needs_chromium
def test_page_describes_a_buffer(tmp_path: Path) -> None:
    address = write_page(tmp_path).as_uri()
    offloaded = unescape(chromium(tmp_path, f"{address}#hybrid/x1.data", "--dump-dom"))
    assert "offloaded at " in offloaded
    assert "<td>layer</td><td>sum0</td>" in offloaded
    again = unescape(chromium(tmp_path, f"{address}#caffe/x1.data", "--dump-dom"))
    assert "no other buffer ever uses this place" in again


GESTURES = """
<script>
function gestures() {
  const canvas = document.getElementById("picture"), box = canvas.getBoundingClientRect();
  const at = (x, y) => ({ clientX: box.left + x, clientY: box.top + y, pointerId: 1 });
  const note = (key, value) => { document.body.dataset[key] = value; };
  const tip = () => document.getElementById("tip");
  const viewer = window.viewer;
  canvas.setPointerCapture = () => {};
  const life = viewer.plan.byName.get("x1.data"), [x, y, w, h] = viewer.picture.boxOf(life);
  canvas.dispatchEvent(new PointerEvent("pointermove", at(x + w / 2, y + h / 2)));
  note("hover", tip().querySelector("h3").textContent);
  const before = viewer.view.x1 - viewer.view.x0;
  canvas.dispatchEvent(new WheelEvent("wheel", { ...at(x + 5, y + 5), deltaY: -400 }));
  note("zoom", before / (viewer.view.x1 - viewer.view.x0));
  const left = viewer.view.x0;
  canvas.dispatchEvent(new PointerEvent("pointerdown", at(500, 300)));
  canvas.dispatchEvent(new PointerEvent("pointermove", at(300, 300)));
  canvas.dispatchEvent(new PointerEvent("pointerup", at(300, 300)));
  note("pan", viewer.view.x0 - left);
  canvas.dispatchEvent(new MouseEvent("dblclick", at(300, 300)));
  note("whole", viewer.view.x1 - viewer.view.x0 === viewer.plan.count);
  document.getElementById("clock").click();
  note("time", viewer.view.x1 === viewer.plan.clock[viewer.plan.count]);
  document.querySelectorAll("#strategies button")[0].click();
  note("strategy", document.getElementById("summary").textContent.split(" ")[0]);
  note("done", "yes");
}
const waiting = setInterval(() => {
  if (document.body.dataset.ready) { clearInterval(waiting); gestures(); }
}, 20);
</script></body>"""


@needs_chromium
def test_pointing_zooming_moving_and_switching(tmp_path: Path) -> None:
    target = write_page(tmp_path)
    target.write_text(target.read_text().replace("</body>", GESTURES))
    dom = unescape(chromium(tmp_path, target.as_uri(), "--dump-dom"))
    body = re.search(r"<body[^>]*>", dom)
    assert body
    said = dict(re.findall(r'data-(\w+)="([^"]*)"', body[0]))
    assert "error" not in said
    assert said["done"] == "yes"
    assert said["hover"].startswith("x1.data")
    assert float(said["zoom"]) > 1.5
    assert float(said["pan"]) > 0
    assert said["whole"] == said["time"] == "true"
    assert said["strategy"] == "caffe"


@needs_chromium
def test_screenshot_shows_the_kinds(tmp_path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    target = tmp_path / "page.png"
    chromium(tmp_path, write_page(tmp_path).as_uri(), f"--screenshot={target}")
    pixels = cv2.imread(str(target))[:, :, ::-1].reshape(-1, 3)
    for kind in ("feature", "gradient", "fetched"):
        color = tuple(bytes.fromhex(FILLS[kind][1:]))
        assert (pixels == color).all(axis=1).sum() > 500
