// Program tree: nodes open and close; each with its executions, cycles, and share of all cycles.

const OPEN_AT_FIRST = 40; // rows
const CHILDREN = 200; // of a node that are shown at a time

if (page.data.kind === "report") {
  page.view("programs", "Program tree", async (panel) => {
    const tree = await page.tree();
    if (!tree) return panel.append(page.notice("No program tree: this report was made before the programs were compiled."));
    const total = page.data.total_cycles;
    if (!total) panel.append(page.notice(page.NOT_RUN));
    const body = page.element("tbody");
    const heads = ["Program", "Executions", "Cycles", "Of all cycles", "Vertices", "Step"];
    panel.append(
      page.element(
        "p",
        { class: "quiet" },
        "Cycles of a node are those of all static steps below it. Arrow keys move, Enter or the arrow opens and closes.",
      ),
      page.element(
        "div",
        { class: "table tree scroll" },
        page.element(
          "table",
          { role: "treegrid", "aria-label": "Program tree" },
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
      ),
    );
    for (const root of tree.roots) body.append(row(root, 1));
    for (let place = 0; place < body.children.length && body.children.length < OPEN_AT_FIRST; place++)
      toggle(body.children[place], true);
    if (body.firstChild) body.firstChild.tabIndex = 0;

    function row(node, level) {
      const inner = tree.children[node].length > 0;
      const name = tree.name[node] ? page.element("strong", {}, tree.name[node]) : "";
      const detail = tree.detail[node] ? page.element("span", { class: "quiet" }, ` ${tree.detail[node]}`) : "";
      const shared =
        tree.shared[node] > 1
          ? page.element("span", { class: "quiet" }, ` (in ${tree.shared[node]} places, counted together)`)
          : "";
      const sign = inner
        ? page.element("button", { type: "button", tabindex: "-1", "aria-label": "open or close" }, "\u25b8")
        : page.element("span", { class: "leaf" });
      const share = total ? tree.cycles[node] / total : 0;
      const made = page.element(
        "tr",
        { "aria-level": level, "aria-expanded": inner ? "false" : null, tabindex: "-1", "data-node": node },
        page.element(
          "td",
          { style: `padding-left:${0.3 + 1.2 * (level - 1)}rem` },
          sign,
          `${tree.type[node]} `,
          name,
          detail,
          shared,
        ),
        page.element("td", { class: "number" }, tree.step[node] >= 0 ? page.format(tree.executions[node]) : ""),
        page.element("td", { class: "number" }, page.format(tree.cycles[node])),
        page.element(
          "td",
          { class: "number" },
          page.element("span", { class: "share" }, page.element("i", { style: `width:${share * 100}%` })),
          page.element("span", { class: "percent" }, page.format(share, "share")),
        ),
        page.element("td", { class: "number" }, tree.vertices[node] ? page.format(tree.vertices[node]) : ""),
        page.element("td", { class: "number" }, tree.step[node] >= 0 ? page.format(tree.step[node]) : ""),
      );
      if (inner) sign.addEventListener("click", () => toggle(made, made.getAttribute("aria-expanded") === "false"));
      return made;
    }

    function toggle(line, open) {
      if (line.getAttribute("aria-expanded") !== String(!open)) return;
      const level = Number(line.getAttribute("aria-level"));
      line.setAttribute("aria-expanded", String(open));
      line.querySelector("button").textContent = open ? "\u25be" : "\u25b8";
      if (open) return line.after(...someChildren(tree.children[Number(line.dataset.node)], 0, level + 1));
      while (line.nextSibling && Number(line.nextSibling.getAttribute("aria-level")) > level) line.nextSibling.remove();
    }

    function someChildren(children, first, level) {
      const rows = children.slice(first, first + CHILDREN).map((child) => row(child, level));
      const left = children.length - first - CHILDREN;
      if (left > 0) {
        const more = page.element("button", { type: "button", style: "width:auto" }, `show more (${page.format(left)} left)`);
        const line = page.element(
          "tr",
          { "aria-level": level, tabindex: "-1" },
          page.element("td", { colspan: heads.length, style: `padding-left:${1.2 * level}rem` }, more),
        );
        more.addEventListener("click", () => line.replaceWith(...someChildren(children, first + CHILDREN, level)));
        rows.push(line);
      }
      return rows;
    }

    body.addEventListener("keydown", (event) => {
      const line = event.target.closest("tr");
      const open = line.getAttribute("aria-expanded");
      const to = { ArrowDown: line.nextSibling, ArrowUp: line.previousSibling, Home: body.firstChild, End: body.lastChild }[
        event.key
      ];
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
  });
}
