// Comparison, traces: both below each other on one scale of time, aligned at their beginning or at a step of both.

const MOST_MARKS = 300; // steps to align at

if (page.data.kind === "comparison") {
  page.view("trace", "Traces", async (panel, parameters) => {
    const sides = page.data.traces;
    if (!sides) return panel.append(page.notice("No traces: at least one of the two has no recorded executions, or has not run."));
    const models = await Promise.all(
      sides.map(async ({ execution }) => {
        const runs = await page.traceRuns(execution);
        return runs.load(runs.numbers[0]);
      }),
    );
    const lengths = models.map((model) => model.length);
    const shifts = [0, 0];
    const others = new Set(firsts(models[1]).map(([name]) => name));
    const common = firsts(models[0]).filter(([name]) => others.has(name));
    const places = [page.element("div"), page.element("div")];
    const words = page.element("p", { class: "quiet", "aria-live": "polite" });
    panel.append(
      page.element(
        "p",
        { class: "quiet" },
        "The first run of both. Both show the same stretch of cycles: zooming or moving one moves the other. Wheel zooms time, with shift it zooms tiles; drag moves; a double click shows all.",
      ),
      page.element(
        "div",
        { class: "controls" },
        page.choice(
          "Align at",
          [["", "the beginning"], ...common.slice(0, MOST_MARKS).map(([name]) => [name, page.named(name)])],
          common.some(([name]) => name === parameters.at) ? parameters.at : "",
          (at) => {
            page.remember({ at, from: "", to: "" }, true);
            draw(page.parameters());
          },
        ),
      ),
      page.element(
        "ul",
        { class: "legend" },
        page.data.phases.map(({ name, label }) =>
          page.element("li", {}, page.element("span", { class: "swatch", style: `background:var(--${name})` }), label),
        ),
      ),
      words,
      ...page.data.names.flatMap((name, side) => [page.element("h3", {}, name), places[side]]),
    );
    if (common.length > MOST_MARKS)
      words.before(page.notice(`Listed are the first ${page.format(MOST_MARKS)} of ${page.format(common.length)} steps that both have.`));
    draw(parameters);
    return draw;

    // Names of steps with where they first begin, in the order of the trace.
    function firsts(model) {
      if (!model.firstOf) {
        model.firstOf = new Map();
        model.step.forEach((place, event) => {
          const { name } = model.steps[place];
          if (!model.firstOf.has(name)) model.firstOf.set(name, model.begin[event]);
        });
      }
      return Array.from(model.firstOf);
    }

    function align(at) {
      const marks = models.map((model) => (firsts(model), model.firstOf.get(at)));
      const known = marks.every((one) => one !== undefined);
      const place = known ? Math.max(marks[0] - shifts[0], marks[1] - shifts[1]) : 0;
      models.forEach((model, side) => {
        const shift = known ? place - (marks[side] - shifts[side]) : 0;
        const by = shift - shifts[side];
        for (let event = 0; event < model.end.length; event++) {
          model.begin[event] += by;
          model.end[event] += by;
        }
        for (const name of model.firstOf.keys()) model.firstOf.set(name, model.firstOf.get(name) + by);
        shifts[side] = shift;
      });
      const length = Math.max(...lengths.map((one, side) => one + shifts[side]));
      for (const model of models) model.length = length;
      return known ? place : null;
    }

    function draw(asked) {
      const place = align(asked.at ?? "");
      const view = {};
      for (const name of ["from", "to"]) if (Number.isFinite(Number(asked[name] ?? NaN))) view[name] = Number(asked[name]);
      words.textContent =
        place === null
          ? `A takes ${page.format(lengths[0])} cycles, B ${page.format(lengths[1])}.`
          : `Both begin with ${page.named(asked.at)} at cycle ${page.format(place)} of this picture; in A that is cycle ${page.format(place - shifts[0])} of the run, in B ${page.format(place - shifts[1])}.`;
      const canvases = sides.map(({ clock, tiles_per_ipu: perIpu }, side) =>
        page.traceCanvas(models[side], { clock, perIpu, shown: view, changed: (shown) => follow(side, shown), picked: () => {} }),
      );
      let both = canvases[0].view();
      canvases.forEach(({ box }, side) => {
        box.classList.add("low");
        places[side].replaceChildren(box);
      });
      canvases.forEach((one) => one.draw());
      return true;

      // The other shows the same cycles.
      function follow(side, { from, to }) {
        if (Math.abs(both.from - from) + Math.abs(both.to - to) < 1) return;
        both = { from, to };
        canvases[1 - side].set({ ...canvases[1 - side].view(), from, to });
        const all = from === 0 && to === models[0].length;
        page.remember({ from: all ? "" : Math.round(from), to: all ? "" : Math.round(to) }, true);
      }
    }
  });
}
