// Comparison, memory: bytes by tile of both in one plot, and by category.

if (page.data.kind === "comparison") {
  page.view("memory", "Memory", async (panel) => {
    const sides = await Promise.all(page.data.memory.map((one) => page.unpackAll(one)));
    const state = { gaps: true };
    const figure = page.figure("Bytes of each tile in both.");
    panel.append(
      page.element(
        "div",
        { class: "controls" },
        page.check("gaps", true, (on) => {
          state.gaps = on;
          draw();
        }),
      ),
      figure,
      page.table({
        caption: "Bytes of all tiles by category",
        columns: [{ name: "name", label: "Category", unit: "text" }, ...page.bothColumns("bytes", "Bytes", "bytes")],
        rows: page.data.categories,
      }),
    );
    await draw();

    async function draw() {
      const series = sides.map((one, side) => ({
        name: page.label(page.data.names[side]),
        values: state.gaps ? one.including : one.excluding,
        colour: page.series(side),
      }));
      const most = Math.max(...series.map((one) => one.values.reduce((left, right) => Math.max(left, right), 0)));
      const near = sides.filter((one) => most > 0.2 * one.limit).map((one) => one.limit); // a limit far above would leave nothing to see
      await page.byTile(figure, Math.max(...series.map((one) => one.values.length)), series, "bytes", {
        shapes: near.map((limit) => ({
          type: "line",
          xref: "paper",
          x0: 0,
          x1: 1,
          y0: limit,
          y1: limit,
          line: { color: page.colour("warn"), width: 1.5, dash: "dash" },
        })),
        annotations: near
          .slice(0, 1)
          .map((limit) => ({
            xref: "paper",
            x: 1,
            y: limit,
            xanchor: "right",
            yanchor: "bottom",
            showarrow: false,
            text: "limit of a tile",
            font: { color: page.colour("warn"), size: 12 },
          })),
      });
    }
  });
}
