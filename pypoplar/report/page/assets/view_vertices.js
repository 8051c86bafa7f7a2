// Vertices and operations: vertex types by worker slots, compute sets by tile cycles.

if (page.data.kind === "report") {
  page.view("vertices", "Vertices and operations", async (panel, parameters) => {
    const types = await page.unpack(page.data.vertex_types);
    const sets = await page.unpack(page.data.compute_sets);
    if (!types.length)
      panel.append(page.notice("No vertex types: the program has no vertices, or this report does not list them."));
    else await vertexTypes(panel, types, parameters.type);
    if (!sets) panel.append(page.notice(page.NOT_RUN));
    else await computeSets(panel, sets, parameters.set);
  });
}

async function vertexTypes(panel, types, filter) {
  panel.append(page.element("h2", {}, "Vertex types"));
  if (types.some((one) => one.cycles)) {
    const figure = page.figure("Worker slots of all vertices of a type, over all executions");
    panel.append(figure);
    await page.bars(
      figure,
      types.filter((one) => one.cycles).map((one) => ({ name: one.name, value: one.cycles })),
      "worker slots",
      page.colour("compute"),
    );
  }
  const flops = types.some((one) => one.flops);
  const compiled = types.some((one) => one.compiled_cycles);
  panel.append(
    page.table({
      caption: "Vertex types",
      columns: [
        { name: "name", label: "Vertex type", unit: "text", link: (row) => row.cycles && page.toLines({ type: row.name }) },
        { name: "instances", label: "Instances", unit: "count" },
        { name: "cycles", label: "Worker slots", unit: "cycles", title: SLOTS },
        ...(compiled
          ? [
              {
                name: "compiled_cycles",
                label: "Compiled",
                unit: "cycles",
                title: "what the code takes as the vendor's compiler makes it, whatever estimates say",
              },
              { name: "bound_cycles", label: "Bound", unit: "cycles", title: "what hand-written code could reach" },
            ]
          : []),
        ...(flops
          ? [
              { name: "flops", label: "FLOP", unit: "count" },
              { name: "memory_bytes", label: "Loaded and stored", unit: "bytes" },
            ]
          : []),
        { name: "memory", label: "State and pointers", unit: "bytes" },
        { name: "priced_by", label: "Slots from", unit: "text", title: "vertices by what priced their slots" },
      ],
      rows: types,
      sort: "-cycles",
      filter,
    }),
  );
  if (!flops) panel.append(page.notice(page.NO_FLOPS));
}

async function computeSets(panel, sets, filter) {
  panel.append(page.element("h2", {}, "Compute sets"));
  if (!sets.length) return panel.append(page.notice("No compute set was executed."));
  const figure = page.figure("Cycles of the slowest tile in each compute set, over all executions");
  panel.append(figure);
  await page.bars(
    figure,
    sets.map((one) => ({ name: one.name, value: one.cycles })),
    "cycles",
    page.colour("compute"),
  );
  const flops = sets.some((one) => one.flops);
  panel.append(
    page.table({
      caption: "Compute sets",
      columns: [
        { name: "name", label: "Compute set", unit: "text", link: (row) => page.toName(row.name) },
        { name: "executions", label: "Executions", unit: "count" },
        { name: "cycles", label: "Tile cycles", unit: "cycles", title: "of the slowest tile" },
        { name: "balance", label: "Tile balance", unit: "share" },
        { name: "lost", label: "Lost to imbalance", unit: "cycles" },
        ...(flops
          ? [
              { name: "flops", label: "FLOP", unit: "count" },
              { name: "memory_bytes", label: "Loaded and stored", unit: "bytes" },
            ]
          : []),
        { name: "vertices", label: "Vertices", unit: "count" },
        { name: "types", label: "Vertex types", unit: "text" },
        { name: "made_at", label: "Made at", unit: "text", title: "the line of your code that made it" },
      ],
      rows: sets,
      sort: "-cycles",
      filter,
    }),
  );
}

const SLOTS = "cycles of one worker thread; a tile goes on by six, as its threads take turns";

page.NO_FLOPS = 'No FLOPs: set the engine option profiler.includeFlopEstimates to "true" and run again.';
