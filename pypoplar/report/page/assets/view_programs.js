// Program tree: nodes open and close; each with its executions, cycles, and share of all cycles.

if (page.data.kind === "report") {
  page.view("programs", "Program tree", async (panel) => {
    const tree = await page.tree();
    if (!tree) return panel.append(page.notice("No program tree: this report was made before the programs were compiled."));
    const total = page.data.total_cycles;
    if (!total) panel.append(page.notice(page.noCycles()));
    panel.append(
      page.element(
        "p",
        { class: "quiet" },
        "Cycles of a node are those of all static steps below it. Arrow keys move, Enter or the arrow opens and closes.",
      ),
      page.treeTable({
        label: "Program tree",
        heads: ["Program", "Executions", "Cycles", "Of all cycles", "Vertices", "Step"],
        roots: tree.roots,
        children: (node) => tree.children[node],
        mark: (node) => node,
        cells,
      }),
    );

    function cells(node) {
      const quiet = (words) => (words ? page.element("span", { class: "quiet" }, ` ${words}`) : "");
      const places = tree.shared[node] > 1 ? `(in ${tree.shared[node]} places, counted together)` : "";
      const name = tree.name[node] ? page.element("strong", {}, tree.name[node]) : "";
      const step = tree.step[node];
      return [
        page.element("span", {}, `${tree.type[node]} `, name, quiet(tree.detail[node]), quiet(tree.made_at[node]), quiet(places)),
        step >= 0 ? page.format(tree.executions[node]) : "",
        page.format(tree.cycles[node]),
        page.shareBar(total ? tree.cycles[node] / total : 0),
        tree.vertices[node] ? page.format(tree.vertices[node]) : "",
        step >= 0 ? page.link(page.format(step), "steps", { step }) : "",
      ];
    }
  });
}
