// Steps: every static step that ran; of a selected one, where it stands in the program, among the names, on the tiles and in the trace.

if (page.data.kind === "report") {
  page.view("steps", "Steps", async (panel, parameters) => {
    const execution = page.data.execution;
    if (!execution) return panel.append(page.notice(page.NOT_RUN));
    const steps = page.records(await page.unpack(execution.steps));
    if (!steps.length) return panel.append(page.notice("No step was executed."));
    const tree = await page.tree();
    const store = page.tileRows(execution.rows);
    const exchanged = new Set((page.data.exchanges?.list ?? []).map((one) => one.step));
    const total = page.data.total_cycles;
    const phases = page.data.phases.filter(({ cycles }) => cycles);
    const longest = steps.reduce((one, other) => (other.cycles > one.cycles ? other : one));
    const detail = page.element("div");
    const ofNumber = (text) => steps.find((one) => String(one.number) === text);
    const start = ofNumber(parameters.step) ?? longest;
    panel.append(
      detail,
      page.table({
        caption: "Steps",
        rows: steps.map((one) => ({ ...one, share: total ? one.cycles / total : 0 })),
        sort: "-cycles",
        onPick: (row) => {
          page.remember({ step: row.number }, true);
          describe(row);
        },
        columns: [
          { name: "number", label: "Step", unit: "count", link: page.toStep },
          { name: "type", label: "Type", unit: "text" },
          { name: "name", label: "Name", unit: "text" },
          ...(steps.some((one) => one.made_at)
            ? [{ name: "made_at", label: "Made at", unit: "text", title: "the line of your code that made the program" }]
            : []),
          { name: "executions", label: "Executions", unit: "count" },
          { name: "cycles", label: "Cycles", unit: "cycles" },
          { name: "share", label: "Of all cycles", unit: "share" },
          { name: "sent_bytes", label: "Between tiles", unit: "bytes" },
          { name: "most_pieces", label: "Pieces", unit: "count", title: "contiguous pieces at the busiest port, three cycles each at least" },
          { name: "activeTiles", label: "Active tiles", unit: "count" },
        ],
      }),
    );
    if (parameters.step && !ofNumber(parameters.step))
      panel.prepend(page.notice(`Step ${parameters.step} has not run. Shown is the longest one.`));
    await describe(start);
    return async (asked) => {
      const step = ofNumber(asked.step);
      if (step) await describe(step);
      return Boolean(step);
    };

    async function describe(step) {
      const path = tree?.path(step.number) ?? [];
      const parts = phases.map(({ name, label, cycles }) => ({ part: name, label, cycles: step[cycles] }));
      await store.load([step.rows.compute, step.rows.exchange, step.rows.sent, step.rows.received, step.rows.pieces]);
      detail.replaceChildren(
        page.element("h2", { tabindex: "-1" }, `Step ${page.format(step.number)}: ${page.named(step.name)}`),
        page.element(
          "ol",
          { class: "path", "aria-label": "Call path" },
          (path.length ? path : [step.type]).map((one) => page.element("li", {}, one)),
        ),
        step.made_at ? page.element("p", {}, madeAt(step)) : "",
        step.host_limit ? page.element("p", {}, `The transfer of ${page.format(step.host_bytes)} B is limited by ${step.host_limit}`) : "",
        page.partsBar(`${page.format(step.executions)} ${step.executions === 1 ? "execution" : "executions"}`, parts),
        page.element("ul", { class: "links" }, links(step).map((one) => page.element("li", {}, one))),
        page.element("ul", {}, busiest(step).map((one) => page.element("li", {}, one))),
        Object.keys(step.vertices).length
          ? page.facts(Object.entries(step.vertices).map(([label, value]) => ({ label, value, unit: "count" })))
          : "",
      );
    }

    function madeAt(step) {
      const apart = step.set_made_at && step.set_made_at !== step.made_at;
      return `Made at ${step.made_at}${apart ? `, its compute set at ${step.set_made_at}` : ""}`;
    }

    function links(step) {
      const number = step.number;
      return [
        page.element("a", { href: page.toName(step.name) }, "under its name"),
        ...(execution.trace ? [page.link("in the trace", "trace", { step: number })] : []),
        ...(step.slowest_compute ? [page.link("its tile balance", "balance", { step: number })] : []),
        ...(page.data.lines && step.slowest_compute
          ? [page.link("the lines of its vertices", "lines", { set: step.compute_set || step.name })]
          : []),
        ...(exchanged.has(number) ? [page.link("its exchange", "exchange", { step: number })] : []),
        ...(page.data.liveness ? [page.link("what lives at it", "liveness", { step: number })] : []),
      ];
    }

    // The tiles that do the most in the step.
    function busiest(step) {
      const most = (values) => values && values.reduce((one, value, tile) => (value > values[one] ? tile : one), 0);
      return [
        ["compute", "cycles", "computes the longest"],
        ["exchange", "cycles", "keeps its port busy the longest"],
        ["sent", "bytes", "sends the most"],
        ["received", "bytes", "receives the most"],
        ["pieces", "count", "handles the most pieces"],
      ].flatMap(([name, unit, words]) => {
        const values = store.row(step.rows[name]);
        const tile = most(values);
        if (!values?.[tile]) return [];
        const amount = `${page.format(values[tile], unit)}${{ cycles: " cycles", count: " pieces" }[unit] ?? ""}`;
        return [page.element("span", {}, page.link(`Tile ${page.format(tile)}`, "memory", { tile }), ` ${words}: ${amount}`)];
      });
    }
  });
}
