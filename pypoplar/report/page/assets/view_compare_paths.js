// Comparison, names: cycles and memory of both by name path, as a tree; the phases of both on one scale.

if (page.data.kind === "comparison") {
  page.view("paths", "Names", async (panel, parameters) => {
    const data = await page.unpack(page.data.tree);
    if (!data) return panel.append(page.notice("Names cannot be compared: at least one of the two has not run."));
    const phases = page.data.phases.filter(({ cycles }) => cycles);
    const columns = ["a", "b"].flatMap((side) => [...phases.map(({ name }) => `${side}_${name}`), `${side}_memory`]);
    const names = page.nameTree(data, columns, (sums) => {
      for (const side of ["a", "b"]) sums[side] = phases.reduce((sum, { name }) => sum + sums[`${side}_${name}`], 0);
      sums.change = Math.abs(sums.b - sums.a);
    });
    const whole = Math.max(names.root.sums.a, names.root.sums.b, 1);
    const state = { fold: parameters.fold !== "no" };
    const place = page.element("div");
    panel.append(
      page.element(
        "p",
        { class: "quiet" },
        "What changed the most comes first. The upper bar is A, the lower B, on one scale; loops that were unrolled fold.",
      ),
      page.element(
        "div",
        { class: "controls" },
        page.check("fold names that differ in numbers", state.fold, (on) => {
          page.remember({ fold: on ? "" : "no" }, true);
          state.fold = on;
          draw();
        }),
      ),
      page.element(
        "ul",
        { class: "legend" },
        phases.map(({ name, label }) =>
          page.element("li", {}, page.element("span", { class: "swatch", style: `background:var(--${name})` }), label),
        ),
      ),
      place,
    );
    draw();

    function draw() {
      place.replaceChildren(
        page.treeTable({
          label: "Names of both",
          heads: ["Name", "A and B", "Cycles, A", "Cycles, B", "Difference", "Change", "Memory, A", "Memory, B"],
          roots: [names.root],
          children: (row) => names.below(row, "change", state.fold),
          mark: (row) => row.key,
          cells,
        }),
      );
    }

    function cells({ title, sums }) {
      const bytes = (side) => (sums[`${side}_memory`] ? page.format(sums[`${side}_memory`], "bytes") : "");
      const change = sums.b - sums.a;
      const signed = (text) => page.element("span", { class: page.changed(change, sums.a) }, `${change > 0 ? "+" : ""}${text}`);
      return [
        page.element("span", {}, title),
        page.element("span", { class: "both" }, bar(sums, "a"), bar(sums, "b")),
        page.format(sums.a),
        page.format(sums.b),
        change ? signed(page.format(change)) : "",
        change && sums.a ? signed(page.format(change / sums.a, "share")) : change ? "new" : "",
        bytes("a"),
        bytes("b"),
      ];
    }

    function bar(sums, side) {
      return page.element(
        "span",
        { class: "share parts" },
        phases
          .filter(({ name }) => sums[`${side}_${name}`])
          .map(({ name, label }) =>
            page.element("i", {
              style: `width:${(sums[`${side}_${name}`] / whole) * 100}%;background:var(--${name})`,
              title: `${label} ${page.format(sums[`${side}_${name}`])}`,
            }),
          ),
      );
    }
  });
}
