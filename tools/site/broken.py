"""Links of a built site that lead nowhere: files and anchors, and whatever would be fetched from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["broken_links"]

# Attributes that a browser fetches by itself; a page must read well without a network.
_FETCHED = {("script", "src"), ("img", "src"), ("link", "href")}
# Which links of the head are fetched; "canonical" and others only name something.
_FETCHED_RELATIONS = {"stylesheet", "icon", "preload", "modulepreload", "manifest"}


class _Page(HTMLParser):
    """The anchors of a page, and where it leads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        for name in ("href", "src"):
            if name not in values:
                continue
            fetched = (tag, name) in _FETCHED and (
                tag != "link" or _FETCHED_RELATIONS & set(values.get("rel", "").split())
            )
            (self.fetched if fetched else self.links).append(values[name])


def broken_links(site: Path) -> list[str]:
    """A sentence for each link that leads to no file or anchor of the site."""
    pages = {}
    for file in sorted(site.rglob("*.html")):
        pages[file] = page = _Page()
        page.feed(file.read_text("utf-8"))
    found = []
    for file, page in pages.items():
        where = file.relative_to(site)
        for link in page.fetched:
            if urlsplit(link).netloc:
                found.append(f"{where}: {link} is fetched from elsewhere.")
        for link in dict.fromkeys([*page.links, *page.fetched]):
            parts = urlsplit(link)
            # Absolute ones are the site's own address, on the page that is shown for a missing one, or others' sites.
            if parts.scheme or parts.netloc or parts.path.startswith("/"):
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                found.append(f"{where}: {link} leads to no file.")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{where}: {link} leads to no anchor.")
    return found
