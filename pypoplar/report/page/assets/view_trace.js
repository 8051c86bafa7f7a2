// Execution trace: what every tile does over time, superstep by superstep, and the events in view as a table.

const MOST_EVENTS = 50000; // in the table
const NOWHERE = { from: "", to: "", first: "", last: "", step: "", event: "", tile: "" }; // an address without them

if (page.data.kind === "report") {
  page.view("trace", "Execution trace", async (panel, parameters) => {
    const execution = page.data.execution;
    if (!execution) return panel.append(page.notice(page.NOT_RUN));
    if (!page.data.total_cycles) return panel.append(page.notice(page.noCycles()));
    if (!execution.trace)
      return panel.append(
        page.notice(
          "No trace: single executions of steps were not recorded. Set the engine option autoReport.executionProfileProgramRunCount to the number of runs to record, 1 or more, and run again.",
        ),
      );
    page.laneColours = {};
    const { clock, tiles_per_ipu: perIpu } = page.data.target;
    const runs = await page.traceRuns(execution);
    const place = page.element("div");
    let trace;
    let model;
    let shownRun;
    let table;
    let chosen;
    let arrived; // the view that the address asked for
    let round; // the iteration that was shown last
    const button = (label, act, words) => page.element("button", { type: "button", title: words, onclick: () => act() }, label);
    const names = runs.numbers.map((one) => [String(one), runs.title(one)]);
    panel.append(
      page.element(
        "div",
        { class: "controls" },
        page.choice("Run", names, String(runOf(parameters)), (run) => go({ run, ...NOWHERE })),
        button("Zoom in", () => trace.zoom(0.5), "wheel, or +"),
        button("Zoom out", () => trace.zoom(2), "wheel, or -"),
        button("Fewer tiles", () => trace.zoomTiles(0.5), "shift and wheel, or page up"),
        button("More tiles", () => trace.zoomTiles(2), "shift and wheel, or page down"),
        button("One iteration", () => iterate(false), "from the chosen event, or the first in view, until its step comes again"),
        button("Next iteration", () => iterate(true), "until the step of the last one comes again"),
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
    await show(parameters);
    return async (asked) => {
      if (runOf(asked) !== shownRun) await show(asked);
      else {
        trace.set({ ...trace.usual, ...viewOf(asked) });
        arrived = inWhole(trace.view());
        choose(asked);
      }
      return true;
    };

    // The run that an address asks for, or else the first one.
    function runOf(asked) {
      const run = Number(asked.run ?? runs.numbers[0]);
      return runs.numbers.includes(run) ? run : runs.numbers[0];
    }

    // What an address asks to see: cycles and tiles, or the first event of a step.
    function viewOf(asked) {
      const view = {};
      for (const name of ["from", "to", "first", "last"])
        if (asked[name] !== undefined && Number.isFinite(Number(asked[name]))) view[name] = Number(asked[name]);
      const place = asked.step === undefined ? -1 : model.steps.findIndex((one) => String(one.number) === asked.step);
      const event = model.step.indexOf(place);
      if (place < 0 || event < 0 || view.from !== undefined) return view;
      const length = model.end[event] - model.begin[event];
      return { ...view, from: Math.floor(model.begin[event] - length), to: Math.ceil(model.end[event] + length) };
    }

    async function go(address) {
      page.remember(address, true);
      await show(page.parameters());
    }

    // Show one round of a loop: the step of the chosen event says which loop is meant.
    function iterate(onwards) {
      const asked = Number(page.parameters().event ?? NaN);
      const view = trace.view();
      let span = [page.eventAt(model, view.from), page.eventAt(model, view.to - 1) + 1];
      if (onwards && round) span = [round.next, round.next + 1];
      else if (model.step[asked] !== undefined) span = [asked, asked + 1];
      const found = page.iteration(model, ...span);
      if (!found) {
        const none = span[1] - span[0] === 1 ? "This step is not executed again." : "No step in view is executed again.";
        chosen.replaceChildren(none);
        return;
      }
      round = found;
      trace.set({ ...view, from: found.from, to: found.to });
    }

    function inWhole({ from, to, first, last }) {
      return { from: Math.round(from), to: Math.round(to), first, last };
    }

    // Another view is another address: what is not as usual stands in it.
    function changed(view) {
      list(view);
      const rounded = inWhole(view);
      if (JSON.stringify(rounded) === JSON.stringify(arrived)) return; // the address has it
      const same = (...names) => names.every((name) => rounded[name] === Math.round(trace.usual[name]));
      const address = { run: shownRun === runs.numbers[0] ? "" : shownRun, ...NOWHERE };
      for (const names of [["from", "to"], ["first", "last"]])
        if (!same(...names)) for (const name of names) address[name] = rounded[name];
      arrived = rounded;
      const now = page.parameters();
      page.remember({ ...address, event: now.event ?? "", tile: now.tile ?? "" }, true);
    }

    async function show(asked) {
      shownRun = runOf(asked);
      round = null;
      model = await runs.load(shownRun);
      table = page.element("div");
      chosen = page.element("p", { class: "chosen", "aria-live": "polite" });
      trace = page.traceCanvas(model, {
        clock,
        perIpu,
        shown: viewOf(asked),
        changed,
        picked: (event, tile) => {
          page.remember({ event, tile: tile ?? "" }, true);
          choose(page.parameters());
        },
      });
      const words = [
        "Wheel zooms time, with shift it zooms tiles; drag moves; double click shows the whole run. Zoomed out, a pixel mixes the colours of what happens in it by time, and a row of several tiles shows the slowest of them in each step. The second lane has the tile that each step waits for. ",
        model.recorded
          ? `In the first ${page.format(model.recorded)} executions of a step in the run, and the last ${page.format(model.recorded)}, each tile is shown as it was; in those between it is the mean over all of the run's executions of that step, scaled to the event.`
          : "What a tile does in an event is its mean over the run's executions of that step, scaled to the event.",
      ];
      if (model.ipu !== null) words.push(" Each IPU has a time of its own: where nothing is drawn, it waits for others.");
      if (model.unrecorded)
        words.push(` ${page.format(model.unrecorded)} of the first and last are shown as means, too: there were too many of them to keep.`);
      if (model.missed)
        words.push(` ${page.format(model.missed)} executions were not recorded: later runs, or beyond the limit of the trace.`);
      if (model.leftOut)
        words.push(` For ${page.format(model.leftOut)} rows of short steps this page holds only the mean of all tiles.`);
      place.replaceChildren(trace.box, chosen, page.element("p", { class: "quiet" }, words), table);
      arrived = inWhole(trace.view());
      trace.draw();
      list(trace.view());
      choose(asked);
    }

    // The event that was clicked, with the ways to its step and its tile.
    function choose({ event: asked, tile }) {
      const event = asked === undefined ? -1 : Number(asked);
      const step = model.steps[model.step[event]];
      chosen.replaceChildren();
      if (!step) return;
      const length = page.format(model.end[event] - model.begin[event]);
      chosen.append(
        `At cycle ${page.format(Math.round(model.begin[event]))}, ${length} cycles: `,
        page.link(`step ${page.format(step.number)}, ${page.named(step.name)}`, "steps", { step: step.number }),
      );
      if (tile === undefined || !(Number(tile) < model.tiles)) return;
      const words = page.tileWords(model, event, Number(tile));
      const basis = model.recorded && step.type === "OnTileExecute" ? ` (${page.isAsItWas(model, event) ? "as it was" : "in the mean"})` : "";
      chosen.append("; ", page.link(`tile ${page.format(Number(tile))}`, "memory", { tile }), `: ${words}${basis}`);
    }

    function list(view) {
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
            { name: "step", label: "Step", unit: "count", link: page.toStep },
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
