// Tile balance: how evenly the tiles share each compute set.

if (page.data.kind === "report") {
  page.view("balance", "Tile balance", async (panel, parameters) => {
    const execution = page.data.execution;
    if (!execution) return panel.append(page.notice(page.NOT_RUN));
    const store = page.tileRows(execution.rows);
    const steps = page
      .records(await page.unpack(execution.steps))
      .filter((one) => one.slowest_compute > 0)
      .map((one) => ({
        ...one,
        most: one.slowest_compute / one.executions,
        mean: one.mean_compute / one.executions,
        lost: one.slowest_compute - one.mean_compute,
        title: page.named(one.compute_set || one.name),
      }));
    if (!steps.length) return panel.append(page.notice("No compute set was executed."));
    const worst = steps.reduce((one, other) => (other.lost > one.lost ? other : one));
    const start = steps.find((one) => String(one.number) === parameters.step) ?? worst;
    const heading = page.element("h2");
    const words = page.element("p", { class: "quiet" });
    const told = page.element("p", { class: "slowest" });
    const tiles = page.figure("Compute cycles of each tile in the mean execution.", "low");
    const spread = page.figure("Tiles by their compute cycles", "low");
    panel.append(
      page.element(
        "p",
        { class: "quiet" },
        `Balance is the mean tile's compute cycles over the slowest tile's. Lost cycles are what an even spread over all ${page.format(store.tiles)} tiles would save, over all executions. Select a row to see its tiles.`,
      ),
      page.table({
        caption: "Compute steps",
        rows: steps,
        sort: "-lost",
        picked: start,
        onPick: (row) => choose(row, true),
        columns: [
          { name: "number", label: "Step", unit: "count", link: page.toStep },
          { name: "title", label: "Compute set", unit: "text" },
          { name: "executions", label: "Executions", unit: "count" },
          { name: "critical", label: "Slowest tile", unit: "count" },
          { name: "most", label: "Its cycles", unit: "cycles", title: "in the mean execution" },
          { name: "mean", label: "Mean tile", unit: "cycles" },
          { name: "balance", label: "Balance", unit: "share" },
          { name: "active_balance", label: "Of active", title: "balance of the active tiles alone", unit: "share" },
          { name: "activeTiles", label: "Active tiles", unit: "count" },
          { name: "idle", label: "Idle threads", unit: "share" },
          { name: "lost", label: "Lost", unit: "cycles" },
        ],
      }),
      heading,
      words,
      told,
      tiles,
      spread,
    );
    await choose(start, false);
    if (!tiles.hidden) page.zoom(tiles);

    async function choose(step, noted) {
      if (noted) page.remember({ step: step.number, from: "", to: "" }, true);
      heading.textContent = step.title;
      await store.load([step.rows.compute, step.rows.active]);
      const whole = store.row(step.rows.compute);
      words.textContent = whole
        ? `Step ${page.format(step.number)}, ${page.format(step.executions)} ${step.executions === 1 ? "execution" : "executions"}: the mean tile computes ${page.format(Math.round(step.mean))} cycles, the slowest ${page.format(Math.round(step.most))}.`
        : "The page has no room for this step's tiles; the table has its figures.";
      const together = step.executions === 1 ? "Slowest" : `In all ${page.format(step.executions)} executions together, slowest`;
      told.textContent = step.slowest ? `${together} tile ${step.slowest}.` : "";
      tiles.hidden = spread.hidden = !whole;
      if (!whole) return;
      const cycles = Array.from(whole, (one) => one / step.executions);
      const active = store.row(step.rows.active);
      const lines = [{ name: "compute", values: cycles, colour: page.colour("compute") }];
      if (active)
        lines.push({
          name: "without idle threads",
          values: Array.from(active, (one) => one / step.executions),
          colour: page.colour("ink"),
        });
      await page.byTile(tiles, store.tiles, lines, "cycles", { zooms: true });
      await spread.draw(
        [
          {
            type: "histogram",
            x: cycles,
            nbinsx: 40,
            marker: { color: page.colour("compute") },
            hovertemplate: "%{x} cycles: %{y:,} tiles<extra></extra>",
          },
        ],
        { xaxis: page.axis("compute cycles"), yaxis: page.axis("tiles", { fixedrange: true }), bargap: 0.06 },
      );
    }
  });
}
