// Summary: headline numbers, where the time goes, the longest steps, the target, the graph, the options.

if (page.data.kind === "report") {
  page.view("summary", "Summary", (panel) => {
    const summary = page.data.summary;
    panel.append(page.cards(summary.headline));
    for (const run of summary.failed)
      panel.append(page.element("p", { class: "notice", style: "white-space: pre-wrap" }, `This run failed. ${run}`));
    panel.append(page.element("h2", {}, "Where the time goes"));
    if (!summary.machine) panel.append(page.notice(page.NOT_RUN));
    else {
      panel.append(page.partsBar("The machine: in each step the slowest tile decides", summary.machine));
      panel.append(page.partsBar("The mean tile", summary.mean_tile));
      panel.append(
        page.table({
          caption: "Longest steps",
          columns: [
            { name: "number", label: "Step", unit: "count", link: page.toStep },
            { name: "name", label: "Name", unit: "text" },
            { name: "type", label: "Type", unit: "text" },
            { name: "executions", label: "Executions", unit: "count" },
            { name: "cycles", label: "Cycles", unit: "cycles" },
            { name: "share", label: "Of all cycles", unit: "share" },
            { name: "balance", label: "Tile balance", unit: "share" },
          ],
          rows: summary.longest,
          sort: "-cycles",
        }),
      );
    }
    const options = summary.options.length ? page.facts(summary.options) : page.notice("No engine options were set.");
    panel.append(
      page.element(
        "div",
        { class: "pair" },
        page.element("div", {}, page.element("h2", {}, "Target"), page.facts(summary.target)),
        page.element(
          "div",
          {},
          page.element("h2", {}, "Graph"),
          page.facts(summary.graph),
          page.element("h2", {}, "Engine options"),
          options,
          page.element("h2", {}, "Programs that ran"),
          page.element("p", {}, summary.programs.length ? summary.programs.map(page.named).join(", ") : "none"),
        ),
      ),
    );
  });
}
