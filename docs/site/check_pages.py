"""Opens every page of the built site in Chromium, as on a desktop and on a phone, and lists what is wrong.

``python docs/site/check_pages.py FOLDER VERSION``, which `nox -s site` runs. It finds errors in the console, requests
that fail or leave the site, pages that are wider than the window, and what axe-core says of contrast and of names.
"""

import argparse
import functools
import http.server
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Request, sync_playwright

DESKTOP: Final = (1280, 900)
PHONE: Final = (390, 844)
REFERENCE: Final = "reference/aiokafkawire.probes/"
"""The page of the reference that stands for all, which look alike, for axe-core takes minutes for the largest."""
RULES: Final = ("button-name", "color-contrast", "document-title", "html-has-lang", "image-alt", "link-name")

_TOO_WIDE: Final = """() => {
    const page = document.scrollingElement, width = document.documentElement.clientWidth;
    if (page.scrollWidth <= window.innerWidth) return null;
    const wide = [...document.querySelectorAll("main *")].filter(it => it.getBoundingClientRect().right > width + 1);
    return `${page.scrollWidth} px wide, as are ${wide.slice(0, 3).map(it => it.outerHTML.slice(0, 80)).join(" ; ")}`;
}"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine, and yield its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def pages_of(site: Path) -> list[str]:
    """Return the paths of all pages of a site, without that of the answer 404."""
    found = {path.relative_to(site) for path in site.rglob("*.html")}
    return sorted(path.as_posix().removesuffix("index.html") for path in found if path.name != "404.html")


class Visits:
    """A window in which pages are opened: what is wrong with them, and what the console and the network say."""

    def __init__(self, browser: Browser, base: str, scheme: Literal["light", "dark"]) -> None:
        self._page = page = browser.new_page(color_scheme=scheme)
        self._base, self._scheme = base, scheme
        self._host = base[: base.index("/", len("http://")) + 1]
        self._problems: list[str] = []
        page.on("console", lambda line: self._add(f"console: {line.text}") if line.type == "error" else None)
        page.on("pageerror", lambda error: self._add(f"script: {error}"))
        page.on("requestfailed", self._check_failure)
        page.on("response", lambda answer: self._add(f"{answer.status}: {answer.url}") if answer.status > 399 else None)
        page.on("request", self._check_host)

    def open(self, path: str, size: tuple[int, int]) -> None:
        """Open a page in a window of a size."""
        self._page.set_viewport_size({"width": size[0], "height": size[1]})
        self._page.goto(self._base + path, wait_until="load")

    def check_width(self) -> None:
        """Note a page that is wider than the window."""
        if wide := self._page.evaluate(_TOO_WIDE):
            self._add(f"overflow: {wide}")

    def check_accessibility(self, axe: Axe) -> None:
        """Note what axe-core finds."""
        found = axe.run(self._page, options={"runOnly": list(RULES), "resultTypes": ["violations"]})
        for rule in found.response["violations"]:
            nodes = [f"{' '.join(node['html'].split())[:120]} {node['failureSummary'][:250]}" for node in rule["nodes"]]
            self._add(f"{rule['id']} ({len(nodes)} times): {'; '.join(nodes[:2])}")

    def end(self) -> list[str]:
        """Wait for the last requests, and return the problems."""
        self._page.wait_for_load_state("networkidle")
        return list(dict.fromkeys(self._problems))

    def _check_failure(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # opening the next page ends what this one still loads
            self._add(f"failed: {request.url} ({request.failure})")

    def _check_host(self, request: Request) -> None:
        if not request.url.startswith((self._host, "data:", "blob:")):
            self._add(f"leaves the site: {request.url}")

    def _add(self, problem: str) -> None:
        path, width = self._page.url.removeprefix(self._base), (self._page.viewport_size or {}).get("width")
        self._problems.append(f"/{path} ({width} px, {self._scheme}): {problem}")


def _without_similar(paths: list[str]) -> list[str]:
    """Return the pages whose contrast is measured: all but those of the reference, of which one is."""
    return [path for path in paths if not path.startswith("reference/") or path == REFERENCE]


def check(browser: Browser, base: str, paths: list[str]) -> list[str]:
    """Return the problems of all pages, each with its page, its window and its colours."""
    axe, read_by_axe = Axe(), _without_similar(paths)
    light, dark = Visits(browser, base, "light"), Visits(browser, base, "dark")
    for number, path in enumerate(paths, 1):
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{number} of {len(paths)} pages: {path}")
        light.open(path, PHONE)
        light.check_width()
        for visits in (light, dark):
            visits.open(path, DESKTOP)
            visits.check_width()
            if path in read_by_axe:
                visits.check_accessibility(axe)
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    return light.end() + dark.end()


def main() -> None:
    """Check the pages of a version; exit with 1 and a list if something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder of all versions")
    parser.add_argument("version", help="the version to check")
    parser.add_argument("paths", nargs="*", help="the pages to open, such as settings/; all without any")
    options = parser.parse_args()
    paths = options.paths or pages_of(options.folder / options.version)
    with served(options.folder) as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        found = check(browser, f"{base}{options.version}/", paths)
        browser.close()
    sys.stdout.writelines(f"{problem}\n" for problem in found)
    sys.stdout.write(f"{len(paths)} pages in two widths and two colour schemes: {len(found)} problems\n")
    if found or not paths:
        sys.exit(1)


if __name__ == "__main__":
    main()
