"""The report in headless Chromium: quiet, complete, and no wider than its window."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calmfed
from calmfed.study.grid import expand, save_study
from calmfed.study.report import write_report
from calmfed.study.summary import cell_folder

pytestmark = pytest.mark.system

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
if CHROMIUM is None or DRIVER is None:
    pytest.skip("chromium or chromedriver is not installed", allow_module_level=True)

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
SECTIONS = (
    "overview",
    "results",
    "curves",
    "holdings",
    "classes",
    "architectures",
    "trust",
    "runs",
    "settings",
)
SMALLEST_TEXT = """
return Math.min(...[...document.querySelectorAll('svg.figure text')].map(text => {
  const scale = text.getScreenCTM();
  return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(scale.a, scale.b);
}));
"""
CLIPPED = """
return [...document.querySelectorAll('svg.figure text')].filter(text => {
  const mine = text.getBoundingClientRect(), all = document.documentElement.clientWidth;
  return mine.left < 0 || mine.right > all;
}).map(text => text.textContent);
"""
OVERLAPPING = """
const hits = [];
for (const svg of document.querySelectorAll('svg.figure')) {
  const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
    const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    // line boxes are higher than what is written in them
    if (wide > 1 && high > 0.4 * Math.min(p.height, q.height)) hits.push([svg.getAttribute('aria-label'), a, b]);
  }));
}
return hits;
"""  # noqa: E501


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a small study with long names, many clients and an unfinished cell."""
    rng = np.random.default_rng(0)
    y = np.arange(480) % 12
    x = (rng.integers(0, 40, (480, 8, 8)) + 17 * y[:, None, None]).astype(np.uint8)
    labels = [f"a rather long name {c}" for c in range(12)]
    data = calmfed.from_arrays(x, y, x[:120], y[:120], labels=labels, name="toy")
    folder = tmp_path_factory.mktemp("browser")
    base = {"data": "toy", "clients": 30, "active": 3, "rounds": 2, "epochs": 1, "width": 0.03}
    base |= {"eval_every": 1, "models": ["cnn6", "resnet18_half"], "min_samples": 3}
    methods = ["local", "hard", "calm", "calm,tau=0.05,sigma=0.5,eta=1.0,floor=0.01"]
    study = expand("browser", {"base": base, "grid": {"method": methods, "seed": [0, 1]}}, {})
    save_study(study, folder)
    for cell in study.cells[:-1]:
        calmfed.run(cell.config, dataset=data, directory=cell_folder(folder, cell))
    return write_report(folder)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def show(browser: Any, page: Path, width: int) -> None:
    """Open the page in a window of a width that a real one cannot be as narrow as."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.get(page.as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")


@pytest.mark.parametrize("width", [400, 800, 1400])
def test_it_fits_the_window_and_can_be_read(browser: Any, page: Path, width: int) -> None:
    show(browser, page, width)
    inside, outside = browser.execute_script(
        "const page = document.documentElement; return [page.scrollWidth, page.clientWidth]"
    )
    assert inside <= outside <= width  # a scroll bar may take its part
    assert browser.execute_script(SMALLEST_TEXT) >= 11
    assert browser.execute_script(CLIPPED) == []
    assert browser.execute_script(OVERLAPPING) == []


def test_every_section_is_there_and_has_height(browser: Any, page: Path) -> None:
    show(browser, page, 1400)
    for name in SECTIONS:
        assert browser.find_element("id", name).size["height"] > 40, name
    assert browser.find_element("id", "unfinished").is_displayed()


def test_the_console_stays_empty_and_nothing_is_asked_of_anybody(browser: Any, page: Path) -> None:
    browser.get_log("browser")
    browser.get_log("performance")  # what other tests did
    show(browser, page, 1400)
    assert browser.get_log("browser") == []
    told = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {
        event["params"]["request"]["url"]
        for event in told
        if event["method"] == "Network.requestWillBeSent"
    }
    assert asked == {page.as_uri()}
