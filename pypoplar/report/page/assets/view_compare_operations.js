// Comparison, operations: tile cycles by compute set and worker slots by vertex type, with differences.

if (page.data.kind === "comparison") {
  page.view("operations", "Operations", async (panel) => {
    const sets = await page.unpack(page.data.compute_sets);
    const types = await page.unpack(page.data.vertex_types);
    if (!sets) panel.append(page.notice("Cycles cannot be compared: at least one of the two has not run."));
    else {
      await differences(panel, "Compute sets: tile cycles, B less A", sets);
      panel.append(
        page.table({
          caption: "Compute sets",
          columns: [
            { name: "name", label: "Compute set", unit: "text" },
            ...page.bothColumns("cycles", "Tile cycles", "cycles"),
            { name: "a_executions", label: "Executions, A", unit: "count" },
            { name: "b_executions", label: "Executions, B", unit: "count" },
            { name: "a_balance", label: "Balance, A", unit: "share" },
            { name: "b_balance", label: "Balance, B", unit: "share" },
          ],
          rows: sets,
          sort: "-b_cycles",
        }),
      );
    }
    if (!types.length) return panel.append(page.notice("No vertex types in either."));
    if (sets) await differences(panel, "Vertex types: worker slots, B less A", types);
    panel.append(
      page.table({
        caption: "Vertex types",
        columns: [
          { name: "name", label: "Vertex type", unit: "text" },
          ...page.bothColumns("cycles", "Worker slots", "cycles"),
          { name: "a_instances", label: "Instances, A", unit: "count" },
          { name: "b_instances", label: "Instances, B", unit: "count" },
        ],
        rows: types,
        sort: "-b_cycles",
      }),
    );
  });
}

async function differences(panel, caption, rows) {
  const changed = rows.filter((one) => one.difference).sort((one, other) => Math.abs(other.difference) - Math.abs(one.difference));
  if (!changed.length) return panel.append(page.notice(`${caption}: no difference.`));
  const figure = page.figure(caption);
  panel.append(figure);
  const colours = changed
    .slice(0, 15)
    .reverse()
    .map((one) => page.colour(one.difference > 0 ? "warn" : "good"));
  await page.bars(
    figure,
    changed.map((one) => ({ name: one.name, value: one.difference })),
    "more (right) or fewer (left) in B",
    colours,
  );
}
