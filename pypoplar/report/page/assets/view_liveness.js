// Liveness: bytes that live at each step of the program, always live ones as the base; the variables of a selected step.

if (page.data.kind === "report") {
  page.view("liveness", "Liveness", async (panel, parameters) => {
    const liveness = page.data.liveness;
    if (!liveness)
      return panel.append(
        page.notice(
          "No liveness: this report does not say when variables live. Ask for a report of an engine, engine.getReport(), not of a graph that did not fit.",
        ),
      );
    const held = await page.unpack(liveness.not_always);
    const names = await page.unpack(page.data.step_names);
    const variables = await page.variables();
    const tree = await page.tree();
    let most = 0;
    held.forEach((size, step) => {
      if (size > held[most]) most = step;
    });
    const figure = page.figure("Bytes on all tiles together that live at each step of the program. Select a step with a click.");
    const detail = page.element("div");
    const asked = Number(parameters.variable ?? -1);
    if (variables?.names[asked] !== undefined) panel.append(describeVariable(variables.called(asked)));
    figure.whole = [-0.5, held.length - 0.5];
    const state = { step: page.numbered(parameters.step, held.length, most), base: true };
    panel.append(
      page.element(
        "div",
        { class: "controls" },
        page.check("always live memory as base", true, (on) => {
          state.base = on;
          draw();
        }),
        page.number("Step", state.step, held.length - 1, select),
      ),
      figure,
      detail,
    );
    await draw();
    figure.on("plotly_click", (event) => select(event.points[0].x));
    page.zoom(figure);
    describe();

    async function draw() {
      const steps = Array.from(held, (_, step) => step);
      const area = (name, y, colour, text) => ({
        type: "scatter",
        mode: "lines",
        stackgroup: "all",
        name,
        x: steps,
        y,
        line: { width: 1, shape: "hvh", color: colour },
        fillcolor: colour,
        text,
        hovertemplate: text ? "%{y:,} B<br>%{text}" : "%{y:,} B",
      });
      const base = state.base
        ? [
            area(
              "Always live",
              steps.map(() => liveness.always),
              page.series(0),
            ),
          ]
        : [];
      await figure.draw(
        [
          ...base,
          area(
            "Not always live",
            held,
            page.series(1),
            names.map(([name, type]) => page.label(`${type} ${page.named(name)}`)),
          ),
        ],
        {
          xaxis: page.axis("step of the program", { range: page.zoomed(figure) }),
          yaxis: page.axis("bytes", { rangemode: "tozero", fixedrange: true }),
          hovermode: "x unified",
          shapes: mark(),
        },
      );
    }

    function mark() {
      return [
        {
          type: "line",
          yref: "paper",
          x0: state.step,
          x1: state.step,
          y0: 0,
          y1: 1,
          line: { color: page.colour("muted"), width: 1, dash: "dot" },
        },
      ];
    }

    function select(step) {
      state.step = Math.max(0, Math.min(held.length - 1, Math.round(step)));
      panel.querySelector('input[name="Step"]').value = state.step;
      page.remember({ step: state.step, variable: "" }, true);
      Plotly.relayout(figure.box, { shapes: mark() });
      describe();
    }

    function describeVariable({ name, bytes, life, tiles }) {
      const most = (tiles ?? []).slice(0, 8).flatMap(([tile, size]) => [
        page.link(`tile ${page.format(tile)}`, "memory", { tile }),
        ` ${page.format(size, "bytes")}, `,
      ]);
      const rest = tiles ? `on ${page.format(tiles.length)} ${tiles.length === 1 ? "tile" : "tiles"} in all` : "its tiles are not known";
      return page.element(
        "article",
        { class: "insight" },
        page.element("h3", {}, name),
        page.element("p", {}, `${page.format(bytes, "bytes")}, lives: ${life}`),
        page.element("p", {}, ...most, rest),
      );
    }

    function describe() {
      const [name, type] = names[state.step];
      const path = tree?.path(state.step) ?? [];
      detail.replaceChildren(
        page.element("h2", {}, `Step ${page.format(state.step)}: ${page.named(name)}`),
        page.element("p", {}, page.link("What it cost", "steps", { step: state.step })),
        path.length
          ? page.element(
              "ol",
              { class: "path", "aria-label": "Call path" },
              path.map((one) => page.element("li", {}, one)),
            )
          : page.element("p", { class: "quiet" }, type),
        page.element(
          "p",
          {},
          `${page.format(held[state.step], "bytes")} live here besides ${page.format(liveness.always, "bytes")} that always live.`,
        ),
        page.variableTable("Variables that live at this step, and not always", variables.atStep(state.step)),
        page.variableTable("Variables that always live", variables.alwaysLive()),
      );
    }
  });
}
