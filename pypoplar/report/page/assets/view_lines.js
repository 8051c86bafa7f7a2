// Lines: each codelet's text with what its lines cost, in all compute sets or in one; the slowest vertex of each compute set.

if (page.data.kind === "report") {
  page.view("lines", "Lines", async (panel, parameters) => {
    const data = await page.unpack(page.data.lines);
    if (!data) return panel.append(page.notice(page.data.summary.machine ? page.NO_LINES : page.NOT_RUN));
    if (!data.types.length) return panel.append(page.notice("No vertex was executed."));
    const sum = (values) => values.reduce((whole, value) => whole + (value ?? 0), 0);
    const types = data.types.map((one) => ({
      ...one,
      slots: sum(one.costs.slots),
      compiled: sum(one.costs.compiled),
      bound: sum(one.costs.bound),
    }));
    const whole = sum(types.map((one) => one.slots));
    for (const one of types) one.share = whole ? one.slots / whole : 0;
    const named = (name) => types.find((one) => one.name === name);
    const inSet = (name) =>
      types.find((one) => one.by_set.some((set) => set.name === name)) ??
      named(data.slowest.find((vertex) => vertex.set === name)?.type);
    const detail = page.element("div");
    const start = named(parameters.type) ?? inSet(parameters.set) ?? types[0];
    const compiled = data.compiled
      ? [
          { name: "compiled", label: "Compiled", unit: "cycles", title: COMPILED },
          { name: "bound", label: "Bound", unit: "cycles", title: BOUND },
        ]
      : [];
    if (parameters.type && !named(parameters.type))
      panel.append(page.notice(`No vertex of the type ${parameters.type} was executed. Shown is the type with the most slots.`));
    panel.append(
      page.element(
        "p",
        { class: "quiet" },
        "Worker slots of all executions by line of device code: what vertices were charged, so that lines share an estimate in proportion to their code. A bundle belongs to the line of its instruction for the main pipe. Select a vertex type to read its code.",
      ),
      page.table({
        caption: "Vertex types",
        rows: types,
        sort: "-slots",
        picked: start,
        onPick: (row) => {
          page.remember({ type: row.name, set: "" }, true);
          show(row, -1);
        },
        columns: [
          { name: "name", label: "Vertex type", unit: "text" },
          { name: "instances", label: "Instances", unit: "count" },
          { name: "sets", label: "Compute sets", unit: "count" },
          { name: "slots", label: "Worker slots", unit: "cycles" },
          { name: "share", label: "Of all slots", unit: "share" },
          ...compiled,
        ],
      }),
      detail,
    );
    slowest(panel, data.slowest);
    const placeOf = (type, set) => (set ? type.by_set.findIndex((one) => one.name === set) : -1);
    show(start, placeOf(start, parameters.set));
    return (asked) => {
      const type = named(asked.type) ?? inSet(asked.set);
      if (type) show(type, placeOf(type, asked.set));
      return Boolean(type);
    };

    // A type, in the compute set at a place of its own, or in all for -1.
    function show(type, place) {
      const set = type.by_set[place];
      const costs = set?.costs ?? type.costs;
      const choices = [["-1", "all compute sets"], ...type.by_set.map((one, number) => [String(number), page.named(one.name)])];
      const choose = (chosen) => {
        page.remember({ type: type.name, set: type.by_set[chosen]?.name ?? "" }, true);
        show(type, Number(chosen));
      };
      const left = type.sets - type.by_set.length;
      detail.replaceChildren(
        page.element("h2", { tabindex: "-1" }, page.named(type.name)),
        page.element("div", { class: "controls" }, page.choice("Compute set", choices, String(place), choose)),
        left ? page.notice(`${page.format(left)} more compute sets with fewer slots are only in the sum.`) : "",
        page.element(
          "p",
          { class: "quiet" },
          `${page.format(sum(costs.slots))} slots of ${page.format(set?.vertices ?? type.instances)} vertices.`,
          set ? " " : "",
          set ? page.link("The compute set", "vertices", { set: set.name }) : "",
        ),
        text(type, costs),
      );
    }

    // The text with its figures: a line without any costs nothing.
    function text(type, costs) {
      const total = sum(costs.slots);
      const heads = ["Slots", "Share", ...(data.compiled ? ["Compiled", "Bound"] : []), "Runs", "Line", "Code"];
      const body = page.element("tbody");
      let place = "";
      type.text.forEach((code, line) => {
        const [file, name] = [type.file[line], type.function[line]];
        if (place !== `${file} ${name}`) {
          place = `${file} ${name}`;
          body.append(
            page.element("tr", {}, page.element("th", { class: "place", colspan: heads.length, scope: "rowgroup" }, `${name}, ${file}`)),
          );
        }
        const spends = costs.slots[line] || costs.compiled[line];
        const figure = (value) => page.element("td", { class: "number" }, spends ? page.format(value) : "");
        body.append(
          page.element(
            "tr",
            {},
            figure(costs.slots[line]),
            page.element("td", {}, spends ? page.shareBar(total ? costs.slots[line] / total : 0) : ""),
            data.compiled ? [figure(costs.compiled[line]), figure(costs.bound[line])] : null,
            figure(costs.executions[line]),
            page.element("td", { class: "number quiet" }, String(type.line[line])),
            page.element("td", { class: "code" }, code),
          ),
        );
      });
      const titles = { Compiled: COMPILED, Bound: BOUND, Runs: "executions of the block on the line that ran most often; a loop may take several elements at a time" };
      return page.element(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Code" },
        page.element(
          "table",
          { class: "source" },
          page.element("caption", {}, "Code"),
          page.element(
            "thead",
            {},
            page.element(
              "tr",
              {},
              heads.map((head) =>
                page.element(
                  "th",
                  { scope: "col", class: ["Share", "Code"].includes(head) ? "text" : "number", title: titles[head] ?? null },
                  head,
                ),
              ),
            ),
          ),
          body,
        ),
      );
    }
  });

  const COMPILED = "what the code takes as the vendor's compiler makes it, whatever estimates say";
  const BOUND = "what hand-written code could reach";

  function slowest(panel, vertices) {
    if (!vertices.length) return;
    panel.append(
      page.element("h2", {}, "Slowest vertices"),
      page.table({
        caption: "The vertex of each compute set that takes the most tile cycles in one execution",
        rows: vertices,
        sort: "-cycles",
        columns: [
          { name: "set", label: "Compute set", unit: "text", link: (row) => page.toName(row.set) },
          { name: "type", label: "Vertex type", unit: "text", link: (row) => page.toLines({ type: row.type, set: row.set }) },
          { name: "tile", label: "Tile", unit: "count", link: (row) => page.address("memory", { tile: row.tile }) },
          { name: "cycles", label: "Tile cycles", unit: "cycles" },
          { name: "sizes", label: "Sizes", unit: "text", title: "elements of its fields" },
        ],
      }),
    );
  }
}

// The address of a vertex type's lines; none where lines are not known.
page.toLines = (parameters) => (page.data.lines ? page.address("lines", parameters) : null);

page.NO_LINES =
  'No cycles by source line: set the engine option autoReport.all, or profiler.includeFlopEstimates, to "true" and run again.';
