// Memory by tile: stacked by category, or always live and not; the limit; what lies on a selected tile.

const MOST_PLACES = 6000; // tiles that are drawn one by one; beyond it, each place is the fullest tile of its neighbours

const MOST_BARS = 300;

const MOST_RECTANGLES = 3000; // of memory by address

if (page.data.kind === "report") {
  page.view("memory", "Memory", async (panel, parameters) => {
    const memory = page.data.memory;
    const gaps = await page.unpack(memory.gaps);
    const categories = await Promise.all(memory.categories.map(async (one) => ({ ...one, bytes: await page.unpack(one.bytes) })));
    const live = { always: await page.unpack(memory.always_live), rest: await page.unpack(memory.not_always_live) };
    const { tiles_per_ipu: perIpu, ipus } = page.data.target;
    const variables = await page.variables();
    if (!gaps.length) return panel.append(page.notice("The report has no memory by tile."));

    const total = (tile) => categories.reduce((sum, one) => sum + one.bytes[tile], gaps[tile]);
    const state = {
      by: live.always ? (parameters.by ?? "category") : "category",
      gaps: true,
      limit: memory.most > 0.2 * memory.limit,
      ipu: ipus > 4 ? 0 : -1,
      tile: page.numbered(parameters.tile, gaps.length, fullest()),
    };
    function fullest() {
      let most = 0;
      for (let tile = 1; tile < gaps.length; tile++) if (total(tile) > total(most)) most = tile;
      return most;
    }

    const figure = page.figure("Bytes of each tile. Select a tile with a click.");
    const detail = page.element("div");
    const places = page.figure("The selected tile's memory by address: from left to right what lies where, upwards the steps at which it lives.");
    const listed = page.element("div");
    panel.append(controls(), figure, detail, places, listed);
    await draw();
    figure.on("plotly_click", (event) => select(event.points[0].x));
    page.zoom(figure);

    function controls() {
      const by = page.choice(
        "Show",
        [
          ["category", "by category"],
          ["live", "always live and not"],
          ["total", "total"],
        ],
        state.by,
        (value) => {
          state.by = value;
          draw();
        },
      );
      if (!live.always) by.querySelector('option[value="live"]').disabled = true;
      const ipu = page.choice(
        "IPU",
        [["-1", "all"], ...Array.from({ length: ipus }, (_, one) => [String(one), String(one)])],
        String(state.ipu),
        (value) => {
          state.ipu = Number(value);
          draw();
        },
      );
      return page.element(
        "div",
        { class: "controls" },
        by,
        ipus > 1 ? ipu : null,
        page.check("gaps", state.gaps, (on) => {
          state.gaps = on;
          draw();
        }),
        page.check("limit of a tile", state.limit, (on) => {
          state.limit = on;
          draw();
        }),
        page.number("Tile", state.tile, gaps.length - 1, select),
      );
    }

    function shownTiles() {
      const [first, last] = state.ipu < 0 ? [0, gaps.length] : [state.ipu * perIpu, (state.ipu + 1) * perIpu];
      const step = Math.ceil((last - first) / MOST_PLACES);
      const tiles = [];
      for (let tile = first; tile < last; tile += step) {
        let most = tile;
        for (let one = tile + 1; one < Math.min(tile + step, last); one++) if (total(one) > total(most)) most = one;
        tiles.push(most);
      }
      return tiles;
    }

    function series() {
      const withGaps = state.gaps ? [{ label: "Gaps", bytes: gaps, colour: page.colour("muted") }] : [];
      if (state.by === "category")
        return [...categories.map((one, place) => ({ ...one, colour: page.series(place) })), ...withGaps];
      if (state.by === "live")
        return [
          { label: "Always live", bytes: live.always, colour: page.series(0) },
          { label: "Not always live", bytes: live.rest, colour: page.series(1) },
          ...withGaps,
        ];
      return [{ label: "Total", bytes: gaps.map((gap, tile) => total(tile) - (state.gaps ? 0 : gap)), colour: page.series(0) }];
    }

    async function draw() {
      const tiles = shownTiles();
      const [first, end] = page.usedTiles(tiles.length, [tiles.map(total)]);
      figure.say(page.someTiles([tiles[first], tiles[end - 1] + 1], tiles[tiles.length - 1] + 1 - tiles[0]));
      const drawn = tiles.slice(first, end); // nothing is left out: the others are empty
      const traces = series()
        .filter((one) => one.bytes.some((size) => size > 0))
        .map((one) => ({
          name: one.label,
          x: drawn,
          y: drawn.map((tile) => one.bytes[tile]),
          hovertemplate: "%{y:,} B",
          ...(drawn.length > MOST_BARS
            ? {
                type: "scatter",
                mode: "lines",
                stackgroup: "all",
                line: { width: 0, shape: "hvh", color: one.colour },
                fillcolor: one.colour,
              }
            : { type: "bar", marker: { color: one.colour, line: { width: 0 } } }),
        }));
      const axis = page.tileAxis([tiles[first], tiles[end - 1] + 1]);
      figure.whole = [...axis.range];
      const most = Math.max(...tiles.map(total));
      const line = state.limit
        ? [
            {
              type: "line",
              xref: "paper",
              x0: 0,
              x1: 1,
              y0: memory.limit,
              y1: memory.limit,
              line: { color: page.colour("warn"), width: 1.5, dash: "dash" },
            },
          ]
        : [];
      const words = state.limit
        ? [
            {
              xref: "paper",
              x: 1,
              y: memory.limit,
              xanchor: "right",
              yanchor: "bottom",
              showarrow: false,
              text: `limit ${page.format(memory.limit, "bytes")}`,
              font: { color: page.colour("warn"), size: 12 },
            },
          ]
        : [];
      await figure.draw(traces, {
        xaxis: { ...axis, range: page.zoomed(figure) },
        yaxis: page.axis("bytes", { range: [0, 1.08 * (state.limit ? Math.max(most, memory.limit) : most)], fixedrange: true }),
        shapes: line,
        annotations: words,
        hovermode: "x unified",
        barmode: "stack",
        bargap: drawn.length < 100 ? 0.15 : 0,
      });
      describe();
    }

    function select(tile) {
      state.tile = Math.max(0, Math.min(gaps.length - 1, Math.round(tile)));
      panel.querySelector('input[name="Tile"]').value = state.tile;
      page.remember({ tile: state.tile }, true);
      describe();
    }

    // Memory by address: a rectangle for each time that a variable lives.
    async function drawPlaces(tile) {
      const rows = variables?.tile ? variables.atAddresses(tile) : null;
      places.hidden = !rows?.length;
      if (!rows) return listed.replaceChildren(page.notice("Where variables lie in a tile's memory is not known: profile the program again."));
      listed.replaceChildren(page.addressTable(`By address on tile ${page.format(tile)}`, rows));
      if (!rows.length) return;
      const steps = Math.max(1, ...rows.flatMap((one) => one.lives.map(([, end]) => end)));
      const drawn = rows
        .flatMap((one) => (one.always || !one.lives.length ? [[one, 0, steps]] : one.lives.map(([begin, end]) => [one, begin, end])))
        .slice(0, MOST_RECTANGLES);
      const bars = {
        type: "bar",
        x: drawn.map(([one]) => (one.begin + one.end) / 2),
        width: drawn.map(([one]) => one.end - one.begin),
        base: drawn.map(([, begin]) => begin),
        y: drawn.map(([, begin, end]) => end - begin),
        text: drawn.map(([one]) => one.name),
        textposition: "none",
        customdata: drawn.map(([one]) => [one.begin, one.end, one.life]),
        hovertemplate: "%{text}<br>%{customdata[0]:,} to %{customdata[1]:,}<br>%{customdata[2]}<extra></extra>",
        marker: {
          color: drawn.map(([one]) => page.series(one.name.startsWith("exchange buffer") ? 2 : one.always ? 0 : 1)),
          line: { width: 0.5, color: page.colour("paper") },
        },
      };
      await places.draw([bars], {
        xaxis: page.axis("address"),
        yaxis: page.axis("step", { range: [0, steps] }),
        barmode: "overlay",
        showlegend: false,
      });
    }

    function describe() {
      const tile = state.tile;
      drawPlaces(tile);
      const size = total(tile);
      const facts = categories.map((one) => ({ label: one.label, value: one.bytes[tile], unit: "bytes" }));
      facts.push({ label: "Gaps", value: gaps[tile], unit: "bytes" });
      if (live.always)
        facts.push(
          { label: "Always live", value: live.always[tile], unit: "bytes" },
          { label: "Not always live, at most", value: live.rest[tile], unit: "bytes" },
        );
      const over = size > memory.limit ? `, ${page.format(size - memory.limit, "bytes")} more than it has` : "";
      detail.replaceChildren(
        page.element("h2", {}, `Tile ${page.format(tile)}`),
        page.element("p", {}, page.link("What it does in the trace", "trace", { first: Math.max(0, tile - 4), last: tile + 5 })),
        page.element(
          "p",
          {},
          `${page.format(size, "bytes")} with gaps, ${page.format(size / memory.limit, "share")} of its memory${over}.`,
        ),
        page.element("div", { class: "pair" }, page.facts(facts), page.element("div")),
        variables === null
          ? page.notice("No variables: this report does not say where they lie.")
          : variables.tile === null
            ? page.notice("The graph has too many pieces of variables to list them by tile.")
            : page.variableTable(`Variables on tile ${page.format(tile)}`, variables.ofTile(tile)),
      );
    }
  });
}
