// Roofline: floating-point rate over operations per byte of tile memory, below the target's ceilings.

if (page.data.kind === "report") {
  page.view("roofline", "Roofline", async (panel) => {
    const { clock, tiles, peaks, memory_bytes_per_cycle: perCycle } = page.data.target;
    const sets = await page.unpack(page.data.compute_sets);
    if (!sets) return panel.append(page.notice(page.NOT_RUN));
    const points = sets
      .filter((one) => one.flops && one.cycles)
      .map((one) => ({
        ...one,
        rate: one.flops / (one.cycles / clock),
        intensity: one.memory_bytes ? one.flops / one.memory_bytes : null,
      }));
    if (!points.length) return panel.append(page.notice(page.NO_FLOPS));
    const ceilings = Object.entries(peaks).map(([name, flops]) => ({ name, rate: flops * tiles * clock }));
    const bandwidth = perCycle * tiles * clock;
    const drawn = points.filter((one) => one.intensity);
    const figure = page.figure(
      "Each point is a compute set; the larger, the more cycles it takes. Below the slope it is bound by memory, below a level line by arithmetic.",
    );
    panel.append(figure);
    figure.box.style.height = "32rem";
    if (!ceilings.length) panel.append(page.notice("No ceilings: the target of this report has no peak rates."));
    const intensities = [...drawn.map((one) => one.intensity), ...(bandwidth ? ceilings.map((one) => one.rate / bandwidth) : [])];
    const [low, high] = [Math.min(...intensities, 0.1) / 3, Math.max(...intensities, 1) * 5];
    const most = Math.max(...drawn.map((one) => one.cycles), 1);
    /** @type {any[]} */
    const traces = ceilings.map(({ name, rate }, place) => {
      const knee = bandwidth ? Math.max(low, Math.min(high, rate / bandwidth)) : low;
      return {
        type: "scatter",
        mode: "lines",
        name: `${page.label(name)}: ${page.short(rate, "flop/s")}`,
        x: bandwidth ? [low, knee, high] : [low, high],
        y: bandwidth ? [Math.min(rate, low * bandwidth), rate, rate] : [rate, rate],
        line: { color: page.series(place + 1), width: 2 },
        hoverinfo: "name",
      };
    });
    traces.push({
      type: "scatter",
      mode: "markers",
      name: "compute sets",
      x: drawn.map((one) => one.intensity),
      y: drawn.map((one) => one.rate),
      marker: {
        color: page.colour("compute"),
        size: drawn.map((one) => 7 + 21 * Math.sqrt(one.cycles / most)),
        opacity: 0.75,
        line: { color: page.colour("paper"), width: 1 },
      },
      text: drawn.map(
        (one) =>
          `${page.label(page.named(one.name))}<br>${page.short(one.rate, "flop/s")} at ${page.format(one.intensity, "decimal")} FLOP/B<br>${page.format(one.cycles)} cycles`,
      ),
      hoverinfo: "text",
    });
    const log = { type: "log", exponentformat: "SI", dtick: 1 };
    await figure.draw(traces, {
      xaxis: page.axis("floating-point operations per byte of tile memory", {
        ...log,
        exponentformat: "none",
        range: [Math.log10(low), Math.log10(high)],
      }),
      yaxis: page.axis("FLOP/s", log),
      margin: { l: 70, r: 44, t: 14, b: 52 },
    });
    const peak = Math.max(...ceilings.map((one) => one.rate), 0);
    panel.append(
      page.element(
        "p",
        { class: "quiet" },
        bandwidth
          ? `The slope is ${page.format(perCycle)} B per tile and cycle: ${page.short(bandwidth, "bytes")} per second.`
          : "The report does not say how many bytes a tile loads per cycle.",
      ),
    );
    panel.append(
      page.table({
        caption: "Compute sets with floating-point operations",
        columns: [
          { name: "name", label: "Compute set", unit: "text" },
          { name: "flops", label: "FLOP", unit: "count" },
          { name: "memory_bytes", label: "Loaded and stored", unit: "bytes" },
          { name: "intensity", label: "FLOP per byte", unit: "decimal" },
          { name: "rate", label: "FLOP/s", unit: "flop/s" },
          ...(peak ? [{ name: "ofPeak", label: "Of the peak", unit: "share" }] : []),
          { name: "cycles", label: "Cycles", unit: "cycles" },
        ],
        rows: points.map((one) => ({ ...one, ofPeak: peak ? one.rate / peak : 0 })),
        sort: "-flops",
      }),
    );
  });
}
