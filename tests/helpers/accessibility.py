"""axe-core in a browser: what a page does wrong for people who do not see it, or not well, or have no mouse.

axe takes seconds for a page of ten thousand elements, most of which are like others. So a page is thinned out before: of
each kind of element, which is its tag and its classes with those of what it stands in, one stays, over all pages that one
`Axe` looks at. Headings, landmarks and whatever contains what stays are left as they are. Contrasts, which take nearly all
of the time, are those of the texts that stay because of their kind.
"""

import importlib.util
from pathlib import Path
from typing import Any

from page_browser import Browser

KEPT = 1  # elements of a kind

THIN_OUT = """
const [most, known] = arguments;
const always = 'h1,h2,h3,h4,h5,h6,header,main,nav,aside,footer,article,[role]';
const units = ':not(th,td,li,dt,dd) > p,li,tr,dl,ul,ol,em.sig-param,pre span,div[class*=highlight-],.table-wrapper,section';
const named = (one) => one.localName + '.' + (one.getAttribute('class') ?? '');
const number = (text) => { let sum = 0; for (const one of text) sum = (sum * 31 + one.charCodeAt(0)) | 0; return sum; };
const counts = new Map(known.map((kind) => [kind, most])), kept = new Set(), complete = [];
for (const one of document.body.querySelectorAll('*')) {
  const path = [];
  for (let at = one; at && path.length < 4; at = at.parentElement)
    if (at === one || at.localName !== 'section') path.push(named(at));
  const kind = number(path.join('<')), count = (counts.get(kind) ?? 0) + 1;
  counts.set(kind, count);
  if (count === most) complete.push(kind);
  if (count <= most && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) one.dataset.text = '';
  if (count <= most || one.matches(always)) for (let at = one; at && !kept.has(at); at = at.parentElement) kept.add(at);
}
for (const one of document.body.querySelectorAll(units)) if (!kept.has(one)) one.remove();
return complete;
"""
RUN = """
const [contrasts, done] = arguments;
const told = (violation) => violation.nodes.map((node) => `${violation.id}: ${node.html.slice(0, 200)}: ${node.failureSummary}`);
const rule = 'color-contrast', settings = { resultTypes: ['violations'] };
const looked = [];
const look = async () => {
  if (!contrasts) looked.push(await axe.run(document, { ...settings, rules: { [rule]: { enabled: false } } }));
  if (document.querySelector('[data-text]'))
    looked.push(await axe.run({ include: [['[data-text]']] }, { ...settings, runOnly: [rule] }));
  return looked.flatMap((found) => found.violations).flatMap(told);
};
look().then(done, (error) => done([`axe: ${error}`]));
"""


def source() -> Path | None:
    """The script of axe-core, which a package carries; None where the package is missing."""
    found = importlib.util.find_spec("selenium_axe_python")
    return Path(found.origin).parent / "axe-core" / "axe.min.js" if found is not None and found.origin else None


class Axe:
    """axe in a window whose pages are those of one site."""

    def __init__(self, window: Browser, script: Path) -> None:
        self.window = window
        self._known: list[int] = []
        command = {"source": script.read_text(encoding="utf-8")}
        self._script = window.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", command)

    def thin_out(self) -> None:
        """Leave little of the page that is open: what the others have not shown yet."""
        self._known += self.window.run(THIN_OUT, KEPT, self._known)

    def violations(self, *, contrasts: bool = False) -> list[str]:
        """What axe says against what is left of the page; or against its contrasts alone."""
        found: list[Any] = self.window.driver.execute_async_script(RUN, contrasts)
        return [str(one) for one in found]

    def close(self) -> None:
        self.window.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", self._script)
