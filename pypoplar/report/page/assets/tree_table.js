// A table whose rows are a tree: they open and close, by mouse and keys.

const OPEN_AT_FIRST = 40; // rows
const CHILDREN = 200; // of a node that are shown at a time

// heads: labels of the columns. children(node) gives nodes, cells(node) the first cell's content and the other cells.
// `mark(node)` is what data-node says of a row.
page.treeTable = ({ label, heads, roots, children, cells, mark }) => {
  const body = page.element("tbody");
  const shown = new WeakMap(); // row -> node
  for (const root of roots) body.append(row(root, 1));
  for (let place = 0; place < body.children.length && body.children.length < OPEN_AT_FIRST; place++)
    toggle(body.children[place], true);
  if (body.firstChild) body.firstChild.tabIndex = 0;

  function row(node, level) {
    const inner = children(node).length > 0;
    const sign = inner
      ? page.element("button", { type: "button", tabindex: "-1", "aria-label": "open or close" }, "\u25b8")
      : page.element("span", { class: "leaf" });
    const [first, ...others] = cells(node);
    const made = page.element(
      "tr",
      { "aria-level": level, "aria-expanded": inner ? "false" : null, tabindex: "-1", "data-node": mark(node) },
      page.element("td", { style: `padding-left:${0.3 + 1.2 * (level - 1)}rem` }, sign, first),
      others.map((one) => page.element("td", { class: "number" }, one)),
    );
    shown.set(made, node);
    if (inner) sign.addEventListener("click", () => toggle(made, made.getAttribute("aria-expanded") === "false"));
    return made;
  }

  function toggle(line, open) {
    if (line.getAttribute("aria-expanded") !== String(!open)) return;
    const level = Number(line.getAttribute("aria-level"));
    line.setAttribute("aria-expanded", String(open));
    line.querySelector("button").textContent = open ? "\u25be" : "\u25b8";
    if (open) return line.after(...someChildren(children(shown.get(line)), 0, level + 1));
    while (line.nextSibling && Number(line.nextSibling.getAttribute("aria-level")) > level) line.nextSibling.remove();
  }

  function someChildren(nodes, first, level) {
    const rows = nodes.slice(first, first + CHILDREN).map((node) => row(node, level));
    const left = nodes.length - first - CHILDREN;
    if (left > 0) {
      const more = page.element("button", { type: "button", style: "width:auto" }, `show more (${page.format(left)} left)`);
      const line = page.element(
        "tr",
        { "aria-level": level, tabindex: "-1" },
        page.element("td", { colspan: heads.length, style: `padding-left:${1.2 * level}rem` }, more),
      );
      more.addEventListener("click", () => line.replaceWith(...someChildren(nodes, first + CHILDREN, level)));
      rows.push(line);
    }
    return rows;
  }

  body.addEventListener("keydown", (event) => {
    const line = event.target.closest("tr");
    const open = line.getAttribute("aria-expanded");
    const to = { ArrowDown: line.nextSibling, ArrowUp: line.previousSibling, Home: body.firstChild, End: body.lastChild }[event.key];
    if (event.key === "ArrowRight" && open === "false") toggle(line, true);
    else if (event.key === "ArrowLeft" && open === "true") toggle(line, false);
    else if (event.key === "Enter" && open && event.target === line) toggle(line, open === "false");
    else if (to) {
      line.tabIndex = -1;
      to.tabIndex = 0;
      to.focus();
    } else return;
    event.preventDefault();
  });
  return page.element(
    "div",
    { class: "table tree scroll" },
    page.element(
      "table",
      { role: "treegrid", "aria-label": label },
      page.element(
        "thead",
        {},
        page.element(
          "tr",
          {},
          heads.map((one, place) => page.element("th", { scope: "col", class: place ? "number" : "" }, one)),
        ),
      ),
      body,
    ),
  );
};

// A bar of a share, with its number.
page.shareBar = (share, ...parts) => [
  page.element(
    "span",
    { class: parts.length ? "share parts" : "share" },
    parts.length ? parts : page.element("i", { style: `width:${share * 100}%` }),
  ),
  page.element("span", { class: "percent" }, page.format(share, "share")),
];
