// Execution trace: what every tile does over time, superstep by superstep, and the events in view as a table.

const MOST_EVENTS = 50000; // in the table

if (page.data.kind === "report") {
  page.view("trace", "Execution trace", async (panel, parameters) => {
    const execution = page.data.execution;
    if (!execution) return panel.append(page.notice(page.NOT_RUN));
    if (!execution.trace)
      return panel.append(
        page.notice(
          "No trace: single executions of steps were not recorded. Set the engine option autoReport.executionProfileProgramRunCount to the number of runs to record, 1 or more, and run again.",
        ),
      );
    page.laneColours = {};
    const { clock, tiles_per_ipu: perIpu } = page.data.target;
    const runs = await page.traceRuns();
    const place = page.element("div");
    const asked = Number(parameters.run ?? runs.numbers[0]);
    let trace;
    const button = (label, act, words) => page.element("button", { type: "button", title: words, onclick: () => act() }, label);
    const names = runs.numbers.map((one) => [String(one), `${one}: ${page.named(execution.runs[one]?.name)}`]);
    panel.append(
      page.element(
        "div",
        { class: "controls" },
        page.choice("Run", names, String(asked), (run) => {
          page.remember({ run });
          show(Number(run));
        }),
        button("Zoom in", () => trace.zoom(0.5), "wheel, or +"),
        button("Zoom out", () => trace.zoom(2), "wheel, or -"),
        button("Fewer tiles", () => trace.zoomTiles(0.5), "shift and wheel, or page up"),
        button("More tiles", () => trace.zoomTiles(2), "shift and wheel, or page down"),
        button("Whole run", () => trace.reset(), "double click, or 0"),
      ),
      page.element(
        "ul",
        { class: "legend" },
        page.data.phases.map(({ name, label }) =>
          page.element("li", {}, page.element("span", { class: "swatch", style: `background:var(--${name})` }), label),
        ),
      ),
      place,
    );
    await show(runs.numbers.includes(asked) ? asked : runs.numbers[0]);

    async function show(run) {
      const model = await runs.load(run);
      const table = page.element("div");
      trace = page.traceCanvas(model, { clock, perIpu, changed: (view) => list(model, view, table) });
      const words = [
        "Wheel zooms time, with shift it zooms tiles; drag moves; double click shows the whole run. Zoomed out, a pixel mixes the colours of what happens in it. ",
        "What a tile does in an event is its mean over the run's executions of that step, scaled to the event.",
      ];
      if (model.missed)
        words.push(` ${page.format(model.missed)} executions were not recorded: later runs, or beyond the limit of the trace.`);
      if (model.leftOut)
        words.push(` For ${page.format(model.leftOut)} rows of short steps this page holds only the mean of all tiles.`);
      place.replaceChildren(trace.box, page.element("p", { class: "quiet" }, words), table);
      trace.draw();
      list(model, trace.view(), table);
    }

    function list(model, view, table) {
      const rows = [];
      const first = page.eventAt(model, view.from);
      for (let event = first; event < model.end.length && model.begin[event] < view.to && rows.length < MOST_EVENTS; event++) {
        const step = model.steps[model.step[event]];
        const cycles = model.end[event] - model.begin[event];
        rows.push({
          begin: model.begin[event],
          cycles,
          time: clock ? (cycles / clock) * 1e6 : 0,
          step: step.number,
          name: page.named(step.name),
          type: step.type,
        });
      }
      table.replaceChildren(
        page.table({
          caption: rows.length === MOST_EVENTS ? `Events in view: the first ${page.format(MOST_EVENTS)}` : "Events in view",
          columns: [
            { name: "begin", label: "At cycle", unit: "cycles" },
            { name: "cycles", label: "Cycles", unit: "cycles" },
            { name: "time", label: "\u00b5s", unit: "decimal" },
            { name: "step", label: "Step", unit: "count" },
            { name: "type", label: "Type", unit: "text" },
            { name: "name", label: "Name", unit: "text" },
          ],
          rows,
          sort: "begin",
        }),
      );
    }
  });
}
