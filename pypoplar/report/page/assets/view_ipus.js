// IPUs: what each does and holds, what goes from one to another, and how far that uses their links.

if (page.data.kind === "report") {
  page.view("ipus", "IPUs", async (panel) => {
    const data = await page.unpack(page.data.ipus);
    if (!data) return panel.append(page.notice("The target has one IPU: there is nothing between IPUs."));
    if (!data.ran) panel.append(page.notice(page.NOT_RUN, " Bytes are those of one execution of each exchange."));
    const tile = (name) => (row) => page.address("memory", { tile: row[name] });
    panel.append(
      page.table({
        caption: "IPUs",
        rows: data.rows,
        sort: "ipu",
        columns: [
          { name: "ipu", label: "IPU", unit: "count" },
          { name: "memory", label: "Memory", unit: "bytes" },
          { name: "fullest", label: "Fullest tile", unit: "bytes" },
          { name: "fullest_tile", label: "which is", unit: "count", link: tile("fullest_tile") },
          ...(data.ran
            ? [
                { name: "compute", label: "Slowest tile computes", unit: "cycles" },
                { name: "slowest_tile", label: "which is", unit: "count", link: tile("slowest_tile") },
                { name: "mean_compute", label: "Mean tile", unit: "cycles" },
                { name: "active_tiles", label: "Active tiles", unit: "count" },
              ]
            : []),
          ...(data.clocks
            ? [
                { name: "busy", label: "Busy", unit: "cycles" },
                { name: "waiting", label: "Waiting for other IPUs", unit: "cycles" },
              ]
            : []),
          { name: "within", label: "Within it", unit: "bytes" },
          { name: "sent", label: "To other IPUs", unit: "bytes" },
          { name: "received", label: "From other IPUs", unit: "bytes" },
        ],
      }),
      page.element("h2", {}, "From IPU to IPU"),
      page.element("p", { class: "quiet" }, ...aboutLinks()),
      matrix(),
    );
    if (!data.steps.length) return panel.append(page.notice("Nothing goes from one IPU to another."));
    panel.append(
      page.table({
        caption: "Exchanges between IPUs",
        rows: data.steps,
        sort: "-cycles",
        columns: [
          { name: "step", label: "Step", unit: "count", link: (row) => (row.executions ? page.toStep(row) : null) },
          { name: "name", label: "Name", unit: "text" },
          { name: "executions", label: "Executions", unit: "count" },
          { name: "bytes", label: "Bytes each time", unit: "bytes" },
          { name: "cycles", label: "Cycles between IPUs", unit: "cycles" },
          { name: "pair", label: "Busiest link", unit: "text" },
          { name: "use", label: "Use of it", unit: "share" },
        ],
      }),
    );

    if (data.more) panel.append(page.notice(`${page.format(data.more)} exchanges with fewer cycles are not listed.`));

    function aboutLinks() {
      const told = ["Rows send, columns receive. What several tiles of an IPU receive alike crosses once. "];
      if (!data.link_bytes_per_cycle) return [...told, "The report does not say what the links between IPUs carry."];
      const rate = page.format(data.link_bytes_per_cycle / 2, "decimal");
      told.push(`A link carries ${rate} B per cycle each way; ${data.wiring}, and bytes for others pass through those between. `);
      if (data.use)
        told.push(`The share is of what the link from the one to the other could carry in the ${page.format(data.cycles)} cycles of exchange between IPUs.`);
      return told;
    }

    function matrix() {
      const ipus = data.rows.map(({ ipu }) => ipu);
      const most = Math.max(1, ...ipus.flatMap((from) => ipus.map((to) => (from === to ? 0 : data.bytes[from][to]))));
      const cell = (from, to) => {
        const bytes = data.bytes[from][to];
        if (from === to) return page.element("td", { class: "number quiet" }, "within");
        const use = data.use && data.use[from][to] ? page.format(data.use[from][to], "share") : "";
        if (!bytes && !use) return page.element("td", { class: "number" }, "");
        const words = `IPU ${from} to IPU ${to}: ${page.format(bytes, "bytes")}${use ? `, link used ${use}` : ""}`;
        return page.element(
          "td",
          { class: "number", title: words },
          page.element("span", { class: "share" }, page.element("i", { style: `width:${(bytes / most) * 100}%;background:var(--between)` })),
          `${page.short(bytes, "bytes")} `,
          page.element("span", { class: "quiet" }, use),
        );
      };
      return page.element(
        "div",
        { class: "table scroll matrix", tabindex: "0", role: "region", "aria-label": "Bytes from IPU to IPU" },
        page.element(
          "table",
          {},
          page.element(
            "thead",
            {},
            page.element("tr", {}, page.element("th", {}, "from \\ to"), ipus.map((to) => page.element("th", { scope: "col", class: "number" }, `IPU ${to}`))),
          ),
          page.element(
            "tbody",
            {},
            ipus.map((from) => page.element("tr", {}, page.element("th", { scope: "row" }, `IPU ${from}`), ipus.map((to) => cell(from, to)))),
          ),
        ),
      );
    }
  });
}
