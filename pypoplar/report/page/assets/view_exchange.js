// Exchange as a map from tile to tile: bytes by source and destination, exact where it is zoomed in far enough.

const MOST_BINS = 368;

if (page.data.kind === "report") {
  page.view("exchange", "Exchange", async (panel, parameters) => {
    if (!page.data.exchanges)
      return panel.append(
        page.notice("No exchange: the program moves nothing between tiles, or this report does not list its messages."),
      );
    const data = await page.unpackAll(page.data.exchanges);
    let first = 0;
    const list = data.list.map((one, place) => {
      const made = { ...one, place, first, times: Math.max(1, one.executions), total: one.bytes * one.executions };
      first += one.rows;
      return made;
    });
    const tiles = page.data.target.tiles;
    const map = page.figure("Bytes from tile to tile. Drag to zoom in, double click to zoom out.", "map");
    const lines = page.figure("Bytes that each tile sends and receives; what it sends to several tiles at once counts for each of them.", "low");
    const heading = page.element("h2");
    const alike = page.element("p", { class: "alike", hidden: true });
    const state = { chosen: null, listens: false, logarithm: false, x: [0, tiles], y: [0, tiles] };
    const all = page.element("button", { type: "button", onclick: () => choose(null) }, "All exchanges");
    const start = list.find((one) => String(one.step) === parameters.step) ?? null;
    panel.append(
      page.table({
        caption: "Exchanges",
        rows: list,
        sort: "-total",
        picked: start,
        onPick: (row) => choose(row),
        columns: [
          { name: "step", label: "Step", unit: "count", link: (row) => (row.executions ? page.toStep(row) : null) },
          { name: "name", label: "Name", unit: "text" },
          { name: "phase", label: "When", unit: "text" },
          { name: "executions", label: "Executions", unit: "count" },
          { name: "cycles", label: "Cycles each time", unit: "cycles" },
          { name: "pieces", label: "Pieces at a port", unit: "count", title: "contiguous pieces at the busiest port, three cycles each at least" },
          { name: "bytes", label: "Bytes each time", unit: "bytes" },
          { name: "total", label: "Bytes in all", unit: "bytes" },
          { name: "pairs", label: "Pairs of tiles", unit: "count" },
        ],
      }),
      heading,
      page.element(
        "div",
        { class: "controls" },
        all,
        page.check("colours by logarithm", false, (on) => {
          state.logarithm = on;
          draw();
        }),
      ),
      page.element("p", { class: "quiet note" }),
      alike,
      map,
      lines,
    );
    await choose(start, true);

    function within([one, other]) {
      const low = Math.min(tiles - 1, Math.max(0, Math.floor(Math.min(one, other) + 0.5)));
      return [low, Math.min(tiles, Math.max(low + 1, Math.ceil(Math.max(one, other) + 0.5 - 1e-6)))];
    }

    // Tiles as an address has them, "100-200", or else those that take part.
    function zoomed(text, all) {
      const [first, end] = (text ?? "").split("-").map(Number);
      return Number.isInteger(first) && Number.isInteger(end) && 0 <= first && first < end && end <= tiles ? [first, end] : all;
    }

    async function choose(row, asked = false) {
      state.chosen = row;
      [state.y, state.x] = used();
      if (asked) [state.y, state.x] = [zoomed(parameters.from, state.y), zoomed(parameters.to, state.x)];
      map.say(state.x[1] - state.x[0] < tiles ? " Shown are the tiles that take part." : "");
      if (!asked) page.remember({ step: row ? row.step : "", from: "", to: "" }, true);
      heading.textContent = row ? `${page.named(row.name)}, ${page.format(row.bytes, "bytes")} each time` : "All exchanges";
      const executed = list.some((one) => one.executions);
      panel.querySelector(".note").textContent = row
        ? "Bytes of one execution."
        : executed
          ? "Bytes of all executions together."
          : "The program has not run: bytes of one execution of each exchange.";
      await draw();
      await drawLines();
    }

    // The tiles that send and those that receive.
    function used() {
      const [from, to] = [new Uint8Array(tiles), new Uint8Array(tiles)];
      for (const one of messages()) {
        for (let at = one.from; at < one.to; at++) from[data.source[at]] = to[data.destination[at]] = 1;
      }
      return [page.usedTiles(tiles, [from]), page.usedTiles(tiles, [to])];
    }

    function* messages() {
      const executed = list.some((one) => one.executions);
      for (const one of state.chosen ? [state.chosen] : list) {
        const times = state.chosen || !executed ? 1 : one.executions;
        if (times) yield { from: one.first, to: one.first + one.rows, times, width: one.width };
      }
    }

    async function draw() {
      const [x, y] = [state.x, state.y];
      const width = Math.max(1, Math.ceil(Math.max(x[1] - x[0], y[1] - y[0]) / MOST_BINS));
      const [columns, rows] = [Math.ceil((x[1] - x[0]) / width), Math.ceil((y[1] - y[0]) / width)];
      const sums = new Float64Array(columns * rows);
      let coarse = 1;
      for (const one of messages()) {
        coarse = Math.max(coarse, one.width);
        for (let at = one.from; at < one.to; at++) {
          const [source, destination] = [data.source[at], data.destination[at]];
          if (source < y[0] || source >= y[1] || destination < x[0] || destination >= x[1]) continue;
          sums[Math.floor((source - y[0]) / width) * columns + Math.floor((destination - x[0]) / width)] +=
            data.bytes[at] * one.times;
        }
      }
      if (sayAlike(sums, columns, width, coarse)) return;
      await paint(sums, columns, rows, width, coarse);
      listen();
    }

    // A map listens from its first drawing on, which may come late: an exchange that is all alike is said in words.
    function listen() {
      if (state.listens) return;
      state.listens = true;
      map.on("plotly_relayout", (change) => {
        /** @param {string} axis @returns {any} */
        const range = (axis) =>
          change[`${axis}axis.range[0]`] !== undefined
            ? [change[`${axis}axis.range[0]`], change[`${axis}axis.range[1]`]]
            : change[`${axis}axis.autorange`]
              ? [-0.5, tiles - 0.5]
              : null;
        const [x, y] = [range("x"), range("y")];
        if (!x && !y) return;
        state.x = within(x ?? state.x);
        state.y = within(y ?? state.y);
        page.remember({ to: state.x.join("-"), from: state.y.join("-") }, true);
        draw();
      });
    }

    // An exchange in which all tiles that take part send as much to each other is said in words: a map of it has one colour.
    function sayAlike(sums, columns, width, coarse) {
      const whole = `${used()}` === `${[state.y, state.x]}` && width === 1 && coarse === 1;
      const [from, to] = [new Set(), new Set()];
      let [count, bytes, same] = [0, 0, whole];
      for (let at = 0; at < sums.length && same; at++) {
        if (!sums[at]) continue;
        same = !count || sums[at] === bytes;
        bytes = sums[at];
        count += 1;
        from.add(Math.floor(at / columns));
        to.add(at % columns);
      }
      alike.hidden = !(same && count > 1 && count === from.size * to.size);
      map.hidden = !alike.hidden;
      const many = (tiles) => (tiles.size > 1 ? `each of ${page.format(tiles.size)} tiles` : "one tile");
      if (!alike.hidden) alike.textContent = `All alike: from ${many(from)} to ${many(to)} go ${page.format(bytes, "bytes")}.`;
      return !alike.hidden;
    }

    async function paint(sums, columns, rows, width, coarse) {
      const grain = Math.max(width, coarse);
      const span = (tile) =>
        grain > 1 ? `tiles ${page.format(tile)} to ${page.format(Math.min(tiles, tile + grain) - 1)}` : `tile ${page.format(tile)}`;
      const [z, text] = [[], []];
      const destinations = Array.from({ length: columns }, (_, column) => ` to ${span(state.x[0] + column * width)}<br>`);
      for (let row = 0; row < rows; row++) {
        const values = Array.from(sums.subarray(row * columns, (row + 1) * columns));
        z.push(values.map((one) => (one && state.logarithm ? Math.log10(one) : one)));
        const source = span(state.y[0] + row * width);
        text.push(values.map((one, column) => (one ? source + destinations[column] + page.format(one, "bytes") : "")));
      }
      const most = sums.reduce((one, other) => Math.max(one, other), 1);
      const powers = Array.from({ length: Math.floor(Math.log10(most)) + 1 }, (_, one) => one);
      const bar = {
        title: { text: "bytes", side: "right" },
        thickness: 14,
        outlinewidth: 0,
        separatethousands: true,
        exponentformat: "none",
      };
      if (state.logarithm) Object.assign(bar, { tickvals: powers, ticktext: powers.map((one) => page.format(10 ** one)) });
      const whole = { zeroline: false, tickformat: ",d", ...(Math.max(columns, rows) < 12 && width === 1 ? { dtick: 1 } : {}) };
      await map.draw(
        [
          {
            type: "heatmap",
            x0: state.x[0] + (width - 1) / 2,
            dx: width,
            y0: state.y[0] + (width - 1) / 2,
            dy: width,
            z,
            text,
            hoverinfo: "text",
            colorbar: bar,
            colorscale: [
              [0, "rgba(0,0,0,0)"],
              [1e-9, page.colour("exchange")],
              [1, page.colour("ink")],
            ],
            zmin: state.logarithm ? 0 : undefined,
          },
        ],
        {
          xaxis: page.axis("destination tile", { ...whole, range: [state.x[0] - 0.5, state.x[1] - 0.5] }),
          yaxis: page.axis("source tile", { ...whole, range: [state.y[1] - 0.5, state.y[0] - 0.5] }),
          margin: { l: 70, r: 44, t: 14, b: 48 },
        },
      );
      map.box.dataset.bin = width;
    }

    async function drawLines() {
      const [sent, received] = [new Float64Array(tiles), new Float64Array(tiles)];
      for (const one of messages()) {
        for (let at = one.from; at < one.to; at++) {
          sent[data.source[at]] += data.bytes[at] * one.times;
          received[data.destination[at]] += data.bytes[at] * one.times;
        }
      }
      await page.byTile(
        lines,
        tiles,
        [
          { name: "sent", values: sent, colour: page.colour("exchange") },
          { name: "received", values: received, colour: page.colour("compute") },
        ],
        "bytes",
      );
    }
  });
}
