"""What the documents say of names is true."""

import re
from pathlib import Path

import pytest

from calmfed import presets
from calmfed.config import KEYS, Config
from calmfed.methods import methods

ROOT = Path(__file__).parents[1]


def test_every_setting_is_documented_with_its_default() -> None:
    text = (ROOT / "docs/reference/config.md").read_text(encoding="utf-8")
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for key, default in zip(
            re.findall(r"`(\w+)`", cells[0]), re.split(r", (?=[\d`])", cells[1])
            if len(cells) > 1 else [], strict=False,
        ):  # fmt: skip
            rows[key] = default.strip("`")
    assert set(KEYS) <= set(rows)
    for key in ("rounds", "clients", "lr", "dirichlet_alpha", "adopt_tolerance", "batch"):
        assert float(rows[key]) == getattr(Config, key)


def test_every_method_is_documented() -> None:
    text = (ROOT / "docs/reference/methods.md").read_text(encoding="utf-8")
    for name, method in methods().items():
        # other tests of this process may have registered methods of their own
        assert f"`{name}`" in text or not method.__module__.startswith("calmfed.")


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], ids=str)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_presets_say_what_they_are() -> None:
    for name in presets.names():
        assert presets.load(name)["summary"]
