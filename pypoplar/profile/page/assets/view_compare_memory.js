// Comparison, memory: bytes by tile of both in one plot, and by category.

if (page.data.kind === "comparison") {
  page.view("memory", "Memory", async (panel) => {
    const sides = await Promise.all(page.data.memory.map((one) => page.unpackAll(one)));
    const state = { gaps: true };
    const figure = page.figure("Bytes of each tile in both");
    panel.append(
      page.element("div", { class: "controls" }, page.check("gaps", true, (on) => {
        state.gaps = on;
        draw();
      })),
      figure,
      page.table({ caption: "Bytes of all tiles by category", columns: [{ name: "name", label: "Category", unit: "text" }, ...page.bothColumns("bytes", "Bytes", "bytes")], rows: page.data.categories }));
    await draw();

    async function draw() {
      const shapes = Array.from(new Set(sides.map((one) => one.limit)), (limit) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: limit, y1: limit, line: { color: page.colour("warn"), width: 1.5, dash: "dash" } }));
      await figure.draw(
        sides.map((one, side) => ({
          type: "scatter", mode: "lines", name: page.label(page.data.names[side]), y: state.gaps ? one.including : one.excluding, line: { width: 1.3, shape: "hvh", color: page.series(side) }, hovertemplate: "%{y:,} B",
        })),
        {
          xaxis: page.axis("tile"), yaxis: page.axis("bytes", { rangemode: "tozero", fixedrange: true }), hovermode: "x unified", shapes,
          annotations: [{ xref: "paper", x: 1, y: sides[0].limit, xanchor: "right", yanchor: "bottom", showarrow: false, text: "limit of a tile", font: { color: page.colour("warn"), size: 12 } }],
        });
    }
  });
}
