// Names as a tree: what stands under a name path such as layer1/conv, with time, bytes and memory, as flame graph and as table.

const LEAST_WIDE = 0.0015; // of the whole: narrower frames are left out, and so is what they hold
const DEEPEST_FRAMES = 16; // rows of the flame graph

if (page.data.kind === "report") {
  page.view("names", "Names", async (panel, parameters) => {
    const data = await page.unpack(page.data.names);
    if (!data) return panel.append(page.notice(page.noCycles()));
    const phases = page.data.phases.filter(({ cycles }) => cycles);
    const columns = [...phases.map(({ name }) => name), "executions", "sent", "host_bytes", "vertices", "memory"];
    const names = page.nameTree(data, columns, (sums) => {
      sums.cycles = phases.reduce((sum, { name }) => sum + sums[name], 0);
    });
    const measures = [
      ...(page.data.total_cycles ? [["cycles", "cycles"]] : []),
      ...(names.root.sums.sent ? [["sent", "bytes between tiles"]] : []),
      ...(names.root.sums.host_bytes ? [["host_bytes", "bytes to and from the host"]] : []),
      ...(data.memory ? [["memory", "memory of variables"]] : []),
    ];
    if (!page.data.total_cycles) panel.append(page.notice(page.noCycles()));
    if (!measures.length) return panel.append(page.notice("Nothing under these names takes time, bytes or memory."));
    const state = {};
    const way = page.element("nav", { class: "way", "aria-label": "Name path" });
    const flame = page.element("div", { class: "flame", role: "group", "aria-label": "Flame graph of names" });
    const legend = page.element("ul", { class: "legend" });
    const table = page.element("div");
    const place = page.element("div", { class: "controls" });
    panel.append(
      page.element(
        "p",
        { class: "quiet" },
        "Steps and variables stand under the parts of their names. A frame is as wide as what it holds; click it to see it alone, and the way back above it. Frames too narrow to be seen, and those below sixteen others, are left out until you do.",
      ),
      place,
      way,
      flame,
      legend,
      table,
    );
    show(parameters);
    return show;

    function show(asked) {
      const known = measures.map(([name]) => name);
      state.by = known.includes(asked.by) ? asked.by : known[0];
      state.fold = asked.fold !== "no";
      state.at = names.find(asked.at ?? "", state.fold) ?? names.root;
      place.replaceChildren(
        page.choice("Widths by", measures, state.by, (by) => go({ by })),
        page.check("fold names that differ in numbers", state.fold, (on) => go({ fold: on ? "" : "no", at: "" })),
      );
      draw();
      return true;
    }

    // Another address, which the way back leaves again.
    function go(parameters) {
      page.remember(parameters, true);
      show(page.parameters());
    }

    function draw() {
      const path = names.pathOf(state.at);
      way.replaceChildren(
        ...path.map((row, depth) =>
          depth + 1 < path.length
            ? page.element("a", { href: page.address("names", { ...page.parameters(), at: row.key }) }, row.title)
            : page.element("strong", {}, row.title),
        ),
      );
      drawFlame();
      legend.replaceChildren(
        ...(state.by === "cycles" ? page.data.phases.filter(({ cycles }) => cycles) : []).map(({ name, label }) =>
          page.element("li", {}, page.element("span", { class: "swatch", style: `background:var(--${name})` }), label),
        ),
      );
      table.replaceChildren(
        page.treeTable({
          label: "Names",
          heads: ["Name", "Cycles", "Of all cycles", "Executions", "Between tiles", "Host", "Vertices", "Memory", "Steps"],
          roots: [state.at],
          children: (row) => names.below(row, state.by, state.fold),
          mark: (row) => row.key,
          cells,
        }),
      );
    }

    function cells(row) {
      const value = (name, unit) => (row.sums[name] ? page.format(row.sums[name], unit) : "");
      const total = page.data.total_cycles;
      const bar = page.data.phases
        .filter(({ name }) => row.sums[name])
        .map(({ name, label }) =>
          page.element("i", {
            style: `width:${(row.sums[name] / total) * 100}%;background:var(--${name})`,
            title: `${label} ${page.format(row.sums[name])}`,
          }),
        );
      return [
        page.link(row.title, "names", { ...page.parameters(), at: row.key }),
        value("cycles"),
        total ? page.shareBar(row.sums.cycles / total, ...bar) : "",
        value("executions"),
        value("sent", "bytes"),
        value("host_bytes", "bytes"),
        value("vertices"),
        data.memory ? value("memory", "bytes") : "",
        page.element("span", {}, stepLinks(row)),
      ];
    }

    function stepLinks(row) {
      const steps = row.nodes.flatMap((node) => data.steps[node]);
      const links = steps.slice(0, 3).flatMap((step) => [page.link(page.format(step), "steps", { step }), " "]);
      return steps.length > 3 ? [...links, `and ${page.format(steps.length - 3)} more`] : links;
    }

    function drawFlame() {
      const whole = state.at.sums[state.by];
      const frames = [];
      let deepest = 0;
      const pending = whole ? [[state.at, 0, 0]] : [];
      while (pending.length) {
        const [row, left, depth] = pending.pop();
        const wide = row.sums[state.by] / whole;
        if (wide < LEAST_WIDE || depth >= DEEPEST_FRAMES) continue;
        deepest = Math.max(deepest, depth);
        frames.push(frame(row, left, wide, depth));
        let at = left;
        for (const child of names.below(row, state.by, state.fold)) {
          pending.push([child, at, depth + 1]);
          at += child.sums[state.by] / whole;
        }
      }
      flame.style.height = `${1.6 * (deepest + 1)}rem`;
      flame.replaceChildren(...frames);
    }

    function frame(row, left, wide, depth) {
      const amount = state.by === "cycles" ? `${page.format(row.sums.cycles)} cycles` : page.format(row.sums[state.by], "bytes");
      const share = page.format(row.sums[state.by] / (names.root.sums[state.by] || 1), "share");
      const longest = page.data.phases.reduce((one, other) => ((row.sums[other.name] ?? 0) > (row.sums[one.name] ?? 0) ? other : one));
      const colour = { cycles: longest.name, sent: "exchange", host_bytes: "host", memory: "series0" }[state.by];
      const words = `${row.title}: ${amount}, ${share}`;
      return page.element(
        "a",
        {
          class: "frame",
          href: page.address("names", { ...page.parameters(), at: row.key }),
          title: words,
          "aria-label": words,
          "data-at": row.key,
          style: `left:${left * 100}%;width:${wide * 100}%;top:${1.6 * depth}rem;background:var(--${colour})`,
        },
        wide > 0.02 ? row.title : "",
      );
    }
  });
}
