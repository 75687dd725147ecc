# SPDX-License-Identifier: MIT
"""docs/site/make: each link of each page leads to a page, a file or a heading that is there.

usage: test_site.py SOURCES BUILD
"""
import html
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCES, BUILD = map(pathlib.Path, sys.argv[1:3])


def ids(page):
    return set(re.findall(r'''\bid=["']([^"']*)["']''', page.read_text()))


def wrong_links(out):
    wrong, links, known = [], 0, {}
    for page in out.rglob("*.html"):
        for link in re.findall(r'\b(?:href|src)="([^"]*)"', page.read_text()):
            link = html.unescape(link)
            if re.match("[a-z]+:", link):
                continue
            links += 1
            file, _, fragment = link.partition("#")
            to = (page.parent / file).resolve() if file else page
            if not to.is_file() or out.resolve() not in to.resolve().parents:
                wrong.append(f"{page.relative_to(out)}: no {link}")
            elif fragment and to.suffix == ".html":
                if fragment not in known.setdefault(to, ids(to)):
                    wrong.append(f"{page.relative_to(out)}: no heading for {link}")
    return wrong, links


def main():
    with tempfile.TemporaryDirectory() as tmp:
        out = pathlib.Path(tmp) / "site"
        p = subprocess.run([SOURCES / "docs/site/make", BUILD, out, "--no-figures"], text=True,
                           capture_output=True)
        if p.returncode:
            print(p.stdout + p.stderr)
            return p.returncode
        wrong, links = wrong_links(out)
        pages = {str(f.relative_to(out)) for f in out.rglob("*.html")}
        for page in ("index.html", "man/flexguard-run.1.html", "docs/design/lock.html",
                     "results/index.html"):
            if page not in pages:
                wrong.append(f"no page {page}")
        for page in out.rglob("*.html"):  # and none needs the network, or a script
            for outside in re.findall(r'<(?:link|img|script)[^>]*"(?:https?:)?//[^"]*"',
                                      page.read_text()):
                wrong.append(f"{page.relative_to(out)}: {outside}")
        # Would it see one?
        (out / "broken.html").write_text('<a href="index.html#nothing"><img src="no.png">')
        if len(wrong_links(out)[0]) != len([w for w in wrong if ": no " in w]) + 2:
            wrong.append("two broken links were not seen")
        print("\n".join(wrong) or f"{len(pages)} pages, {links} links")
        return 1 if wrong or links < 500 else 0


sys.exit(main())
