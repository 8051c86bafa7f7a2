// Comparison, liveness: bytes that live at each step of both programs.

if (page.data.kind === "comparison") {
  page.view("liveness", "Liveness", async (panel) => {
    const sides = page.data.liveness;
    page.data.names.forEach((name, side) => {
      if (!sides[side]) panel.append(page.notice(`${name}: no liveness, the report does not say when variables live.`));
    });
    if (!sides.some(Boolean)) return;
    const state = { base: true };
    const figure = page.figure("Bytes on all tiles together that live at each step of each program");
    panel.append(
      page.element(
        "div",
        { class: "controls" },
        page.check("with always live memory", true, (on) => {
          state.base = on;
          draw();
        }),
      ),
      figure,
    );
    await draw();

    async function draw() {
      const traces = [];
      for (const [side, one] of sides.entries()) {
        if (!one) continue;
        const held = await page.unpack(one.not_always);
        traces.push({
          type: "scatter",
          mode: "lines",
          name: page.label(page.data.names[side]),
          y: Array.from(held, (size) => size + (state.base ? one.always : 0)),
          line: { width: 1.5, shape: "hvh", color: page.series(side) },
          hovertemplate: "%{y:,} B",
        });
      }
      await figure.draw(traces, {
        xaxis: page.axis("step of the program"),
        yaxis: page.axis("bytes", { rangemode: "tozero", fixedrange: true }),
        hovermode: "x unified",
        showlegend: true,
      });
    }
  });
}
