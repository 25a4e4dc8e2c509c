"""Read the docs site in a real browser: ``python tests/browse_docs.py build/docs``.

Every page is opened in Chromium at a phone's width, in light and in dark. Refused are what is
wider than the page, missing pictures, broken links and anchors, and what comes from another
server. Where there is no Chromium it says so, and no more. ``--shots FOLDER`` keeps pictures.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

SECONDS = 300  # on a busy machine
WIDTH = 390  # of a phone
OPTIONS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    # The browser asks nobody but the site.
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]

READER = """<!doctype html><meta charset="utf-8"><body><script>
const pages = PAGES, width = WIDTH, troubles = [], links = new Map(), ids = new Map()
const inside = new URL(location.href).origin

function load(page) {
  return new Promise(done => {
    const frame = document.createElement("iframe")
    frame.width = width; frame.height = 844; frame.src = "/" + page
    frame.onload = () => setTimeout(() => done(frame), 50)
    document.body.append(frame)
  })
}
function look(page, frame) {
  const doc = frame.contentDocument, say = text => troubles.push(page + ": " + text)
  ids.set("/" + page, new Set([...doc.querySelectorAll("[id]")].map(e => e.id)))
  for (const scheme of ["default", "slate"]) {
    doc.body.dataset.mdColorScheme = scheme
    const wide = doc.documentElement.scrollWidth
    if (wide > width) {
      const scrolls = ".md-typeset__scrollwrap, pre, .formula"
      const beyond = [...doc.querySelectorAll("article *")].find(
        e => e.getBoundingClientRect().right > width + 1 && !e.closest(scrolls))
      say(`${wide} pixels wide in ${scheme}, by ${beyond && beyond.outerHTML.slice(0, 200)}`)
    }
    const ground = frame.contentWindow.getComputedStyle(doc.body).colorScheme
    if (scheme === "slate" && ground !== "dark") say("pictures do not see that it is dark")
  }
  for (const image of doc.images) {
    if (!image.complete || !image.naturalWidth) say(`no picture ${image.src}`)
    if (!image.alt) say(`a picture without words, ${image.src}`)
  }
  for (const element of doc.querySelectorAll("[src], link[href]")) {
    const url = new URL(element.src || element.href)
    if (url.protocol !== "data:" && url.origin !== inside) say(`comes from elsewhere: ${url}`)
  }
  for (const link of doc.querySelectorAll("a[href]")) {
    const url = new URL(link.href)
    if (url.origin === inside) links.set(url.pathname + url.hash, page)
  }
}
async function read() {
  for (const page of pages) {
    const frame = await load(page)
    look(page, frame)
    frame.remove()
  }
  for (const [link, page] of links) {
    const [path, hash] = link.split("#")
    const place = path.endsWith("/") ? path + "index.html" : path
    if (ids.has(place)) {
      const there = !hash || ids.get(place).has(decodeURIComponent(hash))
      if (!there) troubles.push(`${page}: no place ${link}`)
    } else if (!(await fetch(path, {method: "HEAD"})).ok) troubles.push(`${page}: no page ${link}`)
  }
  await fetch("/__told", {method: "POST", body: JSON.stringify({troubles, links: links.size})})
}
read()
</script>"""


class Site(SimpleHTTPRequestHandler):
    """The folder of the site, the page that reads it, and what that page has to tell."""

    told: dict[str, Any] = {}  # noqa: RUF012, one site in one process
    over = Event()
    reader = ""

    def do_GET(self) -> None:
        """Serve a file, or the reader."""
        if self.path == "/__read.html":
            self._answer(self.reader.encode())
        else:
            super().do_GET()

    def do_POST(self) -> None:
        """Take what the reader has found."""
        self.told.update(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._answer(b"")
        self.over.set()

    def log_message(self, *_: Any) -> None:
        """Say nothing of single requests."""

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shots", type=Path)
    args = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("The pages were not read in a browser: there is no chromium here.")
        return 0
    pages = sorted(p.relative_to(args.folder).as_posix() for p in args.folder.rglob("*.html"))
    pages.remove("404.html")
    Site.reader = READER.replace("PAGES", json.dumps(pages)).replace("WIDTH", str(WIDTH))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, directory=str(args.folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    # Helpers of the browser may still write into the profile when it has ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = [*OPTIONS, f"--user-data-dir={profile}"]
        command = [browser, *options, "--remote-debugging-port=0", f"{address}/__read.html"]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            in_time = Site.over.wait(SECONDS)
            process.terminate()
        if args.shots is not None:
            take_shots(browser, options, address, pages, args.shots)
    server.shutdown()
    if not in_time:
        print(f"The browser has not read the pages in {SECONDS} s.")
        return 1
    for trouble in Site.told["troubles"]:
        print(trouble)
    n = len(Site.told["troubles"])
    print(f"{len(pages)} pages, {Site.told['links']} links, {n} troubles.")
    return min(n, 1)


def take_shots(
    browser: str, options: list[str], address: str, pages: list[str], folder: Path
) -> None:
    """Keep a picture of each page at a phone's width, dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages:
        path = folder / page.replace("/", "_").replace(".html", ".png")
        shot = [f"--window-size={WIDTH},3000", "--blink-settings=preferredColorScheme=0"]
        command = [browser, *options, *shot, f"--screenshot={path}", f"{address}/{page}"]
        subprocess.run(command, capture_output=True, check=False, timeout=SECONDS)


if __name__ == "__main__":
    sys.exit(main())
